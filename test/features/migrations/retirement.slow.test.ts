/** When the old version of a table goes: when somebody asks for it, and not because somebody has not been heard of. */
import { describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Fleet } from './fleet.ts';
import type { Member } from './fleet.ts';
import { caught } from '../protocol/nodes.ts';
import { after, refused } from '../protocol/scripted-driver.ts';
import { users1, users2 } from './versions.ts';

const notes: SchemaDefinition = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 } },
  primaryKey: 'id',
};

const row = { id: 1, name: 'Ann', age: 7, old: 'o' };
const lazy = { mergePolicy: { minCommits: 20, maxWaitMs: 3_600_000 } } as const;

async function open(fleet: Fleet, options: Partial<StoreDbOptions> = {}, nodeId = 1): Promise<Member> {
  const one = await fleet.open(nodeId, [users1], options);
  await fleet.write(one, 'upsert', [row]);
  return one;
}

/** All rows are there in the new version. */
async function switched(fleet: Fleet, keepOld = true): Promise<Member> {
  const two = await fleet.open(2, [users1, users2]);
  await fleet.run(two.db.setTargetSchemaVersion('users', 2, { keepOld }));
  await fleet.until(two, 'switched');
  return two;
}

describe('an old version in use', () => {
  const cases: readonly [string, Partial<StoreDbOptions>, number][] = [
    ['by an instance that merges hardly ever', lazy, 1],
    ['by one that looks at the store on demand', { polling: 'onDemand', ...lazy }, 1],
    ['by one that is not among the nodes', { nodes: [2] }, 1],
    ['by one with the node id of a new one', {}, 2],
  ];
  it.each(cases)('stays: %s', async (_, options, nodeId) => {
    const fleet = new Fleet();
    const one = await open(fleet, options, nodeId);
    const two = await switched(fleet);
    for (let i = 0; i < 30; i++) {
      await fleet.write(one, 'update', [{ id: 1, age: i }]);
      await fleet.write(two, 'update', [{ id: 1, email: `${i}` }]);
      await fleet.advance(2000);
    }
    expect(await fleet.row(one, 1)).toEqual({ ...row, age: 29 });
    expect(await fleet.row(two, 1)).toMatchObject({ age: 29, email: '29' });
  });

  it.each(cases)('is not retired by itself either, where that was allowed: %s', async (_, options, nodeId) => {
    const fleet = new Fleet();
    const one = await open(fleet, options, nodeId);
    await switched(fleet, false);
    for (let i = 0; i < 30; i++) {
      await fleet.write(one, 'update', [{ id: 1, age: i }]);
      await fleet.advance(2000);
    }
    await fleet.run(one.db.stop());
  });

  it('stays although nobody is known to use it, until somebody asks', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await switched(fleet);
    await fleet.run(one.db.stop());
    for (let i = 0; i < 60; i++) {
      await fleet.write(two, 'update', [{ id: 1, email: `${i}` }]);
      await fleet.advance(5000);
    }
    expect(await fleet.status(two)).toMatchObject({ state: 'switched', users: [] });
    const late = await fleet.open(1, [users1]);
    expect(await fleet.rows(late)).toEqual([row]);
  });

  it('stays for a replica', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const replica = await fleet.open(1, [users1], { role: 'replica' });
    await fleet.run(one.db.stop());
    await switched(fleet);
    await fleet.advance(120_000);
    expect(await fleet.rows(replica)).toEqual([row]);
  });

  it('is recorded for an instance before its start() resolves, and separately for another with an equal id', async () => {
    const fleet = new Fleet();
    const first = await open(fleet);
    const two = await switched(fleet);
    await fleet.run(first.db.stop());
    expect((await fleet.status(two)).users).toEqual([]);
    const again = await fleet.open(1, [users1], { polling: 'onDemand' });
    await fleet.advance(7);
    const clone = await fleet.open(1, [users1], { polling: 'onDemand' });
    await fleet.open(1, [users2]);
    await fleet.advance(10_000);
    expect((await fleet.status(two)).users).toMatchObject([
      { nodeId: 1, version: 1 },
      { nodeId: 1, version: 1 },
    ]);
    await fleet.run(clone.db.stop());
    expect((await fleet.status(two)).users).toMatchObject([{ nodeId: 1, version: 1 }]);
    await fleet.run(again.db.stop());
    expect((await fleet.status(two)).users).toEqual([]);
  });

  it('is not forgotten when very many say so, and Block 0 does not grow with them', async () => {
    const fleet = new Fleet();
    await open(fleet);
    const two = await switched(fleet);
    for (let i = 0; i < 80; i++) {
      const one = await fleet.open(3, [users1], { polling: 'onDemand' });
      one.environment.freeze();
    }
    const { users } = await fleet.status(two);
    expect(users.length).toBeLessThanOrEqual(65);
    expect(users).toContainEqual(expect.objectContaining({ nodeId: 3, version: 1 }));
  });
});

