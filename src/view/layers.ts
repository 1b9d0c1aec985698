/**
 * Finds rows of a layer by what they have in the fields of an index: merged rows have entries for that, those of commits
 * that are not merged yet have none. A table of hashes is made once for each layer, of a few bytes for each row; a search
 * that finds a hash in it looks at the row.
 */
import { isPromise } from '../base/brands.ts';
import { ByteWriter, hashOf, readLatin1 } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import { writeWholeValues } from '../schema/table-shape.ts';
import type { TableIndex, TableShape } from '../schema/table-shape.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { brokenIn, loadChild, PartialNode, treeOfNode } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';
import { isDeleted, MergedCursor } from './merged-cursor.ts';

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

  /** Positions of the rows with this hash: of those with certain values, and perhaps of others. */
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

async function readValues(layer: Tree, index: TableIndex, pacer: Pacer): Promise<LayerValues> {
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

/** By what a layer is made of, and the name of the index: a layer stays as it is for as long as it is there. */
const known = new WeakMap<object, Map<string, LayerValues>>();

/** The values that the rows of a layer have in an index; those in which one is null are left out. */
export async function valuesOfLayer(layer: Tree, index: TableIndex, pacer: Pacer): Promise<LayerValues> {
  const owner = layer.node ?? layer;
  let byIndex = known.get(owner);
  if (byIndex === undefined) {
    byIndex = new Map();
    known.set(owner, byIndex);
  }
  let values = byIndex.get(index.name);
  if (values === undefined) {
    values = await readValues(layer, index, pacer);
    byIndex.set(index.name, values);
  }
  return values;
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

// Layers of a table that are in memory, joined into fewer: what looks for a row looks into each of them. Entries of the
// newer one count where both have a key; rows marked as deleted stay, for they hide what lies below.

/** Name of nodes that only memory holds. */
const committedName = 'memory/committed';
/**
 * Layers in memory are joined while the older is not much larger, so that many small commits become few layers. Large
 * ones are left as they are, since joining copies every row, unless there are very many: a merge that is asked for long
 * before that ({@link maxLayers}) has not come.
 */
const maxJoinedBytes = 512 * 1024;
const farTooManyLayers = 128;
/** A table with more layers is slow to read from: they are worth a merge. */
export const maxLayers = 24;
/** Where there are more rows, merging is as fast as sorting. */
const maxSorted = 1024;

/** The node of a layer that is nothing else. */
function nodeOf({ node }: Tree): Node | undefined {
  return node === undefined || node.level > 0 || node instanceof PartialNode ? undefined : node;
}

/** Both nodes' entries in one. */
function merged(shape: TableShape, newer: Node, older: Node): Node {
  const entries = new NodeEntries(shape.changeShape, newer.count + older.count);
  const inputs = [newer, older].map((node) => new TreeCursor(treeOfNode(node)));
  const cursor = new MergedCursor(inputs, undefined, false, true);
  // Both are in memory, so that the cursor never answers with a promise.
  while (cursor.next() === true) {
    entries.addNodeEntries(cursor.node, cursor.from, cursor.to);
  }
  return entries.toNode(committedName);
}

/** All nodes' entries in one; the newest node comes first. */
function sorted(shape: TableShape, nodes: readonly Node[]): Node {
  const found: { readonly key: string; readonly node: Node; readonly i: number }[] = [];
  for (const node of nodes) {
    for (let i = 0; i < node.count; i++) {
      const key = node.key(i);
      found.push({ key: readLatin1(key, 0, key.length), node, i });
    }
  }
  // Equal keys keep their order.
  found.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const entries = new NodeEntries(shape.changeShape, found.length);
  let last: string | undefined;
  for (const { key, node, i } of found) {
    if (key !== last) entries.addNodeEntries(node, i, i + 1);
    last = key;
  }
  return entries.toNode(committedName);
}

/** Layers as one, if they are small: a commit of many flushes has a row or two from each. The newest is the last. */
export function together(shape: TableShape, layers: readonly Tree[]): readonly Tree[] {
  if (layers.length < 2 || layers.reduce((count, layer) => count + layer.count, 0) > maxSorted) return layers;
  const nodes: Node[] = [];
  for (const layer of layers) {
    const node = nodeOf(layer);
    if (node === undefined || node.schemaVersion !== (nodes[0] ?? node).schemaVersion) return layers;
    nodes.push(node);
  }
  return [treeOfNode(sorted(shape, nodes.toReversed()))];
}

/** A layer on top of others, joined with those that are not much larger. The newest is the first. */
export function onTop(shape: TableShape, layer: Tree, others: readonly Tree[]): readonly Tree[] {
  let top = layer;
  let next = 0;
  for (; next < others.length; next++) {
    const below = others[next] as Tree;
    const newer = nodeOf(top);
    const older = nodeOf(below);
    if (newer === undefined || older === undefined || newer.schemaVersion !== older.schemaVersion) break;
    const bytes = newer.sizeBytes + older.sizeBytes;
    if (below.count > 2 * top.count || (bytes > maxJoinedBytes && others.length - next < farTooManyLayers)) break;
    top = treeOfNode(merged(shape, newer, older));
  }
  return [top, ...others.slice(next)];
}
