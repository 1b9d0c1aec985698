/**
 * Makes index versions of indexes on functions in the background, and catches them up with their tables, in the turns of this
 * node, chunk by chunk, each of them one generation. Nobody knows which other nodes have the function; two that work at once
 * lose one chunk.
 */
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import type { Engine } from '../engine/engine.ts';
import type { Role } from '../coordination/role.ts';
import { indexedFunctions, isSameIndex } from '../view/index-version.ts';
import type { IndexedFunction } from '../view/index-version.ts';
import type { Registry } from '../catalog/registry.ts';
import type { TableState } from '../view/table-state.ts';
import { View } from '../view/view.ts';
import { ChunkWork } from './chunk-work.ts';
import type { Step } from './chunk-work.ts';
import { hasFunctionIndexWork, nextFunctionIndexChunk } from './function-index-chunk.ts';
import type { FunctionIndexChunk } from './function-index-chunk.ts';

export interface FunctionIndexDaemonOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
  /** A replica does none of the work. */
  readonly role: Role;
  readonly intervalMs: number;
}

/** An index version that is to be worked on. */
interface Job {
  readonly table: string;
  readonly indexed: IndexedFunction;
}

/** Most rows of a chunk. */
const mostRows = 50_000;

export class FunctionIndexDaemon {
  readonly #options: FunctionIndexDaemonOptions;
  /** By table and index what was said of it last. */
  readonly #told = new Map<string, string>();
  readonly #chunks: ChunkWork;

  constructor(options: FunctionIndexDaemonOptions) {
    this.#options = options;
    this.#chunks = new ChunkWork(options, {
      name: 'Making an index',
      mostRows,
      delayMs: (atOnce) => (this.#jobs().length === 0 ? undefined : this.#chunks.untilTurn(atOnce)),
      work: async () => {
        for (const job of this.#jobs()) await this.#chunks.repeat(() => this.#step(job));
      },
    });
  }

  stop(): void {
    this.#chunks.stop();
  }

  /** The view has moved on, or something was registered: there may be something to do. */
  viewChanged(): void {
    this.#chunks.look();
  }

  /** What this node can do, for all that the view shows. */
  #jobs(): Job[] {
    const jobs: Job[] = [];
    for (const [table, state] of this.#options.engine.view.tables) {
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

  /** The next chunk of an index version, as long as it is this node's turn. */
  async #step(job: Job): Promise<Step> {
    if (!this.#chunks.isOwnTurn()) return 'nothing';
    const { engine } = this.#options;
    const { table, indexed } = job;
    const chunk = await this.#chunks.store(async (block0, limits, context) => {
      const state = View.ofBlock0(engine.context, block0).table(table);
      // The table may be in another version by now, and the function may have been registered anew.
      const present = state && this.#functionsOf(state).find(({ index }) => isSameIndex(index, indexed.index));
      return state && present && nextFunctionIndexChunk(state, present, limits, context);
    });
    if (chunk === undefined) return 'nothing';
    return chunk === 'lost' ? chunk : { rows: chunk.rows, tell: () => this.#tell(job, chunk) };
  }

  /** Says once that an index version is complete, and how many rows its function fails on. */
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
        'with FunctionError until the function, in a new version, or the rows are put right.',
      { ...details, failed: indexVersion.failed },
    );
  }
}
