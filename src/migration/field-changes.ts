/** What a new version of a table does to its fields where no `migrate` function makes its rows: people should see it before. */
import { bigintBounds, integerBounds, typeName } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';

/** A field of one version. */
export interface VersionField {
  readonly name: string;
  readonly typeId: TypeId;
  readonly default?: unknown;
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

/** Compares the fields of two versions by their names. */
export function fieldChanges(from: readonly VersionField[], to: readonly VersionField[]): FieldChanges {
  const before = new Map(from.map((field) => [field.name, field]));
  const after = new Map(to.map((field) => [field.name, field]));
  const dropped = from.filter(({ name }) => !after.has(name));
  const added = to.filter(({ name }) => !before.has(name));
  const changed = to.filter(({ name, typeId }) => {
    const old = before.get(name)?.typeId ?? typeId;
    return old !== typeId && !isWidened(old, typeId);
  });
  const isRenamed = (typeId: TypeId): boolean => added.some((field) => field.typeId === typeId);
  const lines = [
    ...dropped.map(
      ({ name, typeId }) =>
        `Field ${name} (${typeName(typeId)}) is dropped: its values are not in the new version.` +
        (isRenamed(typeId)
          ? ' If it has another name there, only a migrate function of the application can say so.'
          : ''),
    ),
    ...changed.map(({ name, typeId }) => {
      const old = typeName(before.get(name)?.typeId ?? typeId);
      return `Field ${name} goes from ${old} to ${typeName(typeId)}: a value that does not fit stops the migration.`;
    }),
    ...added.map(({ name, typeId, ...field }) => {
      const value = field.default === undefined ? 'null' : 'its default';
      return `Field ${name} (${typeName(typeId)}) is new: it is ${value} in every row that is there.`;
    }),
  ];
  return { lines, loses: dropped.length > 0 || changed.length > 0 };
}
