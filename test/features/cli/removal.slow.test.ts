/** Databases that are deleted or get another name, and tables that are emptied. */
import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, file: { typeId: Types.blob } },
  primaryKey: 'id',
  indexes: ['text'],
} as const;

let folder: TestFolder;
let driver: FileDriver;

beforeEach(async () => {
  folder = await TestFolder.make();
  driver = new FileDriver(folder.file('db'));
});

afterEach(async () => {
  vi.restoreAllMocks();
  await folder[Symbol.asyncDispose]();
});

async function open(dbPrefix = 'main'): Promise<Database> {
  const db = StoreDb({ dbPrefix, nodeId: 1, driver, logLevel: 'silent', polling: 'onDemand' });
  db.registerSchema(notes);
  await db.start();
  return db;
}

async function fill(dbPrefix = 'main', rows = 5): Promise<void> {
  const db = await open(dbPrefix);
  const batch = db.batch();
  for (let id = 0; id < rows; id++) void batch.insert(notes, { id, text: `note ${id % 2}`, file: null });
  void batch.upsert(notes, { id: 0, text: 'with a file', file: db.Blob('content') });
  await batch.flush();
  await db.checkpoint();
  await db.stop();
}

/** A writer is registered with the first merge of what it wrote. */
async function write(db: Database, id: number): Promise<void> {
  const batch = db.batch();
  void batch.upsert(notes, { id, text: 'late', file: null });
  await batch.flush();
  await db.checkpoint();
}

async function keys(): Promise<string[]> {
  return (await driver.list('')).entries.map(({ key }) => key).filter((key) => !key.startsWith('_storedb/'));
}

const countOf = async (prefix = 'main'): Promise<string> => {
  return (await run(['query', folder.url(prefix), 'notes', '--count'])).output;
};

