/** The driver keeps its contract on Ceph. */
import { describe, it } from 'vitest';
import { driverConformance } from '../../../src/testing/driver-conformance.ts';
import { bucketDriver } from './bucket.ts';

describe('ObjectStoreDriver on Ceph', () => {
  const tests = driverConformance({
    create: () => bucketDriver(),
    createOther: () => bucketDriver(),
    // Ceph refuses keys with a NUL. The database makes none.
    supports: { ownEtags: false, oddKeys: false },
  });
  for (const test of tests) it(test.name, test.run);
});
