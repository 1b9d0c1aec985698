/** A gateway that is started again while a database is in use: nobody hears of it, save that it took longer. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { ObjectStoreDriver } from '../../../src/storage/index.ts';
import type { S3Server } from '../s3-server/server.ts';
import { bucketName, startStore } from './bucket.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, file: { typeId: Types.blob } },
  primaryKey: 'id',
} as const;

let store: S3Server;
beforeAll(async () => {
  store = await startStore();
});
afterAll(() => store.close());

/** What stands before the store: can be ended, which cuts all connections, and started again on the same port. */
class Gateway {
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  port = 0;

  constructor(target: number) {
    this.#target = target;
  }

  async start(): Promise<void> {
    const server = createServer((client) => {
      const upstream = connect(this.#target, '127.0.0.1');
      for (const [socket, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  async end(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  }

  async restart(awayMs: number): Promise<void> {
    await this.end();
    await wait(awayMs);
    await this.start();
  }
}

async function openBehind(prefix: string) {
  const gateway = new Gateway(Number(new URL(store.endpoint).port));
  await gateway.start();
  const driver = new ObjectStoreDriver({ bucket: bucketName, endpoint: `http://127.0.0.1:${gateway.port}` });
  const db = StoreDb({ dbPrefix: prefix, nodeId: 0, driver, logLevel: 'silent', polling: 'onDemand' });
  db.registerSchema(notes);
  await db.start();
  onTestFinished(async () => {
    await db.stop().catch(() => undefined);
    await driver.close();
    await gateway.end();
  });
  return { gateway, db };
}

/** Three seconds: more than the attempts that any failure gets take. */
const awayMs = 3000;

describe('while the gateway is away for some seconds', { timeout: 60_000 }, () => {
  it('a flush of rows, of bytes and of a stream waits for it', async () => {
    const { gateway, db } = await openBehind('flushes');
    const pieces = async function* (): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 20; i++) {
        // Parts are on their way, and others are yet to come.
        if (i === 10) await wait(100);
        yield Buffer.alloc(1024 * 1024, i);
      }
    };
    const files = [null, db.Blob(Buffer.alloc(100_000, 'a')), db.Blob(Readable.from(pieces()))];
    for (const [id, file] of files.entries()) {
      const batch = db.batch();
      void batch.insert(notes, { id, text: `note ${id}`, file });
      const restarted = gateway.restart(awayMs);
      await batch.flush();
      await restarted;
    }
    const rows = await db.query(notes).execute();
    expect(rows.map(({ id }) => id)).toEqual([0, 1, 2]);
    expect(await db.getBlob(rows[2]?.file as string).size()).toBe(20 * 1024 * 1024);
    expect(await db.verify({ deep: true })).toMatchObject({ ok: true });
  });

  it('reads, refreshes, merges and transactions wait for it', async () => {
    const { gateway, db } = await openBehind('others');
    const batch = db.batch();
    for (let id = 0; id < 100; id++) void batch.insert(notes, { id, text: `note ${id}` });
    await batch.flush();
    const calls: readonly [string, () => Promise<unknown>][] = [
      ['refresh', () => db.refresh()],
      ['checkpoint', () => db.checkpoint()],
      ['transaction', () => db.transaction((tx) => tx.get(notes, 5))],
      ['gc', () => db.gc()],
      ['snapshot', async () => (await db.snapshot()).release()],
      ['stop', () => db.stop()],
    ];
    for (const [what, call] of calls) {
      await gateway.end();
      const called = call();
      await wait(awayMs);
      await gateway.start();
      await expect(called.then(() => what)).resolves.toBe(what);
    }
  });

  it('503 of a proxy before the store is waited out', async () => {
    const { db } = await openBehind('busy');
    const untilMs = Date.now() + awayMs;
    store.intercept = () => (Date.now() < untilMs ? { status: 503, code: 'ServiceUnavailable' } : undefined);
    onTestFinished(() => {
      store.intercept = undefined;
    });
    const batch = db.batch();
    void batch.insert(notes, {
      id: 1,
      text: 'one',
      file: db.Blob(Readable.from([Buffer.from('a'), Buffer.from('b')])),
    });
    await batch.flush();
    expect(await db.query(notes).count()).toBe(1);
  });
});

it('one that stays away is waited for once: later calls fail at once', { timeout: 60_000 }, async () => {
  const { gateway, db } = await openBehind('down');
  await gateway.end();
  const beganMs = Date.now();
  await expect(db.refresh()).rejects.toMatchObject({ code: 'STORAGE', reason: 'unavailable' });
  expect(Date.now() - beganMs).toBeGreaterThan(8000);
  for (const call of [() => db.refresh(), () => db.checkpoint()]) {
    const calledMs = Date.now();
    await expect(call()).rejects.toMatchObject({ code: 'STORAGE' });
    expect(Date.now() - calledMs).toBeLessThan(5000);
  }
  await gateway.start();
  await db.refresh();
});
