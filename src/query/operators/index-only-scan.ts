/**
 * Rows by way of an index whose entries say more than which row it is: they are tested before their rows are looked up, and
 * where they hold all that is asked for, rows are made of them and none is looked up.
 */
import { andThen, isPromise } from '../../base/brands.ts';
import type { Node } from '../../format/node.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { TableState } from '../../view/table-state.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import type { RowRef } from '../../tree/tree.ts';
import { filterOf } from '../conditions/condition.ts';
import { EntryReader, EntryRows } from './entry-reader.ts';
import { rowOfEntry, LookupPace, Lookups } from './lookups.ts';
import type { Found } from './lookups.ts';
import type { EntryUse } from '../planner/covering-index.ts';
import type { RowBatch, RowStream, QueryWork } from './row-batch.ts';
import type { KeyProbe } from './key-probe.ts';
import type { IndexAccess } from '../planner/access-paths.ts';
import type { Filter } from '../conditions/filter.ts';

/** Entries that are looked at together: few at first, for a query may need no more. */
const minEntries = 32;
const maxEntries = 1024;
/** Bytes of rows that are made together, about. */
const chunkBytes = 64 * 1024;
/** Entries that are gone through before the caller may do something else. */
const entriesAtOnce = 4096;

export interface EntryStreamOptions {
  readonly state: TableState;
  readonly access: IndexAccess;
  readonly cursor: RunCursor;
  /** The conditions that rows are tested for. */
  readonly filter: Filter;
  readonly work: QueryWork;
  /** The use of entries beyond their primary keys. */
  readonly use: EntryUse | undefined;
  /** The other indexes of an intersection, which must have the primary keys, too. */
  readonly probes: readonly KeyProbe[];
}

export class EntryStream implements RowStream {
  readonly #state: TableState;
  readonly #index: TableIndex;
  readonly #cursor: RunCursor;
  readonly #filter: Filter;
  /** The conditions that entries are tested for: all of them in an index-only scan. */
  readonly #tests: Filter;
  readonly #work: QueryWork;
  readonly #use: EntryUse | undefined;
  readonly #probes: readonly KeyProbe[];
  readonly #reader: EntryReader;
  readonly #pace: LookupPace;
  /** Whether runs are read from their end. */
  readonly #descending: boolean;
  readonly #overlaid: boolean;
  readonly #most: number;
  #chunk = minEntries;
  #rows: EntryRows | undefined;
  /** The entries that are looked at: where each is in its leaf, and whether its row must be looked up to test it. */
  readonly #entries: Int32Array;
  readonly #whole: Uint8Array;
  readonly #picks: Int32Array;
  #from = 0;
  #to = 0;
  /** How many more rows this call may add. */
  #room = 0;
  /** How many more are of use after that. */
  #beyond = 0;
  #ended = false;

