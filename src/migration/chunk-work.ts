/**
 * The common part of daemons that work in the background, chunk by chunk, in the turns of their node. It decides when work
 * begins, how large a chunk is, and how long to rest after it, and it stores the chunk. Each chunk is one generation; if two
 * nodes work at once, one of them loses its chunk.
 */
import { sleep } from '../base/env.ts';
import type { Environment, Timer } from '../base/env.ts';
import { migrations } from '../base/tracing.ts';
import type { TracedMigration } from '../base/tracing.ts';
import { authorityAt, untilOwnTurn } from '../coordination/merge-rotation.ts';
import type { Engine } from '../engine/engine.ts';
import type { Role } from '../coordination/membership.ts';
import type { TableMergeContext } from '../merge/growing-tree.ts';
import type { MergedTable } from '../merge/merge-table.ts';
import type { Block0 } from '../format/block0.ts';

export interface ChunkWorkOptions {
  readonly environment: Environment;
  readonly engine: Engine;
  /** A replica does no such work. */
  readonly role: Role;
  readonly intervalMs: number;
}

/** The work of a daemon. */
export interface ChunkTask {
  /** Name of the work in reports of failures. */
  readonly name: string;
  /** The most rows of a chunk. */
  readonly maxRows: number;
  /** Chunks with fewer rows than this shrink only if they are lost, not if they are slow. Default 0. */
  readonly steadyRows?: number;
  /**
   * Returns the delay before the work begins; undefined if there is none. With `atOnce`, a turn that this node has now counts.
   */
  readonly delayMs: (atOnce: boolean) => number | undefined;
  /** Does the work that there is. It is called with a recent view. */
  readonly work: () => Promise<void>;
}

/**
 * The rows of chunks of an index. Where they do not come in its order, each chunk writes most of its blocks again, and takes longer with each
 * block that is added. If chunks shrank because of that, there would be ever more of them.
 */
export const indexChunks: Pick<ChunkTask, 'maxRows' | 'steadyRows'> = { maxRows: 50_000, steadyRows: 50_000 };

/** The limits of a chunk. */
export interface ChunkLimits {
  /** Rows to read at most. */
  readonly rows: number;
  readonly bytes: number;
  /** Whether the time for the chunk is over. */
  readonly isOver: () => boolean;
}

/** The result of a step: `lost` if another node was faster; `nothing` if there was no work. */
export type Step =
  | 'lost'
  | 'nothing'
  | {
      /** Rows read. */
      readonly rows: number;
      /** Time that the step and the rest after it should take, in milliseconds. Default 0. */
      readonly fillMs?: number;
      /** Whether this is a chunk, from which later ones get their size, and after which merges have their turn. Default true. */
      readonly isSized?: boolean;
      /** Reports the work done. */
      readonly tell: () => Promise<void> | void;
    };

/** Rows of the first chunk; later ones are as large as the time for a chunk allows. */
const firstRows = 500;
const minRows = 16;
/** Share of the memory that the rows of a chunk may take. */
const memoryShare = 1 / 32;
/** Longest time that a chunk takes, rests included, in milliseconds; at most a third of a turn. */
const maxChunkMs = 1600;
/** Chunks lost in a row before this node waits for its next turn. */
const maxLost = 8;

/** The chunk has no table to store. */
class NothingToStore extends Error {}

export class ChunkWork {
  readonly #options: ChunkWorkOptions;
  readonly #task: ChunkTask;
  #rows = firstRows;
  #timer: Timer | undefined;
  /** When the timer fires, by the monotonic clock. */
  #timerMs = 0;
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
    this.#cancel();
  }

  #cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** Called when there is work that somebody waits for: a timer for other work is not waited for. */
  lookAtOnce(): void {
    this.#cancel();
    this.look();
  }

  /** Called when there may be work. */
  look(): void {
    if (this.#working) return;
    const { environment, intervalMs } = this.#options;
    // A timer beyond the next turn of every node waits only for reports of others, and there may be work before that now.
    if (this.#timerMs - environment.monotonicMs() > (this.#nodes.length + 1) * intervalMs) this.#cancel();
    this.#schedule(true);
  }

  /** The registered nodes and this node. */
  get #nodes(): number[] {
    const { engine } = this.#options;
    return [...engine.view.block0.nodes, engine.node.id];
  }

  /** Whether it is this node's turn among some nodes. Default: all registered nodes and this node. */
  isOwnTurn(nodes: readonly number[] = this.#nodes): boolean {
    const { environment, engine, intervalMs } = this.#options;
    return authorityAt(environment.now(), intervalMs, nodes) === engine.node.id;
  }

  /**
   * Returns the milliseconds until this node's next turn among some nodes (default as in {@link isOwnTurn}); 0 if `atOnce` and
   * it is its turn now.
   */
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
    this.#timerMs = this.#options.environment.monotonicMs() + delayMs;
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

  /** Repeats a step until there is no work left, or until too many chunks in a row are lost. */
  async repeat(step: () => Promise<Step>): Promise<void> {
    const { environment, engine, intervalMs } = this.#options;
    for (let lost = 0; lost < maxLost && !this.isStopped; ) {
      const startedMs = environment.monotonicMs();
      const payloadOf = (began: number): TracedMigration => {
        return { database: engine.prefix, startedMs: began, work: this.#task.name };
      };
      const done = await migrations.run(payloadOf, step);
      if (done === 'nothing') return;
      const tookMs = environment.monotonicMs() - startedMs;
      let fillMs = 0;
      let restMs = Math.min(tookMs, intervalMs) / 2;
      if (done === 'lost') {
        lost++;
        this.#rows = Math.max(minRows, this.#rows >> 1);
      } else {
        lost = 0;
        if (done.isSized !== false) this.#fit(done.rows, tookMs);
        // Others have merged while it was made.
        else restMs = 0;
        await done.tell();
        fillMs = done.fillMs ?? 0;
      }
      // The pause leaves room for merges. A chunk also rests while it works.
      const pauseMs = Math.max(restMs, fillMs - tookMs, lost * 20 * environment.random());
      if (pauseMs > 0) await sleep(environment, pauseMs, engine.stopping);
    }
  }

  /** Adjusts the size of chunks so that they fill their time, except where few rows take nearly as long as many. */
  #fit(rows: number, tookMs: number): void {
    const { maxRows, steadyRows = 0 } = this.#task;
    const isSmall = this.#rows < steadyRows;
    if (tookMs > this.#chunkMs && !isSmall) this.#rows = Math.max(minRows, this.#rows >> 1);
    else if ((isSmall || tookMs < this.#chunkMs / 2) && rows >= this.#rows) {
      this.#rows = Math.min(maxRows, this.#rows * 2);
    }
  }

  /** Bytes that the rows of a chunk may take. */
  get bytes(): number {
    return this.#options.engine.memory.workBytes * memoryShare;
  }

  get #chunkMs(): number {
    return Math.min(maxChunkMs, this.#options.intervalMs / 3);
  }

  /**
   * Computes a chunk on the newest Block 0 that this node knows, and stores its table. Returns `lost` if another node was
   * faster. A chunk without a table is returned without being stored.
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
          bytes: this.bytes,
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
