/** Drivers on the bucket that a test run is about. */
import { inject } from 'vitest';
import { ObjectStoreDriver } from '../../../src/storage/s3/object-store-driver.ts';
import type { BucketUnderTest } from './global-setup.ts';

export function bucketUnderTest(): BucketUnderTest {
  const given = inject('bucketUnderTest');
  if (given === undefined) throw new Error('This test needs Ceph: npm run test:ceph');
  return given;
}

/** A driver for the bucket, or for another one. Credentials reach it as in applications, by the process's environment. */
export function bucketDriver(bucket: string = bucketUnderTest().bucket): ObjectStoreDriver {
  const { endpoint, region, accessKeyId, secretAccessKey } = bucketUnderTest();
  process.env['AWS_ACCESS_KEY_ID'] = accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey;
  return new ObjectStoreDriver({ bucket, endpoint, region });
}

/** Of Ceph. */
export function majorVersion(): number {
  return Number.parseInt(bucketUnderTest().version, 10);
}
