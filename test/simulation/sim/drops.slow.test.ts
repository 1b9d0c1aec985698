/**
 * Nodes of the simulator that write to a table, drop it and register it again, in seeds of their own: beside merges, gc, crashes, restarts
 * and faults of the store, no registration from before a drop writes behind it, and nodes show what the log has (docs/testing.md).
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
  ['beside whatever a seed says', 1, 16, {}],
  ['on small blocks, beside gc', 41, 46, { blockSizeBytes: 512, gcEveryMs: 500, graceMs: 0, logRetentionMs: 0 }],
  ['while another table is migrated', 998, 1001, { migrationChance: 0.3 }],
];

describe('a table that comes and goes in the simulator', () => {
  it.each(kinds)('is what the log says %s', { timeout: 200_000 }, async (_, first, last, config) => {
    expect(await runs.violations(first, last, { ...config, dropChance: 0.4 })).toEqual([]);
  });
});
