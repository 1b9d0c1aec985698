/**
 * What daemons have in common that work in the background, chunk by chunk, in the turns of their node: when they begin, how
 * large a chunk is, how it is stored, and how long they rest after it. A chunk is one generation; of two nodes that work at
 * once, one loses its chunk.
 */
import { sleep } from '../base/env.ts';
import type { Environment, Timer } from '../base/env.ts';
import { authorityAt, untilOwnTurn } from '../coordination/rotation.ts';
import type { Engine } from '../engine/engine.ts';
import type { Role } from '../coordination/membership.ts';
import type { MergedTable, TableMergeContext } from '../merge/merge-table.ts';
import type { Block0 } from '../format/block0.ts';

export interface ChunkWorkOptions {
  readonly environment: Environment;
  readonly engine: Engine;
  /** A replica does none of the work. */
  readonly role: Role;
  readonly intervalMs: number;
}

/** What is worked on, and how. */
export interface ChunkTask {
  /** Names it in reports of failures. */
  readonly name: string;
  /** Most rows of a chunk. */
  readonly maxRows: number;
  /** Rows under which only chunks that are lost grow smaller. Default 0. */
  readonly steadyRows?: number;
  /** When to begin; undefined: there is nothing to do. `atOnce`: a turn that this node has now will do. */
  readonly delayMs: (atOnce: boolean) => number | undefined;
  /** Does what there is to do, on a view that is not old. */
  readonly work: () => Promise<void>;
}

/** Where a chunk ends. */
export interface ChunkLimits {
  /** Rows that are looked at. */
  readonly rows: number;
  readonly bytes: number;
  /** Whether the time for the chunk is over. */
  readonly isOver: () => boolean;
}

/** What came of a step: `lost`, if another node was faster; `nothing`, if there was nothing to do. */
export type Step =
  | 'lost'
  | 'nothing'
  | {
      /** Rows that were looked at. */
      readonly rows: number;
      /** Time that the step should have taken, rest included, in milliseconds. Default 0. */
      readonly fillMs?: number;
      /** Says what was done. */
      readonly tell: () => Promise<void> | void;
    };

/** Rows of the first chunk; later ones are as large as the time for a chunk allows. */
const firstRows = 500;
const minRows = 16;
/** Part of the memory that a chunk may hold rows in. */
const memoryShare = 1 / 32;
/** Longest time that a chunk takes, rests included, in milliseconds; never more than a third of a slot. */
const maxChunkMs = 1600;
/** Chunks in a row that others may come before until the next turn is waited for. */
const maxLost = 8;

/** Nothing is to be stored. */
class NothingToStore extends Error {}

export class ChunkWork {
  readonly #options: ChunkWorkOptions;
  readonly #task: ChunkTask;
  #rows = firstRows;
  #timer: Timer | undefined;
  #working = false;
  #stopped = false;

  constructor(options: ChunkWorkOptions, task: ChunkTask) {
    this.#options = options;
    this.#task = task;
  }

