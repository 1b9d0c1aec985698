/**
 * Damaged and hostile input of all that does not come from the store: it is refused in words, or read as it is. To repeat
 * one case: FUZZ_SEED=… FUZZ_CASE=… and the name of the test.
 */
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { databaseTargets, targets } from './outer-decoders.ts';

const CASES = Number(process.env['FUZZ_OUTER'] ?? 3000);
const SEED = process.env['FUZZ_SEED'] ?? '1';
const ONLY = process.env['FUZZ_CASE'];

const maxMs = 5000;
const all = { ...targets, ...(await databaseTargets()) };
const weights = Object.values(all).reduce((sum, { weight }) => sum + weight, 0);

describe('input from outside', () => {
  for (const [name, { weight, run }] of Object.entries(all)) {
    const cases = Math.ceil((CASES * weight) / weights);
    it(name, { timeout: 60_000 + cases * 50 }, async () => {
      for (let i = ONLY === undefined ? 0 : Number(ONLY); i < (ONLY === undefined ? cases : Number(ONLY) + 1); i++) {
        const startedMs = performance.now();
        try {
          await run(new SeededRandom(`${SEED} ${name} ${i}`));
        } catch (cause) {
          throw new Error(`FUZZ_SEED=${SEED} FUZZ_CASE=${i}: ${String(cause)}`, { cause });
        }
        expect(performance.now() - startedMs, `FUZZ_SEED=${SEED} FUZZ_CASE=${i}`).toBeLessThan(maxMs);
      }
    });
  }
});
