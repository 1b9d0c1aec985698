/** How blobs come into the store: before the commit that refers to them, once, and whole or not at all. */
import { createReadStream } from 'node:fs';
import { PassThrough, Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { BatchStateError, defineSchema, StorageError, Types } from '../../../src/index.ts';
import type { PutBody, PutOptions, PutResult } from '../../../src/storage/index.ts';
import { GatedDriver } from '../batches/gated-driver.ts';
import { driversUnderTest, newDriver } from '../values/driver-under-test.ts';
import { column, failure, flushed, openDatabase, prefix, unhandledDuring } from '../values/open-database.ts';

const files = defineSchema({
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar }, data: { typeId: Types.blob } },
  primaryKey: 'id',
});

const cause = new Error('the source broke off');

async function* breaking(): AsyncGenerator<Buffer> {
  yield Buffer.alloc(100_000, 1);
  throw cause;
}

const brokenMessage =
  "The stream for field 'data' of table 'files' failed: the source broke off. Nothing was committed: drop the batch with " +
  'clear(), or give the field a new db.Blob().';

/** Ends with an error after some bytes. */
const broken: readonly (readonly [string, () => AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>])[] = [
  ['async generator', breaking],
  ['Readable', () => Readable.from(breaking())],
  ['web stream', () => Readable.toWeb(Readable.from(breaking())) as ReadableStream<Uint8Array>],
];

function blobPuts(driver: GatedDriver): string[] {
  return driver.puts.filter((key) => key.includes('/blobs/'));
}

/** Loses the answers to the first puts of blobs: they were made, and nobody is told. */
class LosesAnswers extends GatedDriver {
  left = 0;

  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await super.put(key, body, options);
    if (!key.includes('/blobs/') || this.left-- <= 0) return result;
    throw new StorageError(key, 'unknown', 'The connection broke off.');
  }
}

describe('a blob', () => {
  it.each([
    ["'hello'", 'hello'],
    ['a Buffer', Buffer.from('hello')],
    ['a Uint8Array', new Uint8Array(5)],
    ['an array', [1, 2]],
  ])('is made by db.Blob(), as the refusal of %s says', async (_, data) => {
    const db = await openDatabase([files]);
    const insert = db.batch().insert('files', { id: 1, data });
    await expect(insert).rejects.toThrow(
      /field 'data' of table 'files': .* does not fit type blob.* Give it db\.Blob\(data\) for new data, or the reference/,
    );
    await db.stop();
  });

  it('is uploaded before the commit that refers to it, with its content type', async () => {
    const driver = new GatedDriver(newDriver());
    const types: unknown[] = [];
    const put = driver.put.bind(driver);
    driver.put = async (key, body, options) => {
      types.push(options.contentType);
      return put(key, body, options);
    };
    const db = await openDatabase([files], driver);
    driver.puts.length = 0;
    types.length = 0;
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: db.Blob('one', { contentType: 'text/plain; charset=utf-8' }) });
    void batch.insert(files, { id: 2, data: db.Blob(Readable.from([Buffer.from('two')])) });
    await batch.subBatch().flush();
    // Nothing is written before the flush.
    expect(driver.puts).toEqual([]);
    await batch.flush();
    const rows = await db.query(files).execute();
    expect(driver.puts.map((key) => key.replace(/\d{16}$/, ''))).toEqual([
      ...rows.map(({ data }) => `${prefix}/blobs/${data}`),
      `${prefix}/committed/`,
    ]);
    expect(types.slice(0, 2)).toEqual(['text/plain; charset=utf-8', 'application/octet-stream']);
  });

  it('in a sub-batch is uploaded with the root', async () => {
    const db = await openDatabase([files]);
    const root = db.batch();
    const sub = root.subBatch();
    void sub.insert(files, { id: 1, data: db.Blob(Readable.from(['streamed'])) });
    await sub.flush();
    await root.flush();
    expect(await db.getBlob(String((await db.get(files, 1))?.data)).getString()).toBe('streamed');
  });

  it('is not uploaded again when a flush that failed is repeated', async () => {
    const driver = new GatedDriver(newDriver());
    const db = await openDatabase([files], driver);
    await flushed(db, (batch) => void batch.insert(files, { id: 2 }));
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: db.Blob(Readable.from(['a stream'])) });
    void batch.insert(files, { id: 2, data: db.Blob('bytes') });
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await failure(batch.flush())).toMatchObject({ code: 'DUPLICATE_KEY' });
    }
    expect(blobPuts(driver)).toHaveLength(2);
    await flushed(db, (repair) => void repair.delete(files, 2));
    await batch.flush();
    expect(blobPuts(driver)).toHaveLength(2);
    const texts = (await db.query(files).execute()).map(({ data }) => db.getBlob(data as string).getString());
    expect(await Promise.all(texts)).toEqual(['a stream', 'bytes']);
  });

  it('of bytes is uploaded by another attempt where the answer was lost', async () => {
    const driver = new LosesAnswers(newDriver());
    const db = await openDatabase([files], driver);
    driver.left = 2;
    await flushed(db, (batch) => void batch.insert(files, { id: 1, data: db.Blob('bytes') }));
    expect(await db.getBlob(String((await db.get(files, 1))?.data)).getString()).toBe('bytes');
    expect(await db.query('_blobs').count()).toBe(1);
    // Each under a name of its own: an earlier one may still land, or be on the way to its deletion.
    expect(new Set(blobPuts(driver)).size).toBe(3);
  });

  it('that two rows are given as one value of bytes is stored for each of them', async () => {
    const db = await openDatabase([files]);
    const value = db.Blob('shared');
    await flushed(db, (batch) => {
      void batch.insert(files, { id: 1, data: value });
      void batch.insert(files, { id: 2, data: value });
    });
    const references = column(await db.query(files).execute(), 'data');
    expect(new Set(references).size).toBe(2);
    for (const reference of references) expect(await db.getBlob(String(reference)).getString()).toBe('shared');
  });
});

