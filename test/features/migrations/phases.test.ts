/** A table goes to a new version, phase by phase, while instances with the old and the new one are there. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Fleet } from './fleet.ts';
import type { Member } from './fleet.ts';
import { users1, users2 } from './versions.ts';
import type { Row } from './versions.ts';

let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
});

function people(from: number, to: number): Row[] {
  return Array.from({ length: to - from }, (_, i) => {
    const id = from + i;
    return { id, name: `name ${id}`, age: id % 200, old: `old ${id}` };
  });
}

function asNew({ id, name, age }: Row): Row {
  return { id, name, age, email: null, level: 3 };
}

/** The old version is given up by a commit, which waits to be merged until it is released. Just before, another one writes. */
async function givenUp(
  two: Member,
  one: Member,
  row: Row,
): Promise<{ readonly finished: Promise<void>; readonly release: () => void }> {
  let puts = 0;
  let release: () => void = () => undefined;
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  two.driver.onPut(
    /block0$/,
    async (pass) => {
      // The first one asks for the end of the version, once the rows were looked at.
      if (++puts > 1) await released;
      else {
        const batch = one.db.batch();
        void batch.upsert('users', row);
        await batch.flush();
      }
      return pass();
    },
    Number.POSITIVE_INFINITY,
  );
  const finished = two.db.finishMigration('users', { force: true });
  finished.catch(() => undefined);
  await fleet.advance(5000);
  return { finished, release };
}

