/**
 * Makes index versions of indexes on functions in the background, and catches them up with their tables. It works in the turns
 * of this node, chunk by chunk, and each chunk is one generation. Nodes do not know which other nodes have the function; if two
 * work at once, one chunk is lost.
 */
import { compareBytes, keyAfter } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import type { Registry } from '../catalog/registry.ts';
import type { Role } from '../coordination/membership.ts';
import type { Engine } from '../engine/engine.ts';
import type { Bound } from '../format/stored-table.ts';
import {
  GrowingIndexVersion,
  growingIndex,
  growingRows,
  keptAdded,
  keptIndexVersion,
  mergeBase,
} from '../merge/merge-table.ts';
import type { TableMergeContext } from '../merge/growing-tree.ts';
import type { MergedIndexVersion, MergedTable } from '../merge/merge-table.ts';
import { TreeCursor } from '../tree/cursor.ts';
import type { Tree } from '../tree/tree.ts';
import { indexedFunctions, isSameIndex, isWhole } from '../view/index-version.ts';
import type { IndexedFunction, IndexVersion } from '../view/index-version.ts';
import { layeredState } from '../view/layered-state.ts';
import type { TableState } from '../view/table-state.ts';
import { View } from '../view/view.ts';
import { ChunkWork, indexChunks } from './chunk-work.ts';
import type { Step, ChunkLimits } from './chunk-work.ts';
import { ChangeList } from './shadow-changes.ts';
import { diffTrees } from './tree-diff.ts';

export interface FunctionIndexDaemonOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
  /** A replica does no such work. */
  readonly role: Role;
  readonly intervalMs: number;
}

/** An index version that needs work. */
interface Job {
  readonly table: string;
  readonly indexed: IndexedFunction;
}

export class FunctionIndexDaemon {
  readonly #options: FunctionIndexDaemonOptions;
  /** The last message logged for each table and index. */
  readonly #told = new Map<string, string>();
  readonly #chunks: ChunkWork;

  constructor(options: FunctionIndexDaemonOptions) {
    this.#options = options;
    this.#chunks = new ChunkWork(options, {
      name: 'Making an index',
      ...indexChunks,
      delayMs: (atOnce) => (this.#jobs(this.#view).length === 0 ? undefined : this.#chunks.untilTurn(atOnce)),
      work: async () => {
        for (const job of this.#jobs(this.#view)) await this.#chunks.repeat(() => this.#step(job));
      },
    });
  }

  stop(): void {
    this.#chunks.stop();
  }

  get #view(): View {
    return this.#options.engine.view;
  }

  /** Looks for work: the view has moved on, or a function was registered. */
  viewChanged(view: View = this.#view): void {
    if (this.#options.role !== 'replica' && this.#jobs(view).length > 0) this.#chunks.look();
  }

  /** The index versions that this node can work on, as far as a view shows. */
  #jobs(view: View): Job[] {
    const jobs: Job[] = [];
    for (const [table, state] of view.tables) {
      for (const indexed of this.#functionsOf(state)) {
        if (hasFunctionIndexWork(state, indexed)) jobs.push({ table, indexed });
      }
    }
    return jobs;
  }

  #functionsOf({ shape }: TableState): IndexedFunction[] {
    const { registry } = this.#options;
    return shape.functionIndexes.length === 0
      ? []
      : indexedFunctions(shape, (name) => registry.registeredFunction(name));
  }

  /** Makes the next chunk of an index version, if it is this node's turn. */
  async #step(job: Job): Promise<Step> {
    if (!this.#chunks.isOwnTurn()) return 'nothing';
    const { engine } = this.#options;
    const { table, indexed } = job;
    const chunk = await this.#chunks.store(async (block0, limits, context) => {
      if (engine.view.isDropped(table)) return undefined;
      const state = View.ofBlock0(engine.context, block0).table(table);
      // By now the table may be in another version, and the function may have been registered in another version.
      const present = state && this.#functionsOf(state).find(({ index }) => isSameIndex(index, indexed.index));
      return state && present && nextFunctionIndexChunk(state, present, limits, context);
    });
    if (chunk === undefined) return 'nothing';
    return chunk === 'lost' ? chunk : { rows: chunk.rows, tell: () => this.#tell(job, chunk) };
  }

  /** Logs once that an index version is complete, and how many rows its function fails on. */
  #tell({ table, indexed }: Job, { indexVersion }: FunctionIndexChunk): void {
    const { logger } = this.#options;
    const { index, registered } = indexed;
    if (indexVersion.built !== null) return;
    const name = `${table}/${index.name}`;
    const message = `${registered.version} ${indexVersion.failed}`;
    if (this.#told.get(name) === message) return;
    this.#told.set(name, message);
    const details = { table, index: index.name, version: registered.version };
    const of = `version ${registered.version} of function ${registered.name}`;
    logger.info(`Index ${index.name} of table ${table} has all entries of ${of}`, details);
    if (indexVersion.failed === 0) return;
    const rows = indexVersion.failed === 1 ? '1 row' : `${indexVersion.failed} rows`;
    logger.warn(
      `Index ${index.name} of table ${table} is not used: ${of} fails on ${rows}. Queries that ask for the function reject ` +
        'with FunctionError until the rows are corrected, or the function in a new version.',
      { ...details, failed: indexVersion.failed },
    );
  }
}

