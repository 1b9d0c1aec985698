/** A bucket of the test server is certified, and one that ignores a condition is refused. */
import { afterEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import { UnsafeStoreError } from '../../../src/base/errors.ts';
import { StoreDb } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { certifyStore } from '../../../src/storage/certify/certify.ts';
import type { GcsDialect } from '../gcs-server/dialect.ts';
import { startGcsServer } from '../gcs-server/server.ts';
import type { GcsServer } from '../gcs-server/server.ts';
import { driverOf } from './bucket.ts';

let server: GcsServer | undefined;
afterEach(() => server?.close());

async function store(dialect: Partial<GcsDialect> = {}): Promise<GcsServer> {
  server = await startGcsServer({ dialect });
  return server;
}

function databaseOn(on: GcsServer): Database {
  return StoreDb({ dbPrefix: 'shop', nodeId: 0, driver: driverOf(on), logLevel: 'silent' });
}

describe('a store that keeps the rules', () => {
  const dialects: readonly Partial<GcsDialect>[] = [
    {},
    { missingIs404: true },
    // Google allows one write of an object per second.
    { writeIntervalMs: 1000 },
    { clockSkewMs: 2000, noLastModified: true },
  ];

  it.each(dialects)('is certified: %o', { timeout: 60_000 }, async (dialect) => {
    const on = await store(dialect);
    const db = databaseOn(on);
    await db.start();
    const report = await db.doctor();
    await db.stop();
    expect(report).toMatchObject({ safe: true, problems: [], database: { status: 'found', revision: 1 } });
    expect(report.dialect).toMatchObject({ bucket: on.bucket.name, ETags: 'generations' });
    expect(report.checks.find(({ name }) => name === 'presigning')?.status).toBe('ok');
    expect([...on.objects.keys()].filter((key) => !key.startsWith('_storedb/'))).toEqual(['shop/block0']);
  });

  it('may fail now and then, and lose answers', async () => {
    const on = await store();
    let count = 0;
    on.intercept = () => {
      count++;
      if (count % 17 === 0) return 'reset-after';
      if (count % 19 === 0) return 'reset';
      return count % 23 === 0 ? { status: 503 } : undefined;
    };
    for (let run = 1; run <= 3; run++) {
      const driver = driverOf(on);
      const { certification } = await certifyStore({ driver, prefix: 'shop', environment: realEnvironment });
      expect(certification, `run ${run}`).toMatchObject({ problems: [], safe: true });
      await driver.close();
    }
  });
});

describe('a store that breaks a rule', () => {
  it.each<[Partial<GcsDialect>, RegExp]>([
    [{ ignoreConditions: true }, /create-only put/],
    [{ checkThenWriteMs: 5 }, /at the same time/],
  ])('is refused, and nothing is created: %o', async (dialect, finding) => {
    const on = await store(dialect);
    const error: unknown = await databaseOn(on)
      .start()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnsafeStoreError);
    expect((error as UnsafeStoreError).problems.join(' ')).toMatch(finding);
    expect(on.objects.size).toBe(0);
  });
});

describe('permissions', () => {
  it('without storage.objects.list no database is created, and the error names the role', async () => {
    const on = await store({ noList: true });
    const starting = databaseOn(on).start();
    await expect(starting).rejects.toMatchObject({ code: 'STORAGE', reason: 'forbidden' });
    await expect(starting).rejects.toThrow(/storage\.objects\.list/);
  });
});
