/**
 * The types of the names, operators and values in a query, derived from the type of its table's rows.
 *
 * The types ask `[F] extends [keyof R]` and not `F extends keyof R`, hide messages behind `keyof`, and keep names and values from
 * inference by `NoInfer`. Otherwise the compiler goes through all fields of a table for a call that names one, which takes it six times
 * as long. `test/features/types/compile-budget.slow.test.ts` has the bounds.
 */
import type { Hint, Near } from '../../base/options.ts';
import type { ValueAt } from '../../schema/path-types.ts';
import type { ListOperator, Operator } from './comparison.ts';

/** The name of a field or a path, with the known ones suggested. Any other name refers to a registered function. */
export type FieldName<R> = (keyof R & string) | KnownPath<R> | (string & Record<never, never>);

/** The paths into the typed JSON of rows, up to three keys deep, for suggestions. */
type KnownPath<R> = string extends keyof R
  ? never
  : {
      [N in keyof R & string]: unknown extends R[N]
        ? never
        : IsJson<R[N]> extends true
          ? `${N}.${KeysOf<Exclude<R[N], null>, [0, 0, 0]>}`
          : never;
    }[keyof R & string];

type KeysOf<V, Deep extends readonly unknown[]> = Deep extends readonly [unknown, ...infer Rest]
  ? V extends readonly unknown[]
    ? never
    : V extends object
      ? {
          [K in keyof V & string]: string extends K ? never : K | `${K}.${KeysOf<NonNullable<V[K]>, Rest>}`;
        }[keyof V & string]
      : never
  : never;

/** The text of a path, which {@link PathIn} looks at. */
export type AnyPath = `${string}.${string}`;

/** The value at a path into the JSON of rows, of any type if that is not known; never if there is none, and for other names. */
export type PathIn<R, F> = F extends `${infer N}.${infer P}`
  ? N extends keyof R
    ? unknown extends R[N]
      ? unknown
      : IsJson<R[N]> extends true
        ? P extends `${string}\\${string}`
          ? unknown
          : ValueAt<R[N], P>
        : never
    : never
  : never;

/** The values that conditions and orders know of those at a path. */
type Scalar<V> = Extract<V, string | number | boolean>;

/** The operators that a value at a path takes. */
type PathOperator<V> = unknown extends V
  ? Operator
  :
      | '='
      | '!='
      | ([Scalar<V>] extends [never] ? never : Exclude<Operator, 'PREFIX' | ListOperator>)
      | ([Extract<V, string>] extends [never] ? never : 'PREFIX')
      | ([Extract<V, readonly unknown[]>] extends [never] ? never : ListOperator);

/** The value that a value at a path is compared with: a text may be that of a Date. */
type PathValue<V, O> = unknown extends V
  ? unknown
  : O extends 'HAS'
    ? ElementOf<V>
    : O extends ListOperator
      ? readonly ElementOf<V>[]
      : ComparedWith<
          V extends string ? V | Date : V extends number ? number | bigint : V extends boolean ? boolean : never,
          O
        >;

/** The field that a condition is on, or several fields together. */
export type FieldNames<R> = FieldName<R> | readonly string[];

/**
 * A name in a condition, or a message about the mistake in it. With `=`, a name that is not a field may be a registered function,
 * which the compiler does not know, unless it differs from a field's name in one letter only. Any text where the type of the rows, or
 * the name, is not known.
 */
export type ComparedName<R, F, O> = string extends F
  ? F
  : [F] extends [keyof R]
    ? F
    : [F] extends [readonly unknown[]]
      ? NoInfer<ComparedNames<R, F>>
      : [PathIn<R, F>] extends [never]
        ? NoInfer<keyof Told<F, F extends `${keyof R & string}.${string}` ? NoPath<F> : UnknownInCondition<R, F, O>>>
        : F;

type NoPath<F> = F extends string ? `There is no value at '${F}'` : never;

