/** Starts Ceph for a whole test run, with a bucket, and ends it afterwards. Where it does not start, the run fails. */
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import type { TestProject } from 'vitest/node';
import { CephInstance } from './ceph-instance.ts';
import type { CephStore } from './ceph-instance.ts';

/** What tests are told of the store that this run is about. */
export interface BucketUnderTest extends CephStore {
  readonly bucket: string;
  /** Of a user who may do nothing but what a bucket's policy allows. */
  readonly guest: CephStore;
  /** Of Ceph, as its package has it: `20.2.4+ds-2`. */
  readonly version: string;
}

declare module 'vitest' {
  interface ProvidedContext {
    /** Undefined in runs that are not about Ceph. */
    bucketUnderTest: BucketUnderTest | undefined;
  }
}

let instance: CephInstance | undefined;

export async function setup(project: TestProject): Promise<void> {
  const started = performance.now();
  instance = await CephInstance.start('memstore');
  const bucket = 'data';
  try {
    const store = await instance.store();
    await createBucket(store, bucket);
    const version = await instance.version();
    const guest = await instance.storeOfUser('guest');
    project.provide('bucketUnderTest', { ...store, bucket, guest, version });
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    process.stdout.write(`Ceph ${version} at ${store.endpoint}, after ${seconds} s\n`);
  } catch (error) {
    await instance.destroy();
    throw error;
  }
}

export async function teardown(): Promise<void> {
  await instance?.destroy();
}

async function createBucket(store: CephStore, bucket: string): Promise<void> {
  const { endpoint, region, ...credentials } = store;
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  client.destroy();
}
