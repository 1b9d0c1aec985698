/** Loops over queries that take long hold on to what they read, and let go of it when they have ended. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { Types } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { createDatabase, VirtualEnvironment } from '../../../src/testing/index.ts';

const rows = {
  name: 'rows',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;

const count = 2000;
let environment: VirtualEnvironment;
let driver: MemoryDriver;

async function open(options: Partial<StoreDbOptions> = {}): Promise<Database> {
  const given = { dbPrefix: 'db', nodeId: 0, driver, logLevel: 'silent', ...options } as const;
  // Little memory, so that blocks are read when they are needed.
  const small = { writeForwardInterval: 86_400_000, blockSizeBytes: 2048, maxMemoryBytes: 1024 * 1024 };
  const db = createDatabase({ ...small, ...given }, environment);
  db.registerSchema(rows);
  await environment.run(db.start());
  return db;
}

async function write(db: Database, text: string): Promise<void> {
  const batch = db.batch();
  for (let id = 0; id < count; id++) void batch.upsert(rows, { id, text: text.repeat(400) + id });
  await environment.run(batch.flush());
  await environment.run(db.checkpoint());
}

/** Reads a whole table, and does something after the first rows. */
async function loop(db: Database, meanwhile: () => Promise<void>): Promise<string[]> {
  const texts: string[] = [];
  const iterator = db.query(rows)[Symbol.asyncIterator]();
  for (;;) {
    const next = await environment.run(iterator.next());
    if (next.done === true) return texts;
    texts.push(next.value.text as string);
    if (texts.length === 10) await meanwhile();
  }
}

beforeEach(() => {
  environment = new VirtualEnvironment({ seed: 1 });
  driver = new MemoryDriver({ environment });
});

