/**
 * Filters: the residual conditions of an access. A filter consists of selectors, which are compiled conditions. They test many encoded
 * rows at a time and narrow a selection vector, a list of row positions; they decode, allocate and call nothing per row.
 */
import type { RowSource, LayoutField } from '../../format/row-layout.ts';

/** The most work in one step, as rows times the cost of each: some milliseconds. */
const costOfStep = 2_000_000;

/** Tests conditions that must all hold, cheap ones first, and a bound, if there is one, that tightens while a query runs. */
export class Filter implements Selector {
  /** The cheap ones first. */
  readonly selectors: readonly Selector[];
  /** A selection vector of one row. It holds a zero, also after a selection. */
  #onlyPick: Int32Array | undefined = undefined;
  /** The approximate cost per row if all selectors test it. */
  readonly cost: number;
  /** Whether there are no selectors. */
  readonly empty: boolean;
  /** Whether testing a row is so slow that as few rows as possible should be tested. */
  readonly slow: boolean;
  /** The condition that a row must also meet to be among the first rows of a sort, as known so far. */
  bound: Selector | undefined = undefined;

  constructor(selectors: readonly Selector[]) {
    this.selectors = selectors.length < 2 ? selectors : selectors.toSorted((a, b) => a.cost - b.cost);
    let sum = 0;
    for (const { cost } of selectors) sum += cost;
    this.cost = sum;
    this.empty = selectors.length === 0;
    this.slow = selectors.some(({ cost }) => cost >= slowCost);
  }

  /** Returns the number of rows that may be tested without a pause: `most`, or fewer for thousands of conditions. At least one. */
  rowsAtOnce(most: number): number {
    return this.cost * most <= costOfStep ? most : Math.max(1, Math.floor(costOfStep / this.cost));
  }

  timeBy(timeOf: TimeOf): number {
    let sum = 0;
    for (const selector of this.selectors) sum += timeOf(selector);
    return sum;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    let kept = count;
    if (this.bound !== undefined) kept = this.bound.select(source, first, stride, picks, kept);
    for (let i = 0; i < this.selectors.length && kept > 0; i++) {
      kept = (this.selectors[i] as Selector).select(source, first, stride, picks, kept);
    }
    return kept;
  }

  /** Tests consecutive rows, puts those that match into `picks`, which has room for all, and returns their number. */
  selectRun(run: Run, picks: Int32Array): number {
    const { source, first, stride } = run;
    const selectors = this.selectors;
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
    if (this.selectors.length === 0 && this.bound === undefined) return true;
    return this.select(source, base, 0, (this.#onlyPick ??= new Int32Array(1)), 1) === 1;
  }
}

/** A copy of the caller's picks to work on. */
class Scratch {
  #picks: Int32Array = new Int32Array(64);

  /** Copies the first picks. */
  copy(picks: Int32Array, count: number): Int32Array {
    if (this.#picks.length < count) this.#picks = new Int32Array(count);
    for (let k = 0; k < count; k++) this.#picks[k] = picks[k] as number;
    return this.#picks;
  }
}

/** Removes the elements of `taken` from `picks`, which has all of them in the same order. Returns the number that stay. */
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

/** Selects rows that a selector does not match. */
export class ComplementSelector implements Selector {
  readonly cost: number;
  readonly opposite: Selector;
  readonly #scratch = new Scratch();

  constructor(selector: Selector) {
    this.opposite = selector;
    this.cost = selector.cost + 1;
  }

  timeBy(timeOf: TimeOf): number {
    return timeOf(this.opposite);
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const matching = this.#scratch.copy(picks, count);
    const matches = this.opposite.select(source, first, stride, matching, count);
    return matches === 0 ? count : without(picks, count, matching, matches);
  }
}

/** The assumed part of the rows that the cheapest of several selectors leaves to each of the others. */
const partLeft = 0.5;

/** Selects rows that at least one of several selectors matches. */
export class AnySelector implements Selector {
  readonly cost: number;
  readonly #selectors: readonly Selector[];
  #time = 0;
  readonly #rest = new Scratch();
  readonly #matching = new Scratch();

  /** Cheap selectors come first: the others test only rows that no cheaper one matches. */
  constructor(selectors: readonly Selector[]) {
    this.#selectors = selectors;
    this.cost = selectors.reduce((sum, { cost }) => sum + cost, 1);
  }

  timeBy(timeOf: TimeOf): number {
    if (this.#time > 0) return this.#time;
    let part = 1;
    for (const selector of this.#selectors) {
      this.#time += part * timeOf(selector);
      part = partLeft;
    }
    return this.#time;
  }

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    const rest = this.#rest.copy(picks, count);
    let left = count;
    for (let i = 0; i < this.#selectors.length && left > 0; i++) {
      const matching = this.#matching.copy(rest, left);
      const matches = (this.#selectors[i] as Selector).select(source, first, stride, matching, left);
      if (matches > 0) left = without(rest, left, matching, matches);
    }
    return left === 0 ? count : without(picks, count, rest, left);
  }
}

/** The most rows that a selector tests in one call: the size of its scratch space. */
export const maxPicks = 1024;

/** The cost from which a selector counts as slow: it decodes whole rows and calls functions of the application. */
export const slowCost = 1000;

/** Returns the expected time of testing a row by a selector. */
type TimeOf = (selector: Selector) => number;

export interface Selector {
  /** The approximate cost per row. Cheap selectors are tried first. */
  readonly cost: number;
  /**
   * Narrows the first `count` elements of `picks` to those whose rows match: moves them to its beginning, in their order, and returns
   * their number. Pick `p` means the row at `first + p * stride`.
   */
  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number;
  /** Returns the expected time of testing a row, by those of other selectors. Absent: its cost tells. */
  timeBy?(timeOf: TimeOf): number;
  /**
   * Tests consecutive rows, puts those that match into `picks`, ascending, and returns their number. For the first selector of a scan
   * this is faster than listing all rows first.
   */
  selectRun?(run: Run, picks: Int32Array): number;
}

/** Selects rows that it looks at one by one: for tests of which each takes longer than a call. */
export abstract class RowSelector implements Selector {
  abstract readonly cost: number;

  select(source: RowSource, first: number, stride: number, picks: Int32Array, count: number): number {
    let kept = 0;
    for (let k = 0; k < count; k++) {
      const pick = picks[k] as number;
      picks[kept] = pick;
      if (this.matches(source, first + pick * stride)) kept++;
    }
    return kept;
  }

  /** Whether the row at `base` matches. */
  protected abstract matches(source: RowSource, base: number): boolean;
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
