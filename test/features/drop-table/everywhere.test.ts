import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import { realEnvironment } from '../../../src/base/env.ts';
import { TableDroppedError } from '../../../src/base/errors.ts';
import { decodeBlock0 } from '../../../src/format/block0.ts';
import { Types } from '../../../src/format/types.ts';
import { FileDriver } from '../../../src/storage/file/file-driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { Cluster, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { users1, users2, Versions } from '../migrations/versions.ts';
import { Nodes, people } from '../protocol/nodes.ts';

/** A cluster with rows that have blobs, and some of another table. */
async function withBlobs(merged: boolean): Promise<{ cluster: Cluster; node: ClusterNode }> {
  const cluster = new Cluster();
  const node = await cluster.start(0);
  node.db.registerSchema({ ...items, name: 'others' });
  const put = (id: number): Promise<void> =>
    cluster.flush(node, (batch) => {
      for (const table of ['items', 'others']) void batch.insert(table, { id, file: node.db.Blob(`${table} ${id}`) });
    });
  for (const id of [1, 2]) await cluster.run(put(id));
  if (merged) await cluster.run(node.db.checkpoint());
  await cluster.run(put(3));
  await cluster.run(cluster.flush(node, (batch) => void batch.delete('items', 1)));
  return { cluster, node };
}

