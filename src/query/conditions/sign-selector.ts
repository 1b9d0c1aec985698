/**
 * What selectors have in common that compare a row's bytes with those of values and cannot turn them into numbers: text,
 * bytes, 64-bit integers and UUIDs. How a row's value compares to another is one of three signs.
 */
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import type { ComparisonOperator } from './comparison.ts';
import type { Selector } from './selector.ts';

export const signLess = 1;
export const signEqual = 2;
export const signGreater = 4;

/** The signs that an operator accepts, as a sum. */
export function signsOf(operator: ComparisonOperator): number {
  switch (operator) {
    case '<':
      return signLess;
    case '<=':
      return signLess | signEqual;
    case '=':
      return signEqual;
    case '!=':
      return signLess | signGreater;
    case '>=':
      return signGreater | signEqual;
    case '>':
      return signGreater;
  }
}

export abstract class SignSelector implements Selector {
  abstract readonly cost: number;
  readonly field: LayoutField;
  /** How many values rows are compared with. */
  readonly #values: number;
  readonly #accepted: number;
  readonly #orNull: boolean;

  /** Keeps rows whose value compares to the only value with an accepted sign, or equals one of several, ascending. */
  constructor(field: LayoutField, values: number, accepted: number, orNull: boolean) {
    this.field = field;
    this.#values = values;
    this.#accepted = accepted;
    this.#orNull = orNull;
  }

  /** Negative, zero or positive: the value at `at` compared with value `i`. */
  abstract compare(source: RowSource, at: number, i: number): number;

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const { rows } = source;
    const { nullByte, nullMask, offset } = this.field;
    const accepted = this.#accepted;
    const single = this.#values === 1;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      const row = first + pick * stride;
      picks[kept] = pick;
      if (((rows[row + nullByte] as number) & nullMask) !== 0) {
        if (this.#orNull) kept++;
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