/** The most index versions that are kept of one index. */
const maxIndexVersions = 4;

interface FunctionIndexChunk {
  readonly table: MergedTable;
  /** Rows read. */
  readonly rows: number;
  readonly indexVersion: MergedIndexVersion;
}

/** Whether this node must make an index version, or catch it up with its table. */
function hasFunctionIndexWork(table: TableState, indexed: IndexedFunction): boolean {
  const stored = table.indexVersions.find(({ index }) => isSameIndex(index, indexed.index));
  if (stored !== undefined) return !isWhole(stored);
  // An empty table gets its index version with its first rows.
  return table.tree.ref !== null && otherIndexVersions(table, indexed) !== undefined;
}

/**
 * Returns the index versions that are kept along with one. If there are too many, the one that has been outdated for longest is
 * left out; undefined if all of them are current.
 */
function otherIndexVersions(table: TableState, { index }: IndexedFunction): readonly IndexVersion[] | undefined {
  const others = table.indexVersions.filter((indexVersion) => !isSameIndex(indexVersion.index, index));
  const ofIndex = others.filter((indexVersion) => indexVersion.index.name === index.name);
  if (ofIndex.length < maxIndexVersions) return others;
  const left = ofIndex.filter(({ behindFrom }) => behindFrom !== null);
  if (left.length === 0) return undefined;
  const first = left.reduce((a, b) => ((a.behindFrom as number) <= (b.behindFrom as number) ? a : b));
  return others.filter((indexVersion) => indexVersion !== first);
}

/**
 * Computes the next chunk of an index version; undefined if there is no work. The chunk first catches up with changes of the
 * table, and then makes some of the missing entries. It reads and writes only the state in Block 0, so any node that has the
 * function in that version can take the next step.
 */
export async function nextFunctionIndexChunk(
  table: TableState,
  indexed: IndexedFunction,
  limits: ChunkLimits,
  context: TableMergeContext,
): Promise<FunctionIndexChunk | undefined> {
  if (!hasFunctionIndexWork(table, indexed)) return undefined;
  const builder = new IndexVersionBuilder(table, indexed, limits, context);
  await builder.catchUp();
  await builder.build();
  return builder.finish();
}

class IndexVersionBuilder {
  readonly #table: TableState;
  readonly #indexed: IndexedFunction;
  readonly #limits: ChunkLimits;
  readonly #context: TableMergeContext;
  readonly #growing: GrowingIndexVersion;
  readonly #base: Tree;
  readonly #toBase: ChangeList;
  /** The last key whose entry was made; undefined before the first, null once all entries are made. */
  #built: Bound;
  #seen = 0;
  #isCaughtUp = false;

