/** Selectors for 64-bit integers and UUIDs, word by word: comparing them makes no bigint and no string. */
import { itemsInStep } from '../../base/steps.ts';
import type { Steps } from '../../base/steps.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import { writeUuid } from '../../format/values.ts';
import { SignSelector } from './sign-selector.ts';

/** Of several 64-bit integers. */
interface Words {
  readonly high: Float64Array;
  readonly low: Float64Array;
}

/** The words of 64-bit integers. */
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

/** The words of UUIDs. */
export function* uuidWords(values: readonly string[]): Steps<DataView> {
  const bytes = new Uint8Array(values.length * 16);
  for (const [i, value] of values.entries()) {
    writeUuid(value, bytes, i * 16);
    if ((i + 1) % itemsInStep === 0) yield;
  }
  return new DataView(bytes.buffer);
}

/** 64-bit integers: a high word, which has the sign, and a low one. */
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

/** UUIDs: four words, as they stand. */
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
