/** Streams that stop giving anything: nothing waits for them forever, and they are ended. */
import { PassThrough, Readable } from 'node:stream';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver, MemoryDriver, ObjectStoreDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { createDatabase } from '../../../src/testing/index.ts';
import { realEnvironment } from '../../../src/base/env.ts';
import { loadAll } from '../../../src/base/later.ts';
import { Bucket, openServer } from '../../servers/s3-server/opened-server.ts';
import { newFolder } from '../values/driver-under-test.ts';

const files = defineSchema({
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, data: { typeId: Types.blob } },
  primaryKey: 'id',
});

const drivers: Record<string, () => Promise<StorageDriver>> = {
  memory: async () => new MemoryDriver(),
  files: async () => new FileDriver({ path: newFolder(), durability: 'none' }),
  bucket: async () => {
    const { server } = await openServer();
    return new ObjectStoreDriver({ bucket: Bucket, client: server.client() });
  },
};

interface Stalled {
  readonly data: Readable | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;
  /** Whether the stream was told that nobody reads it any more. */
  readonly isEnded: () => boolean;
}

const streams: Record<string, () => Stalled> = {
  'a stream of Node.js': () => {
    const data = new PassThrough();
    data.write(Buffer.alloc(100_000));
    return { data, isEnded: () => data.destroyed };
  },
  'a web stream': () => {
    let ended = false;
    const data = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(100_000)),
      cancel: () => void (ended = true),
    });
    return { data, isEnded: () => ended };
  },
};

// The first flush of a process loads code, and its stream is read only then.
beforeAll(loadAll);

async function open(driver: StorageDriver): Promise<Database> {
  const db = createDatabase({ dbPrefix: 'db', nodeId: 0, driver, logLevel: 'silent' }, realEnvironment);
  db.registerSchema(files);
  await db.start();
  onTestFinished(() => db.stop().catch(() => undefined));
  return db;
}

const cases = Object.keys(drivers).flatMap((driver) => Object.keys(streams).map((stream) => [driver, stream] as const));

describe.each(cases)('on %s, %s that stalls', (driverName, streamName) => {
  async function stalled(idleMs?: number) {
    const driver = await (drivers[driverName] as () => Promise<StorageDriver>)();
    const db = await open(driver);
    const { data, isEnded } = (streams[streamName] as () => Stalled)();
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: db.Blob(data, idleMs === undefined ? {} : { idleMs }) });
    const expectNothing = async (): Promise<void> => {
      await expect.poll(isEnded).toBe(true);
      expect((await driver.list('db/committed/')).entries).toEqual([]);
      expect((await driver.list('db/blobs/')).entries).toEqual([]);
    };
    return { db, batch, expectNothing };
  }

  it('ends with the signal of its flush', async () => {
    const { batch, db, expectNothing } = await stalled();
    const giveUp = new AbortController();
    const flush = batch.flush({ signal: giveUp.signal });
    setTimeout(() => giveUp.abort(), 100);
    const startedMs = performance.now();
    await expect(flush).rejects.toMatchObject({ code: 'ABORTED' });
    expect(performance.now() - startedMs).toBeLessThan(3000);
    await expectNothing();
    await db.stop();
  });

  it('ends when it has given nothing for too long', async () => {
    const { batch, expectNothing } = await stalled(150);
    await expect(batch.flush()).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
      message: expect.stringMatching(/sent no data for 150 ms/) as string,
    });
    await expectNothing();
  });

  it('ends when the database is stopped', { timeout: 20_000 }, async () => {
    const { batch, db, expectNothing } = await stalled();
    const flush = batch.flush().catch((error: unknown) => error);
    const startedMs = performance.now();
    await db.stop();
    expect(performance.now() - startedMs).toBeLessThan(9000);
    expect(await flush).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    await expectNothing();
  });
});

describe('a stream that goes on', () => {
  it('may take any time, if it gives something now and then, also while the database is stopped', async () => {
    const db = await open(new MemoryDriver());
    async function* slowly(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 8; i++) {
        await new Promise((resolve) => {
          setTimeout(resolve, 60);
        });
        yield new Uint8Array(10).fill(i);
      }
    }
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: db.Blob(Readable.from(slowly()), { idleMs: 400 }) });
    const flush = batch.flush();
    await db.stop();
    await flush;
    await db.start();
    expect(await db.getBlob((await db.get(files, 1))?.data as string).size()).toBe(80);
  });

  it('is refused with an idle time that is none', async () => {
    const db = await open(new MemoryDriver());
    for (const idleMs of [0, -1, 1.5, Number.NaN, 2 ** 31]) {
      expect(() => db.Blob('x', { idleMs })).toThrow('Option `idleMs` of db.Blob()');
    }
  });
});
