/**
 * Adds indexes to tables in the background: those that are registered here and that their tables have not, and the entries of
 * those that anybody has begun, in the turns of this node, chunk by chunk, each of them one generation. Two nodes that work at
 * once lose one chunk.
 */
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import type { Engine } from '../engine/engine.ts';
import type { Role } from '../coordination/role.ts';
import type { Registry } from '../catalog/registry.ts';
import type { TableShape } from '../schema/table-shape.ts';
import type { TableState } from '../view/table-state.ts';
import { View } from '../view/view.ts';
import { hasAddedWork, nextAddedChunk, uniqueToCheck } from './added-chunk.ts';
import type { AddedChunk } from './added-chunk.ts';
import { ChunkWork } from './chunk-work.ts';
import type { Step } from './chunk-work.ts';
import { UniqueSteps } from './unique-steps.ts';

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
const mostRows = 50_000;

export class IndexDaemon {
  readonly #options: IndexDaemonOptions;
  readonly #chunks: ChunkWork;
  readonly #uniques: UniqueSteps;

  constructor(options: IndexDaemonOptions) {
    this.#options = options;
    this.#chunks = new ChunkWork(options, {
      name: 'Adding an index',
      mostRows,
      delayMs: (atOnce) => (this.#tables().length === 0 ? undefined : this.#chunks.untilTurn(atOnce)),
      work: async () => {
        for (const table of this.#tables()) await this.#chunks.repeat(() => this.#step(table));
      },
    });
    this.#uniques = new UniqueSteps({ ...options, chunks: this.#chunks });
  }

  stop(): void {
    this.#chunks.stop();
  }

  /** The view has moved on, or something was registered: there may be something to do. */
  viewChanged(): void {
    this.#chunks.look();
  }

  /** The tables that something is to be done for, for all that the view shows. */
  #tables(): string[] {
    const { view } = this.#options.engine;
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
