/**
 * With polling `onDemand` the log is looked at behind `start()`: calls wait for that, and read in the meantime. What they
 * find is the present state all the same.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { ObservedRequest } from '../../../src/storage/wrap/observed-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { refused, ScriptedDriver } from './scripted-driver.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, group: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['group'],
} as const;
const rows = 2000;
const requestMs = 20;

let environment: VirtualEnvironment;
let store: MemoryDriver;
let driver: ScriptedDriver;
let writer: Database;
/** Keys of blocks that were read since they were last taken. */
let blocks: string[];

function rowOf(id: number): { id: number; group: number; text: string } {
  return { id, group: id % 50, text: `note ${id}`.padEnd(40) };
}

function make(
  nodeId: number,
  options?: Partial<StoreDbOptions>,
  schemas: readonly SchemaDefinition[] = [notes],
): Database {
  const common = { dbPrefix: 'db', nodeId, logLevel: 'silent', polling: 'onDemand', blockSizeBytes: 16_384 } as const;
  const merges = { mergePolicy: { minCommits: 1000, maxWaitMs: 86_400_000 } };
  const onRequest = ({ kind, key }: ObservedRequest): void => {
    if (kind === 'get' && /\/(data|indexes)\//.test(key)) blocks.push(key);
  };
  const given = { ...common, ...merges, driver: environment.connect(driver), onRequest, ...options };
  const db = createDatabase(given, environment);
  for (const schema of schemas) db.registerSchema(schema);
  return db;
}

/** From now on every read of the store takes a while: `logMs` for the log, `blockMs` for anything else. */
function slow(logMs: number = requestMs, blockMs: number = requestMs): void {
  const after =
    (ms: number) =>
    async <R>(pass: () => Promise<R>) => {
      await sleep(environment, ms);
      return pass();
    };
  driver.onGet(/^committed/, after(logMs), Infinity);
  driver.onGet(/^/, after(blockMs), Infinity);
}

async function write(change: (batch: ReturnType<Database['batch']>) => void): Promise<void> {
  const batch = writer.batch();
  change(batch);
  await environment.run(batch.flush());
}

/** What a call gives, and how long it took by the clock of the store. */
async function timed<T>(call: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const startedMs = environment.timeline.nowMs;
  const value = await environment.run(call());
  return { value, ms: Math.round(environment.timeline.nowMs - startedMs) };
}

beforeEach(async () => {
  environment = new VirtualEnvironment();
  store = new MemoryDriver({ environment });
  driver = new ScriptedDriver(store, 'db');
  writer = make(0);
  await environment.run(writer.start());
  await write((batch) => {
    for (let id = 0; id < rows; id++) void batch.insert(notes, rowOf(id));
  });
  await environment.run(writer.checkpoint());
  // What its own node needs once is done.
  await environment.advance(60_000);
  driver.takeLines();
  blocks = [];
});

describe('the first call after a start', () => {
  it('reads its row while the log is looked at: two round trips, three requests', async () => {
    const db = make(1);
    slow();
    const { value, ms } = await timed(async () => {
      await db.start();
      return db.get(notes, 5);
    });
    expect(value).toEqual(rowOf(5));
    expect(ms).toBe(2 * requestMs);
    const [block0, ...others] = driver.takeLines();
    expect(block0).toBe('get block0 found');
    expect(others.toSorted()).toEqual(['get committed/2 missing', expect.stringMatching(/^get data\/.* found$/)]);
  });

  it('may be a query of any cost', async () => {
    const db = make(1);
    slow();
    await environment.run(db.start());
    const { value, ms } = await timed(() => db.query(notes).where('group', '=', 7).orderBy('id').limit(3).execute());
    expect(value).toEqual([7, 57, 107].map(rowOf));
    // A leaf of the index, and those of the rows at the same time; or the table from its beginning.
    expect(ms).toBeLessThanOrEqual(2 * requestMs);
    expect(new Set(blocks).size).toBe(blocks.length);
  });

  it('waits with any other polling no longer than before, since the start has waited', async () => {
    const db = make(1, { polling: 'adaptive' });
    slow();
    expect((await timed(() => db.start())).ms).toBe(2 * requestMs);
    expect((await timed(() => db.get(notes, 5))).ms).toBe(requestMs);
  });

  it.each([
    ['get()', (db: Database, id: number) => db.get(notes, id)],
    ['first()', (db: Database, id: number) => db.query(notes).where('id', '=', id).first()],
    ['execute()', async (db: Database, id: number) => (await db.query(notes).where('id', '=', id).execute())[0]],
    [
      'a loop',
      async (db: Database, id: number) => {
        for await (const row of db.query(notes).where('id', '>=', id)) if (row.id === id) return row;
        return undefined;
      },
    ],
    ['a transaction', (db: Database, id: number) => db.transaction((tx) => tx.get(notes, id))],
  ])('shows what is in the log: %s', async (_, read) => {
    await write((batch) => {
      void batch.update(notes, { id: 5, text: 'changed' });
      void batch.delete(notes, 6);
      void batch.insert(notes, { id: rows, group: 1, text: 'new' });
    });
    for (const [id, text] of [
      [5, 'changed'],
      [6, undefined],
      [rows, 'new'],
      [8, rowOf(8).text],
    ] as const) {
      const db = make(1);
      slow();
      blocks = [];
      await environment.run(db.start());
      const row = (await environment.run(read(db, id))) as { text: string } | undefined;
      expect(row?.text).toBe(text);
      // Blocks read before the news are not read again.
      expect(new Set(blocks).size).toBe(blocks.length);
      await environment.run(db.stop());
      driver.heal();
    }
  });

  it('counts with the commits in the log', async () => {
    await write((batch) => void batch.delete(notes, 6));
    const db = make(1);
    slow();
    await environment.run(db.start());
    expect(await environment.run(db.query(notes).count())).toBe(rows - 1);
  });

  it('gives up its work on a state that has turned out to be outdated', async () => {
    await write((batch) => void batch.update(notes, { id: 5, text: 'changed' }));
    let calls = 0;
    const db = make(1);
    db.registerFunction('isEven', ({ id }) => {
      calls++;
      return Number(id) % 2 === 0;
    });
    slow(requestMs, 10 * requestMs);
    await environment.run(db.start());
    const count = await environment.run(db.query(notes).where('isEven', '=', true).count());
    expect(count).toBe(rows / 2);
    // It notices at the end of a leaf.
    expect(calls).toBeLessThan(1.5 * rows);
  });

  it('with a budget runs once, so that its reads are counted once', async () => {
    await write((batch) => void batch.update(notes, { id: 5, text: 'changed' }));
    const db = make(1);
    slow();
    await environment.run(db.start());
    driver.takeLines();
    const query = db.query(notes).where('id', '=', 5).budget({ requests: 1 });
    expect(await environment.run(query.execute())).toEqual([{ ...rowOf(5), text: 'changed' }]);
  });

  it('may be a flush', async () => {
    await write((batch) => void batch.update(notes, { id: 5, text: 'changed' }));
    const db = make(1);
    slow();
    await environment.run(db.start());
    driver.takeLines();
    const batch = db.batch();
    void batch.update(notes, { id: 5, group: 99 });
    await environment.run(batch.flush());
    expect(await environment.run(db.get(notes, 5))).toEqual({ id: 5, group: 99, text: 'changed' });
    // It waits for the look, and needs no other.
    expect(driver.takeLines().filter((line) => line.includes('committed'))).toEqual([
      'get committed/2 found',
      'get committed/3 missing',
      'get committed/4 missing',
      'put committed/3 written',
    ]);
  });
});

describe('a look behind the start', () => {
  const calls = [
    ['get()', (db: Database) => db.get(notes, 5)],
    ['count()', (db: Database) => db.query(notes).count()],
    ['execute()', (db: Database) => db.query(notes).where('id', '=', 5).execute()],
    ['a transaction', (db: Database) => db.transaction((tx) => tx.get(notes, 5))],
    [
      'a flush',
      (db: Database) => {
        const batch = db.batch();
        void batch.update(notes, { id: 5, text: 'mine' });
        return batch.flush();
      },
    ],
    ['refresh()', (db: Database) => db.refresh()],
  ] as const;

  // That a rejection which nobody handles fails the run is the test runner's own rule.
  it.each(calls)(
    'that fails is reported by the call that waits for it, and the next call looks again: %s',
    async (_, call) => {
      await write((batch) => void batch.update(notes, { id: 5, text: 'changed' }));
      const db = make(1);
      driver.onGet(/^committed/, refused, Infinity);
      await environment.run(db.start());
      await expect(environment.run<unknown>(call(db))).rejects.toMatchObject({ code: 'STORAGE' });
      await expect(environment.run(db.query(notes).count())).rejects.toMatchObject({ code: 'STORAGE' });
      driver.heal();
      expect(await environment.run(db.get(notes, 5))).toMatchObject({ text: 'changed' });
    },
  );

  it('does not change the error for a table that is not registered', async () => {
    const db = make(1, {}, []);
    slow();
    await environment.run(db.start());
    await expect(environment.run(db.get('notes', 5))).rejects.toMatchObject({ code: 'SCHEMA_NOT_FOUND' });
    await expect(environment.run(db.query('notes').count())).rejects.toMatchObject({ code: 'SCHEMA_NOT_FOUND' });
    await environment.advance(1000);
  });

  it('may take longer than a call may that waits for it, where much has piled up', async () => {
    for (let i = 0; i < 40; i++) {
      await write((batch) => {
        for (let id = 0; id < rows; id++) void batch.update(notes, { id, text: 'y'.repeat(200) + i });
      });
    }
    await environment.run(writer.stop());
    const db = make(1, { maxMemoryBytes: 4 * 1024 * 1024 });
    slow(8000, 500);
    await environment.run(db.start());
    const { value, ms } = await timed(() => db.get(notes, 5));
    expect(value?.text?.slice(-3)).toBe('y39');
    expect(ms).toBeGreaterThan(60_000);
  });

  it('goes before rewrite(): the media type of a blob may be in the log', async () => {
    const files = {
      name: 'files',
      version: 1,
      fields: { id: { typeId: Types.uint32 }, data: { typeId: Types.blob } },
      primaryKey: 'id',
    } as const;
    const key = { keys: { one: Uint8Array.from({ length: 32 }, (_, i) => i * 7) } };
    const encrypted = make(2, { encryption: { ...key, current: 'one', acceptUnencrypted: true } }, [files]);
    await environment.run(encrypted.start());
    const batch = encrypted.batch();
    void batch.insert(files, { id: 1, data: encrypted.Blob('<p>', { contentType: 'text/html' }) });
    await environment.run(batch.flush());
    await environment.run(encrypted.stop());
    const types: unknown[] = [];
    const put = store.put.bind(store);
    store.put = (name, body, options) => {
      if (name.includes('/blobs/')) types.push(options.contentType);
      return put(name, body, options);
    };
    const db = make(1, { encryption: { ...key, current: null, acceptUnencrypted: true } }, [files]);
    slow(500);
    await environment.run(db.start());
    await environment.run(db.rewrite());
    expect(types).toEqual(['text/html']);
  });

  it('that fails with nobody waiting for it harms nothing', async () => {
    const db = make(1);
    driver.onGet(/^committed/, refused, Infinity);
    await environment.run(db.start());
    await environment.advance(60_000);
    driver.heal();
    expect(await environment.run(db.get(notes, 5))).toEqual(rowOf(5));
  });

  const isWaitedFor = (name: string): boolean => name === 'a transaction' || name === 'a flush';

  it.each(calls.filter(([name]) => isWaitedFor(name)))(
    'is waited for by stop(), for the sake of %s',
    async (_, call) => {
      const db = make(1);
      slow(5000);
      await environment.run(db.start());
      const waiting = call(db).then(String);
      await environment.run(db.stop());
      await environment.run(waiting);
    },
  );

  it.each(calls.filter(([name]) => !isWaitedFor(name)))(
    'is given up when the database is stopped, and so are calls that wait for it: %s',
    async (_, call) => {
      const db = make(1);
      slow(60_000);
      await environment.run(db.start());
      const waiting = call(db).then(String, (error: unknown) => (error as { code: string }).code);
      const { ms } = await timed(() => db.stop());
      expect(ms).toBeLessThan(1000);
      expect(await environment.run(waiting)).toBe('NOT_STARTED');
    },
  );

  it('finds commits to merge, and merges them although nobody asks', async () => {
    await write((batch) => void batch.update(notes, { id: 5, text: 'changed' }));
    await environment.run(writer.stop());
    const db = make(1, { mergePolicy: { minCommits: 1 } });
    await environment.run(db.start());
    await environment.advance(60_000);
    expect(db.stats().log).toMatchObject({ tail: 2, appliedSeq: 2 });
  });

  it('leaves nothing out of changes(): commits of others meanwhile are reported', async () => {
    await write((batch) => void batch.update(notes, { id: 5, text: 'before the start' }));
    const db = make(1);
    slow(500);
    await environment.run(db.start());
    const feed = db.changes()[Symbol.asyncIterator]();
    await write((batch) => void batch.update(notes, { id: 5, text: 'after the call' }));
    const told: unknown[] = [];
    while (told.at(-1) !== 'after the call') {
      const { value } = await environment.run(feed.next());
      const [change] = await environment.run(value?.toArray() ?? Promise.resolve([]));
      told.push(change?.row?.['text']);
    }
    // Nothing was read yet, and so nothing was shown.
    expect(told).toEqual(['before the start', 'after the call']);
    expect(await environment.run(db.get(notes, 5))).toMatchObject({ text: 'after the call' });
    const later = db.changes()[Symbol.asyncIterator]();
    await write((batch) => void batch.update(notes, { id: 5, text: 'later' }));
    const { value } = await environment.run(later.next());
    expect(await environment.run(value?.toArray() ?? Promise.resolve([]))).toMatchObject([{ row: { text: 'later' } }]);
  });

  it('says before it has ended that nobody knows how old the view is', async () => {
    const db = make(1);
    slow();
    await environment.run(db.start());
    expect(db.stats().log?.ageMs).toBe(Infinity);
    await environment.advance(requestMs);
    expect(db.stats().log?.ageMs).toBe(2 * requestMs);
  });
});
