/** Versions of a table with a primary key of several fields, indexes that are added to it, and its maintenance. */
import { describe, expect, it } from 'vitest';
import { InvalidSchemaError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { BlockCache } from '../../../src/cache/block-cache.ts';
import { storedDefinitions } from '../../../src/catalog/registry.ts';
import type { IndexDefinition } from '../../../src/schema/index-definitions.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { View, ViewContext } from '../../../src/view/view.ts';
import { BlockReader } from '../../../src/tree/block-source.ts';
import { prefix } from '../gc/cluster.ts';
import { Fleet } from '../migrations/fleet.ts';
import type { Member } from '../migrations/fleet.ts';
import { Nodes } from '../protocol/nodes.ts';

const plain = {
  name: 'users',
  version: 1,
  fields: {
    tenant: { typeId: Types.uint16 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
    mail: { typeId: Types.varchar },
  },
  primaryKey: ['tenant', 'name'],
} as const satisfies SchemaDefinition;

const rows = Array.from({ length: 300 }, (_, i) => ({
  tenant: i % 7,
  name: `name ${String(i).padStart(3, '0')}`,
  age: i % 90,
  mail: i % 3 === 0 ? null : `mail ${i}`,
}));
const byKey = rows.toSorted((a, b) => a.tenant - b.tenant || (a.name < b.name ? -1 : 1));

async function filled(fleet: Fleet): Promise<Member> {
  const member = await fleet.open(1, [plain]);
  await fleet.write(member, 'insert', rows);
  await fleet.run(member.db.checkpoint());
  return member;
}

describe('another version', () => {
  it('is made of the rows under the same keys, while nodes with either write', async () => {
    const next = {
      ...plain,
      version: 2,
      fields: { ...plain.fields, age: { typeId: Types.uint32 }, note: { typeId: Types.varchar, default: 'none' } },
      indexes: ['note', { fields: ['age'] }],
    } as const satisfies SchemaDefinition;
    const fleet = new Fleet();
    const old = await filled(fleet);
    const young = await fleet.open(2, [next]);
    await fleet.run(young.db.setTargetSchemaVersion('users', 2));
    const expected = new Map(byKey.map((row) => [`${row.tenant} ${row.name}`, { ...row, note: 'none' }]));
    const change = (tenant: number, name: string, fields: object): void => {
      const row = expected.get(`${tenant} ${name}`);
      expected.set(`${tenant} ${name}`, { tenant, name, age: 0, mail: null, note: 'none', ...row, ...fields });
    };
    for (let i = 0; i < 6; i++) {
      const added = { tenant: i, name: `old ${i}`, age: 1, mail: null };
      await fleet.write(old, 'insert', [added]);
      change(i, `old ${i}`, added);
      const changed = byKey[i * 40] as (typeof byKey)[number];
      await fleet.write(old, 'update', [{ tenant: changed.tenant, name: changed.name, age: 99 }]);
      change(changed.tenant, changed.name, { age: 99 });
      await fleet.write(young, 'upsert', [{ tenant: 9, name: `young ${i}`, age: 100_000 + i, mail: 'x', note: 'new' }]);
      change(9, `young ${i}`, { age: 100_000 + i, mail: 'x', note: 'new' });
      await fleet.deleteRows(i % 2 === 0 ? old : young, [[byKey[i * 40 + 1]?.tenant, byKey[i * 40 + 1]?.name]]);
      expected.delete(`${byKey[i * 40 + 1]?.tenant} ${byKey[i * 40 + 1]?.name}`);
      await fleet.advance(2000);
    }
    const all = [...expected.values()].toSorted((a, b) => a.tenant - b.tenant || (a.name < b.name ? -1 : 1));
    await fleet.until(young, 'switched');
    expect(await fleet.rows(young)).toEqual(all);
    expect((await fleet.rows(old)).map(({ tenant, name }) => [tenant, name])).toEqual(
      all.map(({ tenant, name }) => [tenant, name]),
    );
    expect(await fleet.findings(young)).toEqual([]);
    await fleet.run(old.db.stop());
    await fleet.untilRetired(young);
    expect(await fleet.rows(young)).toEqual(all);
    expect(await fleet.row(young, [9, 'young 3'])).toMatchObject({ age: 100_003 });
    expect(await fleet.run(young.db.query('users').where('note', '=', 'new').count())).toBe(6);
    expect(await fleet.findings(young)).toEqual([]);
  });

  it('may have other types of key, and other names for its fields', async () => {
    const next = {
      name: 'users',
      version: 2,
      fields: {
        customer: { typeId: Types.varchar },
        name: { typeId: Types.varchar },
        age: { typeId: Types.uint8 },
        mail: { typeId: Types.varchar },
      },
      primaryKey: ['customer', 'name'],
      renames: { customer: 'tenant' },
    } as const satisfies SchemaDefinition;
    const fleet = new Fleet();
    const old = await filled(fleet);
    const young = await fleet.open(2, [next]);
    await fleet.run(young.db.setTargetSchemaVersion('users', 2));
    await fleet.write(old, 'insert', [{ tenant: 10, name: 'x', age: 1 }]);
    await fleet.until(young, 'switched');
    await fleet.write(young, 'insert', [{ customer: '11', name: 'y', age: 2 }]);
    await fleet.write(old, 'update', [{ tenant: 11, name: 'y', age: 3 }]);
    const found = await fleet.rows(young);
    expect(found).toHaveLength(302);
    // Text has another order than numbers.
    expect([...new Set(found.map(({ customer }) => customer))]).toEqual([
      '0',
      '1',
      '10',
      '11',
      '2',
      '3',
      '4',
      '5',
      '6',
    ]);
    expect(await fleet.row(young, ['11', 'y'])).toEqual({ customer: '11', name: 'y', age: 3, mail: null });
    expect(await fleet.row(old, [11, 'y'])).toMatchObject({ age: 3 });
    const batch = young.db.batch();
    void batch.insert('users', { customer: 'no number', name: 'z' });
    expect((await fleet.failure(batch.flush())).message).toContain(
      "Version 1 of table 'users' is still in force, and cannot hold this primary key",
    );
    expect(await fleet.findings(young)).toEqual([]);
    await fleet.run(old.db.stop());
    await fleet.untilRetired(young);
    expect(await fleet.rows(young)).toHaveLength(302);
    expect(await fleet.findings(young)).toEqual([]);
  });

  it('of other fields for a key is refused, with the way around', async () => {
    const fleet = new Fleet();
    await filled(fleet);
    const versions: readonly (readonly [string, object])[] = [
      ['name', { primaryKey: 'name' }],
      ["'name', 'tenant'", { primaryKey: ['name', 'tenant'] }],
      ["'tenant', 'name', 'age'", { primaryKey: ['tenant', 'name', 'age'] }],
      ["'tenant', 'mail'", { primaryKey: ['tenant', 'mail'] }],
    ];
    for (const [made, change] of versions) {
      const version: SchemaDefinition = { ...plain, version: 2, ...change };
      const other = await fleet.open(2, []);
      const refuse = (): void => other.db.registerSchema(version);
      expect(refuse).toThrow(InvalidSchemaError);
      expect(refuse).toThrow(made);
      expect(refuse).toThrow(/another name with the new key, read the rows with `for await/);
      await fleet.run(other.db.stop());
    }
    const single = { ...plain, name: 'singles', primaryKey: 'name' } as const;
    const first = await fleet.open(3, [single]);
    const batch = first.db.batch();
    void batch.insert('singles', { tenant: 1, name: 'x' });
    await fleet.run(batch.flush());
    await fleet.run(first.db.checkpoint());
    const second = await fleet.open(4, []);
    expect(() => second.db.registerSchema({ ...single, version: 2, primaryKey: ['tenant', 'name'] })).toThrow(
      "The primary key of version 2 is made of 'tenant', 'name', and that of version 1 of 'name'",
    );
    expect(() => second.db.registerSchema({ ...single, primaryKey: ['tenant', 'name'] })).toThrow(InvalidSchemaError);
    // As an array of one it is the same.
    second.db.registerSchema({ ...single, primaryKey: ['name'] });
  });

  it('does not give a key a value that `migrate` makes', async () => {
    const next = {
      ...plain,
      version: 2,
      migrate: (row: Record<string, unknown>) => ({ ...row, tenant: 5 }),
    };
    const fleet = new Fleet();
    await filled(fleet);
    const young = await fleet.open(2, [next]);
    await fleet.run(young.db.setTargetSchemaVersion('users', 2));
    const status = await fleet.until(young, 'blocked');
    expect(status.blockers.join('\n')).toContain("gave 'tenant' of the primary key 5; it must stay as it is");
  });
});

describe('indexes over such a table', () => {
  const by: readonly (string | IndexDefinition)[] = [
    'age',
    { fields: ['mail'], unique: true },
    { fields: ['age'], where: { mail: null }, name: 'without mail' },
  ];

  it('are added while rows change', async () => {
    const fleet = new Fleet();
    const member = await filled(fleet);
    member.db.registerSchema({ ...plain, indexes: by });
    await fleet.write(member, 'update', [{ tenant: 0, name: 'name 000', mail: 'late' }]);
    await fleet.advance(20_000);
    const states = (await fleet.run(member.db.indexes('users'))).map(({ name, state }) => [name, state]);
    expect(states).toEqual([
      ['age', 'ready'],
      ['without mail', 'ready'],
      ['mail', 'ready'],
    ]);
    const young = member.db.query('users').where('age', '=', 5);
    expect((await fleet.run(young.explain())).index).toBe('age');
    expect(await fleet.run(young.execute())).toEqual(byKey.filter(({ age }) => age === 5));
    expect(await fleet.run(young.where('mail', '=', null).count())).toBe(0);
    const batch = member.db.batch();
    void batch.insert('users', { tenant: 1, name: 'again', mail: 'late' });
    expect((await fleet.failure(batch.flush())).message).toContain("[1, 'again'] and [0, 'name 000'] would both have");
    expect(await fleet.findings(member)).toEqual([]);
  });

  it('on some rows are of use where tuples are all inside', async () => {
    const fleet = new Fleet();
    const where = { tenant: [1, 2] };
    const member = await fleet.open(1, [{ ...plain, indexes: [{ fields: ['age'], where, name: 'of two' }] }]);
    await fleet.write(member, 'insert', rows);
    await fleet.run(member.db.checkpoint());
    const indexesOf = async (tenants: readonly number[]): Promise<unknown[]> => {
      const tuples = tenants.map((tenant) => [tenant, 'name 001']);
      const query = member.db
        .query('users')
        .where(['tenant', 'name'], 'IN', tuples as never)
        .where('age', '=', 1);
      expect(await fleet.run(query.count())).toBe(1);
      const { index, alternatives } = await fleet.run(query.explain());
      return [index, ...alternatives.map((alternative) => alternative.index)];
    };
    expect(await indexesOf([1, 2])).toContain('of two');
    expect(await indexesOf([1, 3])).not.toContain('of two');
  });

  it('on functions, and a unique one that cannot be, name the rows', async () => {
    const fleet = new Fleet();
    const member = await filled(fleet);
    member.db.registerFunction('decade', (row) => Math.floor((row['age'] as number) / 10), 1);
    member.db.registerSchema({
      ...plain,
      indexes: [
        { function: 'decade', typeId: Types.uint8 },
        { fields: ['age'], unique: true },
      ],
    });
    await fleet.advance(20_000);
    const query = member.db.query('users').where('decade', '=', 3);
    expect((await fleet.run(query.explain())).index).toBe('decade');
    expect(await fleet.run(query.execute())).toEqual(byKey.filter(({ age }) => Math.floor(age / 10) === 3));
    const status = (await fleet.run(member.db.indexes('users'))).find(({ unique }) => unique);
    expect(status?.problem).toMatch(/\[\d, 'name \d+'\] and \[\d, 'name \d+'\]/);
    expect(await fleet.findings(member)).toEqual([]);
  });
});

describe('maintenance', () => {
  async function opened(): Promise<{ readonly nodes: Nodes; readonly open: (id: number) => Promise<Member['db']> }> {
    const nodes = new Nodes();
    const open = async (id: number): Promise<Member['db']> => {
      const { db } = nodes.make(id, { blockSizeBytes: 512 });
      db.registerSchema({ ...plain, indexes: ['age'] });
      await nodes.run(db.start());
      return db;
    };
    const db = await open(1);
    const batch = db.batch();
    for (const row of rows) void batch.insert('users', row);
    await nodes.run(batch.flush());
    await nodes.run(db.checkpoint());
    return { nodes, open };
  }

  it('stores a database that older releases refuse, and reads its definition back', async () => {
    const { nodes, open } = await opened();
    const block0 = await nodes.block0();
    expect(block0.format).toBe(8);
    const reader = new BlockReader(nodes.store, prefix, new BlockCache(1e6));
    const [definition] = storedDefinitions(View.ofBlock0(new ViewContext(reader), block0));
    expect(definition).toEqual({ ...plain, indexes: ['age'] });
    const tool = await open(3);
    expect(await nodes.run(tool.query('users').where(['tenant', 'name'], '=', [3, 'name 003']).count())).toBe(1);
  });

  it('finds a damaged index and repairs it, and keeps states', async () => {
    const { nodes, open } = await opened();
    const db = await open(2);
    const snapshot = await nodes.run(db.snapshot());
    const batch = db.batch();
    void batch.deleteWhere(db.query('users').where('tenant', '>', 0));
    await nodes.run(batch.flush());
    await nodes.run(db.checkpoint());
    expect(await nodes.run(snapshot.query('users').where('tenant', '=', 3).count())).toBe(43);
    expect((await nodes.run(db.verify({ deep: true }))).findings).toEqual([]);
    await nodes.run(snapshot.release());
    await nodes.run(db.gc());
    await nodes.replaceBlock0(({ tables, generation }) => ({
      generation: generation + 1,
      tables: tables.map((table) =>
        table.name === 'users'
          ? {
              ...table,
              versions: table.versions.map((version) => ({
                ...version,
                indexes: version.indexes.map((index) => ({ ...index, root: null })),
              })),
            }
          : table,
      ),
    }));
    const other = await open(4);
    expect((await nodes.run(other.verify())).findings).not.toEqual([]);
    await nodes.run(other.repair());
    expect((await nodes.run(other.verify({ deep: true }))).findings).toEqual([]);
    expect(await nodes.run(other.query('users').where('age', '=', 7).select('name').execute())).toEqual([
      { name: 'name 007' },
    ]);
  });

  it('reports changes by their keys', async () => {
    const { nodes, open } = await opened();
    const db = await open(2);
    const next = db.changes()[Symbol.asyncIterator]().next();
    const batch = db.batch();
    void batch.delete('users', [3, 'name 003']);
    void batch.upsert('users', { tenant: 3, name: 'new', age: 1 });
    await nodes.run(batch.flush());
    const { value } = await nodes.run(next);
    const told: unknown[] = [];
    await nodes.run(
      (async () => {
        for await (const { operation, key } of value ?? []) told.push([operation, key]);
      })(),
    );
    expect(told).toEqual([
      ['delete', [3, 'name 003']],
      ['upsert', [3, 'new']],
    ]);
    await nodes.run(db.stop());
  });
});
