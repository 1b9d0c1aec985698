/** The budget of a query, and the meter that counts its use. */
import { newAbortController, untilAborted } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import { BudgetExceededError } from '../base/errors.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { CacheCounters } from '../cache/block-cache.ts';
import type { CacheEntry } from '../cache/cached-node.ts';
import type { ReadMemory } from '../cache/memory-budget.ts';
import type { BlockRef } from '../format/block.ts';
import type { Node } from '../format/node.ts';
import { noBlocks, SingleFlight } from '../tree/block-source.ts';
import type { BlockSource } from '../tree/block-source.ts';
import { TwoPartTree } from '../tree/two-part-tree.ts';
import { Tree } from '../tree/tree.ts';
import type { TreeIdentity } from '../tree/tree.ts';
import { TableState } from '../view/table-state.ts';
import { namesIn } from './conditions/condition.ts';
import type { Plan } from './planner/access-paths.ts';

/** The limits of one run of a query, for `query.budget()`. A limit that is left out does not apply. */
export interface BudgetLimits {
  /**
   * Blocks that the query needs and that are not in memory: each takes a request, unless a `cacheDriver` has it. A block that
   * another query is reading at the same time counts for both. Reads to catch up with the log first do not count.
   */
  readonly requests?: number;
  /** Bytes of these blocks. */
  readonly bytes?: number;
  /** Time in milliseconds. In a `for await` loop, the time of the loop's body does not count. */
  readonly ms?: number;
}

const amount = kinds.number(0, Infinity);

export const budgetLimits: OptionTable<BudgetLimits> = new OptionTable({ requests: amount, bytes: amount, ms: amount });

/** Returns advice on how to read less than a plan does. */
function adviceOn({ access, residual, ordered, order }: Plan): string {
  const tested = namesIn(residual)
    .map((name) => `'${name}'`)
    .join(', ');
  if (access.kind === 'table' && tested !== '') {
    return `It reads rows by primary key and tests each for ${tested}: an index on a selective condition would spare most of them.`;
  }
  if (!ordered && order[0] !== undefined) {
    return `It reads all rows that match and sorts them: with an index on '${order[0].field.name}' a limit would spare most of them.`;
  }
  return 'Narrower conditions or a lower limit make it read less.';
}

/** Counts what one run of a query uses: the blocks that it is about to load, and the time. */
export class BudgetMeter implements BlockMeter {
  readonly #environment: Environment;
  readonly #table: string;
  readonly #budget: BudgetLimits;
  readonly #controller = newAbortController();
  #requests = 0;
  #bytes = 0;
  #usedMs = 0;
  #sinceMs: number | undefined;
  /** How the query is run, for the message. */
  plan: Plan | undefined;

  constructor(environment: Environment, table: string, budget: BudgetLimits) {
    this.#environment = environment;
    this.#table = table;
    this.#budget = budget;
  }

  /** Aborted once the time is used up. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Counts the time of work. Rejects when the budget's time is used up, even if the store does not answer. */
  async timed<T>(work: () => Promise<T>): Promise<T> {
    const { ms } = this.#budget;
    this.#sinceMs = this.#environment.monotonicMs();
    const end = (): void => this.#controller.abort(this.#exceeded('ms'));
    const timer =
      ms === undefined
        ? undefined
        : this.#environment.setTimer(end, Math.max(0, ms - this.#usedMs), { background: true });
    try {
      return await untilAborted(work(), this.signal);
    } finally {
      timer?.cancel();
      this.#usedMs = this.#elapsedMs();
      this.#sinceMs = undefined;
    }
  }

