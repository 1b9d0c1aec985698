/** What the driver sends, how often, and what it makes of the answers. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import { StorageError } from '../../../src/base/errors.ts';
import type { ObjectStoreDriver } from '../../../src/storage/s3/object-store-driver.ts';
import type { Fault, S3Server } from '../s3-server/server.ts';
import type { S3Operation } from '../s3-server/s3-message.ts';
import { bucketName, driverOf, ownClientDriver, startStore } from './bucket.ts';

let server: S3Server;
let driver: ObjectStoreDriver;
const bytes = Buffer.from('bytes');

beforeAll(async () => {
  server = await startStore();
});
afterAll(() => server.close());
beforeEach(() => {
  driver = driverOf(server);
  server.intercept = undefined;
  server.clearLog();
});
afterEach(() => driver.close());

/** Meets the first `times` requests of an operation with a fault. */
function failFirst(operation: S3Operation, fault: Fault, times = 1): void {
  let left = times;
  server.intercept = (request) => (request.operation === operation && left-- > 0 ? fault : undefined);
}

function sent(operation: S3Operation): number {
  return server.log.filter((request) => request.operation === operation).length;
}

interface Listener {
  readonly endpoint: string;
  end(): Promise<unknown>;
}

/** A server that speaks TCP only. */
async function listen(onConnection: (socket: Socket) => void): Promise<Listener> {
  const listener = createServer((socket) => {
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    end: () => once(listener.close(), 'close'),
  };
}

async function failure(promise: Promise<unknown>): Promise<StorageError> {
  const error: unknown = await promise.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (!(error instanceof StorageError)) throw new Error('It did not fail with a StorageError', { cause: error });
  return error;
}

describe('conditional puts', () => {
  const doubtful: readonly (readonly [string, Fault])[] = [
    ['a connection cut before the request', 'reset'],
    ['a connection cut after the request', 'reset-after'],
    ['500', { status: 500, code: 'InternalError' }],
    ['500 after it was written', { status: 500, code: 'InternalError', after: true }],
    ['503', { status: 503, code: 'SlowDown' }],
    ['429', { status: 429, code: 'TooManyRequests' }],
    ['408', { status: 408, code: 'RequestTimeout' }],
    ['400 for a body that stopped', { status: 400, code: 'RequestTimeout' }],
  ];

  it.each(doubtful)('are sent once, and %s leaves their outcome unknown', async (_, fault) => {
    failFirst('PutObject', fault);
    const error = await failure(driver.put('key', bytes, { if: 'absent' }));
    expect(error).toMatchObject({ outcome: 'unknown', key: 'key', code: 'STORAGE' });
    expect(sent('PutObject')).toBe(1);
    await driver.delete(['key']);
  });

  it.each(doubtful)('are sent once by a client of the caller too: %s', async (_, fault) => {
    const own = ownClientDriver(server, { maxAttempts: 5 });
    failFirst('PutObject', fault);
    expect(await failure(own.put('key', bytes, { if: 'absent' }))).toMatchObject({ outcome: 'unknown' });
    expect(sent('PutObject')).toBe(1);
    await driver.delete(['key']);
  });

  it('say that the store asks to go slower', async () => {
    failFirst('PutObject', { status: 503, code: 'SlowDown' });
    expect(await failure(driver.put('key', bytes, { if: 'any' }))).toMatchObject({ reason: 'throttled' });
    failFirst('PutObject', { status: 429, code: 'TooManyRequests' });
    expect(await failure(driver.put('key', bytes, { if: 'any' }))).toMatchObject({ reason: 'throttled' });
  });

  it.each([
    [403, 'AccessDenied', /s3:PutObject/],
    [403, 'SignatureDoesNotMatch', /credentials/],
    [400, 'ExpiredToken', /ExpiredToken/],
    [301, 'PermanentRedirect', /region/],
    [501, 'NotImplemented', /NotImplemented/],
  ])('that are refused with %i %s certainly had no effect', async (status, code, advice) => {
    // Twice: a request is sent again with other credentials if its own have expired.
    failFirst('PutObject', { status, code }, 2);
    const error = await failure(driver.put('key', bytes, { if: 'absent' }));
    expect(error).toMatchObject({ outcome: 'none', reason: status === 403 ? 'forbidden' : undefined });
    expect(error.message).toMatch(advice);
  });

  it('are repeated where another write was under way, which the store says by 409', async () => {
    failFirst('PutObject', { status: 409, code: 'ConditionalRequestConflict' }, 2);
    expect(await driver.put('key', bytes, { if: 'absent' })).toEqual({
      status: 'written',
      etag: expect.any(String) as string,
      requests: 3,
    });
    failFirst('PutObject', { status: 409, code: 'ConcurrentModification' });
    expect(await driver.put('key', bytes, { if: 'absent' })).toEqual({ status: 'lost', requests: 2 });
    failFirst('PutObject', { status: 409, code: 'OperationAborted' }, 100);
    expect(await failure(driver.put('key', bytes, { if: 'any' }))).toMatchObject({ outcome: 'unknown' });
    await driver.delete(['key']);
  });

  it('with an ETag take one request, and so does one that is lost once the form of ETags is known', async () => {
    const first = await driver.put('key', bytes, { if: 'any' });
    const etag = first.status === 'written' ? first.etag : '';
    server.clearLog();
    expect(await driver.put('key', Buffer.from('more'), { if: { etag } })).toMatchObject({ status: 'written' });
    expect(await driver.put('key', Buffer.from('late'), { if: { etag } })).toEqual({ status: 'lost' });
    expect(server.log.map(({ operation }) => operation)).toEqual(['PutObject', 'PutObject']);
    expect(server.log[0]?.headers['if-match']).toBe(etag);
    await driver.delete(['key']);
  });
});

describe('a store that wants bare ETags', () => {
  let bare: S3Server;
  beforeEach(async () => {
    bare = await startStore({ dialect: { bareEtags: true, missingIs412: true } });
    driver = driverOf(bare);
  });
  afterEach(() => bare.close());

  it('is found out by the first replacement, and remembered', async () => {
    const put = await driver.put('key', bytes, { if: 'any' });
    const etag = put.status === 'written' ? put.etag : '';
    bare.clearLog();
    const second = await driver.put('key', Buffer.from('2'), { if: { etag } });
    expect(second).toMatchObject({ status: 'written', requests: 3 });
    expect(bare.log.map(({ operation }) => operation)).toEqual(['PutObject', 'HeadObject', 'PutObject']);
    bare.clearLog();
    const next = second.status === 'written' ? second.etag : '';
    expect(await driver.put('key', Buffer.from('3'), { if: { etag: next } })).toMatchObject({ status: 'written' });
    expect(await driver.put('key', Buffer.from('4'), { if: { etag: next } })).toEqual({ status: 'lost' });
    expect(bare.log.map(({ operation }) => operation)).toEqual(['PutObject', 'PutObject']);
    expect(driver.describe()).toMatchObject({ 'ETags in If-Match': 'without quotes' });
  });

  it('is not asked twice for an object that was replaced or deleted meanwhile', async () => {
    await driver.put('key', bytes, { if: 'any' });
    expect(await driver.put('key', bytes, { if: { etag: '"0"' } })).toEqual({ status: 'lost', requests: 2 });
    expect(await driver.put('missing', bytes, { if: { etag: '"0"' } })).toEqual({ status: 'lost', requests: 2 });
    expect(driver.describe()).toMatchObject({
      'ETags in If-Match': 'not tried yet',
      'If-Match on a missing key': '412',
    });
  });
});

describe('checksums', () => {
  it('are not sent to stores other than Amazon', async () => {
    await driver.put('key', bytes, { if: 'any' });
    const names = Object.keys(server.log[0]?.headers ?? {});
    expect(names.filter((name) => name.includes('checksum') || name.includes('trailer'))).toEqual([]);
    await driver.delete(['key']);
  });
});

describe('encryption', () => {
  it('is asked for with every write, parts and all', async () => {
    const encrypting = driverOf(server, { encryption: { algorithm: 'aws:kms', keyId: 'key-1' } });
    await encrypting.put('small', bytes, { if: 'absent' });
    await encrypting.put('large', pieces(10), { if: 'absent' });
    await encrypting.close();
    const created = server.log.filter(
      ({ operation }) => operation === 'PutObject' || operation === 'CreateMultipartUpload',
    );
    expect(created).toHaveLength(2);
    for (const { headers } of created) {
      expect(headers).toMatchObject({
        'x-amz-server-side-encryption': 'aws:kms',
        'x-amz-server-side-encryption-aws-kms-key-id': 'key-1',
      });
    }
    await driver.delete(['small', 'large']);
  });
});

/** A stream of so many MiB. */
async function* pieces(count: number, prepare?: (index: number) => Promise<void> | void): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < count; i++) {
    await prepare?.(i);
    yield Buffer.alloc(1024 * 1024, i);
  }
}

