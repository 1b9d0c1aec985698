/** Instances that would make different rows of one: those that differ from who brings a version up are refused, and null nothing. */
import { beforeEach, describe, expect, it } from 'vitest';
import { InvalidSchemaError, MigrationActiveError } from '../../../src/base/errors.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { isOtherCode } from '../../../src/catalog/migration-code.ts';
import { prefix } from '../gc/cluster.ts';
import { Fleet } from './fleet.ts';
import type { Member } from './fleet.ts';
import type { Row } from './versions.ts';

const id = { typeId: Types.uint32 };
const varchar = { typeId: Types.varchar };
const users1 = { name: 'users', version: 1, fields: { id, name: varchar, n: id }, primaryKey: 'id' } as const;
const plain2 = { name: 'users', version: 2, fields: { id, title: varchar, n: id }, primaryKey: 'id' } as const;
const coded2: SchemaDefinition = { ...plain2, migrate: (row) => ({ ...row, title: `${String(row['name'])}!` }) };
const withVersion = (migrateVersion: number | string): SchemaDefinition => ({ ...coded2, migrateVersion });

const other = /^Table 'users' is being migrated from version 1 to version 2 with .* it would make other rows\./;

let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
});

async function old(count: number): Promise<Member> {
  const one = await fleet.open(1, [users1], { blockSizeBytes: 4096 });
  const rows = Array.from({ length: count }, (_, i) => ({ id: i, name: `n${i}`, n: i }));
  await fleet.write(one, 'insert', rows);
  await fleet.run(one.db.checkpoint());
  return one;
}

async function refused(what: Promise<unknown>): Promise<void> {
  const error = await fleet.run(what).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InvalidSchemaError);
  expect((error as Error).message).toMatch(other);
}

async function expectRefused({ db }: Member): Promise<void> {
  const batch = db.batch();
  void batch.upsert('users', { id: 3, n: 1 });
  await refused(batch.flush());
  await refused(db.get('users', 1));
  await refused(db.query('users').execute());
  await refused(db.transaction((tx) => tx.get('users', 1)));
  await refused(db.setTargetSchemaVersion('users', 2));
}

function titled(rows: readonly Row[]): number {
  return rows.filter((row) => row['title'] === `n${String(row['id'])}!`).length;
}

describe('an instance without the migrate function of the others', () => {
  it('nulls no row of 5,000, whenever it came', async () => {
    const one = await old(5000);
    // It reads before anybody says how rows are made, and is told what it does not fill.
    const early = await fleet.open(3, [plain2]);
    expect(early.log.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /^Table users goes from version 1 to version 2 without a migrate function\. Field name \(varchar\) is/,
      ),
    ]);
    expect(await fleet.row(early, 1)).toEqual({ id: 1, title: null, n: 1 });
    const two = await fleet.open(2, [coded2], { blockSizeBytes: 4096 });
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 500 }));
    await fleet.advance(3000);
    const { state, rowsDone } = await fleet.status(two);
    expect([state, rowsDone > 0 && rowsDone < 5000]).toEqual(['building', true]);
    await fleet.run(early.db.refresh());
    await expectRefused(early);
    await expect(fleet.open(4, [plain2])).rejects.toThrow(other);
    await expect(fleet.open(4, [plain2])).rejects.toThrow(
      /Without the function, field 'title' is not filled from version 1\./,
    );
    const late = await fleet.open(4, []);
    expect(() => late.db.registerSchema(plain2)).toThrow(other);
    // Those who do the work die, and nobody takes it over.
    await fleet.run(two.db.stop());
    const done = (await fleet.status(early)).rowsDone;
    await fleet.advance(10_000);
    expect((await fleet.status(early)).rowsDone).toBe(done);
    const again = await fleet.open(5, [coded2], { blockSizeBytes: 4096 });
    await fleet.until(again, 'switched');
    await fleet.write(one, 'update', [{ id: 7, n: 70 }]);
    await fleet.run(early.db.refresh());
    await expectRefused(early);
    await refused(early.db.finishMigration('users', { force: true }));
    const rows = await fleet.rows(again);
    expect([rows.length, titled(rows), rows[7]?.['n']]).toEqual([5000, 5000, 70]);
    await fleet.run(one.db.stop());
    await fleet.run(early.db.stop());
    await fleet.untilRetired(again);
    // Now that there is nothing to make, any definition of the version will do.
    const after = await fleet.open(6, [plain2]);
    expect(titled(await fleet.rows(after))).toBe(5000);
    expect(await fleet.findings(after)).toEqual([]);
  });

  it('that began keeps those out that have one, until that is cancelled', async () => {
    const one = await old(20);
    const stray = await fleet.open(3, [plain2]);
    await fleet.write(stray, 'update', [{ id: 1, n: 5 }]);
    await expect(fleet.open(2, [coded2])).rejects.toThrow(other);
    await fleet.run(stray.db.cancelMigration('users'));
    await fleet.run(stray.db.stop());
    const two = await fleet.open(2, [coded2]);
    await fleet.write(two, 'update', [{ id: 2, n: 6 }]);
    const rows = await fleet.rows(two);
    expect([titled(rows), rows[1]?.['n'], rows[2]?.['n']]).toEqual([20, 5, 6]);
    expect((await fleet.rows(one))[1]).toEqual({ id: 1, name: 'n1', n: 5 });
  });

  it('is refused by the first commit of the others already', async () => {
    await old(20);
    const stray = await fleet.open(3, [plain2]);
    const two = await fleet.open(2, [coded2]);
    await fleet.write(two, 'insert', [{ id: 100, title: 'x' }]);
    const batch = stray.db.batch();
    void batch.update('users', { id: 1, n: 5 });
    // It has not seen that commit yet.
    await refused(batch.flush());
    await expectRefused(stray);
  });
});

