/** Collecting garbage in a bucket: many keys in a request, parts of uploads that nobody completes, and denied deletions. */
import { CreateMultipartUploadCommand, UploadPartCommand } from '@aws-sdk/client-s3';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { reachableNames, superfluousNames } from '../../features/gc/reachable.ts';
import { amazonDialect } from '../s3-server/dialect.ts';
import type { S3Server } from '../s3-server/server.ts';
import { bucketName, driverOf, startStore } from './bucket.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, file: { typeId: Types.blob } },
  primaryKey: 'id',
} as const;

const dayMs = 86_400_000;
let server: S3Server;
let db: Database;

beforeAll(async () => {
  server = await startStore();
});
afterAll(() => server.close());
beforeEach(async () => {
  db = StoreDb({
    dbPrefix: 'db',
    nodeId: 0,
    driver: driverOf(server),
    logLevel: 'silent',
    writeForwardInterval: dayMs,
    blockSizeBytes: 512,
  });
  db.registerSchema(notes);
  await db.start();
});
afterEach(async () => {
  Object.assign(server.dialect, amazonDialect);
  server.intercept = undefined;
  await db.stop();
});

async function write(from: number, to: number, text: string): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < to; id++) void batch.upsert(notes, { id, text: `${text} ${id}` });
  await batch.flush();
  await db.checkpoint();
}

function superfluous(): Promise<string[]> {
  return superfluousNames(driverOf(server), 'db');
}

async function expectExact(): Promise<void> {
  // Everything that it consists of is there, or this rejects.
  await reachableNames(driverOf(server), 'db');
  expect(await superfluous()).toEqual([]);
}

function count(operation: string): number {
  return server.log.filter((request) => request.operation === operation).length;
}

describe('gc in a bucket', () => {
  it('deletes a thousand objects in a request, and leaves reachable ones', async () => {
    await write(0, 100, 'first');
    await write(0, 100, 'second');
    await db.gc({ loopGraceMs: 0, logRetentionMs: 0 });
    await expectExact();
    const keys = Array.from(
      { length: 1100 },
      (_, i) => `db/data/notes/000000000000-${i.toString(16).padStart(16, '0')}`,
    );
    const driver = driverOf(server);
    for (let at = 0; at < keys.length; at += 100) {
      await Promise.all(keys.slice(at, at + 100).map((key) => driver.put(key, new Uint8Array(1), { if: 'any' })));
    }
    server.clearLog();
    expect(await db.gc({ loopGraceMs: 0, logRetentionMs: 0 })).toMatchObject({ deletedCount: 1100, failed: [] });
    expect(count('DeleteObjects')).toBe(2);
    expect(count('DeleteObject')).toBe(0);
    expect(server.log.filter(({ query }) => query['prefix'] === 'db/data/')).toHaveLength(2);
    await expectExact();
    expect(await db.verify()).toMatchObject({ ok: true });
  });

  it('deletes one by one where the store takes no more', async () => {
    await write(0, 300, 'first');
    await write(0, 300, 'second');
    server.dialect.noDeleteObjects = true;
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    expect((await db.gc({ loopGraceMs: 0, logRetentionMs: 0 })).deletedCount).toBeGreaterThan(5);
    await new Promise(setImmediate);
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    await expectExact();
  });

  it('reports objects that may not be deleted, and takes them when they may', async () => {
    await write(0, 100, 'first');
    await write(0, 100, 'second');
    const before = await superfluous();
    server.dialect.noDelete = true;
    const report = await db.gc({ loopGraceMs: 0, logRetentionMs: 0 });
    expect(report).toMatchObject({ deletedCount: 0, freedBytes: 0 });
    const names = new Set(report.failed.map(({ name }) => name));
    expect(before.filter((name) => !names.has(name))).toEqual([]);
    expect(report.failed[0]?.message).toContain('AccessDenied');
    server.dialect.noDelete = false;
    expect(await db.gc({ loopGraceMs: 0, logRetentionMs: 0 })).toMatchObject({ failed: [] });
    // What the run before left of its probe goes after a day.
    expect((await superfluous()).filter((name) => !name.startsWith('probe/'))).toEqual([]);
    server.dialect.clockSkewMs = dayMs + 1000;
    await db.gc({ loopGraceMs: 0, logRetentionMs: 0 });
    await expectExact();
  });

  it('reports it as well where it is about a single object', async () => {
    await write(0, 5, 'first');
    await db.gc({ loopGraceMs: 0, logRetentionMs: 0 });
    await driverOf(server).put('db/data/notes/000000000000-0000000000000000', new Uint8Array(1), { if: 'any' });
    server.dialect.noDelete = true;
    expect(await db.gc({ loopGraceMs: 0, logRetentionMs: 0 })).toMatchObject({
      deletedCount: 0,
      failed: [{ name: 'data/notes/000000000000-0000000000000000' }],
    });
  });

  it('removes parts of uploads that nobody completed, once the grace is over', async () => {
    const client = server.client();
    const upload = { Bucket: bucketName, Key: 'db/blobs/00000000-0000-4000-8000-000000000001' };
    const others = { Bucket: bucketName, Key: 'dbx/blobs/00000000-0000-4000-8000-000000000001' };
    for (const target of [upload, others]) {
      const { UploadId } = await client.send(new CreateMultipartUploadCommand(target));
      await client.send(new UploadPartCommand({ ...target, UploadId, PartNumber: 1, Body: Buffer.alloc(5_242_880) }));
    }
    const keys = (): string[] => server.uploads(bucketName).map(({ key }) => key);
    expect(keys()).toHaveLength(2);
    await db.gc({ loopGraceMs: 0, dryRun: true, graceMs: 0 });
    expect(keys()).toHaveLength(2);
    await db.gc({ loopGraceMs: 0 });
    expect(keys()).toHaveLength(2);
    server.dialect.clockSkewMs = dayMs + 60_000;
    await db.gc({ loopGraceMs: 0 });
    expect(keys()).toEqual([others.Key]);
    client.destroy();
  });

  it('aborts an upload that is under way at the worst, which then fails and is no less whole', async () => {
    let collected = false;
    async function* slow(): AsyncGenerator<Buffer> {
      for (let i = 0; i < 12; i++) {
        yield Buffer.alloc(1024 * 1024, i);
        if (i !== 10 || collected) continue;
        collected = true;
        server.dialect.clockSkewMs = 10_000;
        await db.gc({ loopGraceMs: 0, graceMs: 0 });
      }
    }
    const batch = db.batch();
    void batch.insert(notes, { id: 900, file: db.Blob(slow()) });
    const outcome = await batch.flush().then(
      () => 'flushed',
      (error: unknown) => (error as { code: string }).code,
    );
    expect(collected).toBe(true);
    const row = await db.get(notes, 900);
    const stored = outcome === 'flushed' ? await db.getBlob(row?.file as string).size() : row;
    expect([
      ['flushed', 12 * 1024 * 1024],
      ['STORAGE', undefined],
    ]).toContainEqual([outcome, stored]);
    expect(server.uploads(bucketName).filter(({ key }) => key.startsWith('db/'))).toEqual([]);
  });

  it('does all else where uploads may not be listed', async () => {
    await write(0, 100, 'first');
    await write(0, 100, 'second');
    server.intercept = ({ operation }) => {
      return operation === 'ListMultipartUploads' ? { status: 403, code: 'AccessDenied' } : undefined;
    };
    expect((await db.gc({ loopGraceMs: 0, logRetentionMs: 0 })).deletedCount).toBeGreaterThan(5);
    await expectExact();
  });
});
