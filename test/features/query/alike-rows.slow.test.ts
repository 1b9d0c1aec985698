/** Rows whose long texts have a common beginning, so that an index does not distinguish them: in order, and within the budget. */
import { beforeAll, describe, expect, it } from 'vitest';
import { realEnvironment, sleep } from '../../../src/base/env.ts';
import { AbortedError, MemoryBudgetError } from '../../../src/base/errors.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

const pages = {
  name: 'pages',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['text'],
} as const;
const rows = 4_000;
const alike = 'x'.repeat(1100);

/** Each number once, in no order. */
function rankOf(id: number): number {
  return (id * 1_777) % rows;
}

function textOf(id: number): string {
  return `${alike}${String(rankOf(id)).padStart(6, '0')}${'y'.repeat(1000)}`;
}

const driver = new MemoryDriver();

async function open(maxMemoryBytes: number): Promise<Database> {
  const db = createDatabase({ dbPrefix: 'db', nodeId: 0, driver, maxMemoryBytes, logLevel: 'silent' }, realEnvironment);
  db.registerSchema(pages);
  await db.start();
  return db;
}

/** The numbers of the rows that a call gives. */
async function ranks(call: PromiseLike<readonly { readonly id: number }[]>): Promise<number[]> {
  return (await call).map(({ id }) => rankOf(id));
}

const ascending = Array.from({ length: rows }, (_, i) => i);

beforeAll(async () => {
  const db = await open(256 * 1024 * 1024);
  for (let from = 0; from < rows; from += 1000) {
    const batch = db.batch();
    for (let id = from; id < from + 1000; id++) void batch.insert(pages, { id, text: textOf(id) });
    await batch.flush();
  }
  await db.checkpoint();
  await db.stop();
});

describe('Rows whose texts begin alike', () => {
  it('come in order where there is room for all of them', async () => {
    const db = await open(256 * 1024 * 1024);
    expect(await ranks(db.query(pages).orderBy('text').limit(rows).execute())).toEqual(ascending);
    const last = db.query(pages).orderBy('text', 'desc').offset(3).limit(20);
    expect(await ranks(last.execute())).toEqual(ascending.toReversed().slice(3, 23));
    const batch = db.batch();
    for (const id of [5, 50, 500]) void batch.delete(pages, id);
    await batch.flush();
    const gone = new Set([5, 50, 500].map(rankOf));
    const left = ascending.filter((rank) => !gone.has(rank));
    expect(await ranks(db.query(pages).orderBy('text').limit(rows).execute())).toEqual(left);
    expect(await ranks(db.query(pages).orderBy('text').limit(1_000).execute())).toEqual(left.slice(0, 1_000));
    await db.stop();
  });

  it('are not read on once the query is given up', async () => {
    const environment = realEnvironment;
    const slow = new MemoryDriver();
    const reads = { count: 0 };
    slow.get = async (key, options) => {
      reads.count++;
      await sleep(environment, 3);
      return driver.get(key, options);
    };
    slow.list = (prefix, options) => driver.list(prefix, options);
    const options = { dbPrefix: 'db', nodeId: 1, driver: slow, role: 'replica', polling: 'onDemand' } as const;
    const db = createDatabase({ ...options, maxMemoryBytes: 4 * 1024 * 1024, logLevel: 'silent' }, environment);
    db.registerSchema(pages);
    await db.start();
    const controller = new AbortController();
    const running = db.query(pages).orderBy('text').limit(5).execute({ signal: controller.signal });
    while (reads.count < 20) await sleep(environment, 1);
    controller.abort();
    await expect(running).rejects.toThrow(AbortedError);
    await sleep(environment, 50);
    const after = reads.count;
    await sleep(environment, 200);
    expect(reads.count).toBe(after);
    expect(db.stats().memory?.scratchBytes).toBe(0);
    await db.stop();
  });

  it('are held only as far as they are wanted, and not beyond the budget', async () => {
    const db = await open(4 * 1024 * 1024);
    expect(await ranks(db.query(pages).orderBy('text').limit(10).execute())).toEqual(ascending.slice(0, 10));
    for await (const { id } of db.query(pages).orderBy('text').limit(5)) expect(rankOf(id)).toBeLessThan(5);
    const few = db.query(pages).orderBy('text').limit(1_900);
    await expect(few.execute()).rejects.toThrow(MemoryBudgetError);
    await expect(few.execute()).rejects.toThrow(/maxMemoryBytes/);
    const all = async (): Promise<void> => {
      for await (const row of db.query(pages).orderBy('text')) expect(row).toBeUndefined();
    };
    await expect(all()).rejects.toThrow(MemoryBudgetError);
    // Nothing of it stays taken.
    expect(await ranks(db.query(pages).orderBy('text', 'desc').limit(2).execute())).toEqual([rows - 1, rows - 2]);
    await db.stop();
  });
});
