/** What rows take in memory once they are decoded, as an estimate: queries that collect them count it. */
import { Node } from '../../format/node.ts';
import { EntryRows } from './entry-reader.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';

/** Of an object, of a value in it, and of a string beside its text, in bytes. */
const objectBytes = 40;
const valueBytes = 16;
const stringBytes = 24;

export class RowSize {
  readonly #fixedBytes: number;
  readonly #hasText: boolean;

  constructor(fields: readonly LayoutField[]) {
    const texts = fields.filter(({ variable }) => variable).length;
    this.#fixedBytes = objectBytes + fields.length * valueBytes + texts * stringBytes;
    this.#hasText = texts > 0;
  }

  /** Bytes of a decoded row of this source. Its strings are parts of a text of the whole source. */
  of(source: RowSource): number {
    if (this.#hasText && source instanceof EntryRows) return this.#fixedBytes + source.sizeBytes / source.count;
    if (!this.#hasText || !(source instanceof Node)) return this.#fixedBytes;
    return this.#fixedBytes + source.sizeBytes / source.count;
  }
}
