/**
 * Finds rows of layers by an index. The tables for a search are made by the first search, and stay for as long as the
 * node of the layer. The states of a database share it, since they share layers.
 */
import type { Pacer } from '../base/pacer.ts';
import type { Node } from '../format/node.ts';
import type { TableIndex, TableShape } from '../schema/table-shape.ts';
import type { Tree } from '../tree/tree.ts';
import { makeLayerEntries } from './layer-entries.ts';
import type { LayerEntries } from './layer-entries.ts';
import { readLayerValues } from './layer-values.ts';
import type { LayerValues } from './layer-values.ts';

export class LayerIndexes {
  /** By the root of the layer, and the name of the index. */
  readonly #values = new WeakMap<object, Map<string, LayerValues>>();
  readonly #entries = new WeakMap<Node, WeakMap<TableIndex, LayerEntries | Promise<LayerEntries>>>();

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
  entriesOf(layer: Tree, shape: TableShape, index: TableIndex, pacer: Pacer): LayerEntries | Promise<LayerEntries> {
    const node = layer.node as Node;
    const byIndex = this.#entries.get(node) ?? new WeakMap<TableIndex, LayerEntries | Promise<LayerEntries>>();
    const known = byIndex.get(index);
    if (known !== undefined) return known;
    this.#entries.set(node, byIndex);
    const making = makeLayerEntries(node, shape, index, pacer).then(
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
