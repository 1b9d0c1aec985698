/**
 * The changes of fields between two versions of a table without a `migrate` function: the changes as text, which people should
 * read before any row is made; log lines about changes that may lose values; and the conversion of a value from one type to
 * another. A value that the new type cannot hold is refused, never changed. (Only float32 rounds, by design.)
 */
import { copyBytes } from '#platform';
import { compareBytes } from '../base/bytes.ts';
import type { Logger } from '../base/logger.ts';
import { describeValue } from '../base/messages.ts';
import type { Registry } from '../catalog/registry.ts';
import type { Role } from '../coordination/membership.ts';
import type { StoredDefault, StoredField, StoredSchema } from '../format/stored-schema.ts';
import { bigintBounds, integerBounds, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { isUuid, normalizeValue, ValueProblem } from '../format/values.ts';
import { fieldSources } from '../schema/renames.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { View } from '../view/view.ts';

export interface FieldChanges {
  /** One line for each field that is dropped, new, or of a type that may not hold every value. */
  readonly lines: readonly string[];
  /** Whether values of the old version are missing in the new one, or may not fit it. */
  readonly loses: boolean;
}

/** Whether the integer type `to` holds every value of `from`. */
function isWidened(from: TypeId, to: TypeId): boolean {
  const before = integerBounds(from) ?? bigintBounds(from);
  const after = integerBounds(to) ?? bigintBounds(to);
  return before !== undefined && after !== undefined && before.min >= after.min && before.max <= after.max;
}

function isConstant(fallback: StoredDefault | undefined): boolean {
  return fallback !== undefined && 'constant' in fallback;
}

/** Returns the lines about a field that accepts fewer values than before. */
function narrowed({ name, required, oneOf, ...field }: StoredField, old: StoredField | undefined): string[] {
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

/** Compares the fields of two versions, matched by their present and former names. */
export function fieldChanges(from: StoredSchema, to: StoredSchema): FieldChanges {
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
  const expiring = newlyExpiring(from, to);
  const mayBeRenamed = (typeId: TypeId): boolean => added.some((field) => field.typeId === typeId);
  const lines = [
    ...dropped.map(
      ({ name, typeId }) =>
        `Field ${name} (${typeName(typeId)}) is dropped: its values are not in the new version.` +
        (mayBeRenamed(typeId) ? ' If it was renamed, list it in `renames` of the new version.' : ''),
    ),
    ...changed.map(({ name, typeId, old }) => {
      const types = `${typeName(old.typeId)} to ${typeName(typeId)}`;
      return `Field ${name} goes from ${types}: a value that does not fit stops the migration.`;
    }),
    ...added.map(({ name, typeId, ...field }) => {
      const value = isConstant(field.default) ? 'its default' : 'null';
      return `Field ${name} (${typeName(typeId)}) is new: it is ${value} in every existing row.`;
    }),
    ...carried
      .filter(({ name, old }) => old.name !== name)
      .map(({ name, old }) => `Field ${name} is field ${old.name} under another name: its values stay.`),
    ...rules,
    ...expiring,
  ];
  return { lines, loses: [dropped, changed, rules, expiring].some(({ length }) => length > 0) };
}

/** Says that a version makes rows expire that did not, or at another time. */
function newlyExpiring({ expireAfter: before }: StoredSchema, { expireAfter: after }: StoredSchema): string[] {
  if (after === undefined || (before?.field === after.field && before.seconds <= after.seconds)) return [];
  return [
    `Rows expire ${after.seconds} s after the time in ${after.field}: queries leave out those whose time has come, and they are deleted.`,
  ];
}

/** Logs how a new version changes fields, before any row is made, if this instance has no function that makes its rows. */
export class FieldChangeLog {
  readonly #logger: Logger;
  readonly #registry: Registry;
  readonly #isReplica: boolean;
  /** The pairs of versions that were reported. */
  readonly #told = new Set<string>();

  /** A replica stores no rows, so it reports nothing. */
  constructor(registry: Registry, logger: Logger, role: Role) {
    this.#registry = registry;
    this.#logger = logger;
    this.#isReplica = role === 'replica';
  }

  /** Logs each field that is dropped, or whose type may not hold every value: once for each pair of versions of a table. */
  tell(from: TableShape, to: TableShape): void {
    const { name: table } = to;
    const key = `${from.version} ${to.version} ${table}`;
    if (this.#isReplica || from.version >= to.version || this.#told.has(key)) return;
    this.#told.add(key);
    if (this.#registry.migrateFunction(table, to.version) !== undefined) return;
    const { lines, loses } = fieldChanges(from.schema, to.schema);
    if (!loses) return;
    const versions = `version ${from.version} to version ${to.version}`;
    this.#logger.warn(`Table ${table} goes from ${versions} without a migrate function. ${lines.join(' ')}`, {
      table,
      from: from.version,
      to: to.version,
    });
  }

  /** Logs the changed fields of all tables of a view that are stored in an older version than the newest registered one. */
  tellAll(view: View): void {
    for (const shape of this.#registry.newest) {
      const active = view.table(shape.name)?.shape;
      if (active !== undefined) this.tell(active, shape);
    }
  }
}

function isInteger(typeId: TypeId): boolean {
  return integerBounds(typeId) !== undefined || bigintBounds(typeId) !== undefined;
}

function isNumeric(typeId: TypeId): boolean {
  return isInteger(typeId) || typeId === Types.float64 || typeId === Types.float32;
}

/** Returns a value that is not null as a row would read it back; objects are copied. Throws {@link ValueProblem}. */
export function canonicalValue(typeId: TypeId, value: unknown): unknown {
  const normal = normalizeValue(typeId, value);
  switch (typeId) {
    case Types.json:
      return JSON.parse(normal as string) as unknown;
    case Types.bytes:
      return copyBytes(normal as Uint8Array);
    case Types.timestamp:
      return new Date((normal as Date).getTime());
    default:
      return integerBounds(typeId) !== undefined && normal === 0 ? 0 : normal;
  }
}

/** Whether two values of a type, null or as rows read them back, are stored as the same. */
export function sameValue(typeId: TypeId, a: unknown, b: unknown): boolean {
  if (a === null || b === null) return a === b;
  switch (typeId) {
    case Types.json:
      return JSON.stringify(a) === JSON.stringify(b);
    case Types.bytes:
      return compareBytes(a as Uint8Array, b as Uint8Array) === 0;
    case Types.timestamp:
      return (a as Date).getTime() === (b as Date).getTime();
    default:
      return Object.is(a, b);
  }
}

function inexact(value: unknown, to: TypeId): never {
  throw new ValueProblem(`${describeValue(value)} does not fit type ${typeName(to)} exactly`);
}

function convertNumber(value: number | bigint, from: TypeId, to: TypeId): unknown {
  if (bigintBounds(to) !== undefined) {
    if (typeof value === 'number' && !Number.isInteger(value)) inexact(value, to);
    return canonicalValue(to, BigInt(value));
  }
  if (integerBounds(to) !== undefined) {
    const isSafe = typeof value === 'bigint' && BigInt(Number(value)) === value;
    return canonicalValue(to, isSafe ? Number(value) : value);
  }
  const number = Number(value);
  if (isInteger(from)) {
    const held = to === Types.float32 ? Math.fround(number) : number;
    if (BigInt(held) !== BigInt(value)) inexact(value, to);
  }
  return canonicalValue(to, number);
}

/** The canonical text of an integer: every integer has exactly one. */
const integerText = /^(0|-?[1-9][0-9]{0,19})$/;

/** Converts a value that is not null to another type. Throws {@link ValueProblem}. */
export function convertValue(value: unknown, from: TypeId, to: TypeId): unknown {
  if (from === to) return canonicalValue(to, value);
  if (isNumeric(from) && isNumeric(to)) return convertNumber(value as number | bigint, from, to);
  if (isInteger(from) && to === Types.varchar) return String(value);
  if (from === Types.varchar && isInteger(to)) {
    if (!integerText.test(value as string)) {
      throw new ValueProblem(`${describeValue(value)} is not an integer's text, as type ${typeName(to)} needs it`);
    }
    return convertNumber(BigInt(value as string), Types.int64, to);
  }
  if (from === Types.uuid && to === Types.varchar) return value;
  if (from === Types.varchar && to === Types.uuid) {
    if (!isUuid(value as string)) throw new ValueProblem(`${describeValue(value)} is not a UUID`);
    return canonicalValue(to, value);
  }
  throw new ValueProblem(
    `a value of type ${typeName(from)} does not become one of type ${typeName(to)} by itself: give the new version a ` +
      '`migrate` function',
  );
}

/** Whether keys of two types correspond one to one, as far as the values fit. */
export function keysCorrespond(from: TypeId, to: TypeId): boolean {
  if (from === to || (isInteger(from) && isInteger(to))) return true;
  const other = from === Types.varchar ? to : to === Types.varchar ? from : undefined;
  return other !== undefined && (isInteger(other) || other === Types.uuid);
}

/** Converts a primary key to another type. Throws {@link ValueProblem} also if another key could become the same key. */
export function convertKey(value: unknown, from: TypeId, to: TypeId): unknown {
  const converted = convertValue(value, from, to);
  if (from !== to && convertValue(converted, to, from) !== value) {
    throw new ValueProblem(
      `${describeValue(value)} is not how the ${typeName(to)} ${describeValue(converted)} is written`,
    );
  }
  return converted;
}
