/** States that take layers on top. Code that only reads stored trees needs none of this. */
import type { TableShape } from '../schema/table-shape.ts';
import type { Tree } from '../tree/tree.ts';
import { LayerIndexes } from './layer-indexes.ts';
import { TableState } from './table-state.ts';

/** Returns a state of trees and layers, the newest layer first, that takes more layers on top. */
export function layeredState(
  shape: TableShape,
  tree: Tree,
  indexes: ReadonlyMap<string, Tree>,
  layers: readonly Tree[] = [],
): TableState {
  return new TableState(shape, tree, indexes, layers, [], new Map(), [], new LayerIndexes());
}
