/**
 * The power fails before any operation on the disk while two processes write, merge and collect garbage. What was not synced survives or
 * not, in any combination; what was acknowledged must be there, whole, with every tree and index in order.
 */
import { describe, expect, it } from 'vitest';
import { PowerWorld } from './database-power-world.ts';
import type { PowerTally } from './database-power-world.ts';

const CUTS = Number(process.env['POWER_CUTS'] ?? 1800);
const FIRST_SEED = Number(process.env['POWER_SEED'] ?? 1);
const BATCHES = 12;
const CUT_CHANCE = 0.1;

describe('a database on a disk that loses power', () => {
  it('keeps all acknowledged writes, and nothing torn', { timeout: 300_000 + CUTS * 50 }, async ({ annotate }) => {
    const tally: PowerTally = {
      operations: 0,
      cuts: 0,
      survived: 0,
      vanished: 0,
      inMerge: 0,
      inGc: 0,
      cleanings: 0,
      continued: 0,
      merges: 0,
    };
    for (let seed = FIRST_SEED; tally.cuts < CUTS; seed++) {
      try {
        await new PowerWorld(seed, tally).run(BATCHES, CUT_CHANCE);
      } catch (cause) {
        throw new Error(`POWER_SEED=${seed}: ${(cause as Error).message}`, { cause });
      }
    }
    await annotate(JSON.stringify(tally));
    expect(tally.cuts).toBeGreaterThanOrEqual(CUTS);
    expect(tally.inMerge).toBeGreaterThan(CUTS / 5);
    expect(tally.inGc).toBeGreaterThan(CUTS / 20);
    expect(tally.cleanings).toBeGreaterThan(CUTS / 10);
    expect(tally.survived).toBeGreaterThan(CUTS / 100);
    expect(tally.vanished).toBeGreaterThan(CUTS / 100);
    expect(tally.continued).toBeGreaterThan(CUTS / 8);
    expect(tally.merges).toBeGreaterThan(10);
  });
});