describe('a loop', () => {
  it('pins its state once it has taken ten seconds, and not before', async () => {
    const db = await open();
    const other = await open({ nodeId: 1 });
    await write(db, 'a');
    const iterator = db.query(rows)[Symbol.asyncIterator]();
    const texts: string[] = [];
    const read = async (upTo: number): Promise<void> => {
      while (texts.length < upTo) {
        const next = await environment.run(iterator.next());
        if (next.done === true) return;
        texts.push(next.value.text as string);
      }
    };
    await read(300);
    expect(await environment.run(other.snapshots())).toEqual([]);
    await environment.advance(11_000);
    await read(600);
    expect(await environment.run(other.snapshots())).toHaveLength(1);
    await write(other, 'b');
    expect((await environment.run(other.gc())).deletedCount).toBe(0);
    await write(other, 'c');
    expect((await environment.run(other.gc())).deletedCount).toBeGreaterThan(0);
    await read(count + 1);
    expect(texts).toEqual(Array.from({ length: count }, (_, id) => 'a'.repeat(400) + id));
    // Its pin is taken back in the background.
    await environment.advance(1000);
    expect(await environment.run(other.snapshots())).toEqual([]);
    expect((await environment.run(other.gc())).deletedCount).toBeGreaterThan(0);
    await environment.run(db.stop());
    await environment.run(other.stop());
  });

  it('holds on to a state that a merge has replaced, without waiting for ten seconds', async () => {
    const db = await open();
    const other = await open({ nodeId: 1 });
    await write(db, 'a');
    const texts: string[] = [];
    const iterator = db.query(rows)[Symbol.asyncIterator]();
    for (;;) {
      const next = await environment.run(iterator.next());
      if (next.done === true) break;
      texts.push(next.value.text as string);
      if (texts.length === 10) await write(db, 'b');
      if (texts.length !== 400) continue;
      for (const text of ['c', 'd']) {
        await write(other, text);
        await environment.run(other.gc());
      }
    }
    expect(texts).toEqual(Array.from({ length: count }, (_, id) => 'a'.repeat(400) + id));
    await environment.advance(1000);
    expect(await environment.run(other.snapshots())).toEqual([]);
    await environment.run(db.stop());
    await environment.run(other.stop());
  });

  it.each(['gc() that waits for loops', 'a run that an instance makes by itself'])(
    'that others merge past before it holds on outlives %s',
    async (how) => {
      const isOwnRun = how !== 'gc() that waits for loops';
      const db = await open({ polling: 'onDemand', writeForwardInterval: 5000 });
      const own = isOwnRun ? { gcInterval: 60_000, writeForwardInterval: 5000 } : {};
      const other = await open({ nodeId: 1, ...own });
      await write(db, 'a');
      // Its own runs come after 45 to 60 seconds; the first one of this seed, within ten from here.
      if (isOwnRun) await environment.advance(52_000 - environment.monotonicMs());
      const texts: string[] = [];
      const iterator = db.query(rows)[Symbol.asyncIterator]();
      const read = async (upTo: number): Promise<void> => {
        while (texts.length < upTo) {
          const next = await environment.run(iterator.next());
          if (next.done === true) return;
          texts.push(next.value.text as string);
        }
      };
      await read(10);
      await write(other, 'b');
      const collecting = isOwnRun ? undefined : other.gc({ loopGraceMs: 30_000 });
      for (let second = 1; second <= 60; second++) {
        await environment.advance(1000);
        if (second === 5) await write(other, 'c');
        await read(10 + second * 20);
      }
      if (collecting !== undefined) await environment.run(collecting);
      await read(count + 1);
      expect(texts).toEqual(Array.from({ length: count }, (_, id) => 'a'.repeat(400) + id));
      await environment.advance(1000);
      expect((await environment.run(other.gc())).deletedCount).toBeGreaterThan(0);
      expect((await environment.run(other.verify({ deep: true }))).findings).toEqual([]);
      for (const each of [db, other]) await environment.run(each.stop());
    },
  );

  it('can hold on to its state after a run that has waited, if it began meanwhile', async () => {
    const db = await open({ polling: 'onDemand' });
    const other = await open({ nodeId: 1 });
    await write(db, 'a');
    const collecting = other.gc({ loopGraceMs: 30_000 });
    await environment.advance(20_000);
    const texts: string[] = [];
    const iterator = db.query(rows)[Symbol.asyncIterator]();
    for (;;) {
      const next = await environment.run(iterator.next());
      if (next.done === true) break;
      texts.push(next.value.text as string);
      if (texts.length === 10) {
        await write(other, 'b');
        await environment.run(collecting);
        await environment.advance(11_000);
      }
      if (texts.length !== 40) continue;
      await write(other, 'c');
      expect((await environment.run(other.gc())).deletedCount).toBeGreaterThan(0);
    }
    expect(texts).toEqual(Array.from({ length: count }, (_, id) => 'a'.repeat(400) + id));
    await environment.run(db.stop());
    await environment.run(other.stop());
  });

  it('holds on to its state while it works on rows that were read at once', async () => {
    const db = await open({ blockSizeBytes: 65_536 });
    await write(db, 'a');
    const iterator = db.query(rows)[Symbol.asyncIterator]();
    for (let row = 0; row < 20; row++) {
      await environment.run(iterator.next());
      await environment.advance(1000);
    }
    expect(await environment.run(db.snapshots())).toHaveLength(1);
    await environment.run(Promise.resolve(iterator.return?.()));
    await environment.advance(1000);
    expect(await environment.run(db.snapshots())).toEqual([]);
    await environment.run(db.stop());
  });

  it('that is left early lets go of its state', async () => {
    const db = await open();
    await write(db, 'a');
    const iterator = db.query(rows)[Symbol.asyncIterator]();
    await environment.run(iterator.next());
    await environment.advance(11_000);
    for (let i = 0; i < 500; i++) await environment.run(iterator.next());
    expect(await environment.run(db.snapshots())).toHaveLength(1);
    await environment.run(Promise.resolve(iterator.return?.()));
    await environment.advance(1000);
    expect(await environment.run(db.snapshots())).toEqual([]);
    await environment.run(db.stop());
  });

  it('is waited for only where a merge has replaced something', async () => {
    const db = await open();
    await write(db, 'a');
    await write(db, 'b');
    const startedMs = environment.monotonicMs();
    const running = db.gc({ loopGraceMs: 30_000 });
    await environment.advance(1000);
    await write(db, 'c');
    // All of a, and nothing of b.
    const blocks = count / 5;
    const first = await environment.run(running);
    expect(environment.monotonicMs() - startedMs).toBeGreaterThanOrEqual(30_000);
    expect(Math.round(first.deletedCount / blocks)).toBe(1);
    expect((await environment.run(db.verify({ deep: true }))).findings).toEqual([]);
    const second = await environment.run(db.gc({ loopGraceMs: 1000 }));
    expect(Math.round(second.deletedCount / blocks)).toBe(1);
    const againMs = environment.monotonicMs();
    expect((await environment.run(db.gc({ loopGraceMs: 30_000 }))).deletedCount).toBe(0);
    expect(environment.monotonicMs() - againMs).toBeLessThan(1000);
    await expect(environment.run(db.gc({ loopGraceMs: -1 }))).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await environment.run(db.stop());
  });

  it('whose state was collected before it could hold on to it says so, and gives no wrong row', async () => {
    const db = await open();
    const other = await open({ nodeId: 1 });
    await write(db, 'a');
    const reading = loop(db, async () => {
      await write(other, 'b');
      await environment.run(other.gc({ loopGraceMs: 0 }));
      await environment.advance(11_000);
    });
    await expect(reading).rejects.toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    await environment.run(db.stop());
    await environment.run(other.stop());
  });

  it.each(['it merges', 'others merge'])(
    'outlives gc() of its own instance at once, where %s meanwhile',
    async (who) => {
      const db = await open();
      const other = await open({ nodeId: 1 });
      await write(db, 'a');
      const writer = who === 'it merges' ? db : other;
      const texts = await loop(db, async () => {
        const startedMs = environment.monotonicMs();
        for (const text of ['b', 'c']) await write(writer, text);
        const { deletedCount } = await environment.run(db.gc({ loopGraceMs: 0 }));
        // All of b, whose state no loop reads.
        expect(Math.round(deletedCount / (count / 5))).toBe(1);
        expect(environment.monotonicMs() - startedMs).toBeLessThan(5000);
      });
      expect(texts).toEqual(Array.from({ length: count }, (_, id) => 'a'.repeat(400) + id));
      await environment.advance(1000);
      expect(Math.round((await environment.run(db.gc({ loopGraceMs: 0 }))).deletedCount / (count / 5))).toBe(1);
      for (const each of [db, other]) await environment.run(each.stop());
    },
  );

  it.each(['before', 'after'])(
    'of the same instance that begins %s gc() has looked at the store outlives that',
    async (when) => {
      const db = await open();
      const other = await open({ nodeId: 1 });
      await write(db, 'a');
      // The instance shows the state before.
      await write(other, 'b');
      const iterators: AsyncIterator<{ readonly text: string | null }>[] = [];
      const firsts: Promise<IteratorResult<{ readonly text: string | null }>>[] = [];
      const begin = (): void => {
        const iterator = db.query(rows)[Symbol.asyncIterator]();
        iterators.push(iterator);
        firsts.push(iterator.next());
      };
      if (when === 'before') begin();
      const collecting = db.gc({ loopGraceMs: 0 });
      if (when === 'after') begin();
      expect((await environment.run(collecting)).deletedCount).toBe(0);
      for (const [at, iterator] of iterators.entries()) {
        let next = await environment.run(firsts[at] as Promise<IteratorResult<{ readonly text: string | null }>>);
        const first = next.done === true ? '' : (next.value.text as string)[0];
        let read = 0;
        while (next.done !== true) {
          expect((next.value.text as string)[0]).toBe(first);
          read++;
          next = await environment.run(iterator.next());
        }
        expect(read).toBe(count);
      }
      for (const each of [db, other]) await environment.run(each.stop());
    },
  );

  it('of another instance outlives gc(), also while it works on one row', async () => {
    const db = await open({ polling: 'onDemand' });
    const other = await open({ nodeId: 1 });
    await write(db, 'a');
    const texts = await loop(db, async () => {
      await write(other, 'b');
      const startedMs = environment.monotonicMs();
      await environment.run(other.gc());
      const tookMs = environment.monotonicMs() - startedMs;
      expect(tookMs).toBeGreaterThanOrEqual(60_000);
      expect(tookMs).toBeLessThan(61_000);
      await write(other, 'c');
      expect((await environment.run(other.gc())).deletedCount).toBeGreaterThan(0);
    });
    expect(texts).toEqual(Array.from({ length: count }, (_, id) => 'a'.repeat(400) + id));
    for (const each of [db, other]) await environment.run(each.stop());
  });

  it('is not waited for where no other node takes turns', async () => {
    const db = await open();
    for (const text of ['a', 'b']) await write(db, text);
    const startedMs = environment.monotonicMs();
    expect((await environment.run(db.gc())).deletedCount).toBeGreaterThan(0);
    expect(environment.monotonicMs() - startedMs).toBeLessThan(1000);
    await environment.run(db.stop());
  });

  it('holds on to its state in time while it asks for no row, in one pin with others', async () => {
    const db = await open();
    await write(db, 'a');
    const iterators = Array.from({ length: 5 }, () => db.query(rows)[Symbol.asyncIterator]());
    for (const iterator of iterators) await environment.run(iterator.next());
    await environment.advance(9000);
    expect(await environment.run(db.snapshots())).toEqual([]);
    await environment.advance(7000);
    expect(await environment.run(db.snapshots())).toHaveLength(1);
    for (const [at, iterator] of iterators.entries()) {
      expect(await environment.run(db.snapshots())).toHaveLength(1);
      await environment.run(Promise.resolve(iterator.return?.()));
      await environment.advance(1000);
      expect(await environment.run(db.snapshots())).toHaveLength(at === 4 ? 0 : 1);
    }
    await environment.run(db.stop());
  });

  it('that nobody refers to any more lets go of its state', async () => {
    setFlagsFromString('--expose-gc');
    const collectMemory = runInNewContext('gc') as () => void;
    const db = await open();
    await write(db, 'a');
    const forget = async (): Promise<void> => {
      await environment.run(db.query(rows)[Symbol.asyncIterator]().next());
    };
    await forget();
    await environment.advance(16_000);
    expect(await environment.run(db.snapshots())).toHaveLength(1);
    for (let round = 0; round < 20 && (await environment.run(db.snapshots())).length > 0; round++) {
      collectMemory();
      await environment.advance(6000);
    }
    expect(await environment.run(db.snapshots())).toEqual([]);
    await environment.run(db.stop());
  });
});
