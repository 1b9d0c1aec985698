/** The arguments that setTargetSchemaVersion() takes and refuses, and who does the work under which polling. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { after } from '../protocol/scripted-driver.ts';
import { Fleet, intervalMs } from './fleet.ts';
import type { Member } from './fleet.ts';
import { users1, users2 } from './versions.ts';

let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
});

const users3 = { ...users2, version: 3, indexes: ['level'] } as const satisfies SchemaDefinition;

/** An old instance with one row, and one that has these versions registered. */
async function start(...schemas: SchemaDefinition[]): Promise<{ one: Member; two: Member }> {
  const one = await fleet.open(1, [users1]);
  await fleet.write(one, 'insert', [{ id: 1, name: 'a', age: 1, old: 'o' }]);
  await fleet.run(one.db.checkpoint());
  return { one, two: await fleet.open(2, schemas) };
}

function set({ db }: Member, version: unknown, table: unknown = 'users', options: object = {}): Promise<void> {
  return db.setTargetSchemaVersion(table as string, version as number, options);
}

describe('a target', () => {
  it.each<[string, (member: Member) => Promise<void>, object]>([
    ['of a table that is not registered', (m) => set(m, 2, 'nobody'), { code: 'SCHEMA_NOT_FOUND' }],
    ["of the database's own tables", (m) => set(m, 2, '_blobs'), { code: 'BATCH_STATE' }],
    ['that is not registered', (m) => set(m, 3), { code: 'INVALID_SCHEMA' }],
    ['that is no version', (m) => set(m, '2'), { code: 'INVALID_OPTION', option: 'version' }],
    ['below every version', (m) => set(m, -1), { code: 'INVALID_OPTION', option: 'version' }],
    [
      'of a definition without a name',
      (m) => set(m, 2, { version: 2 }),
      { code: 'INVALID_OPTION', option: 'tableName' },
    ],
    ['of no table', (m) => set(m, 2, null), { code: 'INVALID_OPTION', option: 'tableName' }],
    [
      'at no rate',
      (m) => set(m, 2, 'users', { rowsPerSecond: 0 }),
      { code: 'INVALID_OPTION', option: 'rowsPerSecond' },
    ],
    [
      'with keepOld of another kind',
      (m) => set(m, 2, 'users', { keepOld: 1 }),
      { code: 'INVALID_OPTION', option: 'keepOld' },
    ],
    ['of no table to cancel', (m) => m.db.cancelMigration(5 as never), { code: 'INVALID_OPTION', option: 'tableName' }],
    ['of an unknown table to cancel', (m) => m.db.cancelMigration('nobody'), { code: 'SCHEMA_NOT_FOUND' }],
  ])('%s is refused', async (_, call, expected) => {
    const { two } = await start(users2);
    expect(await fleet.failure(call(two))).toMatchObject(expected);
    expect((await fleet.block0()).migrations).toEqual([]);
  });

  it('can be given as a definition, also in questions about it', async () => {
    const { two } = await start(users2);
    const { db } = two;
    await fleet.run(db.setTargetSchemaVersion(users2, 2, { keepOld: true }));
    expect(await fleet.run(db.migrationStatus(users2))).toEqual(await fleet.run(db.migrationStatus('users')));
    expect(await fleet.run(db.migrationStatus(users2))).toMatchObject({ to: 2 });
    await fleet.run(db.cancelMigration(users2));
    expect(await fleet.run(db.migrationStatus(users2))).toMatchObject({ to: null });
    await fleet.run(db.finishMigration(users2));
  });

  it('needs a started database', async () => {
    const { two } = await start(users2);
    await fleet.run(two.db.stop());
    const { db } = two;
    for (const call of [() => set(two, 2), () => db.cancelMigration('users'), () => db.migrationStatus('users')]) {
      expect(await fleet.failure(call())).toMatchObject({ code: 'NOT_STARTED' });
    }
  });

  it('that is in force is there already', async () => {
    const { one } = await start(users2);
    const before = await fleet.block0();
    await fleet.run(set(one, 1));
    expect(await fleet.block0()).toEqual(before);
  });

  it('is in Block 0 once it resolves, and asking for it again only changes its options', async () => {
    const { two } = await start(users2);
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 1, keepOld: true }));
    const [first] = (await fleet.block0()).migrations;
    expect(first).toMatchObject({ from: 1, to: 2, phase: 'building', target: { rowsPerSecond: 1, keepOld: true } });
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 7, keepOld: false }));
    const [second] = (await fleet.block0()).migrations;
    expect(first?.target).not.toHaveProperty('retire');
    expect(second).toMatchObject({ birth: first?.birth, target: { rowsPerSecond: 7, retire: 'unused' } });
  });

  it('keeps the recorded options that a later call leaves out, so that a tool can take part', async () => {
    const { two } = await start(users2);
    const three = await fleet.open(3, [users2]);
    const target = async (): Promise<unknown> => (await fleet.block0()).migrations[0]?.target;
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 3, keepOld: false }));
    await fleet.run(set(three, 2));
    expect(await target()).toEqual({ rowsPerSecond: 3, keepOld: true, retire: 'unused' });
    await fleet.run(set(three, 2, 'users', { rowsPerSecond: 5 }));
    expect(await target()).toEqual({ rowsPerSecond: 5, keepOld: true, retire: 'unused' });
    await fleet.run(set(three, 2, 'users', { keepOld: true }));
    await fleet.run(set(three, 2));
    expect(await target()).toEqual({ rowsPerSecond: 5, keepOld: true });
    // A new migration has the defaults.
    await fleet.run(three.db.cancelMigration('users'));
    await fleet.run(set(three, 2));
    expect(await target()).toEqual({ rowsPerSecond: 50_000, keepOld: true });
  });

  it('begins a migration that is distinguished from an earlier one, even if the clock stands still', async () => {
    const { two } = await start(users2);
    const births = new Set<number | undefined>();
    for (let i = 0; i < 3; i++) {
      const before = two.environment.now();
      await fleet.run(set(two, 2, 'users', { rowsPerSecond: 1, keepOld: true }));
      births.add((await fleet.block0()).migrations[0]?.birth);
      await fleet.run(two.db.cancelMigration('users'));
      expect(two.environment.now()).toBe(before);
    }
    expect(births.size).toBe(3);
  });

  it('on the way to another version is refused', async () => {
    const { two } = await start(users2, users3);
    await fleet.run(set(two, 3, 'users', { rowsPerSecond: 1 }));
    const error = await fleet.failure(set(two, 2));
    expect(error).toMatchObject({ code: 'MIGRATION_ACTIVE', table: 'users' });
    expect(error.message).toBe(
      "Table 'users' is being migrated to version 3: wait until that is done, or cancel it first.",
    );
  });

  it('never comes between a view and a commit on its way with rows of a third version', async () => {
    const { two } = await start(users1, users2);
    const three = await fleet.open(3, [users1, users3]);
    // The commit is made, and on its way to its slot, when the other version comes up.
    two.driver.onPut(
      /committed/,
      after(() => three.db.setTargetSchemaVersion('users', 3, { rowsPerSecond: 1 })),
    );
    const flush = fleet.write(two, 'upsert', [
      { id: 1, name: 'b', age: 300, email: 'only version 2 has this', level: 1 },
    ]);
    // Nothing is acknowledged for which there is no place.
    expect(await fleet.failure(flush)).toMatchObject({ code: 'INVALID_SCHEMA' });
    expect((await fleet.rows(three)).map(({ id, name }) => [id, name])).toEqual([[1, 'a']]);
    expect(await fleet.status(three)).toMatchObject({ from: 1, to: 3 });
    // Where the commit is first, the version does not come up.
    await fleet.run(three.db.cancelMigration('users'));
    three.driver.onPut(
      /committed/,
      after(async () => {
        const batch = two.db.batch();
        await batch.upsert('users', { id: 2, name: 'c', age: 300, email: 'e', level: 1 });
        await batch.flush();
      }),
    );
    expect(await fleet.failure(set(three, 3))).toMatchObject({ code: 'MIGRATION_ACTIVE' });
    expect(await fleet.row(two, 2)).toEqual({ id: 2, name: 'c', age: 300, email: 'e', level: 1 });
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('with keys or blobs that do not correspond is refused', async () => {
    const dates = { ...users2, fields: { ...users2.fields, id: { typeId: Types.timestamp } } };
    const blobs = { ...users3, fields: { ...users2.fields, photo: { typeId: Types.blob } } };
    const { two } = await start(dates, blobs);
    for (const version of [2, 3]) {
      expect(await fleet.failure(set(two, version))).toMatchObject({ code: 'INVALID_SCHEMA' });
    }
    expect((await fleet.block0()).migrations).toEqual([]);
  });

  it('of a definition other than the next version is refused', async () => {
    const { two } = await start(users2);
    const other = await fleet.open(3, [{ ...users2, indexes: [] }]);
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 1 }));
    expect(await fleet.failure(set(other, 2))).toMatchObject({ code: 'INVALID_SCHEMA' });
    expect(() => two.db.registerSchema({ ...users2, indexes: [] })).toThrow(/another definition/);
  });

  it('makes a table that has never been stored', async () => {
    const two = await fleet.open(2, [users1, users2]);
    await fleet.run(set(two, 2));
    expect(await fleet.status(two)).toMatchObject({ state: 'none', from: 2, rowsTotal: 0 });
    expect((await fleet.block0()).tables).toMatchObject([{ name: 'users', versions: [{ root: null }] }]);
    const one = await fleet.open(1, [users1], { retiredVersions: 'allow' });
    expect(await fleet.failure(fleet.write(one, 'insert', [{ id: 1 }]))).toMatchObject({ code: 'INVALID_SCHEMA' });
    await fleet.write(two, 'insert', [{ id: 1, name: 'x', age: 1000, email: null, level: 1 }]);
    expect(await fleet.rows(two)).toHaveLength(1);
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('of a table that others store first in the same moment is where those rows go', async () => {
    const lazy = { mergePolicy: { minCommits: 1000, maxWaitMs: 3_600_000 } };
    const one = await fleet.open(1, [users1], lazy);
    const two = await fleet.open(2, [users2], lazy);
    const both = [fleet.write(one, 'insert', [{ id: 1, name: 'a', age: 1, old: 'o' }]), fleet.run(set(two, 2))];
    const settled = await Promise.allSettled(both);
    expect(settled[1]).toMatchObject({ status: 'fulfilled' });
    await fleet.advance(10_000);
    const rows = await fleet.rows(two);
    expect(rows.length).toBe(settled[0]?.status === 'fulfilled' ? 1 : 0);
    expect(await fleet.findings(two)).toEqual([]);
  });
});

