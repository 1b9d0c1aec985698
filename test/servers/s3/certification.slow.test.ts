/** Stores that speak S3 and ignore a condition are refused; those that only fail, or have a dialect, are not. */
import { afterEach, describe, expect, it } from 'vitest';
import { realEnvironment, sleep } from '../../../src/base/env.ts';
import { StorageError, UnsafeStoreError } from '../../../src/base/errors.ts';
import { StoreDb } from '../../../src/index.ts';
import type { Database, StoreReport } from '../../../src/index.ts';
import { certifyStore } from '../../../src/storage/certify/certify.ts';
import type { S3Dialect } from '../s3-server/dialect.ts';
import type { S3Server } from '../s3-server/server.ts';
import { bucketName, driverOf, startStore } from './bucket.ts';

let server: S3Server | undefined;
afterEach(() => server?.close());

async function store(dialect: Partial<S3Dialect> = {}): Promise<S3Server> {
  server = await startStore({ dialect });
  return server;
}

function databaseOn(on: S3Server): Database {
  return StoreDb({ dbPrefix: 'shop', nodeId: 0, driver: driverOf(on), logLevel: 'silent' });
}

function statusOf({ checks }: StoreReport, name: string): string | undefined {
  return checks.find((check) => check.name === name)?.status;
}

function keysOf(on: S3Server): string[] {
  return [...on.objects(bucketName).keys()];
}

describe('a store that breaks a rule', () => {
  const unsafe: readonly (readonly [Partial<S3Dialect>, string, RegExp])[] = [
    [{ ignoreIfNoneMatch: true }, 'create-only put', /create-only put \(If-None-Match: \*\) replaced/],
    [{ ignoreIfMatch: true }, 'stale ETag', /older version \(If-Match\) replaced/],
    [{ ignoreIfMatchOnMissing: true }, 'missing key', /created an object where there was none/],
    [{ checkThenWriteMs: 5 }, 'race of creates', /at the same time/],
    [{ staleReadsMs: 1000 }, 'reads', /^A read/],
    [{ staleListsMs: 1000 }, 'lists', /^A list/],
  ];

  it.each(unsafe)('is refused, and nothing is created: %o', async (dialect, check, finding) => {
    const on = await store(dialect);
    const db = databaseOn(on);
    const error: unknown = await db.start().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnsafeStoreError);
    expect((error as UnsafeStoreError).problems).toEqual(
      expect.arrayContaining([expect.stringMatching(finding) as string]),
    );
    expect((error as UnsafeStoreError).message).toMatch(/none was created under shop\//);
    expect(keysOf(on)).toEqual([]);
    const report = await db.doctor();
    expect(report.safe).toBe(false);
    expect(statusOf(report, check)).toBe('failed');
    expect(report.database.status).toBe('none');
    expect(keysOf(on)).toEqual([]);
  });

  it.each([1, 5])('is found out every time if it checks and writes %d ms later', async (checkThenWriteMs) => {
    const on = await store({ checkThenWriteMs });
    for (let run = 1; run <= 20; run++) {
      const driver = driverOf(on);
      const { certification } = await certifyStore({ driver, prefix: `run-${run}`, environment: realEnvironment });
      expect(certification.safe, `run ${run}`).toBe(false);
      expect(certification.problems.join(' '), `run ${run}`).toMatch(/at the same time/);
      await driver.close();
    }
  });
});

