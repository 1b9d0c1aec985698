/** How a driver comes by its bucket, endpoint, region and credentials, and what it says where one is wrong. */
import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { S3Client } from '@aws-sdk/client-s3';
import { StorageError } from '../../../src/base/errors.ts';
import { StoreDb, Types } from '../../../src/index.ts';
import { environmentDriver } from '../../../src/storage/environment-driver.ts';
import { ObjectStoreDriver } from '../../../src/storage/s3/object-store-driver.ts';
import type { ObjectStoreDriverOptions } from '../../../src/storage/s3/object-store-options.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { S3Server } from '../s3-server/server.ts';
import { bucketName, driverOf, startStore } from './bucket.ts';

let server: S3Server;

beforeAll(async () => {
  server = await startStore();
});
afterAll(() => server.close());
beforeEach(() => {
  const { accessKeyId, secretAccessKey } = server.credentials;
  process.env['AWS_ACCESS_KEY_ID'] = accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey;
  server.clearLog();
  server.intercept = undefined;
});

describe('options', () => {
  it.each<[string, unknown]>([
    ['bucket', {}],
    ['bucket', { bucket: '' }],
    ['bucket', { bucket: 'a/b' }],
    ['bucket', { bucket: 'fast--usw2-az1--x-s3' }],
    ['endpoint', { bucket: 'b', endpoint: 'localhost' }],
    ['endpoint', { bucket: 'b', endpoint: 'ftp://store' }],
    ['region', { bucket: 'b', region: '' }],
    ['forcePathStyle', { bucket: 'b', forcePathStyle: 1 }],
    ['client', { bucket: 'b', client: {} }],
    ['encryption.algorithm', { bucket: 'b', encryption: { algorithm: 'rot13' } }],
    ['encryption.keyId', { bucket: 'b', encryption: { algorithm: 'aws:kms', keyId: '' } }],
    ['bucketName', { bucket: 'b', bucketName: 'b' }],
    ['options', undefined],
  ])('that are wrong are refused: %s in %j', (option, options) => {
    expect(() => new ObjectStoreDriver(options as ObjectStoreDriverOptions)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', option }) as Error,
    );
  });
});

describe('the environment', () => {
  it('names the bucket of a database without a driver', async () => {
    process.env['STOREDB_BUCKET'] = bucketName;
    process.env['STOREDB_ENDPOINT'] = server.endpoint;
    process.env['STOREDB_REGION'] = 'eu-north-1';
    process.env['STOREDB_FORCE_PATH_STYLE'] = '1';
    const db = StoreDb({ dbPrefix: 'by-environment', nodeId: 0, logLevel: 'silent' });
    await db.start();
    await db.stop();
    // Signed for a region that the server does not have, as the variable says, and then for the one that the server named.
    const [first, second] = server.log.map(({ headers, code }) => ({ signed: headers['authorization'], code }));
    expect(first).toMatchObject({ signed: expect.stringContaining('/eu-north-1/s3/') as unknown });
    expect(first?.code).toBeDefined();
    expect(second).toMatchObject({ signed: expect.stringContaining(`/${server.region}/s3/`) as unknown });
    expect([...server.objects(bucketName).keys()]).toContain('by-environment/block0');
  });

  it('that does not name one gives no driver', () => {
    delete process.env['STOREDB_BUCKET'];
    expect(environmentDriver()).toBeUndefined();
    process.env['STOREDB_BUCKET'] = '';
    expect(environmentDriver()).toBeUndefined();
  });

  it('with empty variables of the SDK is one without them', async () => {
    process.env['AWS_ENDPOINT_URL'] = '';
    process.env['AWS_ENDPOINT_URL_S3'] = '';
    const driver = new ObjectStoreDriver({ bucket: bucketName, region: 'eu-north-1' });
    const url = new URL(await driver.presign('key', { expiresInSeconds: 60 }));
    expect(url.host).toBe(`${bucketName}.s3.eu-north-1.amazonaws.com`);
    await driver.close();
  });

  it('is refused where a flag is neither 1 nor 0', () => {
    process.env['STOREDB_BUCKET'] = bucketName;
    process.env['STOREDB_FORCE_PATH_STYLE'] = 'maybe';
    expect(() => environmentDriver()).toThrow(/STOREDB_FORCE_PATH_STYLE/);
  });
});

async function failure(driver: ObjectStoreDriver): Promise<StorageError> {
  const error: unknown = await driver.put('key', Buffer.from('x'), { if: 'any' }).catch((cause: unknown) => cause);
  await driver.close();
  if (!(error instanceof StorageError)) throw new Error('It did not fail with a StorageError', { cause: error });
  return error;
}

