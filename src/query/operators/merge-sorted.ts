/** Rows of several streams, each of which is in a certain order, in that order. */
import { andThen, isPromise } from '../../base/brands.ts';
import { ByteWriter, compareRanges } from '../../base/bytes.ts';
import type { RowSource } from '../../format/row-layout.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { RowRef, Tree } from '../../tree/tree.ts';
import type { TableState } from '../../view/table-state.ts';
import type { RowOrder } from '../conditions/row-order.ts';
import { isMerged } from '../planner/access-paths.ts';
import type { IntersectionAccess } from '../planner/access-paths.ts';
import { maxKeyBytes } from '../planner/index-intersections.ts';
import { indexCursor } from './index-cursor.ts';
import { KeySet, SortedProbe } from './key-probe.ts';
import type { KeyProbe } from './key-probe.ts';
import { RowBatch } from './row-batch.ts';
import type { RowStream, QueryWork } from './row-batch.ts';

/** The number of rows requested at a time from the smaller streams: mostly few of them are wanted. */
const bufferedRows = 8;
/** The approximate number of rows delivered before the caller may do something else. */
const rowsAtOnce = 1024;

/** A stream with a small buffer, so that its next row can be compared before it is taken. */
class BufferedStream {
  readonly #stream: RowStream;
  readonly #order: RowOrder;
  readonly #batch = new RowBatch(bufferedRows);
  #at = -1;
  #ended = false;
  /** The key of the next row; undefined where it is not known, and at the end. */
  key: Uint8Array | undefined;

  constructor(stream: RowStream, order: RowOrder) {
    this.#stream = stream;
    this.#order = order;
  }

  get source(): RowSource {
    return this.#batch.sources[this.#at] as RowSource;
  }

  get base(): number {
    return this.#batch.bases[this.#at] as number;
  }

  /** Goes on to the next row, or to the end. */
  advance(): void | Promise<void> {
    this.#at++;
    while (this.#at >= this.#batch.count && !this.#ended) {
      this.#batch.clear();
      this.#at = 0;
      const more = this.#stream.next(this.#batch);
      if (isPromise(more)) {
        return more.then((moved) => {
          this.#ended = !moved;
          // Rows that there are already begin at 0.
          this.#at = -1;
          return this.advance();
        });
      }
      this.#ended = !more;
    }
    this.key = this.#at < this.#batch.count ? this.#order.key(this.source, this.base) : undefined;
    return undefined;
  }
}

/** Merges a stream with others, of which few rows are expected. */
export class MergedStream implements RowStream {
  readonly #stream: RowStream;
  readonly #order: RowOrder;
  readonly #others: BufferedStream[];
  readonly #own = new RowBatch();
  readonly #scratch = new ByteWriter(256);
  #begun = false;
  /** The rows of {@link #own} before it were handed on. */
  #at = 0;
  #ended = false;
  /** The other stream whose row comes next. */
  #first: BufferedStream | undefined;

  constructor(stream: RowStream, others: readonly RowStream[], order: RowOrder) {
    this.#stream = stream;
    this.#order = order;
    this.#others = others.map((other) => new BufferedStream(other, order));
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    if (!this.#begun) {
      this.#begun = true;
      const waits = this.#others.map((other) => other.advance()).filter((wait) => isPromise(wait));
      if (waits.length > 0) {
        return Promise.all(waits).then(() => {
          this.#choose();
          return this.next(batch);
        });
      }
      this.#choose();
    }
    if (this.#ended || this.#at < this.#own.count) return this.#merge(batch);
    this.#own.clear();
    this.#at = 0;
    this.#own.wanted = batch.wanted;
    const more = this.#stream.next(this.#own);
    return andThen(more, (moved) => this.#enter(moved, batch));
  }

  #enter(more: boolean, batch: RowBatch): boolean | Promise<boolean> {
    this.#ended = !more;
    return this.#merge(batch);
  }

  /** Finds the other stream whose row comes first. */
  #choose(): void {
    this.#first = undefined;
    for (const other of this.#others) {
      if (other.key === undefined) continue;
      const { key } = this.#first ?? {};
      if (key === undefined || compareRanges(other.key, 0, other.key.length, key, 0, key.length) < 0) {
        this.#first = other;
      }
    }
  }

