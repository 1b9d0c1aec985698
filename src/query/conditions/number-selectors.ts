/**
 * Selectors for numbers and UUIDs, and the base class of selectors by sign.
 *
 * Numbers of up to 32 bits, floats, booleans and times fit into a float64. A condition on them is a closed interval or a list of
 * numbers: one short loop per type reads the rows' values into an array of numbers, and one loop for all types tests them there.
 *
 * Text, bytes, 64-bit integers and UUIDs do not fit. Their selectors compare bytes or words, without making bigints or strings, and the
 * result is one of three signs.
 */
import { isDate } from '../../base/brands.ts';
import { itemsInStep } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import { writeUuid } from '../../format/values.ts';
import type { ComparisonOperator, FieldValue } from './comparison.ts';
import { maxPicks, pickAll } from './filter.ts';
import type { Selector, Run } from './filter.ts';

export const signLess = 1;
export const signEqual = 2;
export const signGreater = 4;

/** The signs that operators accept, as bit masks. */
export const signsOf: Readonly<Record<ComparisonOperator, number>> = {
  '<': signLess,
  '<=': signLess | signEqual,
  '=': signEqual,
  '!=': signLess | signGreater,
  '>=': signGreater | signEqual,
  '>': signGreater,
};

export abstract class SignSelector implements Selector {
  abstract readonly cost: number;
  readonly field: LayoutField;
  /** The number of values that rows are compared with. */
  readonly #values: number;
  readonly accepted: number;
  readonly orNull: boolean;

  /** Keeps rows whose value compares to the only value with an accepted sign, or equals one of several ascending values. */
  constructor(field: LayoutField, values: number, accepted: number, orNull: boolean) {
    this.field = field;
    this.#values = values;
    this.accepted = accepted;
    this.orNull = orNull;
  }

  /** Compares the value at `at` with value `i`: negative, zero or positive. */
  abstract compare(source: RowSource, at: number, i: number): number;

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const { rows } = source;
    const { nullByte, nullMask, offset } = this.field;
    const accepted = this.accepted;
    const single = this.#values === 1;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      const row = first + pick * stride;
      picks[kept] = pick;
      if (((rows[row + nullByte] as number) & nullMask) !== 0) {
        if (this.orNull) kept++;
      } else if (single) {
        const order = this.compare(source, row + offset, 0);
        const sign = order < 0 ? signLess : order > 0 ? signGreater : signEqual;
        if ((sign & accepted) !== 0) kept++;
      } else if (this.#isListed(source, row + offset)) kept++;
    }
    return kept;
  }

  #isListed(source: RowSource, at: number): boolean {
    let low = 0;
    let high = this.#values;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.compare(source, at, middle);
      if (order === 0) return true;
      if (order > 0) low = middle + 1;
      else high = middle;
    }
    return false;
  }
}

/** The size of a small array, for rows that are tested one by one. */
const fewPicks = 8;

/** Returns an array with room for the values of `count` rows: the previous one if it is large enough. */
function roomFor(count: number, before: Float64Array | undefined): Float64Array {
  if (before !== undefined && before.length >= count) return before;
  return new Float64Array(count <= fewPicks ? fewPicks : Math.max(count, maxPicks));
}

/** Reads the values of the picked rows into `loaded`. Where a row holds null, the value is arbitrary. */
function loadNumbers(
  loaded: Float64Array,
  { rows, rowsView: view }: RowSource,
  field: LayoutField,
  first: number,
  stride: number,
  picks: Int32Array,
  count: number,
): void {
  const at = first + field.offset;
  switch (field.typeId) {
    case Types.uint8:
      for (let k = 0; k < count; k++) loaded[k] = rows[at + (picks[k] as number) * stride] as number;
      return;
    case Types.boolean:
      for (let k = 0; k < count; k++) loaded[k] = rows[at + (picks[k] as number) * stride] === 0 ? 0 : 1;
      return;
    case Types.int8:
      for (let k = 0; k < count; k++) loaded[k] = view.getInt8(at + (picks[k] as number) * stride);
      return;
    case Types.uint16:
      for (let k = 0; k < count; k++) loaded[k] = view.getUint16(at + (picks[k] as number) * stride, true);
      return;
    case Types.int16:
      for (let k = 0; k < count; k++) loaded[k] = view.getInt16(at + (picks[k] as number) * stride, true);
      return;
    case Types.uint32:
      for (let k = 0; k < count; k++) loaded[k] = view.getUint32(at + (picks[k] as number) * stride, true);
      return;
    case Types.int32:
      for (let k = 0; k < count; k++) loaded[k] = view.getInt32(at + (picks[k] as number) * stride, true);
      return;
    case Types.float32:
      for (let k = 0; k < count; k++) loaded[k] = view.getFloat32(at + (picks[k] as number) * stride, true);
      return;
    default:
      for (let k = 0; k < count; k++) loaded[k] = view.getFloat64(at + (picks[k] as number) * stride, true);
  }
}