describe.each(driversUnderTest)('a stream that fails, on %s', (_, makeDriver) => {
  it.each(broken)('rejects the flush with its error and leaves no blob: %s', async (_kind, make) => {
    const driver = makeDriver();
    const db = await openDatabase([files], driver);
    let error: unknown;
    const unhandled = await unhandledDuring(async () => {
      const batch = db.batch();
      void batch.insert(files, { id: 1, data: db.Blob(make()) });
      error = await failure(batch.flush());
    });
    expect(unhandled).toEqual([]);
    expect(error).toMatchObject({ code: 'STORAGE', outcome: 'none', message: brokenMessage });
    expect((error as Error).cause).toBe(cause);
    expect(await db.query(files).count()).toBe(0);
    expect((await driver.list(`${prefix}/blobs/`)).entries).toEqual([]);
  });

  it('is never taken for a shorter one: the batch is refused until the row has another value', async () => {
    const db = await openDatabase([files], makeDriver());
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: db.Blob(breaking()) });
    void batch.insert(files, { id: 2, data: db.Blob('bytes') });
    await failure(batch.flush());
    for (let attempt = 0; attempt < 2; attempt++) {
      const error = await failure(batch.flush());
      expect(error).toBeInstanceOf(BatchStateError);
      expect(batch.size).toBe(2);
    }
    void batch.update(files, { id: 1, data: db.Blob('whole') });
    await batch.flush();
    const texts = (await db.query(files).execute()).map(({ data }) => db.getBlob(data as string).getString());
    expect(await Promise.all(texts)).toEqual(['whole', 'bytes']);
  });
});

/** What nobody caught while this ran. Vitest's own listeners stand aside meanwhile. */
async function uncaughtDuring(run: () => Promise<void>): Promise<readonly unknown[]> {
  const others = process.listeners('uncaughtException');
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', note);
  try {
    const unhandled = await unhandledDuring(run);
    return [...uncaught, ...unhandled];
  } finally {
    process.removeListener('uncaughtException', note);
    for (const listener of others) process.on('uncaughtException', listener);
  }
}

