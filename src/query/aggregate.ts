/** Aggregates: what becomes of the rows of a query, or of each group of them. */
import { InvalidQueryError } from '../base/errors.ts';
import { compareValues } from '../base/order.ts';
import type { OrderedValue } from '../base/order.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { bigintBounds, integerBounds, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import { describeValue } from '../base/describe-value.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { KnownName, NumericName, OrderedName } from './conditions/compared-types.ts';
import { requireField } from './conditions/condition.ts';
import { ExactSum } from './exact-sum.ts';

/**
 * One aggregate: `'count'` counts rows, `{ count: field }` those in which a field is not null. `min`, `max`, `sum` and
 * `avg` are of a field's values that are not null, and null if there are none.
 */
export type Aggregate<R> =
  | 'count'
  | { readonly count: keyof R & string }
  | { readonly min: keyof R & string }
  | { readonly max: keyof R & string }
  | { readonly sum: keyof R & string }
  | { readonly avg: keyof R & string };

/** Aggregates by the names that they have in the result. */
export interface Aggregates<R> {
  readonly [name: string]: Aggregate<R>;
}

type CheckedAggregate<R, A> = A extends { readonly sum: infer F }
  ? { readonly sum: NumericName<R, F> }
  : A extends { readonly avg: infer F }
    ? { readonly avg: NumericName<R, F> }
    : A extends { readonly min: infer F }
      ? { readonly min: OrderedName<R, F> }
      : A extends { readonly max: infer F }
        ? { readonly max: OrderedName<R, F> }
        : A extends { readonly count: infer F }
          ? { readonly count: KnownName<R, F> }
          : A extends string
            ? 'count'
            : { readonly [P in keyof A]: `There is no aggregate '${P & string}'` };

/** What the compiler checks of aggregates beyond their being some: fields that are numbers, or have an order. */
export type CheckedAggregates<R, A> = { readonly [N in keyof A]: CheckedAggregate<R, A[N]> };

/** The sum of a field's values: a bigint if they are bigints, else a number; null if there are none. */
export type SumOf<V> = unknown extends V
  ? number | bigint | null
  : (NonNullable<V> extends bigint ? bigint : number) | null;

type AggregateValue<R, A> = A extends 'count' | { readonly count: string }
  ? number
  : A extends { readonly avg: string }
    ? number | null
    : A extends { readonly sum: infer F extends keyof R }
      ? SumOf<R[F]>
      : A extends { readonly min: infer F extends keyof R } | { readonly max: infer F extends keyof R }
        ? R[F] | null
        : never;

/** What aggregates come to, by their names. */
export type AggregateRow<R, A> = R extends unknown ? { -readonly [N in keyof A]: AggregateValue<R, A[N]> } : never;

/** What groups come to: the fields that they are grouped by, and the aggregates. */
export type GroupRow<R, G extends keyof R, A> = R extends unknown
  ? { -readonly [N in G | keyof A]: N extends keyof A ? AggregateValue<R, A[N]> : N extends keyof R ? R[N] : never }
  : never;

type Kind = 'count' | 'min' | 'max' | 'sum' | 'avg';
const kinds: readonly unknown[] = ['count', 'min', 'max', 'sum', 'avg'] satisfies Kind[];

/** An aggregate as it was asked for. */
export interface WrittenAggregate {
  readonly name: string;
  readonly kind: Kind;
  /** Undefined: the row itself. */
  readonly field: string | undefined;
}

/** An aggregate of one version of a table. */
export interface CompiledAggregate {
  readonly name: string;
  readonly kind: Kind;
  readonly field: LayoutField | undefined;
}

