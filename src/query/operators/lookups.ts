/** Rows that are looked up one by one, by primary key: many at a time where their blocks must be read first. */
import { isPromise } from '../../base/brands.ts';
import { CorruptionError } from '../../base/errors.ts';
import type { Pacer } from '../../base/pacer.ts';
import type { ReadMemory } from '../../cache/memory-budget.ts';
import { KeyList } from '../../format/key-list.ts';
import type { RowSource } from '../../format/row-layout.ts';
import { endOfKey, endOfValue } from '../../schema/table-shape.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import type { RowRef } from '../../tree/tree.ts';
import type { TableState } from '../../view/table-state.ts';
import type { Filter } from '../conditions/filter.ts';
import type { IndexAccess } from '../planner/access-paths.ts';
import { maxKeyBytes } from '../planner/index-intersections.ts';
import type { RowBatch, RowStream, QueryWork } from './row-batch.ts';

/** Where an entry was found: its index, and the name of its leaf. */
interface Place {
  readonly state: TableState;
  readonly index: TableIndex;
  readonly leafName: string;
}

/** An entry has no row: the index and the table do not belong together. */
export function missingRow({ state, index, leafName }: Place): never {
  const { name: table } = state.shape;
  throw new CorruptionError(leafName, `Index '${index.name}' has an entry for a row that table '${table}' has not`);
}

function storedRow(place: Place, key: Uint8Array): RowRef | Promise<RowRef> {
  const found = place.state.tree.lookup(key);
  if (isPromise(found)) return found.then((rowRef) => rowRef ?? missingRow(place));
  return found ?? missingRow(place);
}

/** The row with the primary key of an entry; none if a commit that is not merged yet has changed it. */
export function rowOfEntry(place: Place, key: Uint8Array): Found | Promise<Found> {
  const overlaid = place.state.isOverlaid(key);
  if (isPromise(overlaid)) return overlaid.then((is) => (is ? undefined : storedRow(place, key)));
  return overlaid ? undefined : storedRow(place, key);
}

/** A row, or that there is none to add. */
export type Found = RowRef | undefined;

/** Lookups under way together. Their rows are added in the order in which they were asked for. */
export class Lookups {
  readonly #filter: Filter;
  readonly #batch: RowBatch;
  readonly #work: QueryWork;
  /** From the first row on that is not in memory. */
  #late: Promise<Found>[] | undefined;

  constructor(filter: Filter, batch: RowBatch, work: QueryWork) {
    this.#filter = filter;
    this.#batch = batch;
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
      this.#batch.add(source, base);
    } else this.#late.push(Promise.resolve({ source, base }));
  }

  /** Adds a row that others look up. */
  await(found: Found | Promise<Found>): void {
    if (isPromise(found)) {
      // If one lookup fails, the others are still under way, and their errors must not go unhandled.
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
      for (const rowRef of found) this.#take(rowRef);
      return true;
    });
  }

  #take(rowRef: Found): void {
    if (rowRef !== undefined) this.#test(rowRef.source, rowRef.base);
  }

  #test(source: RowSource, base: number): void {
    if (!this.#filter.matches(source, base)) return;
    this.#work.matches++;
    this.#batch.add(source, base);
  }
}

/** Lookups that are begun together at most, and at least once a query has shown that it goes on. */
const maxTogether = 256;
const minTogether = 8;

/** So many lookups may be begun together: each may hold a block. */
export function maxLookups({ readAheadBytes, blockBytes }: ReadMemory): number {
  return Math.max(minTogether, Math.min(maxTogether, Math.floor(readAheadBytes / blockBytes)));
}

/** Decides how many lookups are begun together: few at first, since a query may need no more. Each may hold a block. */
export class LookupPace {
  readonly #most: number;
  #next = minTogether;

