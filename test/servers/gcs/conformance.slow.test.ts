/** The driver keeps its contract on the test server, also where the server differs within what Google documents. */
import { afterAll, beforeAll, describe, it } from 'vitest';
import { driverConformance } from '../../../src/testing/driver-conformance.ts';
import type { GcsDialect } from '../gcs-server/dialect.ts';
import { startGcsServer } from '../gcs-server/server.ts';
import type { GcsServer } from '../gcs-server/server.ts';
import { driverOf } from './bucket.ts';

const dialects: Readonly<Record<string, Partial<GcsDialect>>> = {
  'as Google has it': {},
  'with 404 where the object to replace is missing': { missingIs404: true },
  'that copies in several steps and tells no times of downloads': {
    rewrittenBytesPerCall: 100_000,
    noLastModified: true,
  },
};

describe.each(Object.entries(dialects))('a store %s', (_, dialect) => {
  let server: GcsServer;
  beforeAll(async () => {
    server = await startGcsServer({ dialect });
  });
  afterAll(() => server.close());

  // Names have no line breaks.
  const tests = driverConformance({
    create: () => driverOf(server),
    createOther: () => driverOf(server),
    supports: { oddKeys: false },
  });
  for (const test of tests) it(test.name, test.run);
});