describe('credentials', () => {
  it('that are wrong are said to be', async () => {
    process.env['AWS_SECRET_ACCESS_KEY'] = 'wrong';
    const error = await failure(driverOf(server));
    expect(error).toMatchObject({ outcome: 'none', reason: 'forbidden' });
    expect(error.message).toContain('check the access key');
  });

  it('that are missing are asked for', async () => {
    process.env = { AWS_EC2_METADATA_DISABLED: 'true', HOME: '/nonexistent' };
    const error = await failure(driverOf(server));
    expect(error).toMatchObject({ outcome: 'none' });
    expect(error.message).toContain('AWS_ACCESS_KEY_ID');
  });

  it('are refused in as many words as the store has', async () => {
    const silent = Object.assign(new Error('UnknownError'), {
      name: 'InvalidAccessKeyId',
      $metadata: { httpStatusCode: 403 },
    });
    const { endpoint, region, credentials } = server;
    const requestHandler = { handle: () => Promise.reject(silent) };
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true, requestHandler });
    const { message } = await failure(new ObjectStoreDriver({ bucket: bucketName, client }));
    expect(message).toMatch(/^PutObject of key failed \(403 InvalidAccessKeyId\)\. The store does not accept/);
  });

  it('are not in errors, nor are sockets and responses', async () => {
    const error = await failure(driverOf(server, { bucket: 'elsewhere' }));
    const shown = inspect(error, { depth: 6 });
    expect(shown).toContain('NoSuchBucket');
    expect(shown.length).toBeLessThan(6000);
    expect(shown).not.toContain(server.credentials.secretAccessKey);
    expect(shown).not.toContain('authorization');
  });
});

describe('cache headers', () => {
  /** Makes a database with a row and a blob, and returns the headers `Cache-Control` of its objects by their folders. */
  async function headersOf(options: Partial<ObjectStoreDriverOptions>): Promise<Map<string, string | undefined>> {
    const driver = driverOf(server, options);
    const dbPrefix = `cached-${String(options.cacheHeaders)}`;
    const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel: 'silent' });
    const fields = { id: { typeId: Types.uint16 }, note: { typeId: Types.varchar }, photo: { typeId: Types.blob } };
    db.registerSchema({ name: 'photos', version: 1, fields, primaryKey: 'id' });
    await db.start();
    server.clearLog();
    const batch = db.batch();
    // More rows than Block 0 holds itself.
    for (let id = 1; id <= 2000; id++) void batch.insert('photos', { id, note: `${id} `.repeat(50) });
    await batch.insert('photos', { id: 0, photo: db.Blob('picture') });
    await batch.flush();
    await db.checkpoint();
    await db.stop();
    await driver.close();
    const puts = server.log.filter(({ method }) => method === 'PUT');
    return new Map(puts.map(({ key, headers }) => [key.split('/')[1] ?? '', headers['cache-control']]));
  }

  it('let caches keep what is written once, and have them ask about Block 0', async () => {
    const headers = await headersOf({});
    for (const folder of ['committed', 'data', 'blobs']) {
      expect(headers.get(folder), folder).toBe('private, max-age=31536000, immutable');
    }
    expect(headers.get('block0')).toBe('no-cache');
  });

  it('let all caches keep the objects of bundles, and have them ask about the pointer', async () => {
    const driver = driverOf(server);
    const db = StoreDb({ dbPrefix: 'db', nodeId: 1, driver: new MemoryDriver() });
    const fields = { id: { typeId: Types.uint32 }, photo: { typeId: Types.blob } };
    db.registerSchema({ name: 'photos', version: 1, fields, primaryKey: 'id' });
    await db.start();
    const batch = db.batch();
    void batch.insert('photos', { id: 0, photo: db.Blob('picture') });
    for (let id = 1; id <= 5000; id++) void batch.insert('photos', { id });
    await batch.flush();
    server.clearLog();
    await db.publish({ driver, prefix: 'site' });
    await db.stop();
    await driver.close();
    const puts = server.log.filter(({ method }) => method === 'PUT');
    const headers = new Map(puts.map(({ key, headers: sent }) => [key.split('/')[1] ?? '', sent['cache-control']]));
    expect(headers.get('bundle')).toBe('no-cache');
    headers.delete('bundle');
    expect([...headers.keys()].toSorted()).toEqual(['000000000001', 'contents', 'data', 'manifests']);
    expect(new Set(headers.values())).toEqual(new Set(['public, max-age=31536000, immutable']));
  });

  it('are left out if the driver is told so', async () => {
    const headers = await headersOf({ cacheHeaders: false });
    expect(headers.size).toBeGreaterThan(3);
    expect(new Set(headers.values())).toEqual(new Set([undefined]));
  });
});

describe('a client of the caller', () => {
  it('is used as it is, and outlives the driver', async () => {
    const { endpoint, region, credentials } = server;
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
    const driver = new ObjectStoreDriver({ bucket: bucketName, client });
    await driver.put('own', Buffer.from('x'), { if: 'any' });
    await driver.close();
    const second = new ObjectStoreDriver({ bucket: bucketName, client });
    expect(await second.get('own')).toMatchObject({ status: 'found' });
    await second.close();
    client.destroy();
  });

  it('sends reads as often as it is set to, and conditional puts once', async () => {
    const { endpoint, region, credentials } = server;
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true, maxAttempts: 3 });
    const driver = new ObjectStoreDriver({ bucket: bucketName, client });
    server.intercept = () => ({ status: 500, code: 'InternalError' });
    await expect(driver.get('own')).rejects.toThrow('500');
    expect(server.log).toHaveLength(3);
    server.clearLog();
    await expect(driver.put('own', Buffer.from('x'), { if: 'any' })).rejects.toThrow('500');
    expect(server.log).toHaveLength(1);
    client.destroy();
  });
});
