/** Tells whether an instance may have background work on schemas, without the code that does the work. */
import type { Registry } from '../catalog/registry.ts';
import type { TableState } from '../view/table-state.ts';
import { isSameShape, lackedIndexes } from '../schema/same-shape.ts';
import type { View } from '../view/view.ts';

/** Whether a view shows a migration, an index that is being added or that a definition adds, or an index on a function. */
export function mayHaveWork({ block0, tables }: View, registry: Registry): boolean {
  return block0.migrations.length > 0 || [...tables.values()].some((state) => mayHaveIndexWork(state, registry));
}

function mayHaveIndexWork({ shape, added }: TableState, registry: Registry): boolean {
  if (added.length > 0 || shape.functionIndexes.length > 0) return true;
  const defined = registry.versionShape(shape.name, shape.version);
  return defined !== undefined && isSameShape(shape, defined) && lackedIndexes(shape, defined) !== undefined;
}