describe('streams', () => {
  it('of up to 8 MiB are one put, and larger ones parts', async () => {
    expect(await driver.put('small', pieces(8), { if: 'absent' })).toMatchObject({ requests: 1 });
    expect(server.log.map(({ operation }) => operation)).toEqual(['PutObject']);
    server.clearLog();
    expect(await driver.put('large', pieces(20), { if: 'absent', contentType: 'image/png' })).toMatchObject({
      requests: 5,
    });
    expect(sent('UploadPart')).toBe(3);
    expect(server.objects(bucketName).get('large')).toMatchObject({ contentType: 'image/png' });
    const found = await driver.get('large');
    expect(found.status === 'found' && found.bytes.every((byte, at) => byte === Math.floor(at / 1_048_576))).toBe(true);
    await driver.delete(['small', 'large']);
  });

  it('in parts honour their condition', async () => {
    await driver.put('key', bytes, { if: 'any' });
    expect(await driver.put('key', pieces(10), { if: 'absent' })).toMatchObject({ status: 'lost' });
    expect(server.objects(bucketName).get('key')?.bytes.length).toBe(bytes.length);
    expect(server.uploads(bucketName)).toEqual([]);
    await driver.delete(['key']);
  });

  it('repeat a part that fails, and only that', async () => {
    failFirst('UploadPart', { status: 500, code: 'InternalError' }, 2);
    await driver.put('key', pieces(20), { if: 'absent' });
    expect(sent('UploadPart')).toBe(5);
    expect(sent('CreateMultipartUpload')).toBe(1);
    await driver.delete(['key']);
  });

  const lost: readonly [string, Fault][] = [
    ['cut off', 'reset-after'],
    ['cut off in its middle', 'reset-during'],
    ['500', { status: 500, code: 'InternalError', after: true }],
    ['504', { status: 504, code: 'GatewayTimeout', after: true }],
  ];
  it.each(lost)('are written where the answer to the last request is lost: %s', async (_, fault) => {
    for (const [mebibytes, operation] of [
      [2, 'PutObject'],
      [10, 'CompleteMultipartUpload'],
    ] as const) {
      for (const condition of ['absent', 'any'] as const) {
        server.clearLog();
        failFirst(operation, fault);
        const put = await driver.put('key', pieces(mebibytes), { if: condition });
        expect(put).toMatchObject({ status: 'written', etag: server.objects(bucketName).get('key')?.etag });
        expect(sent(operation)).toBe(1);
        expect(sent('HeadObject')).toBe(1);
        expect(server.uploads(bucketName)).toEqual([]);
        await driver.delete(['key']);
      }
    }
  });

  it('are completed again where the store was away and the object is not there', async () => {
    for (const [mebibytes, operation] of [
      [2, 'PutObject'],
      [10, 'CompleteMultipartUpload'],
    ] as const) {
      server.clearLog();
      failFirst(operation, { status: 503, code: 'ServiceUnavailable' }, 3);
      expect(await driver.put('key', pieces(mebibytes), { if: 'absent' })).toMatchObject({ status: 'written' });
      expect(sent(operation)).toBe(4);
      expect(server.objects(bucketName).get('key')?.bytes.length).toBe(mebibytes * 1024 * 1024);
      await driver.delete(['key']);
    }
  });

  it('are lost where the object that is there is of somebody else', async () => {
    for (const [mebibytes, operation] of [
      [2, 'PutObject'],
      [10, 'CompleteMultipartUpload'],
    ] as const) {
      const other = driverOf(server);
      let meets = 0;
      server.intercept = async (request) => {
        if (request.operation !== operation || meets++ > 0) return undefined;
        // The same bytes, of another upload.
        await other.put('key', pieces(mebibytes), { if: 'absent' });
        return { status: 502, code: 'BadGateway' };
      };
      expect(await driver.put('key', pieces(mebibytes), { if: 'absent' })).toMatchObject({ status: 'lost' });
      await other.close();
      await driver.delete(['key']);
    }
  });

  it('are given up where the store does not come back in time, and leave no parts', async () => {
    // So that ten seconds are soon over.
    const environment = Object.create(realEnvironment, {
      monotonicMs: { value: () => realEnvironment.monotonicMs() * 20 },
    }) as Environment;
    const hasty = driverOf(server, { environment });
    for (const operation of ['CompleteMultipartUpload', 'UploadPart'] as const) {
      server.intercept = (request) =>
        request.operation === operation ? { status: 500, code: 'InternalError' } : undefined;
      const failed = await failure(hasty.put('key', pieces(10), { if: 'absent' }));
      expect(failed).toMatchObject({ outcome: 'unknown', reason: 'unavailable' });
      expect(server.uploads(bucketName)).toEqual([]);
      expect(server.objects(bucketName).has('key')).toBe(false);
    }
    await hasty.close();
  });

  it('that break off leave no parts', async () => {
    const broken = pieces(30, (i) => {
      if (i === 20) throw new Error('the source broke');
    });
    expect(await failure(driver.put('key', broken, { if: 'absent' }))).toMatchObject({ outcome: 'none' });
    expect(sent('CreateMultipartUpload')).toBe(1);
    expect(server.uploads(bucketName)).toEqual([]);
  });

  it('are read no further once a part has failed for good', async () => {
    server.intercept = ({ operation }) =>
      operation === 'UploadPart' ? { status: 403, code: 'AccessDenied' } : undefined;
    let read = 0;
    const source = pieces(400, () => void read++);
    expect(await failure(driver.put('key', source, { if: 'absent' }))).toMatchObject({ reason: 'forbidden' });
    expect(read).toBeLessThan(60);
    expect(server.uploads(bucketName)).toEqual([]);
  });

  it('can be given up, also while their source is stuck', async () => {
    const controller = new AbortController();
    const never = new Promise<void>(() => {});
    const stuck = pieces(30, (i) => {
      if (i < 20) return undefined;
      setTimeout(() => controller.abort(), 20);
      return never;
    });
    await failure(driver.put('key', stuck, { if: 'absent', signal: controller.signal }));
    expect(server.uploads(bucketName)).toEqual([]);
    expect(server.objects(bucketName).has('key')).toBe(false);
  });

  it('hold a few parts in memory, not all', async () => {
    // Parts that are sent, and wait for the collection of garbage, do not count.
    setFlagsFromString('--expose-gc');
    const collectMemory = runInNewContext('gc') as () => void;
    const heldBytes = (): number => {
      collectMemory();
      return process.memoryUsage().arrayBuffers;
    };
    const before = heldBytes();
    let most = 0;
    const source = pieces(160, (index) => {
      if (index % 4 === 0) most = Math.max(most, heldBytes() - before);
    });
    // The server forgets what it is sent, or its own memory would be measured.
    server.intercept = ({ operation }) =>
      operation === 'UploadPart' ? { status: 200, code: '', headers: { etag: '"0"' } } : undefined;
    await failure(driver.put('key', source, { if: 'absent' }));
    expect(most / 1_048_576).toBeLessThan(110);
  });
});