describe('a migration', () => {
  it('keeps the version of a table without rows, once the old release has created it', async () => {
    const one = await fleet.open(1, [users1]);
    await fleet.run(one.db.setTargetSchemaVersion('users', 1));
    const two = await fleet.open(2, [users2]);
    await fleet.write(two, 'insert', [{ id: 1, name: 'Ann', age: 7 }]);
    expect(await fleet.status(two)).toMatchObject({ state: 'dual-write', from: 1, to: 2 });
    expect(await fleet.row(one, 1)).toMatchObject({ name: 'Ann' });
    await fleet.write(one, 'update', [{ id: 1, age: 8 }]);
    expect(await fleet.row(two, 1)).toMatchObject({ age: 8 });
  });

  it('makes all rows, switches, and retires the old version once it is asked to', async () => {
    const one = await fleet.open(1, [users1]);
    await fleet.write(one, 'insert', people(0, 300));
    await fleet.run(one.db.checkpoint());
    const two = await fleet.open(2, [users1, users2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 100 }));
    expect(await fleet.status(one)).toMatchObject({ state: 'building', from: 1, to: 2, rowsTotal: 300 });
    const switched = await fleet.until(two, 'switched');
    expect(switched).toMatchObject({ rowsDone: 300, rowsTotal: 300 });
    await fleet.advance(5000);
    expect((await fleet.status(two)).blockers).toEqual([
      'Version 1 stays until finishMigration() is called.',
      'An instance of node 1 uses version 1 since 2023-11-14T22:13:21.087Z.',
    ]);
    expect(await fleet.findings(two)).toEqual([]);
    expect(await fleet.rows(two)).toEqual(people(0, 300).map(asNew));
    expect(await fleet.rows(one)).toEqual(people(0, 300));
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    expect(await fleet.rows(two)).toEqual(people(0, 300).map(asNew));
    expect(await fleet.findings(two)).toEqual([]);
    expect(await fleet.leftovers(two)).toEqual({ missing: [], superfluous: [] });
    const told = fleet.told(two);
    expect(told[0]).toContain('without a migrate function. Field old (varchar) is dropped');
    expect([told[1], ...told.slice(-2)]).toEqual([
      'The migration of table users from version 1 to version 2 has begun',
      'Version 1 of table users is to be retired, since that was asked for',
      'Version 1 of table users is retired',
    ]);
    expect(told).toContain('Table users has switched from version 1 to version 2');
    expect(told.length).toBeLessThanOrEqual(4 + 10);
    expect(told).toContain('The migration of table users to version 2 has made 150 of 300 rows');
  });

  it('keeps the old version unless asked otherwise, and then while somebody is known to use it', async () => {
    const one = await fleet.open(1, [users1]);
    await fleet.write(one, 'insert', people(0, 20));
    await fleet.run(one.db.stop());
    const two = await fleet.open(2, [users2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    await fleet.advance(20_000);
    expect(await fleet.status(two)).toMatchObject({
      state: 'switched',
      blockers: ['Version 1 stays until finishMigration() is called.'],
      users: [],
    });
    // Somebody with the old version comes back, and what it writes is there for all.
    const again = await fleet.open(1, [users1]);
    await fleet.write(again, 'upsert', [{ id: 5, name: 'changed', age: 1, old: 'kept' }]);
    await fleet.advance(10_000);
    expect(await fleet.row(two, 5)).toEqual({ id: 5, name: 'changed', age: 1, email: null, level: 3 });
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { keepOld: false }));
    await fleet.advance(20_000);
    const { state, blockers, users } = await fleet.status(two);
    expect(state).toBe('switched');
    expect(blockers).toEqual([expect.stringMatching(/^An instance of node 1 uses version 1 since 2023/)]);
    expect(users).toEqual([{ nodeId: 1, version: 1, since: expect.any(Date) as Date }]);
    // One that knows nothing of the table stands in nobody's way.
    const third = await fleet.open(3, []);
    await fleet.run(again.db.stop());
    await fleet.until(two, 'none');
    expect(await fleet.row(two, 5)).toMatchObject({ name: 'changed' });
    await fleet.run(third.db.checkpoint());
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('goes on under load from both versions, with nothing lost', async () => {
    const one = await fleet.open(1, [users1]);
    await fleet.write(one, 'insert', people(0, 200));
    const two = await fleet.open(2, [users1, users2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 120 }));
    const expected = new Map<number, Row>(
      people(0, 200).map((row) => [row['id'] as number, { ...asNew(row), ...row }]),
    );
    const states = new Set<string>();
    for (let step = 0; step < 60; step++) {
      const id = (step * 37) % 220;
      const row = expected.get(id);
      if (step % 3 === 0) {
        await fleet.write(one, 'upsert', [{ id, name: `one ${step}`, age: step, old: `old ${step}` }]);
        const before = row ?? { email: null, level: 3 };
        expected.set(id, { ...before, id, name: `one ${step}`, age: step, old: `old ${step}` });
      } else if (step % 3 === 1) {
        await fleet.write(two, 'upsert', [{ id, name: `two ${step}`, age: 50, email: `e${step}`, level: 7 }]);
        expected.set(id, { old: null, ...row, id, name: `two ${step}`, age: 50, email: `e${step}`, level: 7 });
      } else if (row !== undefined) {
        await fleet.deleteRows(step % 2 === 0 ? one : two, [id]);
        expected.delete(id);
      }
      if (step % 7 === 0) await fleet.advance(600);
      states.add((await fleet.status(two)).state);
      const all = [...expected.values()].toSorted((a, b) => (a['id'] as number) - (b['id'] as number));
      if (step % 10 !== 0 && step < 55) continue;
      expect(await fleet.rows(one)).toEqual(all.map(({ id: key, name, age, old }) => ({ id: key, name, age, old })));
      expect(await fleet.rows(two)).toEqual(
        all.map(({ id: key, name, age, email, level }) => ({ id: key, name, age, email, level })),
      );
    }
    expect(states).toEqual(new Set(['building', 'switched']));
    await fleet.until(two, 'switched');
    const before = await fleet.rows(two);
    expect(await fleet.findings(one)).toEqual([]);
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    expect(await fleet.rows(two)).toEqual(before);
    expect(await fleet.findings(two)).toEqual([]);
    expect(await fleet.leftovers(two)).toEqual({ missing: [], superfluous: [] });
  });

  it('refuses those with the old version who come too late, before anything of theirs is lost', async () => {
    const lazy = { minCommits: 1000, maxWaitMs: 3_600_000 };
    const two = await fleet.open(2, [users2], { mergePolicy: lazy });
    const one = await fleet.open(1, [users1], { polling: 'onDemand', mergePolicy: lazy, nodes: [2] });
    await fleet.write(one, 'insert', people(0, 10));
    await fleet.advance(3000);
    // It has merged nothing and taken no turn, so that nobody knows of it.
    expect((await fleet.block0()).nodes).toEqual([2]);
    await fleet.run(two.db.checkpoint());
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { keepOld: true }));
    await fleet.until(two, 'switched');
    const { finished, release } = await givenUp(two, one, people(10, 11)[0] as Row);
    // The version is given up by now, and nothing of that is merged.
    expect((await fleet.block0()).tables.map(({ name }) => name)).toEqual(['users']);
    const late = await fleet.failure(fleet.write(one, 'insert', people(11, 12)));
    expect(late).toMatchObject({ code: 'INVALID_SCHEMA' });
    expect(late.message).toMatch(/version 1 is retired. Nothing was written/);
    const cancelled = await fleet.failure(one.db.cancelMigration('users'));
    expect(cancelled).toMatchObject({ code: 'MIGRATION_ACTIVE' });
    release();
    await fleet.run(finished);
    expect(await fleet.rows(two)).toEqual(people(0, 11).map(asNew));
    const later = await fleet.failure(fleet.write(one, 'insert', people(12, 13)));
    expect(later).toMatchObject({ code: 'INVALID_SCHEMA' });
    expect(await fleet.findings(two)).toEqual([]);
  });
});

