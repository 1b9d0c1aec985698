/** What Studio's page shows of the store, the instance and its bill, also of a database that is damaged or encrypted. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { addCities, city, requestsOf, Shown } from './shown.ts';
import type { Page } from './shown.ts';

let shown: Shown;
beforeEach(() => {
  shown = new Shown();
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

const everything = { table: 'cities', where: [], orderBy: [] };
const small = { blockSizeBytes: 2048 } as const;

it('adds up what lies in the store, and goes down a tree to its rows', async () => {
  const db = await shown.withCities(400, small);
  await db.checkpoint();
  await db.transaction((tx) => tx.delete('cities', 7));
  await db.checkpoint();
  const page = shown.page(db);
  const lines = await page.long('objects', {});
  expect(lines.filter((line) => 'progress' in line).length).toBeGreaterThan(0);
  const { groups, garbage, garbageError } = await page.result('objects', {});
  expect(groups.find(({ kind, table }) => kind === 'rows' && table === 'cities')?.objects).toBeGreaterThan(5);
  expect(groups.filter(({ kind }) => kind === 'index').map(({ index }) => index)).toContain('country');
  expect(garbage.find(({ kind }) => kind === 'block')?.objects).toBeGreaterThan(0);
  expect(garbageError).toBeUndefined();
  expect(await page.result('objects', { garbage: false })).toEqual({ groups, garbage: [] });

  let block = await page.call('block', { table: 'cities' });
  expect(block?.generation).toBe(db.stats().log?.generation);
  let depth = 1;
  while (block?.entries[0] !== undefined && 'child' in block.entries[0]) {
    const { name } = block.entries[0].child as { readonly name: string };
    block = await page.call('block', { table: 'cities', name });
    depth++;
  }
  expect(depth).toBeGreaterThan(1);
  expect(JSON.stringify(block?.entries[0])).toContain('City 00001');
  expect(await page.call('block', { table: 'cities', index: 'country' })).not.toBeNull();
  expect(await page.failure('block', { table: 'cities', index: 'nope' })).toMatchObject({ status: 400 });
  expect(await page.failure('block', { table: 'cities', name: '../../etc' })).toMatchObject({ status: 400 });
});

it('verifies, examines the store, and previews garbage before it collects it', async () => {
  const db = await shown.withCities(300, small);
  await db.checkpoint();
  await db.transaction((tx) => tx.delete('cities', 7));
  await db.checkpoint();
  const page = shown.page(db, { write: true });
  const checked = await page.result('verify', { deep: true });
  expect(checked).toMatchObject({ ok: true });
  expect(await page.result('doctor', {})).toHaveProperty('checks');
  const preview = await page.result('gc', {});
  expect(preview.garbage.length).toBeGreaterThan(0);
  expect(preview.garbage[0]?.reason).not.toBe('');
  expect(preview.deletedCount).toBe(0);
  const collected = await page.result('gc', { collect: true });
  expect(collected.deletedCount).toBe(preview.counts.block);
  expect((await page.result('gc', {})).counts.block).toBe(0);
});

it('shows the instance, indexes, migrations and the bill', async () => {
  const db = await shown.withCities(30, { writeForwardInterval: 7000, polling: 'interval' });
  await db.checkpoint();
  const wider = { typeId: Types.varchar };
  const stored = (await db.tables())[0] as Parameters<typeof db.registerSchema>[0];
  const { db: other } = await shown.open();
  other.registerSchema(stored);
  other.registerSchema({ ...stored, version: 2, fields: { ...stored.fields, mayor: wider } });
  await other.setTargetSchemaVersion('cities', 2);
  const page = shown.page(db);
  const health = await page.call('health', {});
  expect(health.health).toMatchObject({ status: 'ok', reasons: [] });
  expect(health.stats.log?.nodes).toContain(health.stats.log?.turnOf);
  expect(health.migrations).toMatchObject([{ table: 'cities', from: 1, to: 2 }]);
  expect(health.indexes).toMatchObject([{ table: 'cities' }]);
  expect(health.indexes[0]?.indexes.map(({ name, state }) => [name, state])).toContainEqual(['country', 'ready']);
  const bill = await page.call('bill', {});
  expect(bill).toMatchObject({ pollingMs: 7000, stats: { polling: { mode: 'interval', intervalMs: 7000 } } });
  expect(bill.stats.dollars).toBeGreaterThan(0);
  const { db: lazy } = await shown.open({ role: 'replica' });
  expect((await shown.page(lazy).call('bill', {})).pollingMs).toBeNull();
});

it('asks little of the store for the health of 300 tables', async () => {
  const { db } = await shown.open();
  const batch = db.batch();
  for (let i = 0; i < 300; i++) {
    const name = `t${i}`;
    db.registerSchema({ name, version: 1, primaryKey: 'id', fields: { id: { typeId: Types.uint32 } } });
    await batch.insert(name, { id: 1 });
  }
  await batch.flush();
  await db.checkpoint();
  const { db: replica, driver } = await shown.open({ role: 'replica' });
  const page = shown.page(replica);
  await page.call('overview', {});
  const before = requestsOf(driver);
  expect((await page.call('health', {})).indexes).toHaveLength(300);
  expect(requestsOf(driver) - before).toBeLessThan(16);
});

/** What a page asks of a database on which nothing is wrong. */
async function askAll(page: Page): Promise<void> {
  expect((await page.call('overview', {})).tables).toHaveLength(1);
  expect((await page.call('rows', { ...everything, size: 10 })).rows).toHaveLength(10);
  expect((await page.call('count', everything)).count).toBe(50);
  expect(await page.row('cities', 5)).toMatchObject({ name: 'City 00005' });
  expect((await page.call('commits', { limit: 5 })).commits).toHaveLength(1);
  expect((await page.call('commit', { position: 1 })).changes).toHaveLength(50);
  expect((await page.call('block', { table: 'cities' }))?.entries.length).toBeGreaterThan(0);
  expect((await page.result('objects', {})).groups.length).toBeGreaterThan(1);
  expect(await page.result('verify', {})).toMatchObject({ ok: true });
}

