/** Selectors for 64-bit integers and UUIDs, word by word: comparing them makes no bigint and no string. */
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { writeUuid } from '../format/values.ts';
import type { FieldValue } from './comparison.ts';
import { SignSelector } from './sign-selector.ts';

/** 64-bit integers: a high word, which has the sign, and a low one. */
export class BigintSelector extends SignSelector {
  readonly cost = 4;
  readonly #signed: boolean;
  readonly #high: Float64Array;
  readonly #low: Float64Array;

  constructor(field: LayoutField, values: readonly FieldValue[], accepted: number, orNull: boolean) {
    super(field, values.length, accepted, orNull);
    this.#signed = field.typeId === Types.int64;
    // Shifting keeps the sign, so that the high word of an int64 is signed, and that of a uint64 is not.
    this.#high = Float64Array.from(values, (value) => Number((value as bigint) >> 32n));
    this.#low = Float64Array.from(values, (value) => Number(BigInt.asUintN(32, value as bigint)));
  }

  compare({ rowsView: view }: RowSource, at: number, i: number): number {
    const high = this.#signed ? view.getInt32(at + 4, true) : view.getUint32(at + 4, true);
    const difference = high - (this.#high[i] as number);
    return difference === 0 ? view.getUint32(at, true) - (this.#low[i] as number) : difference;
  }
}

/** UUIDs: four words, as they stand. */
export class UuidSelector extends SignSelector {
  readonly cost = 4;
  readonly #words: DataView;

  constructor(field: LayoutField, values: readonly FieldValue[], accepted: number, orNull: boolean) {
    super(field, values.length, accepted, orNull);
    const bytes = new Uint8Array(values.length * 16);
    for (let i = 0; i < values.length; i++) writeUuid(values[i] as string, bytes, i * 16);
    this.#words = new DataView(bytes.buffer);
  }

  compare({ rowsView: view }: RowSource, at: number, i: number): number {
    for (let word = 0; word < 16; word += 4) {
      const difference = view.getUint32(at + word) - this.#words.getUint32(i * 16 + word);
      if (difference !== 0) return difference;
    }
    return 0;
  }
}
