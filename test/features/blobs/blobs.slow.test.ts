/** Managed blobs: their sources, their reads, and the system tables that list them. */
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import {
  BlobNotFoundError,
  BlobReferenceError,
  CorruptionError,
  defineSchema,
  InvalidOptionError,
  NotSupportedError,
  Types,
} from '../../../src/index.ts';
import type { BlobData, Database } from '../../../src/index.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { PresignOptions, StorageDriver } from '../../../src/storage/index.ts';
import { ObservedDriver } from '../../../src/storage/wrap/observed-driver.ts';
import type { ObservedRequest } from '../../../src/storage/wrap/observed-driver.ts';
import { driversUnderTest, localDrivers, newDriver, newFolder } from '../values/driver-under-test.ts';
import { column, failure, flushed, makeDatabase, openDatabase, prefix, thrown } from '../values/open-database.ts';

const files = defineSchema({
  name: 'files',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    data: { typeId: Types.blob },
    thumb: { typeId: Types.blob },
  },
  primaryKey: 'id',
});

const chunk = 65_536;

/** Bytes that differ everywhere, so that a shifted range is seen. */
function pattern(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >> 8) * 17 + (i >> 16)) & 0xff;
  return bytes;
}

async function referenceOf(db: Database, id = 1, field: 'data' | 'thumb' = 'data'): Promise<string> {
  return (await db.get(files, id))?.[field] as string;
}

async function store(db: Database, data: BlobData, id = 1): Promise<string> {
  await flushed(db, (batch) => void batch.upsert(files, { id, data: db.Blob(data) }));
  return referenceOf(db, id);
}

/** Pieces of odd sizes. */
function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 7) % 70_001)
    yield bytes.subarray(at, at + size);
}

async function* generated(bytes: Buffer): AsyncGenerator<Buffer> {
  // Each time in the same memory, as readers of files do.
  const shared = Buffer.alloc(70_001);
  for (const piece of pieces(bytes)) {
    piece.copy(shared);
    yield shared.subarray(0, piece.length);
  }
}

const makers: readonly (readonly [string, (bytes: Buffer) => BlobData])[] = [
  ['Buffer', (bytes) => bytes],
  ['Uint8Array', (bytes) => new Uint8Array(bytes)],
  ['Readable', (bytes) => Readable.from(pieces(bytes))],
  ['web stream', (bytes) => Readable.toWeb(Readable.from(pieces(bytes))) as ReadableStream<Uint8Array>],
  ['async generator', generated],
];

describe.each(driversUnderTest)('a blob on %s', (_, makeDriver) => {
  it.each(makers)('made of a %s is stored as exactly its bytes', async (_kind, make) => {
    const driver = makeDriver();
    const db = await openDatabase([files], driver);
    for (const length of [0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk + 5, 1_000_000]) {
      const bytes = pattern(length);
      const reference = await store(db, make(bytes));
      expect(reference).toMatch(/^[0-9a-f-]{36}$/);
      const object = await driver.get(`${prefix}/blobs/${reference}`);
      expect(object).toMatchObject({ status: 'found', sizeBytes: length });
      expect(object.status === 'found' && bytes.equals(object.bytes)).toBe(true);
      const blob = db.getBlob(reference);
      expect(blob.reference).toBe(reference);
      expect(await blob.size()).toBe(length);
      expect(bytes.equals(await blob.getBuffer())).toBe(true);
      expect(bytes.equals(await buffer(blob.stream()))).toBe(true);
    }
    await db.checkpoint();
    expect(await db.verify()).toMatchObject({ ok: true });
  });

  it('made of a string is UTF-8, and is read in any encoding', async () => {
    const db = await openDatabase([files], makeDriver());
    const text = 'naïve €\u{1F600}';
    const reference = await store(db, text);
    const bytes = Buffer.from(text);
    const blob = db.getBlob(reference);
    expect(await blob.size()).toBe(bytes.length);
    expect(await blob.getString()).toBe(text);
    for (const encoding of ['utf8', 'hex', 'base64', 'base64url', 'latin1', 'ascii', 'utf16le', 'binary'] as const) {
      expect(await blob.getString(undefined, undefined, encoding)).toBe(bytes.toString(encoding));
      expect(await blob.getString(2, -3, encoding)).toBe(bytes.subarray(2, -3).toString(encoding));
    }
    const strings = await store(db, Readable.from(['na', 'ïve €', '\u{1F600}']));
    expect(await db.getBlob(strings).getString()).toBe(text);
  });
});

