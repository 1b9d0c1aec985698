/** Runs a plan on one state of its table: collects, counts or hands out the rows that its access gives. */
import { isPromise } from '../../base/brands.ts';
import type { Environment } from '../../base/env.ts';
import { Pacer } from '../../base/pacer.ts';
import { Node } from '../../format/node.ts';
import { RowDecoder } from '../../format/row-decode.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Scratch } from '../../cache/query-memory.ts';
import type { TableState } from '../../view/table-state.ts';
import type { RowHit } from '../../tree/tree.ts';
import { AllRows, CutKeysTie, TopRows } from './sort-and-top-n.ts';
import type { Collector, Keep } from './sort-and-top-n.ts';
import { filterOf } from '../conditions/condition.ts';
import { HitList } from './row-batch.ts';
import type { HitStream } from './row-batch.ts';
import { openAccess } from './open-operator.ts';
import { collect } from './long-value-sort.ts';
import type { Access, CompiledQuery, Plan } from '../planner/access-paths.ts';
import { QueryWork } from './work-counters.ts';
import { RowOrder } from '../conditions/row-order.ts';
import { RowSize } from './row-size.ts';
import { skippable } from '../planner/offset-counting.ts';
import { skipRows } from './offset-skip.ts';
import type { Skipped } from './offset-skip.ts';
import type { Filter } from '../conditions/selector.ts';

export type Row = Record<string, unknown>;

/** Rows held undecoded while the first ones are searched for, at most: each may keep a block in memory. */
const mostHeldRows = 256;
/** What is held of the keys of more rows: texts of some kilobytes would take more memory than the blocks in the cache. */
const mostHeldKeyBytes = 256;

export interface ExecutionOptions {
  readonly environment: Environment;
  /** Fields of the rows that are returned; all by default. */
  readonly fields?: readonly LayoutField[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

export class Execution {
  readonly state: TableState;
  readonly query: CompiledQuery;
  readonly plan: Plan;
  readonly work: QueryWork = new QueryWork();
  readonly #decoder: RowDecoder;
  readonly #readsText: boolean;
  readonly #filter: Filter;
  readonly #environment: Environment;
  #pacer: Pacer | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #fields: readonly LayoutField[];
  #rowSize: RowSize | undefined;

  constructor(state: TableState, query: CompiledQuery, plan: Plan, { environment, fields, signal }: ExecutionOptions) {
    this.state = state;
    this.query = query;
    this.plan = plan;
    const { layout, decoder } = state.shape;
    this.#decoder = fields === undefined ? decoder : new RowDecoder(fields);
    this.#readsText = (fields ?? layout.variableFields).some(({ variable }) => variable);
    this.#fields = fields ?? layout.fields;
    this.#filter = filterOf(this.plan.residual);
    this.#environment = environment;
    this.#signal = signal;
  }

  /** A single row is found without it, and without a look at the clock. */
  get #pace(): Pacer {
    this.#pacer ??= new Pacer(this.#environment);
    return this.#pacer;
  }

  /** How many rows are wanted, those that the offset skips included. */
  get needed(): number {
    const { limit, offset } = this.query;
    return limit === undefined ? Number.POSITIVE_INFINITY : limit + offset;
  }

  /** The rows: at once for a single key that is found in memory. */
  rows(): Row[] | Promise<Row[]> {
    const { access } = this.plan;
    if (access.kind === 'nothing') return [];
    if (access.kind === 'keys' && access.keys.length === 1) {
      const found = this.state.lookup(access.keys[0] as Uint8Array);
      return isPromise(found) ? found.then((hit) => this.#single(hit)) : this.#single(found);
    }
    const keep: Keep<Row> = (source, base) => this.decode(source, base);
    return this.collected(keep);
  }

  /** What is kept of each row, in order. Throws `MemoryBudgetError` where that is more than there is memory for. */
  async collected<T>(keep: Keep<T>): Promise<T[]> {
    const scratch = new Scratch(this.state.tree.source.memory);
    try {
      return await (this.plan.ordered ? this.#collectOrdered(keep, scratch) : this.#collectSorted(keep, scratch));
    } finally {
      // From here on they are the caller's.
      scratch.release();
    }
  }

  #single(hit: RowHit | undefined): Row[] {
    if (hit === undefined || this.query.offset > 0 || !this.#filter.matches(hit.source, hit.base)) return [];
    this.expectReads(hit.source, 1);
    return [this.decode(hit.source, hit.base)];
  }

  async #collectOrdered<T>(keep: Keep<T>, scratch: Scratch): Promise<T[]> {
    const rows: T[] = [];
    const reader = new RowReader(this, keep);
    for (let bytes = 0; ; bytes = reader.sizeBytes) {
      let more = reader.next(rows);
      if (isPromise(more)) more = await more;
      if (!more) return rows;
      scratch.add(reader.sizeBytes - bytes);
      await this.breathe();
    }
  }

  async #collectSorted<T>(keep: Keep<T>, scratch: Scratch): Promise<T[]> {
    const { needed } = this;
    const { offset } = this.query;
    const order = new RowOrder(this.state.shape, this.plan.order);
    const { aheadBytes, blockBytes } = this.state.tree.source.memory;
    if (needed <= Math.min(mostHeldRows, aheadBytes / blockBytes)) {
      const keepHit: Keep<RowHit> = (source, base) => ({ source, base });
      const hits = await this.#collect(new TopRows(order, needed, keepHit), scratch);
      return hits.slice(offset).map(({ source, base }) => keep(source, base));
    }
    const keepNow: Keep<T> = (source, base) => {
      this.expectReads(source, 1);
      return keep(source, base);
    };
    // Where most rows are wanted, it takes less to sort them all.
    const most = needed * 2 > this.state.tree.count;
    const sizeOf = (source: RowSource): number => this.rowSize.of(source);
    const rows = await (most
      ? this.#collect(new AllRows(order, keepNow, sizeOf), scratch)
      : this.#collectTop((keyBytes) => new TopRows(order, needed, keepNow, sizeOf, keyBytes), scratch));
    return offset === 0 && rows.length <= needed ? rows : rows.slice(offset, needed);
  }

  /** Goes through the rows with the first bytes of their keys, which nearly always tell them apart, or else once more. */
  async #collectTop<T>(collector: (mostKeyBytes?: number) => Collector<T>, scratch: Scratch): Promise<T[]> {
    try {
      return await this.#collect(collector(mostHeldKeyBytes), scratch);
    } catch (error) {
      if (!(error instanceof CutKeysTie)) throw error;
    }
    this.#filter.bound = undefined;
    scratch.release();
    return this.#collect(collector(), scratch);
  }

  #collect<T>(collector: Collector<T>, scratch: Scratch): Promise<T[]> {
    let bytes = 0;
    return collect(this.open(), collector, this.#pace, ({ bound, sizeBytes }) => {
      this.#checkSignal();
      this.#filter.bound = bound;
      scratch.add(sizeBytes - bytes);
      bytes = sizeBytes;
    });
  }

  /** The rows that match, as a stream. `access`: what is left of that of the plan. */
  open(access?: Access): HitStream {
    const { state, query, needed } = this;
    const plan = access === undefined ? this.plan : { ...this.plan, access };
    const breathe = (): void | Promise<void> => this.breathe();
    return openAccess({
      state,
      query,
      plan,
      filter: this.#filter,
      needed,
      pacer: this.#pace,
      breathe,
      work: this.work,
    });
  }

  /** What of the plan's access is left behind the rows that can be skipped by counting, if it is one of which some can. */
  skip(): Promise<Skipped | undefined> | undefined {
    const { state, query, plan } = this;
    const access = skippable(state, query, plan);
    return access && skipRows(state, access, query.offset, () => this.breathe());
  }

  /** Lets the event loop run if it is time to, and gives up if the signal says so. */
  breathe(): void | Promise<void> {
    this.#checkSignal();
    return this.#pace.due() ? this.#pace.pause() : undefined;
  }

  /** Whoever waits has been told already: this only ends the work. */
  #checkSignal(): void {
    this.#signal?.throwIfAborted();
  }

  /** Says that rows of a source are about to be decoded. */
  expectReads(source: RowSource, rows: number): void {
    if (this.#readsText && source instanceof Node) source.expectReads(rows);
  }

  /** What rows take once they are decoded. Single rows are read without it. */
  get rowSize(): RowSize {
    this.#rowSize ??= new RowSize(this.#fields);
    return this.#rowSize;
  }

  decode(source: RowSource, base: number): Row {
    return this.#decoder.decode(source, base);
  }
}

