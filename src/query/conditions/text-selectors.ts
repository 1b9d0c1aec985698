/**
 * Selectors for text and bytes, on the views that rows hold. The view of a value has its first four bytes, so that most comparisons need
 * not read the heap. UTF-8 bytes sort as code points do.
 */
import { compareRanges, encodeUtf8 } from '../../base/bytes.ts';
import { heapPlace } from '../../format/row-decode.ts';
import { inlineBytes, nonAsciiFlag } from '../../format/row-layout.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import type { FieldValue } from './comparison.ts';
import { signEqual, signGreater, signLess, SignSelector } from './number-selectors.ts';
import { pickAll } from './filter.ts';
import type { Run, Selector } from './filter.ts';

/** Returns the first four bytes as one number, padded with zeros. Values with different heads sort as their heads do. */
export function headOf(bytes: Uint8Array): number {
  let head = 0;
  for (let i = 0; i < 4; i++) head = head * 256 + (bytes[i] ?? 0);
  return head;
}

/** Returns the bytes of a value as rows hold them. */
export function textBytes(value: FieldValue): Uint8Array {
  return typeof value === 'string' ? encodeUtf8(value) : (value as Uint8Array);
}

export class TextSelector extends SignSelector {
  readonly cost = 6;
  readonly #values: readonly Uint8Array[];
  readonly #heads: Float64Array;

  constructor(
    field: LayoutField,
    values: readonly Uint8Array[],
    accepted: number,
    orNull: boolean,
    heads: Float64Array,
  ) {
    super(field, values.length, accepted, orNull);
    this.#values = values;
    this.#heads = heads;
  }

  compare(source: RowSource, at: number, i: number): number {
    const difference = source.rowsView.getUint32(at + 4) - (this.#heads[i] as number);
    return difference === 0 ? this.#compareWhole(source, at, this.#values[i] as Uint8Array) : difference;
  }

  #compareWhole(source: RowSource, at: number, value: Uint8Array): number {
    const length = source.rowsView.getUint32(at, true) & ~nonAsciiFlag;
    if (length <= inlineBytes) return compareRanges(source.rows, at + 4, at + 4 + length, value, 0, value.length);
    const start = heapPlace(source, at, length, this.field);
    return compareRanges(source.heap, start, start + length, value, 0, value.length);
  }

  /** Selects as all sign selectors do, but by the heads alone where they differ. */
  override select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    if (this.#values.length !== 1) return super.select(source, first, stride, picks, count);
    const { rows, rowsView: view } = source;
    const { nullByte, nullMask, offset } = this.field;
    const value = this.#values[0] as Uint8Array;
    const head = this.#heads[0] as number;
    const accepted = this.accepted;
    const equalOnly = accepted === signEqual;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      const row = first + pick * stride;
      const at = row + offset;
      const other = view.getUint32(at + 4);
      picks[kept] = pick;
      let sign: number;
      if (other !== head) sign = other < head ? signLess : signGreater;
      else if (equalOnly && (view.getUint32(at, true) & ~nonAsciiFlag) !== value.length) sign = signLess;
      else {
        const order = this.#compareWhole(source, at, value);
        sign = order < 0 ? signLess : order > 0 ? signGreater : signEqual;
      }
      const isNull = ((rows[row + nullByte] as number) & nullMask) !== 0;
      if (isNull ? this.orNull : (sign & accepted) !== 0) kept++;
    }
    return kept;
  }

  /** Tests equality with one value by a fast loop: most rows fail by their heads, and nothing else of them is read. */
  selectRun(run: Run, picks: Int32Array): number {
    const { source, first, stride, from, to } = run;
    if (this.#values.length !== 1 || this.accepted !== signEqual || this.orNull) {
      return this.select(source, first, stride, picks, pickAll(run, picks));
    }
    const { rows, rowsView: view } = source;
    const { nullByte, nullMask, offset } = this.field;
    const value = this.#values[0] as Uint8Array;
    const head = (this.#heads[0] as number) | 0;
    let kept = 0;
    for (let p = from, row = first + from * stride; p < to; p++, row += stride) {
      const at = row + offset;
      if (view.getInt32(at + 4) !== head) continue;
      if ((view.getUint32(at, true) & ~nonAsciiFlag) !== value.length) continue;
      if (((rows[row + nullByte] as number) & nullMask) !== 0) continue;
      if (value.length <= 4 || this.#compareWhole(source, at, value) === 0) picks[kept++] = p;
    }
    return kept;
  }
}

/** Selects by the beginning of a text or of bytes. The first four bytes, which are in the row's view, decide in most cases. */

export class PrefixSelector implements Selector {
  readonly cost = 5;
  readonly #field: LayoutField;
  readonly #prefix: Uint8Array;
  /** The first four bytes of the prefix, or fewer, as one number; and the mask for the bytes of a row that it has. */
  readonly #head: number;
  readonly #mask: number;

  constructor(field: LayoutField, prefix: string | Uint8Array) {
    this.#field = field;
    this.#prefix = typeof prefix === 'string' ? encodeUtf8(prefix) : prefix;
    let head = 0;
    let mask = 0;
    for (let i = 0; i < 4; i++) {
      head = (head << 8) | (this.#prefix[i] ?? 0);
      mask = (mask << 8) | (i < this.#prefix.length ? 0xff : 0);
    }
    this.#head = head;
    this.#mask = mask;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const { rows, rowsView: view } = source;
    const { nullByte, nullMask, offset } = this.#field;
    const head = this.#head;
    const mask = this.#mask;
    const wanted = this.#prefix.length;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      const row = first + pick * stride;
      const at = row + offset;
      picks[kept] = pick;
      if ((view.getInt32(at + 4) & mask) !== head) continue;
      const length = (view.getUint32(at, true) & ~nonAsciiFlag) >>> 0;
      if (length < wanted || ((rows[row + nullByte] as number) & nullMask) !== 0) continue;
      if (wanted <= 4 || this.#goesOn(source, at, length)) kept++;
    }
    return kept;
  }

  #goesOn(source: RowSource, at: number, length: number): boolean {
    const prefix = this.#prefix;
    const inline = length <= inlineBytes;
    const start = inline ? at + 4 : heapPlace(source, at, length, this.#field);
    const bytes = inline ? source.rows : source.heap;
    return compareRanges(bytes, start, start + prefix.length, prefix, 0, prefix.length) === 0;
  }
}
