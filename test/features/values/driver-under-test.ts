/**
 * The stores that tests through the public API are run on: memory and a folder, or, in a run that is about one, a bucket
 * (docs/testing.md).
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, inject } from 'vitest';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { bucketDriver } from '../../servers/ceph/bucket.ts';
import { WithinPrefix } from '../../servers/ceph/within-prefix.ts';

type NamedDriver = readonly [name: string, make: () => StorageDriver];

const folders: string[] = [];

afterAll(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A folder of the test's own, which is gone after the file. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'storedb-test-'));
  folders.push(folder);
  return folder;
}

/** Each makes drivers with a store of their own, which is empty. */
export const localDrivers: readonly NamedDriver[] = [
  ['MemoryDriver', () => new MemoryDriver()],
  ['FileDriver', () => new FileDriver(newFolder())],
];

const inBucket: NamedDriver = ['ObjectStoreDriver', () => new WithinPrefix(bucketDriver(), `${randomUUID()}/`)];

export const driversUnderTest: readonly NamedDriver[] =
  inject('bucketUnderTest') === undefined ? localDrivers : [inBucket];

/** A driver with an empty store, for tests that run on one of them. */
export function newDriver(): StorageDriver {
  return (driversUnderTest[0] as NamedDriver)[1]();
}
