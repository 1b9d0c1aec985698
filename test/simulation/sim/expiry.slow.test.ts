/**
 * A table whose rows expire on nodes of the simulator with right and wrong clocks, in seeds of their own: beside merges, gc, crashes,
 * restarts and faults of the store, no row is deleted early, readers hide rows by their own clocks, and in the end all are gone, with
 * their blobs and without triggers (docs/testing.md).
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
  ['beside whatever a seed says', 1, 6, {}],
  ['with wrong clocks, while nodes think for long', 21, 22, { wrongClocks: true, thinkMs: 20_000 }],
  ['on small blocks, beside gc', 41, 42, { blockSizeBytes: 512, gcEveryMs: 500, graceMs: 0, logRetentionMs: 0 }],
];

describe('a table whose rows expire in the simulator', () => {
  it.each(kinds)('keeps to its times %s', { timeout: 200_000 }, async (_, first, last, config) => {
    expect(await runs.violations(first, last, { ...config, expiryChance: 0.3 })).toEqual([]);
  });
});
