/** Runs seeds of the simulator for tests, on threads of their own. */
import { CompiledTree, workerOf } from './compiled-tree.ts';
import type { SimOverrides } from './config.ts';
import { replayOf } from './config-text.ts';
import { SeedPool } from './seed-pool.ts';
import type { SeedTask } from './seed-pool.ts';

/** The seeds of `sim.test.ts`; those after them are for `sim.slow.test.ts`. */
export const firstSeeds = 20;
/** One in so many is run a second time: it must do the same. */
const twice = 10;

function* tasks(from: number, to: number, config: SimOverrides): Generator<SeedTask, void, undefined> {
  for (let seed = from; seed <= to; seed++) yield { seed, options: { config }, twice: seed % twice === 0 };
}

export class SeedRuns {
  readonly #tree: CompiledTree;
  readonly #pool: SeedPool;

  private constructor(tree: CompiledTree) {
    const jobs = process.env['SIM_JOBS'];
    this.#tree = tree;
    this.#pool = new SeedPool({ worker: workerOf(tree.folder), ...(jobs === undefined ? {} : { jobs: Number(jobs) }) });
  }

  static async begin(): Promise<SeedRuns> {
    return new SeedRuns(await CompiledTree.make());
  }

  async end(): Promise<void> {
    await this.#pool.close();
    this.#tree.remove();
  }

  /** What the seeds from `from` to `to` find, each with how to run it again. Rejects if not all of them were run. */
  async violations(from: number, to: number, config: SimOverrides = {}): Promise<string[]> {
    const found: string[] = [];
    let done = 0;
    await this.#pool.run(tasks(from, to, config), ({ seed, config: run, violation }) => {
      done++;
      if (violation !== undefined) found.push(`${violation.invariant}: ${violation.message}\n${replayOf(seed, run)}`);
      return true;
    });
    if (done !== to - from + 1) throw new Error(`Of the seeds from ${from} to ${to}, ${done} were run`);
    return found;
  }
}