describe('finishing a migration', () => {
  it('shows who may still use the old version, and does nothing before they are gone', async () => {
    const fleet = new Fleet();
    const one = await open(fleet, { polling: 'onDemand' });
    const two = await switched(fleet);
    await fleet.write(one, 'update', [{ id: 1, age: 8 }]);
    await fleet.advance(5000);
    const error = await fleet.failure(two.db.finishMigration('users'));
    expect(error).toMatchObject({ code: 'MIGRATION_ACTIVE', table: 'users' });
    expect(error.message).toMatch(
      /^Version 1 of table 'users' may still be in use: An instance of node 1 uses version 1 since /,
    );
    expect(error.message).toContain('Replicas');
    await fleet.write(one, 'update', [{ id: 1, age: 9 }]);
    await fleet.run(one.db.stop());
    await fleet.run(two.db.finishMigration('users'));
    expect(await fleet.status(two)).toMatchObject({ state: 'none', from: 2 });
    expect(await fleet.row(two, 1)).toMatchObject({ age: 9 });
    // There is nothing left to finish.
    await fleet.run(two.db.finishMigration('users'));
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('gives an instance that joins meanwhile the time to say which version it uses', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await switched(fleet);
    await fleet.run(one.db.stop());
    const three = await fleet.open(3, [users1, users2], { polling: 'interval' });
    await fleet.advance(5000);
    // As if it had joined when the other instance has just looked at the list.
    const joins = (): Promise<void> =>
      fleet.replaceBlock0(({ migrations }) => ({
        migrations: migrations.map((migration) => ({
          ...migration,
          users: migration.users.filter(({ nodeId }) => nodeId !== 3),
        })),
      }));
    expect((await fleet.block0()).nodes).toContain(3);
    two.driver.onPut(/^block0$/, after(joins));
    await fleet.run(two.db.finishMigration('users'));
    expect(await fleet.status(three)).toMatchObject({ state: 'none', from: 2 });
  });

  it('gives each of those that join one after another that time, and refuses once one stays silent', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await switched(fleet);
    await fleet.run(one.db.stop());
    const joins = (nodeId?: number): Promise<void> =>
      fleet.replaceBlock0(({ nodes }) => ({
        nodes: [...nodes.filter((other) => other < 50), ...(nodeId === undefined ? [] : [nodeId])],
      }));
    await joins(49);
    const early = await fleet.failure(two.db.finishMigration('users'));
    expect(early.message).toMatch(/Node 49 has not reported yet/);
    await fleet.replaceBlock0(({ nodes }) => ({ nodes: nodes.filter((nodeId) => nodeId !== 49) }));
    let isOver = false;
    await joins(50);
    const finishing = two.db.finishMigration('users').finally(() => (isOver = true));
    finishing.catch(() => undefined);
    for (let nodeId = 51; nodeId < 58; nodeId++) {
      await fleet.advance(1500);
      expect(isOver).toBe(false);
      await joins(nodeId);
    }
    await joins();
    await fleet.run(finishing);
    expect(await fleet.status(two)).toMatchObject({ state: 'none', from: 2 });
  });

  it('takes as long as it takes to bring many changed rows in line', async () => {
    const fleet = new Fleet();
    const one = await open(fleet, lazy);
    const two = await switched(fleet);
    const batch = one.db.batch();
    for (let id = 0; id < 4000; id++) void batch.upsert('users', { ...row, id });
    // They are written just before the end of the version is recorded.
    two.driver.onPut(
      /block0$/,
      after(() => batch.flush()),
    );
    two.driver.onPut(
      /block0$/,
      after(() => sleep(two.environment, 25_000)),
      Number.POSITIVE_INFINITY,
    );
    const startedMs = fleet.clock.now();
    await fleet.run(two.db.finishMigration('users', { force: true }));
    expect(fleet.clock.now() - startedMs).toBeGreaterThan(100_000);
    expect(await fleet.status(two)).toMatchObject({ state: 'none', from: 2, rowsTotal: 4000 });
  });

  it('by force does not wait for ever for an instance that goes on writing the old version', async () => {
    const fleet = new Fleet();
    const one = await open(fleet, { polling: 'onDemand' });
    const two = await switched(fleet);
    let written = 0;
    const write = async (): Promise<void> => {
      for (;;) {
        const batch = one.db.batch();
        void batch.upsert('users', { ...row, id: ++written });
        await batch.flush();
        await sleep(one.environment, 30);
      }
    };
    const writing = caught(write());
    await fleet.run(two.db.finishMigration('users', { force: true }));
    expect(await fleet.run(writing)).toMatchObject({ code: 'INVALID_SCHEMA' });
    expect(await fleet.rows(two)).toHaveLength(written - 1);
  });

  it('says that the request is recorded and goes on, where nothing moves for a minute', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await switched(fleet);
    await fleet.run(one.db.stop());
    two.driver.onPut(/committed/, refused, Number.POSITIVE_INFINITY);
    const error = await fleet.failure(two.db.finishMigration('users'));
    expect(error).toMatchObject({ code: 'MIGRATION_ACTIVE', table: 'users' });
    expect(error.message).toMatch(
      /^The end of version 1 of table 'users' is recorded, and nothing .* for 60 s.*in the background/,
    );
    two.driver.heal();
    await fleet.until(two, 'none');
  });

  it('ends when the database is stopped, which leaves no request behind', async () => {
    const fleet = new Fleet();
    const one = await open(fleet, lazy);
    const two = await switched(fleet);
    const table = 'users';
    // The end of the version is recorded, and cannot be committed.
    two.driver.onPut(/committed/, refused, Number.POSITIVE_INFINITY);
    const calls = [caught(two.db.finishMigration(table, { force: true }))];
    await fleet.advance(2000);
    expect((await fleet.block0()).migrations[0]).toMatchObject({ target: { retire: 'asked' } });
    // Others replace Block 0 before each attempt of these.
    two.driver.onPut(/block0$/, after(one.db.checkpoint.bind(one.db)), Number.POSITIVE_INFINITY);
    calls.push(caught(two.db.cancelMigration(table)), caught(two.db.setTargetSchemaVersion(table, 2)));
    await fleet.run(two.db.stop());
    two.driver.takeLines();
    for (const error of await fleet.run(Promise.all(calls))) expect(error).toMatchObject({ code: 'NOT_STARTED' });
    await fleet.advance(120_000);
    expect(two.driver.takeLines()).toEqual([]);
  });

  it('by force refuses the remaining instances, before anything is written, and says what to deploy', async () => {
    const fleet = new Fleet();
    const one = await open(fleet, { polling: 'onDemand' });
    const two = await switched(fleet);
    await fleet.write(one, 'update', [{ id: 1, age: 8 }]);
    await fleet.run(two.db.finishMigration('users', { force: true }));
    expect(await fleet.row(two, 1)).toMatchObject({ age: 8 });
    one.driver.takeLines();
    const error = await fleet.failure(fleet.write(one, 'update', [{ id: 1, age: 9 }]));
    expect(error).toMatchObject({ code: 'INVALID_SCHEMA', table: 'users' });
    expect(error.message).toMatch(/version 1 is retired.*registers version 2 of the table/);
    expect(one.driver.takeLines().filter((line) => !line.startsWith('get'))).toEqual([]);
    expect(await fleet.row(two, 1)).toMatchObject({ age: 8 });
  });

  it('waits for rows that an instance without a clock in common has changed', async () => {
    const fleet = new Fleet();
    const one = await open(fleet, lazy);
    const two = await switched(fleet);
    await fleet.write(one, 'upsert', [{ ...row, id: 2 }]);
    await fleet.run(two.db.finishMigration('users', { force: true }));
    expect(await fleet.rows(two)).toMatchObject([{ id: 1 }, { id: 2 }]);
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('refuses impossible requests', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await fleet.open(2, [users1, users2]);
    await fleet.write(one, 'upsert', [
      { ...row, id: 2 },
      { ...row, id: 3 },
      { ...row, id: 4 },
    ]);
    await fleet.run(one.db.checkpoint());
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 1 }));
    const finish = (options: object, table: unknown = 'users'): Promise<Error> =>
      fleet.failure(two.db.finishMigration(table as string, options));
    expect((await finish({})).message).toMatch(/in state 'building', and can be finished once it is 'switched'/);
    expect(await finish({ force: 'yes' })).toMatchObject({ code: 'INVALID_OPTION', option: 'force' });
    const unknown = { code: 'SCHEMA_NOT_FOUND', table: 'user' };
    expect(await finish({}, 'user')).toMatchObject(unknown);
    expect(await fleet.failure(two.db.cancelMigration('user'))).toMatchObject(unknown);
    expect(await fleet.failure(two.db.migrationStatus('user'))).toMatchObject(unknown);
    expect(await finish({}, 7)).toMatchObject({ code: 'INVALID_OPTION', option: 'tableName' });
    await fleet.until(two, 'switched');
    expect(await fleet.failure(one.db.finishMigration('users'))).toMatchObject({ code: 'INVALID_SCHEMA' });
    const replica = await fleet.open(3, [users2], { role: 'replica' });
    expect(await fleet.failure(replica.db.finishMigration('users'))).toMatchObject({ code: 'READ_ONLY' });
  });

  it('goes on after the asking instance has died, and is not cancelled by another target', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await switched(fleet);
    const three = await fleet.open(3, [users1, users2]);
    await fleet.advance(5000);
    await fleet.run(one.db.stop());
    void two.db.finishMigration('users').catch(() => undefined);
    await fleet.advance(500);
    two.environment.freeze();
    await fleet.run(three.db.setTargetSchemaVersion('users', 2));
    await fleet.until(three, 'none');
    expect(await fleet.status(three)).toMatchObject({ from: 2 });
  });
});

