/** Rows that are looked up one by one, by primary key: many at a time where their blocks must be read first. */
import { isPromise } from '../../base/brands.ts';
import type { RowSource } from '../../format/row-layout.ts';
import type { ReadMemory } from '../../cache/query-memory.ts';
import type { TableState } from '../../view/table-state.ts';
import type { RowHit } from '../../tree/tree.ts';
import type { HitList, HitStream } from './row-batch.ts';
import type { QueryWork } from './work-counters.ts';
import type { Filter } from '../conditions/selector.ts';

/** A row, or that there is none to add. */
export type Found = RowHit | undefined;

/** Lookups under way together. Their rows are added in the order in which they were asked for. */
export class Lookups {
  readonly #filter: Filter;
  readonly #hits: HitList;
  readonly #work: QueryWork;
  /** From the first row on that is not in memory. */
  #late: Promise<Found>[] | undefined;

  constructor(filter: Filter, hits: HitList, work: QueryWork) {
    this.#filter = filter;
    this.#hits = hits;
    this.#work = work;
  }

  add(found: Found | Promise<Found>): void {
    this.#work.lookups++;
    this.await(found);
  }

  /** Adds a row that needs no search. */
  addRow(source: RowSource, base: number): void {
    this.#work.lookups++;
    if (this.#late === undefined) this.#test(source, base);
    else this.#late.push(Promise.resolve({ source, base }));
  }

  /** Adds a row that needs no lookup, and was tested before. */
  pass(source: RowSource, base: number): void {
    if (this.#late === undefined) {
      this.#work.matches++;
      this.#hits.add(source, base);
    } else this.#late.push(Promise.resolve({ source, base }));
  }

  /** Adds a row that others look up. */
  await(found: Found | Promise<Found>): void {
    if (isPromise(found)) {
      // Should one lookup fail, the others are still under way: their failures are not to go unhandled.
      found.catch(() => undefined);
      this.#late ??= [];
    }
    if (this.#late === undefined) this.#take(found as Found);
    else this.#late.push(Promise.resolve(found));
  }

  /** Resolves to true once all rows have been added; at once if all were in memory. */
  finish(): true | Promise<true> {
    const late = this.#late;
    if (late === undefined) return true;
    return Promise.all(late).then((found) => {
      for (const hit of found) this.#take(hit);
      return true;
    });
  }

  #take(hit: Found): void {
    if (hit !== undefined) this.#test(hit.source, hit.base);
  }

  #test(source: RowSource, base: number): void {
    if (!this.#filter.matches(source, base)) return;
    this.#work.matches++;
    this.#hits.add(source, base);
  }
}

/** Lookups that are begun together at most, and at least once a query has shown that it goes on. */
const mostTogether = 256;
const fewestTogether = 8;

/** So many lookups may be begun together: each may hold a block. */
export function mostLookups({ aheadBytes, blockBytes }: ReadMemory): number {
  return Math.max(fewestTogether, Math.min(mostTogether, Math.floor(aheadBytes / blockBytes)));
}

/** How many lookups are begun together: few at first, for a query may need no more. Each may hold a block. */
export class LookupPace {
  readonly #most: number;
  #next = fewestTogether;

  /** `filter`: what rows are tested for. */
  constructor(memory: ReadMemory, filter?: Filter) {
    const most = mostLookups(memory);
    this.#most = filter === undefined ? most : filter.rowsAtOnce(most);
  }

  /** For the next round, when `wanted` rows are of use. */
  step(wanted: number): number {
    const step = Math.min(this.#most, Math.max(this.#next, Math.min(wanted, 64)));
    this.#next = Math.min(this.#next * 2, mostTogether);
    return step;
  }
}

/** The rows with given primary keys, in the order of the keys. */
export class KeyStream implements HitStream {
  readonly #state: TableState;
  readonly #keys: readonly Uint8Array[];
  readonly #filter: Filter;
  readonly #work: QueryWork;
  readonly #pace: LookupPace;
  #next = 0;

  constructor(state: TableState, keys: readonly Uint8Array[], filter: Filter, work: QueryWork) {
    this.#state = state;
    this.#keys = keys;
    this.#filter = filter;
    this.#work = work;
    this.#pace = new LookupPace(state.tree.source.memory, filter);
  }

  next(hits: HitList): boolean | Promise<boolean> {
    if (this.#next >= this.#keys.length) return false;
    const lookups = new Lookups(this.#filter, hits, this.#work);
    const end = Math.min(this.#keys.length, this.#next + this.#pace.step(hits.wanted));
    while (this.#next < end) lookups.add(this.#state.lookup(this.#keys[this.#next++] as Uint8Array));
    return lookups.finish();
  }
}