  /** `filter`: the conditions that rows are tested for. */
  constructor(memory: ReadMemory, filter?: Filter) {
    const most = maxLookups(memory);
    this.#most = filter === undefined ? most : filter.rowsAtOnce(most);
  }

  /** For the next round, when `wanted` rows are of use. */
  step(wanted: number): number {
    const step = Math.min(this.#most, Math.max(this.#next, Math.min(wanted, 64)));
    this.#next = Math.min(this.#next * 2, maxTogether);
    return step;
  }
}

/** The rows with given primary keys, in the order of the keys. */
export class KeyStream implements RowStream {
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

  next(batch: RowBatch): boolean | Promise<boolean> {
    if (this.#next >= this.#keys.length) return false;
    const lookups = new Lookups(this.#filter, batch, this.#work);
    const end = Math.min(this.#keys.length, this.#next + this.#pace.step(batch.wanted));
    while (this.#next < end) lookups.add(this.#state.lookup(this.#keys[this.#next++] as Uint8Array));
    return lookups.finish();
  }
}

export interface SortedLookupsOptions {
  readonly state: TableState;
  readonly access: IndexAccess;
  readonly cursor: RunCursor;
  readonly filter: Filter;
  readonly work: QueryWork;
  readonly pacer: Pacer;
  /** Called between reads. Throws if the rows are of no use any more. */
  readonly breathe: () => void | Promise<void>;
}

/**
 * Reads the rows of an index access in the order of their primary keys, where the query needs no order and not all of the table is in
 * memory: many keys are collected and sorted first, so that a block is read once for all of its rows, and not again for each row
 * that follows after the block was evicted.
 */
export class SortedLookups implements RowStream {
  readonly #options: SortedLookupsOptions;
  readonly #pace: LookupPace;
  /** The primary keys of the entries that are looked up now, in the order of {@link #order}. */
  #keys = new KeyList();
  #order: Uint32Array = new Uint32Array(0);
  #next = 0;
  #ended = false;
  /** The last leaf of the index that keys are from. */
  #leafName = '';

  constructor(options: SortedLookupsOptions) {
    this.#options = options;
    this.#pace = new LookupPace(options.state.tree.source.memory, options.filter);
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    if (this.#next < this.#order.length) return this.#lookUp(batch);
    return this.#ended ? false : this.#collect().then(() => this.next(batch));
  }

  #lookUp(batch: RowBatch): true | Promise<true> {
    const { state, access, filter, work } = this.#options;
    const place = { state, index: access.index, leafName: this.#leafName };
    const lookups = new Lookups(filter, batch, work);
    const end = Math.min(this.#order.length, this.#next + this.#pace.step(Number.POSITIVE_INFINITY));
    while (this.#next < end) lookups.add(rowOfEntry(place, this.#keys.key(this.#order[this.#next++] as number)));
    return lookups.finish();
  }

  /** Takes the keys of the next entries, as many as there is room for. */
  async #collect(): Promise<void> {
    const { state, access, cursor, work, pacer, breathe } = this.#options;
    const most = maxKeyBytes(state);
    const keys = new KeyList();
    let entry: Uint8Array = new Uint8Array(256);
    while (keys.sizeBytes < most) {
      cursor.expect?.(Number.POSITIVE_INFINITY);
      let more = cursor.next();
      if (isPromise(more)) more = await more;
      this.#ended = !more;
      if (!more) break;
      const { node, from, to } = cursor;
      this.#leafName = node.name;
      for (let i = from; i < to; i++) {
        const length = node.keyLength(i);
        if (length > entry.length) entry = new Uint8Array(length * 2);
        node.copyKey(i, entry, 0);
        const start = endOfValue(node, entry, length, access.index);
        keys.writer.appendRange(entry, start, endOfKey(node, entry, start, length, access.index));
        keys.end();
      }
      work.entries += to - from;
      await breathe();
    }
    this.#order = await keys.sorted(pacer);
    this.#keys = keys;
    this.#next = 0;
  }
}