describe('reads', () => {
  it('of a missing key are refused, not missing, where listing is not allowed', async () => {
    server.dialect.noListBucket = true;
    const error = await failure(driver.get('missing'));
    server.dialect.noListBucket = false;
    expect(error).toMatchObject({ reason: 'forbidden' });
    expect(error.message).toContain('s3:ListBucket');
  });

  it('that are cut off in the middle fail', async () => {
    await driver.put('key', Buffer.alloc(100_000, 1), { if: 'any' });
    failFirst('GetObject', 'reset-during');
    expect(await failure(driver.get('key'))).toBeInstanceOf(StorageError);
    await driver.delete(['key']);
  });

  it('of a range ask for no more than that', async () => {
    await driver.put('key', Buffer.alloc(1_000_000, 1), { if: 'any' });
    server.clearLog();
    await driver.get('key', { range: { start: 10, end: 20 } });
    expect(server.log).toHaveLength(1);
    expect(server.log[0]).toMatchObject({ status: 206, bytesOut: 10 });
    await driver.delete(['key']);
  });

  it('from a bucket that is not there, or something that is no store, are no missing keys', async () => {
    const lost = driverOf(server, { bucket: 'elsewhere' });
    const error = await failure(lost.get('key'));
    expect(error.message).toContain('There is no bucket elsewhere');
    await lost.close();
    failFirst('GetObject', { status: 404, code: 'NotFound' });
    expect(await failure(driver.get('key'))).toMatchObject({ outcome: 'none' });
  });
});

