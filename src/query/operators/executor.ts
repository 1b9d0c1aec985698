/** Runs a plan on one state of its table: collects, counts or hands out the rows that its access gives. */
import { andThen, isPromise } from '../../base/brands.ts';
import { compareBytes, prefixEnd } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { Pacer } from '../../base/pacer.ts';
import { Scratch } from '../../cache/memory-budget.ts';
import { Node } from '../../format/node.ts';
import { isTruncatedComponent, skipKeyComponent } from '../../format/ordered-key.ts';
import { RowDecoder } from '../../format/row-decode.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { endOfValue } from '../../schema/table-shape.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import { loadChild } from '../../tree/tree.ts';
import type { RowRef, Tree } from '../../tree/tree.ts';
import type { TableState } from '../../view/table-state.ts';
import { filterOf } from '../conditions/condition.ts';
import { RowOrder } from '../conditions/row-order.ts';
import type { Filter } from '../conditions/filter.ts';
import type { Access, CompiledQuery, Plan, IndexAccess, TableAccess } from '../planner/access-paths.ts';
import { countableAccess } from '../planner/query-spec.ts';
import { EntryRows } from './entry-reader.ts';
import { collect, AllRows, CutKeysTie, TopRows } from './sort-and-top-n.ts';
import { openAccess } from './open-operator.ts';
import { countBelow, countMerged } from './range-count.ts';
import { RowBatch, QueryWork } from './row-batch.ts';
import type { RowStream } from './row-batch.ts';
import type { Collector, Keep } from './sort-and-top-n.ts';

export type Row = Record<string, unknown>;

