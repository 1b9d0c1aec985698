/** A table's schema as Block 0 and commits hold it, and the checks of a parsed one. */
import { compareStrings } from '../base/bytes.ts';
import { isPathType, partsOfPath } from './path-text.ts';
import { isIntegerOf, isKeyType, isTypeId, isVariable, maxTimestampMs, Types } from './types.ts';
import type { TypeId } from './types.ts';
import {
  blockFormatVersion,
  compoundKeyVersion,
  entryFormsVersion,
  expiryVersion,
  fieldRulesVersion,
  functionIndexVersion,
  partialIndexVersion,
  pathIndexVersion,
  renamesVersion,
  textIndexVersion,
} from './version.ts';

/** Limits of a schema, so that work on a row and its index entries stays proportional to their length. */
export const maxFields = 1000;
export const maxIndexes = 1000;
/** Most fields of one index, with those that it includes: that many long values still fit in a key. */
export const maxIndexFields = 16;
/** Most fields of a primary key. */
export const maxKeyFields = 16;

/** Whether a table is a system table. No registered schema has such a name. */
export function isSystemTable(name: string): boolean {
  return name.startsWith('_');
}

/** The default of a field that an insert leaves out: a constant, or an id or the time, generated at the insert. */
export type StoredDefault = { readonly constant: unknown } | { readonly generated: 'uuidv7' | 'now' };

/** A field of a table version. */
export interface StoredField {
  readonly name: string;
  readonly typeId: TypeId;
  readonly maxLength?: number;
  readonly default?: StoredDefault;
  /** Whether null is refused. Absent: null is allowed. */
  readonly required?: true;
  /** The only allowed values apart from null; 64-bit integers as decimal strings. Absent: all values of the type. */
  readonly oneOf?: readonly (string | number)[];
}

/** An index on one field or several. */
export interface StoredIndex {
  readonly name: string;
  /** Names of the indexed fields, in the order of their components in keys. */
  readonly fields: readonly string[];
  /** The paths into json fields among its fields, in their order. Absent: none. */
  readonly paths?: readonly StoredPath[];
  /** Whether the index is unique: no two rows may agree in all of the fields. Absent: it is not. */
  readonly unique?: true;
  /** The conditions that a row must meet to have an entry, sorted by field. Absent: all rows have entries. */
  readonly where?: readonly StoredIndexCondition[];
  /** Names of other fields, or paths, whose values entries hold behind the primary key, in the order of their components. Absent: none. */
  readonly include?: readonly string[];
  /** Whether there is an entry for each element of the list in the one json field among the fields. Absent: an entry for each row. */
  readonly each?: true;
  /** How the words of the fields are made and ranked, in an index with an entry for each of them. Absent: it has none. */
  readonly text?: StoredText;
}

/** The words of an index on texts. */
export interface StoredText {
  /** The language whose stems are indexed. Absent: words as they are. */
  readonly language?: string;
  /** The weight of each field, in the order of the fields. Absent: all weigh the same. */
  readonly weights?: readonly number[];
}

/** A path into a json field that an index is on. */
export interface StoredPath {
  readonly path: string;
  /** The type by which it is read: what is missing or of another type counts as null. json: the list whose elements have entries. */
  readonly typeId: TypeId;
}

/** A value of a field in the form that JSON holds, or null. */
export type StoredConstant = string | number | boolean | null;

/** The condition of a partial index on one field, or on a path: then each value is compared by its own type. */
export interface StoredIndexCondition {
  readonly field: string;
  /** The values that the field may have, which may include null, in ascending order of their texts. */
  readonly values: readonly StoredConstant[] | 'not null';
}

/** An index on the results of a registered function. */
export interface StoredFunctionIndex {
  readonly name: string;
  /** Name of the registered function. */
  readonly function: string;
  /** Type of the function's results; json with `each`. */
  readonly typeId: TypeId;
  /** Whether a row has an entry for each element of the list that the function returns. Absent: one entry for the result. */
  readonly each?: true;
}

