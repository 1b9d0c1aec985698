/** The requests of a list by an index with included fields on a cold store, for small and large tables. */
import { expect, it } from 'vitest';
import type { Database } from '../../../src/api/database.ts';
import { StoreDb } from '../../../src/index.ts';
import { Types } from '../../../src/format/types.ts';
import { defineSchema } from '../../../src/schema/define-schema.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';

const goods = defineSchema({
  name: 'goods',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    country: { typeId: Types.varchar },
    name: { typeId: Types.varchar },
    price: { typeId: Types.float64 },
    notes: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: [{ fields: ['country'], include: ['name', 'price'] }],
});

it.each([3000, 300_000])('takes two requests at most in a table of %d rows', { timeout: 120_000 }, async (count) => {
  const driver = new MemoryDriver();
  const open = async (nodeId: number): Promise<Database> => {
    const db = StoreDb({ driver, dbPrefix: 'cold', nodeId, logLevel: 'error' });
    db.registerSchema(goods);
    await db.start();
    return db;
  };
  const db = await open(1);
  // 150 rows of a country, that lie far apart.
  const countryOf = (id: number): string => `c${(id * 7919) % (count / 150)}`;
  const rows = Array.from({ length: count }, (_, id) => {
    return { id, country: countryOf(id), name: `name of ${id}`, price: id % 1000, notes: `${id} `.repeat(20) };
  });
  await db.load(goods, rows);
  await db.checkpoint();
  await db.stop();

  let gets = 0;
  const get = driver.get.bind(driver);
  driver.get = (key, options) => {
    gets++;
    return get(key, options);
  };
  const cold = async (ask: (other: Database) => Promise<unknown>): Promise<number> => {
    const other = await open(2);
    gets = 0;
    await ask(other);
    const made = gets;
    await other.stop();
    return made;
  };
  const inCountry = (other: Database) => other.query(goods).where('country', '=', 'c7').select('id', 'name', 'price');
  expect(await cold(async (other) => expect(await inCountry(other).execute()).toHaveLength(150))).toBeLessThanOrEqual(
    2,
  );
  expect(await cold(async (other) => inCountry(other).page({ size: 20 }))).toBeLessThanOrEqual(2);
  const whole = await cold(async (other) => other.query(goods).where('country', '=', 'c7').execute());
  expect(whole).toBeGreaterThan(count === 3000 ? 5 : 140);
});