/** Rows held undecoded while the first ones are searched for, at most: each may keep a block in memory. */
const maxHeldRows = 256;
/** The bytes held of each key for more rows. Whole texts of some kilobytes would take more memory than the blocks in the cache. */
const maxHeldKeyBytes = 256;

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

  /** Made on first use: a lookup of a single row needs no pacer and does not read the clock. */
  get #pace(): Pacer {
    this.#pacer ??= new Pacer(this.#environment);
    return this.#pacer;
  }

  /** The number of rows wanted, including those that the offset skips. */
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
      return andThen(found, (rowRef) => this.#single(rowRef));
    }
    const keep: Keep<Row> = (source, base) => this.decode(source, base);
    return this.collected(keep);
  }

  /**
   * Returns the results of `keep` for each row, in order: at once if all blocks are in memory and the access has the order. Throws or
   * rejects with `MemoryBudgetError` if they take more memory than there is.
   */
  collected<T>(keep: Keep<T>): T[] | Promise<T[]> {
    const scratch = new Scratch(this.state.tree.source.memory);
    let collected: T[] | Promise<T[]> | undefined;
    try {
      collected = this.plan.ordered ? this.#collectOrdered(keep, scratch) : this.#collectSorted(keep, scratch);
    } finally {
      // From here on the caller holds them.
      if (!isPromise(collected)) scratch.release();
    }
    return isPromise(collected) ? collected.finally(() => scratch.release()) : collected;
  }

  #single(rowRef: RowRef | undefined): Row[] {
    if (rowRef === undefined || this.query.offset > 0 || !this.#filter.matches(rowRef.source, rowRef.base)) return [];
    this.expectReads(rowRef.source, 1);
    return [this.decode(rowRef.source, rowRef.base)];
  }

  #collectOrdered<T>(keep: Keep<T>, scratch: Scratch): T[] | Promise<T[]> {
    const rows: T[] = [];
    const reader = new RowReader(this, keep);
    for (let bytes = 0; ; bytes = reader.sizeBytes) {
      const more = reader.next(rows);
      if (isPromise(more)) return this.#collectRest(more, reader, rows, scratch);
      if (!more) return rows;
      scratch.add(reader.sizeBytes - bytes);
      const pause = this.breathe();
      if (isPromise(pause))
        return this.#collectRest(
          pause.then(() => true),
          reader,
          rows,
          scratch,
        );
    }
  }

  /** Continues to collect once `first` has resolved to whether there are more rows. */
  async #collectRest<T>(first: Promise<boolean>, reader: RowReader<T>, rows: T[], scratch: Scratch): Promise<T[]> {
    let bytes = reader.sizeBytes;
    for (let more: boolean | Promise<boolean> = first; ; more = reader.next(rows)) {
      if (isPromise(more)) more = await more;
      if (!more) return rows;
      scratch.add(reader.sizeBytes - bytes);
      bytes = reader.sizeBytes;
      await this.breathe();
    }
  }

  async #collectSorted<T>(keep: Keep<T>, scratch: Scratch): Promise<T[]> {
    const { needed } = this;
    const { offset } = this.query;
    const order = new RowOrder(this.state.shape, this.plan.order);
    const { readAheadBytes, blockBytes } = this.state.tree.source.memory;
    if (needed <= Math.min(maxHeldRows, readAheadBytes / blockBytes)) {
      const keepRef: Keep<RowRef> = (source, base) => ({ source, base });
      const top = await this.#collect(new TopRows(order, needed, keepRef), scratch);
      return top.slice(offset).map(({ source, base }) => keep(source, base));
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

  /** Sorts by the first bytes of the keys, which nearly always differ; if they do not suffice, reads the rows a second time with whole keys. */
  async #collectTop<T>(collector: (maxKeyBytes?: number) => Collector<T>, scratch: Scratch): Promise<T[]> {
    try {
      return await this.#collect(collector(maxHeldKeyBytes), scratch);
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

  /** Opens a stream of the matching rows. `access`: the rest of the plan's access after a skip. */
  open(access?: Access): RowStream {
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

  /** Skips rows of the offset by counting, and returns the rest of the plan's access; undefined if rows cannot be skipped. */
  skip(): Promise<Skipped | undefined> | undefined {
    const { state, query, plan } = this;
    const access = countableAccess(state, query, plan);
    return access && skipRows(state, access, query.offset, () => this.breathe());
  }

  /** Lets the event loop run if it is time to, and gives up if the signal says so. */
  breathe(): void | Promise<void> {
    this.#checkSignal();
    return this.#pace.due() ? this.#pace.pause() : undefined;
  }

  /** Only ends the work: the caller that waits has its error already. */
  #checkSignal(): void {
    this.#signal?.throwIfAborted();
  }

  /** Announces that rows of a source are about to be decoded. */
  expectReads(source: RowSource, rows: number): void {
    if (this.#readsText && source instanceof Node) source.expectReads(rows);
  }

  /** Estimates the memory of decoded rows. Made on first use, since lookups of single rows do not need it. */
  get rowSize(): RowSize {
    this.#rowSize ??= new RowSize(this.#fields);
    return this.#rowSize;
  }

  /** Reads the rows in the order of the plan, a batch at a time. */
  reader(): RowReader<Row> {
    return new RowReader(this, (source, base) => this.decode(source, base));
  }

  decode(source: RowSource, base: number): Row {
    return this.#decoder.decode(source, base);
  }
}

/** Reads the rows of an access that has the order asked for, a batch at a time. */
export class RowReader<T> {
  readonly #execution: Execution;
  readonly #keep: Keep<T>;
  #stream: RowStream | undefined;
  readonly #batch = new RowBatch();
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
    this.#batch.wanted = this.#skip + this.#left;
    const more = this.#stream.next(this.#batch);
    return andThen(more, (moved) => this.#take(moved, rows));
  }

  /** Begins after the skipped rows; no rows are left if `skipped` is undefined. */
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
    const batch = this.#batch;
    const execution = this.#execution;
    const skipped = Math.min(this.#skip, batch.count);
    const end = skipped + Math.min(this.#left, batch.count - skipped);
    this.#skip -= skipped;
    this.#left -= end - skipped;
    for (let i = skipped; i < end; ) {
      const source = batch.sources[i] as RowSource;
      const from = i;
      while (i < end && batch.sources[i] === source) i++;
      execution.expectReads(source, i - from);
      this.sizeBytes += execution.rowSize.of(source) * (i - from);
      for (let at = from; at < i; at++) rows.push(this.#keep(source, batch.bases[at] as number));
    }
    batch.clear();
    this.#ended = !more || this.#left === 0;
    return !this.#ended;
  }
}

/** The approximate bytes of an object, of a value in it, and of a string without its text. */
const objectBytes = 40;
const valueBytes = 16;
const stringBytes = 24;

class RowSize {
  readonly #fixedBytes: number;
  readonly #hasText: boolean;

  constructor(fields: readonly LayoutField[]) {
    const texts = fields.filter(({ variable }) => variable).length;
    this.#fixedBytes = objectBytes + fields.length * valueBytes + texts * stringBytes;
    this.#hasText = texts > 0;
  }

  /** Bytes of a decoded row of this source. Its strings are parts of a text of the whole source. */
  of(source: RowSource): number {
    if (this.#hasText && source instanceof EntryRows) return this.#fixedBytes + source.sizeBytes / source.count;
    if (!this.#hasText || !(source instanceof Node)) return this.#fixedBytes;
    return this.#fixedBytes + source.sizeBytes / source.count;
  }
}

const noBytes = new Uint8Array(0);

/** The rest of an access, and how many of its rows must still be skipped. */
interface Skipped {
  readonly access: IndexAccess | TableAccess;
  readonly offset: number;
}

/**
 * Skips rows of a table with unmerged changes, each of which may shift the rows behind it by one: so many rows fewer are skipped, and
 * then it is counted how many those are by now.
 */
async function skipChanged(
  state: TableState,
  access: TableAccess,
  offset: number,
  breathe: () => void | Promise<void>,
): Promise<Skipped | undefined> {
  const skipped = await skipStored(state, access, offset - state.layerRows);
  // Then not even as many are left as could have been inserted.
  if (skipped === undefined) return undefined;
  const [before] = access.ranges as [KeyRange];
  const [behind] = skipped.access.ranges as [KeyRange];
  const passed = access.descending ? { ...before, from: behind.to } : { ...before, to: behind.from };
  return { access: skipped.access, offset: offset - (await countMerged(state, passed, breathe)) };
}

/** Skips as many rows of an access as can be counted. Reads the way to the first row that is left, and little else. */
function skipRows(
  state: TableState,
  access: IndexAccess | TableAccess,
  offset: number,
  breathe: () => void | Promise<void>,
): Promise<Skipped | undefined> {
  return access.kind === 'table' && state.layers.length > 0
    ? skipChanged(state, access, offset, breathe)
    : skipStored(state, access, offset);
}

/** Skips rows of a tree, without unmerged commits. Resolves to undefined if no rows are left. */
async function skipStored(
  state: TableState,
  access: IndexAccess | TableAccess,
  offset: number,
): Promise<Skipped | undefined> {
  const index = access.kind === 'index' ? access.index : undefined;
  const tree = index === undefined ? state.tree : (state.treeOf(index) as Tree);
  const range = access.ranges[0] as KeyRange;
  const root = tree.getCachedRoot() ?? (await tree.loadRoot());
  const left = (rest: KeyRange): IndexAccess | TableAccess => ({ ...access, ranges: [rest] });
  if (!access.descending) {
    const before = range.from === undefined ? 0 : await countBelow(tree, root, range.from);
    const first = await entryAt(tree, root, before + offset);
    if (first === undefined || isAtOrAbove(first.key, range.to)) return undefined;
    return isCut(index, first) ? { access, offset } : { access: left({ ...range, from: first.key }), offset: 0 };
  }
  const end = range.to === undefined ? tree.count : await countBelow(tree, root, range.to);
  // The last one that is skipped, as far as entries come from the end.
  const last = await entryAt(tree, root, end - offset);
  if (last === undefined || !isAtOrAbove(last.key, range.from ?? noBytes)) return undefined;
  if (isCut(index, last)) return { access, offset };
  if (access.kind === 'table' || access.oneValue) return { access: left({ ...range, to: last.key }), offset: 0 };
  // Entries of one value come by ascending primary key: those of this one are left, and skipped one by one.
  const { node, key } = last;
  const above = prefixEnd(key.slice(0, endOfValue(node, key, key.length, access.index)));
  const skipped = above === undefined || isAtOrAbove(above, range.to) ? 0 : end - (await countBelow(tree, root, above));
  return { access: left({ ...range, to: skipped === 0 ? range.to : above }), offset: offset - skipped };
}

interface Entry {
  readonly node: Node;
  readonly key: Uint8Array;
}

/** The entry with so many before it; undefined where there is none. */
async function entryAt(tree: Tree, root: Node, position: number): Promise<Entry | undefined> {
  if (position < 0 || position >= tree.count) return undefined;
  let node = root;
  let left = position;
  while (node.level > 0) {
    let child = 0;
    while (left >= node.childCount(child)) left -= node.childCount(child++);
    node = tree.source.getCachedChild(node, child) ?? (await loadChild(tree.source, node, child));
  }
  return { node, key: node.key(left) };
}

function isAtOrAbove(key: Uint8Array, bound: Uint8Array | undefined): boolean {
  return bound !== undefined && compareBytes(key, bound) >= 0;
}

/** Whether an entry holds only the first bytes of a value: where its row belongs among others is known by the rows alone. */
function isCut(index: TableIndex | undefined, { node, key }: Entry): boolean {
  if (index === undefined) return false;
  endOfValue(node, key, key.length, index);
  let end = 0;
  for (const { typeId } of index.fields) {
    end = skipKeyComponent(key, end, typeId);
    if (isTruncatedComponent(key, end, typeId)) return true;
  }
  return false;
}