describe('a range', () => {
  const size = 3 * chunk + 100;
  const bytes = pattern(size);

  it('equals Buffer.subarray, as a buffer and as a stream', async () => {
    const db = await openDatabase([files]);
    const blob = db.getBlob(await store(db, bytes));
    const edges = [
      undefined,
      0,
      1,
      -1,
      -100,
      chunk - 1,
      chunk,
      chunk + 1,
      2 * chunk,
      size - 1,
      size,
      size + 1,
      -size,
      -size - 1,
      1e12,
      -1e12,
    ];
    for (const start of edges) {
      for (const end of edges) {
        const expected = bytes.subarray(start, end);
        expect(expected.equals(await blob.getBuffer(start, end)), `${start} to ${end}`).toBe(true);
        expect(expected.equals(await buffer(blob.stream(start, end))), `${start} to ${end}`).toBe(true);
      }
    }
    const empty = db.getBlob(await store(db, ''));
    for (const start of [undefined, 0, -1, 5]) expect(await empty.getBuffer(start, 9)).toHaveLength(0);
  });

  it.each([1.5, Number.NaN, Infinity, '1', {}])('refuses the offset %s', async (offset) => {
    const db = await openDatabase([files]);
    const blob = db.getBlob(await store(db, bytes));
    expect(await failure(blob.getBuffer(offset as number))).toBeInstanceOf(InvalidOptionError);
    expect(await failure(blob.getBuffer(0, offset as number))).toMatchObject({ code: 'INVALID_OPTION', option: 'end' });
    expect(await failure(blob.getString(offset as number))).toMatchObject({ code: 'INVALID_OPTION', option: 'start' });
    expect(await failure(buffer(blob.stream(offset as number)))).toMatchObject({ code: 'INVALID_OPTION' });
  });

  it('fetches the chunks that it touches, and nothing else', async () => {
    const requests: ObservedRequest[] = [];
    const driver = new ObservedDriver(newDriver(), { onRequest: (request) => requests.push(request) });
    const db = await openDatabase([files], driver);
    const blob = db.getBlob(await store(db, bytes));
    const cost = async (start?: number, end?: number): Promise<number[]> => {
      requests.length = 0;
      await blob.getBuffer(start, end);
      return requests.map((request) => request.bytes);
    };
    expect(await cost(0, 1)).toEqual([chunk]);
    expect(await cost(chunk - 1, chunk)).toEqual([chunk]);
    expect(await cost(chunk, chunk + 1)).toEqual([chunk]);
    expect(await cost(chunk - 1, chunk + 1)).toEqual([2 * chunk]);
    expect(await cost(-1)).toEqual([100]);
    expect(await cost(2 * chunk + 5)).toEqual([chunk + 100]);
    expect(await cost()).toEqual([size]);
    expect(await cost(7, 7)).toEqual([]);
    expect(await cost(size)).toEqual([]);
    requests.length = 0;
    await blob.size();
    expect(requests).toEqual([]);
  });

  it('of a large blob is streamed in pieces of some megabytes, as far as somebody reads', async () => {
    const driver = new ObservedDriver(newDriver());
    const db = await openDatabase([files], driver);
    const large = pattern(40 * 1024 * 1024);
    const blob = db.getBlob(await store(db, large));
    driver.reset();
    let read = 0;
    for await (const piece of blob.stream(100)) {
      const bytesRead = piece as Buffer;
      expect(bytesRead.equals(large.subarray(100 + read, 100 + read + bytesRead.length))).toBe(true);
      read += bytesRead.length;
      if (read > 10_000_000) break;
    }
    expect(driver.snapshot().bytesRead).toBeLessThanOrEqual(24 * 1024 * 1024);
  });

  it('is the reader’s own: changing it changes nothing', async () => {
    const db = await openDatabase([files]);
    const given = Buffer.from(bytes);
    const value = db.Blob(given);
    given.fill(0);
    await flushed(db, (batch) => void batch.insert(files, { id: 1, data: value }));
    const blob = db.getBlob(await referenceOf(db));
    (await blob.getBuffer()).fill(1);
    for await (const piece of blob.stream()) (piece as Buffer).fill(2);
    expect(bytes.equals(await blob.getBuffer())).toBe(true);
  });
});

