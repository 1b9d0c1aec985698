/** Blobs in a bucket of Cloud Storage: chunks, ranges, links, and processes that share a database. */
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { startGcsServer } from '../gcs-server/server.ts';
import type { GcsServer } from '../gcs-server/server.ts';
import { driverOf } from './bucket.ts';

const files = {
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, content: { typeId: Types.blob } },
  primaryKey: 'id',
} as const;
const counters = {
  name: 'counters',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, n: { typeId: Types.uint32 } },
  primaryKey: 'id',
} as const;

const mebibyte = 1024 * 1024;
let server: GcsServer;
let db: Database;

beforeAll(async () => {
  server = await startGcsServer();
});
afterAll(() => server.close());

async function open(nodeId: number): Promise<Database> {
  const opened = StoreDb({ dbPrefix: 'db', nodeId, nodes: [0, 1], driver: driverOf(server), logLevel: 'silent' });
  opened.registerSchema(files);
  opened.registerSchema(counters);
  await opened.start();
  return opened;
}

beforeEach(async () => {
  db = await open(0);
  server.clearLog();
});
afterEach(async () => {
  server.intercept = undefined;
  await db.stop();
});

function pattern(sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  for (let i = 0; i < sizeBytes; i += 97) bytes[i] = (i * 31) & 255;
  return bytes;
}

async function store(id: number, data: Buffer | Readable, contentType = 'image/png'): Promise<string> {
  const batch = db.batch();
  void batch.insert(files, { id, content: db.Blob(data, { contentType }) });
  await batch.flush();
  return ((await db.get(files, id)) as { content: string }).content;
}

it('large ones are uploaded in chunks, and read by range', async () => {
  const large = pattern(20 * mebibyte + 5);
  const reference = await store(1, Readable.from([large.subarray(0, 7_000_000), large.subarray(7_000_000)]));
  expect(server.count('session.put')).toBe(3);
  expect((await db.getBlob(reference).getBuffer()).equals(large)).toBe(true);
  server.clearLog();
  const part = await db.getBlob(reference).getBuffer(10_000_000, 10_000_100);
  expect(part.equals(large.subarray(10_000_000, 10_000_100))).toBe(true);
  expect(server.log.filter(({ key }) => key.includes('/blobs/'))).toHaveLength(1);
});

it('are downloaded through a link, by anyone, for a while', async () => {
  const content = pattern(mebibyte);
  const reference = await store(20, content);
  const url = await db.getBlob(reference).getDownloadUrl({ expiresIn: 60 });
  const answer = await fetch(url);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('image/png');
  expect(Buffer.from(await answer.arrayBuffer()).equals(content)).toBe(true);
  const changed = url.replace(/Signature=./, (text) => (text.endsWith('0') ? 'Signature=1' : 'Signature=0'));
  expect((await fetch(changed)).status).toBe(403);
  const expired = await db.getBlob(reference).getDownloadUrl({ expiresIn: 1 });
  server.dialect.clockSkewMs = 5000;
  expect((await fetch(expired)).status).toBe(400);
  server.dialect.clockSkewMs = 0;
});

it.each([
  ['text/html', {}, 'text/html', 'attachment'],
  ['image/png', {}, 'image/png', null],
  ['image/png', { contentType: 'text/plain; charset=utf-8' }, 'text/plain; charset=utf-8', null],
  [
    'image/png',
    { contentDisposition: `attachment; filename="a b's (1)!*.png"` },
    'image/png',
    `attachment; filename="a b's (1)!*.png"`,
  ],
] as const)('of type %s with %o are downloaded as %s, %s', async (contentType, options, type, disposition) => {
  const batch = db.batch();
  await batch.upsert('files', { id: 60, content: db.Blob('<script>', { contentType }) });
  await batch.flush();
  const reference = String((await db.get('files', 60))?.['content']);
  const answer = await fetch(await db.getBlob(reference).getDownloadUrl(options));
  expect([answer.headers.get('content-type'), answer.headers.get('content-disposition')]).toEqual([type, disposition]);
});

it('a flush takes two requests', async () => {
  const batch = db.batch();
  void batch.upsert(counters, { id: 1, n: 0 });
  server.clearLog();
  await batch.flush();
  expect(server.log.filter(({ key }) => key.includes('/committed/')).map(({ operation }) => operation)).toEqual([
    'insert',
  ]);
  expect(server.log.length).toBeLessThanOrEqual(2);
});

it('two instances lose no increment while connections are cut', { timeout: 60_000 }, async () => {
  const other = await open(1);
  const batch = db.batch();
  void batch.upsert(counters, { id: 7, n: 0 });
  await batch.flush();
  let count = 0;
  server.intercept = () => {
    count++;
    if (count % 11 === 0) return 'reset-after';
    return count % 13 === 0 ? { status: 503 } : undefined;
  };
  const add = async (on: Database): Promise<void> => {
    for (let i = 0; i < 20; i++) {
      const added = on.batch();
      void added.increment(counters, 7, { n: 1 });
      await added.flush();
    }
  };
  await Promise.all([add(db), add(other)]);
  server.intercept = undefined;
  await other.stop();
  await db.refresh();
  expect(await db.get(counters, 7)).toMatchObject({ n: 40 });
  expect((await db.verify()).findings).toEqual([]);
});
