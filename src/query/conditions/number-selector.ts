/**
 * Selectors for fields whose values a float64 holds exactly: numbers of up to 32 bits, floats, booleans and times.
 * A condition on them is a closed interval, or a list of numbers. Rows are first read into an array of numbers, by one
 * short loop per type, and then tested there, by one loop for all types.
 */
import { isDate } from '../../base/brands.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import type { ComparisonOperator, FieldValue } from './comparison.ts';
import { maxPicks, pickAll } from './selector.ts';
import type { Run, Selector } from './selector.ts';

/** Room for few values, and for as many as are ever picked: rows are tested one by one, or many together. */
const fewPicks = 8;

/** Room for the values of so many picked rows: what there was, if it is enough. */
function roomFor(count: number, before: Float64Array | undefined): Float64Array {
  if (before !== undefined && before.length >= count) return before;
  return new Float64Array(count <= fewPicks ? fewPicks : Math.max(count, maxPicks));
}

/** Reads the values of the picked rows into `loaded`, arbitrary ones where a row holds null. */
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

/** The float64 next to `value` in a direction; the values of every narrower type lie among the float64s. */
function neighbour(value: number, direction: 1 | -1): number {
  if (value === 0) return direction * Number.MIN_VALUE;
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, value);
  const away = value > 0 === direction > 0;
  bits.setBigUint64(0, bits.getBigUint64(0) + (away ? 1n : -1n));
  return bits.getFloat64(0);
}

/** The number that a row's bytes are read as. */
export function asNumber(value: FieldValue): number {
  return isDate(value) ? value.getTime() : Number(value);
}

/** Rows whose value lies in a closed interval, or outside of it. */
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
    // Nothing is below the lowest or above the highest: an interval that is empty.
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
    // In place of a null there are zeros.
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

/** The rows of a run whose bytes say a number that lies in a closed interval, or is `other`. */
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

/** Whether a sorted list of numbers holds one. */
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

/** Rows whose value is one of a list. */
export class NumberListSelector implements Selector {
  readonly cost = 4;
  readonly #field: LayoutField;
  readonly #sorted: Float64Array;
  readonly #orNull: boolean;
  #loaded: Float64Array | undefined = undefined;

  /** `sorted`: as {@link asNumber} makes them of values. */
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
