/** What a new version of a table does to its fields where no `migrate` function makes its rows: people should see it before. */
import { typeName, Types } from '../format/types.ts';
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

/** What the whole numbers hold: a type that holds all of another takes every value of it. */
const ranges = new Map<TypeId, readonly [least: bigint, greatest: bigint]>([
  [Types.uint8, [0n, 0xffn]],
  [Types.int8, [-0x80n, 0x7fn]],
  [Types.uint16, [0n, 0xffffn]],
  [Types.int16, [-0x8000n, 0x7fffn]],
  [Types.uint32, [0n, 0xffff_ffffn]],
  [Types.int32, [-0x8000_0000n, 0x7fff_ffffn]],
  [Types.uint64, [0n, (1n << 64n) - 1n]],
  [Types.int64, [-(1n << 63n), (1n << 63n) - 1n]],
]);

function isWidened(from: TypeId, to: TypeId): boolean {
  const before = ranges.get(from);
  const after = ranges.get(to);
  return before !== undefined && after !== undefined && before[0] >= after[0] && before[1] <= after[1];
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
