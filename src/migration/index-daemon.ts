/**
 * Adds indexes to tables in the background. It begins indexes that are registered here and that their tables do not have, and
 * makes entries for indexes that any node has begun. The work is done in the turns of this node, chunk by chunk, and each chunk
 * is one generation. If two nodes work at once, one chunk is lost.
 */
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { describeKey } from '../base/messages.ts';
import { BackgroundPacer } from '../base/background-pacer.ts';
import type { Pacer } from '../base/pacer.ts';
import { checkingOf, isChecked, findDuplicates } from '../catalog/checked-indexes.ts';
import type { Duplicate } from '../catalog/checked-indexes.ts';
import type { Registry } from '../catalog/registry.ts';
import type { Role } from '../coordination/membership.ts';
import type { Engine } from '../engine/engine.ts';
import type { MigrationProblem } from '../format/stored-table.ts';
import type { TableMergeContext } from '../merge/growing-tree.ts';
import type { MergedTable } from '../merge/merge-table.ts';
import { isComplete } from '../schema/table-shape.ts';
import type { TableShape, AddedIndex, KeyValue } from '../schema/table-shape.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { TableState } from '../view/table-state.ts';
import { View } from '../view/view.ts';
import { hasAddedWork, nextAddedChunk, uniqueToCheck, failedIndex, readyIndex } from './added-chunk.ts';
import type { AddedChunk } from './added-chunk.ts';
import { ChunkWork, indexChunks } from './chunk-work.ts';
import type { Step } from './chunk-work.ts';

export interface IndexDaemonOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
  /** A replica does no such work. */
  readonly role: Role;
  readonly intervalMs: number;
}

export class IndexDaemon {
  readonly #options: IndexDaemonOptions;
  readonly #chunks: ChunkWork;
  readonly #uniques: UniqueSteps;

  constructor(options: IndexDaemonOptions) {
    this.#options = options;
    this.#chunks = new ChunkWork(options, {
      name: 'Adding an index',
      ...indexChunks,
      delayMs: (atOnce) => (this.#tables(this.#view).length === 0 ? undefined : this.#chunks.untilTurn(atOnce)),
      work: async () => {
        for (const table of this.#tables(this.#view)) await this.#chunks.repeat(() => this.#step(table));
      },
    });
    this.#uniques = new UniqueSteps({ ...options, chunks: this.#chunks });
  }

  stop(): void {
    this.#chunks.stop();
  }

  get #view(): View {
    return this.#options.engine.view;
  }

  /** Looks for work: the view has moved on, or a schema was registered. */
  viewChanged(view: View = this.#view): void {
    if (this.#options.role !== 'replica' && this.#tables(view).length > 0) this.#chunks.look();
  }

  /** The tables that have work to do, as far as a view shows. */
  #tables(view: View): string[] {
    const names: string[] = [];
    for (const [name, state] of view.tables) if (this.#hasWork(view, state)) names.push(name);
    return names;
  }

  #hasWork(view: View, state: TableState): boolean {
    const hasSome = hasAddedWork(state, this.#defined(state)) || uniqueToCheck(state) !== undefined;
    return hasSome && mayWork(view, state.shape.name);
  }

  /** Returns the registered shape of a table in its active version, if there is one. */
  #defined({ shape }: TableState): TableShape | undefined {
    return this.#options.registry.versionShape(shape.name, shape.version);
  }

  /** Takes the next step for a table's indexes, if it is this node's turn. */
  async #step(table: string): Promise<Step> {
    if (!this.#chunks.isOwnTurn()) return 'nothing';
    const { view } = this.#options.engine;
    const state = view.table(table);
    const unique = state && mayWork(view, table) ? uniqueToCheck(state) : undefined;
    return state && unique ? this.#uniques.step(view, state, unique) : this.#chunk(table);
  }

  async #chunk(table: string): Promise<Step> {
    const { engine } = this.#options;
    const chunk = await this.#chunks.store(async (block0, limits, context) => {
      const view = View.ofBlock0(engine.context, block0);
      const state = view.table(table);
      if (state === undefined || !mayWork(view, table)) return undefined;
      const emptyIndex = (index: string): TableState['tree'] => engine.context.emptyIndex(table, index);
      return nextAddedChunk(state, this.#defined(state), limits, context, emptyIndex);
    });
    if (chunk === undefined) return 'nothing';
    return chunk === 'lost' ? chunk : { rows: chunk.rows, tell: () => this.#tell(table, chunk) };
  }

  #tell(table: string, { begun, ready }: AddedChunk): void {
    const { logger } = this.#options;
    for (const index of begun) logger.info(`Index ${index} is being added to table ${table}`, { table, index });
    for (const index of ready) logger.info(`Index ${index} of table ${table} has all entries`, { table, index });
  }
}

/**
 * Whether indexes can be added to a table now: Block 0 must have it, not only pending commits. The work waits while a migration
 * is under way, because the new version may replace the table.
 */
function mayWork(view: View, table: string): boolean {
  if (view.nextVersion(table) !== undefined || view.isDropped(table)) return false;
  return view.block0.tables.some(({ name }) => name === table);
}

export interface UniqueStepsOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly chunks: Pick<ChunkWork, 'store'>;
}

/** A step was taken, and more work is left. */
const goOn: Step = { rows: 0, tell: () => undefined };

