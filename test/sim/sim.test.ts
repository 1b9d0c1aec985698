/**
 * The simulator over many seeds (docs/testing.md). `SIM_SEEDS` sets how many, `SIM_SEED` the first one, `SIM_JOBS` how
 * many threads run them (default: one for every core):
 *
 *     SIM_SEED=1000 SIM_SEEDS=5000 npx vitest run test/sim/sim.test.ts
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CompiledTree, workerOf } from './compiled-tree.ts';
import type { SimOverrides } from './config.ts';
import { replayOf } from './config-text.ts';
import { SeedPool } from './seed-pool.ts';
import type { SeedTask } from './seed-pool.ts';

const first = Number(process.env['SIM_SEED'] ?? 1);
const seeds = Number(process.env['SIM_SEEDS'] ?? 1000);
const jobs = process.env['SIM_JOBS'];
const chunk = 100;
/** One in so many is run a second time: it must do the same. */
const twice = 10;
/** For long runs on busy machines: a seed takes a fraction of this. */
const seedTimeoutMs = 20_000;

let tree: CompiledTree;
let pool: SeedPool;

beforeAll(async () => {
  tree = await CompiledTree.make();
  pool = new SeedPool({ worker: workerOf(tree.folder), ...(jobs === undefined ? {} : { jobs: Number(jobs) }) });
});

afterAll(async () => {
  await pool.close();
  tree.remove();
});

function* tasks(from: number, to: number, config: SimOverrides = {}): Generator<SeedTask, void, undefined> {
  for (let seed = from; seed <= to; seed++) yield { seed, options: { config }, twice: seed % twice === 0 };
}

/** What a chunk of seeds finds. */
async function violationsFrom(from: number, to: number, config?: SimOverrides): Promise<string[]> {
  const found: string[] = [];
  let done = 0;
  await pool.run(tasks(from, to, config), ({ seed, config: run, violation }) => {
    done++;
    if (violation !== undefined) found.push(`${violation.invariant}: ${violation.message}\n${replayOf(seed, run)}`);
    return true;
  });
  expect(done).toBe(to - from + 1);
  return found;
}

/** What the last chunks of many are told, the very last one first. */
const kinds: readonly { readonly config: SimOverrides; readonly what: string }[] = [
  { config: { functions: true }, what: ', with an index on a function' },
  { config: { encrypted: true }, what: ', encrypted' },
  { config: { autoIds: true }, what: ', with node ids that they take themselves' },
];

describe('the simulator', () => {
  for (let from = first; from < first + seeds; from += chunk) {
    const to = Math.min(from + chunk, first + seeds) - 1;
    // Of many, the last ones have an index on a function, those before them encrypt, and in those before them instances take
    // their ids themselves, whatever the seed says.
    const chunksLeft = Math.ceil((first + seeds - from) / chunk);
    const isMany = seeds > 2 * chunk;
    const special = isMany ? kinds[chunksLeft - 1] : undefined;
    const { config = {}, what = '' } = special ?? {};
    it(
      `finds nothing wrong from seed ${from} to ${to}${what}`,
      async () => expect(await violationsFrom(from, to, config)).toEqual([]),
      chunk * seedTimeoutMs,
    );
  }
});
