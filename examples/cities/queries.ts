/** What the demo asks of the loaded table, and the changes that it makes to it. */
import type { Database } from 'store-db';
import { cities, describeCity } from './cities.ts';
import { formatCount, measure, printRows, printSteps } from './report.ts';

export async function readByKey(db: Database, total: number): Promise<void> {
  const one = await measure(db, () => db.get(cities, 1));
  const reads = 10_000;
  const many = await measure(db, async () => {
    let found = 0;
    for (let i = 0; i < reads; i++) {
      const id = 1 + ((i * 7919) % total);
      if ((await db.get(cities, id)) !== undefined) found++;
    }
    return found;
  });
  printSteps([
    ['get(cities, 1)', describeCity(one.value), one],
    [`get() of ${formatCount(reads)} rows here and there`, `${formatCount(many.value)} found`, many],
  ]);
}

export async function runQueries(db: Database): Promise<void> {
  const french = await measure(db, () => db.query(cities).where('country', '=', 'FR').limit(5).execute());
  printRows("where country = 'FR', limit 5: by the index on country", french);

  const count = await measure(db, () => db.query(cities).where('country', '=', 'FR').count());
  printSteps([["where country = 'FR', count()", formatCount(count.value), count]]);

  const southern = await measure(db, () => {
    return db.query(cities).where('lat', '<', -54.5).select('id', 'name', 'country', 'lat', 'lng').execute();
  });
  printRows('where lat < -54.5, selected fields: by the index on lat', southern);

  const thirdPage = await measure(db, () => {
    return db.query(cities).where('country', '=', 'IS').orderBy('name').offset(10).limit(5).execute();
  });
  printRows("where country = 'IS', orderBy name, offset 10, limit 5: the third page of Iceland", thirdPage);

  db.registerFunction('hemisphere', (row) => ((row['lat'] as number) < 0 ? 'south' : 'north'));
  const northern = await measure(db, () => {
    return db.query(cities).where('country', '=', 'EC').where('hemisphere', '=', 'north').limit(5).execute();
  });
  printRows("where country = 'EC' and hemisphere = 'north', limit 5: with a registered function", northern);
}

/** Shows a batch's writes in a query before they are flushed. The batch is dropped: nothing of it is stored. */
export async function showOverlay(db: Database): Promise<void> {
  const batch = db.batch();
  await batch.insert(cities, { id: 4_000_000_000, name: 'Atlantis', country: 'XX', lat: 31.25, lng: -24.25 });
  const stored = await measure(db, () => db.query(cities).where('country', '=', 'XX').execute());
  printRows("where country = 'XX'", stored);
  const overlaid = await measure(db, () => db.query(cities).where('country', '=', 'XX').overlay(batch).execute());
  printRows("where country = 'XX', overlay(batch): the batch has an insert and was not flushed", overlaid);
  batch.clear();
}

export const renamed = { id: 1, name: 'Vila (renamed)' };
export const deletedId = 2;

/** One batch with an update and a delete: both are applied, or neither is. */
export async function changeRows(db: Database): Promise<void> {
  const flushed = await measure(db, async () => {
    const batch = db.batch();
    await batch.update(cities, renamed);
    await batch.delete(cities, deletedId);
    await batch.flush();
  });
  const rows = await measure(db, () => db.query(cities).where('id', '<=', 3).execute());
  const merged = await measure(db, () => db.checkpoint());
  printSteps([
    ['update one row, delete another, flush()', 'durable', flushed],
    ['checkpoint()', 'merged', merged],
  ]);
  printRows(`where id <= 3, after the flush: row ${renamed.id} has a new name, row ${deletedId} is gone`, rows);
}
