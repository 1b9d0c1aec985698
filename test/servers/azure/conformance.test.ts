/** The driver keeps its contract on Azurite. */
import { describe, it } from 'vitest';
import { driverConformance } from '../../../src/testing/driver-conformance.ts';
import { containerDriver } from './container.ts';

describe('AzureBlobDriver on Azurite', () => {
  const tests = driverConformance({
    create: () => containerDriver(),
    createOther: () => containerDriver(),
    // Azure takes `.` and `..` out of names, and lists in the order of UTF-16 code units.
    supports: { oddKeys: false, utf8Order: false },
  });
  for (const test of tests) it(test.name, test.run);
});