/** The names of a field in older versions. */
export interface StoredRename {
  readonly field: string;
  /** Its former names. None of them is a field of this version. */
  readonly from: readonly string[];
}

/** Rows expire this long after the time in a field. */
export interface StoredExpiry {
  /** A timestamp, or milliseconds since 1970. Rows in which it is null do not expire. */
  readonly field: string;
  readonly seconds: number;
}

/** The indexes of a table. */
export interface StoredIndexes {
  /** The indexes on fields. */
  readonly indexes: readonly StoredIndex[];
  /** Absent if there are none. No other index has one of their names. */
  readonly functionIndexes?: readonly StoredFunctionIndex[];
}

/**
 * A table version as Block 0 and commits hold it, with one form for everything: keys and indexes of one field are arrays too, and
 * defaults are as JSON holds them. `toStoredSchema()` makes it from a `SchemaDefinition`, the form in which applications describe a table,
 * and `toDefinition()` turns it back. `shapeOf()` compiles it to a `TableShape`, by which rows, keys and entries are read and written.
 */
export interface StoredSchema extends StoredIndexes {
  readonly name: string;
  readonly version: number;
  readonly fields: readonly StoredField[];
  /** Names of the key's fields, in the order of their components in a key. */
  readonly primaryKey: readonly string[];
  /** Absent if there are none. */
  readonly renames?: readonly StoredRename[];
  /** Absent if rows do not expire. */
  readonly expireAfter?: StoredExpiry;
  /**
   * The code that makes rows of this version from the active version, if this is the next version. Absent: unknown. Not part of
   * the definition.
   */
  readonly code?: MigrationCode;
  /** The code that makes rows of the active version from rows of this version. Absent: unknown. Not part of the definition. */
  readonly codeBack?: MigrationCode;
}

/**
 * The code that makes rows of a version from rows of another: false for rules alone; true for a function of the application;
 * text for a function with the version that the application gives it.
 */
export type MigrationCode = boolean | string;

function hasRules({ required, oneOf, default: fallback }: StoredField): boolean {
  if (required !== undefined || oneOf !== undefined) return true;
  return fallback !== undefined && 'generated' in fallback && fallback.generated === 'now';
}

/** Returns the lowest version of Block 0 and commits that supports a schema. */
export function schemaFormat(schema: StoredSchema): number {
  const { fields, primaryKey, indexes, functionIndexes, renames, expireAfter } = schema;
  const isField = (name: string): boolean => fields.some((field) => field.name === name);
  const hasPath = ({ paths, include = [], where = [] }: StoredIndex): boolean =>
    paths !== undefined || !include.every(isField) || !where.every(({ field }) => isField(field));
  if (indexes.some(hasPath)) return pathIndexVersion;
  if (indexes.some(({ text }) => text !== undefined)) return textIndexVersion;
  if (indexes.some(({ include, each }) => include !== undefined || each !== undefined)) return entryFormsVersion;
  if (functionIndexes?.some(({ each }) => each !== undefined) === true) return entryFormsVersion;
  if (expireAfter !== undefined) return expiryVersion;
  if (primaryKey.length > 1) return compoundKeyVersion;
  if (indexes.some(({ where }) => where !== undefined)) return partialIndexVersion;
  if (fields.some(hasRules)) return fieldRulesVersion;
  if (renames !== undefined) return renamesVersion;
  return functionIndexes === undefined ? blockFormatVersion : functionIndexVersion;
}

/** Returns the canonical text of a schema: two definitions are the same exactly if their texts are equal. */
export function canonicalSchema({ expireAfter, ...schema }: StoredSchema): string {
  const text = canonicalTable(schema);
  return expireAfter === undefined ? text : `${text}${JSON.stringify([expireAfter.field, expireAfter.seconds])}`;
}

