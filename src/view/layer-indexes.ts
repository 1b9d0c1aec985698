/**
 * Finds rows of layers by an index. The tables for a search are made by the first search, and stay for as long as the
 * node of the layer. The states of a database share it, since they share layers.
 */
import type { Pacer } from '../base/pacer.ts';
import type { Node } from '../format/node.ts';
import { writeIndexEntries, writeWholeValues } from '../schema/index-entries.ts';
import type { TableIndex, TableShape } from '../schema/table-shape.ts';
import type { Tree } from '../tree/tree.ts';
import { KeyList } from '../format/key-list.ts';
import { NodeEntries } from '../format/node-entries.ts';
import { treeOfNode, brokenIn, loadChild } from '../tree/tree.ts';
import { onTop, together } from './layers.ts';
import { isDeleted } from './merged-cursor.ts';
import { indexLeafShape } from '../schema/table-shape.ts';
import { isPromise } from '../base/brands.ts';
import { ByteWriter, hashOf } from '../base/bytes.ts';
import { readAll } from '../tree/cursor.ts';

export class LayerIndexes {
  /** By the root of the layer, and the name of the index. */
  readonly #values = new WeakMap<object, Map<string, LayerValues>>();
  readonly #entries = new WeakMap<Node, WeakMap<TableIndex, LayerEntries | Promise<LayerEntries>>>();

  /** Returns layers with more on top, the newest of these last: small ones are joined. */
  joined(shape: TableShape, added: readonly Tree[], layers: readonly Tree[]): readonly Tree[] {
    return together(shape, added).reduce((below, layer) => onTop(shape, layer, below), layers);
  }

  /** Returns the values that the rows of a layer have in an index; rows in which one of the values is null are left out. */
  async valuesOf(layer: Tree, index: TableIndex, pacer: Pacer): Promise<LayerValues> {
    const root = layer.node ?? layer;
    let byIndex = this.#values.get(root);
    if (byIndex === undefined) {
      byIndex = new Map();
      this.#values.set(root, byIndex);
    }
    let values = byIndex.get(index.name);
    if (values === undefined) {
      values = await readLayerValues(layer, index, pacer);
      byIndex.set(index.name, values);
    }
    return values;
  }

  /** Returns the entries of an index for the rows of a layer that is all in memory. */
  entriesOf(layer: Tree, index: TableIndex, pacer: Pacer): LayerEntries | Promise<LayerEntries> {
    const node = layer.node as Node;
    const byIndex = this.#entries.get(node) ?? new WeakMap<TableIndex, LayerEntries | Promise<LayerEntries>>();
    const known = byIndex.get(index);
    if (known !== undefined) return known;
    this.#entries.set(node, byIndex);
    const making = makeLayerEntries(node, index, pacer).then(
      (entries) => {
        byIndex.set(index, entries);
        return entries;
      },
      (error: unknown) => {
        byIndex.delete(index);
        throw error;
      },
    );
    byIndex.set(index, making);
    return making;
  }
}

/** Name of nodes that only memory holds. */
const memoryName = 'memory/entries';

export interface LayerEntries {
  /** A single leaf of entries, ascending. */
  readonly tree: Tree;
  /** For each entry, which row of the layer it is of. Rows that are marked as deleted have none; others may have several. */
  readonly rows: Uint32Array;
}

/**
 * Whether entries of an index can be made for all layers of a table: their rows are in memory and could be made, and the
 * index is not on a function.
 */
export function haveEntries({ layers }: { readonly layers: readonly Tree[] }, { result }: TableIndex): boolean {
  return result === undefined && layers.every(({ node, mayBreak }) => node?.level === 0 && !mayBreak);
}

/** Returns a leaf in memory of entries that a list has in some order. */
export function leafOfEntries(keys: KeyList, order: Uint32Array): Node {
  const entries = new NodeEntries(indexLeafShape, order.length);
  for (const position of order) entries.addKey(keys.bytes, keys.start(position), keys.endOf(position));
  return entries.toNode(memoryName);
}

/** Makes the entries of an index for the rows in the node of a layer. */
export async function makeLayerEntries(node: Node, index: TableIndex, pacer: Pacer): Promise<LayerEntries> {
  const keys = new KeyList();
  const rows: number[] = [];
  let primaryKey = new Uint8Array(64);
  for (let i = 0; i < node.count; i++) {
    if (isDeleted(node, i)) continue;
    const length = node.keyLength(i);
    if (length > primaryKey.length) primaryKey = new Uint8Array(length * 2);
    node.copyKey(i, primaryKey, 0);
    const count = writeIndexEntries(keys, index, node, node.rowBase(i), primaryKey, length);
    for (let made = 0; made < count; made++) rows.push(i);
    if ((i & 0xff) === 0 && pacer.due()) await pacer.pause();
  }
  const order = await keys.sorted(pacer);
  const leaf = leafOfEntries(keys, order);
  node.grow(leaf.sizeBytes + order.byteLength);
  return { tree: treeOfNode(leaf), rows: order.map((position) => rows[position] as number) };
}

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
  const cursor = readAll(layer);
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
  let node = tree.getCachedRoot() ?? (await tree.loadRoot());
  let i = position;
  while (node.level > 0) {
    let child = 0;
    while (i >= node.childCount(child)) i -= node.childCount(child++);
    node = tree.source.getCachedChild(node, child) ?? (await loadChild(tree.source, node, child));
  }
  return { node, i };
}
