import { describe, expect, it } from 'vitest';
import { AbortedError, InvalidOptionError, BudgetExceededError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { TestTable } from './test-table.ts';

const schema = {
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, size: { typeId: Types.uint32 }, weight: { typeId: Types.uint32 } },
  primaryKey: 'id',
  indexes: ['size'],
} as const;

async function items(count = 20_000): Promise<TestTable> {
  const table = new TestTable(schema);
  await table.commit(Array.from({ length: count }, (_, id) => ({ id, size: (id * 7919) % count, weight: id % 100 })));
  await table.merge();
  table.forgetBlocks();
  return table;
}

/** A store that does not answer. */
function never(): Promise<void> {
  return new Promise<void>(() => {});
}

interface Reads {
  count: number;
  bytes: number;
}

/** Counts what is read from the store, and holds it up as long as there is something to wait for. */
function watchReads(table: TestTable, wait?: () => Promise<void>): Reads {
  const reads = { count: 0, bytes: 0 };
  const get = table.driver.get.bind(table.driver);
  table.driver.get = async (key, options) => {
    await wait?.();
    const result = await get(key, options);
    reads.count++;
    if (result.status === 'found') reads.bytes += result.bytes.length;
    return result;
  };
  return reads;
}

async function refusal(running: Promise<unknown>): Promise<BudgetExceededError> {
  const error: unknown = await running.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(BudgetExceededError);
  return error as BudgetExceededError;
}

describe('a budget', () => {
  it('of requests ends a scan before the next one, and suggests a remedy', async () => {
    const table = await items();
    const reads = watchReads(table);
    const scan = table.query().where('weight', '=', 5).budget({ requests: 10 });
    const error = await refusal(scan.execute());
    expect(error).toMatchObject({
      code: 'BUDGET_EXCEEDED',
      limit: 'requests',
      used: { requests: 10, bytes: reads.bytes },
    });
    expect(reads.count).toBe(10);
    expect(error.message).toMatch(/'items'.*more than the 10 requests.*tests each for 'weight': an index/);
    const sorted = await refusal(table.query().orderBy('weight').limit(3).budget({ requests: 2 }).execute());
    expect(sorted.message).toContain("with an index on 'weight'");
  });

  it('of bytes is held exactly', async () => {
    const table = await items();
    const reads = watchReads(table);
    const error = await refusal(table.query().where('weight', '=', 5).budget({ bytes: 20_000 }).count());
    expect(error.limit).toBe('bytes');
    expect(error.used.bytes).toBe(reads.bytes);
    expect(reads.bytes).toBeLessThanOrEqual(20_000);
    expect(reads.bytes).toBeGreaterThan(15_000);
  });

  it('is enough if it is exactly what a query needs; blocks in memory are free', async () => {
    const table = await items();
    const reads = watchReads(table);
    const query = table.query().where('size', 'BETWEEN', [100, 130]);
    const rows = await query.execute();
    const needed = { requests: reads.count, bytes: reads.bytes };
    table.forgetBlocks();
    expect(await query.budget(needed).execute()).toEqual(rows);
    expect(await query.budget({ requests: 0, bytes: 0 }).execute()).toEqual(rows);
    table.forgetBlocks();
    await refusal(query.budget({ ...needed, requests: needed.requests - 1 }).execute());
    table.forgetBlocks();
    await refusal(query.budget({ ...needed, bytes: needed.bytes - 1 }).execute());
  });

  it('is each query its own, also where several run at once', async () => {
    const table = await items();
    const reads = watchReads(table);
    const query = (): ReturnType<TestTable['query']> => table.query().where('size', 'BETWEEN', [100, 130]);
    await query().execute();
    const alone = reads.count;
    table.forgetBlocks();
    reads.count = 0;
    const greedy = table.query().where('weight', '=', 5).budget({ requests: 5 });
    const [same, other, given] = await Promise.allSettled([
      query().budget({ requests: alone }).execute(),
      query().budget({ requests: alone }).execute(),
      greedy.execute(),
    ]);
    expect([same.status, other.status, given.status]).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    // What two queries wait for is read once.
    expect(reads.count).toBeLessThan(alone + 6);
    expect(await query().count()).toBe(31);
  });

  it('of time ends a query that the store does not answer', async () => {
    const table = await items();
    watchReads(table, never);
    const error = await refusal(table.query().where('weight', '=', 5).budget({ ms: 30 }).execute());
    expect(error.limit).toBe('ms');
    expect(error.used.ms).toBeGreaterThanOrEqual(29);
  });

  it('of time ends work in memory as well', async () => {
    const table = await items();
    table.register('slow', (row) => {
      const until = performance.now() + 1;
      while (performance.now() < until);
      return row['id'];
    });
    const startedMs = performance.now();
    const error = await refusal(table.query().where('slow', '=', -1).budget({ ms: 50 }).execute());
    expect(error.limit).toBe('ms');
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });

  it('holds for a loop, in which only reading counts', async () => {
    const table = await items();
    const reads = watchReads(table);
    let rows = 0;
    const loop = async (): Promise<void> => {
      for await (const row of table.query().budget({ requests: 10, ms: 10_000 })) if (row['id'] === rows) rows++;
    };
    const error = await refusal(loop());
    expect(error.limit).toBe('requests');
    expect(reads.count).toBe(10);
    expect(rows).toBeGreaterThan(100);
  });

  it('begins again with each run, and covers every way to run a query', async () => {
    const table = await items();
    const query = table.query().where('weight', '>=', 0).budget({ requests: 3 });
    for (const run of [
      () => query.execute(),
      () => query.count(),
      () => query.sum('size'),
      () => query.max('weight'),
      () => query.groupBy('weight').aggregate({ n: 'count' }),
      () => query.page({ size: 5000 }),
    ]) {
      table.forgetBlocks();
      expect((await refusal(run())).used.requests).toBe(3);
    }
    table.forgetBlocks();
    expect(await query.first()).toMatchObject({ id: 0 });
  });

  it('leaves the signal its own error', async () => {
    const table = await items();
    watchReads(table, never);
    const controller = new AbortController();
    const running = table.query().budget({ ms: 60_000 }).execute({ signal: controller.signal });
    controller.abort();
    await expect(running).rejects.toThrow(AbortedError);
  });

  it('refuses an invalid budget', async () => {
    const table = await items(1);
    for (const budget of [
      undefined,
      null,
      5,
      { requests: '3' },
      { requests: -1 },
      { ms: Number.NaN },
      { seconds: 1 },
    ]) {
      expect(() => table.query().budget(budget as never)).toThrow(InvalidOptionError);
    }
  });
});
