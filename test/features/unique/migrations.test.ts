/** A new version with a unique index: rows that are not unique, and nodes that do not know of it. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { Fleet } from '../migrations/fleet.ts';
import type { Member } from '../migrations/fleet.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';

const columns = { id: { typeId: Types.uint32 }, email: { typeId: Types.varchar }, note: { typeId: Types.varchar } };
function users(
  version: number,
  fields: SchemaDefinition['fields'],
  indexes: SchemaDefinition['indexes'],
): SchemaDefinition {
  return { name: 'users', version, fields, primaryKey: 'id', ...(indexes && { indexes }) };
}

const old = users(1, columns, ['note']);
const next = users(2, columns, [{ fields: ['email'], unique: true }]);

let fleet: Fleet;

beforeEach(() => {
  fleet = new Fleet();
});

interface User {
  readonly [field: string]: unknown;
  readonly id: number;
  readonly email: string;
}

function people(count: number): User[] {
  return Array.from({ length: count }, (_, id) => ({ id, email: `user ${id}`, note: null }));
}

async function begin(rows: readonly User[]): Promise<[Member, Member]> {
  const one = await fleet.open(1, [old]);
  await fleet.write(one, 'insert', rows);
  await fleet.run(one.db.checkpoint());
  const two = await fleet.open(2, [next]);
  await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 500 }));
  return [one, two];
}

async function refusal(writing: Promise<void>): Promise<unknown> {
  return writing.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('a version with a unique index', () => {
  it('comes up over rows that are unique, and is kept from then on', async () => {
    const [one, two] = await begin(people(80));
    await fleet.until(two, 'switched');
    expect(await refusal(fleet.write(two, 'insert', [{ id: 90, email: 'user 7' }]))).toMatchObject({
      code: 'UNIQUE_INDEX',
      index: 'email',
      primaryKey: 90,
      otherKey: 7,
    });
    // What the old version writes counts, merged or not.
    await fleet.write(one, 'update', [{ id: 7, email: 'changed' }]);
    await fleet.write(two, 'insert', [{ id: 90, email: 'user 7' }]);
    expect(await refusal(fleet.write(two, 'insert', [{ id: 91, email: 'changed' }]))).toMatchObject({ otherKey: 7 });
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    expect(await refusal(fleet.write(two, 'upsert', [{ id: 91, email: 'user 7' }]))).toMatchObject({ otherKey: 90 });
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('is blocked by rows that are not, which it names, and goes on once they are', async () => {
    const rows = people(60).with(40, { id: 40, email: 'user 3', note: null });
    const [one, two] = await begin(rows);
    const { blockers } = await fleet.until(two, 'blocked');
    expect(blockers).toEqual(["Row 40: Unique index 'email' has 'user 3' for this row and for row 3."]);
    // The old version is in force, and can be used as before.
    await fleet.write(one, 'update', [{ id: 3, email: 'user 4' }]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 500 }));
    expect((await fleet.until(two, 'blocked')).blockers).toEqual([
      "Row 4: Unique index 'email' has 'user 4' for this row and for row 3.",
    ]);
    await fleet.write(two, 'update', [{ id: 3, email: 'user 61' }]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 500 }));
    await fleet.until(two, 'switched');
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('does not retire the old one while nodes with that have left rows that are not unique', async () => {
    const [one, two] = await begin(people(40));
    await fleet.until(two, 'switched');
    await fleet.write(one, 'insert', [{ id: 50, email: 'user 5' }]);
    // Both are shown, by the version that wants no two such rows as well.
    await fleet.run(two.db.refresh());
    expect(await fleet.run(two.db.query('users').where('email', '=', 'user 5').count())).toBe(2);
    await fleet.run(one.db.stop());
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { keepOld: false }));
    await fleet.advance(330_000);
    const status = await fleet.status(two);
    expect(status).toMatchObject({ state: 'switched', from: 1 });
    expect(status.blockers).toEqual(["Row 50: Unique index 'email' has 'user 5' for this row and for row 5."]);
    // It is no state of no return: the old version can still be used.
    const again = await fleet.open(3, [old]);
    await fleet.write(again, 'update', [{ id: 50, note: 'still here' }]);
    await fleet.run(again.db.stop());
    await fleet.write(two, 'update', [{ id: 50, email: 'user 50' }]);
    await fleet.untilRetired(two);
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('names such rows before the end of the old one is recorded', async () => {
    const [one, two] = await begin(people(40));
    await fleet.until(two, 'switched');
    await fleet.write(one, 'insert', [{ id: 50, email: 'user 5' }]);
    await fleet.run(one.db.stop());
    const error = await fleet.failure(two.db.finishMigration('users'));
    expect(error).toMatchObject({ code: 'MIGRATION_ACTIVE' });
    expect(error.message).toContain(
      "Row 50: Unique index 'email' has 'user 5' for this row and for row 5. Nothing was",
    );
    const again = await fleet.open(3, [old]);
    await fleet.deleteRows(again, [50]);
    await fleet.run(again.db.stop());
    await fleet.untilRetired(two);
    expect(await fleet.findings(two)).toEqual([]);
  });

  it('lets nodes with the older one keep to the unique indexes of that, and its own to both', async () => {
    const unique = users(1, columns, [{ fields: ['note'], unique: true }]);
    const one = await fleet.open(1, [unique]);
    await fleet.write(one, 'insert', [{ id: 1, email: 'a', note: 'x' }]);
    const two = await fleet.open(2, [next]);
    // The older version is in force, whoever writes.
    expect(await refusal(fleet.write(two, 'insert', [{ id: 2, email: 'b', note: 'x' }]))).toMatchObject({
      index: 'note',
      otherKey: 1,
    });
    await fleet.write(two, 'insert', [{ id: 2, email: 'b', note: 'y' }]);
    expect(await refusal(fleet.write(one, 'insert', [{ id: 3, note: 'y' }]))).toMatchObject({ otherKey: 2 });
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    expect(await refusal(fleet.write(two, 'insert', [{ id: 3, email: 'c', note: 'y' }]))).toMatchObject({
      otherKey: 2,
    });
    expect(await refusal(fleet.write(two, 'insert', [{ id: 3, email: 'b', note: 'z' }]))).toMatchObject({
      otherKey: 2,
    });
    await fleet.run(one.db.stop());
    await fleet.untilRetired(two);
    await fleet.write(two, 'insert', [{ id: 3, email: 'c', note: 'y' }]);
    expect(await fleet.findings(two)).toEqual([]);
  });
});