describe('deletions', () => {
  it('take one request for a thousand keys', async () => {
    const keys = Array.from({ length: 2500 }, (_, i) => `key ${i}`);
    expect(await driver.delete(keys)).toEqual({ failed: [], requests: 3 });
    expect(sent('DeleteObjects')).toBe(3);
  });

  it('report the keys that the store refuses', async () => {
    server.dialect.noDelete = true;
    const result = await driver.delete(['a', 'b']);
    const error = await failure(driver.delete(['a']));
    server.dialect.noDelete = false;
    expect(result.failed.map(({ key }) => key)).toEqual(['a', 'b']);
    expect(result.failed[0]?.message).toContain('AccessDenied');
    expect(error.message).toContain('s3:DeleteObject');
  });
});

describe('connections', () => {
  it('are kept and shared, 64 at most, and closed in the end', async () => {
    let underWay = 0;
    let most = 0;
    const connections = new Set<Socket>();
    const counting = await listen((socket) => {
      connections.add(socket);
      socket.on('data', () => {
        most = Math.max(most, ++underWay);
        setTimeout(() => {
          underWay--;
          socket.write('HTTP/1.1 200 OK\r\netag: "1"\r\ncontent-length: 4\r\n\r\nbody');
        }, 5);
      });
    });
    const many = driverOf(server, { endpoint: counting.endpoint });
    await Promise.all(Array.from({ length: 500 }, (_, i) => many.get(`key ${i}`)));
    // How many are under way at once depends on how busy the machine is; there are never more than the connections.
    expect(most).toBeGreaterThan(16);
    expect(most).toBeLessThanOrEqual(64);
    expect(connections.size).toBe(64);
    await many.close();
    // It ends when every connection has ended.
    await counting.end();
  });

  it('that cannot be made say so, and that nothing was written', async () => {
    const nowhere = driverOf(server, { endpoint: 'http://127.0.0.1:9' });
    const error = await failure(nowhere.put('key', bytes, { if: 'any' }));
    expect(error).toMatchObject({ outcome: 'none' });
    expect(error.message).toContain('cannot be reached');
    await nowhere.close();
  });

  const tried = (syscall: string): object => ({ code: 'ECONNREFUSED', syscall });
  it.each<[string, object, string]>([
    ['connect EHOSTUNREACH', { code: 'EHOSTUNREACH', syscall: 'connect' }, 'none'],
    ['no address', { code: 'ECONNREFUSED', errors: [tried('connect'), tried('connect')] }, 'none'],
    ['read EHOSTUNREACH', { code: 'EHOSTUNREACH', syscall: 'read' }, 'unknown'],
    ['write ECONNREFUSED', { code: 'ECONNREFUSED', syscall: 'write' }, 'unknown'],
    ['one address, read', { code: 'ECONNREFUSED', errors: [tried('connect'), tried('read')] }, 'unknown'],
  ])('that fail leave a doubt if they had been made: %s', async (name, reason, outcome) => {
    const error = Object.assign(new Error(name), reason);
    const cut = ownClientDriver(server, { requestHandler: { handle: () => Promise.reject(error) } });
    expect(await failure(cut.put('key', bytes, { if: 'absent' }))).toMatchObject({ outcome });
  });

  it('serve a driver again after it was closed', async () => {
    await driver.close();
    expect(await driver.get('missing')).toEqual({ status: 'missing' });
  });

  it('that hang are given up at the deadline', async () => {
    const silent = await listen((socket) => socket.resume());
    const controller = new AbortController();
    const hanging = driverOf(server, { endpoint: silent.endpoint });
    const request = failure(hanging.put('key', bytes, { if: 'any', signal: controller.signal }));
    setTimeout(() => controller.abort(), 50);
    expect(await request).toMatchObject({ outcome: 'unknown' });
    await hanging.close();
    await silent.end();
  });

  it('to a store that never answers are given up after half a minute', async () => {
    const silent = await listen((socket) => socket.resume());
    const delays: number[] = [];
    // Half a minute passes in a twentieth of a second.
    const setTimer: Environment['setTimer'] = (callback, delayMs) => {
      delays.push(delayMs);
      return realEnvironment.setTimer(callback, Math.min(delayMs, 50));
    };
    const environment = Object.assign(Object.create(realEnvironment) as Environment, { setTimer });
    const hanging = driverOf(server, { endpoint: silent.endpoint, environment });
    expect((await failure(hanging.get('key'))).message).toContain('30000 ms');
    // The limits of the request, of the provider of its credentials, and of its connection.
    expect(delays).toEqual([30_000, 60_000, 5000]);
    await hanging.close();
    await silent.end();
  });
});

describe('clocks', () => {
  it('that are wrong by hours are allowed for', async () => {
    const ahead = await startStore({ dialect: { clockSkewMs: 5 * 3_600_000 } });
    const skewed = driverOf(ahead);
    expect(await skewed.put('key', bytes, { if: 'absent' })).toMatchObject({ status: 'written', requests: 2 });
    expect(await skewed.put('key', bytes, { if: 'absent' })).toEqual({ status: 'lost' });
    const url = await skewed.presign('key', { expiresInSeconds: 60 });
    expect((await fetch(url)).status).toBe(200);
    await skewed.close();
    await ahead.close();
  });

  it('that are set right are too', async () => {
    const ahead = await startStore({ dialect: { clockSkewMs: 5 * 3_600_000 } });
    const skewed = driverOf(ahead);
    await skewed.put('first', bytes, { if: 'absent' });
    ahead.dialect.clockSkewMs = 0;
    expect(await skewed.put('second', bytes, { if: 'absent' })).toMatchObject({ status: 'written', requests: 2 });
    expect(await skewed.put('second', bytes, { if: 'absent' })).toEqual({ status: 'lost' });
    await skewed.close();
    await ahead.close();
  });
});