describe('drop', () => {
  it('deletes all of a database after a confirmation, and nothing else in the store', async () => {
    await fill();
    await fill('main/inner');
    await fill('mainly');
    await driver.put('main/readme.txt', Buffer.from('mine'), { if: 'any' });
    const before = await keys();
    const asked = await run(['drop', folder.url('main'), '--whole-database']);
    expect(asked).toMatchObject({ status: 2, output: '' });
    expect(asked.messages).toContain('the table notes.\n');
    expect(asked.messages).toMatch(/Delete file:.*#main, \d+ objects of [\d.]+ K?B\? Only a backup can bring it back/);
    expect(await keys()).toEqual(before);
    const dropped = await run(['drop', folder.url('main'), '--whole-database', '--yes']);
    expect(dropped.status).toBe(0);
    expect(dropped.output).toMatch(/#main is deleted: \d+ objects\.\n/);
    expect(dropped.messages).toMatch(/\d+ objects under its prefix do not belong to it, and stay\./);
    expect(await keys()).toEqual(
      before.filter((key) => /^(?:mainly|main\/inner)\//.test(key) || key === 'main/readme.txt'),
    );
    expect(await countOf('main/inner')).toBe('5\n');
    const again = await run(['drop', folder.url('main'), '--whole-database', '--yes']);
    expect(again).toMatchObject({ status: 2 });
    expect(again.messages).toContain('There is no database in');
  });

  it('deletes no database without the option --whole-database', async () => {
    await fill();
    const before = await keys();
    // What a script runs as drop $DATABASE $TABLE --yes, where TABLE is not set.
    for (const words of [['--yes'], ['--yes', '--force'], [], ['--yes', '--if-exists']]) {
      const refused = await run(['drop', folder.url('main'), ...words], { input: 'y\nmain\n', tty: 'screen' });
      expect(refused).toMatchObject({ status: 2 });
      expect(refused.output).toMatch(/needs the name of a table\.[^]*Nothing was deleted\./);
    }
    const both = await run(['drop', folder.url('main'), 'notes', '--whole-database', '--yes']);
    expect(both).toMatchObject({ status: 2 });
    expect(both.messages).toContain('--whole-database goes without the name of a table. Nothing was deleted.');
    expect(await keys()).toEqual(before);
    expect(await countOf()).toBe('5\n');
  });

  it('takes nothing but the name of the database for a yes', async () => {
    await fill();
    const before = await keys();
    const drop = (input: string) => run(['drop', folder.url('main'), '--whole-database'], { input, tty: 'screen' });
    for (const answer of ['y\n', 'yes\n', '\n', 'mai\n', 'Main\n', '']) {
      const asked = await drop(answer);
      expect(asked.status).not.toBe(0);
      expect(asked.output).toContain('Type its name, main, to go on:');
      expect(await keys()).toEqual(before);
    }
    expect(await drop('main\n')).toMatchObject({ status: 0 });
    expect(await keys()).toEqual([]);
  });

  it('refuses while nodes are registered, unless it is forced to', async () => {
    await fill();
    const db = await open();
    await write(db, 8);
    const before = await keys();
    const refused = await run(['drop', folder.url('main'), '--whole-database', '--yes']);
    expect(refused).toMatchObject({ status: 2, output: '' });
    expect(refused.messages).toContain('Node 1 may be running on');
    expect(await keys()).toEqual(before);
    expect(await run(['drop', folder.url('main'), '--whole-database', '--yes', '--force', '--json'])).toMatchObject({
      status: 0,
    });
    expect(await keys()).toEqual([]);
    // Whoever still runs brings nothing back.
    await expect(write(db, 9)).rejects.toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
    await db.stop();
    expect(await keys()).toEqual([]);
  });

  it('goes on where it was stopped: Block 0 goes first, so that nothing is made of the rest', async () => {
    await fill();
    const remove = FileDriver.prototype.delete.bind(driver);
    let calls = 0;
    vi.spyOn(FileDriver.prototype, 'delete').mockImplementation(async (...args) => {
      if (++calls > 1) throw new Error('the power is gone');
      return remove(...args);
    });
    expect((await run(['drop', folder.url('main'), '--whole-database', '--yes'])).status).toBe(3);
    vi.restoreAllMocks();
    expect(await keys()).not.toContain('main/block0');
    expect(await keys()).not.toEqual([]);
    await expect(open()).rejects.toMatchObject({ code: 'NOT_A_DATABASE' });
    const rest = await run(['drop', folder.url('main'), '--whole-database', '--yes']);
    expect(rest.status).toBe(0);
    expect(rest.messages).toContain('the remains of a database');
    expect(await keys()).toEqual([]);
  });

  it('names the objects that the store did not delete, and stops there', async () => {
    await fill();
    const before = await keys();
    vi.spyOn(FileDriver.prototype, 'delete').mockImplementation(async (names) => {
      return { failed: names.map((key) => ({ key, message: 'access denied' })) };
    });
    const dropped = await run(['drop', folder.url('main'), '--whole-database', '--yes']);
    expect(dropped).toMatchObject({ status: 1, output: '' });
    expect(dropped.messages).toContain('block0 could not be deleted: access denied');
    expect(await keys()).toEqual(before);
  });

  it('deletes a damaged database only if it is forced to', async () => {
    await fill();
    await driver.put('main/block0', Buffer.from('nonsense'), { if: 'any' });
    const refused = await run(['drop', folder.url('main'), '--whole-database', '--yes']);
    expect(refused).toMatchObject({ status: 2 });
    expect(refused.messages).toContain('cannot be read, so its tables and nodes are not known');
    expect(await run(['drop', folder.url('main'), '--whole-database', '--yes', '--force'])).toMatchObject({
      status: 0,
    });
    expect(await keys()).toEqual([]);
  });
});

describe('drop of a table', () => {
  it('shows rows and blobs, asks, and drops the table alone', async () => {
    await fill();
    const other = await open();
    other.registerSchema({ ...notes, name: 'others' });
    await other.transaction((tx) => tx.insert('others', { id: 1, text: 'kept', file: null }));
    await other.stop();
    const asked = await run(['drop', folder.url('main'), 'notes']);
    expect(asked.status).toBe(2);
    expect(asked.messages).toContain('Drop table notes with its schema and indexes, 5 rows and 1 blob?');
    expect(await countOf()).toBe('5\n');
    const dropped = await run(['drop', folder.url('main'), 'notes', '--yes']);
    expect(dropped).toMatchObject({ status: 0 });
    expect(dropped.output).toBe('Table notes was dropped: 5 rows and 1 blob. gc deletes its blocks and blobs.\n');
    const tables = await run(['tables', folder.url('main'), '--json']);
    expect(JSON.parse(tables.output)).toMatchObject([{ name: 'others', rows: 1 }]);
    expect((await run(['verify', folder.url('main')])).status).toBe(0);
  });

  it('refuses what it cannot drop, with the exit codes of other commands', async () => {
    await fill();
    const url = folder.url('main');
    const missing = await run(['drop', url, 'nots', '--yes']);
    expect(missing.status).toBe(2);
    expect(missing.messages).toContain('There is no table nots in');
    const allowed = await run(['drop', url, 'nots', '--yes', '--if-exists', '--json']);
    expect(allowed.status).toBe(0);
    expect(JSON.parse(allowed.output)).toEqual({ table: 'nots', dropped: false, rows: 0, blobs: 0 });
    // Nothing of these deletes the database.
    for (const args of [[''], ['notes', '--force'], ['_blobs'], ['', '--whole-database']]) {
      expect((await run(['drop', url, ...args, '--yes'])).status).toBe(2);
    }
    expect((await run(['drop', url, '--if-exists', '--yes'])).status).toBe(2);
    expect(await countOf()).toBe('5\n');
    const dropped = await run(['drop', url, 'notes', '--yes', '--json']);
    expect(JSON.parse(dropped.output)).toEqual({ table: 'notes', dropped: true, rows: 5, blobs: 1 });
  });
});

describe('rename', () => {
  it('moves a database to another prefix, after a confirmation', async () => {
    await fill();
    const asked = await run(['rename', folder.url('main'), folder.url('moved')]);
    expect(asked).toMatchObject({ status: 2 });
    expect(asked.messages).toContain('history, snapshots and the positions of changes() end');
    const renamed = await run(['rename', folder.url('main'), folder.url('moved'), '--yes']);
    expect(renamed.status).toBe(0);
    expect(renamed.output).toMatch(/The database is in file:.*#moved\.\n.*#main is deleted/);
    expect((await keys()).every((key) => key.startsWith('moved/'))).toBe(true);
    const db = await open('moved');
    const rows = await db.query(notes).orderBy('id').execute();
    expect(rows).toHaveLength(5);
    expect(await db.getBlob(rows[0]?.file as string).getString()).toBe('content');
    expect(await db.query(notes).where('text', '=', 'note 1').count()).toBe(2);
    await db.stop();
  });

  it('refuses its own name, a place that is taken, and a database that nodes are registered in', async () => {
    await fill();
    await fill('taken');
    const before = await keys();
    const own = await run(['rename', folder.url('main'), folder.url('main'), '--yes']);
    expect(own).toMatchObject({ status: 2, messages: expect.stringContaining('is its present name') as string });
    expect((await run(['rename', folder.url('main'), folder.url('taken'), '--yes'])).status).toBeGreaterThan(1);
    const names = async (): Promise<string[]> => (await keys()).filter((key) => !key.includes('/roots/'));
    expect(await names()).toEqual(before.filter((key) => !key.includes('/roots/')));
    const db = await open();
    await write(db, 8);
    const used = await run(['rename', folder.url('main'), folder.url('new'), '--yes']);
    expect(used).toMatchObject({ status: 2, messages: expect.stringContaining('Node 1 may be running') as string });
    await db.stop();
    expect(await countOf()).toBe('6\n');
  });

  it('deletes nothing if somebody wrote meanwhile', async () => {
    await fill();
    const db = await open();
    const put = FileDriver.prototype.put.bind(driver);
    let isWritten = false;
    vi.spyOn(FileDriver.prototype, 'put').mockImplementation(async (...args) => {
      if (args[0].startsWith('new/') && !isWritten) {
        isWritten = true;
        await write(db, 99);
      }
      return put(...args);
    });
    const renamed = await run(['rename', folder.url('main'), folder.url('new'), '--yes', '--force']);
    vi.restoreAllMocks();
    expect(renamed).toMatchObject({ status: 3, output: '' });
    expect(renamed.messages).toContain('Rows were written to');
    await db.stop();
    expect(await countOf()).toBe('6\n');
  });
});

describe('clear', () => {
  it('deletes the rows that a condition finds, or all, after a confirmation', async () => {
    await fill();
    const asked = await run(['clear', folder.url('main'), 'notes', '--where', "text = 'note 1'"]);
    expect(asked).toMatchObject({ status: 2 });
    expect(asked.messages).toContain('Delete the matching rows of notes, 2 rows, with their blobs?');
    expect(await countOf()).toBe('5\n');
    const some = await run(['clear', folder.url('main'), 'notes', '--where', "text = 'note 1'", '--yes']);
    expect(some).toMatchObject({ status: 0, output: '2 rows of notes deleted.\n' });
    expect(await countOf()).toBe('3\n');
    const all = await run(['clear', folder.url('main'), 'notes', '--yes', '--json']);
    expect(jsonLines(all.output)).toEqual([{ table: 'notes', deleted: 3 }]);
    expect(await countOf()).toBe('0\n');
    expect(await run(['clear', folder.url('main'), 'notes'])).toMatchObject({ output: '0 rows of notes deleted.\n' });
  });

  it('deletes any number of rows, in commits of some', async () => {
    const csv = Array.from({ length: 25_000 }, (_, i) => `${i}\n`).join('');
    await writeFile(folder.file('many.csv'), `id\n${csv}`);
    expect(await run(['import', folder.url('m'), folder.file('many.csv'), '--create', '--yes'])).toMatchObject({
      status: 0,
    });
    const cleared = await run(['clear', folder.url('m'), 'many', '--where', 'id >= 10', '--yes']);
    expect(cleared.output).toBe('24,990 rows of many deleted.\n');
    expect((await run(['query', folder.url('m'), 'many', '--count'])).output).toBe('10\n');
  });

  it('refuses an invalid condition before anything is deleted', async () => {
    await fill();
    expect(await run(['clear', folder.url('main'), 'notes', '--where', "text = 'a' or", '--yes'])).toMatchObject({
      status: 2,
    });
    expect(await countOf()).toBe('5\n');
  });
});
