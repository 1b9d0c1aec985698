/** Blobs in a bucket: parts, ranges, links, and nothing left of uploads that were given up. */
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import type { S3Server } from '../s3-server/server.ts';
import { bucketName, driverOf, startStore } from './bucket.ts';

const files = {
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, content: { typeId: Types.blob } },
  primaryKey: 'id',
} as const;

const mebibyte = 1024 * 1024;
let server: S3Server;
let db: Database;

beforeAll(async () => {
  server = await startStore();
});
afterAll(() => server.close());
beforeEach(async () => {
  db = StoreDb({ dbPrefix: 'db', nodeId: 0, driver: driverOf(server), logLevel: 'silent' });
  db.registerSchema(files);
  await db.start();
  server.clearLog();
});
afterEach(() => db.stop());

function pattern(sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes);
  for (let i = 0; i < sizeBytes; i += 97) bytes[i] = (i * 31) & 255;
  return bytes;
}

async function store(id: number, data: Buffer | Readable): Promise<string> {
  const batch = db.batch();
  void batch.insert(files, { id, content: db.Blob(data, { contentType: 'image/png' }) });
  await batch.flush();
  return ((await db.get(files, id)) as { content: string }).content;
}

function operations(): string[] {
  return server.log
    .map(({ operation, key }) => `${operation} ${key.split('/')[1]}`)
    .filter((line) => line.endsWith('blobs'));
}

it('of up to 8 MiB are put at once, and larger ones in parts', async () => {
  await store(1, pattern(8 * mebibyte));
  expect(operations()).toEqual(['PutObject blobs']);
  server.clearLog();
  const large = pattern(20 * mebibyte + 5);
  const reference = await store(2, large);
  expect(operations().filter((line) => line.startsWith('UploadPart'))).toHaveLength(3);
  expect((await db.getBlob(reference).getBuffer()).equals(large)).toBe(true);
  const streamed = await store(3, Readable.from([large.subarray(0, 7_000_000), large.subarray(7_000_000)]));
  expect((await db.getBlob(streamed).getBuffer()).equals(large)).toBe(true);
});

it('are read by range: only the chunks that it touches', async () => {
  const large = pattern(20 * mebibyte);
  const reference = await store(10, large);
  server.clearLog();
  const part = await db.getBlob(reference).getBuffer(10_000_000, 10_000_100);
  expect(part.equals(large.subarray(10_000_000, 10_000_100))).toBe(true);
  const reads = server.log.filter(({ key }) => key.includes('/blobs/'));
  expect(reads).toHaveLength(1);
  expect(reads[0]?.bytesOut).toBe(65_536);
});

it('are downloaded through a link, byte for byte, by anyone, for a while', async () => {
  const content = pattern(9 * mebibyte);
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
  expect((await fetch(expired)).status).toBe(403);
  server.dialect.clockSkewMs = 0;
});

it.each([
  ['text/html', {}, 'text/html', 'attachment'],
  ['TEXT/HTML; charset=utf-8', {}, 'TEXT/HTML; charset=utf-8', 'attachment'],
  ['image/svg+xml', {}, 'image/svg+xml', 'attachment'],
  ['application/xhtml+xml', {}, 'application/xhtml+xml', 'attachment'],
  ['application/xml', {}, 'application/xml', 'attachment'],
  ['text/javascript', {}, 'text/javascript', 'attachment'],
  ['multipart/x-mixed-replace', {}, 'multipart/x-mixed-replace', 'attachment'],
  ['html', {}, 'html', 'attachment'],
  ['image/png', {}, 'image/png', null],
  ['text/plain; charset=utf-8', {}, 'text/plain; charset=utf-8', null],
  ['application/pdf', {}, 'application/pdf', null],
  ['application/json', {}, 'application/json', null],
  ['image/png', { contentType: 'text/html' }, 'text/html', 'attachment'],
  ['text/html', { contentType: 'text/plain' }, 'text/plain', null],
  ['text/html', { contentDisposition: 'inline' }, 'text/html', 'inline'],
  [
    'image/png',
    { contentDisposition: 'attachment; filename="a b.png"' },
    'image/png',
    'attachment; filename="a b.png"',
  ],
] as const)('of type %s with %o are downloaded as %s, %s', async (contentType, options, type, disposition) => {
  const batch = db.batch();
  await batch.upsert('files', { id: 60, content: db.Blob('<script>', { contentType }) });
  await batch.flush();
  const reference = String((await db.get('files', 60))?.['content']);
  const answer = await fetch(await db.getBlob(reference).getDownloadUrl(options));
  expect([answer.headers.get('content-type'), answer.headers.get('content-disposition')]).toEqual([type, disposition]);
  expect(await answer.text()).toBe('<script>');
});

it('that are given up, or whose source breaks, leave nothing, and the batch can be repaired', async () => {
  const before = [...server.objects(bucketName).keys()];
  const controller = new AbortController();
  const batch = db.batch();
  async function* endless(): AsyncGenerator<Buffer> {
    for (let i = 0; ; i++) {
      if (i === 20) controller.abort();
      yield await Promise.resolve(Buffer.alloc(mebibyte, i));
    }
  }
  void batch.insert(files, { id: 30, content: db.Blob(Readable.from(endless())) });
  await expect(batch.flush({ signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
  batch.clear();
  async function* broken(): AsyncGenerator<Buffer> {
    for (let i = 0; i < 20; i++) yield await Promise.resolve(Buffer.alloc(mebibyte, i));
    throw new Error('the source broke');
  }
  void batch.insert(files, { id: 30, content: db.Blob(Readable.from(broken())) });
  await expect(batch.flush()).rejects.toMatchObject({ code: 'STORAGE', outcome: 'none' });
  batch.clear();
  expect(server.uploads(bucketName)).toEqual([]);
  expect([...server.objects(bucketName).keys()]).toEqual(before);
  await store(30, pattern(10));
});

it('are uploaded by a store that fails now and then', async () => {
  let asked = 0;
  server.intercept = ({ operation }) =>
    operation === 'UploadPart' && ++asked % 3 === 1 ? { status: 503, code: 'SlowDown' } : undefined;
  const large = pattern(30 * mebibyte);
  const reference = await store(40, large);
  server.intercept = undefined;
  expect((await db.getBlob(reference).getBuffer()).equals(large)).toBe(true);
});