describe('the system tables', () => {
  it('name the owner, the size and the content type, and can be read like any other', async () => {
    const db = await openDatabase([files]);
    const before = Date.now();
    await flushed(db, (batch) => {
      void batch.insert(files, {
        id: 7,
        data: db.Blob(pattern(chunk + 1), { contentType: 'image/png' }),
        thumb: db.Blob('t'),
      });
    });
    const rows = await db.query('_blobs').orderBy('field').execute();
    const row = await db.get(files, 7);
    expect(rows).toMatchObject([
      { id: row?.data, table: 'files', field: 'data', sizeBytes: chunk + 1, contentType: 'image/png' },
      { id: row?.thumb, table: 'files', field: 'thumb', sizeBytes: 1, contentType: 'application/octet-stream' },
    ]);
    expect(rows[0]?.['checksums']).toHaveLength(8);
    expect(Number(rows[0]?.['createdAt'])).toBeGreaterThanOrEqual(before);
    expect(rows[0]?.['key']).toEqual(rows[1]?.['key']);
    expect(await db.query('_deleted_blobs').execute()).toEqual([]);
    await db.checkpoint();
    expect(await db.query('_blobs').where('sizeBytes', '>', 1).count()).toBe(1);
    for (const table of ['_blobs', '_deleted_blobs']) {
      expect(thrown(() => db.registerSchema({ ...files, name: table }))).toMatchObject({ code: 'INVALID_SCHEMA' });
      expect(await failure(db.batch().upsert(table, { id: row?.data }))).toMatchObject({ code: 'BATCH_STATE' });
      expect(await failure(db.batch().delete(table, row?.data))).toMatchObject({ code: 'BATCH_STATE' });
    }
  });

  it('list blobs that were replaced, set to null or deleted with their rows, in every way', async () => {
    const db = await openDatabase([files]);
    await flushed(db, (batch) => {
      for (let id = 1; id <= 6; id++)
        void batch.insert(files, { id, data: db.Blob(`data ${id}`), thumb: db.Blob(`thumb ${id}`) });
    });
    const old = new Map((await db.query(files).execute()).map((row) => [row.id, row]));
    await flushed(db, (batch) => {
      void batch.update(files, { id: 1, data: db.Blob('new') });
      void batch.update(files, { id: 2, data: null });
      void batch.delete(files, 3);
      void batch.upsert(files, { id: 4, name: 'without blobs' });
      void batch.upsert(files, { id: 5, data: db.Blob('new'), thumb: old.get(5)?.thumb ?? null });
      void batch.update(files, { id: 6, name: 'blobs stay' });
    });
    const gone = [
      old.get(1)?.data,
      old.get(2)?.data,
      old.get(3)?.data,
      old.get(3)?.thumb,
      old.get(4)?.data,
      old.get(4)?.thumb,
      old.get(5)?.data,
    ];
    const deleted = await db.query('_deleted_blobs').execute();
    expect(new Set(column(deleted, 'id'))).toEqual(new Set(gone));
    expect(deleted).toHaveLength(gone.length);
    expect(deleted[0]).toMatchObject({ table: 'files' });
    expect(await db.query('_blobs').count()).toBe(12 - gone.length + 2);
    expect(await db.getBlob(old.get(1)?.thumb as string).getString()).toBe('thumb 1');
    expect(await db.getBlob(old.get(5)?.thumb as string).getString()).toBe('thumb 5');
    expect(await db.getBlob(await referenceOf(db, 5)).getString()).toBe('new');
    for (const reference of gone) {
      expect(await failure(db.getBlob(reference as string).getBuffer())).toBeInstanceOf(BlobNotFoundError);
    }
    await db.checkpoint();
    expect(await db.verify()).toMatchObject({ ok: true });
  });

  it('have no trace of a blob that did not outlive its batch', async () => {
    const db = await openDatabase([files]);
    await flushed(db, (batch) => {
      void batch.insert(files, { id: 1, data: db.Blob('first') });
      void batch.update(files, { id: 1, data: db.Blob('second') });
      void batch.insert(files, { id: 2, data: db.Blob('third') });
      void batch.delete(files, 2);
    });
    expect(await db.query('_blobs').execute()).toMatchObject([{ id: await referenceOf(db), sizeBytes: 6 }]);
    expect(await db.query('_deleted_blobs').count()).toBe(0);
  });
});

