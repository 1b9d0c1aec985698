/** Aggregates of the rows of a query, or of each group. */
import { compareValues } from '../base/bytes.ts';
import type { OrderedValue } from '../base/bytes.ts';
import { InvalidQueryError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import type { LayoutField } from '../format/row-layout.ts';
import { bigintBounds, integerBounds, typeName, Types } from '../format/types.ts';
import type { TypeId } from '../format/types.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { AnyPath, KnownName, NumericName, OrderedName, ValueIn } from './conditions/compared-types.ts';
import { orderedPath, requireField } from './conditions/condition.ts';

/**
 * One aggregate: `'count'` counts rows, `{ count: field }` those in which a field is not null. `min`, `max`, `sum` and
 * `avg` are of a field's values that are not null, and null if there are none.
 */
export type Aggregate<R> =
  | 'count'
  | { readonly count: (keyof R & string) | AnyPath }
  | { readonly min: (keyof R & string) | AnyPath }
  | { readonly max: (keyof R & string) | AnyPath }
  | { readonly sum: (keyof R & string) | AnyPath }
  | { readonly avg: (keyof R & string) | AnyPath };

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

/** Checks the fields of aggregates at compile time: they must be numbers, or have an order. */
export type CheckedAggregates<R, A> = { readonly [N in keyof A]: CheckedAggregate<R, A[N]> };

/** The sum of a field's values: a bigint if they are bigints, else a number; null if there are none. */
export type SumOf<V> = unknown extends V
  ? number | bigint | null
  : (NonNullable<V> extends bigint ? bigint : number) | null;

type AggregateValue<R, A> = A extends 'count' | { readonly count: string }
  ? number
  : A extends { readonly avg: string }
    ? number | null
    : A extends { readonly sum: infer F }
      ? SumOf<ValueIn<R, F>>
      : A extends { readonly min: infer F } | { readonly max: infer F }
        ? ValueIn<R, F> | null
        : never;

/** The results of aggregates, by their names. */
export type AggregateRow<R, A> = R extends unknown ? { -readonly [N in keyof A]: AggregateValue<R, A[N]> } : never;

/** The row of a group: its grouping fields, and the aggregates. */
export type GroupRow<R, G extends string, A> = R extends unknown
  ? {
      -readonly [N in G | keyof A]: N extends keyof A
        ? AggregateValue<R, A[N]>
        : N extends keyof R
          ? R[N]
          : ValueIn<R, N> | null;
    }
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

/** Returns aggregates as they are written. Throws `InvalidQueryError` for other values. */
export function writtenAggregates(aggregates: unknown): WrittenAggregate[] {
  if (typeof aggregates !== 'object' || aggregates === null || Object.keys(aggregates).length === 0) {
    throw new InvalidQueryError(
      `aggregate() takes an object of names and aggregates, as in { total: { sum: 'price' } }, not ${describeValue(aggregates)}.`,
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

/** Returns the form of a value at a path that an aggregate takes: numbers for a sum, and for the extremes what is ordered. */
function aggregatedField(shape: TableShape, field: LayoutField, kind: Kind): LayoutField {
  if (field.path === undefined || kind === 'count') return field;
  const ordered = orderedPath(shape, field);
  // An index may be of the texts there.
  const isOfNumbers = (kind === 'sum' || kind === 'avg') && !isNumeric(ordered.typeId);
  return isOfNumbers ? (shape.layout.path(field.name, Types.float64) as LayoutField) : ordered;
}

export function compileAggregate(shape: TableShape, { name, kind, field: of }: WrittenAggregate): CompiledAggregate {
  if (of === undefined) return { name, kind, field: undefined };
  const field = aggregatedField(shape, requireField(shape, of, `${kind}()`), kind);
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

/** Numbers from this size on are added separately, scaled down, so that their sum does not overflow on the way. */
const huge = 2 ** 960;
const scale = 2 ** 100;

/** Adds a number to parts that do not overlap, ascending by size. */
function add(parts: number[], value: number): void {
  let x = value;
  let kept = 0;
  for (let i = 0; i < parts.length; i++) {
    let y = parts[i] as number;
    if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
    const high = x + y;
    const low = y - (high - x);
    if (low !== 0) parts[kept++] = low;
    x = high;
  }
  parts.length = kept;
  parts.push(x);
}

/** Returns the number nearest to the sum of the parts. */
function rounded(parts: readonly number[]): number {
  let i = parts.length - 1;
  let high = parts[i] ?? 0;
  let low = 0;
  while (i > 0 && low === 0) {
    const x = high;
    const y = parts[--i] as number;
    high = x + y;
    low = y - (high - x);
  }
  // Halfway between two numbers: the sign of the remaining parts decides.
  const next = i > 0 ? (parts[i - 1] as number) : 0;
  if ((low < 0 && next < 0) || (low > 0 && next > 0)) {
    const twice = low * 2;
    const other = high + twice;
    if (twice === other - high) high = other;
  }
  return high;
}

/**
 * A sum of numbers that does not depend on the order in which they are added, since that differs between plans. It is held as parts whose
 * bits do not overlap, so that it is exact, and is rounded once, at the end.
 */
export class ExactSum {
  readonly #parts: number[] = [];
  readonly #hugeParts: number[] = [];
  /** The sum of the infinities among the numbers. */
  #infinite = 0;

  add(value: number): void {
    if (!Number.isFinite(value)) this.#infinite += value;
    else if (Math.abs(value) >= huge) add(this.#hugeParts, value / scale);
    else add(this.#parts, value);
    // Many numbers that are not huge can have a sum that is.
    const last = this.#parts[this.#parts.length - 1];
    if (last !== undefined && Math.abs(last) >= huge) {
      this.#parts.pop();
      add(this.#hugeParts, last / scale);
    }
  }

  /** Returns the sum divided by `count`: NaN if there were infinities of both signs. */
  value(count = 1): number {
    if (this.#infinite !== 0) return this.#infinite;
    if (this.#hugeParts.length === 0) return rounded(this.#parts) / count;
    const all = [...this.#hugeParts];
    // A part that is too small to be scaled down can only decide between two numbers, and for that its sign is enough.
    for (const part of this.#parts) add(all, part / scale || Math.sign(part) * Number.MIN_VALUE);
    const total = rounded(all);
    if (Math.abs(total) < huge / scale) {
      // The huge numbers cancel each other, or nearly. Nothing overflows, and the others must not be scaled down.
      const plain = [...this.#parts];
      for (const part of this.#hugeParts) add(plain, part * scale);
      return rounded(plain) / count;
    }
    // Divided before it is scaled up: a mean may be finite where the sum is not.
    return (total / count) * scale;
  }
}
