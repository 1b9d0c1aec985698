/** Sorts rows with long values, which an index holds only in part. */
import { andThen } from '../../base/brands.ts';
import { ByteWriter, compareBytes, compareRanges } from '../../base/bytes.ts';
import { isNull } from '../../format/row-decode.ts';
import type { RowSource } from '../../format/row-layout.ts';
import { maxKeyBytes } from '../../format/values.ts';
import { writeFieldComponent } from '../../schema/index-entries.ts';
import { isTextField } from '../../schema/table-shape.ts';
import { Scratch } from '../../cache/memory-budget.ts';
import type { ReadMemory } from '../../cache/memory-budget.ts';
import type { RowRef } from '../../tree/tree.ts';
import { RowBatch } from './row-batch.ts';
import type { RowStream } from './row-batch.ts';
import { valueLength } from '../conditions/row-order.ts';
import type { OrderField, RowOrder } from '../conditions/row-order.ts';

interface KeyedHit extends RowRef {
  readonly key: Uint8Array;
}

export interface LongValueOptions {
  readonly order: RowOrder;
  /** How many rows are wanted of the stream, at most. */
  readonly needed: number;
  /** Whether holding a row keeps its block in memory. False for unmerged rows, which are in memory in any case. */
  readonly holdsBlocks: boolean;
  readonly memory: ReadMemory;
  /** Called between reads. Throws if the rows are of no use any more. */
  readonly breathe: () => void | Promise<void>;
}

/** The bytes of a row without its key and its block. */
const listBytes = 120;
/** More rows than are wanted, and so many again, are sorted out at once. */
const minSurplus = 16;

/** Rows with equal truncated values in an index: held until all of them, or the first ones, have arrived. */
class AlikeRows {
  readonly #order: RowOrder;
  readonly #scratch: Scratch;
  readonly #holdsBlocks: boolean;
  /** The number of rows wanted. */
  readonly #wanted: number;
  #rows: KeyedHit[] = [];
  readonly #blocks = new Set<RowSource>();
  #bytes = 0;
  #counted = 0;

  constructor({ order, holdsBlocks }: LongValueOptions, scratch: Scratch, wanted: number) {
    this.#order = order;
    this.#holdsBlocks = holdsBlocks;
    this.#scratch = scratch;
    this.#wanted = wanted;
  }

  /** Throws `MemoryBudgetError` where there is no room for it. */
  add(source: RowSource, base: number): void {
    this.#hold({ source, base, key: this.#order.key(source, base) });
    if (this.#rows.length >= this.#wanted * 2 + minSurplus) this.#cut();
    this.#scratch.add(this.#bytes - this.#counted);
    this.#counted = this.#bytes;
  }

  #hold(row: KeyedHit): void {
    const { source, key } = row;
    this.#rows.push(row);
    this.#bytes += key.length + listBytes;
    if (!this.#holdsBlocks || this.#blocks.has(source)) return;
    this.#blocks.add(source);
    this.#bytes += source.rows.length + source.heap.length;
  }

  /** Leaves the first ones, and no blocks but theirs. */
  #cut(): void {
    const first = this.sorted().slice(0, this.#wanted);
    this.#rows = [];
    this.#blocks.clear();
    this.#bytes = 0;
    for (const row of first) this.#hold(row);
  }

  sorted(): readonly KeyedHit[] {
    return this.#rows.toSorted((a, b) => compareBytes(a.key, b.key));
  }
}

/**
 * Sorts rows by values of which an index holds only the first bytes. Rows with the same first bytes come from the index one after
 * the other, in the order of the rest of its keys, and are sorted here. All other rows pass through.
 */
export class LongValueStream implements RowStream {
  readonly #stream: RowStream;
  readonly #options: LongValueOptions;
  readonly #own = new RowBatch();
  readonly #writer = new ByteWriter(256);
  /** Rows with long values that begin alike. */
  #group: AlikeRows | undefined;
  /** The part of the keys that they share, up to the first long value. */
  #held: Uint8Array | undefined;
  /** The number of rows that are still wanted. */
  #left: number;
  #ended = false;

  constructor(stream: RowStream, options: LongValueOptions) {
    this.#stream = stream;
    this.#options = options;
    this.#left = options.needed;
  }

  /** Throws `MemoryBudgetError` where rows begin alike and there is no room for them. */
  next(batch: RowBatch): boolean | Promise<boolean> {
    if (this.#ended) return false;
    this.#own.wanted = batch.wanted;
    const more = this.#stream.next(this.#own);
    return andThen(more, (moved) => this.#pass(moved, batch));
  }

  #pass(more: boolean, batch: RowBatch): true | Promise<true> {
    const own = this.#own;
    this.#ended = !more;
    for (let i = 0; i < own.count; i++) {
      const source = own.sources[i] as RowSource;
      const base = own.bases[i] as number;
      if (this.#firstLong(source, base) >= 0) return this.#sort(i, batch);
      this.#hand(source, base, batch);
    }
    own.clear();
    return true;
  }

  /** The rows from one on, until none is held that another one may come before. */
  async #sort(from: number, batch: RowBatch): Promise<true> {
    const own = this.#own;
    const { memory, breathe } = this.#options;
    const scratch = new Scratch(memory);
    try {
      for (let i = from; ; i = 0) {
        for (; i < own.count; i++) this.#sortIn(own.sources[i] as RowSource, own.bases[i] as number, scratch, batch);
        own.clear();
        if (this.#ended) this.#endGroup(batch, scratch);
        if (this.#group === undefined) return true;
        await breathe();
        // How long it goes on is not known.
        own.wanted *= 2;
        this.#ended = !(await this.#stream.next(own));
      }
    } finally {
      scratch.release();
    }
  }

  /** Position of the first field in the order whose value is not held whole by a key; -1 if there is none. */
  #firstLong(source: RowSource, base: number): number {
    const { fields } = this.#options.order;
    for (let i = 0; i < fields.length; i++) {
      const { field } = fields[i] as OrderField;
      if (!isTextField(field) || isNull(source, base, field)) continue;
      if (valueLength(source, base, field) > maxKeyBytes) return i;
    }
    return -1;
  }

  #sortIn(source: RowSource, base: number, scratch: Scratch, batch: RowBatch): void {
    const long = this.#firstLong(source, base);
    if (long < 0) {
      this.#endGroup(batch, scratch);
      this.#hand(source, base, batch);
      return;
    }
    const { fields } = this.#options.order;
    const writer = this.#writer;
    writer.length = 0;
    for (let i = 0; i <= long; i++) writeFieldComponent(writer, source, base, (fields[i] as OrderField).field);
    const held = this.#held;
    if (held === undefined || compareRanges(held, 0, held.length, writer.bytes, 0, writer.length) !== 0) {
      this.#endGroup(batch, scratch);
      this.#held = writer.finish();
    }
    this.#group ??= new AlikeRows(this.#options, scratch, Math.max(1, this.#left));
    this.#group.add(source, base);
  }

  #endGroup(batch: RowBatch, scratch: Scratch): void {
    if (this.#group === undefined) return;
    for (const { source, base } of this.#group.sorted()) this.#hand(source, base, batch);
    // From here on the caller holds them.
    scratch.release();
    this.#group = undefined;
    this.#held = undefined;
  }

  #hand(source: RowSource, base: number, batch: RowBatch): void {
    batch.add(source, base);
    this.#left--;
  }
}
