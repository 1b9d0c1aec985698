/**
 * The simulator over many seeds (docs/testing.md). `SIM_SEEDS` sets how many, `SIM_SEED` the first one:
 *
 *     SIM_SEED=1000 SIM_SEEDS=5000 npx vitest run test/sim/sim.test.ts
 */
import { describe, expect, it } from 'vitest';
import { simulate, simulateTwice } from './simulation.ts';

const first = Number(process.env['SIM_SEED'] ?? 1);
const seeds = Number(process.env['SIM_SEEDS'] ?? 120);
const chunk = 20;
/** One in so many is run a second time: it must do the same. */
const twice = 5;
/** For long runs on busy machines: a seed takes a fraction of this. */
const seedTimeoutMs = 20_000;

describe('the simulator', () => {
  for (let from = first; from < first + seeds; from += chunk) {
    const to = Math.min(from + chunk, first + seeds) - 1;
    it(
      `finds nothing wrong from seed ${from} to ${to}`,
      async () => {
        for (let seed = from; seed <= to; seed++) {
          const { violation } = await (seed % twice === 0 ? simulateTwice : simulate)(seed);
          const found = violation && `${violation.invariant}: ${violation.message}`;
          expect(found, `npm run sim -- --seed ${seed} --trace`).toBeUndefined();
        }
      },
      chunk * seedTimeoutMs,
    );
  }
});
