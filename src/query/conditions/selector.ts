/**
 * Selectors: compiled conditions. They test many encoded rows at a time and narrow a selection vector, a list of row positions.
 * They decode, allocate and call nothing per row.
 */
import type { LayoutField, RowSource } from '../../format/row-layout.ts';

/** The most rows that a selector tests in one call: the size of its scratch space. */
export const maxPicks = 1024;

/** The cost from which a selector counts as slow: it decodes whole rows and calls functions of the application. */
export const slowCost = 1000;

export interface Selector {
  /** The approximate cost per row. Cheap selectors are tried first. */
  readonly cost: number;
  /**
   * Narrows the first `count` elements of `picks` to those whose rows match: moves them to its beginning, in their order, and returns
   * their number. Pick `p` means the row at `first + p * stride`.
   */
  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number;
  /**
   * Tests consecutive rows, puts those that match into `picks`, ascending, and returns their number. For the first selector of a scan
   * this is faster than listing all rows first.
   */
  selectRun?(run: Run, picks: Int32Array): number;
}

/** Consecutive rows: row `p` begins at `first + p * stride`. */
export interface Run {
  readonly source: RowSource;
  readonly first: number;
  readonly stride: number;
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
}

/** Puts the positions of all rows of a run into `picks`, and returns their number. */
export function pickAll({ from, to }: Run, picks: Int32Array): number {
  for (let p = from, k = 0; p < to; p++, k++) picks[k] = p;
  return to - from;
}

/** Selects rows in which a field is null, or is not null. */
export class NullSelector implements Selector {
  readonly cost = 1;
  readonly #field: LayoutField;
  readonly #wanted: number;

  constructor(field: LayoutField, wantsNull: boolean) {
    this.#field = field;
    this.#wanted = wantsNull ? field.nullMask : 0;
  }

  select({ rows }: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const { nullByte, nullMask } = this.#field;
    const wanted = this.#wanted;
    const at = first + nullByte;
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      if (((rows[at + pick * stride] as number) & nullMask) === wanted) kept++;
    }
    return kept;
  }
}

/** Selects every row. */
export const selectAll: Selector = { cost: 0, select: (_source, _first, _stride, _picks, count) => count };

/** Selects no row. */
export const selectNothing: Selector = { cost: 0, select: () => 0 };
