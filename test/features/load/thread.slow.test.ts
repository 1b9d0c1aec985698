/** `db.load()` with option `thread`: another thread sorts the rows and makes blocks, and all else is as it is without. */
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { hangs, refused, ScriptedDriver } from '../protocol/scripted-driver.ts';

const threads = createRequire(import.meta.url)('node:worker_threads') as { Worker: typeof Worker };

const items = {
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar }, group: { typeId: Types.int32 } },
  primaryKey: 'id',
  indexes: ['group'],
} as const;
const people = { ...items, name: 'people', indexes: [{ fields: ['text'], unique: true }] } as const;
const others = [
  { ...items, name: 'first' },
  { ...items, name: 'second' },
] as const;

interface Item {
  readonly id: number;
  readonly text: string;
  readonly group: number;
}

const count = 4000;

function item(id: number): Item {
  return { id, text: `text ${id}`.padEnd(12 + (id % 40), '.'), group: id % 10 };
}

function inOrder(): Item[] {
  return Array.from({ length: count }, (_, i) => item(i));
}

function inNoOrder(): Item[] {
  return Array.from({ length: count }, (_, i) => item((i * 7919) % count));
}

/** The threads that were started, and the number of those that have ended. */
let started: Worker[] = [];
let ended = 0;

function note(worker: Worker): void {
  started.push(worker);
  worker.on('exit', () => ended++);
}

beforeEach(() => {
  started = [];
  ended = 0;
  process.on('worker', note);
});

const open: Database[] = [];

afterEach(async () => {
  process.off('worker', note);
  await Promise.all(open.splice(0).map((db) => db.stop()));
});

interface Opened {
  readonly db: Database;
  readonly store: MemoryDriver;
  readonly driver: ScriptedDriver;
}

/** A database with so little memory that some hundred rows fill a buffer. */
async function opened(options: Partial<StoreDbOptions> = {}, store = new MemoryDriver()): Promise<Opened> {
  const driver = new ScriptedDriver(store, 'db');
  const db = StoreDb({
    dbPrefix: 'db',
    nodeId: 0,
    driver,
    maxMemoryBytes: 1024 * 1024,
    blockSizeBytes: 4096,
    logLevel: 'silent',
    polling: 'interval',
    mergePolicy: { minCommits: 100 },
    ...options,
  });
  for (const schema of [items, people, ...others]) db.registerSchema(schema);
  await db.start();
  open.push(db);
  driver.takeLines();
  return { db, store, driver };
}

/** Uses up the threads of an instance by loads that wait, runs work, and gives the loads up. */
async function withoutThreads<T>({ db, driver }: Opened, work: () => Promise<T>): Promise<T> {
  const end = new AbortController();
  const before = started.length;
  async function* waiting(): AsyncGenerator<Item, void, undefined> {
    yield* inOrder().slice(0, 1500);
    await hangs();
  }
  const loads = others.map((table) =>
    db.load(table, waiting(), { thread: true, signal: end.signal }).catch((error: unknown) => error),
  );
  await expect.poll(() => started.length).toBe(before + 2);
  // They make no more requests.
  driver.takeLines();
  try {
    return await work();
  } finally {
    end.abort();
    for (const load of loads) expect(await load).toMatchObject({ code: 'ABORTED' });
    expect(started.length).toBe(before + 2);
  }
}

/** Requests until the commit, without the random parts of names, and the sizes of what was put. */
function requestsOf({ driver }: Opened): string[] {
  const lines = driver.takeLines();
  const before = lines.slice(
    0,
    lines.findIndex((line) => line.startsWith('put committed')),
  );
  const names = before.map((line) => line.replaceAll(/[0-9a-f]{16}-[0-9a-f-]{36}/g, 'run'));
  const puts = driver.bodies.splice(0).filter(({ key }) => key.startsWith('staged/'));
  return [...names, ...puts.map(({ body }) => `${body.length} bytes`)]
    .filter((line) => !/ (?:block0|committed)/.test(line))
    .toSorted();
}

async function rowsIn(db: Database, table: string): Promise<unknown[]> {
  const rows: unknown[] = [];
  for await (const row of db.query(table)) rows.push(row);
  return rows;
}

async function expectItems({ db }: Opened, rows: readonly Item[], table: string = items.name): Promise<void> {
  const expected = rows.toSorted((a, b) => a.id - b.id);
  expect(await rowsIn(db, table)).toEqual(expected);
  await db.checkpoint();
  expect(await rowsIn(db, table)).toEqual(expected);
  expect(await db.verify({ deep: true })).toMatchObject({ ok: true });
}

async function stagedOf({ store }: Opened): Promise<readonly string[]> {
  return (await store.list('db/staged/')).entries.map(({ key }) => key);
}

/** Loads rows, which must fail, and returns the error. No thread and no staged row may be left. */
async function failure(one: Opened, load: Promise<unknown>): Promise<unknown> {
  const error = await load.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  expect(error).toBeInstanceOf(Error);
  expect(ended).toBe(started.length);
  expect(await stagedOf(one)).toEqual([]);
  return error;
}

