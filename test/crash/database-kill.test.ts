/** A database in a folder survives that its writer is killed at any moment. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SeededRandom } from '../../src/testing/seeded-random.ts';
import { bundleChild, KillChain, newTally } from './kill-chain.ts';
import type { Aim } from './kill-chain.ts';

const KILLS = Number(process.env['KILLS'] ?? 200);
const MERGE_KILLS = Math.ceil(KILLS / 4);
const CHAINS = 2;

let folder = '';
let child = '';

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-kill-'));
  child = bundleChild(folder);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

function aim(random: SeededRandom): Aim {
  const dice = random.next();
  if (dice < 0.1) return { what: 'start', nth: 1, afterMs: random.between(20, 120) };
  if (dice < 0.4) return { what: 'ready', nth: 1, afterMs: random.between(0, 100) };
  return { what: 'merge', nth: random.integer(1, 4), afterMs: random.chance(0.3) ? 0 : random.between(0, 8) };
}

describe('a database in a folder', () => {
  it('holds what was acknowledged, and nothing torn, however often its writer is killed', {
    timeout: 600_000,
  }, async ({ annotate }) => {
    const tally = newTally();
    // Until both counts are reached; aiming is no more than aiming.
    const goesOn = (): boolean => (tally.kills < KILLS || tally.mergeKills < MERGE_KILLS) && tally.kills < 4 * KILLS;
    const chains = Array.from({ length: CHAINS }, (_, i) => {
      const store = { folder: path.join(folder, `store-${i}`) };
      return new KillChain({ child, store, seed: `kill ${i}`, aim, tally });
    });
    await Promise.all(chains.map((chain) => chain.run(goesOn)));
    await annotate(JSON.stringify(tally));
    expect(tally.kills).toBeGreaterThanOrEqual(KILLS);
    expect(tally.mergeKills).toBeGreaterThanOrEqual(MERGE_KILLS);
    expect(tally.merges).toBeGreaterThan(KILLS / 4);
    expect(tally.acknowledged).toBeGreaterThan(KILLS);
    expect(tally.survived + tally.vanished).toBeGreaterThan(0);
    expect(tally.failures).toEqual({});
  });
});
