/**
 * Watched queries and followed changes on nodes of the simulator, in seeds of their own: beside writes, merges, gc, crashes, restarts,
 * faults of the store and migrations, each result is the model's at its position (docs/testing.md).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SimOverrides } from './config.ts';
import { SeedRuns } from './seed-runs.ts';

let runs: SeedRuns;

beforeAll(async () => {
  runs = await SeedRuns.begin();
});

afterAll(() => runs.end());

const kinds: readonly (readonly [what: string, first: number, last: number, config: SimOverrides])[] = [
  ['beside whatever a seed says', 1, 20, {}],
  ['on small blocks, beside gc', 41, 46, { blockSizeBytes: 512, gcEveryMs: 500, graceMs: 0, logRetentionMs: 0 }],
  ['while a table is migrated', 998, 1005, { migrationChance: 0.4 }],
];

describe('watched queries in the simulator', () => {
  it.each(kinds)('show states of the model %s', { timeout: 200_000 }, async (_, first, last, config) => {
    expect(await runs.violations(first, last, { ...config, liveChance: 0.3 })).toEqual([]);
  });
});
