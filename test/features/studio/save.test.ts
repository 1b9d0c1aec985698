/** Rows that Studio's page changes. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import type { Row } from '../../../src/studio/messages.ts';
import { city, Shown } from './shown.ts';

let shown: Shown;
beforeEach(() => {
  shown = new Shown();
});
afterEach(async () => {
  await shown[Symbol.asyncDispose]();
});

it('changes a row, and returns what is stored', async () => {
  const db = await shown.withCities(3);
  const page = shown.page(db, { write: true });
  expect(await page.call('overview', {})).toMatchObject({ writable: true });
  const before = (await page.row('cities', 2)) as Row;
  const after = {
    ...before,
    name: 'Turku',
    population: '1152921504606846976',
    area: '-Infinity',
    founded: '1229-01-01T00:00:00Z',
    tags: { a: [1] },
    hash: '/w==',
    country: null,
  };
  const saved = await page.call('save', { table: 'cities', before, after });
  expect(saved).toEqual({
    status: 'saved',
    row: { ...after, founded: '1229-01-01T00:00:00.000Z' },
    position: db.position,
  });
  expect(await db.get('cities', 2)).toMatchObject({ name: 'Turku', population: 2n ** 60n, area: -Infinity });
});

it('leaves blobs as they are', async () => {
  const db = await shown.withCities(0);
  const batch = db.batch();
  await batch.insert('cities', { ...city(1), coat: db.Blob('arms') });
  await batch.flush();
  const page = shown.page(db, { write: true });
  const before = (await page.row('cities', 1)) as Row;
  const after = { ...before, name: 'Other', coat: null };
  expect(await page.call('save', { table: 'cities', before, after })).toMatchObject({
    row: { name: 'Other', coat: before['coat'] },
  });
});

it('inserts a row with the defaults of the schema, and deletes it', async () => {
  const page = shown.page(await shown.withCities(1), { write: true });
  const saved = await page.call('save', { table: 'cities', before: null, after: { id: 9, name: 'New' } });
  expect(saved).toMatchObject({ status: 'saved', row: { id: 9, name: 'New', capital: false, country: null } });
  const row = (saved as { readonly row: Row }).row;
  expect(String(row['uid'])).toMatch(/^[0-9a-f-]{36}$/);
  expect(await page.call('save', { table: 'cities', before: row, after: null })).toMatchObject({
    status: 'saved',
    row: null,
  });
  expect(await page.row('cities', 9)).toBeNull();
});

it('writes nothing if somebody else has changed the row meanwhile, and shows what is stored', async () => {
  await shown.withCities(3);
  const { db } = await shown.open();
  const page = shown.page(db, { write: true });
  const before = (await page.row('cities', 2)) as Row;
  const { db: other } = await shown.open();
  for (const table of await other.tables()) other.registerSchema(table);
  await other.transaction((tx) => tx.update('cities', { id: 2, name: 'Theirs' }));
  const position = db.position;
  const conflict = await page.call('save', { table: 'cities', before, after: { ...before, name: 'Mine' } });
  expect(conflict).toEqual({ status: 'conflict', stored: { ...before, name: 'Theirs' } });
  expect(db.position).toBeGreaterThan(position);
  expect(await other.get('cities', 2)).toMatchObject({ name: 'Theirs' });
  // The row is there already, is gone, or was shown without a field.
  const taken = await page.call('save', { table: 'cities', before: null, after: { id: 2, name: 'Mine' } });
  expect(taken).toMatchObject({ status: 'conflict', stored: { name: 'Theirs' } });
  await other.transaction((tx) => tx.delete('cities', 3));
  const gone = { ...before, id: 3 };
  expect(await page.call('save', { table: 'cities', before: gone, after: null })).toEqual({
    status: 'conflict',
    stored: null,
  });
  const { name: _, ...part } = { ...before, name: 'Theirs' };
  expect(await page.call('save', { table: 'cities', before: part, after: null })).toMatchObject({ status: 'conflict' });
});

it('takes JSON for the same if only the order of its properties differs', async () => {
  const page = shown.page(await shown.withCities(1), { write: true });
  const row = (await page.row('cities', 1)) as Row;
  const before = { ...row, tags: { nested: { ok: true }, ids: [1] } };
  expect(await page.call('save', { table: 'cities', before, after: { ...before, name: 'A' } })).toMatchObject({
    status: 'saved',
  });
  const other = { ...row, name: 'A', tags: { ids: [2], nested: { ok: true } } };
  expect(await page.call('save', { table: 'cities', before: other, after: null })).toMatchObject({
    status: 'conflict',
  });
});

it('writes nothing unless it was opened for writing', async () => {
  const writer = await shown.withCities(2);
  const { db: replica } = await shown.open({ role: 'replica' });
  const pages = [shown.page(writer), shown.page(writer, { write: false }), shown.page(replica, { write: true })];
  const position = writer.position;
  for (const page of pages) {
    expect((await page.call('overview', {})).writable).toBe(false);
    const before = await page.row('cities', 1);
    for (const asked of [
      { table: 'cities', before, after: { ...before, name: 'X' } },
      { table: 'cities', before, after: null },
      { table: 'cities', before: null, after: { id: 77, name: 'X' } },
      { table: 'cities', before: null, after: { id: 77, name: 'X' }, write: true, writable: true },
    ]) {
      expect(await page.failure('save', asked)).toMatchObject({ status: 403, code: 'READ_ONLY' });
    }
    expect(await page.failure('drop', { table: 'cities', typed: 'cities' })).toMatchObject({ code: 'READ_ONLY' });
    expect((await page.long('gc', { collect: true })).at(-1)).toMatchObject({ error: { code: 'READ_ONLY' } });
  }
  await writer.refresh();
  expect(writer.position).toBe(position);
});

it('drops a table only if its name was typed', async () => {
  const db = await shown.withCities(2);
  const page = shown.page(db, { write: true });
  for (const typed of ['', 'citie', 'Cities', 7, undefined]) {
    expect(await page.failure('drop', { table: 'cities', typed })).toMatchObject({ status: 400 });
  }
  expect(await db.query('cities').count()).toBe(2);
  expect(await page.call('drop', { table: 'cities', typed: 'cities' })).toEqual({ position: db.position });
  expect(await db.dropTable('cities', { ifExists: true })).toBe(false);
  const again = { table: 'cities', typed: 'cities' };
  expect((await page.failure('drop', again)).message).toMatch(/no table 'cities'/);
});

it('says what is wrong with a row', async () => {
  const page = shown.page(await shown.withCities(2), { write: true });
  const before = await page.row('cities', 1);
  const failures: readonly (readonly [asked: object, message: RegExp])[] = [
    [{ before, after: { ...before, id: 5 } }, /primary key of a row does not change/],
    [{ before, after: { ...before, nope: 1 } }, /no field nope/],
    [{ before, after: { ...before, population: 'many' } }, /Field population of table cities/],
    [{ before, after: { ...before, name: null } }, /name/],
    [{ before, after: { ...before, country: 'XX' } }, /country/],
    [{ before: null, after: null }, /nothing to save/],
    [{ before: [], after: null }, /`before` is/],
    [{ after: {} }, /`before`/],
  ];
  for (const [asked, message] of failures) {
    const failure = await page.failure('save', { table: 'cities', ...asked });
    expect(failure.message).toMatch(message);
    expect(failure.status).toBe(400);
  }
});

it('registers a table without its indexes, so that it adds none that others drop', async () => {
  const writer = await shown.withCities(5);
  await writer.checkpoint();
  const { db } = await shown.open();
  const page = shown.page(db, { write: true });
  await page.call('overview', {});
  expect((await db.indexes('cities')).map(({ state, declared }) => [state, declared])).toEqual([
    ['ready', false],
    ['ready', false],
  ]);
  await writer.stop();
  // An application of which the definition has lost the index.
  const owner = StoreDb({ dbPrefix: 'shop', nodeId: 9, driver: shown.memory, logLevel: 'silent' });
  await owner.start();
  await owner.dropIndex('cities', 'country');
  const row = (await page.row('cities', 1)) as Row;
  await page.call('save', { table: 'cities', before: row, after: { ...row, name: 'X' } });
  await db.checkpoint();
  expect((await owner.indexes('cities')).map(({ name }) => name)).toEqual(['country,population']);
  await owner.stop();
});