describe('a reference', () => {
  it('of its own may be written back by the row; any other is refused', async () => {
    const db = await openDatabase([files]);
    await flushed(db, (batch) => {
      void batch.insert(files, { id: 1, data: db.Blob('one'), thumb: db.Blob('thumb') });
      void batch.insert(files, { id: 2, data: db.Blob('two') });
    });
    const [one, two] = await db.query(files).execute();
    await flushed(db, (batch) => void batch.update(files, { ...one, id: 1, name: 'same' }));
    await flushed(
      db,
      (batch) => void batch.upsert(files, { ...one, id: 1, data: one?.data?.toUpperCase() ?? null, name: 'again' }),
    );
    expect(await db.get(files, 1)).toEqual({ ...one, name: 'again' });
    expect(await db.query('_deleted_blobs').count()).toBe(0);
    const unknown = '00000000-0000-4000-8000-000000000000';
    for (const [data, reference] of [
      [{ id: 1, data: two?.data }, two?.data],
      [{ id: 2, data: one?.data }, one?.data],
      [{ id: 3, data: one?.data }, one?.data],
      // Of the same row, but of another field.
      [{ id: 1, data: one?.thumb }, one?.thumb],
      [{ id: 1, data: unknown }, unknown],
    ] as const) {
      const batch = db.batch();
      void batch.upsert('files', data);
      const error = await failure(batch.flush());
      expect(error).toBeInstanceOf(BlobReferenceError);
      expect(error).toMatchObject({ code: 'BLOB_REFERENCE', reference });
      expect(batch.size).toBe(1);
    }
    // The row must hold it still: what was replaced does not come back.
    await flushed(db, (batch) => void batch.update(files, { id: 1, data: null }));
    const batch = db.batch();
    void batch.update(files, { id: 1, data: one?.data ?? null });
    expect(await failure(batch.flush())).toBeInstanceOf(BlobReferenceError);
  });

  it('that is unknown is BlobNotFoundError, for every method', async () => {
    const db = await openDatabase([files]);
    const reference = '00000000-0000-4000-8000-000000000000';
    const blob = db.getBlob(reference);
    for (const call of [
      blob.size(),
      blob.getBuffer(),
      blob.getString(),
      blob.getDownloadUrl(),
      buffer(blob.stream()),
    ]) {
      const error = await failure(call);
      expect(error).toBeInstanceOf(BlobNotFoundError);
      expect(error).toMatchObject({ code: 'BLOB_NOT_FOUND', reference });
    }
    expect(await failure(db.getBlob('no uuid').size())).toMatchObject({
      code: expect.stringMatching(/^(BLOB_NOT_FOUND|INVALID_OPTION|INVALID_QUERY)$/) as string,
    });
    expect(thrown(() => db.getBlob(5 as unknown as string))).toMatchObject({
      code: 'INVALID_OPTION',
      option: 'reference',
    });
    const stopped = makeDatabase([files]);
    expect(await failure(stopped.getBlob(reference).size())).toMatchObject({ code: 'NOT_STARTED' });
  });

  it('may be asked for by upper case', async () => {
    const db = await openDatabase([files]);
    const reference = await store(db, 'text');
    expect(await db.getBlob(reference.toUpperCase()).getString()).toBe('text');
  });
});

