/**
 * A mock execution: estimates the part of an access's rows that match, from a random sample of the rows in memory. It reads nothing.
 * The same state of memory gives the same sample.
 */
import type { Node } from '../../format/node.ts';
import type { TableState } from '../../view/table-state.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { PartialNode } from '../../tree/tree.ts';
import type { RowRef, Tree } from '../../tree/tree.ts';
import { primaryKeyIn } from '../../schema/table-shape.ts';
import type { Access, IndexAccess, TableAccess } from './access-paths.ts';
import type { Filter } from '../conditions/filter.ts';

/** The leaves in a sample, and the rows of each. */
const sampledLeaves = 8;
const rowsOfLeaf = 32;
/** The entries of each leaf in a sample, where every row must be looked up. */
const entriesOfLeaf = 8;
/** The children that are tried until one is in memory. */
const maxTries = 4;
/** The most work per leaf, as rows times the cost of testing each. */
const costOfLeaf = 500_000;

/** The result of a sample. */
export interface SampledMatches {
  /** The rows tested. */
  readonly tested: number;
  /** The rows that match. */
  readonly matched: number;
}

/** A sequence of pseudo-random integers that is the same each time. */
class Sequence {
  #state = 0x9e3779b9;

  below(count: number): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return (x >>> 0) % count;
  }
}

interface Part {
  readonly leaf: Node;
  readonly from: number;
  readonly to: number;
}

/** Returns a random leaf in memory and the part of it that lies in a range; undefined if none is found. */
function someLeaf(tree: Tree, { from, to }: KeyRange, sequence: Sequence): Part | undefined {
  if (tree.ref === null) return undefined;
  let node = tree.peekRoot();
  let low = from;
  let high = to;
  while (node !== undefined && node.level > 0) {
    const inner: Node = node;
    const first = low === undefined ? 0 : inner.childFor(low);
    const last = high === undefined ? inner.count - 1 : inner.childFor(high);
    let child = first;
    let below: Node | undefined;
    for (let tries = 0; tries < maxTries && below === undefined; tries++) {
      child = first + sequence.below(Math.max(1, last - first + 1));
      below = tree.source.peekChild(inner, child);
    }
    if (child !== first) low = undefined;
    if (child !== last) high = undefined;
    node = below;
  }
  if (node === undefined || node instanceof PartialNode) return undefined;
  const begin = low === undefined ? 0 : node.lowerBound(low);
  const end = high === undefined ? node.count : node.lowerBound(high);
  return end <= begin ? undefined : { leaf: node, from: begin, to: end };
}

/** Returns a row of a tree if all blocks on the path to it are in memory. */
function peekRow(tree: Tree, key: Uint8Array): RowRef | undefined {
  const leaf = tree.peekLeaf(key);
  const at = leaf?.find(key) ?? -1;
  return leaf === undefined || at < 0 ? undefined : { source: leaf, base: leaf.rowBase(at) };
}

class Sampler {
  readonly #sequence = new Sequence();
  readonly #filter: Filter;
  readonly #picks = new Int32Array(rowsOfLeaf);
  /** The rows of each leaf that may be tested: fewer, or none, for very many conditions. */
  readonly #maxRows: number;
  tested = 0;
  matched = 0;

  constructor(filter: Filter) {
    this.#filter = filter;
    this.#maxRows = Math.min(rowsOfLeaf, Math.floor(costOfLeaf / Math.max(1, filter.cost)));
  }

  /** Samples a table. Unmerged rows, and the rows that they replace, are as likely as any other. */
  sampleTable({ tree: stored, layers }: TableState, { ranges }: TableAccess): void {
    const trees = [stored, ...layers].filter(({ ref }) => ref !== null);
    const total = trees.reduce((sum, { count }) => sum + count, 0);
    if (total === 0) return;
    for (let i = 0; i < sampledLeaves; i++) {
      let at = this.#sequence.below(total);
      const tree = trees.find(({ count }) => (at -= count) < 0) as Tree;
      const range = ranges[this.#sequence.below(ranges.length)] as KeyRange;
      const part = someLeaf(tree, range, this.#sequence);
      if (part !== undefined) this.#testRows(part);
    }
  }

  #testRows({ leaf, from, to }: Part): void {
    const step = Math.max(1, Math.floor((to - from) / rowsOfLeaf));
    let count = 0;
    for (let i = from; i < to && count < this.#maxRows; i += step) this.#picks[count++] = i;
    this.tested += count;
    this.matched += this.#filter.select(leaf, leaf.rowsStart, leaf.stride, this.#picks, count);
  }

  sampleIndex(state: TableState, { index, ranges }: IndexAccess): void {
    const tree = state.treeOf(index) as Tree;
    for (let i = 0; i < sampledLeaves; i++) {
      const range = ranges[this.#sequence.below(ranges.length)] as KeyRange;
      const part = someLeaf(tree, range, this.#sequence);
      if (part === undefined) continue;
      for (let k = 0; k < Math.min(entriesOfLeaf, this.#maxRows, part.to - part.from); k++) {
        const key = part.leaf.key(part.from + this.#sequence.below(part.to - part.from));
        const row = peekRow(state.tree, primaryKeyIn(part.leaf, key, index));
        if (row === undefined) continue;
        this.tested++;
        if (this.#filter.matches(row.source, row.base)) this.matched++;
      }
    }
  }
}

/** Tests the conditions on a sample of the access's rows in memory. */
export function sampleMatches(state: TableState, access: Access, filter: Filter): SampledMatches {
  const sampler = new Sampler(filter);
  if (access.kind === 'table') sampler.sampleTable(state, access);
  else if (access.kind === 'index') sampler.sampleIndex(state, access);
  return sampler;
}
