/** Rows of another access, in its order: those that have the words of a search. */
import { isPromise } from '../../base/brands.ts';
import { Node } from '../../format/node.ts';
import type { RowSource } from '../../format/row-layout.ts';
import type { TableState } from '../../view/table-state.ts';
import type { Filter } from '../conditions/filter.ts';
import { LookupPace, Lookups } from '../operators/lookups.ts';
import { RowBatch } from '../operators/row-batch.ts';
import type { QueryWork, RowStream } from '../operators/row-batch.ts';
import type { SourceProbe } from './posting-probe.ts';
import { PostingRun, RunBuilder } from './posting-run.ts';

export interface OrderedSearchOptions {
  readonly state: TableState;
  readonly probes: readonly SourceProbe[];
  /** How many rows are looked for at a time, at most. */
  readonly together: number;
  /** The conditions that rows are tested for. */
  readonly filter: Filter;
  readonly work: QueryWork;
  /** Counts the entries by themselves. */
  readonly use: { asked: number; others: number; rows: number };
}

/** A row with the words. `row`: undefined where it must be looked up. */
interface FoundRow {
  readonly key: Uint8Array;
  readonly row: { readonly source: RowSource; readonly base: number } | undefined;
}

/** Rows are looked for so many at a time at first, since a query may need no more. */
const firstTogether = 16;

export class OrderedSearch implements RowStream {
  readonly #others: RowStream;
  /** The work of the other access. */
  readonly #otherWork: QueryWork;
  readonly #options: OrderedSearchOptions;
  readonly #pace: LookupPace;
  readonly #batch = new RowBatch();
  #together = firstTogether;
  #isOver = false;
  /** Rows with the words that were not returned yet. */
  #found: FoundRow[] = [];

  /** `otherWork`: what `others` counts its work in. */
  constructor(others: RowStream, otherWork: QueryWork, options: OrderedSearchOptions) {
    this.#others = others;
    this.#otherWork = otherWork;
    this.#options = options;
    this.#pace = new LookupPace(options.state.tree.source.memory, options.filter);
  }

  async next(batch: RowBatch): Promise<boolean> {
    if (this.#found.length === 0) {
      if (this.#isOver) return false;
      await this.#findMore();
    }
    const { state, filter, work } = this.#options;
    const lookups = new Lookups(filter, batch, work);
    const step = this.#pace.step(batch.wanted);
    const now = this.#found.splice(0, filter.empty ? Math.min(step, batch.wanted) : step);
    for (const { key, row } of now) {
      if (row === undefined) lookups.add(state.lookup(key));
      else lookups.addRow(row.source, row.base);
    }
    await lookups.finish();
    return true;
  }

  /** Looks for some of the other rows among those with the words. */
  async #findMore(): Promise<void> {
    const { probes, state, together } = this.#options;
    const batch = this.#batch;
    batch.wanted = this.#together;
    this.#together = Math.min(this.#together * 2, together);
    const moved = this.#others.next(batch);
    this.#isOver = !(isPromise(moved) ? await moved : moved);
    const builder = new RunBuilder();
    for (let i = 0; i < batch.count; i++) {
      const key = keyOf(state, batch, i);
      builder.add(key, 0, key.length, 0, 0);
    }
    const keys = new PostingRun(builder);
    const isFound = new Uint8Array(keys.count);
    for (const probe of probes) {
      for (let from = 0; from < keys.count; from += together) {
        const scores = await probe.scores(keys, from, Math.min(keys.count, from + together));
        for (const [i, score] of scores.entries()) if (score >= 0) isFound[from + i] = 1;
      }
    }
    for (let i = 0; i < batch.count; i++) {
      if (isFound[i] === 0) continue;
      const source = batch.sources[i] as RowSource;
      // Others are made of entries of an index, and have a part of the fields.
      const row = source instanceof Node ? { source, base: batch.bases[i] as number } : undefined;
      this.#found.push({ key: keyOf(state, batch, i), row });
    }
    batch.clear();
    this.#countWork();
  }

  #countWork(): void {
    const { work, probes, use } = this.#options;
    const others = this.#otherWork;
    let asked = 0;
    for (const probe of probes) {
      asked += probe.asked;
      probe.asked = 0;
    }
    work.entries += others.entries + asked;
    work.rows += others.rows;
    use.others += others.entries;
    use.rows += others.rows + others.lookups;
    use.asked += asked;
    others.entries = 0;
    others.rows = 0;
    others.lookups = 0;
  }
}

function keyOf({ shape }: TableState, batch: RowBatch, i: number): Uint8Array {
  return shape.keyBytes(shape.rowKey(batch.sources[i] as RowSource, batch.bases[i] as number));
}
