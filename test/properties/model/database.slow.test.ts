/**
 * The whole database against a naive model, in random steps on random tables. Longer runs, and replaying one:
 * `STOREDB_MODEL_RUNS=5000 STOREDB_MODEL_STEPS=300 npx vitest run test/properties/model`, and with the seed and path that a
 * failure prints, `STOREDB_MODEL_SEED=... STOREDB_MODEL_PATH=...`.
 */
import { array, asyncProperty, check, constantFrom, integer, noBias, noShrink, record } from 'fast-check';
import type { Arbitrary, RunDetails } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { newTally, stepKinds, World } from './world.ts';
import type { Step } from './world.ts';

function setting(name: string, fallback: number): number {
  const value = process.env[`STOREDB_MODEL_${name}`];
  return value === undefined ? fallback : Number(value);
}

const runs = setting('RUNS', 100);
const steps = setting('STEPS', 100);
const replay = {
  ...(process.env['STOREDB_MODEL_SEED'] === undefined ? {} : { seed: setting('SEED', 0) }),
  ...(process.env['STOREDB_MODEL_PATH'] === undefined ? {} : { path: process.env['STOREDB_MODEL_PATH'] }),
};

/** What failed, and how to see it again. */
function report({
  failed,
  seed,
  counterexamplePath,
  counterexample,
  errorInstance,
}: RunDetails<[number, Step[]]>): void {
  if (!failed) return;
  const [world, list = []] = counterexample ?? [];
  const done = list.filter(({ kind }) => kind !== 'nothing').map((step) => JSON.stringify(step));
  throw new Error(
    `World ${world} differs from the model. Replay: STOREDB_MODEL_SEED=${seed} STOREDB_MODEL_PATH=${counterexamplePath} ` +
      `STOREDB_MODEL_STEPS=${steps}\nSteps:\n${done.join('\n')}`,
    { cause: errorInstance },
  );
}

/** Seeds are any numbers: neither small ones nor simpler ones mean anything. */
const seedOf = noBias(noShrink(integer({ min: 0, max: 0x7fffffff })));

const stepOf: Arbitrary<Step> = record({
  kind: constantFrom(...stepKinds),
  seed: seedOf,
});

describe('the database', () => {
  it(
    'acts as the model',
    async () => {
      const tally = newTally();
      const property = asyncProperty(
        seedOf,
        array(stepOf, { minLength: steps, maxLength: steps }),
        async (seed, list) => {
          const world = new World(seed, tally);
          await world.start();
          for (const step of list) await world.step(step);
          await world.finish();
        },
      );
      report(await check(property, { numRuns: runs, ...replay }));
      const never = Object.entries(tally).filter(([, count]) => count === 0);
      // A replayed run need not show everything.
      expect(replay.path === undefined ? never : []).toEqual([]);
    },
    runs * 20_000,
  );

  it(
    'does so on a store that fails now and then',
    async () => {
      const tally = newTally();
      let met = 0;
      const faults = { lostRequest: 0.004, lostAnswer: 0.004, lookAgain: 0.004, falseLoss: 0.004 };
      const property = asyncProperty(
        seedOf,
        array(stepOf, { minLength: steps, maxLength: steps }),
        async (seed, list) => {
          const world = new World(seed, tally, faults);
          await world.start();
          for (const step of list) await world.step(step);
          await world.finish();
          met += world.faults;
        },
      );
      report(await check(property, { numRuns: Math.ceil(runs / 5), ...replay }));
      expect(met).toBeGreaterThan(runs / 5);
      expect(tally.merges).toBeGreaterThan(0);
    },
    runs * 20_000,
  );
});
