/** Folds the rows of a query into aggregates: all of them, or each group. Rows are read field by field, not decoded. */
import { isPromise } from '../base/brands.ts';
import { ByteWriter, compareBytes } from '../base/bytes.ts';
import { readField } from '../format/row-decode.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import { Scratch } from '../cache/query-memory.ts';
import { accumulatorOf, oneZero } from './aggregate.ts';
import type { Accumulator, CompiledAggregate } from './aggregate.ts';
import type { Execution, Row } from './operators/executor.ts';
import { HitList } from './operators/row-batch.ts';
import { writeOrderComponent } from './conditions/row-order.ts';

/** About what a group takes beyond its key and its values, and each of its aggregates, in bytes. */
const groupBytes = 300;
const aggregateBytes = 150;

interface Group {
  readonly key: Uint8Array;
  readonly values: readonly unknown[];
  readonly accumulators: readonly Accumulator[];
}

export interface FoldOptions {
  readonly groupedBy: readonly LayoutField[];
  readonly aggregates: readonly CompiledAggregate[];
}

/** Bytes as something that maps can hold. */
function textOf({ buffer, byteOffset }: Uint8Array, length: number): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1');
}

export class Fold {
  readonly #execution: Execution;
  readonly #options: FoldOptions;
  readonly #groups = new Map<string, Group>();
  readonly #scratch = new ByteWriter(256);
  readonly #memory: Scratch;

  constructor(execution: Execution, options: FoldOptions) {
    this.#execution = execution;
    this.#options = options;
    this.#memory = new Scratch(execution.state.tree.source.memory);
  }

  /**
   * A row for each group, in the order of what they are grouped by; one row if they are not grouped. Rejects with
   * `MemoryBudgetError` where they are more than there is memory for.
   */
  async rows(): Promise<Row[]> {
    try {
      return await this.#rows();
    } finally {
      this.#memory.release();
    }
  }

  async #rows(): Promise<Row[]> {
    const { groupedBy, aggregates } = this.#options;
    const { limit, offset } = this.#execution.query;
    if (groupedBy.length === 0) this.#group(new Uint8Array(0), []);
    if (limit === undefined && offset === 0) await this.#foldStream();
    else await this.#foldRows();
    const groups = [...this.#groups.values()].toSorted((a, b) => compareBytes(a.key, b.key));
    return groups.map(({ values, accumulators }) => {
      return Object.fromEntries([
        ...groupedBy.map(({ name }, i): [string, unknown] => [name, values[i]]),
        ...aggregates.map(({ name }, i): [string, unknown] => [name, accumulators[i]?.result()]),
      ]);
    });
  }

  async #foldStream(): Promise<void> {
    const stream = this.#execution.open();
    const hits = new HitList();
    for (;;) {
      let more = stream.next(hits);
      if (isPromise(more)) more = await more;
      for (let i = 0; i < hits.count; i++) this.#add(hits.sources[i] as RowSource, hits.bases[i] as number);
      hits.clear();
      if (!more) return;
      await this.#execution.breathe();
    }
  }

  /** Which rows the query gives is known at the end only: until then, what is needed of each is kept. */
  async #foldRows(): Promise<void> {
    const { aggregates } = this.#options;
    const kept = await this.#execution.collected((source, base) => {
      const values = aggregates.map(({ field }) => (field === undefined ? true : readField(source, base, field)));
      return { key: this.#keyOf(source, base), values, group: this.#valuesOf(source, base) };
    });
    for (const { key, group, values } of kept) {
      const { accumulators } = this.#groups.get(textOf(key, key.length)) ?? this.#group(key, group);
      for (let i = 0; i < values.length; i++) if (values[i] !== null) (accumulators[i] as Accumulator).add(values[i]);
    }
  }

  #add(source: RowSource, base: number): void {
    const { aggregates } = this.#options;
    const { accumulators } = this.#groupOf(source, base);
    for (let i = 0; i < aggregates.length; i++) {
      const { field } = aggregates[i] as CompiledAggregate;
      const value = field === undefined ? true : readField(source, base, field);
      if (value !== null) (accumulators[i] as Accumulator).add(value);
    }
  }

  #groupOf(source: RowSource, base: number): Group {
    const scratch = this.#scratch;
    scratch.length = 0;
    for (const field of this.#options.groupedBy) writeOrderComponent(scratch, source, base, field);
    const known = this.#groups.get(textOf(scratch.bytes, scratch.length));
    return known ?? this.#group(scratch.finish(), this.#valuesOf(source, base));
  }

  #keyOf(source: RowSource, base: number): Uint8Array {
    const writer = new ByteWriter(32);
    for (const field of this.#options.groupedBy) writeOrderComponent(writer, source, base, field);
    return writer.finish();
  }

  #valuesOf(source: RowSource, base: number): unknown[] {
    return this.#options.groupedBy.map((field) => oneZero(readField(source, base, field)));
  }

  #group(key: Uint8Array, values: readonly unknown[]): Group {
    const { aggregates } = this.#options;
    // The key twice, as bytes and as text, and about once more as values.
    this.#memory.add(groupBytes + key.length * 3 + aggregates.length * aggregateBytes);
    const group = { key, values, accumulators: aggregates.map(accumulatorOf) };
    this.#groups.set(textOf(key, key.length), group);
    return group;
  }
}
