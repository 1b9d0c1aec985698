/** `store-db migrate --all`: the same table of many databases, one after the other. */
import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, SchemaDefinition } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const { uint32, varchar } = Types;
const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: uint32 }, text: { typeId: varchar }, size: { typeId: varchar } },
  primaryKey: 'id',
} as const;
const notes2 = {
  name: 'notes',
  version: 2,
  fields: { id: 'uint32', text: 'varchar', size: 'uint32' },
  primaryKey: 'id',
};
let folder: TestFolder;
let schema: string;

beforeEach(async () => {
  folder = await TestFolder.make();
  schema = folder.file('notes-v2.json');
  await writeFile(schema, JSON.stringify(notes2));
});

afterEach(() => folder[Symbol.asyncDispose]());

const driver = (): FileDriver => new FileDriver({ path: folder.file('db'), durability: 'none' });

async function open(dbPrefix: string, definition: SchemaDefinition = notes): Promise<Database> {
  const db = StoreDb({ dbPrefix, nodeId: 1, driver: driver(), logLevel: 'silent', polling: 'onDemand' });
  db.registerSchema(definition);
  await db.start();
  return db;
}

async function make(prefix: string, sizes: readonly string[] = ['7', '8', '9']): Promise<void> {
  const db = await open(prefix);
  await db.transaction(async (tx) => {
    for (const [id, size] of sizes.entries()) await tx.insert('notes', { id, text: `note ${id}`, size });
  });
  await db.checkpoint();
  await db.stop();
}

const url = (prefix: string): string => `file:${folder.file('db')}#${prefix}`;
const all = (...words: string[]) => run(['migrate', url('tenants'), 'notes', '--all', ...words]);

/** Lines in the order of the databases: they come as these are done. */
const sorted = (text: string): string[] => text.trimEnd().split('\n').toSorted();

describe('migrate --all', { timeout: 60_000 }, () => {
  it('migrates every database of a folder, goes on where one fails, and says which', async () => {
    for (const name of ['ada', 'alan', 'grace']) await make(`tenants/${name}`);
    await make('other');
    await make('tenants/kay', ['7', 'large', 'huge']);
    const letters = await open('tenants/mary', { ...notes, name: 'letters' });
    await letters.transaction((tx) => tx.insert('letters', { id: 1 }));
    await letters.stop();
    await driver().put('tenants/alan/block0', Buffer.from('damaged'), { if: 'any' });
    expect((await run(['migrate', url('tenants/grace'), 'notes', '--to', schema, '--yes'])).status).toBe(0);

    const migrated = await all('--to', schema, '--yes');
    expect(migrated.status).toBe(1);
    const large = `Row 1: Field 'size': 'large' is not an integer's text, as type uint32 needs it.`;
    expect(sorted(migrated.output)).toEqual([
      `${url('tenants/ada')}: switched, version 1 to 2, rows 3 of 3`,
      `${url('tenants/grace')}: switched, version 1 to 2, rows 3 of 3`,
      `${url('tenants/kay')}: blocked, version 1 to 2, rows 1 of 3: ${large} (and 1 more)`,
    ]);
    expect(migrated.messages).toMatch(/tenants\/alan: .*Block 0/);
    expect(migrated.messages).toContain(`There is no table notes in ${url('tenants/mary')}.`);
    expect(migrated.messages).toMatch(/\n3 of 5 databases failed\.\n$/);
    const rows = await run(['query', url('tenants/ada'), 'notes', '--where', 'id = 2', '--json']);
    expect(jsonLines(rows.output)).toEqual([{ id: 2, text: 'note 2', size: 9 }]);
    // Not under that prefix.
    const other = await run(['migrate', url('other'), 'notes', '--json']);
    expect(jsonLines(other.output)[0]).toMatchObject({ state: 'none', from: 1 });
  });

  it('reports the changes of the fields, each once, before it asks one question for all', async () => {
    for (const name of ['ada', 'grace']) await make(`tenants/${name}`);
    const letters = await open('tenants/mary', { ...notes, name: 'letters' });
    await letters.transaction((tx) => tx.insert('letters', { id: 1 }));
    await letters.stop();
    const asked = await all('--to', schema);
    expect(asked).toMatchObject({ status: 2, output: '' });
    const lines = asked.messages.split('\n');
    expect(lines[0]).toBe(`In ${url('tenants/ada')} and 1 other: version 1 goes to version 2.`);
    expect(lines[1]).toBe('  Field size goes from varchar to uint32: a value that does not fit stops the migration.');
    expect(lines[2]).toBe(
      `In ${url('tenants/mary')}: there is no table notes, or its first rows are still in the log.`,
    );
    expect(lines[3]).toContain(
      `Bring notes to version 2, without a migrate function, in 3 databases in ${url('tenants')}?`,
    );
    expect(await all('--to', schema, '--concurrency', '0')).toMatchObject({ status: 2 });
    const none = await run(['migrate', url('nothing'), 'notes', '--all']);
    expect(none).toMatchObject({ status: 2, messages: expect.stringContaining('There is no database in') as unknown });
  });

  it('reports the progress of all, goes back, and retires the old version if no instance is known to use it', async () => {
    for (const name of ['ada', 'grace']) await make(`tenants/${name}`);
    expect((await all('--to', schema, '--yes')).status).toBe(0);
    expect((await all('--cancel')).status).toBe(2);
    const cancelled = await all('--cancel', '--yes', '--concurrency', '1');
    expect(cancelled.status).toBe(0);
    expect(cancelled.output).toBe(
      `${url('tenants/ada')}: version 1, rows 3\n${url('tenants/grace')}: version 1, rows 3\n`,
    );
    expect((await all('--to', schema, '--yes')).status).toBe(0);
    const late = await open('tenants/grace');
    expect((await all('--finish')).messages).toContain('It stays where an instance is known to use it');
    const finished = await all('--finish', '--yes', '--json');
    expect(finished.status).toBe(1);
    expect(finished.messages).toContain(`${url('tenants/grace')}: An instance of node 1 uses version 1`);
    await late.stop();
    const told = await all('--json');
    expect(told).toMatchObject({ status: 0, messages: '' });
    const states = jsonLines(told.output) as { database: string; state: string }[];
    expect(new Map(states.map(({ database, state }) => [database, state]))).toEqual(
      new Map([
        [url('tenants/ada'), 'none'],
        [url('tenants/grace'), 'switched'],
      ]),
    );
    const rest = await all('--finish', '--yes');
    expect(rest.status).toBe(0);
    expect(sorted(rest.output)).toEqual([
      `${url('tenants/ada')}: version 2, rows 3`,
      `${url('tenants/grace')}: version 2, rows 3`,
    ]);
  });
});
