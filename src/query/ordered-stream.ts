/** What it takes to put rows in order: all of a stream, and those with long values, which an index does not tell apart. */
import { ByteWriter, compareBytes, compareRanges } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';
import { isNull } from '../format/row-decode.ts';
import type { RowSource } from '../format/row-layout.ts';
import { maxKeyBytes } from '../format/values.ts';
import { isTextField, writeFieldComponent } from '../table/table-shape.ts';
import type { RowHit } from '../tree/tree.ts';
import type { Collector } from './collector.ts';
import { HitList } from './hits.ts';
import type { HitStream } from './hits.ts';
import { valueLength } from './row-order.ts';
import type { OrderField, RowOrder } from './row-order.ts';

/** Adds all rows of a stream to a collector. */
export async function collect<T>(
  stream: HitStream,
  collector: Collector<T>,
  pacer: Pacer,
  onBound?: (collector: Collector<T>) => void,
): Promise<T[]> {
  const hits = new HitList();
  for (;;) {
    let more = stream.next(hits);
    if (more instanceof Promise) more = await more;
    if (!more) return collector.finish(pacer);
    for (let i = 0; i < hits.count; i++) collector.add(hits.sources[i] as RowSource, hits.bases[i] as number);
    hits.clear();
    onBound?.(collector);
    if (pacer.due()) await pacer.pause();
  }
}

interface KeyedHit extends RowHit {
  readonly key: Uint8Array;
}

/**
 * Puts values in order of which an index holds only the first bytes: rows whose values begin alike come from the index
 * one after the other, by what follows that value in its keys. All others pass through.
 */
export class LongValueStream implements HitStream {
  readonly #stream: HitStream;
  readonly #order: RowOrder;
  readonly #own = new HitList();
  readonly #scratch = new ByteWriter(256);
  /** Rows with long values that begin alike. */
  #group: KeyedHit[] = [];
  /** What keys hold of all of them, up to the first long value. */
  #held: Uint8Array | undefined;
  #ended = false;

  constructor(stream: HitStream, order: RowOrder) {
    this.#stream = stream;
    this.#order = order;
  }

  next(hits: HitList): boolean | Promise<boolean> {
    if (this.#ended) return false;
    this.#own.wanted = hits.wanted;
    const more = this.#stream.next(this.#own);
    return more instanceof Promise ? more.then((moved) => this.#sort(moved, hits)) : this.#sort(more, hits);
  }

  #sort(more: boolean, hits: HitList): true {
    const own = this.#own;
    for (let i = 0; i < own.count; i++) {
      const source = own.sources[i] as RowSource;
      const base = own.bases[i] as number;
      const long = this.#firstLong(source, base);
      if (long < 0) {
        this.#endGroup(hits);
        hits.add(source, base);
      } else this.#addToGroup(source, base, long, hits);
    }
    own.clear();
    if (!more) {
      this.#ended = true;
      this.#endGroup(hits);
    }
    return true;
  }

  /** Position of the first field in the order whose value is not held whole by a key; -1 if there is none. */
  #firstLong(source: RowSource, base: number): number {
    const { fields } = this.#order;
    for (let i = 0; i < fields.length; i++) {
      const { field } = fields[i] as OrderField;
      if (!isTextField(field) || isNull(source, base, field)) continue;
      if (valueLength(source, base, field) > maxKeyBytes) return i;
    }
    return -1;
  }

  #addToGroup(source: RowSource, base: number, long: number, hits: HitList): void {
    const scratch = this.#scratch;
    scratch.length = 0;
    for (let i = 0; i <= long; i++)
      writeFieldComponent(scratch, source, base, (this.#order.fields[i] as OrderField).field);
    const held = this.#held;
    if (held === undefined || compareRanges(held, 0, held.length, scratch.bytes, 0, scratch.length) !== 0) {
      this.#endGroup(hits);
      this.#held = scratch.finish();
    }
    this.#group.push({ source, base, key: this.#order.key(source, base) });
  }

  #endGroup(hits: HitList): void {
    if (this.#group.length === 0) return;
    this.#group.sort((a, b) => compareBytes(a.key, b.key));
    for (const { source, base } of this.#group) hits.add(source, base);
    this.#group = [];
    this.#held = undefined;
  }
}
