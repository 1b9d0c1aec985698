/** The condition of an index on some rows: only rows that meet it, the rows inside, have entries. */
import { isBytes, isDate } from '../base/brands.ts';
import { InvalidSchemaError } from '../base/errors.ts';
import { asList } from '../base/one-or-list.ts';
import { didYouMean } from '../base/options.ts';
import { compareStrings } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import { partsOfPath } from '../format/path-text.ts';
import { isNull, readField } from '../format/row-decode.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import type { StoredConstant, StoredField, StoredIndexCondition } from '../format/stored-schema.ts';
import { isKeyType, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { describeValue } from '../base/messages.ts';
import { normalizeValue } from '../format/values.ts';
import { constantValue, storedConstant } from './field-rules.ts';
import { isListElement } from './list-elements.ts';

/** A value in the condition of an index. */
type IndexedValue = string | number | bigint | boolean | Date | Uint8Array | null;

/**
 * The condition of an index. A row is inside if every field named here has the value, one of the values, or, for `{ not: null }`, any
 * value but null.
 */
export interface IndexConditions {
  readonly [field: string]: IndexedValue | readonly IndexedValue[] | { readonly not: null };
}

/** The condition on one field. */
export interface FieldTest {
  readonly field: LayoutField;
  readonly takesNull: boolean;
  /** The accepted values, as texts; undefined: any. */
  readonly values: ReadonlySet<string> | undefined;
}

/** A compiled condition. */
export interface IndexCondition {
  /** The conditions on fields, which must all hold. */
  readonly tests: readonly FieldTest[];
  /** The condition in words, for messages. */
  readonly text: string;
}

/** The maximum number of values for a field: the schema contains all of them, and every commit to the table carries the schema. */
const maxValues = 1000;

/** Returns a text that is the same for equal values of a type: the text of the stored constant. */
export function textOfValue(value: OrderedValue): string {
  return value === 0 ? '0' : String(storedConstant(value));
}

/** Returns a text that is the same for equal values that a condition compares with a field, or with the value at a path. */
export function testedText({ path }: LayoutField, value: unknown): string {
  return path === undefined ? textOfValue(value as OrderedValue) : JSON.stringify(value);
}

function refuse(table: string, index: string, problem: string): never {
  throw new InvalidSchemaError(table, `The condition of index '${index}' of table '${table}': ${problem}`);
}

function isNotNull(condition: unknown): boolean {
  if (typeof condition !== 'object' || condition === null) return false;
  return Object.keys(condition).join() === 'not' && (condition as { not: unknown }).not === null;
}

/** Checks a value, and returns it in its stored form. */
function readValue(table: string, index: string, { name, typeId }: StoredField, value: unknown): StoredConstant {
  if (value === null) return null;
  let normal: OrderedValue;
  try {
    normal = normalizeValue(typeId, value);
  } catch (error) {
    refuse(table, index, `field '${name}': ${(error as Error).message}.`);
  }
  if (typeof normal === 'number' && !Number.isFinite(normal)) {
    refuse(table, index, `field '${name}': ${normal} must be finite, since a schema is stored as JSON.`);
  }
  return storedConstant(normal === 0 ? 0 : normal) as StoredConstant;
}

function readCondition(table: string, index: string, field: StoredField, condition: unknown): StoredIndexCondition {
  const { name, typeId } = field;
  if (!isKeyType(typeId)) refuse(table, index, `field '${name}' is of type ${typeName(typeId)}, which it cannot test.`);
  return conditionOn(table, index, { what: `field '${name}'`, name }, condition, (value) =>
    readValue(table, index, field, value),
  );
}

/** Checks the condition on a field, or on a path. `read`: checks one of its values. */
function conditionOn(
  table: string,
  index: string,
  { what, name }: { readonly what: string; readonly name: string },
  condition: unknown,
  read: (value: unknown) => StoredConstant,
): StoredIndexCondition {
  if (isNotNull(condition)) return { field: name, values: 'not null' };
  const given = asList(condition);
  if (given.length === 0 || given.length > maxValues) {
    refuse(table, index, `${what} takes 1 to ${maxValues} values, not ${given.length}.`);
  }
  if (given.some((value) => typeof value === 'object' && value !== null && !isDate(value) && !isBytes(value))) {
    const allowed = 'a value, null, an array of these, or { not: null }';
    refuse(table, index, `${what} takes ${allowed}, not ${describeValue(condition)}.`);
  }
  const values = given.map(read);
  const twice = values.find((value, i) => values.indexOf(value) < i);
  if (twice !== undefined) refuse(table, index, `${what} lists ${describeValue(twice)} twice.`);
  return {
    field: name,
    values: values.toSorted((a, b) => compareStrings(String(a), String(b)) || compareStrings(typeof a, typeof b)),
  };
}

/** Checks a value that one at a path is compared with, by its own type, and returns it in its stored form. */
function readPathValue(table: string, index: string, path: string, value: unknown): StoredConstant {
  if (value === null) return null;
  const isTime = isDate(value) && !Number.isNaN(value.getTime());
  // JSON holds a Date as its text.
  const text = isTime ? value.toISOString() : value;
  if (isListElement(text) && (typeof text !== 'string' || text.isWellFormed())) return text === 0 ? 0 : text;
  const takes = 'takes strings, finite numbers, true, false, Dates and null, as JSON has them';
  return refuse(table, index, `the path '${path}' ${takes}, not ${describeValue(value)}.`);
}

function readPathCondition(table: string, index: string, path: string, condition: unknown): StoredIndexCondition {
  return conditionOn(table, index, { what: `the path '${path}'`, name: path }, condition, (value) =>
    readPathValue(table, index, path, value),
  );
}

/** Checks the condition of an index, and returns it in its stored form. Throws `InvalidSchemaError`. */
export function readConditions(
  table: string,
  index: string,
  fields: readonly StoredField[],
  where: unknown,
): readonly StoredIndexCondition[] {
  if (typeof where !== 'object' || where === null || Array.isArray(where)) {
    refuse(
      table,
      index,
      `it is an object from fields to values, such as { deletedAt: null }, not ${describeValue(where)}.`,
    );
  }
  const isJson = (name: string): boolean => fields.some((one) => one.name === name && one.typeId === Types.json);
  const conditions = Object.entries(where).map(([name, condition]) => {
    const field = fields.find((candidate) => candidate.name === name);
    if (field !== undefined) return readCondition(table, index, field, condition);
    if (partsOfPath(name, isJson) !== undefined) return readPathCondition(table, index, name, condition);
    const known = fields.map((candidate) => candidate.name);
    return refuse(table, index, `the table has no field '${name}'${didYouMean(name, known) || '.'}`);
  });
  if (conditions.length === 0) refuse(table, index, 'it names no field. Leave `where` out for an index on all rows.');
  return conditions.toSorted((a, b) => compareStrings(a.field, b.field));
}

/** Returns a stored condition in the form of a definition. `typeOf`: returns the type of a field; undefined for a path. */
export function conditionsOf(
  stored: readonly StoredIndexCondition[],
  typeOf: (field: string) => TypeId | undefined,
): IndexConditions {
  const valueOf = (field: string, constant: StoredConstant): IndexedValue =>
    constant === null ? null : (constantValue(typeOf(field) ?? Types.json, constant) as IndexedValue);
  return Object.fromEntries(
    stored.map(({ field, values }): [string, IndexConditions[string]] => {
      if (values === 'not null') return [field, { not: null }];
      const all = values.map((constant) => valueOf(field, constant));
      return [field, all.length === 1 ? (all[0] as IndexedValue) : all];
    }),
  );
}

/** Describes a condition in words, such as `deletedAt = null`. */
export function describeConditions(where: IndexConditions): string {
  return Object.entries(where)
    .map(([field, condition]) => {
      if (isNotNull(condition)) return `${field} != null`;
      if (!Array.isArray(condition)) return `${field} = ${describeValue(condition)}`;
      return `${field} IN (${condition.map(describeValue).join(', ')})`;
    })
    .join(' and ');
}

/** Compiles a stored condition. */
export function compiledCondition(
  stored: readonly StoredIndexCondition[],
  fieldOf: (name: string) => LayoutField,
): IndexCondition {
  const tests = stored.map(({ field, values }): FieldTest => {
    if (values === 'not null') return { field: fieldOf(field), takesNull: false, values: undefined };
    const tested = fieldOf(field);
    const texts = values
      .filter((value) => value !== null)
      .map((value) => (tested.path === undefined ? String(value) : testedText(tested, value)));
    return { field: tested, takesNull: values.includes(null), values: new Set(texts) };
  });
  return { tests, text: describeConditions(conditionsOf(stored, (name) => fieldOf(name).typeId)) };
}

/** Whether a row meets the condition of an index. */
export function isInside({ tests }: IndexCondition, source: RowSource, base: number): boolean {
  for (const { field, takesNull, values } of tests) {
    if (isNull(source, base, field)) {
      if (!takesNull) return false;
    } else if (values !== undefined) {
      if (values.size === 0 || !values.has(testedText(field, readField(source, base, field)))) return false;
    }
  }
  return true;
}

function isSameTest(a: FieldTest, b: FieldTest): boolean {
  if (a.field.name !== b.field.name || a.field.typeId !== b.field.typeId || a.takesNull !== b.takesNull) return false;
  const [values, others] = [a.values, b.values];
  if (values === undefined || others === undefined) return values === others;
  return values.size === others.size && [...values].every((value) => others.has(value));
}

/** Whether two conditions are the same. Their tables must have the same values in fields of the same name. */
export function isSameCondition(a: IndexCondition | undefined, b: IndexCondition | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  const others = b.tests;
  return a.tests.length === others.length && a.tests.every((test, i) => isSameTest(test, others[i] as FieldTest));
}
