/**
 * Selectors: compiled conditions. They work on encoded rows, many at a time, and on selection vectors: lists of row
 * positions of which those that match are kept. Nothing is decoded, allocated or called per row.
 */
import type { LayoutField, RowSource } from '../../format/row-layout.ts';

/** Most rows that are selected from at a time: as many as the scratch space of selectors has room for. */
export const maxPicks = 1024;

/** Cost from which on a selector counts as slow: it decodes whole rows and runs foreign code. */
export const slowCost = 1000;

/** Rows times the cost of each that are tested in one step at most: some milliseconds. */
const costOfStep = 2_000_000;

export interface Selector {
  /** About what it costs per row, to try cheap ones first. */
  readonly cost: number;
  /**
   * Keeps those of the first `count` of `picks` whose rows match, in their order, at its beginning, and returns how
   * many they are. Pick `p` means the row at `first + p * stride`.
   */
  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number;
  /**
   * Tests the rows `from` to `to`, one after the other, and puts those that match into `picks`, ascending. Where a
   * scan begins, it is faster than to list all rows first.
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

/** Puts the positions of all rows of a run into `picks`. */
export function pickAll({ from, to }: Run, picks: Int32Array): number {
  for (let p = from, k = 0; p < to; p++, k++) picks[k] = p;
  return to - from;
}

/** Rows in which a field is null, or is not. */
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

/** Every row. */
export const selectAll: Selector = { cost: 0, select: (_source, _first, _stride, _picks, count) => count };

/** No row at all. */
export const selectNothing: Selector = { cost: 0, select: () => 0 };

/** Conditions that must all hold, cheap ones first, and perhaps a bound that tightens while a query runs. */
export class Filter {
  readonly #selectors: readonly Selector[];
  /** A selection vector of one row. Whatever is selected from it, it holds a zero. */
  #onlyPick: Int32Array | undefined = undefined;
  /** About what it costs per row, if all of them are asked. */
  readonly cost: number;
  /** What a row must also satisfy to be among the first ones, as far as is known by now. */
  bound: Selector | undefined = undefined;

  constructor(selectors: readonly Selector[]) {
    this.#selectors = selectors.length < 2 ? selectors : selectors.toSorted((a, b) => a.cost - b.cost);
    let sum = 0;
    for (const { cost } of selectors) sum += cost;
    this.cost = sum;
  }

  /** How many rows may be tested without a pause: `most`, unless there are thousands of conditions. At least one. */
  rowsAtOnce(most: number): number {
    return this.cost * most <= costOfStep ? most : Math.max(1, Math.floor(costOfStep / this.cost));
  }

  get empty(): boolean {
    return this.#selectors.length === 0;
  }

  /** Whether every row takes so long that as few as possible should be looked at. */
  get slow(): boolean {
    return this.#selectors.some(({ cost }) => cost >= slowCost);
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    let kept = count;
    if (this.bound !== undefined) kept = this.bound.select(source, first, stride, picks, kept);
    for (let i = 0; i < this.#selectors.length && kept > 0; i++) {
      kept = (this.#selectors[i] as Selector).select(source, first, stride, picks, kept);
    }
    return kept;
  }

  /** Tests consecutive rows, and puts those that match into `picks`, which has room for all. */
  selectRun(run: Run, picks: Int32Array): number {
    const { source, first, stride } = run;
    const selectors = this.#selectors;
    let next = 0;
    const begin = this.bound ?? selectors[next++];
    let kept: number;
    if (begin?.selectRun !== undefined) kept = begin.selectRun(run, picks);
    else {
      kept = pickAll(run, picks);
      if (begin !== undefined) kept = begin.select(source, first, stride, picks, kept);
    }
    for (; next < selectors.length && kept > 0; next++) {
      kept = (selectors[next] as Selector).select(source, first, stride, picks, kept);
    }
    return kept;
  }

  /** Whether the one row at `base` matches. */
  matches(source: RowSource, base: number): boolean {
    if (this.#selectors.length === 0 && this.bound === undefined) return true;
    return this.select(source, base, 0, (this.#onlyPick ??= new Int32Array(1)), 1) === 1;
  }
}

// Selectors made of others: rows that one of several matches, and rows that one does not match.

/** Picks that are worked on while those of the caller stay as they are. */
class Scratch {
  #picks: Int32Array = new Int32Array(64);

  /** A copy of the first picks. */
  copy(picks: Int32Array, count: number): Int32Array {
    if (this.#picks.length < count) this.#picks = new Int32Array(count);
    for (let k = 0; k < count; k++) this.#picks[k] = picks[k] as number;
    return this.#picks;
  }
}

/** Takes those that are in `taken` out of `picks`; both in one order, all of `taken` in `picks`. Returns how many stay. */
function without(picks: Int32Array, count: number, taken: Int32Array, takenCount: number): number {
  let kept = 0;
  let next = 0;
  for (let k = 0; k < count; k++) {
    const pick = picks[k] as number;
    if (next < takenCount && taken[next] === pick) next++;
    else picks[kept++] = pick;
  }
  return kept;
}

/** Rows that a selector does not match. */
export class ComplementSelector implements Selector {
  readonly cost: number;
  readonly #selector: Pick<Selector, 'select'>;
  readonly #scratch = new Scratch();

  constructor(selector: Selector) {
    this.#selector = selector;
    this.cost = selector.cost + 1;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const matching = this.#scratch.copy(picks, count);
    const matches = this.#selector.select(source, first, stride, matching, count);
    return matches === 0 ? count : without(picks, count, matching, matches);
  }
}

/** Rows that match at least one of several filters. */
export class AnySelector implements Selector {
  readonly cost: number;
  readonly #filters: readonly Filter[];
  readonly #rest = new Scratch();
  readonly #matching = new Scratch();

  constructor(filters: readonly Filter[]) {
    // The cheap ones first: the others are asked only about rows that none of them matches.
    this.#filters = filters.toSorted((a, b) => a.cost - b.cost);
    this.cost = filters.reduce((sum, { cost }) => sum + cost, 1);
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const rest = this.#rest.copy(picks, count);
    let left = count;
    for (let i = 0; i < this.#filters.length && left > 0; i++) {
      const matching = this.#matching.copy(rest, left);
      const matches = (this.#filters[i] as Filter).select(source, first, stride, matching, left);
      if (matches > 0) left = without(rest, left, matching, matches);
    }
    return left === 0 ? count : without(picks, count, rest, left);
  }
}
