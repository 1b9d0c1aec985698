/** The behaviour of `scripts/ceph` that no other test here relies on. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { CreateBucketCommand, HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { expect, it } from 'vitest';
import { bucketUnderTest } from './bucket.ts';
import { CephInstance } from './ceph-instance.ts';

it('an instance in memory keeps its data when it is stopped, and refuses to be killed where it would not', async () => {
  const instance = await CephInstance.start('memstore');
  try {
    const { endpoint, region, ...credentials } = await instance.store();
    const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
    await client.send(new CreateBucketCommand({ Bucket: 'kept' }));
    for (const victim of ['osd', 'all'] as const) {
      await expect(instance.kill(victim)).rejects.toThrow(/a memstore loses everything/);
    }
    expect(await instance.status()).toContain(`${endpoint}, memstore`);
    await instance.kill('gateway');
    await expect(instance.status()).rejects.toThrow(/gateway: not running/);
    await instance.start();
    await instance.stop();
    await expect(instance.status()).rejects.toThrow(/osd\.0: not running/);
    await instance.start();
    await client.send(new HeadBucketCommand({ Bucket: 'kept' }));
    client.destroy();
  } finally {
    await instance.destroy();
  }
});

it('if Ceph cannot be fetched, starting fails and names the missing package', async () => {
  const cache = mkdtempSync(path.join(tmpdir(), 'store-db-ceph-cache-'));
  // Nobody listens there.
  const variables = { CEPH_CACHE: cache, CEPH_MIRROR: 'http://127.0.0.1:1/debian' };
  await expect(CephInstance.start('memstore', variables)).rejects.toThrow(/could not be fetched.*CEPH_MIRROR/);
  expect(readdirSync(cache)).toEqual(['lock']);
  rmSync(cache, { recursive: true });
});

it('another server on the port is not taken for an instance', async () => {
  const variables = { CEPH_PORT: new URL(bucketUnderTest().endpoint).port };
  await expect(CephInstance.start('memstore', variables)).rejects.toThrow(/port \d+ is taken/);
});