/** Returns the float64 next to `value` in a direction. Every value of a narrower type is a float64, too. */
function neighbour(value: number, direction: 1 | -1): number {
  if (value === 0) return direction * Number.MIN_VALUE;
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const away = value > 0 === direction > 0;
  bits.setBigUint64(0, bits.getBigUint64(0) + (away ? 1n : -1n));
  return bits.getFloat64(0);
}

/** Returns a value as the number that selectors read from a row. */
export function asNumber(value: FieldValue): number {
  return isDate(value) ? value.getTime() : Number(value);
}

/** Selects rows whose value lies in a closed interval, or outside of it. */
export class IntervalSelector implements Selector {
  readonly cost = 2;
  readonly #field: LayoutField;
  readonly #low: number;
  readonly #high: number;
  readonly #inside: boolean;
  readonly #orNull: boolean;
  #loaded: Float64Array | undefined = undefined;

  constructor(field: LayoutField, operator: ComparisonOperator, value: FieldValue, orNull: boolean) {
    this.#field = field;
    const number = asNumber(value);
    const lowest = Number.NEGATIVE_INFINITY;
    const highest = Number.POSITIVE_INFINITY;
    // No number is below the lowest or above the highest one: the interval is empty.
    const nothing = (operator === '<' && number === lowest) || (operator === '>' && number === highest);
    this.#low = nothing ? 1 : operator === '>' ? neighbour(number, 1) : operator.startsWith('<') ? lowest : number;
    this.#high = nothing ? 0 : operator === '<' ? neighbour(number, -1) : operator.startsWith('>') ? highest : number;
    this.#inside = operator !== '!=';
    this.#orNull = orNull;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const loaded = (this.#loaded = roomFor(count, this.#loaded));
    loadNumbers(loaded, source, this.#field, first, stride, picks, count);
    const low = this.#low;
    const high = this.#high;
    const inside = this.#inside;
    const { rows } = source;
    const { nullMask } = this.#field;
    const nullAt = first + this.#field.nullByte;
    let kept = 0;
    if (this.#orNull) {
      for (let k = 0; k < count; k++) {
        const value = loaded[k] as number;
        const pick = picks[k] as number;
        picks[kept] = pick;
        if ((value >= low && value <= high) === inside || ((rows[nullAt + pick * stride] as number) & nullMask) !== 0) {
          kept++;
        }
      }
      return kept;
    }
    for (let k = 0; k < count; k++) {
      const value = loaded[k] as number;
      const pick = picks[k] as number;
      picks[kept] = pick;
      if ((value >= low && value <= high) === inside && ((rows[nullAt + pick * stride] as number) & nullMask) === 0) {
        kept++;
      }
    }
    return kept;
  }

  selectRun(run: Run, picks: Int32Array): number {
    const { source, first, stride } = run;
    // The bytes of a null are zeros.
    const other = this.#orNull ? 0 : Number.NaN;
    const found = this.#inside ? inInterval(run, this.#field, this.#low, this.#high, other, picks) : undefined;
    if (found === undefined) return this.select(source, first, stride, picks, pickAll(run, picks));
    return this.#orNull ? this.select(source, first, stride, picks, found) : this.#withoutNulls(run, picks, found);
  }

  #withoutNulls({ source: { rows }, first, stride }: Run, picks: Int32Array, count: number): number {
    const { nullMask, nullByte } = this.#field;
    const nullAt = first + nullByte;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      if (((rows[nullAt + pick * stride] as number) & nullMask) === 0) kept++;
    }
    return kept;
  }
}