/** An object whose only key is the message about a name. The message is not evaluated before the name is known. */
type Told<F, Message> = [F] extends [string] ? { readonly [M in Message & string]: never } : never;

type UnknownInCondition<R, F, O> = [Operator] extends [O]
  ? // No operator is written yet: an editor asks for names.
    NoField<R, F> | (keyof R & string)
  : UnknownByOperator<R, F, O>;

type UnknownByOperator<R, F, O> = [F] extends [`${infer _A}${infer _B}${infer C}`]
  ? [O] extends ['=' | ListOperator]
    ? C extends ''
      ? F
      : [Near<F, keyof R & string>] extends [never]
        ? F
        : NoField<R, F>
    : NoField<R, F>
  : [O] extends ['=' | ListOperator]
    ? F
    : NoField<R, F>;

/** The message about names that are not fields. For the empty name, the names of the fields, so that an editor offers them. */
type NoField<R, F> =
  Exclude<F, keyof R> extends infer N extends string
    ? N extends ''
      ? keyof R & string
      : `There is no field '${N}'${Hint<N, keyof R & string>}`
    : never;

/** The name of a field that has an order, or a message about the mistake. Any text where the name is not known. */
export type OrderedName<R, F> = string extends F
  ? F
  : [F] extends [keyof R]
    ? unknown extends R[F]
      ? F
      : IsJson<R[F]> extends true
        ? NoInfer<keyof Told<F, Exclude<F, JsonIn<R, F>> | Unordered<JsonIn<R, F>>>>
        : F
    : [PathIn<R, Exclude<F, keyof R>>] extends [never]
      ? NoInfer<keyof Told<F, Extract<F, keyof R> | NoField<R, F>>>
      : F;

type Unordered<F> = F extends string ? `Field '${F}' is of type json, which has no order` : never;

/** The fields among `F` that are JSON. */
type JsonIn<R, F> = F extends keyof R ? (IsJson<R[F]> extends true ? F : never) : never;

/** The name of a field, or a message about the mistake. Any text where the name is not known. */
export type KnownName<R, F> = string extends F
  ? F
  : [F] extends [keyof R]
    ? F
    : [PathIn<R, F>] extends [never]
      ? NoInfer<keyof Told<F, NoField<R, F>>>
      : F;

/** The name of a field of numbers, or a message about the mistake. Any text where the name is not known. */
export type NumericName<R, F> = string extends F
  ? F
  : [F] extends [keyof R]
    ? unknown extends R[F]
      ? F
      : [R[F]] extends [number | bigint | null]
        ? F
        : NoInfer<keyof Told<F, NotNumeric<F>>>
    : [PathIn<R, F>] extends [never]
      ? NoInfer<keyof Told<F, Extract<F, keyof R> | NoField<R, F>>>
      : unknown extends PathIn<R, F>
        ? F
        : [Extract<PathIn<R, F>, number>] extends [never]
          ? NoInfer<keyof Told<F, NotNumeric<F>>>
          : F;

type NotNumeric<F> = F extends string ? `Field '${F}' does not hold numbers` : never;

/** Whether a field is JSON, typed or not. */
type IsJson<V> = [Extract<V, bigint | Date | Uint8Array>] extends [never]
  ? [V] extends [string | number | boolean | null | undefined]
    ? false
    : true
  : false;

/** The values that a value can be compared with: numbers and bigints with each other, bytes of any kind with each other. */
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
    ? '=' | '!=' | ListOperator
    : [Extract<V, string | Uint8Array>] extends [never]
      ? Exclude<Operator, 'PREFIX' | ListOperator>
      : Exclude<Operator, ListOperator>;

/** The elements that a list may have. */
type ElementOf<V> = [Extract<V, readonly unknown[]>] extends [never]
  ? string | number | boolean
  : Extract<Extract<V, readonly unknown[]>[number], string | number | boolean>;