describe('cancelling', () => {
  const bad = { id: 7, name: 'bad', age: 1, old: 'x' };
  const strict = {
    ...users2,
    migrate: (row: Row): Row => {
      if (row['name'] === 'bad') throw new Error('a bad name');
      const { id, name, age } = row;
      return { id, name, age };
    },
  };

  async function reach(state: string): Promise<{ one: Member; two: Member }> {
    const one = await fleet.open(1, [users1]);
    await fleet.write(one, 'insert', people(0, 60));
    if (state === 'blocked') await fleet.write(one, 'upsert', [bad]);
    const two = await fleet.open(2, [users1, strict]);
    if (state === 'dual-write') {
      await fleet.write(two, 'update', [{ id: 3, email: 'mail' }]);
      await fleet.run(two.db.checkpoint());
    } else
      await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: state === 'building' ? 4 : 1000 }));
    if (state !== 'building') await fleet.until(two, state as 'blocked');
    return { one, two };
  }

  it.each(['dual-write', 'building', 'blocked', 'switched'])(
    'in phase %s drops the trees of the new version',
    async (state) => {
      const { one, two } = await reach(state);
      expect(await fleet.status(one)).toMatchObject({ state, from: 1, to: 2 });
      const before = await fleet.rows(one);
      await fleet.run(two.db.cancelMigration('users'));
      expect(await fleet.status(two)).toMatchObject({ state: 'none', from: 1, to: null });
      expect(await fleet.rows(one)).toEqual(before);
      expect(await fleet.row(two, 3)).toEqual({ id: 3, name: 'name 3', age: 3, email: null, level: 3 });
      await fleet.advance(10_000);
      expect(await fleet.status(one)).toMatchObject({ state: 'none' });
      expect(await fleet.findings(one)).toEqual([]);
      expect(await fleet.leftovers(one)).toEqual({ missing: [], superfluous: [] });
      // Once more does nothing; and the way is free again.
      await fleet.run(one.db.cancelMigration('users'));
      await fleet.write(one, 'upsert', [{ ...bad, name: 'good' }]);
      await fleet.run(two.db.setTargetSchemaVersion('users', 2));
      await fleet.until(two, 'switched');
      // To ask for the version in force is to go back to it.
      await fleet.run(two.db.setTargetSchemaVersion('users', 1));
      expect(await fleet.status(one)).toMatchObject({ state: 'none', from: 1, to: null });
      expect(await fleet.findings(two)).toEqual([]);
    },
  );

  it.each(['one', 'two'] as const)(
    'makes a transaction that read the new version run again: cancelled by %s',
    async (by) => {
      const { one, two } = await reach('dual-write');
      const found: unknown[] = [];
      const level = two.db.transaction(async (tx) => {
        const row = (await tx.get('users', 3)) as Row;
        found.push(row['email']);
        if (found.length === 1) {
          const canceller = { one, two }[by];
          await canceller.db.cancelMigration('users');
          await two.db.refresh();
        }
        await tx.upsert('users', { id: 500, name: String(row['email']) });
      });
      await fleet.run(level);
      // What only the new version knew is lost, and whoever commits after that must not have seen it.
      expect(found).toEqual(['mail', null]);
      expect(await fleet.row(one, 500)).toMatchObject({ name: 'null' });
    },
  );

  it('is too late once the old version is retired', async () => {
    const { one, two } = await reach('switched');
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    await fleet.run(two.db.cancelMigration('users'));
    expect(await fleet.status(two)).toMatchObject({ state: 'none', from: 2 });
    const error = await fleet.failure(two.db.setTargetSchemaVersion('users', 1));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'version' });
  });
});

