/** Shows, in a process of its own, that everything is in the folder, and checks all that is stored. */
import type { Database } from 'store-db';
import { cities, describeCity } from './cities.ts';
import { deletedId, renamed } from './queries.ts';
import { formatCount, measure, printSteps } from './report.ts';

export async function showStored(db: Database, expectedRows: number): Promise<void> {
  const opened = await measure(db, () => db.start());
  const middle = Math.ceil(expectedRows / 2);
  const first = await measure(db, () => db.get(cities, middle));
  const changed = await measure(db, () => db.get(cities, renamed.id));
  const deleted = await measure(db, () => db.get(cities, deletedId));
  const count = await measure(db, () => db.query(cities).count());
  const french = await measure(db, () => db.query(cities).where('country', '=', 'FR').count());
  const verified = await measure(db, () => db.verify());
  const { ok, findings, tables } = verified.value;
  const [table] = tables;
  printSteps([
    ['start()', 'opened', opened],
    [`get(cities, ${middle})`, describeCity(first.value), first],
    [`get(cities, ${renamed.id}), which was updated`, describeCity(changed.value), changed],
    [`get(cities, ${deletedId}), which was deleted`, describeCity(deleted.value), deleted],
    ['count()', formatCount(count.value), count],
    ["where country = 'FR', count()", formatCount(french.value), french],
    ['verify()', ok ? `all of ${table?.blocks ?? 0} blocks are sound` : `${findings.length} findings`, verified],
  ]);
  const asExpected =
    ok &&
    first.value !== undefined &&
    changed.value?.name === renamed.name &&
    deleted.value === undefined &&
    count.value === expectedRows;
  if (!asExpected) throw new Error('What was read back is not what was written.');
}