type ComparedElements<V, O> = O extends 'HAS' ? ElementOf<V> : O extends ListOperator ? readonly ElementOf<V>[] : null;

/**
 * The operators that a field takes: `PREFIX` only text and bytes, JSON only `=`, `!=` and those on lists. Any operator where the type of the rows
 * is not known, and where the rows have no such field: {@link ComparedName} reports the mistake then.
 */
export type OperatorOf<R, F> = string extends F
  ? Operator
  : [F] extends [keyof R]
    ? OperatorOfValue<R[F]>
    : [F] extends [readonly unknown[]]
      ? TupleOperator
      : [PathIn<R, F>] extends [never]
        ? Operator
        : PathOperator<PathIn<R, F>>;

/** The operators that compare several fields together. */
type TupleOperator = '=' | '<' | '<=' | '>' | '>=' | 'IN' | 'BETWEEN';

type ComparedWith<C, O> = O extends 'IN'
  ? readonly (C | null)[]
  : O extends 'BETWEEN'
    ? readonly [low: C | null, high: C | null]
    : C | null;

/** The value that an operator compares a field with; anything where the type of the rows is not known. */
export type ComparedValue<R, F, O> = NoInfer<
  string extends F
    ? unknown
    : [F] extends [keyof R]
      ? unknown extends R[F]
        ? unknown
        : IsJson<R[F]> extends true
          ? ComparedElements<R[F], O>
          : ComparedWith<Comparable<R[F]>, O>
      : [PathIn<R, F>] extends [never]
        ? ComparedTuple<R, F, O>
        : PathValue<PathIn<R, F>, O>
>;

/** The names of fields that a condition compares together, or messages about the mistakes in them. */
type ComparedNames<R, F> = {
  readonly [I in keyof F]: string extends F[I]
    ? F[I]
    : F[I] extends keyof R
      ? F[I]
      : [PathIn<R, F[I]>] extends [never]
        ? NoField<R, F[I]>
        : F[I];
};

/** The value that several fields are compared with: an array with a value for each; an array of such arrays for `IN`, two for `BETWEEN`. */
type ComparedTuple<R, F, O> = F extends readonly unknown[]
  ? O extends 'IN'
    ? readonly TupleOf<R, F>[]
    : O extends '='
      ? TupleOf<R, F>
      : O extends 'BETWEEN'
        ? readonly [low: OrderedTupleOf<R, F>, high: OrderedTupleOf<R, F>]
        : OrderedTupleOf<R, F>
  : unknown;

type TupleOf<R, F> = { readonly [I in keyof F]: ComparedValue<R, F[I], '='> };

type OrderedTupleOf<R, F> = { readonly [I in keyof F]: OrderedPart<R, F[I]> };

/** JSON has no order. */
type OrderedPart<R, F> = F extends keyof R
  ? unknown extends R[F]
    ? unknown
    : IsJson<R[F]> extends true
      ? never
      : ComparedValue<R, F, '='>
  : ComparedValue<R, F, '='>;

/** The names that `select()` takes, or a message about the mistake in a path. */
export type SelectedName<R, F> = [F] extends [keyof R]
  ? F
  : string extends keyof R
    ? F
    : NoInfer<keyof Told<F, Exclude<F, WrongPath<R, F>> | NoPath<WrongPath<R, F>>>>;

type WrongPath<R, F> = F extends keyof R ? never : [PathIn<R, F>] extends [never] ? F : never;

/** Some fields of rows. The type is conditional so that editors show its result. */
export type Selected<R, F extends string> = R extends unknown
  ? { [N in F]: N extends keyof R ? R[N] : Exclude<PathIn<R, N>, undefined> | null }
  : never;

/** The type of the values of a field or at a path; `unknown` where the rows or the name are not known. */
export type ValueIn<R, F> = F extends keyof R
  ? R[F]
  : [PathIn<R, F>] extends [never]
    ? unknown
    : Exclude<PathIn<R, F>, undefined>;
