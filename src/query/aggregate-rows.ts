/** Computes aggregates of all rows of a query, or of each group. Rows are read field by field, not decoded. */
import { latin1Slice } from '#platform';
import { isPromise } from '../base/brands.ts';
import { ByteWriter, compareBytes } from '../base/bytes.ts';
import { Scratch } from '../cache/memory-budget.ts';
import { shownValue } from '../format/json-path.ts';
import { readField } from '../format/row-decode.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import type { KeyRange } from '../tree/cursor.ts';
import type { Tree } from '../tree/tree.ts';
import { accumulatorOf, oneZero } from './aggregate.ts';
import type { Accumulator, CompiledAggregate, WrittenAggregate } from './aggregate.ts';
import { filterOf } from './conditions/condition.ts';
import { writeOrderComponent } from './conditions/row-order.ts';
import type { Execution, Row } from './operators/executor.ts';
import { openTable } from './operators/open-operator.ts';
import { countMerged, countRange } from './operators/range-count.ts';
import { RowBatch } from './operators/row-batch.ts';
import type { TableAccess } from './planner/access-paths.ts';

/** The approximate bytes of a group beyond its key and values, and of each of its aggregates. */
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
function textOf(bytes: Uint8Array, length: number): string {
  return latin1Slice.call(bytes, 0, length);
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
   * Returns a row for each group, in the order of the grouping fields; one row if there are none. Rejects with `MemoryBudgetError` if
   * the groups take more memory than there is.
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
        ...aggregates.map(({ name, kind, field }, i): [string, unknown] => {
          const result = accumulators[i]?.result();
          return [name, kind === 'min' || kind === 'max' ? shownValue(field as LayoutField, result) : result];
        }),
      ]);
    });
  }

  async #foldStream(): Promise<void> {
    const stream = this.#execution.open();
    const batch = new RowBatch();
    for (;;) {
      let more = stream.next(batch);
      if (isPromise(more)) more = await more;
      for (let i = 0; i < batch.count; i++) this.#add(batch.sources[i] as RowSource, batch.bases[i] as number);
      batch.clear();
      if (!more) return;
      await this.#execution.breathe();
    }
  }

  /** Aggregates a query with a limit or offset. Its rows are known only at the end, so the needed values of each are kept until then. */
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
    return this.#options.groupedBy.map((field) => shownValue(field, oneZero(readField(source, base, field))));
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

/** Runs a query of {@link writtenExtreme}, and returns the value. */
export async function extremeOf(execution: Execution, name: string): Promise<unknown> {
  const rows = await execution.rows();
  return oneZero(rows[0]?.[name] ?? null);
}

/** Scanning up to so many rows costs less than planning several queries. */
const fewRows = 1000;

/** Whether a query of {@link writtenSingly} takes a few blocks: it ends with its first row, or counts without reading any. */
export function isQuick({ state, query, plan }: Execution): boolean {
  const { access, residual, ordered } = plan;
  if (access.kind === 'nothing') return true;
  if (access.kind !== 'table' && access.kind !== 'index') return false;
  if (residual.length > 0 || state.tree.count <= fewRows) return false;
  return query.counts === true ? state.layers.length === 0 : ordered;
}

/** Returns the result of an aggregate by its own query. */
export function resultOf(execution: Execution, { kind, field }: WrittenAggregate): Promise<unknown> {
  return kind === 'count' ? countRows(execution) : extremeOf(execution, field as string);
}

/** Counts the rows that a query returns, offset and limit applied, with as few reads as possible. */
export async function countRows(execution: Execution): Promise<number> {
  const { offset, limit } = execution.query;
  const total = await countMatches(execution);
  return Math.max(0, Math.min(total - offset, limit ?? Number.POSITIVE_INFINITY));
}

/** Counts matching rows, at least up to the number needed. */
async function countMatches(execution: Execution): Promise<number> {
  const { state, plan } = execution;
  const { access, residual } = plan;
  const exact = residual.length === 0;
  if (exact && access.kind === 'table') {
    return sumOf(execution, access.ranges, (range) => countMerged(state, range, () => execution.breathe()));
  }
  if (exact && access.kind === 'index' && state.layers.length === 0) {
    const tree = state.treeOf(access.index) as Tree;
    return sumOf(execution, access.ranges, (range) => countRange(tree, range));
  }
  if (exact && access.kind === 'search') return access.total;
  if (access.kind === 'table') return countSelected(execution, access);
  return countHits(execution);
}

/** The number of ranges counted at the same time. Each may hold a block at both of its ends. */
const rangesAtOnce = 16;

/** Returns the sum of the counts of ranges. */
async function sumOf(
  execution: Execution,
  ranges: readonly KeyRange[],
  count: (range: KeyRange) => Promise<number>,
): Promise<number> {
  let total = 0;
  for (let i = 0; i < ranges.length; i += rangesAtOnce) {
    const counts = await Promise.all(ranges.slice(i, i + rangesAtOnce).map(count));
    for (const one of counts) total += one;
    await execution.breathe();
  }
  return total;
}

async function countSelected(execution: Execution, access: TableAccess): Promise<number> {
  const { state, plan, work } = execution;
  const breathe = (): void | Promise<void> => execution.breathe();
  const stream = openTable({ state, filter: filterOf(plan.residual), work, breathe }, access);
  const { needed } = execution;
  let total = 0;
  while (total < needed) {
    let more = stream.count();
    if (isPromise(more)) more = await more;
    if (more === undefined) break;
    total += more;
    await execution.breathe();
  }
  return total;
}

async function countHits(execution: Execution): Promise<number> {
  const stream = execution.open();
  const { needed } = execution;
  const batch = new RowBatch(needed);
  let total = 0;
  while (total < needed) {
    let more = stream.next(batch);
    if (isPromise(more)) more = await more;
    total += batch.count;
    batch.clear();
    if (!more) break;
    await execution.breathe();
  }
  return total;
}
