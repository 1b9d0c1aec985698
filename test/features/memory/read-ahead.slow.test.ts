/** Read-ahead of scans, in requests, and in time if every request takes 30 ms. */
import { beforeAll, describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import { MemoryBudgetError } from '../../../src/base/errors.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import type { Batch } from '../../../src/batch/batch.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { Query } from '../../../src/query/query.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const readings = {
  name: 'readings',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    kind: { typeId: Types.varchar },
    value: { typeId: Types.uint32 },
    text: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: ['value'],
} as const;
const rows = 20_000;
const requestMs = 30;
/** The maximum of leaves that are read ahead. */
const depth = 32;

let stored: MemoryDriver;
/** Blocks of the table, but for the root, which is part of Block 0. */
let blocks = 0;

interface World {
  readonly environment: VirtualEnvironment;
  readonly db: Database;
  /** Runs a call, and tells how long it took and how many objects it read. */
  readonly measure: <T>(call: () => Promise<T>) => Promise<{ result: T; tookMs: number; gets: number; most: number }>;
}

async function open(driver: MemoryDriver, options: Partial<StoreDbOptions> = {}): Promise<World> {
  const environment = new VirtualEnvironment({ seed: 1 });
  const slow = new MemoryDriver();
  let running = 0;
  let most = 0;
  slow.get = async (key, given) => {
    most = Math.max(most, ++running);
    await sleep(environment, requestMs);
    running--;
    return driver.get(key, given);
  };
  slow.put = (key, body, given) => driver.put(key, body, given);
  slow.list = (prefix, given) => driver.list(prefix, given);
  const given = { dbPrefix: 'db', nodeId: 0, driver: slow, logLevel: 'silent', blockSizeBytes: 4096 } as const;
  const db = createDatabase({ ...given, writeForwardInterval: 86_400_000, ...options }, environment);
  db.registerSchema(readings);
  await environment.run(db.start());
  return {
    environment,
    db,
    measure: async (call) => {
      most = 0;
      const startedMs = environment.monotonicMs();
      const before = db.stats().requests.get;
      const result = await environment.run(call());
      return { result, tookMs: environment.monotonicMs() - startedMs, gets: db.stats().requests.get - before, most };
    },
  };
}

function row(id: number) {
  return { id, kind: `kind ${id % 4}`, value: (id * 7919) % rows, text: `reading ${id} `.repeat(8) };
}

beforeAll(async () => {
  stored = new MemoryDriver();
  const { db, environment } = await open(stored);
  const batch = db.batch();
  for (let id = 0; id < rows; id++) void batch.insert(readings, row(id));
  await environment.run(batch.flush());
  await environment.run(db.checkpoint());
  await environment.run(db.stop());
  const reader = await open(stored);
  blocks = (await reader.measure(() => reader.db.query(readings).where('text', '!=', null).count())).gets;
  expect(blocks).toBeGreaterThan(400);
}, 60_000);

/** A store with the same objects, to be changed. */
async function copied(): Promise<MemoryDriver> {
  const copy = new MemoryDriver();
  for (let after: string | undefined; ; ) {
    const { entries, more } = await stored.list('', after === undefined ? {} : { after });
    for (const { key } of entries) {
      const found = await stored.get(key);
      if (found.status === 'found') await copy.put(key, found.bytes, { if: 'any' });
      after = key;
    }
    if (!more) return copy;
  }
}

/** Has the inner nodes of the table in memory, and some of its leaves. */
async function innerNodes({ db, measure }: Pick<World, 'db' | 'measure'>): Promise<void> {
  for (let id = 0; id < rows; id += 1000) await measure(() => db.get(readings, id));
}

/** How long it takes to read so many blocks: the way to the first leaf, five steps until all are read ahead, and the rest. */
function maxMs(gets: number): number {
  return (8 + Math.log2(depth) + Math.ceil(gets / depth)) * requestMs;
}