  get isStopped(): boolean {
    return this.#stopped || this.#options.engine.stopping.aborted;
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** There may be something to do. */
  look(): void {
    if (!this.#working) this.#schedule(true);
  }

  /** The registered nodes, and this one. */
  get #nodes(): number[] {
    const { engine } = this.#options;
    return [...engine.view.block0.nodes, engine.node.id];
  }

  /** Whether this node has the turn among some. Default: all that are registered, and itself. */
  isOwnTurn(nodes: readonly number[] = this.#nodes): boolean {
    const { environment, engine, intervalMs } = this.#options;
    return authorityAt(environment.now(), intervalMs, nodes) === engine.node.id;
  }

  /** Milliseconds until this node has its next turn among some, as {@link isOwnTurn} has them; 0 if `atOnce` and it has one now. */
  untilTurn(atOnce: boolean, nodes: readonly number[] = this.#nodes): number {
    const { environment, engine, intervalMs } = this.#options;
    if (atOnce && this.isOwnTurn(nodes)) return 0;
    return untilOwnTurn(environment.now(), 0, intervalMs, engine.node.id, nodes);
  }

  /** Sets the timer for the next work, if there is any. */
  #schedule(atOnce: boolean): void {
    if (this.#stopped || this.#timer !== undefined || this.#options.role === 'replica') return;
    const delayMs = this.#task.delayMs(atOnce);
    if (delayMs === undefined) return;
    this.#timer = this.#options.environment.setTimer(() => {
      this.#timer = undefined;
      this.#working = true;
      const work = this.#work().finally(() => {
        this.#working = false;
        this.#schedule(false);
      });
      void this.#options.engine.whileRunning(work);
    }, delayMs);
  }

  async #work(): Promise<void> {
    const { engine, intervalMs } = this.#options;
    try {
      if (engine.viewAgeMs > intervalMs / 2) await engine.catchUp(engine.stopping);
      await this.#task.work();
      engine.failures.worked(this.#task.name);
    } catch (error) {
      if (!this.isStopped) engine.failures.report(this.#task.name, error);
    }
  }

  /** Takes step after step, until there is nothing to do or others come before too often. */
  async repeat(step: () => Promise<Step>): Promise<void> {
    const { environment, engine, intervalMs } = this.#options;
    for (let lost = 0; lost < maxLost && !this.isStopped; ) {
      const startedMs = environment.monotonicMs();
      const done = await step();
      if (done === 'nothing') return;
      const tookMs = environment.monotonicMs() - startedMs;
      let fillMs = 0;
      if (done === 'lost') {
        lost++;
        this.#rows = Math.max(minRows, this.#rows >> 1);
      } else {
        lost = 0;
        this.#fit(done.rows, tookMs);
        await done.tell();
        fillMs = done.fillMs ?? 0;
      }
      // A pause leaves room for merges. While it works, a chunk rests as well.
      const pauseMs = Math.max(Math.min(tookMs, intervalMs) / 2, fillMs - tookMs, lost * 20 * environment.random());
      if (pauseMs > 0) await sleep(environment, pauseMs, engine.stopping);
    }
  }

  /** Chunks are to fill their time, but where few rows take hardly less of it than many. */
  #fit(rows: number, tookMs: number): void {
    const { maxRows, steadyRows = 0 } = this.#task;
    const isSmall = this.#rows < steadyRows;
    if (tookMs > this.#chunkMs && !isSmall) this.#rows = Math.max(minRows, this.#rows >> 1);
    else if ((isSmall || tookMs < this.#chunkMs / 2) && rows >= this.#rows) {
      this.#rows = Math.min(maxRows, this.#rows * 2);
    }
  }

  get #chunkMs(): number {
    return Math.min(maxChunkMs, this.#options.intervalMs / 3);
  }

  /**
   * Works out a chunk on the newest Block 0 that this node knows, and stores its table. `lost`: another node was faster.
   * Where it has no table, it is given back and nothing is stored.
   */
  async store<C extends { readonly table: MergedTable | undefined }>(
    build: (block0: Block0, limits: ChunkLimits, context: TableMergeContext) => Promise<C | undefined>,
  ): Promise<C | 'lost' | undefined> {
    const { environment, engine } = this.#options;
    let chunk: C | undefined;
    try {
      const done = await engine.merger.rebuild(async (block0, context) => {
        const untilMs = environment.monotonicMs() + this.#chunkMs;
        const limits = {
          rows: this.#rows,
          bytes: engine.pool.workBytes * memoryShare,
          isOver: () => environment.monotonicMs() > untilMs || this.isStopped,
        };
        chunk = await build(block0, limits, context);
        if (chunk?.table === undefined) throw new NothingToStore();
        return [chunk.table];
      }, true);
      return done ? chunk : 'lost';
    } catch (error) {
      if (error instanceof NothingToStore) return chunk;
      throw error;
    }
  }
}
