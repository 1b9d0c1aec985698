/** What Studio's page shows of the past: commits, moments, and what differs between them. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { addCities, Shown } from './shown.ts';

let shown: Shown;
beforeEach(() => {
  shown = new Shown();
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

const everything = { table: 'cities', where: [], orderBy: [] };

it('lists commits page by page, and shows what each has changed, with the rows before', async () => {
  const db = await shown.withCities(2);
  await db.transaction((tx) => tx.update('cities', { id: 1, name: 'Second' }));
  await db.transaction(async (tx) => {
    await tx.update('cities', { id: 1, name: 'Third' });
    await tx.delete('cities', 2);
  });
  await db.transaction((tx) => tx.insert('cities', { id: 2, name: 'Again' }));
  const page = shown.page(db);
  const { commits } = await page.call('commits', { limit: 10 });
  expect(commits.map(({ position, rows }) => [position, rows['cities']])).toEqual([
    [4, 1],
    [3, 2],
    [2, 1],
    [1, 2],
  ]);
  expect((await page.call('commits', { limit: 1, before: 3 })).commits.map(({ position }) => position)).toEqual([2]);
  const { changes, isCut } = await page.call('commit', { position: 3 });
  expect(isCut).toBe(false);
  expect(changes).toMatchObject([
    { table: 'cities', operation: 'upsert', key: [1], row: { name: 'Third' }, before: { name: 'Second' } },
    { table: 'cities', operation: 'delete', key: [2], before: { name: 'City 00002', hash: 'AgEC' } },
  ]);
  const again = await page.call('commit', { position: 4 });
  expect(again.changes).toMatchObject([{ operation: 'upsert', key: [2], row: { name: 'Again' }, before: null }]);
  const first = await page.call('commit', { position: 1 });
  expect(first.changes.map(({ before }) => before)).toEqual([null, null]);
  // The state before is kept no longer: the log has the rows of its commits, and nothing of before the first one.
  await db.checkpoint();
  expect((await page.call('commit', { position: 3 })).changes).toEqual(changes);
  const merged = await page.call('commit', { position: 1 });
  expect(merged.changes.map((change) => 'before' in change)).toEqual([false, false]);
  expect(await page.failure('commit', { position: 9 })).toMatchObject({ status: 400 });
});

it('cuts the changes of a large commit', async () => {
  const page = shown.page(await shown.withCities(1500));
  const { changes, isCut } = await page.call('commit', { position: 1 });
  expect([changes.length, isCut]).toEqual([1000, true]);
});

it('shows a table as it was, with one snapshot for all calls about a moment', async () => {
  const db = await shown.withCities(3, { history: '1h' });
  await db.checkpoint();
  const generation = db.stats().log?.generation ?? 0;
  const held = await db.snapshot();
  await db.transaction((tx) => tx.delete('cities', 2));
  await db.checkpoint();
  const page = shown.page(db);
  expect((await page.call('rows', { ...everything, size: 10 })).rows).toHaveLength(2);
  const moments = await page.call('moments', {});
  expect(moments.generation).toBeGreaterThan(generation);
  expect(moments.snapshots.map(({ id }) => id)).toEqual([held.id]);
  for (const at of [{ generation }, { snapshot: held.id }, { time: new Date().toISOString() }]) {
    const rows = 'time' in at ? 2 : 3;
    const asked = { ...everything, at };
    const shownPage = await page.call('rows', { ...asked, size: 10 });
    expect(shownPage.rows, JSON.stringify(at)).toHaveLength(rows);
    expect(shownPage.position).toBeUndefined();
    expect((await page.call('count', asked)).count).toBe(rows);
    expect((await page.call('row', { table: 'cities', key: [2], at })).row === null).toBe(rows === 2);
    const counted = { ...asked, aggregates: [{ name: 'n', kind: 'count' } as const] };
    expect((await page.call('query', counted)).rows).toEqual([[rows]]);
  }
  // One for the moment by its generation, which the snapshot has as well, and one by its time.
  expect(await db.snapshots()).toHaveLength(3);
  await page.studio.close();
  expect((await db.snapshots()).map(({ id }) => id)).toEqual([held.id]);
  expect(await page.failure('rows', {})).toMatchObject({ status: 503 });
});

it('says that a moment is not kept', async () => {
  const page = shown.page(await shown.withCities(3));
  const failed = (at: object): Promise<unknown> => page.failure('rows', { ...everything, size: 10, at });
  expect(await failed({ time: '1999-01-01T00:00:00Z' })).toMatchObject({ status: 410, code: 'SNAPSHOT_EXPIRED' });
  expect(await failed({ snapshot: '1-none' })).toMatchObject({ status: 400 });
  expect(await failed({ time: 'yesterday' })).toMatchObject({ status: 400 });
  expect(await failed({})).toMatchObject({ status: 400 });
});

it('compares two moments row by row', async () => {
  const db = await shown.withCities(60, { history: '1h' });
  await db.checkpoint();
  const from = { generation: db.stats().log?.generation ?? 0 };
  await db.transaction(async (tx) => {
    await tx.delete('cities', 20);
    await tx.update('cities', { id: 30, name: 'Changed' });
  });
  await addCities(db, 61, 62);
  const page = shown.page(db);
  const asked = { table: 'cities', from, limit: 100 };
  const compared = await page.result('compare', asked);
  expect(compared).toMatchObject({
    isCut: false,
    rowsRead: 120,
    differences: [
      { key: [20], from: { name: 'City 00020' }, to: null },
      { key: [30], from: { name: 'City 00030' }, to: { name: 'Changed' } },
      { key: [61], from: null, to: { name: 'City 00061' } },
    ],
  });
  expect(await page.result('compare', { ...asked, limit: 1 })).toMatchObject({
    isCut: true,
    differences: [{ key: [20] }],
  });
  await db.checkpoint();
  const to = { generation: db.stats().log?.generation ?? 0 };
  expect((await page.result('compare', { ...asked, to })).differences).toHaveLength(3);
  expect((await page.result('compare', { ...asked, from: to, to })).differences).toEqual([]);
  expect((await page.long('compare', { table: 'cities', limit: 1 } as never)).at(-1)).toMatchObject({
    error: { code: 'INVALID_OPTION' },
  });
});
