/** The requests that the driver sends, how often, and its results for each answer. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StorageError } from '../../../src/base/errors.ts';
import { GoogleCloudStorageDriver } from '../../../src/storage/google/google-cloud-storage-driver.ts';
import type { PutCondition } from '../../../src/storage/contract/driver.ts';
import { googleDialect } from '../gcs-server/dialect.ts';
import type { GcsOperation } from '../gcs-server/gcs-message.ts';
import { startGcsServer } from '../gcs-server/server.ts';
import type { Fault, GcsServer } from '../gcs-server/server.ts';
import { driverOf } from './bucket.ts';

const mebibyte = 1024 * 1024;
const bytes = Buffer.from('bytes');
let server: GcsServer;
let driver: GoogleCloudStorageDriver;

beforeAll(async () => {
  server = await startGcsServer();
});
afterAll(() => server.close());
beforeEach(() => {
  driver = driverOf(server);
  Object.assign(server.dialect, googleDialect);
  server.intercept = undefined;
  server.bucket.objects.clear();
  server.bucket.sessions.clear();
  server.clearLog();
});
afterEach(() => driver.close());

/** Meets the first `times` requests of an operation, after `skip` others of it, with a fault. */
function failFirst(operation: GcsOperation, fault: Fault, times = 1, skip = 0): void {
  let seen = 0;
  server.intercept = (request) => {
    if (request.operation !== operation) return undefined;
    seen++;
    return seen > skip && seen <= skip + times ? fault : undefined;
  };
}

async function failure(promise: Promise<unknown>): Promise<StorageError> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StorageError);
  return error as StorageError;
}

function pattern(sizeBytes: number): Buffer {
  const content = Buffer.alloc(sizeBytes);
  for (let i = 0; i < sizeBytes; i += 97) content[i] = (i * 31) & 255;
  return content;
}

async function* pieces(content: Buffer, pieceBytes = 700_001): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.length; at += pieceBytes)
    yield await Promise.resolve(content.subarray(at, at + pieceBytes));
}

async function written(key: string): Promise<string> {
  const result = await driver.put(key, bytes, { if: 'any' });
  server.clearLog();
  return result.status === 'written' ? result.etag : '';
}

describe('a put of bytes', () => {
  it('is one request with its condition, type and checksum, and the ETag is the generation', async () => {
    const first = await driver.put('a/ü', bytes, { if: 'absent', contentType: 'image/png' });
    const object = server.objects.get('a/ü');
    expect(first).toEqual({ status: 'written', etag: object?.generation });
    expect(object).toMatchObject({ contentType: 'image/png', cacheControl: 'private, max-age=0, no-transform' });
    expect(server.log).toHaveLength(1);
    expect(server.log[0]?.query).toMatchObject({ ifGenerationMatch: '0', uploadType: 'multipart' });
    expect(await driver.put('a/ü', bytes, { if: 'absent' })).toEqual({ status: 'lost' });
    expect(await driver.put('a/ü', bytes, { if: { etag: '7' } })).toEqual({ status: 'lost' });
    expect(server.log).toHaveLength(3);
    // No object can have such an ETag.
    expect(await driver.put('a/ü', bytes, { if: { etag: '"etag"' } })).toEqual({ status: 'lost', requests: 0 });
    expect(server.log).toHaveLength(3);
  });

  it.each<[string, Fault, 'none' | 'unknown', string | undefined]>([
    ['400', { status: 400 }, 'none', undefined],
    ['401', { status: 401 }, 'none', 'forbidden'],
    ['403', { status: 403 }, 'none', 'forbidden'],
    ['409', { status: 409 }, 'unknown', undefined],
    ['429', { status: 429 }, 'unknown', 'throttled'],
    ['500', { status: 500 }, 'unknown', 'unavailable'],
    ['503', { status: 503 }, 'unknown', 'unavailable'],
    ['503 after it was made', { status: 503, after: true }, 'unknown', 'unavailable'],
    ['a cut connection', 'reset', 'unknown', 'unavailable'],
    ['a cut connection after it was made', 'reset-after', 'unknown', 'unavailable'],
    ['half an answer', 'reset-during', 'unknown', 'unavailable'],
  ])('that is answered with %s is sent once', async (_, fault, outcome, reason) => {
    for (const make of [() => 'any', () => 'absent', async () => ({ etag: await written('key') })] as const) {
      server.intercept = undefined;
      server.bucket.objects.clear();
      const condition = (await make()) as PutCondition;
      server.clearLog();
      failFirst('insert', fault, 100);
      expect(await failure(driver.put('key', bytes, { if: condition }))).toMatchObject({ outcome, reason, key: 'key' });
      expect(server.log).toHaveLength(1);
    }
  });

  it('to a store that is not there had no effect', async () => {
    const away = await startGcsServer();
    const lonely = driverOf(away);
    await away.close();
    expect(await failure(lonely.put('key', bytes, { if: 'any' }))).toMatchObject({
      outcome: 'none',
      reason: 'unavailable',
    });
  });

  it('is lost where the object to replace is missing, with 412 and with 404', async () => {
    expect(await driver.put('none', bytes, { if: { etag: '5' } })).toEqual({ status: 'lost' });
    server.dialect.missingIs404 = true;
    expect(await driver.put('none', bytes, { if: { etag: '5' } })).toEqual({ status: 'lost' });
    const other = new GoogleCloudStorageDriver({
      bucket: 'no-such-bucket',
      apiEndpoint: server.endpoint,
      credentials: () => Promise.resolve(server.token),
    });
    // A bucket that is missing is no lost race.
    const error = await failure(other.put('none', bytes, { if: { etag: '5' } }));
    expect(error).toMatchObject({ outcome: 'none' });
    expect(error.message).toContain('There is no bucket no-such-bucket');
    await other.close();
  });

  it('is refused where the checksum does not fit, without effect', async () => {
    server.intercept = ({ operation, body }) => {
      if (operation === 'insert') body[body.indexOf('bytes\r\n')] = 0x42;
    };
    expect(await failure(driver.put('key', bytes, { if: 'any' }))).toMatchObject({ outcome: 'none' });
    expect(server.objects.size).toBe(0);
  });

  it('of more than one write of a key per second may be throttled, and is not repeated', async () => {
    server.dialect.writeIntervalMs = 1000;
    const etag = await written('fast');
    expect(await failure(driver.put('fast', bytes, { if: { etag } }))).toMatchObject({ reason: 'throttled' });
    expect(server.log).toHaveLength(1);
  });
});