describe('a download URL', () => {
  it.each(localDrivers)('is not supported by %s', async (_, makeDriver) => {
    const db = await openDatabase([files], makeDriver());
    const blob = db.getBlob(await store(db, 'text'));
    const error = await failure(blob.getDownloadUrl());
    expect(error).toBeInstanceOf(NotSupportedError);
    expect(error).toMatchObject({ code: 'NOT_SUPPORTED' });
    expect(await failure(blob.getDownloadUrl({ expiresIn: 604_800 }))).toBeInstanceOf(NotSupportedError);
    for (const expiresIn of [0, -1, 604_801, 1.5, Number.NaN, '60', null]) {
      const refused = await failure(blob.getDownloadUrl({ expiresIn: expiresIn as number }));
      expect(refused).toMatchObject({ code: 'INVALID_OPTION', option: 'expiresIn' });
    }
  });

  it('comes from a driver that can make one, for an hour if nothing else is said', async () => {
    const inner: StorageDriver = new MemoryDriver();
    const asked: unknown[] = [];
    const driver = Object.assign(inner, {
      presign: async (key: string, options: PresignOptions) => {
        asked.push(options);
        return `https://example.org/${key}`;
      },
    });
    const db = await openDatabase([files], driver);
    const reference = await store(db, 'text');
    const blob = db.getBlob(reference);
    expect(await blob.getDownloadUrl()).toBe(`https://example.org/${prefix}/blobs/${reference}`);
    await blob.getDownloadUrl({ expiresIn: 1 });
    await blob.getDownloadUrl({});
    expect(asked).toEqual([{ expiresInSeconds: 3600 }, { expiresInSeconds: 1 }, { expiresInSeconds: 3600 }]);
    const headers = { contentType: 'text/html', contentDisposition: 'inline; filename="x"' };
    await blob.getDownloadUrl(headers);
    await blob.getDownloadUrl({ contentType: 'text/html' });
    expect(asked.slice(3)).toEqual([
      { expiresInSeconds: 3600, ...headers },
      { expiresInSeconds: 3600, contentType: 'text/html', contentDisposition: 'attachment' },
    ]);
    for (const contentDisposition of ['', 'save', 'inline\r\nSet-Cookie: a=b', 'attachment; filename="é"', null, 5]) {
      const refused = await failure(blob.getDownloadUrl({ contentDisposition: contentDisposition as string }));
      expect(refused).toMatchObject({ code: 'INVALID_OPTION', option: 'contentDisposition' });
    }
    for (const contentType of ['a\nb', 'é', 5, null]) {
      const refused = await failure(blob.getDownloadUrl({ contentType: contentType as string }));
      expect(refused).toMatchObject({ code: 'INVALID_OPTION', option: 'contentType' });
    }
  });
});

describe('db.Blob()', () => {
  it.each([5, null, undefined, {}, [1, 2], new ArrayBuffer(4), new Date(0), true])('refuses %s', async (data) => {
    const db = makeDatabase([files]);
    expect(thrown(() => db.Blob(data as BlobData))).toMatchObject({
      code: 'INVALID_OPTION',
      option: 'data',
    });
  });

  it.each(['line\nfeed', 'ünï', 'x'.repeat(256), 5, null])('refuses the content type %s', async (contentType) => {
    const db = makeDatabase([files]);
    const error = thrown(() => db.Blob('data', { contentType: contentType as string }));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'contentType' });
  });

  it('does not belong into a field of another type', async () => {
    const db = await openDatabase([files]);
    expect(await failure(db.batch().insert('files', { id: 1, name: db.Blob('x') }))).toMatchObject({
      code: 'ENCODE',
      field: 'name',
    });
  });
});

