import { describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import { InvalidOptionError, ReadOnlyError, TableDroppedError, TableNotFoundError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { Nodes, people, prefix, quietIntervalMs } from '../protocol/nodes.ts';
import type { TestNode } from '../protocol/nodes.ts';
import { refused } from '../protocol/scripted-driver.ts';

/** Another table of the same name, with the same version. */
const others = {
  name: 'people',
  version: 1,
  fields: { code: { typeId: Types.varchar }, title: { typeId: Types.varchar } },
  primaryKey: 'code',
  indexes: ['title'],
} as const;

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;

async function twoNodes(): Promise<{ nodes: Nodes; a: TestNode; b: TestNode }> {
  const nodes = new Nodes();
  const [a, b] = [await nodes.start(1), await nodes.start(2)];
  for (const id of [1, 2, 3]) await nodes.run(nodes.insert(a, id));
  await nodes.run(b.db.refresh());
  return { nodes, a, b };
}

/** Rows that an instance shows. */
async function ids(nodes: Nodes, { db }: TestNode): Promise<unknown[]> {
  await nodes.run(db.refresh());
  return (await nodes.run(db.query(people).execute())).map(({ id }) => id);
}

async function tables(nodes: Nodes, { db }: TestNode): Promise<string[]> {
  return (await nodes.run(db.tables())).map(({ name }) => name);
}

const merges = [
  ['before a merge', []],
  ['of merged rows', ['before']],
  ['and merged', ['after']],
  ['of merged rows, and merged', ['before', 'after']],
] as const;

describe('a dropped table', () => {
  it.each(merges)('has no rows, indexes or schema on any instance: %s', async (_, when: readonly string[]) => {
    const { nodes, a, b } = await twoNodes();
    if (when.includes('before')) await nodes.run(b.db.checkpoint());
    expect(await nodes.run(a.db.dropTable('people'))).toBe(true);
    if (when.includes('after')) await nodes.run(b.db.checkpoint());
    for (const node of [a, b, await nodes.start(3)]) {
      expect(await ids(nodes, node)).toEqual([]);
      expect(await nodes.run(node.db.query(people).where('age', '>=', 0).execute())).toEqual([]);
      expect(await nodes.run(node.db.query(people).count())).toBe(0);
      expect(await nodes.run(node.db.get(people, 1))).toBeUndefined();
      expect(await tables(nodes, node)).toEqual([]);
      expect(await nodes.run(node.db.indexes('people'))).toEqual([]);
      expect((await nodes.run(node.db.verify({ deep: true }))).findings).toEqual([]);
    }
    await nodes.run(a.db.checkpoint());
    expect(await nodes.block0()).toMatchObject({
      format: 11,
      tables: [],
      dropped: { tables: [{ table: 'people', slot: 4, nodeId: 1 }], forgotten: 0 },
    });
  });

  it.each(merges)('takes no write of a registration from before: %s', async (_, when: readonly string[]) => {
    const { nodes, a, b } = await twoNodes();
    const filled = b.db.batch();
    await nodes.run(filled.insert(people, { id: 9, name: 'late', age: 1 }));
    if (when.includes('before')) await nodes.run(b.db.checkpoint());
    await nodes.run(a.db.dropTable(people));
    if (when.includes('after')) await nodes.run(a.db.checkpoint());
    for (const node of [a, b]) {
      const failures = [
        await nodes.failure(nodes.insert(node, 4)),
        await nodes.failure(node.db.transaction((tx) => tx.upsert(people, { id: 4, name: 'x', age: 1 }))),
        await nodes.failure(node.db.load(people, [{ id: 4, name: 'x', age: 1 }])),
        await nodes.failure(node.db.setTargetSchemaVersion('people', 1)),
      ];
      for (const failure of failures) {
        expect(failure).toBeInstanceOf(TableDroppedError);
        expect(failure).toMatchObject({ code: 'TABLE_DROPPED', table: 'people', position: 4 });
        expect(failure.message).toContain("Table 'people' was dropped at position 4 by node 1, after");
      }
    }
    expect(await nodes.failure(filled.flush())).toBeInstanceOf(TableDroppedError);
    expect(await nodes.hasSlot(5)).toBe(false);
    expect(await tables(nodes, b)).toEqual([]);
  });

  it.each(merges)('is created again by a registration after the drop: %s', async (_, when: readonly string[]) => {
    const { nodes, a, b } = await twoNodes();
    if (when.includes('before')) await nodes.run(b.db.checkpoint());
    const kept = a.db.batch();
    await nodes.run(kept.insert(people, { id: 9, name: 'late', age: 1 }));
    await nodes.run(a.db.dropTable(people));
    if (when.includes('after')) await nodes.run(a.db.checkpoint());
    a.db.registerSchema(people);
    await nodes.run(nodes.insert(a, 1, 'new'));
    // The batch was filled for the table that is gone.
    expect(await nodes.failure(kept.flush())).toBeInstanceOf(TableDroppedError);
    kept.clear();
    await nodes.run(kept.insert(people, { id: 2, name: 'newer', age: 3 }));
    await nodes.run(kept.flush());
    for (const merged of [false, true]) {
      if (merged) await nodes.run(b.db.checkpoint());
      // The old registration reads what there is, since it is defined in the same way, and still writes nothing.
      for (const node of [a, b, await nodes.start(merged ? 3 : 4)]) {
        await nodes.run(node.db.refresh());
        expect(await nodes.names(node, [1, 2, 3])).toEqual(['new', 'newer', undefined]);
      }
      expect(await nodes.failure(nodes.insert(b, 4))).toBeInstanceOf(TableDroppedError);
      expect(await nodes.run(b.db.query(people).where('age', '=', 3).execute())).toEqual([
        { id: 2, name: 'newer', age: 3 },
      ]);
      expect((await nodes.run(b.db.verify({ deep: true }))).findings).toEqual([]);
    }
    b.db.registerSchema(people);
    await nodes.run(nodes.insert(b, 4));
    expect(await ids(nodes, a)).toEqual([1, 2, 4]);
    expect((await nodes.block0()).dropped).toMatchObject({ tables: [{ table: 'people', slot: 4 }] });
  });

  it('may be created again with another definition of the same version', async () => {
    const { nodes, a, b } = await twoNodes();
    await nodes.run(a.db.checkpoint());
    await nodes.run(a.db.dropTable('people'));
    a.db.registerSchema(others);
    await nodes.run(a.db.transaction((tx) => tx.insert('people', { code: 'x', title: 'first' })));
    for (const merged of [false, true]) {
      if (merged) await nodes.run(a.db.checkpoint());
      expect(await nodes.run(a.db.query('people').where('title', '=', 'first').execute())).toEqual([
        { code: 'x', title: 'first' },
      ]);
      await nodes.run(b.db.refresh());
      expect(await nodes.failure(b.db.query(people).execute())).toBeInstanceOf(TableDroppedError);
      expect((await nodes.run(b.db.verify({ deep: true }))).findings).toEqual([]);
    }
    b.db.registerSchema(others);
    expect(await nodes.run(b.db.get('people', 'x'))).toEqual({ code: 'x', title: 'first' });
  });

  it('lets an instance start with another definition of the same version, also before that is merged', async () => {
    const { nodes, a } = await twoNodes();
    await nodes.run(a.db.checkpoint());
    const given = { dbPrefix: prefix, nodeId: 3, driver: nodes.store, logLevel: 'silent' } as const;
    const db = createDatabase({ ...given, writeForwardInterval: quietIntervalMs }, nodes.environment);
    db.registerSchema(others);
    expect(await nodes.failure(db.start())).toMatchObject({ code: 'INVALID_SCHEMA', table: 'people' });
    await nodes.run(a.db.dropTable('people'));
    await nodes.run(db.start());
    await nodes.run(db.transaction((tx) => tx.insert('people', { code: 'x', title: 'first' })));
    expect(await nodes.run(db.get('people', 'x'))).toEqual({ code: 'x', title: 'first' });
    await nodes.run(db.stop());
  });

  it('is created again by the next start', async () => {
    const { nodes, a, b } = await twoNodes();
    await nodes.run(a.db.dropTable('people'));
    await nodes.run(b.db.refresh());
    expect(await nodes.failure(nodes.insert(b, 1))).toBeInstanceOf(TableDroppedError);
    await nodes.run(b.db.stop());
    await nodes.run(b.db.start());
    await nodes.run(nodes.insert(b, 1, 'again'));
    expect(await nodes.names(b, [1, 2])).toEqual(['again', undefined]);
  });

  it.each(['interval', 'onDemand'] as const)(
    'is not created again by a batch from before a stop: %s',
    async (polling) => {
      const { nodes, a } = await twoNodes();
      const c = await nodes.start(3, { polling });
      const old = c.db.batch();
      await nodes.run(old.insert(people, { id: 9, name: 'late', age: 1 }));
      await nodes.run(c.db.stop());
      await nodes.run(a.db.dropTable('people'));
      await nodes.run(c.db.start());
      expect(await nodes.failure(old.flush())).toBeInstanceOf(TableDroppedError);
      await nodes.run(nodes.insert(c, 1, 'again'));
      expect(await nodes.failure(old.flush())).toBeInstanceOf(TableDroppedError);
      expect(await nodes.names(c, [1, 9])).toEqual(['again', undefined]);
    },
  );

  it('that is dropped, created and dropped again is not there', async () => {
    const { nodes, a, b } = await twoNodes();
    for (let round = 0; round < 3; round++) {
      await nodes.run(a.db.dropTable('people'));
      expect(await ids(nodes, b)).toEqual([]);
      a.db.registerSchema(people);
      await nodes.run(nodes.insert(a, 10 + round));
      if (round === 1) await nodes.run(b.db.checkpoint());
      expect(await ids(nodes, b)).toEqual([10 + round]);
    }
    await nodes.run(b.db.dropTable('people'));
    await nodes.run(b.db.checkpoint());
    expect(await ids(nodes, a)).toEqual([]);
    expect((await nodes.block0()).dropped?.tables).toMatchObject([{ table: 'people', slot: 10 }]);
  });

  it('leaves other tables as they are', async () => {
    const { nodes, a, b } = await twoNodes();
    for (const { db } of [a, b]) db.registerSchema(notes);
    await nodes.run(a.db.transaction((tx) => tx.insert('notes', { id: 1, text: 'kept' })));
    await nodes.run(a.db.dropTable('people'));
    await nodes.run(b.db.transaction((tx) => tx.insert('notes', { id: 2, text: 'later' })));
    await nodes.run(b.db.checkpoint());
    await nodes.run(a.db.refresh());
    expect(await nodes.run(a.db.query('notes').count())).toBe(2);
    expect(await tables(nodes, a)).toEqual(['notes']);
  });
});

describe('dropTable()', () => {
  it('rejects for a table that is not there, unless that is allowed', async () => {
    const { nodes, a, b } = await twoNodes();
    const failure = await nodes.failure(a.db.dropTable('peple'));
    expect(failure).toBeInstanceOf(TableNotFoundError);
    expect(failure.message).toMatch(
      /There is no table 'peple' in the database: did you mean people\? Nothing was changed/,
    );
    expect(await nodes.run(a.db.dropTable('peple', { ifExists: true }))).toBe(false);
    await nodes.run(a.db.dropTable('people'));
    const again = await nodes.failure(b.db.dropTable('people'));
    expect(again.message).toContain(
      "There is no table 'people' in the database. It was dropped at position 4 by node 1.",
    );
    expect(await nodes.run(b.db.dropTable('people', { ifExists: true }))).toBe(false);
    expect(await nodes.hasSlot(5)).toBe(false);
  });

  it('drops a table that is not registered here', async () => {
    const { nodes, a } = await twoNodes();
    a.db.registerSchema(notes);
    await nodes.run(a.db.transaction((tx) => tx.insert('notes', { id: 1, text: 'x' })));
    const other = await nodes.start(3);
    expect(await nodes.run(other.db.dropTable('notes'))).toBe(true);
    expect(await tables(nodes, a)).toEqual(['people']);
  });

  it('refuses system tables and replicas', async () => {
    const { nodes, a } = await twoNodes();
    for (const name of ['_blobs', '_anything']) {
      const failure = await nodes.failure(a.db.dropTable(name));
      expect(failure).toBeInstanceOf(InvalidOptionError);
      expect(failure.message).toContain(`cannot drop '${name}'`);
    }
    const replica = await nodes.start(3, { role: 'replica' });
    expect(await nodes.failure(replica.db.dropTable('people'))).toBeInstanceOf(ReadOnlyError);
    await nodes.run(a.db.dropTable('people'));
    expect(await ids(nodes, replica)).toEqual([]);
  });
});

describe('a registration whose table was dropped', () => {
  it('is not among the registered schemas until it is made again', async () => {
    const { nodes, a, b } = await twoNodes();
    await nodes.run(a.db.dropTable('people'));
    expect(a.db.registeredSchemas()).toEqual([]);
    expect(b.db.registeredSchemas()).toHaveLength(1);
    await nodes.run(b.db.refresh());
    expect(b.db.registeredSchemas()).toEqual([]);
    b.db.registerSchema(others);
    expect(b.db.registeredSchemas()).toMatchObject([{ primaryKey: 'code' }]);
  });

  it('counts from the start on where the drop was in the log then, with any polling', async () => {
    for (const polling of ['interval', 'onDemand'] as const) {
      const { nodes, a } = await twoNodes();
      const late = nodes.make(3, { polling });
      await nodes.run(a.db.dropTable('people'));
      await nodes.run(late.db.start());
      await nodes.run(nodes.insert(late, 7));
      expect(await ids(nodes, late)).toEqual([7]);
    }
  });

  it('does not count where the table was dropped after a start whose look at the log failed', async () => {
    const { nodes, a } = await twoNodes();
    const late = nodes.make(3, { polling: 'onDemand' });
    late.driver.onGet(/^committed/, refused, 1);
    await nodes.run(late.db.start());
    await nodes.environment.advance(1000);
    await nodes.run(a.db.dropTable('people'));
    expect(await nodes.failure(nodes.insert(late, 7))).toBeInstanceOf(TableDroppedError);
  });

  it('lets a feed of the table tell that it is gone, also where nothing else is known of it', async () => {
    const { nodes, a } = await twoNodes();
    a.db.registerSchema(notes);
    await nodes.run(a.db.transaction((tx) => tx.insert('notes', { id: 1, text: 'x' })));
    await nodes.run(a.db.dropTable('notes'));
    const late = await nodes.start(3);
    const seen: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const commit of late.db.changes({ after: 0, tables: ['notes'] })) {
        for (const { operation } of await commit.toArray()) seen.push(operation);
        if (seen.length === 2) break;
      }
    };
    await nodes.run(read());
    expect(seen).toEqual(['upsert', 'drop']);
  });
});
