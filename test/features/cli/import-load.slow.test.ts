/** An import of many rows that are only inserted is one commit: atomic, and with the same messages as an import in batches. */
import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { defineSchema, StoreDb, Types } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import { Database } from '../../../src/api/database.ts';
import { jsonLines, run, TestFolder } from './shell.ts';
import type { Ran, RunOptions } from './shell.ts';

/** More than a batch of an import has. */
const count = 12_000;
let folder: TestFolder;

beforeEach(async () => {
  folder = await TestFolder.make();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await folder[Symbol.asyncDispose]();
});

const schema = {
  name: 't',
  version: 1,
  fields: { id: 'uint32', name: 'varchar' },
  primaryKey: 'id',
  indexes: [{ fields: ['name'], unique: true }],
};
const table = defineSchema({
  name: 't',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: [{ fields: ['name'], unique: true }],
});
/** Line `i + 2` has row `i`. */
const text = ['id,name', ...Array.from({ length: count }, (_, i) => `${i},name ${i}`), ''].join('\n');

async function load(made: object, options: readonly string[] = [], running?: RunOptions): Promise<Ran> {
  await writeFile(folder.file('t.json'), JSON.stringify(made));
  await writeFile(folder.file('t.csv'), text);
  const words = ['import', folder.url('main'), 't', folder.file('t.csv'), '--schema', folder.file('t.json')];
  return run([...words, ...options], running);
}

async function ids(): Promise<number[]> {
  const { output } = await run(['query', folder.url('main'), 't', '--fields', 'id', '--limit', '20000', '--json']);
  return jsonLines(output).map((row) => (row as { id: number }).id);
}

/** What an import prints at its end. */
function imported(rows: number): string {
  return `${rows.toLocaleString('en-US')} rows imported into t.\n`;
}

/** Calls a function before the row with a number is taken by a load; 0: before the load begins. */
function beforeRow(number: number, act: () => void | Promise<void>): { readonly loads: number } {
  const seen = { loads: 0 };
  const original = Reflect.get(Database.prototype, 'load') as (...words: unknown[]) => Promise<{ rows: number }>;
  vi.spyOn(Database.prototype, 'load').mockImplementation(async function (this: Database, name, source, options) {
    seen.loads++;
    if (number === 0) await act();
    const rows = source as AsyncIterable<unknown> & AsyncIterator<unknown>;
    let taken = 0;
    const next = (): unknown => {
      if (++taken === number) void act();
      return rows.next();
    };
    return original.call(
      this,
      name,
      { [Symbol.asyncIterator]: () => ({ next, return: () => rows.return?.() }) },
      options,
    );
  });
  return seen;
}

/** Calls a function with the database that the commands open. */
async function inDatabase(use: (db: Database) => Promise<void>): Promise<void> {
  const place = folder.url('main');
  const [, path = '', prefix = ''] = /^file:([^#]*)#?(.*)$/.exec(place) ?? [];
  const db = StoreDb({ dbPrefix: prefix, nodeId: 7, driver: new FileDriver(path), logLevel: 'warn' });
  await use(db);
  await db.stop();
}

it('is one commit, also into a table that is made from the file', async () => {
  const loads = vi.spyOn(Database.prototype, 'load');
  expect(await load(schema)).toMatchObject({ status: 0, output: imported(count) });
  expect(loads).toHaveBeenCalledTimes(1);
  expect((await ids()).length).toBe(count);
  const words = ['import', folder.url('other'), 'u', folder.file('t.csv'), '--create', '--key', 'id', '--yes'];
  expect((await run(words)).status).toBe(0);
  expect(loads).toHaveBeenCalledTimes(2);
});

it.each([
  ['the rows of a flush are given', schema, ['--rows-per-flush', '10000']],
  ['rows are replaced', schema, ['--mode', 'upsert']],
  ['rows were not checked before', schema, ['--on-bad-row', 'stop']],
  [
    'a unique index has a condition',
    { ...schema, indexes: [{ fields: ['name'], unique: true, where: { id: 1 } }] },
    [],
  ],
])('is made in batches where %s', async (_, made, options) => {
  const loads = vi.spyOn(Database.prototype, 'load');
  expect(await load(made, options)).toMatchObject({ status: 0, output: imported(count) });
  expect(loads).not.toHaveBeenCalled();
  expect((await ids()).length).toBe(count);
});

it('is made in batches while the table is migrated', async () => {
  await inDatabase(async (db) => {
    db.registerSchema(table);
    await db.start();
    const batch = db.batch();
    for (let id = 100_000; id < 100_500; id++) void batch.insert(table, { id, name: `before ${id}` });
    await batch.flush();
  });
  await inDatabase(async (db) => {
    db.registerSchema({ ...table, version: 2, fields: { ...table.fields, more: { typeId: Types.uint8, default: 1 } } });
    await db.start();
    await db.setTargetSchemaVersion('t', 2, { rowsPerSecond: 1 });
  });
  const loads = vi.spyOn(Database.prototype, 'load');
  expect(await load(schema)).toMatchObject({ status: 0, output: imported(count) });
  expect(loads).toHaveBeenCalledTimes(1);
  expect((await ids()).length).toBe(count + 500);
});

it('ends with the rows that were read when it is interrupted, and says where to go on', async () => {
  const interrupt = new AbortController();
  beforeRow(5000, () => interrupt.abort());
  const { status, messages } = await load(schema, [], { signal: interrupt.signal });
  expect(status).toBe(130);
  const there = await ids();
  expect(there.length).toBeGreaterThanOrEqual(5000);
  expect(there.length).toBeLessThan(count);
  expect(there).toEqual(there.map((_, i) => i));
  const next = there.length + 2;
  expect(messages).toContain(
    `up to line ${next - 1} are imported, and nothing after it. Continue with --from-line ${next}.`,
  );
  expect((await load(schema, ['--from-line', String(next)])).output).toBe(imported(count - there.length));
  expect((await ids()).length).toBe(count);
});

it.each([
  ['key', { id: 7000, name: 'x' }, 7002],
  ['value of a unique index', { id: 90_000, name: 'name 8000' }, 8002],
])(
  'names the line of a row whose %s another process takes after the check, and writes nothing',
  async (_, row, line) => {
    beforeRow(0, () =>
      inDatabase(async (db) => {
        db.registerSchema(table);
        await db.start();
        const batch = db.batch();
        void batch.insert(table, row);
        await batch.flush();
      }),
    );
    const { status, messages } = await load(schema);
    expect({ status, messages }).toEqual({
      status: 1,
      messages: expect.stringContaining(`t.csv, line ${line}: `) as unknown,
    });
    expect(messages).toContain('Nothing was imported.');
    expect(await ids()).toEqual([row.id]);
  },
);
