/** The types of what a query is made of, as they follow from the type of its table's rows. */
import type { JsonValue } from '../format/types.ts';
import type { Operator } from './comparison.ts';

/** The name of a field, with the known ones suggested. Any other name is that of a registered function. */
export type FieldName<R> = (keyof R & string) | (string & Record<never, never>);

/** Whether a field is JSON: it takes any JSON value, and nothing else. */
type IsJson<V> = [JsonValue] extends [V] ? ([V] extends [JsonValue] ? true : false) : false;

/** What a value is compared with: numbers and bigints with each other, bytes of any kind with each other. */
type Comparable<V> = V extends number | bigint
  ? number | bigint
  : V extends Uint8Array
    ? Uint8Array
    : V extends null | undefined
      ? never
      : V;

type OperatorOfValue<V> = unknown extends V
  ? Operator
  : IsJson<V> extends true
    ? '=' | '!='
    : [Extract<V, string | Uint8Array>] extends [never]
      ? Exclude<Operator, 'PREFIX'>
      : Operator;

/**
 * The operators that a field takes: `PREFIX` only text and bytes, JSON only `=` and `!=`. What is no field of the rows is
 * a registered function, and takes `=`. Any operator where the type of the rows is not known.
 */
export type OperatorOf<R, F> = string extends F ? Operator : F extends keyof R ? OperatorOfValue<R[F]> : '=';

type ComparedWith<C, O> = O extends 'IN'
  ? readonly (C | null)[]
  : O extends 'BETWEEN'
    ? readonly [low: C | null, high: C | null]
    : C | null;

/** What a field is compared with by an operator; anything where the type of the rows is not known. */
export type ComparedValue<R, F, O> = string extends F
  ? unknown
  : F extends keyof R
    ? unknown extends R[F]
      ? unknown
      : IsJson<R[F]> extends true
        ? null
        : ComparedWith<Comparable<R[F]>, O>
    : unknown;

/** Fields whose values are numbers or bigints; all of them where the type of the rows is not known. */
export type NumericField<R> = {
  [F in keyof R & string]: unknown extends R[F] ? F : NonNullable<R[F]> extends number | bigint ? F : never;
}[keyof R & string];

/** Fields whose values have an order: all but JSON. */
export type OrderedField<R> = {
  [F in keyof R & string]: unknown extends R[F] ? F : IsJson<R[F]> extends true ? never : F;
}[keyof R & string];
