/** New versions with an index on some rows, with another condition, and without it, while nodes with the old version write. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { IndexDefinition } from '../../../src/schema/index-definitions.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { Fleet } from '../migrations/fleet.ts';
import type { Member } from '../migrations/fleet.ts';

const fields = {
  id: { typeId: Types.uint32 },
  email: { typeId: Types.varchar },
  gone: { typeId: Types.boolean },
  kind: { typeId: Types.varchar },
} as const;

function users(
  version: number,
  indexes: readonly IndexDefinition[],
  more: Partial<SchemaDefinition> = {},
): SchemaDefinition {
  return { name: 'users', version, fields, primaryKey: 'id', indexes, ...more };
}

const on = (where: IndexDefinition['where'], unique = true): IndexDefinition => ({
  fields: ['email'],
  name: 'active',
  unique,
  ...(where && { where }),
});

const rows = Array.from({ length: 60 }, (_, id) => ({
  id,
  email: `user ${id % 20}`,
  gone: id < 40 ? true : null,
  kind: id % 3 === 0 ? 'a' : null,
}));

async function ids({ db }: Member, fleet: Fleet, email: string, ...more: [string, unknown][]): Promise<unknown[]> {
  await fleet.run(db.refresh());
  let query = db.query('users').where('email', '=', email);
  for (const [field, value] of more) query = query.where(field, '=', value);
  return (await fleet.run(query.execute())).map(({ id }) => id);
}

async function refusal(writing: Promise<void>): Promise<unknown> {
  return writing.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe('a version with an index on some rows', () => {
  it('comes up over rows that agree outside of it, changes its condition, and loses it', async () => {
    const fleet = new Fleet();
    const versions = [
      users(1, []),
      users(2, [on({ gone: null })]),
      users(3, [on({ gone: null, kind: ['a', 'b'] })]),
      users(4, [on({ kind: 'a' }, false)]),
      users(5, []),
    ];
    let one = await fleet.open(1, [versions[0] as SchemaDefinition]);
    await fleet.write(one, 'insert', rows);
    await fleet.run(one.db.checkpoint());
    for (const version of [2, 3, 4, 5]) {
      const two = await fleet.open(version, [versions[version - 1] as SchemaDefinition]);
      // Before a row is brought over, and while it is.
      expect(await ids(two, fleet, 'user 5', ['gone', null])).toEqual([45]);
      expect(await ids(two, fleet, 'user 6', ['kind', 'a'])).toEqual([6]);
      await fleet.run(two.db.setTargetSchemaVersion('users', version, { rowsPerSecond: 40 }));
      await fleet.advance(1000);
      await fleet.write(one, 'update', [
        { id: 45, gone: true },
        { id: 5, gone: null },
      ]);
      expect(await ids(two, fleet, 'user 5', ['gone', null])).toEqual([5]);
      await fleet.until(two, 'switched');
      await fleet.write(one, 'update', [
        { id: 45, gone: null },
        { id: 5, gone: true },
      ]);
      for (const member of [one, two]) {
        expect(await ids(member, fleet, 'user 5', ['gone', null])).toEqual([45]);
        expect(await ids(member, fleet, 'user 6', ['kind', 'a'])).toEqual([6]);
      }
      await fleet.run(one.db.stop());
      await fleet.untilRetired(two);
      expect(await fleet.findings(two)).toEqual([]);
      const tables = (await fleet.run(two.db.verify())).tables.find(({ name }) => name === 'users');
      const inside = [20, rows.filter(({ gone, kind }) => gone === null && kind === 'a').length, 20];
      expect(tables?.indexes).toEqual(version === 5 ? [] : [{ name: 'active', entries: inside[version - 2] }]);
      one = two;
    }
  }, 60_000);

  it('is blocked by rows inside that agree, and not by others', async () => {
    const fleet = new Fleet();
    const one = await fleet.open(1, [users(1, [])]);
    await fleet.write(one, 'insert', [...rows, { id: 70, email: 'user 3', gone: null, kind: null }]);
    await fleet.run(one.db.checkpoint());
    const two = await fleet.open(2, [users(2, [on({ gone: null })])]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    const { blockers } = await fleet.until(two, 'blocked');
    expect(blockers).toEqual(["Row 70: Unique index 'active' has 'user 3' for this row and for row 43."]);
    await fleet.write(one, 'update', [{ id: 43, gone: false }]);
    await fleet.run(two.db.setTargetSchemaVersion('users', 2));
    await fleet.until(two, 'switched');
    // The condition holds for false no more than for true.
    expect(await refusal(fleet.write(two, 'update', [{ id: 43, gone: null }]))).toMatchObject({ otherKey: 70 });
    await fleet.write(two, 'update', [{ id: 70, gone: true }]);
    await fleet.write(two, 'update', [{ id: 43, gone: null }]);
    expect(await fleet.findings(two)).toEqual([]);
  }, 60_000);

  it('is taken from the old version only where both are of the same rows, and rows hold the same', async () => {
    const fleet = new Fleet();
    const one = await fleet.open(1, [users(1, [on({ kind: 'a' }, false), { fields: ['kind'] }])]);
    await fleet.write(one, 'insert', rows);
    await fleet.run(one.db.checkpoint());
    const given = { ...fields, kind: { typeId: Types.varchar, required: true, default: 'a' } } as const;
    const two = await fleet.open(2, [users(2, [on({ kind: 'a' }, false), { fields: ['kind'] }], { fields: given })]);
    // Rows without a kind have one there, and the old entries know nothing of it.
    expect(await ids(two, fleet, 'user 5', ['kind', 'a'])).toEqual([5, 25, 45]);
    expect(await fleet.run(two.db.query('users').where('kind', '=', 'a').count())).toBe(60);
    expect(await fleet.run(two.db.query('users').where('kind', '=', null).count())).toBe(0);
    const same = await fleet.open(3, [users(2, [on({ kind: 'a' }, false), { fields: ['kind'] }], { fields: given })]);
    const plain = await fleet.run(same.db.query('users').where('kind', '=', 'a').explain());
    expect(plain.access).toBe('table');
  }, 60_000);

  it('serves both versions while the new one has none of its own', async () => {
    const fleet = new Fleet();
    const one = await fleet.open(1, [users(1, [on({ gone: null })])]);
    await fleet.write(one, 'insert', rows);
    await fleet.run(one.db.checkpoint());
    const more = { ...fields, note: { typeId: Types.varchar } } as const;
    const two = await fleet.open(2, [users(2, [on({ gone: null })], { fields: more })]);
    const query = two.db.query('users').where('gone', '=', null).where('email', '=', 'user 5');
    const { index, alternatives } = await fleet.run(query.explain());
    expect([index, ...alternatives.map((other) => other.index)]).toContain('active');
    const three = await fleet.open(3, [users(3, [on({ gone: true }, false)], { fields: more })]);
    const other = three.db.query('users').where('gone', '=', true).where('email', '=', 'user 5');
    const plan = await fleet.run(other.explain());
    expect([plan.index, ...plan.alternatives.map((each) => each.index)]).not.toContain('active');
    expect(await ids(three, fleet, 'user 5', ['gone', true])).toEqual([5, 25]);
  }, 60_000);
});
