/** Copies that the store makes by itself: for clones in a bucket, whole and in parts, and what becomes of refusals. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { copyObject } from '../../../src/storage/s3/object-store-copy.ts';
import { checkDriverOptions } from '../../../src/storage/s3/object-store-options.ts';
import { ObjectStoreRequests } from '../../../src/storage/s3/object-store-requests.ts';
import { amazonDialect } from '../s3-server/dialect.ts';
import type { S3Server } from '../s3-server/server.ts';
import { bucketName, driverOf, startStore } from './bucket.ts';
import { cloneInStore } from './clone-check.ts';

const partBytes = 5 * 1024 * 1024;
let server: S3Server;

beforeAll(async () => {
  server = await startStore();
});
afterAll(() => server.close());
afterEach(() => {
  Object.assign(server.dialect, amazonDialect);
  server.intercept = undefined;
  server.clearLog();
});

function count(operation: string): number {
  return server.log.filter((request) => request.operation === operation).length;
}

async function copyLarge(contentType?: string): Promise<number> {
  const checked = checkDriverOptions({ bucket: bucketName, endpoint: server.endpoint });
  const requests = new ObjectStoreRequests(checked);
  const tally = { requests: 0 };
  const options = { sizeBytes: 2 * partBytes + 7, ...(contentType !== undefined && { contentType }) };
  try {
    await copyObject({ ...checked, requests, from: 'large', to: 'copy', options, tally, partBytes });
    return tally.requests;
  } finally {
    await requests.close();
  }
}

describe('a clone in one bucket', () => {
  it('downloads neither leaves nor blobs', async () => {
    const found = await cloneInStore(() => driverOf(server), 'clone');
    expect(found).toMatchObject({
      copies: found.objects,
      leavesRead: 0,
      differences: 0,
      contentTypes: ['text/plain'],
      isSound: true,
    });
    expect(found.objects).toBeGreaterThan(10);
    expect(count('CopyObject')).toBe(found.objects);
    // Only what never changes is copied.
    const copied = server.log.filter(({ operation }) => operation === 'CopyObject').map(({ key }) => key);
    expect(copied.filter((key) => !/\/(?:blobs|data|indexes)\//.test(key ?? ''))).toEqual([]);
  });

  it('is made all the same where the store cannot copy, after one attempt', async () => {
    server.dialect.noCopies = true;
    const found = await cloneInStore(() => driverOf(server), 'refused');
    expect(found).toMatchObject({ copies: 0, differences: 0, contentTypes: ['text/plain'], isSound: true });
    // The first ones go together.
    expect(count('CopyObject')).toBeLessThanOrEqual(16);
  });

  it('goes on where copies fail now and then', async () => {
    let copies = 0;
    server.intercept = ({ operation }) =>
      operation === 'CopyObject' && ++copies % 3 === 0 ? { status: 503, code: 'SlowDown' } : undefined;
    const found = await cloneInStore(() => driverOf(server), 'failing');
    expect(found).toMatchObject({ copies: found.objects, leavesRead: 0, differences: 0, isSound: true });
  });
});

describe('a large object', () => {
  it('is copied part by part, with its type', async () => {
    const driver = driverOf(server);
    const bytes = Buffer.alloc(2 * partBytes + 7, 'large ');
    await driver.put('large', bytes, { if: 'any', contentType: 'text/plain' });
    server.clearLog();
    expect(await copyLarge('text/plain')).toBe(5);
    expect(count('UploadPartCopy')).toBe(3);
    const object = server.objects(bucketName).get('copy');
    expect(object?.contentType).toBe('text/plain');
    expect(object?.bytes.equals(bytes)).toBe(true);
    await driver.close();
  });

  it('leaves no parts behind where a part cannot be copied', async () => {
    await driverOf(server).delete(['copy']);
    let parts = 0;
    server.intercept = ({ operation }) =>
      operation === 'UploadPartCopy' && ++parts >= 2 ? { status: 500, code: 'InternalError' } : undefined;
    await expect(copyLarge()).rejects.toMatchObject({ code: 'STORAGE' });
    expect(count('AbortMultipartUpload')).toBe(1);
    server.intercept = undefined;
    expect((await driverOf(server).get('copy')).status).toBe('missing');
    const removed = await driverOf(server).removeUploads('', { startedBeforeMs: () => Promise.resolve(Infinity) });
    expect(removed).toBe(0);
  });
});