describe('a row that cannot be migrated', () => {
  const strict = {
    ...users2,
    migrate: (row: Row): Row => {
      if (String(row['name']).startsWith('bad')) throw new Error('a bad name');
      const { id, name, age } = row;
      return { id, name, age };
    },
  };

  it('blocks the migration with a report, and leaves the old version in force until it is tried again', async () => {
    const one = await fleet.open(1, [users1]);
    await fleet.write(one, 'insert', people(0, 100));
    await fleet.write(
      one,
      'upsert',
      Array.from({ length: 30 }, (_, i) => ({ id: 40 + i, name: `bad ${i}`, age: 1, old: '' })),
    );
    const two = await fleet.open(2, [strict]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    const blocked = await fleet.until(two, 'blocked');
    expect(blocked.blockers).toHaveLength(20);
    expect(blocked.blockers[0]).toBe('Row 40: `migrate` of version 2 threw: a bad name.');
    expect(blocked.rowsDone).toBe(40);
    const warnings = two.log.filter(({ level, message }) => level === 'warn' && /cannot migrate/.test(message));
    expect(warnings).toHaveLength(1);
    await fleet.advance(20_000);
    expect(await fleet.status(one)).toMatchObject({ state: 'blocked' });
    // What can be seen can be seen.
    expect(await fleet.row(two, 39)).toMatchObject({ name: 'name 39' });
    expect(await fleet.row(two, 71)).toMatchObject({ name: 'name 71' });
    expect(await fleet.failure(two.db.get('users', 41))).toMatchObject({ code: 'MIGRATION', primaryKey: 41 });
    // Those with the old version put it right: by changing a row, or deleting it.
    await fleet.write(
      one,
      'upsert',
      Array.from({ length: 29 }, (_, i) => ({ id: 40 + i, name: `good ${i}`, age: 1, old: '' })),
    );
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    expect((await fleet.until(two, 'blocked')).blockers).toEqual(['Row 69: `migrate` of version 2 threw: a bad name.']);
    await fleet.deleteRows(one, [69]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    expect(await fleet.rows(two)).toHaveLength(99);
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('that comes after the switch is reported, and keeps the old version from being retired', async () => {
    const one = await fleet.open(1, [users1]);
    await fleet.write(one, 'insert', people(0, 30));
    const two = await fleet.open(2, [strict]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { keepOld: false }));
    await fleet.until(two, 'switched');
    await fleet.write(one, 'upsert', [
      { id: 3, name: 'bad luck', age: 1, old: '' },
      { id: 4, name: 'fine', age: 1, old: '' },
    ]);
    await fleet.advance(10_000);
    await fleet.run(one.db.stop());
    await fleet.advance(20_000);
    const status = await fleet.status(two);
    expect(status).toMatchObject({ state: 'switched', blockers: ['Row 3: `migrate` of version 2 threw: a bad name.'] });
    const { generation } = await fleet.block0();
    await fleet.advance(20_000);
    expect((await fleet.block0()).generation).toBe(generation);
    await fleet.write(two, 'upsert', [{ id: 3, name: 'good', age: 2, email: 'e', level: 1 }]);
    await fleet.untilRetired(two);
    expect(await fleet.row(two, 3)).toEqual({ id: 3, name: 'good', age: 2, email: 'e', level: 1 });
    expect(await fleet.row(two, 4)).toMatchObject({ name: 'fine' });
    expect(await fleet.findings(two)).toEqual([]);
  });

  it.each(['old', 'new'])(
    'is named before the end of the old version is recorded, so that the %s one can correct it',
    async (corrects) => {
      const one = await fleet.open(1, [users1]);
      await fleet.write(one, 'insert', people(0, 30));
      const two = await fleet.open(2, [strict]);
      await fleet.run(two.db.setTargetSchemaVersion('users', 2));
      await fleet.until(two, 'switched');
      await fleet.write(one, 'upsert', [{ id: 3, name: 'bad luck', age: 1, old: '' }]);
      await fleet.run(one.db.stop());
      for (const force of [false, true]) {
        const error = await fleet.failure(two.db.finishMigration('users', { force }));
        expect(error).toMatchObject({ code: 'MIGRATION_ACTIVE', table: 'users' });
        expect(error.message).toMatch(/Row 3: `migrate` of version 2 threw: a bad name\. Nothing was changed\./);
        expect(error.message).toMatch(/call finishMigration\(\) again; or go back with cancelMigration\(\)/);
        expect((await fleet.block0()).migrations[0]?.target).not.toHaveProperty('retire');
      }
      if (corrects === 'old') {
        const again = await fleet.open(1, [users1]);
        await fleet.write(again, 'upsert', [{ id: 3, name: 'good luck', age: 1, old: '' }]);
        await fleet.run(again.db.stop());
      } else await fleet.write(two, 'upsert', [{ id: 3, name: 'good luck', age: 1 }]);
      // The problem is still in Block 0 when the call begins.
      await fleet.run(two.db.finishMigration('users'));
      expect(await fleet.status(two)).toMatchObject({ state: 'none', from: 2 });
      expect(await fleet.row(two, 3)).toMatchObject({ name: 'good luck' });
    },
  );

  it('is seen also if it was committed just before the old version was given up', async () => {
    const lazy = { mergePolicy: { minCommits: 1000, maxWaitMs: 3_600_000 } };
    const two = await fleet.open(2, [strict], lazy);
    const one = await fleet.open(1, [users1], { ...lazy, polling: 'onDemand' });
    await fleet.write(one, 'insert', people(0, 30));
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { keepOld: true }));
    await fleet.until(two, 'switched');
    const { finished, release } = await givenUp(two, one, { id: 3, name: 'bad luck', age: 1, old: '' });
    expect(await fleet.failure(fleet.write(one, 'insert', people(40, 41)))).toMatchObject({ code: 'INVALID_SCHEMA' });
    release();
    const stuck = await fleet.failure(finished);
    expect(stuck).toMatchObject({ code: 'MIGRATION_ACTIVE' });
    expect(stuck.message).toMatch(
      /is recorded.*Row 3: .*Replace these rows with an upsert\(\) of version 2.*without another call\.$/,
    );
    const blockers = ['Row 3: `migrate` of version 2 threw: a bad name.'];
    expect(await fleet.status(two)).toMatchObject({ state: 'switched', blockers });
    await fleet.write(two, 'upsert', [{ id: 3, name: 'good', age: 2, email: 'e', level: 1 }]);
    await fleet.run(two.db.checkpoint());
    await fleet.until(two, 'none');
    expect(await fleet.rows(two)).toHaveLength(30);
    expect(await fleet.findings(two)).toEqual([]);
  });
});
