/** The driver keeps its contract on stores of every dialect that is safe. */
import { afterAll, beforeAll, describe, it } from 'vitest';
import { driverConformance } from '../../../src/testing/driver-conformance.ts';
import type { S3Dialect } from '../s3-server/dialect.ts';
import type { S3Server } from '../s3-server/server.ts';
import { driverOf, ownClientDriver, startStore } from './bucket.ts';

const dialects: Readonly<Record<string, Partial<S3Dialect>>> = {
  'as Amazon has it': {},
  'with bare ETags': { bareEtags: true, missingIs412: true },
  'without additional checksums or multiple deletion': { noChecksums: 501, noDeleteObjects: true },
};

describe.each(Object.entries(dialects))('a store %s', (_, dialect) => {
  let server: S3Server;
  beforeAll(async () => {
    server = await startStore({ dialect });
  });
  afterAll(() => server.close());

  const tests = driverConformance({
    create: () => driverOf(server),
    createOther: () => driverOf(server),
    supports: { ownEtags: false },
  });
  for (const test of tests) it(test.name, test.run);
});

describe('with a client of the caller, as the SDK makes it', () => {
  let server: S3Server;
  beforeAll(async () => {
    server = await startStore();
  });
  afterAll(() => server.close());

  const tests = driverConformance({ create: () => ownClientDriver(server), supports: { ownEtags: false } });
  for (const test of tests) it(test.name, test.run);
});
