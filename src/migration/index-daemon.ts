/**
 * Adds indexes to tables in the background: those that are registered here and that their tables have not, and the entries of
 * those that anybody has begun, in the turns of this node, chunk by chunk, each of them one generation. Two nodes that work at
 * once lose one chunk.
 */
import { ByteWriter } from '../base/bytes.ts';
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { describeKey } from '../base/messages.ts';
import { Pacer } from '../base/pacer.ts';
import { checkingOf, isChecked, findDuplicates } from '../catalog/checked-indexes.ts';
import type { Duplicate } from '../catalog/checked-indexes.ts';
import type { Registry } from '../catalog/registry.ts';
import type { Role } from '../coordination/membership.ts';
import type { Engine } from '../engine/engine.ts';
import type { MigrationProblem } from '../format/stored-table.ts';
import type { MergedTable, TableMergeContext } from '../merge/merge-table.ts';
import { isComplete } from '../schema/table-shape.ts';
import type { TableShape, AddedIndex, KeyValue } from '../schema/table-shape.ts';
import { BlockGone } from '../tree/block-source.ts';
import type { TableState } from '../view/table-state.ts';
import { View } from '../view/view.ts';
import { hasAddedWork, nextAddedChunk, uniqueToCheck, failedIndex, readyIndex } from './added-chunk.ts';
import type { AddedChunk } from './added-chunk.ts';
import { ChunkWork } from './chunk-work.ts';
import type { Step } from './chunk-work.ts';

export interface IndexDaemonOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
  /** A replica does none of the work. */
  readonly role: Role;
  readonly intervalMs: number;
}

/** Most rows of a chunk. */
const maxRows = 50_000;

export class IndexDaemon {
  readonly #options: IndexDaemonOptions;
  readonly #chunks: ChunkWork;
  readonly #uniques: UniqueSteps;

  constructor(options: IndexDaemonOptions) {
    this.#options = options;
    this.#chunks = new ChunkWork(options, {
      name: 'Adding an index',
      maxRows,
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

  /** What is registered here of the version that a table is in. */
  #defined({ shape }: TableState): TableShape | undefined {
    return this.#options.registry.versionShape(shape.name, shape.version);
  }

  /** The next step towards a table's indexes, as long as it is this node's turn. */
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
 * Whether Block 0 has the table: it may be of pending commits alone. While a migration is under way, which may take the
 * table's place, it waits.
 */
function mayWork(view: View, table: string): boolean {
  return view.nextVersion(table) === undefined && view.block0.tables.some(({ name }) => name === table);
}

// The last steps of adding a unique index, once the entries of all rows are made. Flushes do not know of it yet, so rows may
// agree. First a commit is put from which on every flush is checked: no commit behind it makes rows agree that did not before. Once
// it is merged, the rows are looked through, and what holds of them then holds from then on (docs/protocol.md, "Added indexes").

export interface UniqueStepsOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly chunks: Pick<ChunkWork, 'store'>;
}

/** Something was done, and there is more to do. */
const goOn: Step = { rows: 0, tell: () => undefined };

export class UniqueSteps {
  readonly #options: UniqueStepsOptions;

  constructor(options: UniqueStepsOptions) {
    this.#options = options;
  }

  /** The next step of an index of which all entries are made, as a view shows it. */
  async step(view: View, table: TableState, added: AddedIndex): Promise<Step> {
    const { engine } = this.#options;
    try {
      return await this.#step(view, table, added);
    } catch (error) {
      if (!(error instanceof BlockGone)) throw error;
      // Others have merged and collected meanwhile. Where the block is lost, nothing gets on, and verify() tells.
      await engine.refresh(engine.stopping);
      if (engine.view.block0.generation === view.block0.generation) throw error;
      return 'lost';
    }
  }

  async #step(view: View, table: TableState, added: AddedIndex): Promise<Step> {
    const { engine, environment } = this.#options;
    const { name } = table.shape;
    const pacer = new Pacer(environment, true);
    const [found] = await findDuplicates(table, added.index, pacer, 1, added.tree);
    if (found !== undefined) {
      if (!(await isOverlaid(table, found))) return this.#fail(name, added, found);
      await engine.checkpoint(engine.stopping);
      return goOn;
    }
    // In what was looked through: all that follows it was checked then.
    const isMerged = await isChecked(View.ofBlock0(engine.context, view.block0), name, added);
    if (isMerged) return this.#succeed(name, added);
    if (!(await isChecked(view, name, added))) await this.#check(name, added);
    await engine.checkpoint(engine.stopping);
    return goOn;
  }

  /** Commits that from here on everything is checked for the index. */
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
    const message = `Unique index ${index} of table ${table} holds from now on`;
    return step ?? { rows: 0, tell: () => this.#options.logger.info(message, { table, index }) };
  }

  async #fail(table: string, added: AddedIndex, { key, other, value }: Duplicate): Promise<Step> {
    const { name: index } = added.index;
    const problem = `The rows with primary keys ${describeKey(other)} and ${describeKey(key)} both have ${value} there.`;
    const step = await this.#store(table, added, (state, present, context) => {
      return failedIndex(state, present, problem, context);
    });
    const way = 'Put the rows right, and call dropIndex(): then it is begun anew.';
    const message = `Unique index ${index} cannot be added to table ${table}. ${problem} ${way}`;
    return step ?? { rows: 0, tell: () => this.#options.logger.warn(message, { table, index }) };
  }

  /** Says in Block 0 what has come of the index, if that is still to be said; undefined: it is there. */
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

/** The index as a view has it, if that is the same one and still to be checked: one that was dropped and added again is another. */
function presentOf(view: View, table: string, { index, birth }: AddedIndex): AddedIndex | undefined {
  if (view.nextVersion(table) !== undefined) return undefined;
  const found = view.table(table)?.added.find((one) => one.index.name === index.name);
  return found?.birth === birth && isComplete(found) ? found : undefined;
}

/** Whether a commit that is not merged has changed one of two rows: they may have been put right. */
async function isOverlaid(table: TableState, { key, other }: Duplicate): Promise<boolean> {
  for (const value of [key, other]) {
    const writer = new ByteWriter();
    table.shape.writeKey(writer, value as KeyValue);
    if (await table.isOverlaid(writer.finish())) return true;
  }
  return false;
}

// What stands in the way of a version with unique indexes: rows that agree where it wants no two to.

export function hasUniqueIndex({ indexes }: TableShape): boolean {
  return indexes.some(({ unique }) => unique);
}

/** The rows in blocks that agree with another one in a unique index, at most `limit`. */
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
