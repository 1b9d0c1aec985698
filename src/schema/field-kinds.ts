/**
 * Fields that are more than their type: {@link enumOf}, {@link date} and {@link decimal}. The stored schema knows the type only. The kind
 * of a field is a property under a symbol, which `{ ...date(), required: true }` copies, and which no stored form contains.
 */
import { isDate } from '../base/brands.ts';
import { EncodeError, InvalidOptionError, InvalidQueryError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { bigintBounds, Types } from '../format/types.ts';

/** Names the kind of a field. It is the same in every copy of the package: definitions may come from another one. */
const kindName: unique symbol = Symbol.for('store-db.field-kind') as typeof kindName;

/** The kind of a field. */
export type FieldKind = { readonly kind: 'date' } | { readonly kind: 'decimal'; readonly scale: number };

interface OfKind {
  readonly [kindName]: FieldKind;
}

/** Returns the kind of a field; undefined for a field that is only of its type. */
export function kindOf(field: object): FieldKind | undefined {
  return (field as Partial<OfKind>)[kindName];
}

/** The fields of a table that are more than their type. Queries hold it, which readers without such fields load too: they take the type only. */
export class FieldKinds {
  readonly #table: string;
  readonly #functions: Names;
  readonly #kinds = new Map<string, FieldKind | typeof ofBlob>();

  /** `functions`: those that win over fields of their names. */
  constructor(table: string, fields: Readonly<Record<string, { readonly typeId: unknown }>>, functions: Names) {
    this.#table = table;
    this.#functions = functions;
    for (const [name, field] of Object.entries(fields)) {
      const kind = field.typeId === Types.blob ? ofBlob : kindOf(field);
      // A copy may have been given another type.
      if (kind !== undefined && field.typeId === typesOf[kind.kind]) this.#kinds.set(name, kind);
    }
  }

  get size(): number {
    return this.#kinds.size;
  }

  /** Whether a field takes fewer values in comparisons than its type. */
  has(name: string): boolean {
    const kind = this.#kinds.get(name);
    return kind !== undefined && kind !== ofBlob;
  }

  /**
   * Returns how to write a value of a field, as a sentence; undefined if the field can have it. `isBound`: the value is compared with the
   * field, and may be infinite.
   */
  adviceFor(name: string, value: unknown, isBound: boolean): string | undefined {
    const kind = this.#kinds.get(name);
    return kind && kindAdvice(kind, value, isBound);
  }

  /** Throws `InvalidQueryError` for a value that a field cannot be compared with. */
  check(conditions: Iterable<ComparedField>): void {
    for (const { name, operator, captured } of conditions) {
      // The beginning of a value is no value.
      if (!this.has(name) || operator === 'PREFIX' || this.#functions.has(name)) continue;
      for (const value of Array.isArray(captured) ? (captured as unknown[]) : [captured]) {
        const advice = this.adviceFor(name, value, true);
        if (advice === undefined) continue;
        const problem = `Cannot compare field '${name}' of table '${this.#table}' with ${describeValue(value)}.`;
        throw new InvalidQueryError(`${problem} ${advice}`);
      }
    }
  }
}

interface Names {
  has(name: string): boolean;
}

/** A condition of a query on a field. */
interface ComparedField {
  readonly name: string;
  readonly operator: string;
  readonly captured: unknown;
}

/** A blob field holds a UUID, and an application gives it data. */
const ofBlob = { kind: 'blob' } as const;

const typesOf = { blob: Types.blob, date: Types.varchar, decimal: Types.int64 } as const;

/** A field of a few texts, as returned by {@link enumOf}. */
export interface EnumField<V extends string> {
  /** The type varchar. */
  readonly typeId: typeof Types.varchar;
  /** The texts that the field takes. */
  readonly oneOf: readonly V[];
}

/**
 * Returns a field that takes one of a few texts, or null unless it is required: `status: enumOf('open', 'done')`, or
 * `{ ...enumOf('open', 'done'), default: 'open' }`. Rows have the union of the texts as its type. It is short for `oneOf`, and stored so:
 * every instance refuses other values.
 */
export function enumOf<const V extends string>(...values: readonly [V, ...V[]]): EnumField<V> {
  return { typeId: Types.varchar, oneOf: values };
}

/** A field of calendar dates, as returned by {@link date}. */
export interface DateField {
  /** The type varchar. */
  readonly typeId: typeof Types.varchar;
  /** Ten bytes. */
  readonly maxLength: 10;
}

/**
 * Returns a field of calendar dates without a time, as texts in the order of time: `born: date()`, with values such as `'2026-11-28'`. A
 * flush refuses other texts with `ValidationError`, and days that no month has. The check is of the process that registers the
 * definition, like `validate`.
 */
export function date(): DateField {
  const field: DateField & OfKind = { typeId: Types.varchar, maxLength: 10, [kindName]: { kind: 'date' } };
  return field;
}

/** A field of exact decimal numbers, as returned by {@link decimal}. */
export interface DecimalField {
  /** The type int64. */
  readonly typeId: typeof Types.int64;
}

/** Most digits behind the point: all that an int64 can have. */
const maxScale = 18;

function checkScale(scale: unknown): asserts scale is number {
  if (Number.isInteger(scale) && (scale as number) >= 0 && (scale as number) <= maxScale) return;
  const allowed = `the number of digits behind the point, an integer from 0 to ${maxScale}`;
  throw new InvalidOptionError('scale', `The scale of a decimal is ${allowed}, not ${describeValue(scale)}.`);
}

/**
 * Returns a field of exact decimal numbers, for money: `price: decimal(2)`. Its values are whole numbers of the smallest unit, here
 * hundredths, as bigints of 64 bits, so that they are compared, ordered, indexed and summed without rounding. {@link parseDecimal} and
 * {@link formatDecimal} turn them into texts and back. `scale`: digits behind the point, 0 to 18. Throws `InvalidOptionError`.
 */
export function decimal(scale: number): DecimalField {
  checkScale(scale);
  const field: DecimalField & OfKind = { typeId: Types.int64, [kindName]: { kind: 'decimal', scale } };
  return field;
}

const decimalText = /^([+-]?)([0-9]{1,40})(?:\.([0-9]{1,40}))?$/;

/**
 * Returns a decimal number as the whole number of its smallest units: `parseDecimal('12.5', 2)` is `1250n`. `value`: a text of digits with
 * an optional sign and point, or a number or bigint, which is read as it is written. `scale`: digits behind the point, 0 to 18. Throws
 * `InvalidOptionError` for anything else, for more digits behind the point than that unless they are zeros, and for numbers that 64 bits do
 * not hold: nothing is rounded.
 */
export function parseDecimal(value: string | number | bigint, scale: number): bigint {
  checkScale(scale);
  const problem = (why: string): InvalidOptionError =>
    new InvalidOptionError(
      'value',
      `${describeValue(value)} is no decimal with ${scale} digits behind the point: ${why}.`,
    );
  const isText = typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint';
  const match = isText ? decimalText.exec(String(value).trim()) : null;
  if (match === null) throw problem("write it in digits, such as '12.50'");
  const [, sign, whole, part = ''] = match;
  if (/[1-9]/.test(part.slice(scale))) throw problem('it has more, and nothing is rounded');
  const units = BigInt(`${sign}${whole}${part.slice(0, scale).padEnd(scale, '0')}`);
  const bounds = bigintBounds(Types.int64);
  if (bounds !== undefined && (units < bounds.min || units > bounds.max)) throw problem('64 bits do not hold it');
  return units;
}

/**
 * Returns a whole number of smallest units as a decimal text: `formatDecimal(1250n, 2)` is `'12.50'`. `scale`: digits behind the point, 0 to
 * 18. Throws `InvalidOptionError`.
 */
export function formatDecimal(units: bigint, scale: number): string {
  checkScale(scale);
  if (typeof units !== 'bigint') {
    throw new InvalidOptionError('units', `The value of a decimal field is a bigint, not ${describeValue(units)}.`);
  }
  const digits = String(units < 0n ? -units : units).padStart(scale + 1, '0');
  const sign = units < 0n ? '-' : '';
  if (scale === 0) return sign + digits;
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const dateText = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/;

/** Returns the problem with a value of a date field, as a clause; undefined if it is the text of a day that the calendar has. */
export function dateProblem(value: unknown): string | undefined {
  return isDateText(value) ? undefined : `${describeValue(value)} is no date, such as '2026-11-28'`;
}

function isDateText(value: unknown): boolean {
  const match = typeof value === 'string' ? dateText.exec(value) : null;
  if (match === null) return false;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  const days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  return day >= 1 && day <= (days[month - 1] ?? 0);
}

/** Whole numbers are numbers of a decimal's smallest unit. */
function kindAdvice(kind: FieldKind | typeof ofBlob, value: unknown, isBound: boolean): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (kind.kind === 'blob')
    return isBound ? undefined : 'Give it db.Blob(data) for new data, or the reference that the row has there already.';
  if (kind.kind === 'date') return isDateText(value) ? undefined : dateAdvice(value);
  const isUnits = typeof value === 'bigint' || Number.isInteger(value);
  const isEndless = isBound && (value === Infinity || value === -Infinity);
  return isUnits || isEndless ? undefined : decimalAdvice(kind.scale, value);
}

function dateAdvice(value: unknown): string {
  const way = isDate(value) ? '; date.toISOString().slice(0, 10) makes that of a Date, in UTC' : '';
  return `It is a date() field: its values are the texts of days, such as '2026-11-28'${way}.`;
}

function decimalAdvice(scale: number, value: unknown): string {
  let example = scale === 0 ? '12' : `12.${'50'.padEnd(scale, '0').slice(0, scale)}`;
  try {
    // An amount that can be meant is the best example.
    parseDecimal(value as string, scale);
    example = String(value).trim();
  } catch {
    // What is given is no amount of the field.
  }
  return `It is a decimal(${scale}) field, of whole numbers of the smallest unit: parseDecimal('${example}', ${scale}) makes its values.`;
}

/** Adds to an error of a batch what a field takes that is more than its type. Returns other errors as they are. */
export function advised(error: unknown, kinds: ReadonlyMap<string, FieldKinds> | undefined): unknown {
  if (!(error instanceof EncodeError)) return error;
  const { table, field, value, message } = error;
  const advice = kinds?.get(table)?.adviceFor(field, value, false);
  return advice === undefined ? error : new EncodeError(table, field, value, `${message} ${advice}`);
}