  constructor({ state, access, cursor, filter, work, use, probes }: EntryStreamOptions) {
    this.#state = state;
    this.#index = access.index;
    this.#cursor = cursor;
    this.#filter = filter;
    this.#tests = use?.only === true ? filter : filterOf(use?.tests ?? []);
    this.#work = work;
    this.#use = use;
    this.#probes = probes;
    this.#reader = new EntryReader(state.shape, access.index, use);
    this.#pace = new LookupPace(state.tree.source.memory, filter);
    this.#descending = access.oneValue && access.descending;
    this.#overlaid = state.layers.length > 0;
    this.#most = Math.max(minEntries, Math.min(maxEntries, Math.floor(chunkBytes / state.shape.layout.stride)));
    this.#entries = new Int32Array(this.#most);
    this.#whole = new Uint8Array(this.#most);
    this.#picks = new Int32Array(this.#most);
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    if (this.#ended) return false;
    const { wanted } = batch;
    const step = this.#pace.step(wanted);
    this.#room = this.#use?.only === true ? Math.min(wanted, maxEntries) : step;
    this.#beyond = Math.max(0, wanted - this.#room);
    return this.#fill(new Lookups(this.#filter, batch, this.#work), this.#tests.rowsAtOnce(entriesAtOnce));
  }

  /** Goes through entries until there is no more room for rows, or `entries` were looked at. */
  #fill(lookups: Lookups, entries: number): true | Promise<true> {
    let left = entries;
    while (this.#room > 0 && left > 0) {
      if (this.#from >= this.#to) {
        const moved = this.#advance();
        const rest = left;
        if (isPromise(moved)) return moved.then((more) => (more ? this.#fill(lookups, rest) : this.#end(lookups)));
        if (!moved) return this.#end(lookups);
      }
      const before = this.#to - this.#from;
      const ready = this.#take(lookups);
      left -= before - (this.#to - this.#from);
      const rest = left;
      if (ready !== undefined) return ready.then(() => this.#fill(lookups, rest));
    }
    return lookups.finish();
  }

  #end(lookups: Lookups): true | Promise<true> {
    this.#ended = true;
    return lookups.finish();
  }

  #advance(): boolean | Promise<boolean> {
    const all = this.#tests.empty && this.#filter.empty && this.#probes.length === 0;
    this.#cursor.expect?.(all ? this.#room + this.#beyond : Number.POSITIVE_INFINITY, this.#room);
    const moved = this.#cursor.next();
    return andThen(moved, (more) => this.#enter(more));
  }

  #enter(more: boolean): boolean {
    if (!more) return false;
    this.#from = this.#cursor.from;
    this.#to = this.#cursor.to;
    return true;
  }

  /** Works on some entries of the run. A promise if a probe must read first: then the entry that it waits for is left. */
  #take(lookups: Lookups): Promise<void> | undefined {
    const { node } = this.#cursor;
    const reader = this.#reader;
    const isSure = this.#tests.empty && this.#filter.empty;
    const chunk = this.#tests.rowsAtOnce(this.#chunk);
    const most = Math.min(chunk, this.#to - this.#from, isSure ? this.#room : chunk);
    const rows = this.#use === undefined ? undefined : this.#freshRows(most);
    this.#chunk = Math.min(this.#chunk * 2, this.#most);
    let ready: Promise<void> | undefined;
    let count = 0;
    let picked = 0;
    for (let seen = 0; seen < most; seen++) {
      const i = this.#descending ? this.#to - 1 : this.#from;
      reader.read(node, i);
      const known = this.#probe();
      if (isPromise(known)) {
        ready = known;
        break;
      }
      if (this.#descending) this.#to--;
      else this.#from++;
      this.#work.entries++;
      if (!known) continue;
      const isHeld = rows === undefined || reader.appendRow(rows);
      this.#entries[count] = i;
      this.#whole[count] = isHeld ? 0 : 1;
      if (isHeld) this.#picks[picked++] = count;
      count++;
    }
    const kept =
      rows === undefined || picked === 0
        ? picked
        : this.#tests.select(rows, 0, this.#state.shape.layout.stride, this.#picks, picked);
    this.#emit(lookups, node, rows, count, kept);
    return ready;
  }

  /** Rows of an index-only scan stay while somebody refers to them. Rows that are only tested are overwritten. */
  #freshRows(count: number): EntryRows {
    if (this.#use?.only === true || this.#rows === undefined) this.#rows = new EntryRows(this.#cursor.node.name);
    this.#rows.begin(count * this.#state.shape.layout.stride);
    return this.#rows;
  }

  /** Whether all other indexes have the primary key; a promise if one must read first. */
  #probe(): boolean | Promise<void> {
    const { key, primaryKeyStart, primaryKeyEnd } = this.#reader;
    for (const probe of this.#probes) {
      const known = probe.has(key, primaryKeyStart, primaryKeyEnd);
      if (known !== true) return known;
    }
    return true;
  }

  /** Adds the rows of the picked entries, and of those that must be looked up to be tested, in their order. */
  #emit(lookups: Lookups, node: Node, rows: EntryRows | undefined, count: number, kept: number): void {
    const only = this.#use?.only === true;
    const { stride } = this.#state.shape.layout;
    let next = 0;
    for (let k = 0; k < count; k++) {
      const isPicked = next < kept && this.#picks[next] === k;
      if (isPicked) next++;
      else if (this.#whole[k] === 0) continue;
      this.#room--;
      if (!isPicked || !only) lookups.add(this.#lookUp(node, this.#entries[k] as number));
      else if (!this.#overlaid) lookups.pass(rows as EntryRows, k * stride);
      else
        this.#passUnlessOverlaid(lookups, node, this.#entries[k] as number, {
          source: rows as EntryRows,
          base: k * stride,
        });
    }
  }

  #passUnlessOverlaid(lookups: Lookups, node: Node, i: number, row: RowRef): void {
    this.#reader.read(node, i);
    const overlaid = this.#state.isOverlaid(this.#reader.primaryKey);
    if (isPromise(overlaid)) lookups.await(overlaid.then((is) => (is ? undefined : row)));
    else if (!overlaid) lookups.pass(row.source, row.base);
  }

  #lookUp(node: Node, i: number): Found | Promise<Found> {
    this.#reader.read(node, i);
    const place = { state: this.#state, index: this.#index, leafName: node.name };
    return rowOfEntry(place, this.#reader.primaryKey);
  }
}
