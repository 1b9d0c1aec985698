/** Indexes on lists, paths and some rows in bundles, and included fields: what they find, and the requests that this takes. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/index.ts';
import { decodeManifest, decodePointer, encodeManifest } from '../../../src/format/bundle.ts';
import type { PublishOptions } from '../../../src/maintenance/publish/publish-options.ts';
import { readerSearch } from '../../../src/reader.ts';
import type { Reader } from '../../../src/reader.ts';
import { asked, catalogueOf, expectedOf, productRows, products, queryOf } from './catalogue.ts';
import { BundleServer } from './published.ts';

const rows = productRows(2000);
let db: Database;

beforeAll(async () => {
  db = await catalogueOf(rows);
});
afterAll(async () => {
  await db.stop();
});

async function published(options: PublishOptions = {}): Promise<{ server: BundleServer; reader: Reader }> {
  const server = new BundleServer();
  await db.publish(server.place, options);
  const reader = await server.open({ search: readerSearch() });
  server.take();
  return { server, reader };
}

describe('a reader of a bundle with indexes on lists, paths and some rows', () => {
  it('has all indexes, uses them, and finds what is in the rows', async () => {
    const { server, reader } = await published();
    expect(reader.tables()[0]?.indexes).toEqual(products.indexes);
    for (const [index, query] of asked) {
      const built = queryOf(reader.query('products'), query);
      const expected = expectedOf(rows, query);
      expect(await built.execute(), JSON.stringify(query)).toEqual(expected.rows);
      expect(await queryOf(reader.query('products'), { where: query.where }).count()).toBe(expected.count);
      // A reader that has rows in memory reads no index for a few of them.
      const fresh = await server.open();
      const { index: used } = await queryOf(fresh.query('products'), query).explain({ run: true });
      expect(index ?? used, JSON.stringify(query)).toBe(used);
      fresh.close();
    }
    reader.close();
  });

  it.each<[string, PublishOptions, (row: (typeof rows)[number]) => boolean]>([
    ['some rows', { where: { products: ({ is }) => is('year', '<', 2005) } }, (row) => (row['year'] as number) < 2005],
    ['a few rows', { where: { products: ({ is }) => is('id', 'IN', [3, 5]) } }, ({ id }) => id === 3 || id === 5],
    ['no rows', { where: { products: ({ is }) => is('id', 'IN', []) } }, () => false],
  ])('finds what is in %s', async (_, options, isPublished) => {
    const { reader } = await published(options);
    const some = rows.filter(isPublished);
    for (const [, query] of asked) {
      expect(await queryOf(reader.query('products'), query).execute(), JSON.stringify(query)).toEqual(
        expectedOf(some, query).rows,
      );
    }
    reader.close();
  });
});

describe('the requests of a reader', () => {
  /** Returns the blocks that a call reads on a new reader. */
  async function blocksOf(
    server: BundleServer,
    read: (reader: Reader) => Promise<unknown>,
  ): Promise<{ readonly entries: number; readonly rows: number }> {
    const reader = await server.open({ search: readerSearch() });
    server.take();
    await read(reader);
    const names = server.take();
    reader.close();
    const entries = names.filter((name) => name.startsWith('indexes/')).length;
    expect(names.length - entries).toBe(names.filter((name) => name.startsWith('data/')).length);
    return { entries, rows: names.length - entries };
  }

  it('are one for each block of entries, and one for each block of rows', async () => {
    const { server, reader } = await published();
    reader.close();
    for (const [index, query] of asked) {
      if (index === undefined) continue;
      const few = { ...query, limit: 2 };
      const { entries, rows: blocks } = await blocksOf(server, (fresh) =>
        queryOf(fresh.query('products'), few).execute(),
      );
      expect(entries, JSON.stringify(few)).toBeLessThanOrEqual(2);
      expect(blocks, JSON.stringify(few)).toBeLessThanOrEqual(2);
      const { where } = query;
      const counted = await blocksOf(server, (fresh) => queryOf(fresh.query('products'), { where }).count());
      // Other conditions are tested on rows.
      expect(where.length === 1 ? counted.rows : 0, JSON.stringify(where)).toBe(0);
    }
  });

  it('are for no rows where the entries include what is asked for', async () => {
    const { server, reader } = await published();
    reader.close();
    const read = async (fresh: Reader): Promise<void> => {
      const inJapan = fresh.query(products).where('meta.maker.country', '=', 'JP').orderBy('year').limit(20);
      const found = await inJapan.select('id', 'title', 'meta.price').execute();
      expect(found).toHaveLength(20);
      expect(Object.keys(found[0] ?? {})).toEqual(['id', 'title', 'meta.price']);
    };
    const { entries, rows: blocks } = await blocksOf(server, read);
    expect(entries).toBeLessThanOrEqual(2);
    expect(blocks).toBe(0);
  });

  it('are few for a search in an index of the rows of one language', async () => {
    const { server, reader } = await published();
    reader.close();
    const found: object[] = [];
    const { entries, rows: blocks } = await blocksOf(server, async (fresh) => {
      found.push(...(await fresh.query(products).search('Lampe', { index: 'german' }).limit(2).execute()));
    });
    expect(found).toEqual(await db.query(products).search('Lampe', { index: 'german' }).limit(2).execute());
    expect(found).toHaveLength(2);
    expect(entries).toBeLessThanOrEqual(2);
    expect(blocks).toBeLessThanOrEqual(2);
  });
});

describe('the manifest of a bundle with such indexes', () => {
  it('is of version 3, which older releases refuse, and of a lower one without them', async () => {
    const formatOf = async (fields: readonly string[]): Promise<unknown> => {
      const { server, reader } = await published({ fields: { products: fields } });
      reader.close();
      const pointer = await server.store.get('site/bundle');
      if (pointer.status !== 'found') throw new Error('There is no pointer');
      const name = decodePointer(pointer.bytes).bundles[0]?.manifest ?? '';
      const manifest = Buffer.from((await server.texts()).get(name) ?? '', 'latin1');
      expect(encodeManifest(decodeManifest(name, manifest)).toString()).toBe(new Uint8Array(manifest).toString());
      return (JSON.parse(manifest.toString()) as { format: unknown }).format;
    };
    expect(await formatOf(['tags'])).toBe(3);
    expect(await formatOf(['meta'])).toBe(3);
    expect(await formatOf(['year', 'stock'])).toBe(3);
    expect(await formatOf(['title', 'body'])).toBe(2);
    expect(await formatOf(['year'])).toBe(1);
  });
});
