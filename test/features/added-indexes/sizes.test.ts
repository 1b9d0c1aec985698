/** The sizes of indexes, and the cost of asking for them. */
import { describe, expect, it } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { decodeBlock0 } from '../../../src/format/block0.ts';
import { block0Name } from '../../../src/format/object-names.ts';
import type { FoundObject } from '../../../src/storage/contract/driver.ts';
import type { ObservedRequest } from '../../../src/storage/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { ObservedDriver } from '../../../src/storage/wrap/observed-driver.ts';
import { bookOf, booksWith } from './shelf.ts';

const schema = booksWith('author', { fields: ['title', 'pages'], name: 'titles' });

/** A database with so many books, opened anew, and the objects that it reads from then on. */
async function opened(
  books: number,
): Promise<{ db: ReturnType<typeof StoreDb>; reads: string[]; driver: MemoryDriver }> {
  const driver = new MemoryDriver();
  const options = { dbPrefix: 'main', nodeId: 1, blockSizeBytes: 1024, logLevel: 'silent' } as const;
  const before = StoreDb({ ...options, driver });
  before.registerSchema(schema);
  await before.start();
  const batch = before.batch();
  for (let id = 0; id < books; id++) void batch.insert('books', bookOf(id));
  await batch.flush();
  await before.checkpoint();
  await before.stop();
  const reads: string[] = [];
  const onRequest = ({ kind, key }: ObservedRequest): void => {
    if (kind === 'get' && key.includes('/indexes/')) reads.push(key);
  };
  const db = StoreDb({ ...options, driver: new ObservedDriver(driver, { onRequest }) });
  db.registerSchema(schema);
  await db.start();
  reads.length = 0;
  return { db, reads, driver };
}

describe('sizes of indexes', () => {
  it('are reported only when asked for, and nothing is read otherwise', async () => {
    const { db, reads } = await opened(4000);
    const found = await db.indexes('books');
    expect(found.map((index) => 'sizeBytes' in index)).toEqual([false, false]);
    expect(await db.indexes('books', { sizes: false })).toEqual(found);
    expect(reads).toEqual([]);
    await db.stop();
  });

  it('are the bytes of all their blocks, for which no leaf is read', async () => {
    const { db, reads, driver } = await opened(4000);
    const sizes = (await db.indexes('books', { sizes: true })).map(({ sizeBytes }) => sizeBytes as number);
    const stored: number[] = [];
    const { inlined } = decodeBlock0(((await driver.get(`main/${block0Name}`)) as FoundObject).bytes);
    let blocks = 0;
    for (const name of ['author', 'titles']) {
      const { entries } = await driver.list(`main/indexes/books/${name}/`);
      // The roots lie in Block 0.
      const roots = inlined.filter((root) => root.name.startsWith(`indexes/books/${name}/`));
      const rootBytes = roots.map(({ block }) => Buffer.from(block, 'base64').length);
      stored.push([...rootBytes, ...entries.map(({ sizeBytes }) => sizeBytes)].reduce((sum, bytes) => sum + bytes, 0));
      blocks += entries.length;
    }
    expect(sizes).toEqual(stored);
    // The inner blocks below the roots, each once.
    expect(reads).toHaveLength(3);
    expect(new Set(reads).size).toBe(3);
    expect(blocks).toBeGreaterThan(50);
    await db.stop();
  });

  it('of a table without rows are 0, and cost nothing', async () => {
    const { db, reads } = await opened(0);
    for (const { sizeBytes } of await db.indexes('books', { sizes: true })) expect(sizeBytes).toBe(0);
    expect(reads).toEqual([]);
    await db.stop();
  });

  it('refuses an option that there is not', async () => {
    const { db } = await opened(1);
    await expect(db.indexes('books', { size: true } as never)).rejects.toThrow(/Option `size`.*sizes/);
    await db.stop();
  });
});
