import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, it } from 'vitest';
import { FileDriver } from '../../../src/storage/index.ts';
import { driverConformance } from '../../../src/testing/index.ts';

const root = mkdtempSync(path.join(tmpdir(), 'store-db-conformance-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

for (const durability of ['fsync', 'none'] as const) {
  describe(`FileDriver, durability ${durability}`, () => {
    const options = { path: path.join(root, durability), durability };
    const tests = driverConformance({
      create: () => new FileDriver(options),
      createOther: () => new FileDriver(options),
    });
    for (const test of tests) it(test.name, test.run);
  });
}
