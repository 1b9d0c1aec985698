/** Drivers on the bucket that a test run is about. */
import { inject } from 'vitest';
import { ObjectStoreDriver } from '../../src/storage/object-store.ts';
import type { BucketUnderTest } from './global-setup.ts';

export function bucketUnderTest(): BucketUnderTest {
  const given = inject('bucketUnderTest');
  if (given === undefined) throw new Error('This test needs Ceph: npm run test:ceph');
  return given;
}

/** A driver for the bucket. Credentials reach it as they do in applications, by the process's environment. */
export function bucketDriver(): ObjectStoreDriver {
  const { bucket, endpoint, region, accessKeyId, secretAccessKey } = bucketUnderTest();
  process.env['AWS_ACCESS_KEY_ID'] = accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey;
  return new ObjectStoreDriver({ bucket, endpoint, region });
}
