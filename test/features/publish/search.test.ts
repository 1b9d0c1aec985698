/** Searches in bundles: the index on texts is published, and a reader finds what the database finds, with few requests. */
import { describe, expect, it } from 'vitest';
import { StoreDb, Types, defineSchema } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { decodeManifest, decodePointer, encodeManifest } from '../../../src/format/bundle.ts';
import type { PublishOptions } from '../../../src/maintenance/publish/publish-options.ts';
import { readerSearch } from '../../../src/reader.ts';
import type { Reader } from '../../../src/reader.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { BundleServer } from './published.ts';

const articles = defineSchema({
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    body: { typeId: Types.varchar },
    draft: { typeId: Types.boolean },
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['title', 'body'], text: { language: 'en', weights: { title: 3 } } },
    { fields: ['body'], text: { language: 'de' }, name: 'german' },
    'title',
  ],
});
const words = 'red white wines glass cellars grapes casks coffee tea 東京 ワイン Straße Häuser laufen'.split(' ');

async function databaseOf(rows: number): Promise<Database> {
  const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(articles);
  await db.start();
  const random = new SeededRandom(5);
  const text = (most: number): string =>
    Array.from({ length: random.integer(1, most) }, () => random.pick(words)).join(' ');
  const batch = db.batch();
  for (let id = 0; id < rows; id++) {
    const body = `${text(40)} n${id % 100}`;
    void batch.insert(articles, { id, title: text(4), body, draft: id % 3 === 0 });
  }
  await batch.flush();
  return db;
}

async function published(
  db: Database,
  options: PublishOptions = {},
): Promise<{ server: BundleServer; reader: Reader }> {
  const server = new BundleServer();
  await db.publish(server.place, options);
  return { server, reader: await server.open({ search: readerSearch() }) };
}

const asked = [
  ['red wine', {}],
  ['"white wines" -tea', {}],
  ['coffee grap', { prefix: true }],
  ['celar', { fuzzy: true }],
  ['casks 東京', { match: 'any' }],
  ['haus', { index: 'german' }],
  ['wine', { fields: ['title'] }],
] as const;

async function expectSame(reader: Reader, db: Database): Promise<void> {
  for (const [text, options] of asked) {
    const expected = db.query(articles).search(text, options);
    const rows = await reader.query(articles).search(text, options).select('id', 'title').limit(20).execute();
    expect(rows).toEqual(await expected.select('id', 'title').limit(20).execute());
    expect(rows.length, text).toBeGreaterThan(0);
    expect(await reader.query(articles).search(text, options).count()).toBe(await expected.count());
  }
}

describe('a reader of a bundle with an index on texts', () => {
  it('finds the rows that the database finds, in the same order, and marks the words', async () => {
    const db = await databaseOf(300);
    const { reader } = await published(db);
    await expectSame(reader, db);
    const query = reader.query(articles).search('cellar');
    const [row] = await query.where('title', '=', 'cellars').limit(1).execute();
    expect((await query.highlight(row ?? {}))['title']).toEqual([{ start: 0, end: 7 }]);
    expect(JSON.stringify(await query.explain())).toContain('by the words in index');
    const [definition] = reader.tables();
    expect(definition?.indexes).toContainEqual({
      fields: ['title', 'body'],
      text: { language: 'en', weights: { title: 3, body: 1 } },
    });
    reader.close();
    await db.stop();
  });

  it('ranks by the published rows alone, and has no words of others', async () => {
    const db = await databaseOf(200);
    const batch = db.batch();
    void batch.insert(articles, { id: 999, title: 'Confidential', body: 'unpublished words', draft: true });
    await batch.flush();
    const where: PublishOptions['where'] = { articles: ({ is }) => is('draft', '=', false) };
    const { server, reader } = await published(db, { where });
    for (const text of (await server.texts()).values()) expect(text).not.toMatch(/confidenti|unpublish/i);

    // A database that has these rows only gives the same order.
    const same = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1, logLevel: 'silent' });
    same.registerSchema(articles);
    await same.start();
    await same.load(articles, await db.query(articles).where('draft', '=', false).execute());
    await expectSame(reader, same);
    reader.close();
    await same.stop();
    await db.stop();
  });

  it('has only the indexes whose fields are published', async () => {
    const db = await databaseOf(30);
    const { server, reader } = await published(db, { fields: { articles: ['body'] } });
    expect(reader.tables()[0]?.indexes?.map((index) => (typeof index === 'string' ? index : index.name))).toEqual([
      'german',
    ]);
    expect(await reader.query('articles').search('haus').count()).toBeGreaterThan(0);
    reader.close();

    await db.publish(server.place, { fields: { articles: ['draft'] } });
    const without = await server.open({ search: readerSearch() });
    expect(() => without.query('articles').search('haus')).toThrow("table 'articles' has no index on texts");
    without.close();
    await db.stop();
  });

  it('takes a request for each block of words and of rows, and none for what it has', async () => {
    const db = await databaseOf(3000);
    const { server, reader } = await published(db);
    server.take();
    expect(await reader.query(articles).search('n42 wine').limit(1).execute()).toHaveLength(1);
    const names = server.take();
    expect(names.filter((name) => name.startsWith('data/'))).toHaveLength(1);
    expect(names.filter((name) => name.startsWith('indexes/')).length).toBeLessThanOrEqual(4);
    expect(await reader.query(articles).search('n42 wine').limit(1).execute()).toHaveLength(1);
    expect(server.take()).toEqual([]);
    reader.close();
    await db.stop();
  });
});

describe('a reader without searches', () => {
  it('says how to get them', async () => {
    const db = await databaseOf(5);
    const { server, reader } = await published(db);
    reader.close();
    const plain = await server.open();
    expect(() => plain.query('articles').search('wine')).toThrow('opened with `search: readerSearch()`');
    plain.close();
    await db.stop();
  });
});

describe('the manifest of a bundle with an index on texts', () => {
  it('is of version 2, which older releases refuse, and of version 1 without such an index', async () => {
    const db = await databaseOf(5);
    const { server, reader } = await published(db);
    reader.close();
    const formatOf = async (): Promise<unknown> => {
      const texts = await server.texts();
      const pointer = await server.store.get('site/bundle');
      if (pointer.status !== 'found') throw new Error('There is no pointer');
      const name = decodePointer(pointer.bytes).bundles[0]?.manifest ?? '';
      const manifest = Buffer.from(texts.get(name) ?? '', 'latin1');
      expect(encodeManifest(decodeManifest(name, manifest)).toString()).toBe(new Uint8Array(manifest).toString());
      return (JSON.parse(manifest.toString()) as { format: unknown }).format;
    };
    expect(await formatOf()).toBe(2);
    await db.publish(server.place, { fields: { articles: ['title'] } });
    expect(await formatOf()).toBe(1);
    await db.stop();
  });
});
