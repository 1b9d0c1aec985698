/** The effects of a wrong clock: none on kept data, and little on reported times. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Database, GcOptions, Logger, StoreDbOptions } from '../../../src/index.ts';
import { Types } from '../../../src/index.ts';
import { ObjectStoreDriver } from '../../../src/storage/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { createDatabase, VirtualEnvironment } from '../../../src/testing/index.ts';
import { openServer, Bucket } from '../../servers/s3-server/opened-server.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** A bucket has a clock of its own; a folder has that of the machine, which all processes on it share. */
type Store = 'bucket' | 'folder';

class World {
  readonly true: VirtualEnvironment = new VirtualEnvironment({ seed: 1 });
  readonly #store: Store;
  readonly #machine: VirtualEnvironment;
  readonly driver: MemoryDriver;
  readonly warnings: string[] = [];

  constructor(store: Store) {
    this.#store = store;
    this.#machine = this.true.fork();
    this.driver = new MemoryDriver({ environment: store === 'bucket' ? this.true : this.#machine });
    if (store === 'folder') Object.defineProperty(this.driver, 'storeTimeMs', { value: undefined });
  }

  /** A process whose clock is ahead: of its own, or with that of the whole machine. */
  async open(nodeId: number, aheadMs = 0, options: Partial<StoreDbOptions> = {}): Promise<Database> {
    const environment = this.#store === 'bucket' ? this.true.fork() : this.#machine;
    environment.skewMs = aheadMs;
    const quiet = (): void => {};
    const logger: Logger = { debug: quiet, info: quiet, error: quiet, warn: (line) => void this.warnings.push(line) };
    const given = {
      dbPrefix: 'db',
      nodeId,
      driver: this.driver,
      logger,
      writeForwardInterval: dayMs,
      polling: 'onDemand',
    } as const;
    const db = createDatabase({ ...given, ...options }, environment);
    db.registerSchema(notes);
    await this.run(db.start());
    return db;
  }

  setMachine(aheadMs: number): void {
    this.#machine.skewMs = aheadMs;
  }

  run<T>(call: Promise<T>): Promise<T> {
    return this.true.run(call);
  }

  async write(db: Database, text: string): Promise<Date> {
    const batch = db.batch();
    void batch.upsert(notes, { id: 1, text });
    await this.run(batch.flush());
    await this.run(db.checkpoint());
    const written = new Date(this.true.now());
    await this.true.advance(hourMs);
    return written;
  }

  async textAt(db: Database, state: number | Date): Promise<string | null | undefined> {
    const snapshot = await this.run(db.at(state));
    const row = await this.run(snapshot.get(notes, 1));
    await this.run(snapshot.release());
    return row?.text;
  }

  get ahead(): string[] {
    return this.warnings.filter((line) => line.includes('clock'));
  }
}

describe('merges by a clock that is five hours ahead', () => {
  it('on a bucket begin at the times of the bucket', async () => {
    const world = new World('bucket');
    const right = await world.open(1, 0, { history: '7d' });
    const first = await world.write(right, 'first');
    const wrong = await world.open(2, 5 * hourMs);
    const second = await world.write(wrong, 'second');
    await world.run(right.refresh());
    expect(await world.textAt(right, new Date(world.true.now()))).toBe('second');
    expect(await world.textAt(right, second)).toBe('second');
    expect(await world.textAt(right, first)).toBe('first');
    expect(world.ahead).toEqual([expect.stringMatching(/5 hours ahead of the store's/)]);
  });

  it("on the machine's own clock are right again after the next one, and so are times before and between", async () => {
    const world = new World('folder');
    const db = await world.open(1, 0, { history: '30d' });
    const times: [string, Date][] = [];
    for (const text of ['a', 'b', 'c']) times.push([text, await world.write(db, text)]);
    world.setMachine(5 * hourMs);
    await world.write(db, 'ahead');
    await world.write(db, 'still ahead');
    world.setMachine(0);
    for (const text of ['d', 'e', 'f']) times.push([text, await world.write(db, text)]);
    world.setMachine(5 * hourMs);
    await world.write(db, 'ahead once more');
    world.setMachine(0);
    for (const text of ['g', 'h']) times.push([text, await world.write(db, text)]);
    for (const [text, time] of times) expect(await world.textAt(db, time)).toBe(text);
    expect(await world.textAt(db, new Date(world.true.now()))).toBe('h');
    expect(world.ahead).toHaveLength(2);
    expect(world.ahead[0]).toMatch(/Times are right again/);
    await world.run(db.stop());
  });

  it('without history show the present after the next one that knows better', async () => {
    const world = new World('bucket');
    const db = await world.open(1);
    await world.write(db, 'first');
    expect(await world.textAt(db, new Date(world.true.now()))).toBe('first');
  });
});

describe('gc by a clock that is eight days ahead', () => {
  let world: World;
  let holder: Database;
  async function setUp(store: Store): Promise<void> {
    world = new World(store);
    holder = await world.open(1, 0, { history: '7d' });
    for (const text of ['a', 'b', 'c']) await world.write(holder, text);
  }
  const states = async (): Promise<readonly unknown[]> => {
    const { entries } = await world.driver.list('db/history/');
    return entries;
  };

  describe.each<Store>(['bucket', 'folder'])('on a %s', (store) => {
    beforeEach(() => setUp(store));

    it('deletes no history, ends no snapshot, and says why', async () => {
      const snapshot = await world.run(holder.snapshot());
      await world.write(holder, 'later');
      const before = await states();
      const wrong = await world.open(2, 8 * dayMs);
      for (let run = 0; run < 3; run++) {
        const report = await world.run(wrong.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 }));
        expect(report).toMatchObject({ expiredSnapshots: 0, counts: { history: 0 } });
      }
      expect(await states()).toEqual(before);
      expect((await world.run(snapshot.get(notes, 1)))?.text).toBe('c');
      expect(world.ahead.length).toBeGreaterThan(0);
      expect(world.ahead[0]).toMatch(/8 days ahead of the (store's|last write)/);
      world.setMachine(0);
      expect(await world.textAt(holder, 2)).toBe('b');
      await world.run(snapshot.release());
    });
  });

  it('on a folder is believed once it has been so for a day, or is confirmed', async () => {
    await setUp('folder');
    const db = await world.open(2, 8 * dayMs);
    expect((await world.run(db.gc({ loopGraceMs: 0 }))).counts.history).toBe(0);
    await world.true.advance(23 * hourMs);
    expect((await world.run(db.gc({ loopGraceMs: 0 }))).counts.history).toBe(0);
    await world.true.advance(2 * hourMs);
    expect((await world.run(db.gc({ loopGraceMs: 0 }))).counts.history).toBeGreaterThan(0);
    await setUp('folder');
    const other = await world.open(2, 8 * dayMs);
    expect((await world.run(other.gc({ loopGraceMs: 0, trustClock: true }))).counts.history).toBeGreaterThan(0);
  });

  it('on a folder leaves no doubt behind once the clock is right', async () => {
    await setUp('folder');
    const db = await world.open(2, 8 * dayMs);
    await world.run(db.gc({ loopGraceMs: 0 }));
    world.setMachine(0);
    await world.write(db, 'later');
    await world.true.advance(7 * dayMs - hourMs);
    await world.write(db, 'much later');
    world.warnings.length = 0;
    expect((await world.run(db.gc({ loopGraceMs: 0 }))).counts.history).toBeGreaterThan(0);
    expect(world.ahead).toEqual([]);
    expect(await world.textAt(db, new Date(world.true.now()))).toBe('much later');
  });

  it('a clock that has not moved for long is no reason for doubt where nothing would end', async () => {
    await setUp('folder');
    world.setMachine(3 * dayMs);
    // No clock is needed for what goes whatever its age is.
    const { counts } = await world.run(holder.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    expect(counts).toMatchObject({ history: 0, commit: 2 });
    expect(world.ahead).toEqual([]);
  });
});

describe('gc of commits and uploads by a clock that is ahead', () => {
  let world: World;
  let holder: Database;
  const stray = 'db/blobs/00000000-0000-4000-8000-000000000001';
  async function setUp(store: Store): Promise<void> {
    world = new World(store);
    holder = await world.open(1);
    for (const text of ['a', 'b', 'c']) await world.write(holder, text);
    await world.run(world.driver.put(stray, new Uint8Array(10), { if: 'absent' }));
    await world.true.advance(1000);
  }
  const collected = async (db: Database, options: GcOptions = {}): Promise<readonly [number, number]> => {
    const { counts, condemnedBlobs } = await world.run(db.gc({ loopGraceMs: 0, ...options }));
    return [counts.commit, condemnedBlobs];
  };
  const commits = async (): Promise<number> => (await world.driver.list('db/committed/')).entries.length;

  it.each([2, 8, 365])('by %i days, on a folder, trims nothing, condemns nothing, and says why', async (days) => {
    await setUp('folder');
    const wrong = await world.open(2, days * dayMs);
    for (const dryRun of [true, false, true, false, false]) {
      world.warnings.length = 0;
      expect(await collected(wrong, { dryRun })).toEqual([0, 0]);
      expect(world.ahead).toEqual([expect.stringContaining('no commit and no upload goes for its age')]);
    }
    expect(await commits()).toBe(3);
    // The right time goes on as if nothing had been.
    world.setMachine(0);
    world.warnings.length = 0;
    await world.write(holder, 'd');
    // Written one, two and three hours ago, and just now.
    expect(await collected(holder, { logRetentionMs: 1.5 * hourMs })).toEqual([2, 0]);
    expect(world.ahead).toEqual([]);
    await world.true.advance(20 * hourMs);
    await world.write(holder, 'e');
    await world.true.advance(4 * hourMs);
    expect(await collected(holder)).toEqual([2, 1]);
  });

  it.each([2, 8, 365])("by %i days, on a bucket, follows the bucket's clock", async (days) => {
    await setUp('bucket');
    const wrong = await world.open(2, days * dayMs);
    expect(await collected(wrong, { logRetentionMs: 1.5 * hourMs })).toEqual([1, 0]);
    expect(await commits()).toBe(2);
  });

  it('by hours, on a folder, does so much too early and no more', async () => {
    await setUp('folder');
    const wrong = await world.open(2, 5 * hourMs);
    expect(await collected(wrong, { logRetentionMs: 9 * hourMs })).toEqual([0, 0]);
    expect(await collected(wrong, { logRetentionMs: 6.5 * hourMs })).toEqual([1, 0]);
    expect(world.ahead).toEqual([]);
  });

  it('is believed once the clock has been so for a day, or is confirmed', async () => {
    await setUp('folder');
    const db = await world.open(2, 8 * dayMs);
    expect(await collected(db)).toEqual([0, 0]);
    await world.true.advance(23 * hourMs);
    expect(await collected(db)).toEqual([0, 0]);
    await world.true.advance(2 * hourMs);
    expect(await collected(db)).toEqual([2, 1]);
    await setUp('folder');
    expect(await collected(await world.open(2, 8 * dayMs), { trustClock: true })).toEqual([2, 1]);
  });

  it('needs no clock for objects that are deleted at any age', async () => {
    await setUp('folder');
    expect(await collected(await world.open(2, 8 * dayMs), { logRetentionMs: 0, graceMs: 0 })).toEqual([2, 1]);
    expect(world.ahead).toEqual([]);
  });
});

describe('the time of a bucket', () => {
  it('is the time of its last answer', async () => {
    const { server } = await openServer();
    const driver = new ObjectStoreDriver({ bucket: Bucket, client: server.client() });
    expect(driver.storeTimeMs()).toBeUndefined();
    await driver.get('k');
    const time = driver.storeTimeMs();
    expect(Math.abs((time ?? 0) - Date.now())).toBeLessThan(5000);
    await driver.close();
  });
});
