/** Rows of several streams, each of which is in a certain order, in that order. */
import { isPromise } from '../../base/brands.ts';
import { ByteWriter, compareRanges } from '../../base/bytes.ts';
import type { RowSource } from '../../format/row-layout.ts';
import type { RowHit } from '../../tree/tree.ts';
import { HitList } from './row-batch.ts';
import type { HitStream } from './row-batch.ts';
import type { RowOrder } from '../conditions/row-order.ts';

/** Rows of the smaller streams that are asked for at a time: mostly few of them are among those that are wanted. */
const rowsAhead = 8;
/** Rows that are handed on before whoever asks may do something else, about. */
const rowsAtOnce = 1024;

/** A stream whose next row is looked at before it is taken. */
class Ahead {
  readonly #stream: HitStream;
  readonly #order: RowOrder;
  readonly #hits = new HitList(rowsAhead);
  #at = -1;
  #ended = false;
  /** Of the next row; undefined where it is not known, and at the end. */
  key: Uint8Array | undefined;

  constructor(stream: HitStream, order: RowOrder) {
    this.#stream = stream;
    this.#order = order;
  }

  get source(): RowSource {
    return this.#hits.sources[this.#at] as RowSource;
  }

  get base(): number {
    return this.#hits.bases[this.#at] as number;
  }

  /** Goes on to the next row, or to the end. */
  advance(): void | Promise<void> {
    this.#at++;
    while (this.#at >= this.#hits.count && !this.#ended) {
      this.#hits.clear();
      this.#at = 0;
      const more = this.#stream.next(this.#hits);
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
    this.key = this.#at < this.#hits.count ? this.#order.key(this.source, this.base) : undefined;
    return undefined;
  }
}

/** Merges a stream with others, of which few rows are expected. */
export class MergedStream implements HitStream {
  readonly #stream: HitStream;
  readonly #order: RowOrder;
  readonly #others: Ahead[];
  readonly #own = new HitList();
  readonly #scratch = new ByteWriter(256);
  #begun = false;
  /** The rows of {@link #own} before it were handed on. */
  #at = 0;
  #ended = false;
  /** The one of the others whose row comes next. */
  #first: Ahead | undefined;

  constructor(stream: HitStream, others: readonly HitStream[], order: RowOrder) {
    this.#stream = stream;
    this.#order = order;
    this.#others = others.map((other) => new Ahead(other, order));
  }

  next(hits: HitList): boolean | Promise<boolean> {
    if (!this.#begun) {
      this.#begun = true;
      const waits = this.#others.map((other) => other.advance()).filter((wait) => isPromise(wait));
      if (waits.length > 0) {
        return Promise.all(waits).then(() => {
          this.#choose();
          return this.next(hits);
        });
      }
      this.#choose();
    }
    if (this.#ended || this.#at < this.#own.count) return this.#merge(hits);
    this.#own.clear();
    this.#at = 0;
    this.#own.wanted = hits.wanted;
    const more = this.#stream.next(this.#own);
    return isPromise(more) ? more.then((moved) => this.#enter(moved, hits)) : this.#enter(more, hits);
  }

  #enter(more: boolean, hits: HitList): boolean | Promise<boolean> {
    this.#ended = !more;
    return this.#merge(hits);
  }

  /** Finds the one of the others whose row comes first. */
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
  #isBefore({ key }: Ahead, i: number): boolean {
    const scratch = this.#scratch;
    scratch.length = 0;
    const own = this.#own;
    this.#order.write(scratch, own.sources[i] as RowSource, own.bases[i] as number);
    const other = key as Uint8Array;
    return compareRanges(other, 0, other.length, scratch.bytes, 0, scratch.length) < 0;
  }

  /** Hands on what is known to come next. */
  #merge(hits: HitList): boolean | Promise<boolean> {
    const own = this.#own;
    const most = hits.count + rowsAtOnce;
    let mayInterrupt = own.count > this.#at && this.#first !== undefined && this.#isBefore(this.#first, own.count - 1);
    while (this.#at < own.count) {
      if (mayInterrupt && this.#isBefore(this.#first as Ahead, this.#at)) {
        if (hits.count >= most) return true;
        const waits = this.#takeFirst(hits);
        if (waits !== undefined) return waits.then(() => this.#merge(hits));
        mayInterrupt = this.#first !== undefined;
        continue;
      }
      hits.add(own.sources[this.#at] as RowSource, own.bases[this.#at] as number);
      this.#at++;
    }
    if (!this.#ended) return true;
    if (this.#first === undefined) return false;
    for (let left = Math.min(hits.wanted, rowsAtOnce); left > 0 && this.#first !== undefined; left--) {
      const waits = this.#takeFirst(hits);
      if (waits !== undefined) return waits.then(() => true);
    }
    return true;
  }

  #takeFirst(hits: HitList): void | Promise<void> {
    const first = this.#first as Ahead;
    hits.add(first.source, first.base);
    const waits = first.advance();
    if (isPromise(waits)) return waits.then(() => this.#choose());
    this.#choose();
    return undefined;
  }
}

/** Rows that are all there before the first of them is handed out, in the order in which `prepare` gives them. */
export class PreparedStream implements HitStream {
  readonly #prepare: () => Promise<RowHit[]>;
  #rows: RowHit[] | undefined;

  constructor(prepare: () => Promise<RowHit[]>) {
    this.#prepare = prepare;
  }

  next(hits: HitList): boolean | Promise<boolean> {
    if (this.#rows !== undefined) return false;
    return this.#prepare().then((rows) => {
      this.#rows = rows;
      for (const { source, base } of rows) hits.add(source, base);
      return true;
    });
  }
}