describe('a stream', () => {
  it('of up to 8 MiB is one request, and a larger one a session', async () => {
    for (const sizeBytes of [0, 5, 8 * mebibyte]) {
      server.clearLog();
      const content = pattern(sizeBytes);
      const result = await driver.put(`s${sizeBytes}`, pieces(content), { if: 'absent' });
      expect(result.status).toBe('written');
      expect(server.log.map(({ operation }) => operation)).toEqual(['insert']);
      expect(server.objects.get(`s${sizeBytes}`)?.bytes.equals(content)).toBe(true);
    }
    server.clearLog();
    const large = pattern(20 * mebibyte + 5);
    const result = await driver.put('large', pieces(large), { if: 'absent', contentType: 'text/plain' });
    const object = server.objects.get('large');
    expect(result).toEqual({ status: 'written', etag: object?.generation, requests: 4 });
    expect(server.log.map(({ operation }) => operation)).toEqual([
      'session.open',
      ...Array<string>(3).fill('session.put'),
    ]);
    expect(object?.contentType).toBe('text/plain');
    expect(object?.bytes.equals(large)).toBe(true);
    const again = await driver.put('large', pieces(pattern(9 * mebibyte)), { if: 'absent' });
    expect(again.status).toBe('lost');
    expect(object).toBe(server.objects.get('large'));
  });

  it('whose condition fails only at its end is lost', async () => {
    server.intercept = async ({ operation, headers }) => {
      if (operation === 'session.put' && headers['content-range']?.endsWith('/*') === false) {
        server.intercept = undefined;
        await driver.put('race', bytes, { if: 'absent' });
      }
    };
    const result = await driver.put('race', pieces(pattern(9 * mebibyte)), { if: 'absent' });
    expect(result.status).toBe('lost');
    expect(server.objects.get('race')?.bytes.equals(bytes)).toBe(true);
  });

  it.each<[string, Fault]>([
    ['answered with 503', { status: 503 }],
    ['answered with 503 after they were kept', { status: 503, after: true }],
    ['cut off', 'reset'],
    ['cut off after they were kept', 'reset-after'],
  ])('goes on where chunks are %s', async (_, fault) => {
    const content = pattern(18 * mebibyte);
    for (const [at, key] of ['first', 'second', 'last'].entries()) {
      failFirst('session.put', fault, 2, at);
      const result = await driver.put(key, pieces(content), { if: 'absent' });
      expect(result.status).toBe('written');
      expect(server.objects.get(key)?.bytes.equals(content)).toBe(true);
    }
  });

  it('finds out by its mark that it was made, if every answer to its last request is lost', async () => {
    failFirst('insert', 'reset-after');
    expect(await driver.put('small', pieces(pattern(1000)), { if: 'absent' })).toMatchObject({ status: 'written' });
    expect(server.count('insert')).toBe(1);
    failFirst('session.put', 'reset-after', 1, 1);
    expect(await driver.put('large', pieces(pattern(9 * mebibyte)), { if: 'absent' })).toMatchObject({
      status: 'written',
    });
  });

  it('is sent again where a session keeps only a part of a chunk', async () => {
    server.dialect.keptBytesPerChunk = 3 * mebibyte;
    const content = pattern(17 * mebibyte + 3);
    expect(await driver.put('kept', pieces(content), { if: 'absent' })).toMatchObject({ status: 'written' });
    expect(server.objects.get('kept')?.bytes.equals(content)).toBe(true);
    server.dialect.keptBytesPerChunk = 0;
    const error = await failure(driver.put('never', pieces(content), { if: 'absent' }));
    expect(error.message).toContain('does not keep the chunks');
    expect(server.bucket.sessions.size).toBe(1);
  });

  it('that fails or is given up ends its session, and leaves no object', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield* pieces(pattern(9 * mebibyte));
      throw new Error('disk');
    }
    expect(await failure(driver.put('broken', broken(), { if: 'absent' }))).toMatchObject({ outcome: 'none' });
    expect(server.bucket.sessions.size).toBe(0);
    const given = new AbortController();
    async function* stuck(): AsyncGenerator<Uint8Array> {
      yield* pieces(pattern(9 * mebibyte));
      setTimeout(() => given.abort(new Error('enough')), 10);
      await new Promise(() => {});
    }
    await failure(driver.put('stuck', stuck(), { if: 'absent', signal: given.signal }));
    expect(server.count('session.end')).toBe(2);
    expect(server.bucket.sessions.size).toBe(0);
    expect(server.objects.size).toBe(0);
  });

  it('keeps the URL of its session out of errors', async () => {
    failFirst('session.put', { status: 400 }, 100);
    const error = await failure(driver.put('key', pieces(pattern(9 * mebibyte)), { if: 'absent' }));
    const id = server.log.find(({ operation }) => operation === 'session.put')?.query['upload_id'];
    expect(id).toMatch(/.{20}/);
    expect(`${error.message} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).not.toContain(id);
  });
});

describe('a read', () => {
  it('is one request, of a range and on condition too', async () => {
    const etag = await written('key');
    const found = await driver.get('key');
    expect(found).toMatchObject({ status: 'found', etag, sizeBytes: 5 });
    expect(await driver.get('key', { ifNoneMatch: etag })).toEqual({ status: 'unchanged' });
    expect(await driver.get('key', { ifNoneMatch: '"other"' })).toMatchObject({ status: 'found' });
    expect(await driver.get('key', { range: { start: 1, end: 3 } })).toMatchObject({ sizeBytes: 5, etag });
    expect(await driver.get('none')).toEqual({ status: 'missing' });
    expect(server.log.map(({ operation }) => operation)).toEqual(Array<string>(5).fill('download'));
    expect(server.log.every(({ headers }) => headers['accept-encoding'] === undefined)).toBe(true);
  });

  it.each<[string, Fault]>([
    ['an error', { status: 500 }],
    ['a cut connection', 'reset'],
    ['half of the bytes', 'reset-during'],
    ['404 of another server', { status: 404, message: 'no such route' }],
  ])('that is answered with %s fails, and is not missing', async (_, fault) => {
    await written('key');
    failFirst('download', fault, 100);
    const error = await failure(driver.get('key'));
    expect(error.outcome).toBe('none');
  });

  it('of a whole object compares its checksum', async () => {
    const content = pattern(3 * mebibyte);
    await driver.put('key', content, { if: 'any' });
    expect(await driver.get('key')).toMatchObject({ status: 'found', sizeBytes: content.length });
    server.dialect.flippedDownloads = true;
    const error = await failure(driver.get('key'));
    expect(error).toMatchObject({ outcome: 'none', key: 'key' });
    expect(error.message).toContain('has other bytes than its checksum says');
    // The checksum says nothing about a part.
    expect(await driver.get('key', { range: { start: 0, end: 10 } })).toMatchObject({ status: 'found' });
  });

  it('of a bucket that is missing fails', async () => {
    failFirst('download', { status: 404, message: 'The specified bucket does not exist.' });
    expect((await failure(driver.get('key'))).message).toContain('There is no bucket');
  });

  it('without the permission to list fails for a missing object, and says what to grant', async () => {
    server.dialect.noList = true;
    const error = await failure(driver.get('none'));
    expect(error).toMatchObject({ reason: 'forbidden' });
    expect(error.message).toContain('roles/storage.objectUser');
    expect(await failure(driver.list(''))).toMatchObject({ reason: 'forbidden' });
  });
});

describe('keys', () => {
  it.each(['.', '..', 'a\nb', 'a\rb', '.well-known/acme-challenge/x'])(
    '%j is refused before a request',
    async (key) => {
      expect(await failure(driver.put(key, bytes, { if: 'any' }))).toMatchObject({ outcome: 'none' });
      expect(await failure(driver.get(key))).toMatchObject({ outcome: 'none' });
      expect(server.log).toEqual([]);
    },
  );

  it('with segments of dots, control characters and slashes are kept', async () => {
    const keys = ['a/../b', './a', 'a//b', '/a', 'a/', 'tab\t', 'nul\0', '...'];
    for (const key of keys) await driver.put(key, Buffer.from(key), { if: 'absent' });
    expect([...server.objects.keys()]).toEqual(keys);
    for (const key of keys) expect(await driver.get(key)).toMatchObject({ bytes: Buffer.from(key) });
  });
});

describe('other requests', () => {
  it('of deletions are one for each key, and a failed one is told', async () => {
    await written('a');
    expect(await driver.delete(['a', 'b', 'c'])).toEqual({ failed: [], requests: 3 });
    expect(await driver.delete(['a'])).toEqual({ failed: [] });
    failFirst('delete', { status: 403 });
    const { failed } = await driver.delete(['a', 'b']);
    expect(failed).toHaveLength(1);
    expect(await driver.delete([])).toEqual({ failed: [], requests: 0 });
  });

  it('of copies go on with a token until all is copied', async () => {
    await driver.put('from', pattern(250_000), { if: 'any', contentType: 'text/plain' });
    server.dialect.rewrittenBytesPerCall = 100_000;
    server.clearLog();
    failFirst('rewrite', { status: 503 });
    expect(await driver.copy('from', 'to')).toEqual({ status: 'copied', requests: 4 });
    expect(server.objects.get('to')?.contentType).toBe('text/plain');
    expect(server.objects.get('to')?.bytes.equals(pattern(250_000))).toBe(true);
    server.dialect.noCopies = true;
    expect(await driver.copy('from', 'other')).toEqual({ status: 'refused' });
  });

  it('of listings skip the key to list after, and ask for one more', async () => {
    for (const key of ['a', 'b', 'c', 'd']) await driver.put(key, bytes, { if: 'any' });
    server.clearLog();
    const page = await driver.list('', { after: 'b', limit: 1 });
    expect(page.entries.map(({ key }) => key)).toEqual(['c']);
    expect(page.more).toBe(true);
    expect((await driver.list('', { after: 'd', limit: 1 })).more).toBe(false);
    expect(await driver.list('', { after: 'bb', limit: 2 })).toMatchObject({ more: false });
    expect(server.log.map(({ query }) => query['maxResults'])).toEqual(['2', '2', '3']);
  });

  it('show the time of the store', async () => {
    expect(driver.storeTimeMs()).toBeUndefined();
    server.dialect.clockSkewMs = 3_600_000;
    await driver.get('none');
    expect(Math.abs((driver.storeTimeMs() ?? 0) - Date.now() - 3_600_000)).toBeLessThan(2000);
    expect(driver.describe()).toMatchObject({ bucket: server.bucket.name, ETags: 'generations' });
  });

  it('go on after close(), with the requests that are under way', async () => {
    failFirst('insert', { delayMs: 100 });
    const put = driver.put('key', bytes, { if: 'absent' });
    await driver.close();
    expect(await put).toMatchObject({ status: 'written' });
    expect(await driver.get('key')).toMatchObject({ status: 'found' });
  });
});
