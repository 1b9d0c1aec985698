/**
 * Comparisons of a field, in terms of values that the field can hold. A value that the type cannot hold is replaced by one next to it
 * that the type can hold: `> 1.5` on an integer becomes `> 1`, and `< 300` on a uint8 becomes "not null".
 */
import { InvalidOperatorError, InvalidQueryError } from '../../base/errors.ts';
import { compareValues } from '../../base/bytes.ts';
import type { OrderedValue } from '../../base/bytes.ts';
import { atOnce, itemsInStep, sorted } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import type { TypedField } from '../../format/row-layout.ts';
import { bigintBounds, integerBounds, isIntegerOf, typeName, Types } from '../../format/types.ts';
import type { TypeId } from '../../format/types.ts';
import { describeValue } from '../../base/messages.ts';
import { isUuid, normalizeValue, ValueProblem } from '../../format/values.ts';

/** The operators that compare a field with values. */
export const valueOperators = ['=', '!=', '>', '>=', '<', '<=', 'IN', 'BETWEEN', 'PREFIX'] as const;
/** The operators on lists. */
export const listOperators = ['HAS', 'HAS ANY', 'HAS ALL'] as const;
/** The operators that `where` takes. */
export const operators: readonly [...typeof valueOperators, ...typeof listOperators] = [
  ...valueOperators,
  ...listOperators,
];
/**
 * An operator of `where`. `IN` takes an array of values, `BETWEEN` the lowest and the highest one as `[low, high]`, and
 * `PREFIX` the beginning of a text or of bytes. Of a json field that holds a list, `HAS` takes an element, and `HAS ANY` and `HAS ALL`
 * take arrays of elements. All others take one value.
 */
export type Operator = (typeof operators)[number];

/** The operators that compare the order of a field's value with one other value. */
export type OrderOperator = '<' | '<=' | '>' | '>=';

export type ComparisonOperator = Exclude<Operator, 'IN' | 'BETWEEN' | 'PREFIX' | ListOperator>;
/** An operator on lists. */
export type ListOperator = (typeof listOperators)[number];
/** A value that a field can hold, and that is not null. */
export type FieldValue = Exclude<OrderedValue, null>;

/** A condition on a field. `orNull`: rows in which the field is null match as well. */
export type Comparison =
  | { readonly kind: 'none' | 'all' | 'null' | 'not null' }
  | {
      readonly kind: 'value';
      readonly operator: ComparisonOperator;
      readonly value: FieldValue;
      readonly orNull: boolean;
    }
  | { readonly kind: 'in'; readonly values: readonly FieldValue[]; readonly orNull: boolean }
  | { readonly kind: 'prefix'; readonly value: string | Uint8Array };

const none: Comparison = { kind: 'none' };
const all: Comparison = { kind: 'all' };
const isNull: Comparison = { kind: 'null' };
const isNotNull: Comparison = { kind: 'not null' };

/** Whether an operator is on lists. */
export function isListOperator(operator: Operator): operator is ListOperator {
  // Every condition asks, and this is faster than searching a list.
  return operator.startsWith('HAS');
}

export function isOperator(operator: unknown): operator is Operator {
  return operators.includes(operator as Operator);
}

/** The place of a compared value among a type's values: at `value`, or next to it with no other value of the type in between. */
export interface Place {
  readonly value: FieldValue;
  /** Negative: the compared value is less than `value`; positive: greater. */
  readonly side: number;
}

function sideOf(compared: number | bigint, value: number | bigint): number {
  return compared > value ? 1 : compared < value ? -1 : 0;
}

/** Returns the exact place of a number among the numbers of a type. JavaScript compares bigints and numbers exactly. */
function placeNumber(typeId: TypeId, compared: number | bigint): Place {
  const big = bigintBounds(typeId);
  if (big !== undefined) {
    if (compared > big.max) return { value: big.max, side: 1 };
    if (compared < big.min) return { value: big.min, side: -1 };
    const value = typeof compared === 'bigint' ? compared : BigInt(Math.floor(compared));
    return { value, side: sideOf(compared, value) };
  }
  const bounds = integerBounds(typeId);
  let value = Number(compared);
  if (bounds !== undefined) value = Math.min(bounds.max, Math.max(bounds.min, Math.floor(value)));
  else if (typeId === Types.float32) value = Math.fround(value);
  return { value: value === 0 ? 0 : value, side: sideOf(compared, value) };
}

/** A string with a lone surrogate lies below the same string with U+E000 in its place: no stored text lies between them. */
function placeText(compared: string): Place {
  if (compared.isWellFormed()) return { value: compared, side: 0 };
  let whole = 0;
  while (compared.slice(0, whole + 1).isWellFormed() || compared.slice(0, whole + 2).isWellFormed()) whole++;
  return { value: `${compared.slice(0, whole)}\u{E000}`, side: -1 };
}

