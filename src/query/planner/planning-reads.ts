/**
 * Reads that planning may spend. How many entries of an index a condition selects cannot be told while the leaves at the
 * ends of its ranges are not in memory: reading those takes a request or two, and the wrong plan may take many more.
 */
import type { TableIndex } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { loadChild } from '../../tree/tree.ts';
import type { Tree } from '../../tree/tree.ts';
import type { Access, Candidate, CompiledQuery } from './access-paths.ts';
import type { Estimated } from './plan-cost.ts';

/** A plan that takes fewer reads is taken as it is. */
const fewReads = 4;
/** Ranges of a candidate that are looked at. */
const maxRanges = 2;
/** The same of all the branches of a union. */
const maxUnionRanges = 8;

type Limited = Pick<CompiledQuery, 'limit'>;

/** Reads what lies on the way to a key. */
async function readTowards(tree: Tree, key: Uint8Array): Promise<void> {
  let node = tree.peekRoot() ?? (await tree.loadRoot());
  while (node.level > 0) {
    const child = node.childFor(key);
    node = tree.source.peekChild(node, child) ?? (await loadChild(tree.source, node, child));
  }
}

function isGuessed({ candidate: { access }, access: { exact } }: Estimated): boolean {
  return !exact && (access.kind === 'index' || access.kind === 'intersection' || access.kind === 'union');
}

/** In how many leaves of an index a range lies is known. How many rows are looked up is not, unless none are. */
function isUncertain(one: Estimated): boolean {
  return isGuessed(one) && one.candidate.use?.only !== true;
}

/**
 * Whether a plan reads the ends of its ranges before any row, so that looking there costs nothing, and it may matter how many
 * entries lie between them: it goes through all of them where another plan may end early.
 */
function readsAllItself(
  { candidate: { access, ordered } }: Estimated,
  all: readonly Estimated[],
  { limit }: Limited,
): boolean {
  if (access.kind === 'union') return true;
  return limit !== undefined && !ordered && all.some(({ candidate }) => candidate.ordered);
}

/** Whether it pays to look closer before one of several plans is chosen. */
export function isWorthProbing(best: Estimated, all: readonly Estimated[], query: Limited): boolean {
  const uncertain = all.filter((one) => isUncertain(one));
  // Of two that look good, one may be far worse than it looks.
  if (uncertain.includes(best) && all.filter((one) => isGuessed(one)).length > 1) return true;
  if (uncertain.includes(best) && readsAllItself(best, all, query)) return true;
  return best.estimate.indexReads + best.estimate.tableReads > fewReads && uncertain.length > 0;
}

/** Reads the ends of the ranges of which it is not known how many entries they have. */
export async function probe(state: TableState, all: readonly Estimated[]): Promise<void> {
  const keys = all.filter((one) => isUncertain(one)).flatMap(({ candidate }) => endsOf(state, candidate));
  await Promise.all(keys.map(({ tree, key }) => readTowards(tree, key)));
}

interface End {
  readonly tree: Tree;
  readonly key: Uint8Array;
}

function endsOf(state: TableState, { access }: Candidate): End[] {
  return guessedRanges(access).flatMap(({ index, range: { from, to } }) => {
    const tree = state.treeOf(index) as Tree;
    return [from, to].filter((key) => key !== undefined).map((key) => ({ tree, key }));
  });
}

interface IndexRange {
  readonly index: TableIndex;
  readonly range: KeyRange;
}

/** Those that are looked at. What a union has in the table is counted, or not guessed at. */
function guessedRanges(access: Access): readonly IndexRange[] {
  switch (access.kind) {
    case 'index':
      return access.ranges.slice(0, maxRanges).map((range) => ({ index: access.index, range }));
    case 'union':
      return access.parts.flatMap(({ plan }) => guessedRanges(plan.access)).slice(0, maxUnionRanges);
    default:
      return [];
  }
}
