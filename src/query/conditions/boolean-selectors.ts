/** Selectors made of others: rows that one of several matches, and rows that one does not match. */
import type { RowSource } from '../../format/row-layout.ts';
import type { Filter, Selector } from './selector.ts';

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