describe('a store that keeps the rules', () => {
  const dialects: readonly Partial<S3Dialect>[] = [
    {},
    { bareEtags: true, missingIs412: true },
    { noChecksums: 400, noDeleteObjects: true },
    { tooManyPerKey: { intervalMs: 1000, status: 429 } },
    { tooManyPerKey: { intervalMs: 300, status: 503 } },
  ];

  it.each(dialects)('is certified, and its dialect learnt: %o', { timeout: 60_000 }, async (dialect) => {
    const on = await store(dialect);
    const db = databaseOn(on);
    await db.start();
    const report = await db.doctor();
    await db.stop();
    expect(report).toMatchObject({ safe: true, problems: [], database: { status: 'found', revision: 1 } });
    expect(report.dialect).toMatchObject({
      bucket: bucketName,
      'ETags in If-Match': dialect.bareEtags === true ? 'without quotes' : 'as given',
    });
    expect(statusOf(report, 'presigning')).toBe('ok');
    expect(keysOf(on).filter((key) => !key.startsWith('_storedb/'))).toEqual(['shop/block0']);
  });

  it('takes about a hundred requests for the first start, as the server counts them', async () => {
    const on = await store();
    const db = databaseOn(on);
    await db.start();
    // Some more where the machine is so busy that an answer is not waited for.
    expect(on.log.length).toBeLessThan(105);
    expect(on.log.filter(({ operation }) => operation === 'ListObjectsV2')).toHaveLength(4);
    await db.stop();
  });

  it('may answer most of a race with 409', async () => {
    const on = await store();
    const busy = new Set<string>();
    on.intercept = async ({ operation, key }) => {
      if (operation !== 'PutObject') return undefined;
      if (busy.has(key)) return { status: 409, code: 'ConditionalRequestConflict' };
      busy.add(key);
      await sleep(realEnvironment, 3);
      busy.delete(key);
      return undefined;
    };
    const driver = driverOf(on);
    const { certification } = await certifyStore({ driver, prefix: 'shop', environment: realEnvironment });
    expect(certification).toMatchObject({ safe: true, problems: [] });
    await driver.close();
  });

  it('may fail now and then, and lose answers', async () => {
    const on = await store();
    let count = 0;
    on.intercept = () => {
      count++;
      if (count % 17 === 0) return 'reset-after';
      if (count % 19 === 0) return 'reset';
      return count % 23 === 0 ? { status: 503, code: 'SlowDown' } : undefined;
    };
    for (let run = 1; run <= 5; run++) {
      const driver = driverOf(on);
      const { certification } = await certifyStore({ driver, prefix: 'shop', environment: realEnvironment });
      expect(certification.problems, `run ${run}`).toEqual([]);
      expect(certification.safe, `run ${run}`).toBe(true);
      await driver.close();
    }
  });

  it('may have another clock', async () => {
    const on = await store({ clockSkewMs: 120_000 });
    const report = await databaseOn(on).doctor();
    expect(report.safe).toBe(true);
    expect(statusOf(report, 'clock')).toBe('warning');
    expect(report.clockSkewMs).toBeGreaterThan(115_000);
    expect(report.clockSkewMs).toBeLessThan(121_000);
    expect(report.recommendations).toEqual([expect.stringContaining('clock')]);
  });
});

describe('permissions', () => {
  it('without s3:ListBucket no database is created, and the error names the permission to grant', async () => {
    const on = await store({ noListBucket: true });
    const db = databaseOn(on);
    const starting = db.start();
    await expect(starting).rejects.toBeInstanceOf(StorageError);
    await expect(starting).rejects.toMatchObject({ reason: 'forbidden' });
    await expect(starting).rejects.toThrow(/s3:ListBucket/);
    const report = await db.doctor();
    expect(report).toMatchObject({
      safe: false,
      problems: [],
      permissions: { read: 'ok', write: 'ok', list: 'forbidden' },
    });
    expect(report.database.status).toBe('unreadable');
    expect(report.recommendations.join(' ')).toContain('s3:ListBucket');
  });

  it('without s3:DeleteObject a database is created, and the probes stay', async () => {
    const on = await store({ noDelete: true });
    const db = databaseOn(on);
    await db.start();
    await db.stop();
    const keys = keysOf(on);
    expect(keys).toContain('shop/block0');
    expect(keys.filter((key) => key.startsWith('shop/probe/')).length).toBeGreaterThan(5);
    const report = await db.doctor();
    expect(report).toMatchObject({ safe: true, permissions: { delete: 'forbidden' } });
    expect(report.recommendations.join(' ')).toContain('s3:DeleteObject');
  });

  it('with wrong credentials, doctor() says so', async () => {
    const on = await store();
    process.env['AWS_SECRET_ACCESS_KEY'] = 'wrong';
    const report = await databaseOn(on).doctor();
    expect(report).toMatchObject({ safe: false, problems: [], permissions: { write: 'forbidden' } });
    expect(report.database.detail).toContain('does not accept the credentials');
  });
});

describe('out of reach', () => {
  it('doctor() reports a server that is not there', async () => {
    const on = await store();
    await on.close();
    const report = await databaseOn(on).doctor();
    expect(report).toMatchObject({ safe: false, problems: [], database: { status: 'unreadable' } });
    expect(report.database.detail).toContain('cannot be reached');
  });
});