/**
 * The last steps of adding a unique index, after the entries of all rows are made. Flushes have not been checked for the index
 * so far, so rows may agree. First a commit is made from which on every flush is checked: no later commit makes rows agree that
 * did not agree before. After it is merged, the rows are searched for duplicates, and the result stays true from then on
 * (docs/protocol.md, "Added indexes").
 */
export class UniqueSteps {
  readonly #options: UniqueStepsOptions;

  constructor(options: UniqueStepsOptions) {
    this.#options = options;
  }

  /** Takes the next step of an index whose entries are all made, as a view shows it. */
  async step(view: View, table: TableState, added: AddedIndex): Promise<Step> {
    const { engine } = this.#options;
    try {
      return await this.#step(view, table, added);
    } catch (error) {
      if (!(error instanceof BlockGone)) throw error;
      // Other nodes have merged and collected garbage meanwhile. If the block is lost, the index stays unfinished, and verify()
      // reports it.
      await engine.refresh(engine.stopping);
      if (engine.view.block0.generation === view.block0.generation) throw error;
      return 'lost';
    }
  }

  async #step(view: View, table: TableState, added: AddedIndex): Promise<Step> {
    const { engine, environment } = this.#options;
    const { name } = table.shape;
    const pacer = new BackgroundPacer(environment);
    const [found] = await findDuplicates(table, added.index, pacer, 1, added.tree);
    if (found !== undefined) {
      if (!(await isOverlaid(table, found))) return this.#fail(name, added, found);
      await engine.checkpoint(engine.stopping);
      return goOn;
    }
    // The check must be merged into the rows that were searched: then every later commit was checked.
    const isMerged = await isChecked(View.ofBlock0(engine.context, view.block0), name, added);
    if (isMerged) return this.#succeed(name, added);
    if (!(await isChecked(view, name, added))) await this.#check(name, added);
    await engine.checkpoint(engine.stopping);
    return goOn;
  }

  /** Commits that all later commits are checked for the index. */
  async #check(table: string, added: AddedIndex): Promise<void> {
    const { engine } = this.#options;
    await engine.append({
      signal: engine.stopping,
      sizeBytes: 256,
      prepare: async (view) => {
        const present = presentOf(view, table, added);
        const isDone = present === undefined || (await isChecked(view, table, present));
        return { changes: isDone ? [] : [checkingOf(table, present)] };
      },
    });
  }

  async #succeed(table: string, added: AddedIndex): Promise<Step> {
    const { name: index } = added.index;
    const step = await this.#store(table, added, (state, _, context) => readyIndex(state, index, context));
    const message = `Unique index ${index} of table ${table} is complete, and holds from now on`;
    return step ?? { rows: 0, tell: () => this.#options.logger.info(message, { table, index }) };
  }

  async #fail(table: string, added: AddedIndex, { key, other, value }: Duplicate): Promise<Step> {
    const { name: index } = added.index;
    const problem = `The rows with primary keys ${describeKey(other)} and ${describeKey(key)} both have ${value} there.`;
    const step = await this.#store(table, added, (state, present, context) => {
      return failedIndex(state, present, problem, context);
    });
    const way = 'Correct the rows, and call dropIndex(): then the index is built again.';
    const message = `Unique index ${index} cannot be added to table ${table}. ${problem} ${way}`;
    return step ?? { rows: 0, tell: () => this.#options.logger.warn(message, { table, index }) };
  }

  /** Stores the result for the index in Block 0, if it is still outstanding. Returns undefined once it is stored. */
  async #store(
    table: string,
    added: AddedIndex,
    change: (state: TableState, present: AddedIndex, context: TableMergeContext) => MergedTable,
  ): Promise<'lost' | 'nothing' | undefined> {
    const { engine, chunks } = this.#options;
    const chunk = await chunks.store(async (block0, _, context) => {
      const view = View.ofBlock0(engine.context, block0);
      const state = view.table(table);
      const present = presentOf(view, table, added);
      return state && present && { table: change(state, present, context) };
    });
    if (chunk === undefined) return 'nothing';
    return chunk === 'lost' ? chunk : undefined;
  }
}

/**
 * Returns the index in a view, if it is the same one and still has to be checked. An index that was dropped and added again is
 * another one.
 */
function presentOf(view: View, table: string, { index, birth }: AddedIndex): AddedIndex | undefined {
  if (view.nextVersion(table) !== undefined) return undefined;
  const found = view.table(table)?.added.find((one) => one.index.name === index.name);
  return found?.birth === birth && isComplete(found) ? found : undefined;
}

/** Whether a pending commit has changed one of two rows, which may no longer be duplicates. */
async function isOverlaid(table: TableState, { key, other }: Duplicate): Promise<boolean> {
  for (const value of [key, other]) {
    if (await table.isOverlaid(table.shape.keyBytes(value as KeyValue))) return true;
  }
  return false;
}

export function hasUniqueIndex({ indexes }: TableShape): boolean {
  return indexes.some(({ unique }) => unique);
}

/**
 * Returns the merged rows that agree with another row in a unique index, at most `limit`: they block a migration to that
 * version.
 */
export async function uniqueProblems(rows: TableState, pacer: Pacer, limit: number): Promise<MigrationProblem[]> {
  const problems: MigrationProblem[] = [];
  for (const index of rows.shape.indexes) {
    if (!index.unique || problems.length >= limit) continue;
    for (const { key, other, value } of await findDuplicates(rows, index, pacer, limit - problems.length)) {
      const message = `Unique index '${index.name}' has ${value} for this row and for row ${describeKey(other)}.`;
      problems.push({ key: describeKey(key), message });
    }
  }
  return problems;
}