describe('the blobs of a dropped table', () => {
  it.each([
    ['in the log', false],
    ['in blocks', true],
  ])('are deleted blobs from then on, and gc deletes their bytes: %s', async (_, merged) => {
    const { cluster, node } = await withBlobs(merged);
    const { db } = node;
    const row = await cluster.run(db.get(items, 2));
    await cluster.run(db.dropTable('items'));
    const owners = async (table: string): Promise<unknown[]> => {
      const rows = await cluster.run(db.query(table).execute());
      return rows
        .map((one) => (one as { table: unknown }).table)
        .toSorted((a, b) => String(a).localeCompare(String(b)));
    };
    expect(await owners('_blobs')).toEqual(['others', 'others', 'others']);
    expect(await owners('_deleted_blobs')).toEqual(['items', 'items', 'items']);
    await expect(cluster.run(db.getBlob(row?.file as string).getBuffer())).rejects.toMatchObject({
      code: 'BLOB_NOT_FOUND',
    });
    expect(await cluster.namesIn('blobs')).toHaveLength(6);
    expect((await cluster.run(db.verify({ deep: true }))).findings).toEqual([]);
    await cluster.collectAll(node);
    expect(await cluster.namesIn('blobs')).toHaveLength(3);
    expect(await cluster.namesIn('data/items')).toEqual([]);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    expect((await cluster.run(db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('are those of the very state before the drop', async () => {
    const { cluster, node } = await withBlobs(true);
    const other = await cluster.start(1);
    node.driver.onPut(/^committed/, async (pass) => {
      await cluster.flush(other, (batch) => {
        void batch.insert(items, { id: 9, file: other.db.Blob('late') });
        void batch.delete(items, 3);
      });
      await other.db.checkpoint();
      return pass();
    });
    await cluster.run(node.db.dropTable('items'));
    await cluster.collectAll(node);
    expect(await cluster.namesIn('blobs')).toHaveLength(3);
    expect((await cluster.run(node.db.verify({ deep: true }))).findings).toEqual([]);
  });
});

describe('earlier states', () => {
  it('show the table as it was, and gc keeps what they need', async () => {
    const { cluster, node } = await withBlobs(true);
    const { db } = node;
    const snapshot = await cluster.run(db.snapshot());
    const file = (await cluster.run(snapshot.query(items).where('id', '=', 2).execute()))[0]?.file as string;
    await cluster.run(db.dropTable('items'));
    await cluster.collectAll(node);
    expect((await cluster.run(snapshot.query(items).execute())).map(({ id }) => id)).toEqual([2, 3]);
    expect(await cluster.run(snapshot.getBlob(file).getString())).toBe('items 2');
    expect((await cluster.run(db.verify({ deep: true }))).findings).toEqual([]);
    await cluster.run(snapshot.release());
    await cluster.collectAll(node);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    expect(await cluster.namesIn('blobs')).toHaveLength(3);
  });

  it('of the history show it too, also once it was created again', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0, { history: '1h' });
    await cluster.run(cluster.put(node, range(0, 40), 'old'));
    await cluster.run(node.db.checkpoint());
    const { generation } = await cluster.block0();
    await cluster.run(node.db.dropTable('items'));
    node.db.registerSchema(items);
    await cluster.run(cluster.put(node, [1], 'new'));
    await cluster.run(node.db.checkpoint());
    const before = await cluster.run(node.db.at(generation));
    expect(await cluster.run(before.query(items).count())).toBe(40);
    expect(await cluster.run(node.db.query(items).count())).toBe(1);
    await cluster.run(before.release());
  });

  it('in backups have it, and a clone of the present state does not', async () => {
    const nodes = new Nodes();
    const a = await nodes.start(1);
    for (const id of [1, 2]) await nodes.run(nodes.insert(a, id));
    const to = { driver: nodes.store, prefix: 'backups' };
    await nodes.run(a.db.backup(to));
    await nodes.run(a.db.dropTable('people'));
    await nodes.run(a.db.clone({ driver: nodes.store, prefix: 'copy' }));
    const copy = createDatabase(
      { dbPrefix: 'copy', nodeId: 0, driver: nodes.store, logLevel: 'silent' },
      nodes.environment,
    );
    copy.registerSchema(people);
    await nodes.run(copy.start());
    expect(await nodes.run(copy.query(people).count())).toBe(0);
    // It was registered for the copy, after the drop.
    await nodes.run(copy.transaction((tx) => tx.insert(people, { id: 1, name: 'x', age: 1 })));
    expect(await nodes.run(copy.query(people).count())).toBe(1);
    await nodes.run(copy.stop());
  });
});

describe('a table that is being migrated', () => {
  it.each([
    ['beside', []],
    ['building or switched', ['target']],
    ['merged before', ['target', 'merged']],
  ])('is dropped in both versions: %s', async (_, steps: readonly string[]) => {
    const versions = new Versions();
    const v1 = await versions.open(1, [users1]);
    await versions.write(v1, 'insert', [{ id: 1, name: 'one', age: 1, old: 'x' }]);
    const v2 = await versions.open(2, [users2]);
    if (steps.includes('target')) await versions.run(v2.db.setTargetSchemaVersion('users', 2));
    await versions.write(v2, 'insert', [{ id: 2, name: 'two', level: 5 }]);
    if (steps.includes('merged')) await versions.merge(v1);
    await versions.run(v1.db.dropTable('users'));
    for (const node of [v1, v2]) expect(await versions.rows(node)).toEqual([]);
    v2.db.registerSchema(users2);
    await versions.write(v2, 'insert', [{ id: 7, name: 'seven', level: 1 }]);
    for (const merged of [false, true]) {
      if (merged) await versions.merge(v2);
      expect(await versions.rows(v2)).toMatchObject([{ id: 7, level: 1 }]);
      expect(await versions.run(v2.db.migrationStatus('users'))).toMatchObject({ state: 'none' });
    }
    const { migrations, tables } = await versions.block0();
    expect(migrations).toEqual([]);
    expect(tables.map(({ name, versions: all }) => [name, all.map(({ schema }) => schema.version)])).toEqual([
      ['users', [2]],
    ]);
    await expect(versions.run(v1.db.refresh().then(() => v1.db.query('users').execute()))).rejects.toBeInstanceOf(
      TableDroppedError,
    );
    expect(await versions.findings(v2)).toEqual([]);
  });

  it.each([
    ['in the log', false],
    ['in blocks', true],
  ])('may be migrated again once it was created again, and shows no old row: %s', async (_, inBlocks) => {
    const versions = new Versions();
    const v1 = await versions.open(1, [users1]);
    await versions.write(
      v1,
      'insert',
      [1, 2, 3].map((id) => ({ id, name: `old ${id}`, age: 1, old: 'x' })),
    );
    if (inBlocks) await versions.merge(v1);
    const v2 = await versions.open(2, [users2]);
    expect(await versions.rows(v2)).toHaveLength(3);
    await versions.run(v1.db.dropTable('users'));
    v1.db.registerSchema(users1);
    await versions.run(v2.db.refresh());
    v2.db.registerSchema(users2);
    await versions.write(v1, 'insert', [{ id: 2, name: 'new', age: 9, old: 'y' }]);
    expect(await versions.rows(v2)).toMatchObject([{ id: 2, name: 'new', level: 3 }]);
    await versions.write(v2, 'update', [{ id: 2, email: 'e' }]);
    for (const merged of [false, true]) {
      if (merged) await versions.merge(v1);
      expect(await versions.rows(v2)).toMatchObject([{ id: 2, name: 'new', email: 'e' }]);
      expect(await versions.rows(v1)).toMatchObject([{ id: 2, name: 'new', old: 'y' }]);
    }
    expect(await versions.findings(v1)).toEqual([]);
  });
});

describe('the feed of changes', () => {
  it('tells a drop by one change', async () => {
    const nodes = new Nodes();
    const a = await nodes.start(1);
    await nodes.run(nodes.insert(a, 1));
    await nodes.run(a.db.dropTable('people'));
    a.db.registerSchema(people);
    await nodes.run(nodes.insert(a, 2));
    for (const options of [{ after: 0 }, { after: 0, tables: ['people'], before: true }]) {
      const seen: unknown[] = [];
      const read = async (): Promise<void> => {
        for await (const commit of a.db.changes(options)) {
          for (const { table, operation, key, version, before } of await commit.toArray())
            seen.push([commit.position, table, operation, key, version, before]);
          if (commit.position === 3) break;
        }
      };
      await nodes.run(read());
      const before = options.before === true ? null : undefined;
      expect(seen).toEqual([
        [1, 'people', 'upsert', 1, 1, before],
        [2, 'people', 'drop', undefined, 1, undefined],
        [3, 'people', 'upsert', 2, 1, before],
      ]);
    }
    expect(await nodes.run(a.db.log())).toMatchObject([{ rows: { people: 1 } }, { rows: {}, drops: ['people'] }, {}]);
  });
});

describe('a watched query', () => {
  it('becomes empty, and goes on with the table that is created again', async () => {
    const nodes = new Nodes();
    const [a, b] = [await nodes.start(1), await nodes.start(2)];
    for (const id of [1, 2]) await nodes.run(nodes.insert(a, id));
    await nodes.run(b.db.refresh());
    const loop = b.db.query(people).watch()[Symbol.asyncIterator]();
    const next = async (): Promise<unknown> => {
      const { value } = await nodes.run(loop.next());
      return [value?.rows.map(({ id }) => id), value?.removed.length];
    };
    expect(await next()).toEqual([[1, 2], 0]);
    const empty = loop.next();
    await nodes.run(a.db.dropTable('people'));
    await nodes.run(b.db.refresh());
    expect((await nodes.run(empty)).value).toMatchObject({ rows: [], removed: [{ id: 1 }, { id: 2 }], position: 3 });
    const anew = loop.next();
    a.db.registerSchema(people);
    await nodes.run(nodes.insert(a, 5));
    await nodes.run(b.db.refresh());
    expect((await nodes.run(anew)).value).toMatchObject({ rows: [{ id: 5 }], position: 4 });
    await loop.return?.();
  });
});

describe('a database of many tables', () => {
  it('drops tables that its catalogue holds, and writes another catalogue', async () => {
    const nodes = new Nodes();
    const names = range(0, 40).map((i) => `table-${i}`);
    const a = await nodes.start(1, { blockSizeBytes: 1024 });
    for (const name of names) a.db.registerSchema({ ...people, name });
    for (const name of names) await nodes.run(a.db.transaction((tx) => tx.insert(name, { id: 1, name, age: 1 })));
    await nodes.run(a.db.checkpoint());
    const { catalogue } = await nodes.block0();
    expect(catalogue?.tables.has('table-3')).toBe(true);
    await nodes.run(a.db.dropTable('table-3'));
    await nodes.run(a.db.dropTable('table-4'));
    a.db.registerSchema({ ...people, name: 'table-4' });
    await nodes.run(a.db.transaction((tx) => tx.insert('table-4', { id: 9, name: 'new', age: 1 })));
    await nodes.run(a.db.checkpoint());
    const after = await nodes.block0();
    expect(after.catalogue?.ref.id).not.toBe(catalogue?.ref.id);
    expect(after.tables.map(({ name }) => name).toSorted()).toEqual(
      names.filter((name) => name !== 'table-3').toSorted(),
    );
    const fresh = await nodes.start(2, { blockSizeBytes: 1024 });
    expect((await nodes.run(fresh.db.tables())).length).toBe(39);
    expect((await nodes.run(fresh.db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('lists the last 256 drops of tables that are not there', async () => {
    const nodes = new Nodes();
    const [a, sleeper] = [await nodes.start(1), await nodes.start(2)];
    const [second, third] = [await nodes.start(3), await nodes.start(4)];
    const make = async (name: string): Promise<void> => {
      a.db.registerSchema({ ...people, name });
      await a.db.transaction((tx) => tx.insert(name, { id: 1, name: 'x', age: 1 }));
    };
    await nodes.run(nodes.insert(a, 1));
    for (const { db } of [sleeper, second, third]) await nodes.run(db.refresh());
    for (const name of ['people', ...range(0, 258).map((i) => `t${i}`)]) {
      if (name !== 'people') await nodes.run(make(name));
      await nodes.run(a.db.dropTable(name));
    }
    await nodes.run(a.db.checkpoint());
    await nodes.trimLog();
    const { dropped } = await nodes.block0();
    expect(dropped?.tables).toHaveLength(256);
    expect(dropped?.tables.some(({ table }) => table === 'people')).toBe(false);
    // It has seen the table, and not its drop, which nobody lists any more.
    await nodes.run(sleeper.db.refresh());
    const failure = await nodes.failure(nodes.insert(sleeper, 2));
    expect(failure).toBeInstanceOf(TableDroppedError);
    expect(failure).toMatchObject({ position: undefined });
    sleeper.db.registerSchema(people);
    await nodes.run(nodes.insert(sleeper, 2));
    expect(await nodes.run(sleeper.db.query(people).count())).toBe(1);
    // Others meet the table that was created again, in the log and in blocks.
    await nodes.run(second.db.refresh());
    expect(await nodes.failure(nodes.insert(second, 3))).toBeInstanceOf(TableDroppedError);
    await nodes.run(sleeper.db.checkpoint());
    await nodes.run(third.db.refresh());
    expect(await nodes.failure(nodes.insert(third, 3))).toBeInstanceOf(TableDroppedError);
    await nodes.run(nodes.insert(sleeper, 4));
  });
});

const fields = { id: { typeId: Types.int32 }, file: { typeId: Types.blob }, tag: { typeId: Types.varchar } } as const;
const files = {
  name: 'files',
  version: 1,
  fields,
  primaryKey: 'id',
  indexes: [{ fields: ['tag'], unique: true }],
} as const;

describe.each(['memory', 'folder'])('in a %s', (kind) => {
  it('a table comes and goes', async () => {
    const path = kind === 'memory' ? undefined : await mkdtemp(join(tmpdir(), 'drop-table-'));
    onTestFinished(async () => {
      if (path !== undefined) await rm(path, { recursive: true });
    });
    const memory = new MemoryDriver({ environment: realEnvironment });
    const driver = (): MemoryDriver | FileDriver => (path === undefined ? memory : new FileDriver(path));
    const open = async (nodeId: number): Promise<ReturnType<typeof createDatabase>> => {
      const given = { logLevel: 'silent', polling: 'onDemand', mergePolicy: { minCommits: 1 } } as const;
      const db = createDatabase({ dbPrefix: 'db', nodeId, driver: driver(), ...given }, realEnvironment);
      db.registerSchema(files);
      await db.start();
      return db;
    };
    const [a, b] = [await open(0), await open(1)];
    const add = (db: typeof a, id: number): Promise<unknown> =>
      db.transaction((tx) => tx.insert(files, { id, tag: `tag ${id}`, file: db.Blob(`file ${id}`) }));
    for (const id of [1, 2, 3]) await add(a, id);
    await a.checkpoint();
    expect(await b.dropTable(files)).toBe(true);
    await expect(add(a, 1)).rejects.toBeInstanceOf(TableDroppedError);
    a.registerSchema(files);
    await add(a, 1);
    await b.refresh();
    expect((await b.query(files).execute()).map(({ id }) => id)).toEqual([1]);
    await a.checkpoint();
    await a.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
    // A database of this kind that begins while a drop is pending counts as registered after it.
    await a.dropTable(files);
    const late = await open(2);
    await add(late, 5);
    expect((await late.verify({ deep: true })).findings).toEqual([]);
    for (const db of [a, b, late]) await db.stop();
    const found = await driver().get('db/block0');
    expect(found.status === 'found' && decodeBlock0(found.bytes).format).toBe(11);
  });
});