/** Hands out what is kept of the rows of an access that has the order asked for, a batch at a time. */
export class RowReader<T> {
  readonly #execution: Execution;
  readonly #keep: Keep<T>;
  #stream: HitStream | undefined;
  readonly #hits = new HitList();
  #skip: number;
  #left: number;
  #ended = false;
  /** Memory that the rows take that were handed out, as an estimate. */
  sizeBytes = 0;

  constructor(execution: Execution, keep: Keep<T>) {
    this.#execution = execution;
    this.#keep = keep;
    this.#skip = execution.query.offset;
    this.#left = execution.query.limit ?? Number.POSITIVE_INFINITY;
  }

  /** Appends some rows, perhaps none; false once there are no more. */
  next(rows: T[]): boolean | Promise<boolean> {
    if (this.#ended) return false;
    if (this.#stream === undefined) {
      const skipped = this.#execution.skip();
      if (skipped !== undefined) return skipped.then((left) => this.#begin(left));
      this.#stream = this.#execution.open();
    }
    this.#hits.wanted = this.#skip + this.#left;
    const more = this.#stream.next(this.#hits);
    return isPromise(more) ? more.then((moved) => this.#take(moved, rows)) : this.#take(more, rows);
  }

  /** Begins behind the rows that were skipped; none are left where that is undefined. */
  #begin(skipped: Skipped | undefined): boolean {
    if (skipped === undefined) {
      this.#ended = true;
      return false;
    }
    this.#stream = this.#execution.open(skipped.access);
    this.#skip = skipped.offset;
    return true;
  }

  #take(more: boolean, rows: T[]): boolean {
    const hits = this.#hits;
    const execution = this.#execution;
    const skipped = Math.min(this.#skip, hits.count);
    const end = skipped + Math.min(this.#left, hits.count - skipped);
    this.#skip -= skipped;
    this.#left -= end - skipped;
    for (let i = skipped; i < end; ) {
      const source = hits.sources[i] as RowSource;
      const from = i;
      while (i < end && hits.sources[i] === source) i++;
      execution.expectReads(source, i - from);
      this.sizeBytes += execution.rowSize.of(source) * (i - from);
      for (let at = from; at < i; at++) rows.push(this.#keep(source, hits.bases[at] as number));
    }
    hits.clear();
    this.#ended = !more || this.#left === 0;
    return !this.#ended;
  }
}