describe('start() with a version that is retired', () => {
  it('rejects, and opens the other tables where it is allowed to', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await switched(fleet);
    await fleet.run(one.db.stop());
    await fleet.run(two.db.finishMigration('users'));
    const error = await fleet.failure(fleet.open(1, [users1, notes]));
    expect(error).toMatchObject({ code: 'INVALID_SCHEMA', table: 'users' });
    expect(error.message).toMatch(/^Version 1 of table 'users' is retired.*registers version 2 of the table/);
    const late = await fleet.open(1, [users1, notes], { retiredVersions: 'allow' });
    const batch = late.db.batch();
    void batch.insert('notes', { id: 1 });
    await fleet.run(batch.flush());
    expect(await fleet.run(late.db.query('notes').count())).toBe(1);
    expect(await fleet.failure(late.db.query('users').execute())).toMatchObject({ code: 'INVALID_SCHEMA' });
    // One that knows the newer version too is not late.
    await fleet.open(3, [users1, users2]);
    const wrong = await fleet.failure(fleet.open(4, [users1], { retiredVersions: 'perhaps' as 'allow' }));
    expect(wrong).toMatchObject({ code: 'INVALID_OPTION', option: 'retiredVersions' });
  });

  it('rejects once the end of its version was asked for, and leaves no word of itself', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await switched(fleet);
    await fleet.run(one.db.stop());
    // Nobody carries it out.
    two.environment.freeze();
    await fleet.replaceBlock0(({ migrations }) => ({
      migrations: migrations.map((each) => ({ ...each, target: { rowsPerSecond: 1, keepOld: true, retire: 'asked' } })),
    }));
    const error = await fleet.failure(fleet.open(1, [users1]));
    expect(error).toMatchObject({ code: 'INVALID_SCHEMA', table: 'users' });
    expect(error.message).toMatch(/^The end of version 1 of table 'users' was asked for/);
    expect((await fleet.block0()).migrations[0]?.users.filter(({ version }) => version === 1)).toEqual([]);
    const late = await fleet.open(3, [users1], { retiredVersions: 'allow' });
    await fleet.run(late.db.stop());
  });

  it('rejects before the version is given up, where that is done by itself', async () => {
    const fleet = new Fleet();
    const one = await open(fleet);
    const two = await switched(fleet, false);
    await fleet.run(one.db.stop());
    let isAsked = false;
    await fleet.advance(290_000);
    for (let i = 0; i < 60_000 && !isAsked; i++) {
      await fleet.advance(1);
      isAsked = (await fleet.block0()).migrations[0]?.target?.retire === 'asked';
    }
    expect(isAsked).toBe(true);
    two.environment.freeze();
    expect(await fleet.failure(fleet.open(1, [users1]))).toMatchObject({ code: 'INVALID_SCHEMA' });
  });

  it('rejects also once it is given up, and not yet gone', async () => {
    const fleet = new Fleet();
    const one = await open(fleet, lazy);
    const two = await fleet.open(2, [users2], lazy);
    await fleet.run(two.db.checkpoint());
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    await fleet.run(one.db.stop());
    void two.db.finishMigration('users');
    await fleet.advance(1100);
    expect(await fleet.failure(fleet.open(1, [users1]))).toMatchObject({ code: 'INVALID_SCHEMA' });
  });
});