  constructor(table: TableState, indexed: IndexedFunction, limits: ChunkLimits, context: TableMergeContext) {
    const stored = table.indexVersions.find(({ index }) => isSameIndex(index, indexed.index));
    this.#table = table;
    this.#indexed = indexed;
    this.#limits = limits;
    this.#context = context;
    this.#growing = new GrowingIndexVersion(table, indexed, context, stored);
    this.#base = stored?.base ?? table.tree;
    this.#built = stored?.built;
    this.#toBase = new ChangeList(table.shape);
  }

  get #isFull(): boolean {
    const { rows, bytes, isOver } = this.#limits;
    const sizeBytes = this.#growing.changes.sizeBytes + this.#toBase.sizeBytes;
    return this.#seen > 0 && (this.#seen >= rows || sizeBytes >= bytes || isOver());
  }

  async #step(): Promise<void> {
    const { pacer } = this.#context;
    this.#seen++;
    if ((this.#seen & 0x1f) === 0 && pacer.due()) await pacer.pause();
  }

  /** Applies changes of the table to the entries that are already made. */
  async catchUp(): Promise<void> {
    const built = this.#built;
    const { tree, shape } = this.#table;
    if (built !== undefined) {
      for await (const { key, before, after } of diffTrees(this.#base, tree, shape.layout)) {
        // Entries of later keys are still to be made.
        if (built !== null && compareBytes(key, built) > 0) break;
        if (this.#isFull) return;
        this.#growing.changes.add(before, after, key);
        this.#toBase.put(key, after);
        await this.#step();
      }
    }
    this.#isCaughtUp = true;
  }

  /** Makes missing entries, in the order of the table's keys, until the chunk is full. */
  async build(): Promise<void> {
    if (!this.#isCaughtUp || this.#built === null) return;
    const cursor = new TreeCursor(this.#table.tree, { from: this.#built && keyAfter(this.#built) });
    cursor.expect(this.#limits.rows - this.#seen);
    while (await cursor.next()) {
      const { node } = cursor;
      for (let i = cursor.from; i < cursor.to; i++) {
        if (this.#isFull) return;
        const key = node.key(i);
        this.#growing.changes.add(undefined, { source: node, base: node.rowBase(i) }, key);
        this.#built = key;
        await this.#step();
      }
    }
    this.#built = null;
  }

  async finish(): Promise<FunctionIndexChunk> {
    const { shape } = this.#table;
    const context = this.#context;
    const { changes, tree: entries } = this.#growing;
    const rows = growingRows(this.#table, context);
    if (changes.count > 0) await entries.apply(await changes.take(context.pacer));
    context.counters.blocksWritten += entries.writer.written;
    const caughtUp = this.#growing.merged(rows);
    // After only a part of the changes, the base is a separate tree; once all are applied, it is the table's tree.
    const indexVersion: MergedIndexVersion = this.#isCaughtUp
      ? { ...caughtUp, built: this.#built }
      : { ...caughtUp, built: this.#built, base: await this.#partOfBase(), behindFrom: context.birth };
    const indexes = shape.indexes.map(({ name }) => [name, growingIndex(this.#table, name, context)] as const);
    const others = otherIndexVersions(this.#table, this.#indexed) ?? [];
    const indexVersions = [...others.map((other) => keptIndexVersion(this.#table, other, context)), indexVersion];
    const added = keptAdded(this.#table, context);
    const version = { shape, tree: rows, indexes: new Map(indexes), indexVersions, added };
    return { table: { name: shape.name, versions: [version] }, rows: this.#seen, indexVersion };
  }

  #partOfBase(): ReturnType<typeof mergeBase> {
    const base = layeredState(this.#table.shape, this.#base, new Map());
    return mergeBase(base, this.#context, this.#toBase.sorted());
  }
}