/** Describes the values that a field of a type is compared with, for messages. */
function comparedWith(typeId: TypeId): string {
  switch (typeId) {
    case Types.varchar:
      return 'strings';
    case Types.boolean:
      return 'true and false';
    case Types.timestamp:
      return 'valid Dates';
    case Types.uuid:
    case Types.blob:
      return 'UUID strings';
    case Types.bytes:
      return 'Buffers and Uint8Arrays';
    case Types.json:
      return 'null only';
    default:
      return 'numbers other than NaN, and bigints';
  }
}

/** Returns the place of a compared value; undefined if it is of another kind than the field's values. */
function placeOf(typeId: TypeId, compared: unknown): Place | undefined {
  switch (typeId) {
    case Types.varchar:
      return typeof compared === 'string' ? placeText(compared) : undefined;
    case Types.boolean:
    case Types.timestamp:
    case Types.uuid:
    case Types.blob:
    case Types.bytes:
      try {
        return { value: normalizeValue(typeId, compared), side: 0 };
      } catch (error) {
        if (error instanceof ValueProblem) return undefined;
        throw error;
      }
    case Types.json:
      return undefined;
    default:
      if (typeof compared === 'bigint') return placeNumber(typeId, compared);
      return typeof compared === 'number' && !Number.isNaN(compared) ? placeNumber(typeId, compared) : undefined;
  }
}

/** Whether a text is compared with UUIDs and is not one. It equals none, and is no error: applications pass on input of their users. */
function isNoUuid(typeId: TypeId, compared: unknown): boolean {
  return (typeId === Types.uuid || typeId === Types.blob) && typeof compared === 'string' && !isUuid(compared);
}

/**
 * Returns the field's value that equals a compared one, for the common cases: numbers that the type holds, and text. Undefined for
 * others, even if an equal value exists.
 */
export function plainValue(typeId: TypeId, compared: unknown): number | string | undefined {
  if (typeof compared === 'string') return typeId === Types.varchar && compared.isWellFormed() ? compared : undefined;
  if (typeof compared !== 'number') return undefined;
  const holds = typeId === Types.float64 ? !Number.isNaN(compared) : isIntegerOf(typeId, compared);
  // Adding zero turns -0 into 0.
  return holds ? compared + 0 : undefined;
}

/** Turns a comparison with a place into one with the value at that place. */
function compareWithPlace(typeId: TypeId, operator: ComparisonOperator, { value, side }: Place): Comparison {
  switch (operator) {
    case '=':
      return side === 0 ? { kind: 'value', operator, value, orNull: false } : none;
    case '!=':
      return side === 0 ? { kind: 'value', operator, value, orNull: true } : all;
    case '<':
    case '<=':
      return compareWithEdge(typeId, side > 0 || (side === 0 && operator === '<=') ? '<=' : '<', value);
    case '>':
    case '>=':
      return compareWithEdge(typeId, side < 0 || (side === 0 && operator === '>=') ? '>=' : '>', value);
  }
}

/** Returns an order comparison. At the ends of an integer type it becomes all values or none. */
function compareWithEdge(typeId: TypeId, operator: '<' | '<=' | '>' | '>=', value: FieldValue): Comparison {
  const bounds = bigintBounds(typeId) ?? integerBounds(typeId);
  const edge = operator === '<' || operator === '>=' ? bounds?.min : bounds?.max;
  if (value === edge) return operator === '<' || operator === '>' ? none : isNotNull;
  return { kind: 'value', operator, value, orNull: false };
}

/** The field of a condition, for messages too. */
interface ComparedField {
  readonly table: string;
  readonly field: TypedField;
}

function refuse({ table, field }: ComparedField, value: unknown): never {
  const takes = `type ${typeName(field.typeId)} is compared with ${comparedWith(field.typeId)}, or null`;
  throw new InvalidQueryError(
    `Cannot compare field '${field.name}' of table '${table}' with ${describeValue(value)}: ${takes}.`,
  );
}

const opposites: Readonly<Record<ComparisonOperator, ComparisonOperator>> = {
  '=': '!=',
  '!=': '=',
  '<': '>=',
  '>=': '<',
  '<=': '>',
  '>': '<=',
};

/** Returns the negation of a comparison, which matches exactly the other rows; undefined where no comparison expresses it. */
export function oppositeOf(comparison: Comparison): Comparison | undefined {
  switch (comparison.kind) {
    case 'none':
      return all;
    case 'all':
      return none;
    case 'null':
      return isNotNull;
    case 'not null':
      return isNull;
    case 'value':
      return { ...comparison, operator: opposites[comparison.operator], orNull: !comparison.orNull };
    case 'in':
    case 'prefix':
      return undefined;
  }
}

/**
 * Returns the comparisons for `field operator value`; all of them must hold. Throws `InvalidQueryError` if the field cannot be compared
 * with a value of this kind, and `InvalidOperatorError` if the field does not take the operator.
 */
