/** The node that does the work dies at any request, and another one goes on; two work at once; time passes unevenly. */
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../../src/base/errors.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { hangs } from '../protocol/scripted-driver.ts';
import { Fleet } from './fleet.ts';
import type { Member } from './fleet.ts';
import { users1, users2 } from './versions.ts';
import type { Row } from './versions.ts';

const count = 40;

function oldRow(id: number): Row {
  return { id, name: `name ${id}`, age: id, old: `old ${id}` };
}

function newRow(id: number): Row {
  return { id, name: `name ${id}`, age: id, email: null, level: 3 };
}

/** What is to be there in the end, whoever died when. */
function expectedRows(): Row[] {
  const rows = Array.from({ length: count }, (_, id) => newRow(id)).filter(({ id }) => id !== 11 && id !== 31);
  for (const row of rows) {
    if (row['id'] === 5 || row['id'] === 35) row['name'] = 'changed by the old';
    if (row['id'] === 6 || row['id'] === 36) row['email'] = 'changed by the new';
  }
  return rows;
}

interface Scenario {
  readonly fleet: Fleet;
  readonly old: Member;
  readonly worker: Member;
  /** A node that can go on. */
  readonly heir: Member;
}

async function begin(): Promise<Scenario> {
  const fleet = new Fleet();
  const old = await fleet.open(1, [users1], { polling: 'onDemand' });
  await fleet.write(
    old,
    'insert',
    Array.from({ length: count }, (_, id) => oldRow(id)),
  );
  await fleet.run(old.db.checkpoint());
  const worker = await fleet.open(2, [users1, users2]);
  const heir = await fleet.open(3, [users2]);
  await fleet.advance(2000);
  return { fleet, old, worker, heir };
}

/** Everything that happens: writes before, during and after the work, and the end of the old version. */
async function play({ fleet, old, worker, heir }: Scenario): Promise<void> {
  await fleet.write(heir, 'update', [{ id: 6, email: 'changed by the new' }]);
  // Who asks may be dead by then.
  void worker.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 15, keepOld: false }).catch(() => undefined);
  await fleet.advance(1100);
  await fleet.write(old, 'update', [
    { id: 5, name: 'changed by the old' },
    { id: 35, name: 'changed by the old' },
  ]);
  await fleet.deleteRows(old, [31]);
  await fleet.write(heir, 'update', [{ id: 36, email: 'changed by the new' }]);
  await fleet.deleteRows(heir, [11]);
  await fleet.advance(3000);
  await fleet.run(old.db.stop());
  // The old version goes by itself, after all other instances have had the time to say that they use it.
  await fleet.advance(320_000);
}

/** However it was interrupted, it can be brought to an end, and nothing is lost. */
async function finish({ fleet, worker, heir }: Scenario): Promise<void> {
  await fleet.run(heir.db.setTargetSchemaVersion('users', 2));
  // A node that died is on the list until others notice.
  if (worker.environment.isFrozen) {
    await fleet.replaceBlock0(({ nodes }) => ({ nodes: nodes.filter((id) => id !== worker.nodeId) }));
  }
  await fleet.untilRetired(heir);
  expect(await fleet.rows(heir)).toEqual(expectedRows());
  expect(await fleet.findings(heir)).toEqual([]);
  expect(await fleet.leftovers(heir)).toEqual({ missing: [], superfluous: [] });
}

/** Plays the scenario with the worker dying at its n-th put; false if it has no such put. */
async function dyingAt(n: number, moment: 'before' | 'after'): Promise<boolean> {
  const scenario = await begin();
  const { worker } = scenario;
  let puts = 0;
  worker.driver.onPut(
    /^/,
    async (pass) => {
      const isLast = ++puts === n;
      if (isLast && moment === 'before') worker.environment.freeze();
      if (worker.environment.isFrozen && moment === 'before') return hangs();
      const result = await pass();
      if (isLast) worker.environment.freeze();
      return result;
    },
    Number.POSITIVE_INFINITY,
  );
  await play(scenario);
  await finish(scenario);
  return puts >= n;
}

describe('any instance that does the work may die', () => {
  it.each(['before', 'after'] as const)('%s any request that writes', async (moment) => {
    let n = 1;
    while (await dyingAt(n, moment)) n++;
    expect(n).toBeGreaterThan(20);
  });
});

describe('two that do the work', () => {
  it('at the same time, with clocks that disagree, come to the same end', async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const random = new SeededRandom(seed);
      const scenario = await begin();
      const { fleet, worker, heir } = scenario;
      // Each takes every turn for its own.
      worker.environment.skewMs = 1000;
      const pausing = async (): Promise<void> => {
        for (let i = 0; i < 10; i++) {
          await fleet.advance(random.integer(1, 1500));
          random.pick([worker, heir]).environment.pause(random.integer(1, 3000));
        }
      };
      await fleet.run(worker.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 1000 }));
      await fleet.run(heir.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 1000 }));
      await pausing();
      await play(scenario);
      await finish(scenario);
    }
  });
});

describe('answers that are lost', () => {
  it('cost time only', async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const random = new SeededRandom(seed);
      const scenario = await begin();
      for (const { driver } of [scenario.worker, scenario.heir]) {
        driver.onPut(
          /^(block0|data|indexes)/,
          async (pass, { key }) => {
            if (random.chance(0.1)) throw new StorageError(key, 'unknown', 'There was no answer.');
            const result = await pass();
            if (random.chance(0.1)) throw new StorageError(key, 'unknown', 'There was no answer.');
            return result;
          },
          300,
        );
      }
      await play(scenario);
      for (const { driver } of [scenario.worker, scenario.heir]) driver.heal();
      await finish(scenario);
    }
  });
});