function canonicalTable(schema: StoredSchema): string {
  const byName = (a: { name: string }, b: { name: string }): number => compareStrings(a.name, b.name);
  const fields = schema.fields.toSorted(byName).map((field) => {
    const length = isVariable(field.typeId) ? (field.maxLength ?? null) : null;
    const { name, typeId, required, oneOf } = field;
    const fallback = field.default ?? null;
    if (required === undefined && oneOf === undefined) return [name, typeId, length, fallback];
    // Sorted as texts, because the order of the values has no meaning.
    const values = oneOf?.map(String).toSorted(compareStrings) ?? null;
    return [name, typeId, length, fallback, required ?? false, values];
  });
  const indexes = schema.indexes
    .toSorted(byName)
    .map(({ name, fields: names, paths, unique, where, include, each, text }) => {
      const conditions = where?.map(({ field, values }) => [field, values]);
      if (text !== undefined) return [name, names, conditions ?? null, text];
      if (paths !== undefined) {
        const types = paths.map(({ path, typeId }) => [path, typeId]);
        return [name, names, types, unique === true, conditions ?? null, include ?? null, each ?? false];
      }
      if (include !== undefined || each !== undefined) {
        return [name, names, unique === true ? 'unique' : null, conditions ?? null, include ?? null, each ?? false];
      }
      if (conditions !== undefined) return [name, names, unique === true ? 'unique' : null, conditions];
      return unique === true ? [name, names, 'unique'] : [name, names];
    });
  const parts = [schema.name, schema.version, fields, schema.primaryKey, indexes];
  const { functionIndexes, renames } = schema;
  const functions = functionIndexes?.toSorted(byName).map(({ name, function: on, typeId, each }) => {
    return each === undefined ? [name, on, typeId] : [name, on, typeId, each];
  });
  if (renames !== undefined) {
    const names = renames.map(({ field, from }) => [field, from] as const);
    return JSON.stringify([...parts, functions ?? null, names.toSorted(([a], [b]) => compareStrings(a, b))]);
  }
  return JSON.stringify(functions === undefined ? parts : [...parts, functions]);
}

/**
 * Returns the canonical text of a schema without its indexes: rows of two definitions have the same form exactly if their texts
 * are equal. Indexes can be added and dropped without a new version.
 */
export function canonicalRows(schema: StoredSchema): string {
  const { functionIndexes: _, ...rows } = schema;
  return canonicalSchema({ ...rows, indexes: [] });
}

/** Whether results of a type are ordered and can be compared with `===`. */
export function isResultType(typeId: TypeId): boolean {
  return isKeyType(typeId) && typeId !== Types.timestamp && typeId !== Types.bytes;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isNames(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

function isStoredField(value: unknown): value is StoredField {
  if (!isObject(value) || typeof value['name'] !== 'string' || !isTypeId(value['typeId'])) return false;
  const { maxLength, default: fallback, required, oneOf } = value;
  if (required !== undefined && required !== true) return false;
  if (oneOf !== undefined && !isValues(value['typeId'], oneOf)) return false;
  if (maxLength !== undefined && !(Number.isInteger(maxLength) && (maxLength as number) > 0)) return false;
  if (fallback === undefined) return true;
  if (!isObject(fallback)) return false;
  return 'constant' in fallback
    ? isConstant(value['typeId'], fallback['constant'])
    : fallback['generated'] === 'uuidv7' || (fallback['generated'] === 'now' && value['typeId'] === Types.timestamp);
}

/** Whether a value is a list of constants of a type. */
function isValues(typeId: TypeId, list: unknown): boolean {
  if (!Array.isArray(list) || list.length === 0) return false;
  return list.every((value) => typeof value !== 'boolean' && isConstant(typeId, value));
}

/** Whether a constant has the form in which JSON holds values of a type. */
function isConstant(typeId: TypeId, constant: unknown): boolean {
  switch (typeId) {
    case Types.uint64:
    case Types.int64:
      return typeof constant === 'string' ? /^-?[0-9]{1,20}$/.test(constant) : Number.isSafeInteger(constant);
    case Types.boolean:
      return typeof constant === 'boolean';
    case Types.timestamp:
      return typeof constant === 'number' && Math.abs(constant) <= maxTimestampMs;
    case Types.varchar:
    case Types.uuid:
    case Types.bytes:
      return typeof constant === 'string';
    case Types.json:
      return true;
    case Types.blob:
      return false;
    case Types.float32:
    case Types.float64:
      // JSON has no infinities and holds null instead.
      return typeof constant === 'number' || constant === null;
    default:
      return isIntegerOf(typeId, constant);
  }
}

function isStoredIndex(value: unknown): value is StoredIndex {
  if (!isObject(value) || typeof value['name'] !== 'string') return false;
  const { fields, unique, include = [] } = value;
  if (!isNames(fields) || !isNames(include) || (unique !== undefined && unique !== true)) return false;
  const { each, paths, text } = value;
  if (paths !== undefined && !arePaths(paths, fields, each === true)) return false;
  if (each !== undefined && (each !== true || unique === true)) return false;
  const others = [unique, each, paths, value['include']];
  if (text !== undefined && (!isStoredText(text, fields.length) || others.some((other) => other !== undefined))) {
    return false;
  }
  if (fields.length === 0 || fields.length + include.length > maxIndexFields) return false;
  return value['include'] === undefined || include.length > 0;
}

/** Whether a value is a list of paths with their types, each of them one of some fields and in their order. `each`: one may be of a list. */
function arePaths(value: unknown, fields: readonly string[], each: boolean): value is StoredPath[] {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isObject)) return false;
  const places = value.map(({ path, typeId }) =>
    isPathType(typeId) || (each && typeId === Types.json) ? fields.indexOf(path as string) : -1,
  );
  return places.every((place, i) => place > (i === 0 ? -1 : (places[i - 1] as number)));
}

