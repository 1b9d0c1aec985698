/** A selector for what a text, or bytes, begin with: mostly decided by the first four bytes, which rows hold themselves. */
import { compareRanges, encodeUtf8 } from '../../base/bytes.ts';
import { heapPlace } from '../../format/row-decode.ts';
import { inlineBytes, nonAsciiFlag } from '../../format/row-layout.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import type { Selector } from './selector.ts';

export class PrefixSelector implements Selector {
  readonly cost = 5;
  readonly #field: LayoutField;
  readonly #prefix: Uint8Array;
  /** The first four bytes of the prefix, or as many as there are, as one number; and which bits of a row's to look at. */
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
