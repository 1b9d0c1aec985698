/** Indexes on texts that a merge builds in several rounds, since their entries take more memory than it has. */
import { expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';

const articles = {
  name: 'articles',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, title: { typeId: Types.varchar }, body: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [{ fields: ['title', 'body'], text: { language: 'en' } }],
} as const;

const rows = 3000;

/** Words of which some are in many texts, and most in few. */
function word(random: SeededRandom): string {
  return `word${Math.floor(random.next() ** 4 * 20_000)}`;
}

function textOf(id: number, round: number, words: number): string {
  const random = new SeededRandom(`${id} ${round}`);
  return Array.from({ length: words }, () => word(random)).join(' ');
}

function article(id: number, round = 0): { id: number; title: string; body: string } {
  return { id, title: textOf(id, round, 3), body: textOf(-id, round, 25) };
}

async function open(maxMemoryBytes: number): Promise<Database> {
  const driver = new MemoryDriver();
  const db = StoreDb({ driver, dbPrefix: 'db', nodeId: 0, logLevel: 'silent', maxMemoryBytes, blockSizeBytes: 4096 });
  db.registerSchema(articles);
  await db.start();
  return db;
}

/** Returns the best rows of some searches, and expects that `verify()` finds nothing. */
async function found(db: Database): Promise<unknown> {
  expect(await db.verify()).toMatchObject({ ok: true });
  const searches = ['word0', 'word1 word3', 'word17', 'word0 word2 word40', 'word4711'];
  return Promise.all(searches.map((text) => db.query(articles).search(text).limit(20).execute()));
}

/** Loads, changes and deletes rows. */
async function history(maxMemoryBytes: number): Promise<readonly unknown[]> {
  const db = await open(maxMemoryBytes);
  await db.load(
    articles,
    Array.from({ length: rows }, (_, i) => article((i * 7919) % rows)),
  );
  await db.checkpoint();
  const loaded = await found(db);
  for (const round of [1, 2]) {
    const batch = db.batch();
    for (let id = round; id < rows; id += 3) void batch.upsert(articles, article(id, round));
    for (let id = 0; id < rows; id += 7) void batch.upsert(articles, article(rows * round + id, round));
    for (let id = 0; id < rows; id += 21) void batch.delete(articles, id + round * 3);
    await batch.flush();
  }
  await db.checkpoint();
  const changed = await found(db);
  await db.stop();
  return [loaded, changed];
}

it('have the words of all rows, and rank them alike', { timeout: 120_000 }, async () => {
  expect(await history(2 * 1024 * 1024)).toEqual(await history(1024 ** 3));
});