/** Whether a value tells of the words of so many fields. The language may be one that this release does not know. */
function isStoredText(value: unknown, fields: number): value is StoredText {
  if (!isObject(value)) return false;
  const { language, weights } = value;
  if (language !== undefined && typeof language !== 'string') return false;
  return weights === undefined || (Array.isArray(weights) && weights.length === fields && weights.every(isWeight));
}

/** Whether a value is the weight of a field in a search. */
export function isWeight(value: unknown): value is number {
  return Number.isFinite(value) && (value as number) > 0;
}

/** Whether a value is a valid condition of an index: on fields of key types, or paths, each at most once. */
function areConditions(value: unknown, types: ReadonlyMap<string, TypeId>, isPath: (name: string) => boolean): boolean {
  if (value === undefined) return true;
  if (!Array.isArray(value) || value.length === 0) return false;
  const isCondition = (condition: unknown): boolean => {
    if (!isObject(condition)) return false;
    const { field, values } = condition;
    const typeId = types.get(field as string);
    if (typeId === undefined ? !isPath(field as string) : !isKeyType(typeId)) return false;
    if (values === 'not null') return true;
    if (!Array.isArray(values) || values.length === 0) return false;
    return values.every((one) => {
      return one === null || (typeId === undefined ? typeof one !== 'object' : isConstant(typeId, one));
    });
  };
  return value.every(isCondition) && new Set(value.map(({ field }) => field as string)).size === value.length;
}

/** Whether parsed JSON is an index that a table of a schema can have. */
export function isIndexOf({ fields, primaryKey }: StoredSchema, value: unknown): value is StoredIndex {
  if (!isStoredIndex(value)) return false;
  return fitsFields(value, primaryKey, new Map(fields.map((field) => [field.name, field.typeId])));
}

function fitsFields(
  { fields: names, paths = [], where, include = [], each, text }: StoredIndex,
  primaryKey: readonly string[],
  types: ReadonlyMap<string, TypeId>,
): boolean {
  if (text !== undefined && !names.every((field) => types.get(field) === Types.varchar)) return false;
  const isKey = (field: string): boolean => isKeyType(types.get(field) ?? Types.json);
  const isJson = (field: string): boolean => types.get(field) === Types.json;
  const isPath = (name: string): boolean => !types.has(name) && partsOfPath(name, isJson) !== undefined;
  if (!paths.every(({ path }) => isPath(path))) return false;
  const typeOf = (name: string): TypeId | undefined =>
    paths.find(({ path }) => path === name)?.typeId ?? types.get(name);
  const lists = names.map(typeOf).filter((type) => !isKeyType(type ?? Types.json));
  if (lists.length !== (each === true ? 1 : 0) || lists.some((type) => type !== Types.json)) return false;
  if (!include.every((name) => isKey(name) || isPath(name)) || !areConditions(where, types, isPath)) return false;
  // An entry has each value once.
  return include.every((field, i) => ![...names, ...primaryKey, ...include.slice(0, i)].includes(field));
}