describe('a load with a thread', () => {
  it.each([
    ['in order', inOrder],
    ['in no order', inNoOrder],
    ['backwards', () => inOrder().toReversed()],
  ])('stores the same blocks by the same requests as one without: rows %s', async (_, rowsOf) => {
    const one = await opened();
    const told: number[] = [];
    const onProgress = ({ rows }: { rows: number }): void => void told.push(rows);
    expect(await one.db.load(items, rowsOf(), { thread: true, onProgress })).toEqual({ rows: count });
    expect([started.length, ended]).toEqual([1, 1]);
    expect(told.length).toBeGreaterThan(3);
    expect(told.at(-1)).toBe(count);
    const requests = requestsOf(one);
    const other = await opened();
    const report = await withoutThreads(other, async () => {
      const loaded = await other.db.load(items, rowsOf(), { thread: true });
      expect(requestsOf(other)).toEqual(requests);
      return loaded;
    });
    expect(report).toEqual({ rows: count });
    await expectItems(one, rowsOf());
    await expectItems(other, rowsOf());
  });

  it('starts none for the rows of one buffer, for none, and without the option', async () => {
    const one = await opened();
    expect(await one.db.load(items, inOrder().slice(0, 100), { thread: true })).toEqual({ rows: 100 });
    expect(await one.db.load(items, [], { thread: true })).toEqual({ rows: 0 });
    expect(await one.db.load(others[0], inOrder())).toEqual({ rows: count });
    expect(await one.db.load(others[1], inOrder(), { thread: false })).toEqual({ rows: count });
    expect(started.length).toBe(0);
  });

  it('works on an encrypted and compressed database', async () => {
    const encryption = { keys: { one: Uint8Array.from({ length: 32 }, (_, i) => i) }, current: 'one' };
    const one = await opened({ encryption, compression: 'deflate' });
    expect(await one.db.load(items, inNoOrder(), { thread: true })).toEqual({ rows: count });
    expect(started.length).toBe(1);
    await expectItems(one, inNoOrder());
    for (const key of await stagedOf(one)) {
      const found = await one.store.get(key);
      expect(found.status === 'found' && Buffer.from(found.bytes).includes('text 2711')).toBe(false);
    }
  });

  it('goes on where an earlier call was interrupted, whichever of them has a thread', async () => {
    for (const [first, second] of [
      [true, true],
      [true, false],
      [false, true],
    ]) {
      const one = await opened();
      const rows = inNoOrder();
      const begun: number[] = [];
      const source = (failAt: number) =>
        async function* ({ rows: from }: { readonly rows: number }): AsyncGenerator<Item, void, undefined> {
          begun.push(from);
          for (const row of rows.slice(from, failAt)) yield await Promise.resolve(row);
          if (failAt < count) throw new RangeError('the source ends here');
        };
      const load = (failAt: number, thread: boolean | undefined): Promise<unknown> =>
        one.db.load(items, source(failAt), { resume: 'items', ...(thread !== undefined && { thread }) });
      await expect(load(3500, first)).rejects.toThrow('the source ends here');
      expect(await load(count, second)).toEqual({ rows: count });
      expect(begun[1]).toBeGreaterThan(800);
      await expectItems(one, rows);
      expect(await one.db.unfinishedLoads()).toEqual([]);
    }
    expect([started.length, ended]).toEqual([4, 4]);
  });
});

it('that is given up while its runs are being recorded keeps them, and goes on later', async () => {
  const one = await opened();
  const rows = inNoOrder();
  const begun: number[] = [];
  const source = ({ rows: from }: { readonly rows: number }): Item[] => {
    begun.push(from);
    return rows.slice(from);
  };
  const end = new AbortController();
  let hasLanded = false;
  one.driver.onPut(/^committed\//, async (pass) => {
    end.abort();
    await setTimeout(100);
    const result = await pass();
    hasLanded = true;
    return result;
  });
  const load = one.db.load(items, source, { resume: 'items', thread: true, signal: end.signal });
  await expect(load).rejects.toMatchObject({ code: 'ABORTED' });
  await expect.poll(() => hasLanded).toBe(true);
  await one.db.refresh();
  const [unfinished] = await one.db.unfinishedLoads();
  expect(unfinished?.rows).toBeGreaterThan(0);
  expect(await one.db.load(items, source, { resume: 'items', thread: true })).toEqual({ rows: count });
  expect(begun).toEqual([0, unfinished?.rows]);
  await expectItems(one, rows);
});