describe('damage', () => {
  /** Answers with other bytes as often as it is told to. */
  function damaging(driver: StorageDriver): { driver: StorageDriver; state: { times: number; gets: number } } {
    const state = { times: 0, gets: 0 };
    const get: StorageDriver['get'] = async (key, options) => {
      const result = await driver.get(key, options);
      if (!key.includes('/blobs/') || result.status !== 'found') return result;
      state.gets++;
      if (state.times-- <= 0) return result;
      const bytes = Buffer.from(result.bytes);
      bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
      return { ...result, bytes };
    };
    const inner = {
      name: driver.name,
      put: driver.put.bind(driver),
      delete: driver.delete.bind(driver),
      list: driver.list.bind(driver),
    };
    return { driver: { ...inner, get }, state };
  }

  it('on the way is read again; damage in the store is CorruptionError', async () => {
    const { driver, state } = damaging(newDriver());
    const db = await openDatabase([files], driver);
    const bytes = pattern(3 * chunk);
    const reference = await store(db, bytes);
    const blob = db.getBlob(reference);
    state.times = 1;
    expect(bytes.equals(await blob.getBuffer())).toBe(true);
    expect(state.gets).toBe(2);
    Object.assign(state, { times: 99, gets: 0 });
    const error = await failure(blob.getBuffer(5, 6));
    expect(error).toBeInstanceOf(CorruptionError);
    expect(error).toMatchObject({ code: 'CORRUPTION', key: `${prefix}/blobs/${reference}` });
    expect(state.gets).toBe(2);
    expect(await failure(buffer(blob.stream()))).toBeInstanceOf(CorruptionError);
    state.times = 0;
    expect(bytes.equals(await blob.getBuffer())).toBe(true);
  });

  it.each(driversUnderTest)('in one chunk hurts that chunk only: %s', async (_, makeDriver) => {
    const driver = makeDriver();
    const db = await openDatabase([files], driver);
    const bytes = pattern(3 * chunk);
    const reference = await store(db, bytes);
    const damaged = Buffer.from(bytes);
    damaged[chunk + 9] = (damaged[chunk + 9] as number) ^ 0x80;
    await driver.put(`${prefix}/blobs/${reference}`, damaged, { if: 'any' });
    const blob = db.getBlob(reference);
    expect(bytes.subarray(0, chunk).equals(await blob.getBuffer(0, chunk))).toBe(true);
    expect(bytes.subarray(2 * chunk).equals(await blob.getBuffer(-chunk))).toBe(true);
    expect(await failure(blob.getBuffer(chunk, chunk + 1))).toBeInstanceOf(CorruptionError);
    expect(await failure(blob.getBuffer())).toBeInstanceOf(CorruptionError);
    // Cut off, and longer than it should be.
    await driver.put(`${prefix}/blobs/${reference}`, bytes.subarray(0, -1), { if: 'any' });
    expect(await failure(blob.getBuffer(-1))).toBeInstanceOf(CorruptionError);
    await driver.delete([`${prefix}/blobs/${reference}`]);
    expect(await failure(blob.getBuffer())).toMatchObject({ code: 'BLOB_NOT_FOUND', reference });
  });
});

describe('blobs of a folder', () => {
  it('are found by another instance after a restart, merged or not', async () => {
    const folder = newFolder();
    const db = await openDatabase([files], new FileDriver(folder));
    const merged = await store(db, 'merged', 1);
    await db.checkpoint();
    const pending = await store(db, 'pending', 2);
    await db.stop();
    const again = await openDatabase([files], new FileDriver(folder), { nodeId: 1 });
    expect(await again.getBlob(merged).getString()).toBe('merged');
    expect(await again.getBlob(pending).getString()).toBe('pending');
  });
});