/** Aggregates as they are written. Throws `InvalidQueryError` if they are none. */
export function writtenAggregates(aggregates: unknown): WrittenAggregate[] {
  if (typeof aggregates !== 'object' || aggregates === null || Object.keys(aggregates).length === 0) {
    throw new InvalidQueryError(
      `aggregate() takes names with what they stand for, as in { total: { sum: 'price' } }, not ${describeValue(aggregates)}.`,
    );
  }
  return Object.entries(aggregates).map(([name, aggregate]: [string, unknown]) => {
    if (aggregate === 'count') return { name, kind: 'count', field: undefined };
    const [entry, more] = typeof aggregate === 'object' && aggregate !== null ? Object.entries(aggregate) : [];
    if (entry === undefined || more !== undefined || !kinds.includes(entry[0]) || typeof entry[1] !== 'string') {
      const known = "'count', or { count }, { min }, { max }, { sum } or { avg } with the name of a field";
      throw new InvalidQueryError(`aggregate(): '${name}' is ${known}, not ${describeValue(aggregate)}.`);
    }
    return { name, kind: entry[0] as Kind, field: entry[1] };
  });
}

function isNumeric(typeId: TypeId): boolean {
  const isFloat = typeId === Types.float64 || typeId === Types.float32;
  return isFloat || integerBounds(typeId) !== undefined || bigintBounds(typeId) !== undefined;
}

export function compileAggregate(shape: TableShape, { name, kind, field: of }: WrittenAggregate): CompiledAggregate {
  if (of === undefined) return { name, kind, field: undefined };
  const field = requireField(shape, of, `${kind}()`);
  const { typeId } = field;
  if ((kind === 'sum' || kind === 'avg') && !isNumeric(typeId)) {
    const message = `${kind}(): field '${of}' of table '${shape.name}' is of type ${typeName(typeId)}, and takes no part in arithmetic.`;
    throw new InvalidQueryError(message);
  }
  if ((kind === 'min' || kind === 'max') && typeId === Types.json) {
    throw new InvalidQueryError(`${kind}(): field '${of}' of table '${shape.name}' is JSON, which has no order.`);
  }
  return { name, kind, field };
}

/** -0 and 0 are one value: which of them a row holds must not show where one stands for all of them. */
export function oneZero<V>(value: V | number): V | number {
  return value === 0 ? 0 : value;
}

/** Takes in values that are not null, one by one. */
export interface Accumulator {
  add(value: unknown): void;
  result(): unknown;
}

class Count implements Accumulator {
  #count = 0;

  add(): void {
    this.#count++;
  }

  result(): number {
    return this.#count;
  }
}

/** The least value, or the greatest. */
class Extreme implements Accumulator {
  readonly #sign: number;
  #best: OrderedValue = null;

  constructor(sign: 1 | -1) {
    this.#sign = sign;
  }

  add(value: unknown): void {
    const best = this.#best;
    if (best === null || compareValues(value as OrderedValue, best) * this.#sign < 0)
      this.#best = value as OrderedValue;
  }

  result(): OrderedValue {
    return oneZero(this.#best);
  }
}

class NumberSum implements Accumulator {
  readonly #sum = new ExactSum();
  readonly #mean: boolean;
  #count = 0;

  constructor(mean: boolean) {
    this.#mean = mean;
  }

  add(value: unknown): void {
    this.#sum.add(value as number);
    this.#count++;
  }

  result(): number | null {
    return this.#count === 0 ? null : oneZero(this.#sum.value(this.#mean ? this.#count : 1));
  }
}

class BigintSum implements Accumulator {
  readonly #mean: boolean;
  #sum = 0n;
  #count = 0n;

  constructor(mean: boolean) {
    this.#mean = mean;
  }

  add(value: unknown): void {
    this.#sum += value as bigint;
    this.#count++;
  }

  result(): number | bigint | null {
    if (this.#count === 0n) return null;
    if (!this.#mean) return this.#sum;
    return Number(this.#sum / this.#count) + Number(this.#sum % this.#count) / Number(this.#count);
  }
}

export function accumulatorOf({ kind, field }: CompiledAggregate): Accumulator {
  switch (kind) {
    case 'count':
      return new Count();
    case 'min':
      return new Extreme(1);
    case 'max':
      return new Extreme(-1);
    case 'sum':
    case 'avg':
      return bigintBounds((field as LayoutField).typeId) === undefined
        ? new NumberSum(kind === 'avg')
        : new BigintSum(kind === 'avg');
  }
}
