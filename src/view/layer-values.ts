/**
 * Finds rows of a layer by their values in the fields of an index: merged rows have index entries, rows of commits that are not
 * merged yet have none. A hash table is made once for each layer, of a few bytes a row; a search that finds a hash in it reads
 * the row.
 */
import { isPromise } from '../base/brands.ts';
import { ByteWriter, hashOf } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';
import type { Node } from '../format/node.ts';
import { writeWholeValues } from '../schema/table-shape.ts';
import type { TableIndex } from '../schema/table-shape.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { brokenIn, loadChild } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';
import { isDeleted } from './merged-cursor.ts';

const none: readonly number[] = [];

/** Rows by the hashes of their values, as their positions in a layer. */
export class LayerValues {
  /** A position and one, 0 where a place is free. Half of the places stay free. */
  readonly #positions: Uint32Array;
  readonly #hashes: Uint32Array;
  readonly #mask: number;

  constructor(count: number) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(2, count * 2)));
    this.#positions = new Uint32Array(size);
    this.#hashes = new Uint32Array(size);
    this.#mask = size - 1;
  }

  add(hash: number, position: number): void {
    let at = hash & this.#mask;
    while (this.#positions[at] !== 0) at = (at + 1) & this.#mask;
    this.#positions[at] = position + 1;
    this.#hashes[at] = hash;
  }

  /** Positions of the rows with this hash: of the rows with the values, and perhaps of others. */
  positions(hash: number): readonly number[] {
    let found: number[] | undefined;
    for (let at = hash & this.#mask; this.#positions[at] !== 0; at = (at + 1) & this.#mask) {
      if (this.#hashes[at] !== hash) continue;
      found ??= [];
      found.push((this.#positions[at] as number) - 1);
    }
    return found ?? none;
  }
}

/** Reads the values that the rows of a layer have in an index; rows in which one of the values is null are left out. */
export async function readLayerValues(layer: Tree, index: TableIndex, pacer: Pacer): Promise<LayerValues> {
  const values = new LayerValues(layer.count);
  const scratch = new ByteWriter();
  const cursor = new TreeCursor(layer);
  let before = 0;
  for (;;) {
    let more = cursor.next();
    if (isPromise(more)) more = await more;
    if (!more) return values;
    const { node, from, to } = cursor;
    for (let i = from; i < to; i++) {
      if (isDeleted(node, i) || brokenIn(node)?.has(i) === true) continue;
      scratch.length = 0;
      if (!writeWholeValues(scratch, index, node, node.rowBase(i))) continue;
      values.add(hashOf(scratch.bytes, 0, scratch.length), before + i - from);
    }
    before += to - from;
    if (pacer.due()) await pacer.pause();
  }
}

/** The entry at a position, counted over all leaves of a tree. */
export async function entryAt(tree: Tree, position: number): Promise<{ readonly node: Node; readonly i: number }> {
  let node = tree.peekRoot() ?? (await tree.loadRoot());
  let i = position;
  while (node.level > 0) {
    let child = 0;
    while (i >= node.childCount(child)) i -= node.childCount(child++);
    node = tree.source.peekChild(node, child) ?? (await loadChild(tree.source, node, child));
  }
  return { node, i };
}
