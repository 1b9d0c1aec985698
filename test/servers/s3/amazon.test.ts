/**
 * The driver as it speaks to Amazon S3: by its host names, over TLS, through proxies, with checksums, and to the right region. The
 * test server stands behind a proxy that takes it for Amazon.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StorageError } from '../../../src/base/errors.ts';
import { ObservedDriver } from '../../../src/storage/wrap/observed-driver.ts';
import { ObjectStoreDriver } from '../../../src/storage/s3/object-store-driver.ts';
import type { ObjectStoreDriverOptions } from '../../../src/storage/s3/object-store-options.ts';
import type { S3Server } from '../s3-server/server.ts';
import { bucketName, startStore } from './bucket.ts';
import { certificate, openFront } from './secure-front.ts';
import type { SecureFront } from './secure-front.ts';

let server: S3Server;
let front: SecureFront;

beforeAll(async () => {
  server = await startStore();
  front = await openFront(Number(new URL(server.endpoint).port));
});
afterAll(async () => {
  await front.close();
  await server.close();
});
beforeEach(() => {
  const { accessKeyId, secretAccessKey } = server.credentials;
  process.env['AWS_ACCESS_KEY_ID'] = accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey;
  process.env['HTTPS_PROXY'] = front.proxy;
  server.clearLog();
  server.intercept = undefined;
  front.asked.length = 0;
});

async function withAmazon(
  options: Partial<ObjectStoreDriverOptions>,
  run: (driver: ObjectStoreDriver) => Promise<void>,
): Promise<void> {
  const driver = new ObjectStoreDriver({ bucket: bucketName, ca: certificate, ...options });
  try {
    await run(driver);
  } finally {
    await driver.close();
  }
}

async function failure(promise: Promise<unknown>): Promise<StorageError> {
  const error: unknown = await promise.catch((cause: unknown) => cause);
  if (!(error instanceof StorageError)) throw new Error('It did not fail with a StorageError', { cause: error });
  return error;
}

describe('Amazon S3', () => {
  it('is reached by the host name of the bucket, and has checksums of what is written', async () => {
    await withAmazon({ region: server.region }, async (driver) => {
      const key = "a/ä+b c/%2F/'(!)*~/..//";
      expect(await driver.put(key, Buffer.from('hello'), { if: 'absent' })).toMatchObject({ status: 'written' });
      const [{ headers } = { headers: {} as Record<string, string> }] = server.log;
      expect(headers).toMatchObject({
        host: `${bucketName}.s3.us-east-1.amazonaws.com`,
        'x-amz-checksum-crc32': 'NhCmhg==',
        'if-none-match': '*',
      });
      expect(await driver.get(key)).toMatchObject({ status: 'found', bytes: Buffer.from('hello') });
      expect(server.log[1]?.headers['x-amz-checksum-mode']).toBe('ENABLED');
      expect((await driver.list('a/')).entries).toMatchObject([{ key, sizeBytes: 5 }]);
      expect(await driver.delete([key, `${key}2`])).toEqual({ failed: [] });
      expect(front.asked[0]).toBe(`CONNECT ${bucketName}.s3.us-east-1.amazonaws.com:443`);
    });
  });

  it('says which region the bucket is in, and is then asked there', async () => {
    server.intercept = ({ headers }) =>
      headers['host']?.includes('us-east-1') === true
        ? undefined
        : { status: 301, code: 'PermanentRedirect', headers: { 'x-amz-bucket-region': 'us-east-1' } };
    await withAmazon({ region: 'eu-north-1' }, async (driver) => {
      expect(await driver.put('moved', Buffer.from('x'), { if: 'absent' })).toMatchObject({ status: 'written' });
      expect(await driver.get('moved')).toMatchObject({ status: 'found' });
      expect(server.log.map(({ method, headers }) => `${method} ${headers['host']}`)).toEqual([
        `PUT ${bucketName}.s3.eu-north-1.amazonaws.com`,
        `PUT ${bucketName}.s3.us-east-1.amazonaws.com`,
        `GET ${bucketName}.s3.us-east-1.amazonaws.com`,
      ]);
    });
  });

  it('is told once by all requests that are under way, and counts those that it sends again', async () => {
    server.intercept = ({ headers }) =>
      headers['host']?.includes('us-east-1') === true
        ? undefined
        : { status: 301, code: 'PermanentRedirect', headers: { 'x-amz-bucket-region': 'us-east-1' } };
    await withAmazon({ region: 'eu-north-1' }, async (driver) => {
      const observed = new ObservedDriver(driver);
      await Promise.all([
        observed.put('counted', Buffer.from('x'), { if: 'any' }),
        observed.get('no-such-key'),
        observed.list('counted'),
        observed.delete(['no-such-key']),
        observed.delete(['no-such-key', 'nor-this']),
      ]);
      const counts = observed.snapshot();
      expect(counts).toMatchObject({ extraPuts: 1, extraGets: 1, extraLists: 1, extraDeletes: 2, errors: 0 });
      expect(server.log).toHaveLength(10);
      expect(counts.put + counts.getMissing + counts.list + counts.delete).toBe(5);
    });
  });

  it('counts the requests that it sends again with other credentials', async () => {
    server.intercept = ({ headers }) =>
      headers['authorization']?.includes('=AKIAOLD/') === true ? { status: 400, code: 'ExpiredToken' } : undefined;
    const [accessKeyId, secretAccessKey] = [process.env['AWS_ACCESS_KEY_ID'], process.env['AWS_SECRET_ACCESS_KEY']];
    let asked = 0;
    const credentials = () =>
      Promise.resolve({
        accessKeyId: asked++ === 0 ? 'AKIAOLD' : (accessKeyId ?? ''),
        secretAccessKey: secretAccessKey ?? '',
      });
    await withAmazon({ region: server.region, credentials }, async (driver) => {
      const observed = new ObservedDriver(driver);
      expect(await observed.put('counted', Buffer.from('x'), { if: 'any' })).toMatchObject({ requests: 2 });
      await observed.get('counted');
      expect(observed.snapshot()).toMatchObject({ put: 1, extraPuts: 1, get: 1, extraGets: 0, errors: 0 });
      expect(server.log).toHaveLength(3);
    });
  });

  it('tells the region before a URL is signed, if none was set', async () => {
    server.intercept = ({ headers }) =>
      headers['host']?.includes('us-east-1') === true
        ? { status: 301, code: 'PermanentRedirect', headers: { 'x-amz-bucket-region': 'eu-north-1' } }
        : undefined;
    await withAmazon({}, async (driver) => {
      const url = new URL(await driver.presign('key', { expiresInSeconds: 60 }));
      expect(url.host).toBe(`${bucketName}.s3.eu-north-1.amazonaws.com`);
      expect(url.searchParams.get('X-Amz-Credential')).toContain('/eu-north-1/s3/');
    });
  });

  it('sends a checksum with the content, which is compared', async () => {
    await withAmazon({ region: server.region }, async (driver) => {
      await driver.put('checked', Buffer.from('hello'), { if: 'any' });
      server.intercept = ({ operation }) =>
        operation === 'GetObject'
          ? { status: 200, code: '', headers: { 'x-amz-checksum-crc32': 'AAAAAA==', etag: '"a"' } }
          : undefined;
      expect((await failure(driver.get('checked'))).message).toContain('does not have its checksum');
    });
  });
});

describe('certificates', () => {
  it('that this process does not trust end a request before it is sent', async () => {
    const driver = new ObjectStoreDriver({ bucket: bucketName, region: server.region });
    const error = await failure(driver.put('key', Buffer.from('x'), { if: 'any' }));
    expect(error.outcome).toBe('none');
    expect(error.message).toContain('option ca');
    expect(server.log).toEqual([]);
    await driver.close();
  });

  it('of other stores are trusted if they are given', async () => {
    process.env['HTTPS_PROXY'] = '';
    await withAmazon({ endpoint: front.endpoint }, async (driver) => {
      await driver.put('own', Buffer.from('x'), { if: 'any' });
      expect(await driver.get('own')).toMatchObject({ status: 'found' });
    });
    expect(front.asked).toEqual([]);
  });
});

describe('proxies', () => {
  it('forward requests without TLS', async () => {
    process.env['http_proxy'] = front.proxy;
    await withAmazon({ endpoint: 'http://store.example' }, async (driver) => {
      await driver.put('forwarded', Buffer.from('x'), { if: 'any' });
      expect(await driver.get('forwarded')).toMatchObject({ status: 'found', bytes: Buffer.from('x') });
    });
    expect(front.asked).toEqual(['PUT', 'GET'].map((method) => `${method} http://store.example/data/forwarded`));
  });

  it('are left out for servers in NO_PROXY', async () => {
    process.env['HTTP_PROXY'] = front.proxy;
    process.env['NO_PROXY'] = '127.0.0.1';
    await withAmazon({ endpoint: server.endpoint }, async (driver) => {
      expect(await driver.get('nothing')).toEqual({ status: 'missing' });
    });
    expect(front.asked).toEqual([]);
  });
});
