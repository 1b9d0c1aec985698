/**
 * Joins the layers of a table that are in memory into fewer, since every search for a row looks into each of them. The entries of
 * the newer layer count where both have a key; rows marked as deleted stay, for they hide the rows below.
 */
import { readLatin1 } from '../base/bytes.ts';
import { NodeEntries } from '../format/node-entries.ts';
import type { Node } from '../format/node.ts';
import type { TableShape } from '../schema/table-shape.ts';
import { TreeCursor } from '../tree/cursor.ts';
import { PartialNode, treeOfNode } from '../tree/tree.ts';
import type { Tree } from '../tree/tree.ts';
import { MergedCursor } from './merged-cursor.ts';

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
