/**
 * Makes editions of indexes on functions in the background, and catches them up with their tables, in the turns of this
 * node, chunk by chunk, each of them one generation. Nobody knows which other nodes have the function; two that work at once
 * lose one chunk.
 */
import { sleep } from '../base/env.ts';
import type { Environment, Timer } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { authorityAt, untilOwnSlot } from '../cluster/authority.ts';
import type { Engine } from '../cluster/engine.ts';
import type { Role } from '../cluster/role.ts';
import { indexedFunctions, isSameIndex } from '../table/edition.ts';
import type { IndexedFunction } from '../table/edition.ts';
import type { Registry } from '../table/registry.ts';
import type { TableState } from '../table/table-state.ts';
import { View } from '../table/view.ts';
import { hasEditionWork, nextEditionChunk } from './edition-chunk.ts';
import type { EditionChunk } from './edition-chunk.ts';

export interface EditionDaemonOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly registry: Registry;
  readonly nodeId: number;
  /** A replica does none of the work. */
  readonly role: Role;
  readonly intervalMs: number;
  readonly maxMemoryBytes: number;
}

/** An edition that is to be worked on. */
interface Job {
  readonly table: string;
  readonly indexed: IndexedFunction;
}

/** Rows of the first chunk; later ones are as large as the time for a chunk allows. */
const firstRows = 500;
const leastRows = 16;
const mostRows = 50_000;
/** Part of the memory that a chunk may hold entries in. */
const memoryShare = 1 / 32;
/** Longest time that a chunk takes, rests included, in milliseconds; never more than a third of a slot. */
const longestChunkMs = 1600;
/** Chunks in a row that others may come before until the next turn is waited for. */
const maxLost = 8;

/** Nothing is to be stored. */
class NothingToStore extends Error {}

export class EditionDaemon {
  readonly #options: EditionDaemonOptions;
  /** By table and index what was said of it last. */
  readonly #told = new Map<string, string>();
  #chunkRows = firstRows;
  #timer: Timer | undefined;
  #working = false;
  #stopped = false;