export function compareField(
  table: string,
  field: TypedField,
  operator: Exclude<Operator, ListOperator>,
  value: unknown,
): Comparison[] {
  const compared = { table, field };
  if (field.typeId === Types.json && (value !== null || (operator !== '=' && operator !== '!='))) {
    if (value === undefined) refuse(compared, value);
    const message = `Field '${field.name}' of table '${table}' is JSON: it takes only = null, != null, and HAS for lists.`;
    throw new InvalidOperatorError(operator, message);
  }
  if (operator !== 'BETWEEN') return [compareOnce(compared, operator, value)];
  if (!Array.isArray(value) || value.length !== 2) {
    throw new InvalidQueryError(
      `BETWEEN on field '${field.name}' of table '${table}' takes [low, high], not ${describeValue(value)}.`,
    );
  }
  return [compareOnce(compared, '>=', value[0] as unknown), compareOnce(compared, '<=', value[1] as unknown)];
}

/** Returns the place of a value in a row comparison; undefined for null. Throws the same errors as {@link compareField}. */
export function orderPlace(
  table: string,
  field: TypedField,
  operator: OrderOperator,
  value: unknown,
): Place | undefined {
  // Only for its errors.
  compareField(table, field, operator, value);
  return value === null ? undefined : placeOf(field.typeId, value);
}

/** Compiles `IN` in steps, since a list may be long. */
export function* comparingWithList(table: string, field: TypedField, list: unknown): Steps<Comparison> {
  if (field.typeId === Types.json || list === undefined) return compareField(table, field, 'IN', list)[0] as Comparison;
  return yield* comparingWithAny({ table, field }, list);
}

function compareOnce(
  compared: ComparedField,
  operator: Exclude<Operator, 'BETWEEN' | ListOperator>,
  value: unknown,
): Comparison {
  const { field } = compared;
  if (value === undefined) refuse(compared, value);
  if (operator === 'IN') return atOnce(comparingWithAny(compared, value));
  if (operator === 'PREFIX') return compareWithPrefix(compared, value);
  if (value === null) return operator === '=' ? isNull : operator === '!=' ? isNotNull : none;
  if ((operator === '=' || operator === '!=') && isNoUuid(field.typeId, value)) return operator === '=' ? none : all;
  return compareWithPlace(field.typeId, operator, placeOf(field.typeId, value) ?? refuse(compared, value));
}

/** Compiles `IN` to the values that the field can hold, in ascending order and without duplicates. */
function* comparingWithAny(compared: ComparedField, list: unknown): Steps<Comparison> {
  if (!Array.isArray(list)) {
    throw new InvalidQueryError(
      `IN on field '${compared.field.name}' of table '${compared.table}' takes an array of values, not ${describeValue(list)}.`,
    );
  }
  const found: FieldValue[] = [];
  let orNull = false;
  // By index, so that a hole counts as undefined and is refused.
  for (let i = 0; i < list.length; i++) {
    if ((i + 1) % itemsInStep === 0) yield;
    const value: unknown = list[i];
    if (value === null) {
      orNull = true;
      continue;
    }
    if (isNoUuid(compared.field.typeId, value)) continue;
    const place = placeOf(compared.field.typeId, value) ?? refuse(compared, value);
    if (place.side === 0) found.push(place.value);
  }
  return yield* comparingWithEach(found, orNull);
}

/** Compares with values that the field can hold, in any order. */
export function* comparingWithEach(found: readonly FieldValue[], orNull: boolean): Steps<Comparison> {
  const ascending = yield* sorted(found, compareValues);
  const values: FieldValue[] = [];
  for (let i = 0; i < ascending.length; i++) {
    if ((i + 1) % itemsInStep === 0) yield;
    const value = ascending[i] as FieldValue;
    if (i === 0 || compareValues(values[values.length - 1] as FieldValue, value) !== 0) values.push(value);
  }
  if (values.length === 0) return orNull ? isNull : none;
  if (values.length === 1 && !orNull) return { kind: 'value', operator: '=', value: values[0] as FieldValue, orNull };
  return { kind: 'in', values, orNull };
}

function compareWithPrefix(compared: ComparedField, value: unknown): Comparison {
  const { typeId, name } = compared.field;
  if (typeId !== Types.varchar && typeId !== Types.bytes) {
    const message =
      `Field '${name}' of table '${compared.table}' is compared as ${typeName(typeId)}: PREFIX is for varchar and bytes. ` +
      'Use BETWEEN for a range.';
    throw new InvalidOperatorError('PREFIX', message);
  }
  if (value === null) return none;
  const { value: prefix, side } = placeOf(typeId, value) ?? refuse(compared, value);
  // No stored text begins with half a character.
  if (side !== 0) return none;
  const begin = prefix as string | Uint8Array;
  return begin.length === 0 ? isNotNull : { kind: 'prefix', value: begin };
}
