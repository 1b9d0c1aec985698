/**
 * Applications test themselves with fake timers, which stand still until they are told to go on. The database takes the runtime's
 * own: it neither waits for the fake ones nor takes their time for the time.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { driverOf, startStore } from '../../servers/s3/bucket.ts';
import type { S3Server } from '../../servers/s3-server/server.ts';
import { newFolder } from '../values/driver-under-test.ts';
import { makeDatabase } from '../values/open-database.ts';

const schema = {
  name: 't',
  version: 1,
  primaryKey: 'id',
  indexes: ['at'],
  fields: { id: { typeId: Types.uint32 }, at: { typeId: Types.timestamp }, blob: { typeId: Types.blob } },
};
const start = new Date('2031-05-05T05:05:05.000Z');

/** It has taken the real clock when it was started. */
let server: S3Server;
beforeEach(async () => {
  server = await startStore();
});
afterEach(async () => {
  vi.useRealTimers();
  await server.close();
});

const drivers: readonly (readonly [name: string, make: () => StorageDriver])[] = [
  ['memory', () => new MemoryDriver()],
  ['a folder', () => new FileDriver(newFolder())],
  ['a bucket', () => driverOf(server)],
];

/** The functions that vitest fakes, and all that it can. */
const ways = [
  ['that vitest fakes by itself', undefined],
  [
    'of every kind',
    [
      'setTimeout',
      'clearTimeout',
      'setInterval',
      'clearInterval',
      'setImmediate',
      'clearImmediate',
      'Date',
      'performance',
      'queueMicrotask',
      'hrtime',
    ],
  ],
] as const;

async function work(db: Database): Promise<void> {
  await db.start();
  for (let id = 0; id < 3; id++) {
    const batch = db.batch();
    await batch.insert('t', {
      id,
      at: new Date(),
      blob: db.Blob(
        (async function* () {
          yield Buffer.alloc(9);
        })(),
      ),
    });
    await batch.flush();
  }
  await db.transaction(async (tx) => tx.update('t', { id: 1, at: null }));
  await db.checkpoint();
  await db.refresh();
  expect(await db.query('t').where('at', '=', new Date()).count()).toBe(2);
  const [row] = await db.query('t').limit(1).execute();
  expect(row?.['at']).toEqual(start);
  expect(await db.getBlob(row?.['blob'] as string).getBuffer()).toHaveLength(9);
  const snapshot = await db.snapshot();
  await snapshot.release();
  expect((await db.verify({ deep: true })).findings).toEqual([]);
  await db.gc();
  await db.stop();
}

describe.each(ways)('with fake timers %s', (_what, toFake) => {
  beforeEach(() => {
    vi.useFakeTimers({ now: start, ...(toFake && { toFake: [...toFake] }) });
  });

  it.each(drivers)('works in %s', async (_name, newDriver) => {
    const db = makeDatabase([schema], newDriver(), { writeForwardInterval: 1000, maxMemoryBytes: 4 * 1024 * 1024 });
    await work(db);
  });

  it('signs by the real time', async () => {
    const driver = driverOf(server);
    await driver.put('a', Buffer.from('hello'), { if: 'absent' });
    const url = await driver.presign('a', { expiresInSeconds: 60 });
    // Other than the driver, fetch() waits for the fake clock.
    vi.useRealTimers();
    expect(await (await fetch(url)).text()).toBe('hello');
    expect(server.log.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('follows the real time', async () => {
    const db = makeDatabase([schema], new MemoryDriver());
    await db.start();
    const snapshot = await db.snapshot();
    expect(snapshot.createdAt.getTime()).toBeLessThan(start.getTime());
    await snapshot.release();
  });
});