  constructor(options: EditionDaemonOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** The view has moved on, or something was registered: there may be something to do. */
  viewChanged(): void {
    if (!this.#working) this.#schedule(true);
  }

  /** Sets the timer for the next work, if there is any. `atOnce`: a turn that this node has now will do. */
  #schedule(atOnce: boolean): void {
    if (this.#stopped || this.#timer !== undefined || this.#options.role === 'replica') return;
    if (this.#jobs().length === 0) return;
    const { environment, nodeId, intervalMs } = this.#options;
    const nodes = this.#nodes;
    const delayMs = atOnce && this.#isOwnTurn ? 0 : untilOwnSlot(environment.now(), 0, intervalMs, nodeId, nodes);
    this.#timer = environment.setTimer(() => {
      this.#timer = undefined;
      this.#working = true;
      const work = this.#work().finally(() => {
        this.#working = false;
        this.#schedule(false);
      });
      void this.#options.engine.whileRunning(work);
    }, delayMs);
  }

  get #nodes(): number[] {
    const { engine, nodeId } = this.#options;
    return [...engine.view.block0.nodes, nodeId];
  }

  get #isOwnTurn(): boolean {
    const { environment, nodeId, intervalMs } = this.#options;
    return authorityAt(environment.now(), intervalMs, this.#nodes) === nodeId;
  }

  get #isStopped(): boolean {
    return this.#stopped || this.#options.engine.stopping.aborted;
  }

  /** What this node can do, for all that the view shows. */
  #jobs(): Job[] {
    const jobs: Job[] = [];
    for (const [table, state] of this.#options.engine.view.tables) {
      for (const indexed of this.#functionsOf(state)) {
        if (hasEditionWork(state, indexed)) jobs.push({ table, indexed });
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

  async #work(): Promise<void> {
    const { engine, intervalMs } = this.#options;
    try {
      if (engine.viewAgeMs > intervalMs / 2) await engine.catchUp(engine.stopping);
      for (const job of this.#jobs()) await this.#workOn(job);
    } catch (error) {
      if (!this.#isStopped) engine.report('Making an index', error);
    }
  }

  /** Works on one edition as long as it is this node's turn and there is something to do. */
  async #workOn(job: Job): Promise<void> {
    const { environment, engine, intervalMs } = this.#options;
    for (let lost = 0; lost < maxLost && !this.#isStopped && this.#isOwnTurn; ) {
      const startedMs = environment.monotonicMs();
      const chunk = await this.#chunk(job);
      if (chunk === 'nothing') return;
      const tookMs = environment.monotonicMs() - startedMs;
      if (chunk === 'lost') {
        lost++;
        this.#chunkRows = Math.max(leastRows, this.#chunkRows >> 1);
      } else {
        lost = 0;
        this.#sized(chunk, tookMs);
        this.#tell(job, chunk);
      }
      // A pause leaves room for merges. While it works, a chunk rests as well.
      const pauseMs = Math.max(Math.min(tookMs, intervalMs) / 2, lost * 20 * environment.random());
      if (pauseMs > 0) await sleep(environment, pauseMs, engine.stopping);
    }
  }

  /** Chunks are to fill their time. */
  #sized({ rows }: EditionChunk, tookMs: number): void {
    const { chunkMs } = this;
    if (tookMs > chunkMs) this.#chunkRows = Math.max(leastRows, this.#chunkRows >> 1);
    else if (tookMs < chunkMs / 2 && rows >= this.#chunkRows) this.#chunkRows = Math.min(mostRows, this.#chunkRows * 2);
  }

  get chunkMs(): number {
    return Math.min(longestChunkMs, this.#options.intervalMs / 3);
  }

  /** Works out a chunk and stores it. `lost`: another node was faster. */
  async #chunk({ table, indexed }: Job): Promise<EditionChunk | 'nothing' | 'lost'> {
    const { environment, engine, maxMemoryBytes } = this.#options;
    let chunk: EditionChunk | undefined;
    try {
      const done = await engine.merger.rebuild(async (block0, context) => {
        const state = View.ofBlock0(engine.context, block0).table(table);
        // The table may be in another version by now, and the function may have been registered anew.
        const present = state && this.#functionsOf(state).find(({ index }) => isSameIndex(index, indexed.index));
        if (state === undefined || present === undefined) throw new NothingToStore();
        const untilMs = environment.monotonicMs() + this.chunkMs;
        const limits = {
          rows: this.#chunkRows,
          bytes: maxMemoryBytes * memoryShare,
          isOver: () => environment.monotonicMs() > untilMs || this.#isStopped,
        };
        chunk = await nextEditionChunk(state, present, limits, context);
        if (chunk === undefined) throw new NothingToStore();
        return [chunk.table];
      }, true);
      return done && chunk !== undefined ? chunk : 'lost';
    } catch (error) {
      if (error instanceof NothingToStore) return 'nothing';
      throw error;
    }
  }

  /** Says once that an edition is complete, and how many rows its function fails on. */
  #tell({ table, indexed }: Job, { edition }: EditionChunk): void {
    const { logger } = this.#options;
    const { index, registered } = indexed;
    if (edition.built !== null) return;
    const name = `${table}/${index.name}`;
    const message = `${registered.version} ${edition.failed}`;
    if (this.#told.get(name) === message) return;
    this.#told.set(name, message);
    const details = { table, index: index.name, version: registered.version };
    const of = `version ${registered.version} of function ${registered.name}`;
    logger.info(`Index ${index.name} of table ${table} has all entries of ${of}`, details);
    if (edition.failed === 0) return;
    const rows = edition.failed === 1 ? '1 row' : `${edition.failed} rows`;
    logger.warn(
      `Index ${index.name} of table ${table} is not used: ${of} fails on ${rows}. Queries that ask for the function reject ` +
        'with FunctionError until the function, in a new version, or the rows are put right.',
      { ...details, failed: edition.failed },
    );
  }
}