describe('read-ahead', () => {
  it('hides the time that requests take: a scan of N leaves takes about N / 32 of them', async () => {
    const { db, measure } = await open(stored);
    const { result, tookMs, gets, most } = await measure(() => db.query(readings).execute());
    expect(result).toHaveLength(rows);
    expect(result[rows - 1]).toEqual(row(rows - 1));
    // Each block once.
    expect(gets).toBe(blocks);
    expect(db.stats().cache).toMatchObject({ blocks, misses: blocks });
    expect(tookMs).toBeLessThanOrEqual(maxMs(gets));
    expect(most).toBeGreaterThan(depth - 4);
    expect(most).toBeLessThanOrEqual(depth + 2);
  });

  it('does the same from the end, in a range, one by one, and for rows that are sorted afterwards', async () => {
    const queries: readonly ((db: Database) => Promise<unknown>)[] = [
      (db) => db.query(readings).orderBy('id', 'desc').execute(),
      (db) => db.query(readings).orderBy('text').execute(),
      (db) => db.query(readings).where('id', '>', 100).where('id', '<', 19_000).execute(),
      async (db) => {
        for await (const { id } of db.query(readings)) if (id === rows - 2) break;
      },
    ];
    for (const query of queries) {
      const { db, measure } = await open(stored);
      const { tookMs, gets } = await measure(() => query(db));
      expect(gets).toBeGreaterThan(blocks * 0.9);
      expect(gets).toBeLessThanOrEqual(blocks);
      expect(tookMs).toBeLessThanOrEqual(maxMs(gets));
    }
  });

  it('reads nothing that is not needed for a single row, or where the first leaf has all rows', async () => {
    const { db, measure } = await open(stored);
    expect((await measure(() => db.get(readings, 5000))).gets).toBe(2);
    expect((await measure(() => db.get(readings, 5100))).gets).toBe(1);
    expect((await measure(() => db.query(readings).where('id', '>=', 5100).limit(1).execute())).gets).toBe(0);
    expect((await measure(() => db.query(readings).where('id', '=', 5200).execute())).gets).toBe(1);
    expect((await measure(() => db.query(readings).where('id', 'IN', [5300, 5400]).execute())).gets).toBe(2);
    const { gets, result } = await measure(() => db.query(readings).limit(3).execute());
    expect(result).toHaveLength(3);
    expect(gets).toBeLessThanOrEqual(2);
  });

  it('reads as many leaves as a limit takes, and not one more', async () => {
    for (const limit of [10, 60, 200, 1000]) {
      const { db, measure } = await open(stored);
      await measure(() => db.get(readings, 0));
      const { gets, result } = await measure(() => db.query(readings).limit(limit).execute());
      expect(result).toHaveLength(limit);
      let needed = 0;
      // How many leaves it takes is what one by one it takes.
      const slow = await open(stored);
      await slow.measure(() => slow.db.get(readings, 0));
      for (let id = 0; id < limit; id++) {
        const { gets: read } = await slow.measure(() => slow.db.get(readings, id));
        needed += read;
      }
      expect(gets).toBe(needed);
    }
  });

  it('ends soon after a limit that few rows of each leaf satisfy', async () => {
    const { db, measure } = await open(stored);
    const all = await measure(() => db.query(readings).where('kind', '=', 'kind 1').limit(100).execute());
    expect(all.result).toHaveLength(100);
    // 400 rows of some 33 in a leaf: 13 leaves, and what the way to them takes.
    expect(all.gets).toBeLessThan(22);
  });

  it('is done in the leaves of an index too', async () => {
    const { db, measure } = await open(stored);
    const { tookMs, result } = await measure(() => db.query(readings).where('value', '>=', 0).count());
    expect(result).toBe(rows);
    expect(tookMs).toBeLessThan(10 * requestMs);
    const ordered = await measure(() => db.query(readings).orderBy('value').select('value').limit(3000).execute());
    expect(ordered.result.map(({ value }) => value)).toEqual(Array.from({ length: 3000 }, (_, i) => i));
  });

  it('looks rows up together where each run of an index is one entry: in descending order, and with IN', async () => {
    const descending = await open(stored);
    const latest = await descending.measure(() =>
      descending.db.query(readings).orderBy('value', 'desc').limit(100).execute(),
    );
    expect(latest.result.map(({ value }) => value)).toEqual(Array.from({ length: 100 }, (_, i) => rows - 1 - i));
    // 64 rows, then 36, and the leaves of the index before and between them.
    expect(latest.tookMs).toBeLessThanOrEqual(8 * requestMs);
    expect(latest.gets).toBeLessThanOrEqual(110);

    const apart = Array.from({ length: 100 }, (_, i) => i * 199);
    const several = await open(stored);
    await innerNodes(several);
    const found = await several.measure(() => several.db.query(readings).where('value', 'IN', apart).execute());
    expect(found.result).toHaveLength(100);
    // Each value has a leaf of the index and one of the table.
    expect(found.gets).toBeGreaterThan(100);
    expect(found.tookMs).toBeLessThanOrEqual(12 * requestMs);

    const few = await open(stored);
    await innerNodes(few);
    const limited = await few.measure(() =>
      few.db.query(readings).where('value', 'IN', apart).orderBy('value').limit(3).execute(),
    );
    expect(limited.result.map(({ value }) => value)).toEqual([0, 199, 398]);
    // A leaf of each tree for each of the three values.
    expect(limited.gets).toBeLessThanOrEqual(6);
  });

  it('looks up no more rows by an index than are wanted, where all of them match', async () => {
    const { db, measure } = await open(stored);
    await innerNodes({ db, measure });
    for (const limit of [1, 2, 5]) {
      const from = 1000 * limit;
      const { gets, result } = await measure(() =>
        db.query(readings).where('value', '>=', from).orderBy('value').limit(limit).execute(),
      );
      expect(result).toHaveLength(limit);
      // A leaf of the index, and a leaf of the table for each row.
      expect(gets).toBeLessThanOrEqual(limit + 1);
    }
  });

  it('looks for a first row that passes a test without needless lookups', async () => {
    const apart = Array.from({ length: 100 }, (_, i) => i * 199);
    for (const direction of ['asc', 'desc'] as const) {
      const world = await open(stored);
      await innerNodes(world);
      const { db, measure } = world;
      const { gets, result } = await measure(() =>
        db
          .query(readings)
          .where('value', 'IN', apart)
          .where('text', '!=', 'none')
          .orderBy('value', direction)
          .limit(1)
          .execute(),
      );
      expect(result).toHaveLength(1);
      expect(gets).toBeLessThanOrEqual(3);
    }
  });

  it('looks rows up together when a large pending commit is not in memory', async () => {
    const changed = await copied();
    const options = { mergePolicy: { minCommits: 1000 }, maxMemoryBytes: 4 * 1024 * 1024 };
    const { db, environment } = await open(changed, options);
    const batch = db.batch();
    for (let id = 0; id < rows; id += 2) void batch.upsert(readings, { ...row(id), text: 'x'.repeat(1000) });
    const put = changed.put.bind(changed);
    changed.put = (key, body, given) =>
      key.includes('/data') ? Promise.reject(new Error('full')) : put(key, body, given);
    await environment.run(batch.flush());
    const values = [7919, 5000, 123, 9000];
    for (const direction of ['asc', 'desc'] as const) {
      const found = await environment.run(
        db.query(readings).where('value', 'IN', values).orderBy('value', direction).execute(),
      );
      const expected = Array.from({ length: rows }, (_, id) => id).filter((id) => values.includes(row(id).value));
      expect(found.map(({ id }) => id).toSorted((a, b) => a - b)).toEqual(expected);
      for (const { id, text } of found) expect(text?.startsWith('xx')).toBe(id % 2 === 0);
    }
  });

  it('is done where rows are made of the entries of an index, one chunk of them after the other', async () => {
    const { db, measure } = await open(stored);
    const { tookMs, gets, result } = await measure(() => db.query(readings).select('value').orderBy('value').execute());
    expect(result).toHaveLength(rows);
    expect(gets).toBeGreaterThan(30);
    expect(tookMs).toBeLessThanOrEqual(maxMs(gets));
  });

  it('looks up the rows together that a batch updates, to flush it and to overlay it', async () => {
    const changed = await copied();
    const updates = 300;
    const opened = async (): Promise<World & { readonly batch: Batch }> => {
      const world = await open(changed, { mergePolicy: { minCommits: 1000 } });
      const batch = world.db.batch();
      for (let i = 0; i < updates; i++) void batch.update(readings, { id: i * 66, kind: 'new' });
      return { ...world, batch };
    };
    const flushed = await opened();
    const flush = await flushed.measure(() => flushed.batch.flush());
    expect(flush.gets).toBeGreaterThan(250);
    expect(flush.tookMs).toBeLessThanOrEqual(16 * requestMs);
    const { db, batch, measure } = await opened();
    const overlaid = await measure(() =>
      db.query(readings).where('kind', '=', 'new').overlay(batch).limit(1).execute(),
    );
    expect(overlaid.result).toHaveLength(1);
    expect(overlaid.tookMs).toBeLessThanOrEqual(20 * requestMs);
  });

  it('reads the rows that triggers are shown while those before them have their turn', async () => {
    const { db, measure } = await open(await copied());
    const shown: string[] = [];
    db.registerTrigger('readings', '*', async (document, _batch, _api, operation) => {
      shown.push([operation, document['id'], document['kind']].join(' '));
    });
    const count = 300;
    const { gets, tookMs } = await measure(async () => {
      const batch = db.batch();
      for (let i = 0; i < count; i++) {
        if (i % 2 === 0) void batch.update(readings, { id: i * 66, kind: 'new' });
        else void batch.delete(readings, i * 66);
      }
      await batch.flush();
    });
    expect(shown.slice(0, 3)).toEqual(['update 0 new', `delete 66 kind ${66 % 4}`, 'update 132 new']);
    expect(shown).toHaveLength(count);
    expect(gets).toBeGreaterThan(150);
    expect(tookMs).toBeLessThanOrEqual(30 * requestMs);
  });

  it('looks for many values of a unique index together', async () => {
    const driver = new MemoryDriver();
    const accounts = {
      name: 'accounts',
      version: 1,
      fields: { id: { typeId: Types.uint32 }, code: { typeId: Types.varchar } },
      primaryKey: 'id',
      indexes: [{ fields: ['code'], unique: true }],
    } as const;
    const codeOf = (id: number): string => `${String((id * 7919) % 60_000).padStart(6, '0')} of an account`;
    const begin = async (): Promise<World> => {
      const world = await open(driver);
      world.db.registerSchema(accounts);
      return world;
    };
    const first = await begin();
    const load = first.db.batch();
    for (let id = 0; id < 20_000; id++) void load.insert(accounts, { id, code: codeOf(id) });
    await first.environment.run(load.flush().then(() => first.db.checkpoint()));
    const { db, measure } = await begin();
    const batch = db.batch();
    for (let id = 20_000; id < 20_500; id++) void batch.insert(accounts, { id, code: codeOf(id) });
    const { gets, tookMs } = await measure(() => batch.flush());
    expect(gets).toBeGreaterThan(100);
    expect(tookMs).toBeLessThanOrEqual(10 * requestMs);
    const twice = db.batch();
    void twice.insert(accounts, { id: 30_000, code: codeOf(5) });
    await expect(measure(() => twice.flush())).rejects.toThrow(/unique/);
  });

  it("counts in a budget the reads for the overlay of a batch, like the query's own reads", async () => {
    const { db, measure } = await open(stored);
    const batch = db.batch();
    for (let id = 0; id < rows; id += 1000) void batch.update(readings, { id, kind: 'new' });
    const query = db.query(readings).where('id', '=', 5).overlay(batch);
    await innerNodes({ db, measure });
    const fresh = await open(stored);
    const again = fresh.db.batch();
    for (let id = 0; id < rows; id += 1000) void again.update(readings, { id, kind: 'new' });
    const refused = await fresh.measure(async () => {
      const tight = fresh.db.query(readings).where('id', '=', 5).overlay(again).budget({ requests: 10 });
      return tight.execute().catch((error: unknown) => error);
    });
    expect(refused.result).toMatchObject({ code: 'BUDGET_EXCEEDED', limit: 'requests', used: { requests: 10 } });
    expect((refused.result as Error).message).toContain('overlay');
    // Those are in memory here.
    expect((await measure(() => query.budget({ requests: 0 }).execute())).result).toHaveLength(1);
    const roomy = fresh.db.query(readings).where('id', '=', 5).overlay(again).budget({ requests: 25 });
    expect((await fresh.measure(() => roomy.execute())).result).toMatchObject([{ id: 5 }]);
  });

  it('reads the blocks that a merge changes together, of rows and of an index', async () => {
    const changed = await copied();
    const writer = await open(changed, { mergePolicy: { minCommits: 1000 } });
    const batch = writer.db.batch();
    const updates = 300;
    for (let i = 0; i < updates; i++) void batch.upsert(readings, { ...row(i * 67), value: 30_000 + i * 61 });
    await writer.environment.run(batch.flush());
    await writer.environment.run(writer.db.stop());
    const { db, measure } = await open(changed, { mergePolicy: { minCommits: 1000 } });
    const merge = await measure(() => db.checkpoint());
    // Puts are not slowed down here. 16 are read at a time, and not all inner nodes at once.
    expect(merge.gets).toBeGreaterThan(300);
    expect(merge.tookMs).toBeLessThanOrEqual(merge.gets * 0.2 * requestMs);
    const changedRows = await measure(() => db.query(readings).where('value', '>=', 30_000).count());
    expect(changedRows.result).toBe(updates);
  });

  it('reads the ends of many ranges together, to count', async () => {
    const { db, measure } = await open(stored);
    await innerNodes({ db, measure });
    const values = Array.from({ length: 100 }, (_, i) => i * 199);
    const counted = await measure(() => db.query(readings).where('value', 'IN', values).count());
    expect(counted.result).toBe(100);
    expect(counted.tookMs).toBeLessThanOrEqual(14 * requestMs);
    const ranges = values.map((from) => ['id', 'BETWEEN', [from, from + 100]] as const);
    const other = await open(stored);
    const joined = await other.measure(() =>
      other.db
        .query(readings)
        .where(({ or, is }) => or(...ranges.map(([field, operator, value]) => is(field, operator, [...value]))))
        .count(),
    );
    expect(joined.result).toBe(100 * 101);
    expect(joined.tookMs).toBeLessThanOrEqual(14 * requestMs);
  });

  it('begins the branches of a union together', async () => {
    const world = await open(stored);
    await innerNodes(world);
    const { db, measure } = world;
    // In turns by an index and by primary keys, so that no one access has all of them.
    const starts = Array.from({ length: 24 }, (_, i) => i * 800);
    const query = (): Query =>
      db
        .query('readings')
        .where(({ or, and, is }) =>
          or(
            ...starts.map((at, i) =>
              i % 2 === 0 ? is('value', '=', at) : and(is('id', '>=', at), is('id', '<', at + 3)),
            ),
          ),
        );
    expect((await query().explain()).access).toBe('union');
    const { result, tookMs, gets } = await measure(() => query().execute());
    const expected = Array.from({ length: rows }, (_, id) => row(id)).filter(({ id, value }) => {
      return starts.some((at, i) => (i % 2 === 0 ? value === at : id >= at && id < at + 3));
    });
    expect(result).toEqual(expected);
    expect(gets).toBeGreaterThan(20);
    expect(tookMs).toBeLessThanOrEqual(16 * requestMs);
  });

  it('looks rows up together that commits changed which are not merged, to count', async () => {
    const changed = await copied();
    // Another one than that which counts: a flush reads the rows that it changes.
    const writer = await open(changed, { mergePolicy: { minCommits: 1000 } });
    const batch = writer.db.batch();
    for (let i = 0; i < 300; i++) void batch.upsert(readings, { ...row(i * 67), value: 4_000_000_000 });
    for (let i = 0; i < 50; i++) void batch.upsert(readings, row(rows + i));
    await writer.environment.run(batch.flush());
    const { db, measure } = await open(changed, { nodeId: 1, mergePolicy: { minCommits: 1000 } });
    const { result, tookMs, gets } = await measure(() => db.query(readings).count());
    expect(result).toBe(rows + 50);
    expect(gets).toBeGreaterThan(250);
    expect(tookMs).toBeLessThanOrEqual(12 * requestMs);
  });

  it('holds no more than the budget has room for', async () => {
    const { db, measure } = await open(stored, { maxMemoryBytes: 1024 * 1024, cacheBlockSize: 4096 });
    const { most, gets, result } = await measure(() => db.query(readings).where('text', '!=', null).count());
    expect(result).toBe(rows);
    expect(most).toBeGreaterThan(8);
    // An eighth of half a MiB, in blocks of some 4 KiB, and the one that is waited for.
    expect(most).toBeLessThanOrEqual(18);
    expect(gets).toBe(blocks);
    const both = await measure(() =>
      Promise.all([1, 2, 3].map((id) => db.query(readings).where('text', '!=', `${id}`).count())),
    );
    expect(both.result).toEqual([rows, rows, rows]);
    expect(both.most).toBeLessThanOrEqual(22);
  });

  it('has a loop take rows in the order of an index where there is no room to sort them', async () => {
    const { db, environment } = await open(stored, { maxMemoryBytes: 1024 * 1024, cacheBlockSize: 4096 });
    // To sort all of them takes less than to look them up, but they would have to be held.
    await expect(environment.run(db.query(readings).orderBy('value').execute())).rejects.toThrow(MemoryBudgetError);
    for (const direction of ['asc', 'desc'] as const) {
      const loop = async (): Promise<number> => {
        let next = 0;
        for await (const { value } of db.query(readings).orderBy('value', direction)) {
          if (value !== (direction === 'asc' ? next : rows - 1 - next)) throw new Error(`${next} is ${value}`);
          next++;
        }
        return next;
      };
      expect(await environment.run(loop())).toBe(rows);
    }
    const unindexed = async (): Promise<void> => {
      for await (const { id } of db.query(readings).orderBy('text')) expect(id).toBeLessThan(rows);
    };
    await expect(environment.run(unindexed())).rejects.toThrow(MemoryBudgetError);
    expect(db.stats().memory?.scratchBytes).toBe(0);
  });

  it('has a loop sort few rows', async () => {
    const { db, environment, measure } = await open(stored);
    await environment.run(db.query(readings).where('text', '!=', null).count());
    const { gets, result } = await measure(async () => {
      const ids: unknown[] = [];
      for await (const { id } of db.query(readings).where('id', '<', 500).orderBy('value')) ids.push(id);
      return ids;
    });
    // All rows are in memory, and of the index nothing: it is not read.
    expect(gets).toBe(0);
    const expected = Array.from({ length: 500 }, (_, id) => row(id)).toSorted((a, b) => a.value - b.value);
    expect(result).toEqual(expected.map(({ id }) => id));
  });

  it('gives the error of a leaf that cannot be read to the readers that reach it, and to nobody else', async () => {
    const broken = new MemoryDriver();
    const get = stored.get.bind(stored);
    let seen = 0;
    broken.get = async (key, options) => {
      if (key.includes('readings') && ++seen > 40) throw new Error('out of order');
      return get(key, options);
    };
    const { db, measure } = await open(broken);
    const { result } = await measure(() => db.query(readings).limit(100).execute());
    expect(result).toHaveLength(100);
    expect(seen).toBeGreaterThan(2);
    await expect(measure(() => db.query(readings).execute())).rejects.toThrow('out of order');
  });
});
