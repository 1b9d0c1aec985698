/** Runs seeds on several threads. */
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { configOf } from './config.ts';
import type { SimOverrides } from './config.ts';
import type { SimResult } from './simulation.ts';

export interface SeedTask {
  readonly seed: number;
  readonly options: { readonly config?: SimOverrides };
  /** Whether to run it a second time, which must give the same. */
  readonly twice?: boolean;
}

export interface SeedPoolOptions {
  /** What each thread runs: see compiled-tree.ts. */
  readonly worker: string;
  /** How many threads. Default: one for every core. */
  readonly jobs?: number;
  /** A seed that takes longer hangs without leaving the processor: a violation too. */
  readonly patienceMs?: number;
}

/** What every run leaves behind is collected while it is young. */
const youngMb = 64;

/** The name of what is wrong with a run that broke off: no invariant, but a mistake of the simulator's. */
export const brokenRun = 'broken run';

function brokenOff({ seed, options }: SeedTask, invariant: string, message: string): SimResult {
  const config = configOf(seed, options.config);
  const violation = { invariant, message };
  return { seed, config, violation, hash: '', commits: 0, flushes: 0, events: 0, virtualMs: 0 };
}

export class SeedPool {
  readonly jobs: number;
  readonly #options: SeedPoolOptions;
  readonly #idle: Worker[] = [];
  readonly #all = new Set<Worker>();

  constructor(options: SeedPoolOptions) {
    this.#options = options;
    this.jobs = options.jobs ?? availableParallelism();
  }

  /** Runs one seed; several calls may be under way, each with a thread of its own. */
  async runOne(task: SeedTask): Promise<SimResult> {
    const worker = this.#idle.pop() ?? this.#start();
    const { patienceMs = 600_000 } = this.#options;
    const given = new AbortController();
    const timer = setTimeout(() => given.abort(`No end after ${patienceMs} ms of real time`), patienceMs);
    try {
      const answer = once(worker, 'message', { signal: given.signal });
      // Not a window's: there is no origin to aim at.
      // oxlint-disable-next-line unicorn/require-post-message-target-origin
      worker.postMessage(task);
      const [result] = (await answer) as [SimResult];
      this.#idle.push(worker);
      return result;
    } catch (error) {
      // Nothing else stops a thread that is busy.
      this.#end(worker);
      if (given.signal.aborted) return brokenOff(task, 'liveness', String(given.signal.reason));
      return brokenOff(task, brokenRun, String(error));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Runs tasks, as many at once as there are threads, until they are done or `onResult` says that it is enough. */
  async run(tasks: Iterable<SeedTask>, onResult: (result: SimResult) => boolean): Promise<void> {
    const left = tasks[Symbol.iterator]();
    let enough = false;
    const work = async (): Promise<void> => {
      for (let next = left.next(); !enough && next.done !== true; next = left.next()) {
        const result = await this.runOne(next.value);
        if (!enough) enough = !onResult(result);
      }
    };
    await Promise.all(Array.from({ length: this.jobs }, work));
  }

  #start(): Worker {
    const limits = { maxYoungGenerationSizeMb: youngMb };
    const worker = new Worker(this.#options.worker, { execArgv: [], resourceLimits: limits });
    this.#all.add(worker);
    return worker;
  }

  #end(worker: Worker): void {
    this.#all.delete(worker);
    void worker.terminate();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.terminate()));
    this.#all.clear();
    this.#idle.length = 0;
  }
}