/** Fails before anybody reads it. */
const early: readonly (readonly [string, () => AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>, string])[] = [
  ['file that is not there', () => createReadStream('/there/is/no/such/file'), 'ENOENT: no such file or directory'],
  ['Readable', () => new PassThrough().destroy(cause), cause.message],
  [
    'stream that does not tell its error again',
    () => {
      const stream = new PassThrough({ autoDestroy: false });
      setImmediate(() => void stream.emit('error', cause));
      return stream.end();
    },
    cause.message,
  ],
  ['web stream', () => new ReadableStream({ start: (controller) => controller.error(cause) }), cause.message],
  [
    'web stream of a Readable',
    () => Readable.toWeb(createReadStream('/there/is/no/such/file')) as ReadableStream<Uint8Array>,
    'ENOENT',
  ],
];

describe('a stream that fails before the flush', () => {
  it.each(early)('rejects the flush, and nothing before it: %s', async (_, make, reason) => {
    const db = await openDatabase([files]);
    let error: unknown;
    const uncaught = await uncaughtDuring(async () => {
      const batch = db.batch();
      await batch.insert(files, { id: 1, data: db.Blob(make()) });
      await sleep(50);
      error = await failure(batch.flush());
    });
    expect(uncaught).toEqual([]);
    expect(error).toBeInstanceOf(StorageError);
    expect((error as Error).message).toContain(`field 'data' of table 'files' failed: ${reason}`);
    expect(await db.query(files).count()).toBe(0);
  });

  it('hurts nobody if its batch is cleared', async () => {
    const db = await openDatabase([files]);
    const uncaught = await uncaughtDuring(async () => {
      const batch = db.batch();
      await batch.insert(files, { id: 1, data: db.Blob(createReadStream('/there/is/no/such/file')) });
      batch.clear();
      await sleep(50);
      await batch.flush();
    });
    expect(uncaught).toEqual([]);
  });
});

/** Throws its own error into the body that it reads, as `destroy()` of a stream over it does. */
class ThrowsIntoBody extends GatedDriver {
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    if (!key.includes('/blobs/') || !(Symbol.asyncIterator in body)) return super.put(key, body, options);
    const iterator = body[Symbol.asyncIterator]();
    await iterator.next();
    const lost = new StorageError(key, 'unknown', 'The connection broke off.');
    await iterator.throw?.(lost).catch(() => undefined);
    throw lost;
  }
}

describe('a stream', () => {
  it('is not blamed for the failure of a store', async () => {
    const db = await openDatabase([files], new ThrowsIntoBody(newDriver()));
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: db.Blob(Readable.from(['text'])) });
    expect(await failure(batch.flush())).toMatchObject({ code: 'STORAGE', message: 'The connection broke off.' });
  });

  it('that two rows are given is refused: it can be read once', async () => {
    const db = await openDatabase([files]);
    const value = db.Blob(Readable.from(['once']));
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: value });
    void batch.insert(files, { id: 2, data: value });
    expect(await failure(batch.flush())).toBeInstanceOf(BatchStateError);
    expect(await db.query(files).count()).toBe(0);
    void batch.delete(files, 2);
    await batch.flush();
    expect(await db.getBlob(String((await db.get(files, 1))?.data)).getString()).toBe('once');
  });

  it('of something else than bytes and strings is refused', async () => {
    const db = await openDatabase([files]);
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: db.Blob(Readable.from([{ not: 'bytes' }])) });
    expect(await failure(batch.flush())).toMatchObject({ code: 'STORAGE' });
    expect(await db.query(files).count()).toBe(0);
  });

  it('is not read before the flush, and not at all if the batch is cleared', async () => {
    const db = await openDatabase([files]);
    let read = 0;
    async function* counted(): AsyncGenerator<string> {
      read++;
      yield 'text';
    }
    const batch = db.batch();
    await batch.insert(files, { id: 1, data: db.Blob(counted()) });
    batch.clear();
    await batch.flush();
    expect(read).toBe(0);
  });

  it('is given up with the signal of the flush', async () => {
    const db = await openDatabase([files]);
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) {
        yield Buffer.alloc(1000);
        await new Promise(setImmediate);
      }
    }
    const batch = db.batch();
    void batch.insert(files, { id: 1, data: db.Blob(endless()) });
    const controller = new AbortController();
    const flush = batch.flush({ signal: controller.signal });
    setTimeout(() => controller.abort(), 20);
    expect(await failure(flush)).toMatchObject({
      name: expect.stringMatching(/^(AbortedError|StorageError)$/) as string,
    });
    expect(await db.query(files).count()).toBe(0);
  });
});