it('shows an encrypted and compressed database to whom has the keys', async () => {
  const encryption = { keys: { k: Uint8Array.from({ length: 32 }, (_, i) => i) }, current: 'k' };
  const options = { encryption, compression: 'deflate' } as const;
  await shown.withCities(50, options).then((db) => db.checkpoint());
  const { db } = await shown.open({ ...options, role: 'replica' });
  await askAll(shown.page(db));
  await expect(shown.open({ role: 'replica' })).rejects.toMatchObject({ code: 'ENCRYPTION_KEY' });
});

it('stays up when a block is damaged: the calls that need it give its error', async () => {
  const writer = await shown.withCities(400, small);
  await writer.checkpoint();
  const { entries } = await shown.memory.list('shop/data/cities/', {});
  const largest = entries.toSorted((a, b) => b.sizeBytes - a.sizeBytes)[0]?.key ?? '';
  const found = await shown.memory.get(largest, {});
  const bytes = found.status === 'found' ? Uint8Array.from(found.bytes) : new Uint8Array();
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 0xff;
  await shown.memory.put(largest, bytes, { if: 'any' });
  const { db } = await shown.open({ role: 'replica' });
  const page = shown.page(db);
  expect((await page.call('overview', {})).tables).toHaveLength(1);
  const query = { ...everything, where: [{ field: 'area', operator: '>', value: -1 } as const] };
  const failure = await page.failure('query', query);
  expect(failure).toMatchObject({ status: 500, code: 'CORRUPTION' });
  expect(failure.message).toContain(largest.slice('shop/'.length));
  expect((await page.fetch('/api/export?format=csv&asked=' + encodeURIComponent(JSON.stringify(query)))).status).toBe(
    500,
  );
  const report = await page.result('verify', {});
  expect(report.ok).toBe(false);
  const { groups } = await page.result('objects', {});
  expect(groups.length).toBeGreaterThan(2);
  expect((await page.call('commits', { limit: 5 })).commits).toHaveLength(1);
});

it('shows a table with an index on a function that nobody has registered here', async () => {
  const { db: owner } = await shown.open();
  owner.registerFunction('initial', (row) => String(row['name']).slice(0, 1), 1);
  const fields = { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } };
  const indexes = [{ function: 'initial', typeId: Types.varchar }];
  owner.registerSchema({ name: 'people', version: 1, primaryKey: 'id', fields, indexes });
  await owner.transaction((tx) => tx.insert('people', { id: 1, name: 'Ada' }));
  await owner.checkpoint();
  const { db } = await shown.open();
  const page = shown.page(db, { write: true });
  const { tables } = await page.call('overview', {});
  expect(tables[0]?.indexes).toEqual([
    { name: 'initial', fields: [], function: 'initial', unique: false, isPartial: false },
  ]);
  const before = await page.row('people', 1);
  const saved = await page.call('save', { table: 'people', before, after: { ...before, name: 'Bob' } });
  expect(saved).toMatchObject({ status: 'saved' });
  expect((await page.call('rows', { table: 'people', where: [], orderBy: [], size: 5 })).rows).toEqual([[1, 'Bob']]);
  const { indexes: states } = await page.call('health', {});
  expect(states[0]?.indexes[0]).toMatchObject({ name: 'initial', function: 'initial' });
});

it('follows while another process writes', async () => {
  const writer = await shown.withCities(10);
  const { db } = await shown.open({ role: 'replica', writeForwardInterval: 10 });
  const page = shown.page(db);
  let rows = 10;
  for (let round = 0; round < 5; round++) {
    await addCities(writer, rows + 1, rows + 11);
    rows += 10;
    await expect.poll(async () => (await page.call('count', everything)).count).toBe(rows);
    expect(await page.row('cities', rows)).toMatchObject({ id: rows, name: city(rows)['name'] });
  }
  await writer.checkpoint();
  expect((await page.call('rows', { ...everything, size: 100 })).rows).toHaveLength(rows);
});

it('says that the database was stopped', async () => {
  const db = StoreDb({ dbPrefix: 'stopped', nodeId: 0, driver: shown.memory, logLevel: 'silent' });
  const page = shown.page(db);
  expect(await page.failure('overview', {})).toMatchObject({ status: 503, code: 'NOT_STARTED' });
});