describe('a migrateVersion', () => {
  it.each<[SchemaDefinition, SchemaDefinition, boolean]>([
    [withVersion(1), withVersion(1), true],
    [withVersion(1), withVersion('1'), true],
    [withVersion(1), withVersion(2), false],
    [withVersion('a'), coded2, false],
    [coded2, withVersion('a'), false],
    [coded2, coded2, true],
  ])('tells functions apart (%#)', async (mine, theirs, isSame) => {
    await old(5);
    const two = await fleet.open(2, [mine]);
    await fleet.write(two, 'update', [{ id: 1, n: 5 }]);
    const seen = await fleet.open(3, [theirs]).then(
      async (three) => titled(await fleet.rows(three)),
      (error: unknown) => other.test((error as Error).message),
    );
    expect(seen).toBe(isSame ? 5 : true);
  });

  it('belongs to a function, and is short', async () => {
    const one = await fleet.open(1, []);
    const register = (more: object) => () => one.db.registerSchema({ ...plain2, ...more });
    expect(register({ migrateVersion: 1 })).toThrow(/no `migrate` that it is the version of/);
    for (const migrateVersion of ['', 1.5, null, {}, 'x'.repeat(129)]) {
      expect(register({ ...coded2, migrateVersion })).toThrow(/must be an integer, or a string of 1 to 128/);
    }
  });

  it('is not compared with migrations begun by older releases', async () => {
    await old(5);
    const two = await fleet.open(2, [coded2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    await fleet.run(two.db.stop());
    const block0 = await fleet.block0();
    const stripped = JSON.stringify(block0.tables).replace('"code":true', '"from":"an older release"');
    const tables = JSON.parse(stripped) as typeof block0.tables;
    expect(JSON.stringify(block0.tables)).toContain('"code":true');
    await fleet.store.put(`${prefix}/block0`, encodeBlock0({ ...block0, tables }), { if: 'any' });
    const three = await fleet.open(3, [plain2]);
    expect(titled(await fleet.rows(three))).toBe(5);
    await fleet.write(three, 'update', [{ id: 1, n: 5 }]);
    const again = await fleet.open(4, [coded2]);
    expect((await fleet.rows(again))[1]).toEqual({ id: 1, title: 'n1!', n: 5 });
  });

  it('is not known of a schema without one', () => {
    const schema = { ...plain2, fields: [], primaryKey: ['id'], indexes: [] };
    expect([false, true, '1'].map((own) => isOtherCode(schema, 1, { codeOf: () => own }))).toEqual([
      false,
      false,
      false,
    ]);
  });
});

describe('a migrate function of the old version', () => {
  const back1: SchemaDefinition = {
    ...users1,
    migrate: (row) => ({ ...row, name: String(row['title']).replace(/!$/, '') }),
  };
  const back1b: SchemaDefinition = { ...back1, migrateVersion: 'b' };
  const otherBack = /^Table 'users': rows that are written in version 2 are brought into version 1 with /;

  it('has all that write the new version make the same old rows', async () => {
    const one = await old(20);
    // They read before anybody says how old rows are made.
    const stray = await fleet.open(3, [coded2]);
    const two = await fleet.open(2, [back1, coded2]);
    await fleet.write(two, 'insert', [{ id: 100, title: 'x!', n: 1 }]);
    const batch = stray.db.batch();
    void batch.insert('users', { id: 101, title: 'y!', n: 1 });
    const error = await fleet.run(batch.flush().catch((reason: unknown) => reason));
    expect(error).toBeInstanceOf(InvalidSchemaError);
    expect((error as Error).message).toMatch(otherBack);
    expect((error as Error).message).toMatch(
      /has registered no `migrate` with version 1: it would make other rows\. Without the function, field 'name' is not filled from version 2\./,
    );
    await expect(fleet.open(4, [back1b, coded2])).rejects.toThrow(otherBack);
    await expect(fleet.open(4, [coded2])).rejects.toThrow(otherBack);
    // Nothing was written; and the old version, and those that agree, go on.
    const again = await fleet.open(5, [back1, coded2]);
    await fleet.write(again, 'insert', [{ id: 102, title: 'z!', n: 1 }]);
    await fleet.run(one.db.refresh());
    const rows = await fleet.rows(one);
    expect(rows.slice(20)).toEqual([
      { id: 100, name: 'x', n: 1 },
      { id: 102, name: 'z', n: 1 },
    ]);
    await fleet.write(one, 'update', [{ id: 1, n: 9 }]);
  });

  it('may be registered after the new one, while the database runs', async () => {
    await old(5);
    const two = await fleet.open(2, [back1, coded2]);
    await fleet.write(two, 'update', [{ id: 1, n: 5 }]);
    const late = await fleet.open(3, []);
    late.db.registerSchema(coded2);
    const early = await fleet.run(late.db.get('users', 1).catch((reason: unknown) => reason));
    expect((early as Error).message).toMatch(otherBack);
    late.db.registerSchema(back1);
    expect(await fleet.row(late, 1)).toEqual({ id: 1, title: 'n1!', n: 5 });
  });

  it('is not compared once the old version is gone', async () => {
    const one = await old(5);
    const two = await fleet.open(2, [back1, coded2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    await expect(fleet.open(3, [coded2])).rejects.toThrow(/or finish the migration/);
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    const after = await fleet.open(3, [coded2]);
    expect(titled(await fleet.rows(after))).toBe(5);
  });
});

describe('an instance that knows neither version', () => {
  it('retires the old version if no row must be made, and leaves rows that are out of line to others', async () => {
    const one = await old(20);
    const two = await fleet.open(2, [coded2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    await fleet.run(two.db.stop());
    await fleet.write(one, 'update', [{ id: 7, n: 70 }]);
    await fleet.run(one.db.checkpoint());
    await fleet.run(one.db.stop());
    const tool = await fleet.open(9, []);
    // What it would register in the new version would need the function.
    expect((await fleet.run(tool.db.tables())).map(({ version }) => version)).toEqual([1]);
    const finishing = tool.db.finishMigration('users', { force: true }).catch((error: unknown) => error);
    const error = await fleet.run(finishing);
    expect(error).toBeInstanceOf(MigrationActiveError);
    expect((error as Error).message).toMatch(/has not registered version 2, and cannot make them/);
    const again = await fleet.open(5, [coded2]);
    await fleet.until(again, 'none');
    const rows = await fleet.rows(again);
    expect([titled(rows), rows[7]?.['n']]).toEqual([20, 70]);
  });

  it('does so by itself', async () => {
    const one = await old(20);
    const two = await fleet.open(2, [coded2]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    await fleet.run(two.db.stop());
    await fleet.run(one.db.stop());
    const tool = await fleet.open(9, []);
    await fleet.run(tool.db.finishMigration('users', { force: true }));
    const after = await fleet.open(3, [plain2]);
    expect(titled(await fleet.rows(after))).toBe(20);
  });
});
