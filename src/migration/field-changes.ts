/** What a new version of a table does to its fields where no `migrate` function makes its rows: people should see it before. */
import { bigintBounds, integerBounds, typeName } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { fieldSources } from '../schema/renames.ts';
import type { NamedFields } from '../schema/renames.ts';

/** A field of one version. */
export interface VersionField {
  readonly name: string;
  readonly typeId: TypeId;
  readonly default?: unknown;
  readonly required?: boolean;
  readonly oneOf?: readonly unknown[];
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

function isConstant(fallback: unknown): boolean {
  return typeof fallback === 'object' && fallback !== null && 'constant' in fallback;
}

/** Lines of a field that takes fewer values than it did. */
function narrowed({ name, required, oneOf, ...field }: VersionField, old: VersionField | undefined): string[] {
  const isNewlyRequired = required === true && old?.required !== true && !isConstant(field.default);
  const listed = old?.oneOf;
  const hasFewer = old !== undefined && oneOf !== undefined && !listed?.every((value) => oneOf.includes(value));
  return [
    ...(isNewlyRequired
      ? [`Field ${name} is required, and has no constant default: a row without a value for it stops the migration.`]
      : []),
    ...(hasFewer ? [`Field ${name} takes only some values: a row with another one stops the migration.`] : []),
  ];
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
  const rules = to.fields.flatMap((field) => narrowed(field, before.get(sources.get(field.name) ?? '')));
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
      const value = isConstant(field.default) ? 'its default' : 'null';
      return `Field ${name} (${typeName(typeId)}) is new: it is ${value} in every row that is there.`;
    }),
    ...carried
      .filter(({ name, old }) => old.name !== name)
      .map(({ name, old }) => `Field ${name} is field ${old.name} under another name: its values stay.`),
    ...rules,
  ];
  return { lines, loses: dropped.length > 0 || changed.length > 0 || rules.length > 0 };
}
