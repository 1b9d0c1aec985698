/**
 * A table with indexes on lists, paths and words on nodes of the simulator, in seeds of their own: beside merges, gc, crashes, restarts and
 * faults of the store, queries by these indexes find what all rows of the same state say (docs/testing.md).
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
  ['beside whatever a seed says', 1, 5, {}],
  ['on small blocks, beside gc', 41, 42, { blockSizeBytes: 512, gcEveryMs: 500, graceMs: 0, logRetentionMs: 0 }],
];

describe('a table with indexes on lists, paths and words in the simulator', () => {
  it.each(kinds)('is found as it is %s', { timeout: 200_000 }, async (_, first, last, config) => {
    expect(await runs.violations(first, last, { ...config, articleChance: 0.4 })).toEqual([]);
  });
});