function isStoredFunctionIndex(value: unknown): value is StoredFunctionIndex {
  if (!isObject(value) || typeof value['name'] !== 'string' || typeof value['function'] !== 'string') return false;
  const { typeId, each } = value;
  if (each !== undefined) return each === true && typeId === Types.json;
  return isTypeId(typeId) && isResultType(typeId);
}

/** Whether all indexes have different names, which the folders of their blocks require. */
function areFunctionIndexes(value: unknown, indexes: readonly StoredIndex[]): boolean {
  if (value === undefined) return true;
  if (!Array.isArray(value) || value.length === 0 || value.length > maxIndexes || !value.every(isStoredFunctionIndex))
    return false;
  return new Set([...indexes, ...value].map(({ name }) => name)).size === indexes.length + value.length;
}

function isStoredRename(value: unknown): value is StoredRename {
  if (!isObject(value) || typeof value['field'] !== 'string') return false;
  return isNames(value['from']) && value['from'].length > 0;
}

/**
 * Whether each field has one list of former names, and each former name belongs to one field and is no field of this version.
 */
function areRenames(value: unknown, fields: ReadonlyMap<string, unknown>): boolean {
  if (value === undefined) return true;
  if (!Array.isArray(value) || value.length === 0 || !value.every(isStoredRename)) return false;
  const old = value.flatMap(({ from }) => from);
  return (
    value.every(({ field }) => fields.has(field)) &&
    new Set(value.map(({ field }) => field)).size === value.length &&
    new Set(old).size === old.length &&
    !old.some((name) => fields.has(name))
  );
}

/** Whether rows can expire by a field of this type: a timestamp, or a number of milliseconds since 1970. */
export function isTimeType(typeId: TypeId | undefined): boolean {
  return [Types.timestamp, Types.int64, Types.uint64, Types.float64].some((time) => time === typeId);
}

function isExpiry(value: unknown, types: ReadonlyMap<string, TypeId>): boolean {
  if (value === undefined) return true;
  if (!isObject(value) || typeof value['field'] !== 'string') return false;
  return (
    isTimeType(types.get(value['field'])) && Number.isSafeInteger(value['seconds']) && Number(value['seconds']) >= 0
  );
}

function isCode(value: unknown): boolean {
  return value === undefined || typeof value === 'boolean' || typeof value === 'string';
}

/** Whether parsed JSON is a stored schema whose names are consistent. */
export function isStoredSchema(value: unknown): value is StoredSchema {
  if (!isObject(value)) return false;
  const { name, version, fields, primaryKey, indexes, functionIndexes, renames, expireAfter, code, codeBack } = value;
  if (typeof name !== 'string' || !Number.isInteger(version) || (version as number) < 0) return false;
  if (!Array.isArray(fields) || fields.length > maxFields || !fields.every(isStoredField)) return false;
  if (!Array.isArray(indexes) || indexes.length > maxIndexes || !indexes.every(isStoredIndex)) return false;
  if (!areFunctionIndexes(functionIndexes, indexes)) return false;
  if (!isNames(primaryKey) || primaryKey.length === 0 || primaryKey.length > maxKeyFields) return false;
  if (new Set(primaryKey).size !== primaryKey.length) return false;
  const types = new Map(fields.map((field) => [field.name, field.typeId]));
  if (!areRenames(renames, types) || !isExpiry(expireAfter, types)) return false;
  if (!isCode(code) || !isCode(codeBack)) return false;
  const isKey = (field: string): boolean => isKeyType(types.get(field) ?? Types.json);
  if (types.size !== fields.length || !primaryKey.every(isKey)) return false;
  return indexes.every((index) => fitsFields(index, primaryKey, types));
}
