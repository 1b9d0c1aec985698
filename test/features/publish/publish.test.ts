/** `db.publish()` and `openReader()`: a reader shows what the database showed. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types, defineSchema } from '../../../src/index.ts';
import type { Database } from '../../../src/api/database.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { PublishOptions } from '../../../src/maintenance/publish/publish-options.ts';
import { openReader } from '../../../src/reader.ts';
import type { Reader } from '../../../src/reader.ts';
import { BundleServer } from './published.ts';

const people = defineSchema({
  name: 'people',
  version: 3,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
    note: { typeId: Types.varchar },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['age', 'name'],
});

let db: Database;
let server: BundleServer;

beforeEach(async () => {
  db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
  db.registerSchema(people);
  await db.start();
  server = new BundleServer();
});

afterEach(async () => {
  await db.stop();
});

function person(i: number) {
  return { id: i, name: `name ${i % 97} ${i}`, age: i % 100, note: i % 3 === 0 ? null : 'x'.repeat(i % 50) };
}

async function insert(count: number, from = 0): Promise<void> {
  const batch = db.batch();
  for (let i = from; i < from + count; i++) void batch.insert(people, person(i));
  await batch.flush();
}

async function change(id: number, name: string): Promise<void> {
  const batch = db.batch();
  void batch.update(people, { id, name });
  await batch.flush();
}

async function allOf(reader: Reader): Promise<object[]> {
  return reader.query(people).execute();
}

describe('a published bundle', () => {
  it('has the registered tables that nobody has written yet, without rows', async () => {
    await db.publish(server.place, { tables: ['people'] });
    const first = await server.open();
    expect(await allOf(first)).toEqual([]);
    expect(await first.query(people).where('age', '>', 3).orderBy('age').count()).toBe(0);
    await insert(3);
    await db.publish(server.place);
    expect(await first.refresh()).toBe(true);
    expect(await allOf(first)).toHaveLength(3);
  });

  it('has no table that was dropped', async () => {
    await insert(3);
    await db.dropTable('people');
    await expect(db.publish(server.place, { tables: ['people'] })).rejects.toMatchObject({ option: 'tables' });
  });

  it('shows the rows of the database', async () => {
    await insert(3000);
    const report = await db.publish(server.place);
    expect(report).toMatchObject({ outcome: 'published', rows: 3000, position: db.position });
    const reader = await server.open();
    expect(reader.position).toBe(db.position);
    expect(await reader.get(people, 1234)).toEqual(await db.get(people, 1234));
    expect(await reader.get(people, 3000)).toBeUndefined();
    const older = reader.query(people).where('age', '>', 90).orderBy('age', 'desc').limit(30);
    const same = db.query(people).where('age', '>', 90).orderBy('age', 'desc').limit(30);
    expect(await older.execute()).toEqual(await same.execute());
    expect(await reader.query(people).where('age', '=', 7).count()).toBe(30);
    expect(await reader.query(people).max('age')).toBe(99);
    expect(await allOf(reader)).toEqual(await db.query(people).execute());
    const page = await reader.query(people).orderBy('name').page({ size: 10 });
    const next = await reader.query(people).orderBy('name').page({ size: 10, after: page.next });
    expect([...page.rows, ...next.rows]).toEqual(await db.query(people).orderBy('name').limit(20).execute());
    expect((await reader.query(people).where('age', '=', 7).explain()).access).toBeDefined();
    expect(reader.tables()).toEqual([people]);
    reader.close();
    await expect(reader.get(people, 1)).rejects.toThrow('reader');
  });

  it('takes three requests for the first row, and one for a row in another block', async () => {
    await insert(20_000);
    await db.publish(server.place);
    const reader = await server.open();
    await reader.get(people, 5);
    expect(server.take()).toEqual([
      'bundle',
      expect.stringMatching(/^manifests/),
      expect.stringMatching(/^data\/people/),
    ]);
    await reader.get(people, 6);
    expect(server.take()).toEqual([]);
    await reader.get(people, 19_000);
    expect(server.take()).toHaveLength(1);
    expect(await reader.refresh()).toBe(false);
    expect(server.take()).toEqual(['bundle']);
  });

  it('shows a table without rows, and one that fits into the manifest', async () => {
    await db.publish(server.place);
    const reader = await server.open();
    await expect(allOf(reader)).rejects.toThrow('Schema not found for table people. The bundle has none.');
    await insert(3);
    await db.publish(server.place);
    expect(await reader.refresh()).toBe(true);
    server.take();
    expect(await allOf(reader)).toHaveLength(3);
    expect(server.take()).toEqual([]);
    await expect(reader.get('poeple', 1)).rejects.toThrow('Schema not found for table poeple. The bundle has people.');
    const batch = db.batch();
    for (let i = 0; i < 3; i++) void batch.delete(people, i);
    await batch.flush();
    await db.publish(server.place);
    await reader.refresh();
    expect(await allOf(reader)).toEqual([]);
    expect(await reader.query(people).where('age', '=', 1).count()).toBe(0);
  });

  it('has the rows and fields that were chosen', async () => {
    await insert(2000);
    const options: PublishOptions = {
      where: { people: ({ is, or }) => or(is('age', '<', 10), is('name', '=', 'name 50 50')) },
      fields: { people: ['age'] },
    };
    const report = await db.publish(server.place, options);
    expect(report.rows).toBe(201);
    const reader = await server.open();
    const rows = await db
      .query(people)
      .where(({ is, or }) => or(is('age', '<', 10), is('id', '=', 50)))
      .select('id', 'age')
      .execute();
    expect(await allOf(reader)).toEqual(rows);
    expect(await reader.query(people).where('age', '=', 3).count()).toBe(20);
    expect(reader.tables()).toEqual([
      {
        name: 'people',
        version: 3,
        fields: { id: people.fields.id, age: people.fields.age },
        primaryKey: 'id',
        indexes: ['age'],
      },
    ]);
  });

  it('is refused with options that do not fit the tables, before anything is written', async () => {
    await insert(1);
    const refused = async (options: object, message: string): Promise<void> => {
      await expect(db.publish(server.place, options)).rejects.toThrow(message);
    };
    await refused({ table: ['people'] }, 'did you mean `tables`');
    await refused({ tables: ['peple'] }, 'did you mean `people`');
    await refused({ tables: [] }, 'an array with at least one name');
    await refused({ fields: { peopel: ['id'] } }, 'did you mean `people`');
    await refused({ fields: { people: ['nme'] } }, 'did you mean `name`');
    await refused({ where: { people: ['age', '<', 3] } }, 'a function that returns a clause');
    await refused(
      { where: { people: ({ is }: { is: (...given: unknown[]) => unknown }) => is('agee', '=', 3) } },
      'agee',
    );
    await refused({ keep: { bundles: 0 } }, 'keep.bundles');
    await expect(db.publish({ ...server.place, prefix: '' })).rejects.toThrow('prefix');
    expect(server.driver.puts).toEqual([]);
  });

  it('is refused where a database is, or bundles of another one', async () => {
    const other = StoreDb({ driver: server.driver, dbPrefix: 'site', nodeId: 1 });
    await other.start();
    await expect(db.publish(server.place)).rejects.toThrow('There is a database under site/');
    await other.publish({ driver: server.driver, prefix: 'second' });
    const second = { driver: server.driver, prefix: 'second' };
    await expect(db.publish(second)).rejects.toThrow('bundles of another database');
    const reader = await openReader('https://example.test/second', { fetch: server.fetch });
    await insert(10);
    expect(await db.publish(second, { replace: true })).toMatchObject({ outcome: 'published' });
    await expect(reader.refresh()).rejects.toMatchObject({ code: 'DATABASE_REPLACED' });
    const newer = await openReader('https://example.test/second', { fetch: server.fetch });
    expect(await newer.query(people).count()).toBe(10);
    await other.stop();
  });

  it('is abandoned by its signal, and leaves the bundle before', async () => {
    await insert(2000);
    await db.publish(server.place);
    await change(3, 'new');
    const controller = new AbortController();
    server.driver.before = (name) => {
      if (name.startsWith('data/')) controller.abort();
    };
    await expect(db.publish(server.place, { signal: controller.signal })).rejects.toThrow('aborted');
    const reader = await server.open();
    expect((await reader.get(people, 3))?.name).toBe('name 3 3');
  });
});

describe('blobs of a bundle', () => {
  const bytes = Buffer.from('a picture'.repeat(20_000));

  beforeEach(async () => {
    const batch = db.batch();
    void batch.insert(people, { ...person(1), photo: db.Blob(bytes, { contentType: 'image/png' }) });
    void batch.insert(people, { ...person(2), photo: db.Blob('secret of two') });
    await batch.flush();
  });

  it('are copied once, and read by URL and in parts', async () => {
    await db.publish(server.place);
    const reader = await server.open();
    const { photo } = (await reader.get(people, 1)) as { photo: string };
    const url = await reader.blobUrl(photo);
    const answer = await server.fetch(url, { signal: new AbortController().signal });
    expect(Buffer.from(await new Response(answer.body).arrayBuffer())).toEqual(bytes);
    expect(await reader.getBlob(photo).getBuffer(70_000, 70_010)).toEqual(bytes.subarray(70_000, 70_010));
    expect(server.requests.at(-1)?.range).toBe('bytes=65536-131071');
    server.ignoresRanges = true;
    expect(await reader.getBlob(photo).getBuffer()).toEqual(bytes);
    expect(await reader.getBlob(photo).size()).toBe(bytes.length);
    await expect(reader.blobUrl('0190c0a0-0000-7000-8000-000000000000')).rejects.toThrow('There is no blob');
    await insert(10, 10);
    server.driver.puts.length = 0;
    await db.publish(server.place);
    expect(server.driver.puts.filter((name) => name.includes('blobs'))).toEqual([]);
    await reader.refresh();
    expect(await reader.blobUrl(photo)).toBe(url);
  });

  it('are left out with their rows or fields', async () => {
    await db.publish(server.place, { where: { people: ({ is }) => is('id', '=', 1) } });
    expect((await server.names()).filter((name) => name.includes('blobs'))).toHaveLength(1);
    await db.publish(server.place, { fields: { people: ['name'] }, keep: { bundles: 1, ageMs: 0 } });
    expect((await server.names()).filter((name) => name.includes('blobs'))).toEqual([]);
    const reader = await server.open();
    expect(await reader.get(people, 2)).toEqual({ id: 2, name: 'name 2 2' });
  });
});
