/**
 * Rows by way of an index in the order of their primary keys, where nobody asks for that of the index and not all of the table is
 * in memory: many keys are collected and sorted first, so that a block is read once for all of its rows, and not again for each
 * of them that comes after it has gone from the cache.
 */
import { isPromise } from '../../base/brands.ts';
import type { Pacer } from '../../base/pacer.ts';
import { KeyList } from '../../format/key-list.ts';
import type { TableState } from '../../view/table-state.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import { rowOfEntry } from './entry-row.ts';
import type { HitList, HitStream } from './row-batch.ts';
import { endOfValue } from '../../schema/table-shape.ts';
import { mostKeyBytes } from '../planner/index-intersections.ts';
import { LookupPace, Lookups } from './lookups.ts';
import type { IndexAccess } from '../planner/access-paths.ts';
import type { QueryWork } from './work-counters.ts';
import type { Filter } from '../conditions/selector.ts';

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

export class SortedLookups implements HitStream {
  readonly #options: SortedLookupsOptions;
  readonly #pace: LookupPace;
  /** Of the entries that are looked up now, in the order of {@link #order}. */
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

  next(hits: HitList): boolean | Promise<boolean> {
    if (this.#next < this.#order.length) return this.#lookUp(hits);
    return this.#ended ? false : this.#collect().then(() => this.next(hits));
  }

  #lookUp(hits: HitList): true | Promise<true> {
    const { state, access, filter, work } = this.#options;
    const place = { state, index: access.index, leafName: this.#leafName };
    const lookups = new Lookups(filter, hits, work);
    const end = Math.min(this.#order.length, this.#next + this.#pace.step(Number.POSITIVE_INFINITY));
    while (this.#next < end) lookups.add(rowOfEntry(place, this.#keys.key(this.#order[this.#next++] as number)));
    return lookups.finish();
  }

  /** Takes the keys of the next entries, as many as there is room for. */
  async #collect(): Promise<void> {
    const { state, access, cursor, work, pacer, breathe } = this.#options;
    const most = mostKeyBytes(state);
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
        keys.writer.appendRange(entry, endOfValue(node, entry, length, access.index), length);
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
