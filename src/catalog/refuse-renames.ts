/** Refuses a version whose names of fields, or whose primary key, do not go with the version that is stored: before anything is written. */
import { InvalidSchemaError } from '../base/errors.ts';
import { keyConflict, renameConflict } from '../schema/renames.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';

/** Throws `InvalidSchemaError` if a version is newer than the one in force, and names fields that that does not have, or has another key. */
export function refuseRenames(view: View, { name, version, schema }: TableShape): void {
  const active = view.table(name)?.shape;
  if (active === undefined || active.version >= version) return;
  const conflict = renameConflict(active.schema, schema) ?? keyConflict(active.schema, schema);
  if (conflict === undefined) return;
  throw new InvalidSchemaError(
    name,
    `Table '${name}' cannot go to version ${version}. ${conflict} Nothing was written.`,
  );
}
