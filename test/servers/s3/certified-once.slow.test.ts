/** A store is tried out once, and not for every new database: the process and the bucket remember it. */
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { ObservedDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import type { S3Server, S3ServerOptions } from '../s3-server/server.ts';
import { bucketName, driverOf, ownClientDriver, startStore } from './bucket.ts';

let server: S3Server;

async function start(options: S3ServerOptions = {}): Promise<void> {
  server = await startStore(options);
  onTestFinished(() => server.close());
}

/** What the process remembers is another process's, in tests, on another port: nothing of it is of this server. */
beforeEach(() => start());

async function create(prefix: string, driver: StorageDriver = driverOf(server)): Promise<number> {
  server.clearLog();
  const db = StoreDb({ dbPrefix: prefix, nodeId: 0, driver, logLevel: 'silent', polling: 'onDemand' });
  await db.start();
  const requests = server.log.length;
  await db.stop();
  await driver.close?.();
  return requests;
}

const marks = (): string[] => [...server.objects(bucketName).keys()].filter((key) => key.startsWith('_storedb/'));

/** The same server, for a process that remembers nothing: by another name. */
async function inAnotherProcess(prefix: string): Promise<number> {
  vi.resetModules();
  const { StoreDb: fresh } = await import('../../../src/index.ts');
  const { ObjectStoreDriver } = await import('../../../src/storage/index.ts');
  const driver = new ObjectStoreDriver({ bucket: bucketName, endpoint: server.endpoint });
  server.clearLog();
  const db = fresh({ dbPrefix: prefix, nodeId: 0, driver, logLevel: 'silent', polling: 'onDemand' });
  await db.start();
  const requests = server.log.length;
  await db.stop();
  await driver.close();
  return requests;
}

describe('a store', () => {
  it('is tried out for the first database of a process, and for none after it', async () => {
    expect(await create('first')).toBeGreaterThan(60);
    for (const prefix of ['second', 'third']) expect(await create(prefix)).toBeLessThan(8);
    expect(marks()).toHaveLength(1);
  });

  it('is tried out once where many databases are created at once', async () => {
    server.clearLog();
    const names = Array.from({ length: 20 }, (_, i) => `tenant-${i}`);
    const opened = await Promise.all(
      names.map(async (dbPrefix) => {
        const driver = driverOf(server);
        const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel: 'silent', polling: 'onDemand' });
        await db.start();
        return { db, driver };
      }),
    );
    expect(server.log.length).toBeLessThan(100 + 20 * 8);
    for (const { db, driver } of opened) {
      await db.stop();
      await driver.close();
    }
  });

  it('is not probed by other processes either: the bucket records it', async () => {
    await create('first');
    expect(await inAnotherProcess('second')).toBeLessThan(10);
  });

  it('is tried out again once that is old, of another store, or of other rules', async () => {
    await create('first');
    const [mark] = marks();
    const objects = server.objects(bucketName);
    const kept = objects.get(mark as string);
    if (kept === undefined) throw new Error('Nothing was kept');
    const text = Buffer.from(kept.bytes).toString();
    const driver = driverOf(server);
    onTestFinished(() => driver.close());
    for (const other of [text.replace('"rules":1', '"rules":0'), text.replace(bucketName, 'another'), '{}', '']) {
      expect(other).not.toBe(text);
      await driver.put(mark as string, Buffer.from(other), { if: 'any' });
      expect(await inAnotherProcess(`after-${other.length}`)).toBeGreaterThan(60);
      expect(Buffer.from((await foundOf(driver, mark as string)).bytes).toString()).toBe(text);
    }
    vi.useFakeTimers({ now: Date.now() + 31 * 86_400_000, toFake: ['Date'] });
    try {
      server.dialect.clockSkewMs = 31 * 86_400_000;
      // The mark is a month old, for the server and for the process.
      expect(await inAnotherProcess('later')).toBeGreaterThan(60);
    } finally {
      vi.useRealTimers();
      // What was loaded meanwhile holds on to the wrong clock.
      vi.resetModules();
    }
  });

  it('is remembered without its credentials, or a key in its endpoint', async () => {
    await create('first');
    for (const key of marks()) {
      const text = Buffer.from(server.objects(bucketName).get(key)?.bytes ?? []).toString();
      expect(text).not.toContain(server.credentials.secretAccessKey);
      expect(JSON.parse(text)).toMatchObject({ driver: 'object-store', rules: 1 });
    }
  });
});

async function foundOf(driver: StorageDriver, key: string): Promise<{ bytes: Uint8Array }> {
  const found = await driver.get(key);
  if (found.status !== 'found') throw new Error(`${key} is ${found.status}`);
  return found;
}

describe('a store whose bucket cannot remember it', () => {
  it('is remembered by the process where credentials are for the prefix alone', async () => {
    server.intercept = ({ key }) => (key.startsWith('_storedb/') ? { status: 403, code: 'AccessDenied' } : undefined);
    expect(await create('first')).toBeGreaterThan(60);
    expect(marks()).toEqual([]);
    expect(await create('second')).toBeLessThan(8);
  });

  it('is remembered by the driver where it does not name it', async () => {
    const driver = ownClientDriver(server);
    const shared: StorageDriver = Object.assign(new ObservedDriver(driver), { close: undefined });
    expect(await create('first', shared)).toBeGreaterThan(60);
    expect(await create('second', shared)).toBeLessThan(8);
    expect(marks()).toEqual([]);
    const other = ownClientDriver(server);
    expect(await create('third', other)).toBeGreaterThan(60);
    await driver.close();
  });

  it('is tried out again if it was found unsafe', async () => {
    await start({ dialect: { ignoreIfMatch: true } });
    await expect(create('first')).rejects.toMatchObject({ code: 'UNSAFE_STORE' });
    expect(marks()).toEqual([]);
    await expect(create('second')).rejects.toMatchObject({ code: 'UNSAFE_STORE' });
  });
});
