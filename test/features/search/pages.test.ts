/** Pages of searches without an order: every row once, in the order of the scores, while rows and scores change. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/file/file-driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';

const articles = defineSchema({
  name: 'articles',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    body: { typeId: Types.varchar },
    section: { typeId: Types.uint8 },
  },
  primaryKey: 'id',
  indexes: [{ fields: ['title', 'body'], text: { weights: { title: 3 } } }],
});
type Article = { readonly id: number; readonly title: string; readonly body: string; readonly section: number };
const words = 'red white wine glass cellar grape cask coffee tea oak'.split(' ');
const random = new SeededRandom(31);

function articleOf(id: number): Article {
  const text = (most: number): string =>
    Array.from({ length: random.integer(1, most) }, () => random.pick(words)).join(' ');
  return { id, title: text(3), body: text(20), section: id % 3 };
}

/** A row of ten words, of which so many are `wine`. */
function wines(id: number, count: number): Article {
  const text = Array.from({ length: 10 }, (_, i) => (i < count ? 'wine' : 'other')).join(' ');
  return { id, title: 'title', body: text, section: 0 };
}

async function opened(
  rows: readonly Article[],
  driver: MemoryDriver | FileDriver = new MemoryDriver(),
): Promise<Database> {
  const db = StoreDb({ driver, dbPrefix: 'db', nodeId: 1, logLevel: 'silent' });
  db.registerSchema(articles);
  await db.start();
  const batch = db.batch();
  for (const row of rows) await batch.insert(articles, row);
  await batch.flush();
  return db;
}

interface Paged {
  page(options: { size: number; after?: string | undefined }): Promise<{ rows: object[]; next: string | undefined }>;
}

/** The ids on all pages. `between`: runs between two of them. */
async function pagesOf(query: Paged, size: number, between?: (page: number) => Promise<void>): Promise<number[][]> {
  const pages: number[][] = [];
  let after: string | undefined;
  do {
    const { rows, next } = await query.page({ size, after });
    pages.push(rows.map((row) => (row as Article).id));
    after = next;
    if (after !== undefined) await between?.(pages.length);
  } while (after !== undefined);
  return pages;
}

async function write(db: Database, rows: readonly Article[], deleted: readonly number[] = []): Promise<void> {
  const batch = db.batch();
  for (const row of rows) await batch.upsert(articles, row);
  for (const id of deleted) await batch.delete(articles, id);
  await batch.flush();
}

