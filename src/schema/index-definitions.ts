/** Definitions of indexes, and their check, which turns them into the stored form. */
import { InvalidSchemaError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { defined } from '../base/options.ts';
import { isPathType, maxPathLength, partsOfPath } from '../format/path-text.ts';
import { isResultType, isWeight, maxIndexes, maxIndexFields } from '../format/stored-schema.ts';
import type {
  StoredField,
  StoredFunctionIndex,
  StoredIndex,
  StoredIndexes,
  StoredPath,
  StoredText,
} from '../format/stored-schema.ts';
import { isTypeId, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { isTextLanguage, textLanguages } from '../search/languages.ts';
import type { TextLanguage } from '../search/languages.ts';
import { checkKeyField, checkName, refuseUnknown } from './definition-checks.ts';
import { readConditions } from './index-condition.ts';

/** A path into a json field that an index is on, such as `{ path: 'address.city', typeId: Types.varchar }`. */
export interface IndexedPath {
  /**
   * The name of the field and the keys that lead on from its value, joined by dots. A number is the position in a list, as in
   * `'lines.0.sku'`. A dot within a key is written `\\.`.
   */
  readonly path: string;
  /**
   * The type of the values: {@link Types} varchar, float64, boolean, or timestamp for texts as JSON holds Dates. What is missing or of
   * another type counts as null. With `each`, json for a list at the path.
   */
  readonly typeId: TypeId;
}

/** Returns the name of a field that an index is on, or the path. */
export function nameOfIndexed(field: string | IndexedPath): string {
  return typeof field === 'string' ? field : field.path;
}

/** An index on one field or several. */
export interface IndexDefinition {
  /**
   * Names of 1 to 16 different fields, none of type json or blob, except one of type json with `each`; or paths into json fields, with
   * their types, that of the list with `each` being json. Entries are ordered by the first field, then by the second.
   */
  readonly fields: readonly (string | IndexedPath)[];
  /**
   * Whether a flush is rejected with `UniqueIndexError` if two rows would then agree in all of the fields. Rows with null in any of the
   * fields are exempt: there can be any number of them. Default: false.
   */
  readonly unique?: boolean;
  /**
   * The rows that have entries, such as `{ deletedAt: null }`: every named field has the value, one of the values, or, for
   * `{ not: null }`, any value but null. Other rows may agree in a unique index. A query uses the index if its conditions imply that all
   * matching rows have entries. Paths into json fields are named as fields are, and each value is compared by its own type. Default: all rows.
   */
  readonly where?: {
    readonly [field: string]:
      | string
      | number
      | bigint
      | boolean
      | Date
      | Uint8Array
      | null
      | readonly (string | number | bigint | boolean | Date | Uint8Array | null)[]
      | { readonly not: null };
  };
  /**
   * The names of other fields whose values the index holds too, up to 16 fields in all, none of type json or blob, or paths into json
   * fields. A query that needs only fields of the index and of the primary key reads no rows then, except those with a text of more than
   * 1,024 bytes there. Their
   * values neither order the entries nor find them, and take up space a second time. Default: none.
   */
  readonly include?: readonly string[];
  /**
   * Whether the index has an entry for each different element of the list in the one json field among its fields, or at the one path of
   * type json, for `HAS`. Elements are
   * strings, numbers and booleans; others, and values that are no lists, have no entries. Not with `unique`. Default: false.
   */
  readonly each?: boolean;
  /**
   * Makes it an index of the words in the fields, all of type varchar, for `query.search()`. Not with `unique`, `each` or `include`.
   * Default: none.
   */
  readonly text?: TextDefinition;
  /** The name of the index: 1 to 128 UTF-8 bytes. Default: the names of its fields, joined by commas. */
  readonly name?: string;
}

/** How the words of an index on texts are made and ranked. */
export interface TextDefinition {
  /**
   * The language whose endings a search does not tell apart, such as 'en': others than 'en' need the package `@orama/stemmers`. Default: none, and
   * words match as they are, apart from case and accents.
   */
  readonly language?: TextLanguage;
  /** How much a word in a field counts, more than 0. Default: 1 for each field. */
  readonly weights?: { readonly [field: string]: number };
}

/**
 * An index on the results of a registered function, for `where(function, '=', value)`. Nodes that have registered the function with a
 * version keep the index up to date, and use it once it is.
 */
export interface FunctionIndexDefinition {
  /** The name of the function, which must be registered with a version. */
  readonly function: string;
  /** The type of the results, which may also be null: one of {@link Types} except timestamp, bytes and blob; json for lists, with `each`. */
  readonly typeId: TypeId;
  /**
   * Whether the index has an entry for each different element of the list that the function returns, for `HAS`. Elements are strings,
   * numbers and booleans; others, and results that are no lists, have no entries. With `typeId: Types.json` alone. Default: false.
   */
  readonly each?: boolean;
  /** The name of the index: 1 to 128 UTF-8 bytes. Default: the name of the function. */
  readonly name?: string;
}

const indexNames: ReadonlySet<string> = new Set<keyof IndexDefinition>([
  'fields',
  'unique',
  'where',
  'include',
  'each',
  'text',
  'name',
]);
const textNames: ReadonlySet<string> = new Set<keyof TextDefinition>(['language', 'weights']);
const functionIndexNames: ReadonlySet<string> = new Set<keyof FunctionIndexDefinition>([
  'function',
  'typeId',
  'each',
  'name',
]);

/** Returns the name of a field that an index can be on. Throws `InvalidSchemaError`, which says how JSON is indexed. */
function checkIndexField(table: string, fields: readonly StoredField[], name: unknown): string {
  const isJson = (one: unknown): boolean => fields.some((field) => field.name === one && field.typeId === Types.json);
  if (isJson(name)) {
    const hint = 'Name a path in it with its type, or add `each` to the index if it holds lists';
    throw new InvalidSchemaError(table, `Field '${String(name)}' is of type json, which cannot be the index. ${hint}.`);
  }
  const isField = fields.some((field) => field.name === name);
  if (!isField && partsOfPath(name, isJson) !== undefined) {
    const hint = `{ path: ${describeValue(name)}, typeId: Types.varchar }`;
    throw new InvalidSchemaError(table, `An index names a path with the type of its values: ${hint}, for instance.`);
  }
  return checkKeyField(table, fields, name, 'index');
}

/** Checks the fields that an index holds besides those that it is on, and besides the primary key. */
function readIncluded(
  table: string,
  fields: readonly StoredField[],
  {
    name,
    indexed,
    key,
  }: { readonly name: string; readonly indexed: readonly string[]; readonly key: readonly string[] },
  include: unknown,
): readonly string[] {
  if (!Array.isArray(include) || include.length === 0) {
    const given = Array.isArray(include) ? 'an empty one' : describeValue(include);
    const message = `\`include\` of the index '${name}' must be an array of names of fields, not ${given}.`;
    throw new InvalidSchemaError(table, message);
  }
  const isJson = (one: string): boolean => fields.some((field) => field.name === one && field.typeId === Types.json);
  const included = include.map((field: unknown) => {
    const isField = fields.some((one) => one.name === field);
    if (!isField && partsOfPath(field, isJson) !== undefined) return field as string;
    return checkKeyField(table, fields, field, 'included field of an index');
  });
  for (const [i, field] of included.entries()) {
    const has = [...indexed, ...key].includes(field) ? 'holds anyway' : 'has there twice';
    if (![...indexed, ...key, ...included.slice(0, i)].includes(field)) continue;
    throw new InvalidSchemaError(
      table,
      `\`include\` of the index '${name}' names the field '${field}', which it ${has}.`,
    );
  }
  if (indexed.length + included.length <= maxIndexFields) return included;
  const message = `The index '${name}' is on ${indexed.length} fields and includes ${included.length}: it takes up to ${maxIndexFields} in all.`;
  throw new InvalidSchemaError(table, message);
}

/** Checks how the words of an index are made. */
function readText(table: string, name: string, index: IndexDefinition, fields: readonly StoredField[]): StoredText {
  const { fields: names, text, unique, each, include } = index;
  if (typeof text !== 'object' || (text as object | null) === null) {
    const message = `\`text\` of the index '${name}' must be an object such as { language: 'en' }, not ${describeValue(text)}.`;
    throw new InvalidSchemaError(table, message);
  }
  refuseUnknown(table, `\`text\` of the index '${name}'`, text, textNames);
  const other = Object.entries({ unique, each, include }).find(([, value]) => value !== undefined && value !== false);
  if (other !== undefined) {
    const message = `The index '${name}' with \`text\` takes no \`${other[0]}\`: it has an entry for each word.`;
    throw new InvalidSchemaError(table, message);
  }
  const indexed = names.map((field) => (typeof field === 'string' ? field : field.path));
  for (const field of indexed) {
    if (fields.some((one) => one.name === field && one.typeId === Types.varchar)) continue;
    const message = `The index '${name}' with \`text\` is on '${field}', which is not a field of type varchar.`;
    throw new InvalidSchemaError(table, message);
  }
  const { language, weights } = text;
  if (language !== undefined && !isTextLanguage(language)) {
    const message = `The language of the index '${name}' must be one of ${textLanguages.join(', ')}, not ${describeValue(language)}.`;
    throw new InvalidSchemaError(table, message);
  }
  return {
    ...defined({ language }),
    ...(weights !== undefined && { weights: readWeights(table, name, indexed, weights) }),
  };
}

function readWeights(table: string, name: string, fields: readonly string[], weights: unknown): readonly number[] {
  if (typeof weights !== 'object' || weights === null) {
    const message = `\`weights\` of the index '${name}' must be an object such as { title: 3 }, not ${describeValue(weights)}.`;
    throw new InvalidSchemaError(table, message);
  }
  refuseUnknown(table, `\`weights\` of the index '${name}'`, weights, new Set(fields));
  return fields.map((field) => {
    const weight = (weights as Record<string, unknown>)[field] ?? 1;
    if (isWeight(weight)) return weight;
    const message = `The weight of the field '${field}' in the index '${name}' must be a number above 0, not ${describeValue(weight)}.`;
    throw new InvalidSchemaError(table, message);
  });
}

function readIndex(table: string, fields: readonly StoredField[], key: readonly string[], index: unknown): StoredIndex {
  if (typeof index !== 'object' || index === null) {
    const field = checkIndexField(table, fields, index);
    return { name: field, fields: [field] };
  }
  refuseUnknown(table, `an index of table '${table}'`, index, indexNames);
  const { fields: names, unique = false, where, include, each = false, text, name } = index as IndexDefinition;
  if (!Array.isArray(names) || names.length === 0 || names.length > maxIndexFields) {
    const allowed = `an array of 1 to ${maxIndexFields} names`;
    const given = Array.isArray(names) ? `one of ${names.length}` : describeValue(names);
    throw new InvalidSchemaError(table, `The fields of an index must be ${allowed}, not ${given}.`);
  }
  if (typeof each !== 'boolean') {
    const message = `\`each\` of an index of table '${table}' must be true or false, not ${describeValue(each)}.`;
    throw new InvalidSchemaError(table, message);
  }
  const paths = names.filter(isObject).map((path) => readPath(table, fields, path, each));
  const isList = (one: unknown): boolean =>
    each && [...fields, ...paths].some((of) => nameOf(of) === one && of.typeId === Types.json);
  const indexed = names.map((field: unknown) => {
    if (isObject(field)) return (field as unknown as IndexedPath).path;
    return isList(field) ? (field as string) : checkIndexField(table, fields, field);
  });
  if (new Set(indexed).size !== indexed.length) {
    throw new InvalidSchemaError(table, `The index on ${indexed.join(', ')} of table '${table}' has a field twice.`);
  }
  if (typeof unique !== 'boolean') {
    const message = `\`unique\` of the index on ${indexed.join(', ')} must be true or false, not ${describeValue(unique)}.`;
    throw new InvalidSchemaError(table, message);
  }
  const stored = name ?? indexed.join(',');
  checkName(table, 'name of an index (by default, its fields joined by commas)', stored);
  const conditions = {
    ...(paths.length === 0 ? {} : { paths }),
    ...(where === undefined ? {} : { where: readConditions(table, stored, fields, where) }),
  };
  if (text !== undefined) {
    const words = readText(table, stored, index as IndexDefinition, fields);
    return { name: stored, fields: indexed, ...conditions, text: words };
  }
  const more =
    include === undefined ? {} : { include: readIncluded(table, fields, { name: stored, indexed, key }, include) };
  if (!each) return { name: stored, fields: indexed, ...(unique ? { unique } : {}), ...conditions, ...more };
  const lists = indexed.filter(isList);
  if (lists.length !== 1) {
    const found = lists.length === 0 ? 'none of its fields is' : `${lists.join(' and ')} are`;
    const message = `The index '${stored}' with \`each\` must be on one json field, or on a path of typeId json, whose elements it has entries for: ${found}.`;
    throw new InvalidSchemaError(table, message);
  }
  if (unique) {
    const message = `The index '${stored}' cannot be both \`unique\` and with \`each\`: rows may have elements in common.`;
    throw new InvalidSchemaError(table, message);
  }
  return { name: stored, fields: indexed, ...conditions, ...more, each };
}

function nameOf(of: StoredField | StoredPath): string {
  return 'path' in of ? of.path : of.name;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

const pathNames: ReadonlySet<string> = new Set<keyof IndexedPath>(['path', 'typeId']);

/** Checks a path that an index is on. `each`: it may be of a list. */
function readPath(table: string, fields: readonly StoredField[], given: object, each: boolean): StoredPath {
  refuseUnknown(table, `a path of an index of table '${table}'`, given, pathNames);
  const { path, typeId } = given as IndexedPath;
  const isJson = (name: string): boolean => fields.some((field) => field.name === name && field.typeId === Types.json);
  if (partsOfPath(path, isJson) === undefined) {
    const takes = `a path is the name of a json field and keys behind it, joined by dots, of at most ${maxPathLength} characters`;
    const message = `An index of table '${table}' is on the path ${describeValue(path)}: ${takes}, as in 'address.city'.`;
    throw new InvalidSchemaError(table, message);
  }
  if (fields.some(({ name }) => name === path)) {
    const message = `An index of table '${table}' is on the path '${path}', but there is a field of that name: name it without a type.`;
    throw new InvalidSchemaError(table, message);
  }
  if (isPathType(typeId) || (each && typeId === Types.json)) return { path, typeId };
  const what = isTypeId(typeId) ? typeName(typeId) : describeValue(typeId);
  const takes =
    'JSON has texts, numbers and booleans: it takes varchar, float64, boolean, timestamp for texts of Dates, or with `each` json for a list';
  throw new InvalidSchemaError(
    table,
    `The path '${path}' of an index of table '${table}' cannot be of typeId ${what}: ${takes}.`,
  );
}

/** Checks that all indexes read a path as the same type, which queries order it by. */
function checkTypes(table: string, indexes: readonly StoredIndex[]): void {
  const types = new Map<string, TypeId>();
  for (const { path, typeId } of indexes.flatMap(({ paths = [] }) => paths)) {
    // The elements of a list are compared with no value that queries order by.
    if (typeId === Types.json) continue;
    const known = types.get(path) ?? typeId;
    if (known !== typeId) {
      const both = `${typeName(known)} and ${typeName(typeId)}`;
      throw new InvalidSchemaError(
        table,
        `Indexes of table '${table}' give the path '${path}' two types, ${both}: choose one.`,
      );
    }
    types.set(path, typeId);
  }
}

function isOnFunction(index: unknown): index is FunctionIndexDefinition {
  return typeof index === 'object' && index !== null && 'function' in index;
}

function readFunctionIndex(table: string, index: FunctionIndexDefinition): StoredFunctionIndex {
  refuseUnknown(table, `an index on a function of table '${table}'`, index, functionIndexNames);
  const { function: on, typeId, each = false, name = on } = index;
  if (typeof on !== 'string' || on === '') {
    throw new InvalidSchemaError(table, `An index on a function gives its name, not ${describeValue(on)}.`);
  }
  if (typeof each !== 'boolean') {
    const message = `\`each\` of the index on function '${on}' must be true or false, not ${describeValue(each)}.`;
    throw new InvalidSchemaError(table, message);
  }
  if (each ? typeId !== Types.json : !isTypeId(typeId) || !isResultType(typeId)) {
    const what = isTypeId(typeId) ? typeName(typeId) : describeValue(typeId);
    const allowed = each
      ? 'with `each`, its function returns lists, and typeId is Types.json'
      : 'results are compared by ===, and must be numbers, bigints, booleans or strings, or with `each: true` json lists';
    throw new InvalidSchemaError(table, `The index on function '${on}' cannot be of typeId ${what}: ${allowed}.`);
  }
  checkName(table, 'name of an index (by default, that of its function)', name);
  return { name, function: on, typeId, ...(each ? { each } : {}) };
}

/** Checks the indexes of a table. Throws `InvalidSchemaError`. `key`: the fields of the primary key. */
export function readIndexes(
  table: string,
  fields: readonly StoredField[],
  key: readonly string[],
  definitions: unknown,
): StoredIndexes {
  if (!Array.isArray(definitions)) {
    throw new InvalidSchemaError(table, `The indexes of table '${table}' must be an array of field names.`);
  }
  const all: readonly unknown[] = definitions;
  if (all.length > maxIndexes) {
    throw new InvalidSchemaError(table, `Table '${table}' has ${all.length} indexes: it takes up to ${maxIndexes}.`);
  }
  const indexes = all.filter((index) => !isOnFunction(index)).map((index) => readIndex(table, fields, key, index));
  checkTypes(table, indexes);
  const functionIndexes = all.filter((index) => isOnFunction(index)).map((index) => readFunctionIndex(table, index));
  const names = [...indexes, ...functionIndexes].map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) {
    throw new InvalidSchemaError(table, `Table '${table}' lists an index twice: there are two of the name '${twice}'.`);
  }
  return { indexes, ...(functionIndexes.length > 0 && { functionIndexes }) };
}