describe('a load with a thread rejects as one without does', () => {
  const twice = (at: number, id: number): Item[] => inNoOrder().with(at, item(id));

  it.each([
    ['two rows of a buffer have a key', () => twice(101, inNoOrder()[100]?.id ?? 0)],
    ['two rows far apart have a key', () => twice(3800, inNoOrder()[100]?.id ?? 0)],
    ['a row does not fit', () => inNoOrder().with(3000, { ...item(0), text: 7 as never })],
    [
      'two rows have a value of a unique index',
      () => inNoOrder().with(3500, { ...item(99_999), text: inNoOrder()[5]?.text ?? '' }),
    ],
  ])('where %s', async (_, rowsOf) => {
    const one = await opened();
    const error = (await failure(one, one.db.load(people, rowsOf(), { thread: true }))) as Error;
    expect(started.length).toBe(1);
    const other = (await failure(one, one.db.load(people, rowsOf()))) as Error;
    expect(error.constructor).toBe(other.constructor);
    expect(Object.assign({ message: error.message }, error)).toEqual(Object.assign({ message: other.message }, other));
  });

  it('where the source fails, and does not go on to read it', async () => {
    const one = await opened();
    const cause = new RangeError('the source ends here');
    function* rows(): Generator<Item, void, undefined> {
      yield* inOrder().slice(0, 2000);
      throw cause;
    }
    expect(await failure(one, one.db.load(items, rows(), { thread: true }))).toBe(cause);
  });

  it('where the store refuses a request', async () => {
    const one = await opened();
    one.driver.onPut(/^staged\//, refused, Number.POSITIVE_INFINITY);
    let isClosed = false;
    function* rows(): Generator<Item, void, undefined> {
      try {
        for (let i = 0; ; i++) yield item((i * 7919) % 1_000_003);
      } finally {
        isClosed = true;
      }
    }
    const load = one.db.load(people, inNoOrder(), { thread: true });
    expect(await failure(one, load)).toMatchObject({ code: 'STORAGE', outcome: 'none' });
    const endless = one.db.load(items, rows(), { thread: true });
    expect(await failure(one, endless)).toMatchObject({ code: 'STORAGE', outcome: 'none' });
    expect(isClosed).toBe(true);
    expect(started.length).toBe(2);
  });

  it('where staged rows are gone before they are merged', async () => {
    const one = await opened();
    one.driver.onGet(/^staged\//, async (pass, { key }) => {
      await one.store.delete([key]);
      return pass();
    });
    const error = await failure(one, one.db.load(items, inNoOrder(), { thread: true }));
    expect(error).toMatchObject({ code: 'CONTENTION', cause: { code: 'CORRUPTION' } });
  });

  it('where staged rows are damaged', async () => {
    const one = await opened();
    const damaged = async <T>(pass: () => Promise<T>): Promise<T> => {
      const found = await pass();
      (found as { bytes: Uint8Array }).bytes.fill(0);
      return found;
    };
    one.driver.onGet(/^staged\//, damaged, Number.POSITIVE_INFINITY);
    const error = await failure(one, one.db.load(items, inNoOrder(), { thread: true }));
    expect(error).toMatchObject({ code: 'CORRUPTION', key: expect.stringMatching(/^staged\//) as unknown });
    expect((error as Error).message.match(/\(object/g)).toHaveLength(1);
  });

  it('where it is given up by its signal, or by a stop, while the thread works', async () => {
    for (const stops of [false, true]) {
      const one = await opened();
      const end = new AbortController();
      let isUnderWay = false;
      let isDone = false;
      one.driver.onPut(/^staged\//, async (pass) => {
        isUnderWay = true;
        // It lands after the load was given up, and before its rows are deleted.
        await setTimeout(100);
        const result = await pass();
        isDone = true;
        return result;
      });
      const load = one.db.load(items, inNoOrder(), { thread: true, signal: end.signal });
      await expect.poll(() => isUnderWay, { interval: 5 }).toBe(true);
      const outcome = failure(one, load);
      const stopped = stops ? one.db.stop() : end.abort();
      expect(await outcome).toMatchObject({ code: 'ABORTED' });
      await expect.poll(() => isDone).toBe(true);
      expect(await stagedOf(one)).toEqual([]);
      await stopped;
    }
    expect([started.length, ended]).toEqual([2, 2]);
  });

  it('where its thread ends early', async () => {
    const one = await opened();
    async function* rows(): AsyncGenerator<Item, void, undefined> {
      yield* inOrder().slice(0, 2000);
      await started[0]?.terminate();
      await hangs();
    }
    expect(await failure(one, one.db.load(items, rows(), { thread: true }))).toMatchObject({ code: 'INVARIANT' });
  });
});

describe('a load without threads', () => {
  const { Worker: Own } = threads;

  afterEach(() => {
    threads.Worker = Own;
    syncBuiltinESMExports();
  });

  it.each([
    [
      'may not be started',
      () => {
        throw new Error('Access to this API has been restricted');
      },
    ],
    ['end at once', () => new Own('process.exit(3)', { eval: true })],
    ['throw at once', () => new Own('throw new TypeError("no such function")', { eval: true })],
  ])('works where they %s', async (_, make) => {
    threads.Worker = function () {
      return make();
    } as unknown as typeof Worker;
    syncBuiltinESMExports();
    const one = await opened();
    for (const table of [items, people]) {
      expect(await one.db.load(table, inNoOrder(), { thread: true })).toEqual({ rows: count });
    }
    // Threads that have not been started do not count as two that run.
    threads.Worker = Own;
    syncBuiltinESMExports();
    const before = started.length;
    for (const table of others)
      expect(await one.db.load(table, inNoOrder(), { thread: true })).toEqual({ rows: count });
    expect(started.length).toBe(before + 2);
    await expectItems(one, inNoOrder());
  });
});
