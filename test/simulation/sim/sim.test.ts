/** The first seeds of the simulator, which find two in three of the mistakes in docs/testing.md; `sim.slow.test.ts` runs the others. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstSeeds, SeedRuns } from './seed-runs.ts';

let runs: SeedRuns;

beforeAll(async () => {
  runs = await SeedRuns.begin();
});

afterAll(() => runs.end());

describe('the simulator', () => {
  it(`finds nothing wrong in the first ${firstSeeds} seeds`, { timeout: 400_000 }, async () => {
    expect(await runs.violations(1, firstSeeds)).toEqual([]);
  });
});
