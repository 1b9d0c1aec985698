/** Ceph is tried out at the first opening, found safe, and its dialect is learnt. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { bucketDriver, majorVersion } from './bucket.ts';

// Ceph 18 compares what stands between the quotes, quotes included.
const etags = majorVersion() <= 18 ? 'without quotes' : 'as given';

it('Ceph is safe for a database', async () => {
  const driver = bucketDriver();
  const dbPrefix = randomUUID();
  const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel: 'silent' });
  await db.start();
  await db.stop();
  // Nothing is left of the probes.
  const { entries } = await driver.list(`${dbPrefix}/`);
  expect(entries.map(({ key }) => key)).toEqual([`${dbPrefix}/block0`]);
  expect(driver.describe()).toMatchObject({ 'ETags in If-Match': etags });
});

it('db.doctor() reports it as safe, with nothing to be done', async () => {
  const db = StoreDb({ dbPrefix: randomUUID(), nodeId: 0, driver: bucketDriver(), logLevel: 'silent' });
  const report = await db.doctor();
  expect(report.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
  expect(report).toMatchObject({
    safe: true,
    problems: [],
    recommendations: [],
    permissions: { read: 'ok', write: 'ok', list: 'ok', delete: 'ok' },
    database: { status: 'none' },
    dialect: { 'ETags in If-Match': etags },
  });
});
