/**
 * The simulator over many seeds (docs/testing.md), after those of `sim.test.ts`. `SIM_SEEDS` sets how many, `SIM_SEED` the first one, `SIM_JOBS` how
 * many threads run them (default: one for every core):
 *
 *     SIM_SEED=1000 SIM_SEEDS=5000 npx vitest run test/simulation/sim/sim.slow.test.ts
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SimOverrides } from './config.ts';
import { firstSeeds, SeedRuns } from './seed-runs.ts';

const first = Number(process.env['SIM_SEED'] ?? firstSeeds + 1);
const seeds = Number(process.env['SIM_SEEDS'] ?? 1000 - firstSeeds);
const chunk = 100;
/** For long runs on busy machines: a seed takes a fraction of this. */
const seedTimeoutMs = 20_000;

let runs: SeedRuns;

beforeAll(async () => {
  runs = await SeedRuns.begin();
});

afterAll(() => runs.end());

/** What the last chunks of many are told, the very last one first. */
const kinds: readonly { readonly config: SimOverrides; readonly what: string }[] = [
  { config: { functions: true }, what: ', with an index on a function' },
  { config: { encrypted: true }, what: ', encrypted' },
  { config: { autoIds: true }, what: ', with node ids that they take themselves' },
  { config: { loadChance: 0.2, blockSizeBytes: 512 }, what: ', with loads' },
];

describe('the simulator', () => {
  for (let from = first; from < first + seeds; from += chunk) {
    const to = Math.min(from + chunk, first + seeds) - 1;
    // Of many, the last ones are of a special kind each, whatever the seed says.
    const chunksLeft = Math.ceil((first + seeds - from) / chunk);
    const isMany = seeds > 2 * chunk;
    const special = isMany ? kinds[chunksLeft - 1] : undefined;
    const { config = {}, what = '' } = special ?? {};
    it(
      `finds nothing wrong from seed ${from} to ${to}${what}`,
      async () => expect(await runs.violations(from, to, config)).toEqual([]),
      chunk * seedTimeoutMs,
    );
  }
});