describe('the pages of a search', () => {
  it.each(['memory', 'a folder'])('are the rows of the whole search, in %s', async (place) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'storedb-pages-'));
    const driver = place === 'memory' ? new MemoryDriver() : new FileDriver({ path: folder });
    const db = await opened(
      Array.from({ length: 120 }, (_, i) => articleOf(i + 1)),
      driver,
    );
    await db.checkpoint();
    await write(
      db,
      Array.from({ length: 20 }, (_, i) => articleOf(i * 7 + 1)),
    );
    const all = db.query(articles);
    for (const query of [
      all.search('wine'),
      all.search('red wine'),
      all.search('oak tea', { match: 'any' }),
      all.search('"red wine"'),
      all.search('gl', { prefix: true }).where('section', '=', 1),
      all.search('wine -oak').select('id'),
      all.search('nothing'),
    ]) {
      const expected = (await query.execute()).map(({ id }) => id);
      for (const size of [1, 4, expected.length + 1]) {
        expect((await pagesOf(query, size)).flat()).toEqual(expected);
      }
    }
    await db.stop();
    rmSync(folder, { recursive: true });
  });

  it('show every row once whose place among the others stays, although all scores change', async () => {
    const rows = Array.from({ length: 9 }, (_, i) => wines(i + 1, 9 - i));
    for (const more of [1, -1]) {
      const db = await opened([...rows, ...Array.from({ length: 40 }, (_, i) => wines(1000 + i, 0))]);
      const query = db.query(articles).search('wine');
      // More rows without the word raise all scores, and fewer lower them.
      const pages = await pagesOf(query, 2, async (page) => {
        const others = Array.from({ length: 8 }, (_, i) => (more > 0 ? 2000 : 1000) + page * 10 + i);
        if (more > 0)
          await write(
            db,
            others.map((id) => wines(id, 0)),
          );
        else
          await write(
            db,
            [],
            others.filter((id) => id < 1040),
          );
      });
      expect(pages).toEqual([[1, 2], [3, 4], [5, 6], [7, 8], [9]]);
      await db.stop();
    }
  });

  it('leave out new rows before the bookmark, show those behind it, and go on where its row was deleted', async () => {
    const rows = Array.from({ length: 8 }, (_, i) => wines(10 * (i + 1), 9 - i));
    const db = await opened([...rows, ...Array.from({ length: 40 }, (_, i) => wines(1000 + i, 0))]);
    const query = db.query(articles).search('wine');
    const first = await query.page({ size: 3 });
    expect(first.rows.map(({ id }) => id)).toEqual([10, 20, 30]);
    await write(db, [wines(5, 9), wines(15, 8), wines(25, 8), wines(45, 6)]);
    const second = await query.page({ size: 3, after: first.next });
    expect(second.rows.map(({ id }) => id)).toEqual([40, 45, 50]);
    await write(db, [], [50]);
    const third = await query.page({ size: 3, after: second.next });
    expect(third.rows.map(({ id }) => id)).toEqual([60, 70, 80]);
    expect(third.next).toBeUndefined();
    await db.stop();
  });

  it('find the bookmark also where many rows came before it', async () => {
    const rows = Array.from({ length: 6 }, (_, i) => wines(i + 1, 6 - i));
    const db = await opened(rows);
    const query = db.query(articles).search('wine');
    const first = await query.page({ size: 2 });
    await write(
      db,
      Array.from({ length: 30 }, (_, i) => wines(100 + i, 9)),
    );
    expect((await query.page({ size: 9, after: first.next })).rows.map(({ id }) => id)).toEqual([3, 4, 5, 6]);
    await db.stop();
  });

  it('take bookmarks of the same search alone', async () => {
    const db = await opened(Array.from({ length: 5 }, (_, i) => wines(i + 1, 5 - i)));
    const query = db.query(articles);
    const { next } = await query.search('wine').page({ size: 2 });
    const other = 'is of a query with other conditions or another order';
    const refused = async (asked: Paged, why: string, after = next): Promise<void> => {
      await expect(asked.page({ size: 2, after })).rejects.toThrow(why);
    };
    await refused(query.search('wines'), other);
    await refused(query.search('wine', { prefix: true }), other);
    await refused(query.search('wine').where('id', '>', 1), other);
    await refused(query.search('wine').orderBy('id'), other);
    await refused(query, other);
    await refused(query.search('wine'), 'is damaged', `${next}x`);
    await refused(query.search('wine'), other, (await query.search('wine').orderBy('id').page({ size: 2 })).next);
    await db.stop();
  });

  it('are those of a snapshot, a transaction and an overlay', async () => {
    const db = await opened(Array.from({ length: 5 }, (_, i) => wines(i + 1, 5 - i)));
    const batch = db.batch();
    await batch.insert(articles, wines(9, 9));
    expect((await pagesOf(db.query(articles).search('wine').overlay(batch), 2)).flat()).toEqual([9, 1, 2, 3, 4, 5]);
    const ids = await db.transaction(async (tx) => {
      await tx.insert(articles, wines(8, 8));
      return (await pagesOf(tx.query(articles).search('wine'), 2)).flat();
    });
    expect(ids).toEqual([8, 1, 2, 3, 4, 5]);
    const snapshot = await db.snapshot();
    await write(db, [wines(7, 9)]);
    expect((await pagesOf(snapshot.query(articles).search('wine'), 2)).flat()).toEqual([8, 1, 2, 3, 4, 5]);
    await snapshot.release();
    await db.stop();
  });
});
