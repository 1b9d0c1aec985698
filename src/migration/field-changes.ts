/** What a new version of a table does to its fields where no `migrate` function makes its rows: people should see it before. */
import { bigintBounds, integerBounds, typeName } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { fieldSources } from '../table/renames.ts';
import type { NamedFields } from '../table/renames.ts';

/** A field of one version. */
export interface VersionField {
  readonly name: string;
  readonly typeId: TypeId;
  readonly default?: unknown;
}

/** What of a version is compared. */
export interface ComparedVersion extends NamedFields {
  readonly fields: readonly VersionField[];
}

export interface FieldChanges {
  /** One line for each field that is dropped, new, or of a type that may not hold every value. */
  readonly lines: readonly string[];
  /** Whether values of the old version are not in the new one, or may not fit it. */
  readonly loses: boolean;
}

/** Whether a type of whole numbers holds every value of another one. */
function isWidened(from: TypeId, to: TypeId): boolean {
  const before = integerBounds(from) ?? bigintBounds(from);
  const after = integerBounds(to) ?? bigintBounds(to);
  return before !== undefined && after !== undefined && before.min >= after.min && before.max <= after.max;
}

/** Compares the fields of two versions: by their names, and those that they had. */
export function fieldChanges(from: ComparedVersion, to: ComparedVersion): FieldChanges {
  const before = new Map(from.fields.map((field) => [field.name, field]));
  const sources = fieldSources(from, to);
  const kept = new Set(sources.values());
  const dropped = from.fields.filter(({ name }) => !kept.has(name));
  const added = to.fields.filter(({ name }) => !sources.has(name));
  const carried = to.fields.flatMap((field) => {
    const old = before.get(sources.get(field.name) ?? '');
    return old === undefined ? [] : [{ ...field, old }];
  });
  const changed = carried.filter(({ typeId, old }) => old.typeId !== typeId && !isWidened(old.typeId, typeId));
  const mayBeRenamed = (typeId: TypeId): boolean => added.some((field) => field.typeId === typeId);
  const lines = [
    ...dropped.map(
      ({ name, typeId }) =>
        `Field ${name} (${typeName(typeId)}) is dropped: its values are not in the new version.` +
        (mayBeRenamed(typeId) ? ' If it has another name there, `renames` of the new version is to say so.' : ''),
    ),
    ...changed.map(({ name, typeId, old }) => {
      const types = `${typeName(old.typeId)} to ${typeName(typeId)}`;
      return `Field ${name} goes from ${types}: a value that does not fit stops the migration.`;
    }),
    ...added.map(({ name, typeId, ...field }) => {
      const value = field.default === undefined ? 'null' : 'its default';
      return `Field ${name} (${typeName(typeId)}) is new: it is ${value} in every row that is there.`;
    }),
    ...carried
      .filter(({ name, old }) => old.name !== name)
      .map(({ name, old }) => `Field ${name} is field ${old.name} under another name: its values stay.`),
  ];
  return { lines, loses: dropped.length > 0 || changed.length > 0 };
}