  #elapsedMs(): number {
    return this.#usedMs + (this.#sinceMs === undefined ? 0 : this.#environment.monotonicMs() - this.#sinceMs);
  }

  /** A block is about to be loaded. Throws if the budget has no room for it. */
  charge(sizeBytes: number): void {
    this.signal.throwIfAborted();
    if (this.#requests + 1 > (this.#budget.requests ?? Number.POSITIVE_INFINITY)) throw this.#exceeded('requests');
    if (this.#bytes + sizeBytes > (this.#budget.bytes ?? Number.POSITIVE_INFINITY)) throw this.#exceeded('bytes');
    this.#requests++;
    this.#bytes += sizeBytes;
  }

  #exceeded(limit: keyof BudgetLimits): BudgetExceededError {
    const used = { requests: this.#requests, bytes: this.#bytes, ms: Math.round(this.#elapsedMs()) };
    const allowed = `${this.#budget[limit]} ${limit}`;
    const message =
      `The query on table '${this.#table}' was given up: it needs more than the ${allowed} of its budget. By then it had used ` +
      `${used.requests} requests, ${used.bytes} bytes and ${used.ms} ms. ` +
      (this.plan === undefined
        ? 'It had not begun to read its rows: it was catching up, or reading the rows that updates of the overlay change.'
        : adviceOn(this.plan));
    return new BudgetExceededError(limit, used, message);
  }

  /** Returns a state whose blocks are counted when they are loaded. */
  metered(state: TableState): TableState {
    return meteredState(state, () => this);
  }
}

/** Counts the blocks that a run of a query uses. */
export interface BlockMeter {
  /** A block is about to be loaded. May throw to prevent it. */
  charge(sizeBytes: number): void;
  /** A block is used, perhaps again. */
  use?(node: Node): void;
}

/** Returns a state whose blocks are counted: blocks of an index by the meter for its name, others by the meter for no name. */
export function meteredState(state: TableState, meterOf: (index?: string) => BlockMeter): TableState {
  const metered = (tree: Tree, index?: string): Tree => {
    if (tree instanceof TwoPartTree) {
      const { lower, upper, bound } = tree;
      return new TwoPartTree(lower && metered(lower, index), metered(upper, index), bound);
    }
    return tree.ref === null || tree.source === noBlocks ? tree : new MeteredTree(tree, meterOf(index));
  };
  const indexes = new Map([...state.indexes].map(([name, tree]) => [name, metered(tree, name)]));
  const layers = state.layers.map((layer) => metered(layer));
  const indexVersions = state.indexVersions.map((indexVersion) => ({
    ...indexVersion,
    tree: metered(indexVersion.tree, indexVersion.index.name),
  }));
  const { shape, blanks, added, layering } = state;
  return new TableState(shape, metered(state.tree), indexes, layers, indexVersions, blanks, added, layering);
}

class MeteredSource implements BlockSource {
  readonly #source: BlockSource;
  readonly #meter: BlockMeter;
  readonly #loads = new SingleFlight<Node>();

  constructor(source: BlockSource, meter: BlockMeter) {
    this.#source = source;
    this.#meter = meter;
  }

  get counters(): CacheCounters {
    return this.#source.counters;
  }

  get memory(): ReadMemory {
    return this.#source.memory;
  }

  find(ref: BlockRef): CacheEntry | undefined {
    const entry = this.#source.find(ref);
    if (entry?.node !== undefined) this.#meter.use?.(entry.node);
    return entry;
  }

  getCachedChild(node: Node, i: number, passing?: boolean): Node | undefined {
    const child = this.#source.getCachedChild(node, i, passing);
    if (child !== undefined) this.#meter.use?.(child);
    return child;
  }

  peek(ref: BlockRef): Node | undefined {
    return this.#source.peek(ref);
  }

  peekChild(node: Node, i: number): Node | undefined {
    return this.#source.peekChild(node, i);
  }

  async load(ref: BlockRef, passing?: boolean): Promise<Node> {
    return this.loadBy(ref, () => this.#source.load(ref, passing));
  }

  loadBy(ref: BlockRef, load: () => Promise<Node>): Promise<Node> {
    const name = `${ref.birth} ${ref.id}`;
    return this.#loads.share(name, () => {
      if (this.#source.find(ref)?.node === undefined) this.#meter.charge(ref.sizeBytes);
      return load().then((node) => {
        this.#meter.use?.(node);
        return node;
      });
    });
  }
}

class MeteredTree extends Tree {
  readonly #tree: Tree;
  readonly #source: MeteredSource;

  constructor(tree: Tree, meter: BlockMeter) {
    const source = new MeteredSource(tree.source, meter);
    super(source, tree.ref, tree.node, tree.mayBreak);
    this.#tree = tree;
    this.#source = source;
  }

  override get identity(): TreeIdentity | undefined {
    return this.#tree.identity;
  }

  override getCachedRoot(): Node | undefined {
    return this.#tree.getCachedRoot();
  }

  override peekRoot(): Node | undefined {
    return this.#tree.peekRoot();
  }

  override async loadRoot(): Promise<Node> {
    return this.getCachedRoot() ?? this.#source.loadBy(this.ref as BlockRef, () => this.#tree.loadRoot());
  }
}