describe('the work', () => {
  it('is done by an instance with the code, also if another node asked', async () => {
    const { one, two } = await start(users2);
    const asking = await fleet.open(3, [users1, users2]);
    await fleet.run(set(asking, 2, 'users', { rowsPerSecond: 1 }));
    asking.environment.freeze();
    await fleet.until(one, 'switched');
    await fleet.advance(3000);
    const [migration] = (await fleet.block0()).migrations;
    expect(migration?.users.toSorted((a, b) => a.nodeId - b.nodeId)).toMatchObject([
      { nodeId: 1, version: 1 },
      { nodeId: 2, version: 2 },
    ]);
    expect(fleet.told(two)).toContain('Table users has switched from version 1 to version 2');
    // Who crashed is not counted out before others notice, and says nothing.
    expect((await fleet.status(one)).blockers).toContainEqual(
      expect.stringMatching(/^An instance of node 1 uses version 1 since /),
    );
  });

  it('begins at once at an instance with the code that asked, which still has to report its version', async () => {
    const { two } = await start(users2);
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 1 }));
    await fleet.advance(intervalMs / 20);
    expect(await fleet.status(two)).toMatchObject({ rowsDone: 1 });
  });

  it('waits while nobody has the code, and says so', async () => {
    const { one, two } = await start(users2);
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 1 }));
    two.environment.freeze();
    await fleet.write(one, 'insert', [
      { id: 5, name: 'b', age: 1, old: '' },
      { id: 6, name: 'c', age: 1, old: '' },
    ]);
    await fleet.advance(60_000);
    const status = await fleet.status(one);
    expect(status.state).toBe('building');
    expect(status.blockers).toEqual([
      'No registered node is known to have registered version 2, whose code is needed.',
    ]);
    const three = await fleet.open(3, [users2]);
    await fleet.until(three, 'switched');
    expect(await fleet.rows(three)).toHaveLength(3);
  });

  it.each(['interval', 'adaptive', 'onDemand'] as const)('comes to an end with polling %s', async (polling) => {
    const one = await fleet.open(1, [users1], { polling });
    const rows = Array.from({ length: 50 }, (_, id) => ({ id, name: `n${id}`, age: 1, old: 'o' }));
    await fleet.write(one, 'insert', rows);
    await fleet.run(one.db.stop());
    const two = await fleet.open(2, [users2], { polling });
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 10, keepOld: false }));
    await fleet.advance(360_000);
    // Nobody has used it meanwhile.
    expect((await fleet.block0()).migrations).toEqual([]);
    expect(await fleet.rows(two)).toHaveLength(50);
    expect(await fleet.findings(two)).toEqual([]);
    await fleet.run(two.db.stop());
    expect(two.environment.timerCount).toBe(0);
  });

  it('keeps to its rate', async () => {
    const one = await fleet.open(1, [users1]);
    const rows = Array.from({ length: 400 }, (_, id) => ({ id, name: `n${id}`, age: 1, old: 'o' }));
    await fleet.write(one, 'insert', rows);
    await fleet.run(one.db.checkpoint());
    const two = await fleet.open(2, [users2]);
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 20 }));
    await fleet.advance(10_000);
    const { rowsDone, rowsPerSecond } = await fleet.status(two);
    expect(rowsDone).toBeGreaterThan(140);
    expect(rowsDone).toBeLessThan(225);
    expect(rowsPerSecond).toBeGreaterThan(14);
    expect(rowsPerSecond).toBeLessThan(23);
  });

  it('costs a write of Block 0 and the blocks of a chunk, and nothing once it waits', async () => {
    const one = await fleet.open(1, [users1]);
    const rows = Array.from({ length: 200 }, (_, id) => ({ id, name: `n${id}`, age: 1, old: 'o' }));
    await fleet.write(one, 'insert', rows);
    await fleet.run(one.db.checkpoint());
    const two = await fleet.open(2, [users2]);
    await fleet.run(set(two, 2, 'users', { rowsPerSecond: 40, keepOld: true }));
    await fleet.until(two, 'switched');
    await fleet.advance(5000);
    two.driver.takeLines();
    const before = two.db.stats().requests;
    await fleet.advance(20 * intervalMs);
    const later = two.db.stats().requests;
    // Two a turn, to look for commits and at Block 0, as ever.
    expect(two.driver.takeLines().filter((line) => !/^get (committed|block0)/.test(line))).toEqual([]);
    expect(before).not.toEqual(later);
  });
});
