/** Azurite is tested at the first opening and found safe, also under races of conditional writes. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import { containerDriver } from './container.ts';

it('Azurite is safe for a database', async () => {
  const driver = containerDriver();
  const dbPrefix = randomUUID();
  const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel: 'silent' });
  await db.start();
  await db.stop();
  // Nothing is left of the probes.
  const { entries } = await driver.list(`${dbPrefix}/`);
  expect(entries.map(({ key }) => key)).toEqual([`${dbPrefix}/block0`]);
  expect(driver.describe()['server']).toMatch(/^Azurite-Blob/);
  expect(Math.abs((driver.storeTimeMs() ?? 0) - Date.now())).toBeLessThan(60_000);
  await driver.close();
});

it('db.doctor() reports it as safe, with nothing to be done', async () => {
  const db = StoreDb({ dbPrefix: randomUUID(), nodeId: 0, driver: containerDriver(), logLevel: 'silent' });
  const report = await db.doctor();
  expect(report).toMatchObject({
    safe: true,
    problems: [],
    permissions: { read: 'ok', write: 'ok', list: 'ok', delete: 'ok' },
    database: { status: 'none' },
  });
});