  /** Whether the next row of the others comes before row `i` of the stream. */
  #isBefore({ key }: BufferedStream, i: number): boolean {
    const scratch = this.#scratch;
    scratch.length = 0;
    const own = this.#own;
    this.#order.write(scratch, own.sources[i] as RowSource, own.bases[i] as number);
    const other = key as Uint8Array;
    return compareRanges(other, 0, other.length, scratch.bytes, 0, scratch.length) < 0;
  }

  /** Adds the rows that are known to come next. */
  #merge(batch: RowBatch): boolean | Promise<boolean> {
    const own = this.#own;
    const most = batch.count + rowsAtOnce;
    let mayInterrupt = own.count > this.#at && this.#first !== undefined && this.#isBefore(this.#first, own.count - 1);
    while (this.#at < own.count) {
      if (mayInterrupt && this.#isBefore(this.#first as BufferedStream, this.#at)) {
        if (batch.count >= most) return true;
        const waits = this.#takeFirst(batch);
        if (waits !== undefined) return waits.then(() => this.#merge(batch));
        mayInterrupt = this.#first !== undefined;
        continue;
      }
      batch.add(own.sources[this.#at] as RowSource, own.bases[this.#at] as number);
      this.#at++;
    }
    if (!this.#ended) return true;
    if (this.#first === undefined) return false;
    for (let left = Math.min(batch.wanted, rowsAtOnce); left > 0 && this.#first !== undefined; left--) {
      const waits = this.#takeFirst(batch);
      if (waits !== undefined) return waits.then(() => true);
    }
    return true;
  }

  #takeFirst(batch: RowBatch): void | Promise<void> {
    const first = this.#first as BufferedStream;
    batch.add(first.source, first.base);
    const waits = first.advance();
    if (isPromise(waits)) return waits.then(() => this.#choose());
    this.#choose();
    return undefined;
  }
}

/** Rows that are all there before the first of them is handed out, in the order in which `prepare` gives them. */
export class PreparedStream implements RowStream {
  readonly #prepare: () => Promise<RowRef[]>;
  #rows: RowRef[] | undefined;

  constructor(prepare: () => Promise<RowRef[]>) {
    this.#prepare = prepare;
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    if (this.#rows !== undefined) return false;
    return this.#prepare().then((rows) => {
      this.#rows = rows;
      for (const { source, base } of rows) batch.add(source, base);
      return true;
    });
  }
}

/** The number of next streams that are read ahead: at first, and at most. */
const firstWindow = 2;
const widestWindow = 8;
/** A stream of the union. Its first rows are held, with their blocks, until its turn comes. */

interface Part {
  readonly stream: RowStream;
  /** The rows read ahead. */
  readonly early: RowBatch;
  /** The result of its first call, until it is used. */
  moved: Promise<boolean> | undefined;
}

/** Starts to read a stream ahead. The reader of the stream gets every error, even one that is thrown at once. */
function begin({ stream, early }: Part): Promise<boolean> {
  const moved = (async (): Promise<boolean> => stream.next(early))();
  moved.catch(() => undefined);
  return moved;
}

/**
 * Reads streams one after the other, and reads the next ones ahead once a second stream must be awaited: otherwise each would request
 * its first rows only when its turn comes.
 */
export class UnionStream implements RowStream {
  readonly #parts: readonly Part[];
  #at = 0;
  /** The parts before this one were begun. */
  #begun = 0;
  #window = 0;

  constructor(streams: readonly RowStream[]) {
    this.#parts = streams.map((stream) => ({ stream, early: new RowBatch(bufferedRows), moved: undefined }));
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    const part = this.#parts[this.#at];
    if (part === undefined) return false;
    const { moved } = part;
    part.moved = undefined;
    const more = moved ?? part.stream.next(batch);
    if (!isPromise(more)) return this.#after(part, more, batch);
    this.#beginNext();
    return more.then((moves) => this.#after(part, moves, batch));
  }

  #after({ early }: Part, more: boolean, batch: RowBatch): boolean {
    for (let i = 0; i < early.count; i++) batch.add(early.sources[i] as RowSource, early.bases[i] as number);
    early.clear();
    if (!more) this.#at++;
    return this.#at < this.#parts.length;
  }

  #beginNext(): void {
    if (this.#at === 0) return;
    this.#window = Math.min(widestWindow, Math.max(firstWindow, this.#window * 2));
    const end = Math.min(this.#parts.length, this.#at + 1 + this.#window);
    for (let i = Math.max(this.#at + 1, this.#begun); i < end; i++) {
      const part = this.#parts[i] as Part;
      part.moved = begin(part);
    }
    this.#begun = Math.max(this.#begun, end);
  }
}

export interface IntersectionOptions {
  readonly state: TableState;
  readonly access: IntersectionAccess;
  /** Called between reads. Throws if the rows are of no use any more. */
  readonly breathe: () => void | Promise<void>;
  readonly work: QueryWork;
  /** Opens the first index, for rows whose keys all probes have. */
  readonly open: (probes: readonly KeyProbe[]) => RowStream;
  /** Opens the first index for rows that are then tested for the conditions of the other indexes. */
  readonly openFirst: () => RowStream;
}

/** Reads the rows whose primary keys several indexes have: the entries of one index are looked up in all others. */
export class IntersectionStream implements RowStream {
  readonly #options: IntersectionOptions;
  #stream: RowStream | undefined;

  constructor(options: IntersectionOptions) {
    this.#options = options;
  }

  next(batch: RowBatch): boolean | Promise<boolean> {
    if (this.#stream !== undefined) return this.#stream.next(batch);
    return this.#prepare().then((stream) => {
      this.#stream = stream;
      return stream.next(batch);
    });
  }

  async #prepare(): Promise<RowStream> {
    const { access, state, breathe, work, open, openFirst } = this.#options;
    const { first, others } = access;
    const probes: KeyProbe[] = [];
    let keys: KeySet | undefined;
    for (const other of others) {
      const tree = state.treeOf(other.index) as Tree;
      if (isMerged(first, other)) {
        probes.push(new SortedProbe(tree, other.index, other.ranges[0] as KeyRange, first.descending));
        continue;
      }
      const more = new KeySet(state.shape.keyField);
      const cursor = indexCursor(tree, { ...other, descending: false }, breathe);
      const options = { within: keys, maxBytes: maxKeyBytes(state), breathe };
      const entries = await more.addAll(cursor, other.index, options);
      // There are more keys than estimated.
      if (entries === undefined) return openFirst();
      work.entries += entries;
      keys = more;
    }
    return open(keys === undefined ? probes : [keys, ...probes]);
  }
}
