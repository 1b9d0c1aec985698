/** Ceph copies by itself: for a clone in a bucket, and an object part by part. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { copyObject } from '../../../src/storage/s3/object-store-copy.ts';
import { checkDriverOptions } from '../../../src/storage/s3/object-store-options.ts';
import { ObjectStoreRequests } from '../../../src/storage/s3/object-store-requests.ts';
import { cloneInStore } from '../s3/clone-check.ts';
import { bucketDriver, bucketUnderTest } from './bucket.ts';

describe('copies on Ceph', () => {
  it('a clone downloads neither leaves nor blobs', async () => {
    const found = await cloneInStore(() => bucketDriver(), randomUUID());
    expect(found).toMatchObject({
      copies: found.objects,
      leavesRead: 0,
      differences: 0,
      contentTypes: ['text/plain'],
      isSound: true,
    });
  });

  it('a large object is copied part by part', async () => {
    const partBytes = 5 * 1024 * 1024;
    const [from, to] = [`large ä ${randomUUID()}`, `copy ${randomUUID()}`];
    const bytes = Buffer.alloc(2 * partBytes + 7, 'large ');
    const driver = bucketDriver();
    await driver.put(from, bytes, { if: 'absent' });
    const { bucket, endpoint, region } = bucketUnderTest();
    const checked = checkDriverOptions({ bucket, endpoint, region });
    const requests = new ObjectStoreRequests(checked);
    const tally = { requests: 0 };
    const options = { sizeBytes: bytes.length, contentType: 'text/plain' };
    await copyObject({ ...checked, requests, from, to, options, tally, partBytes });
    const found = await driver.get(to);
    expect(found.status === 'found' && bytes.equals(found.bytes)).toBe(true);
    await driver.delete([from, to]);
    await requests.close();
    await driver.close();
  });
});