/** Picks the rows of a run whose number lies in a closed interval or equals `other`. Returns undefined for types without such a loop. */
function inInterval(
  { source: { rowsView: view }, first, stride, from, to }: Run,
  field: LayoutField,
  low: number,
  high: number,
  other: number,
  picks: Int32Array,
): number | undefined {
  let kept = 0;
  let at = first + from * stride + field.offset;
  switch (field.typeId) {
    case Types.float64:
      for (let p = from; p < to; p++, at += stride) {
        const value = view.getFloat64(at, true);
        if ((value >= low && value <= high) || value === other) picks[kept++] = p;
      }
      return kept;
    case Types.uint32:
      for (let p = from; p < to; p++, at += stride) {
        const value = view.getUint32(at, true);
        if ((value >= low && value <= high) || value === other) picks[kept++] = p;
      }
      return kept;
    case Types.int32:
      for (let p = from; p < to; p++, at += stride) {
        const value = view.getInt32(at, true);
        if ((value >= low && value <= high) || value === other) picks[kept++] = p;
      }
      return kept;
    default:
      return undefined;
  }
}

/** Whether a sorted list of numbers contains a value. */
function holds(sorted: Float64Array, value: number): boolean {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low < sorted.length && sorted[low] === value;
}

/** Selects rows whose value is in a list. */
export class NumberListSelector implements Selector {
  readonly cost = 4;
  readonly #field: LayoutField;
  readonly #sorted: Float64Array;
  readonly #orNull: boolean;
  #loaded: Float64Array | undefined = undefined;

  /** `sorted`: the results of {@link asNumber}, ascending. */
  constructor(field: LayoutField, sorted: Float64Array, orNull: boolean) {
    this.#field = field;
    this.#sorted = sorted;
    this.#orNull = orNull;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const loaded = (this.#loaded = roomFor(count, this.#loaded));
    loadNumbers(loaded, source, this.#field, first, stride, picks, count);
    const { nullMask, nullByte } = this.#field;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      const isNull = ((source.rows[first + pick * stride + nullByte] as number) & nullMask) !== 0;
      if (isNull ? this.#orNull : holds(this.#sorted, loaded[k] as number)) kept++;
    }
    return kept;
  }
}

/** The high and low words of several 64-bit integers. */
interface Words {
  readonly high: Float64Array;
  readonly low: Float64Array;
}

/** Splits 64-bit integers into words. */
export function* wordsOf(values: readonly bigint[]): Steps<Words> {
  const high = new Float64Array(values.length);
  const low = new Float64Array(values.length);
  for (const [i, value] of values.entries()) {
    // Shifting keeps the sign, so that the high word of an int64 is signed, and that of a uint64 is not.
    high[i] = Number(value >> 32n);
    low[i] = Number(BigInt.asUintN(32, value));
    if ((i + 1) % itemsInStep === 0) yield;
  }
  return { high, low };
}

/** Returns the bytes of UUIDs, one after the other. */
export function* uuidWords(values: readonly string[]): Steps<DataView> {
  const bytes = new Uint8Array(values.length * 16);
  for (const [i, value] of values.entries()) {
    writeUuid(value, bytes, i * 16);
    if ((i + 1) % itemsInStep === 0) yield;
  }
  return new DataView(bytes.buffer);
}

/** Selects by a 64-bit integer: a high word, which has the sign, and a low one. */
export class BigintSelector extends SignSelector {
  readonly cost = 4;
  readonly #signed: boolean;
  readonly #high: Float64Array;
  readonly #low: Float64Array;

  constructor(field: LayoutField, count: number, accepted: number, orNull: boolean, { high, low }: Words) {
    super(field, count, accepted, orNull);
    this.#signed = field.typeId === Types.int64;
    this.#high = high;
    this.#low = low;
  }

  compare({ rowsView: view }: RowSource, at: number, i: number): number {
    const high = this.#signed ? view.getInt32(at + 4, true) : view.getUint32(at + 4, true);
    const difference = high - (this.#high[i] as number);
    return difference === 0 ? view.getUint32(at, true) - (this.#low[i] as number) : difference;
  }
}

/** Selects by a UUID: four words. */
export class UuidSelector extends SignSelector {
  readonly cost = 4;
  readonly #words: DataView;

  constructor(field: LayoutField, count: number, accepted: number, orNull: boolean, words: DataView) {
    super(field, count, accepted, orNull);
    this.#words = words;
  }

  compare({ rowsView: view }: RowSource, at: number, i: number): number {
    for (let word = 0; word < 16; word += 4) {
      const difference = view.getUint32(at + word) - this.#words.getUint32(i * 16 + word);
      if (difference !== 0) return difference;
    }
    return 0;
  }
}
