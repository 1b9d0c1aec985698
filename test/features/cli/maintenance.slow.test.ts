/** Maintenance of databases that nobody has open, and the completion of command lines by the shell. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const items = { name: 'items', version: 1, fields: { id: { typeId: Types.uint32 } }, primaryKey: 'id' } as const;
let folder: TestFolder;

beforeEach(async () => {
  folder = await TestFolder.make();
});

afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

async function open(nodeId: number, dbPrefix = 'main'): Promise<Database> {
  const driver = new FileDriver(folder.file('db'));
  const db = StoreDb({ dbPrefix, nodeId, driver, logLevel: 'silent', polling: 'onDemand' });
  db.registerSchema(items);
  await db.start();
  return db;
}

async function put(db: Database, id: number): Promise<void> {
  const batch = db.batch();
  void batch.upsert(items, { id });
  await batch.flush();
}

describe('tend', () => {
  it('merges pending commits and deletes garbage, after a confirmation', async () => {
    const db = await open(1);
    for (let id = 0; id < 3; id++) await put(db, id);
    await db.stop();
    const pending = async (): Promise<unknown> => {
      const [found] = jsonLines((await run(['stats', folder.url(), '--json'])).output) as { pendingCommits: number }[];
      return found?.pendingCommits;
    };
    expect(await pending()).toBe(3);
    const refused = await run(['tend', folder.url()]);
    expect(refused).toMatchObject({ status: 2, messages: expect.stringContaining('pass --yes') as unknown });
    expect(await pending()).toBe(3);
    const tended = await run(['tend', folder.url(), '--yes', '--json']);
    expect(tended.status).toBe(0);
    expect(jsonLines(tended.output)[0]).toMatchObject({ merged: 3, garbage: { failed: [] } });
    expect(await pending()).toBe(0);
    expect((await run(['tend', folder.url(), '--yes'])).output).toContain('0 commits merged.\n');
    expect((await run(['query', folder.url(), 'items', '--count'])).output).toBe('3\n');
  });

  /** Requests version 2 of the table, and stops before its rows are migrated. */
  async function requestMigration(migrate?: (row: { id: number }) => object): Promise<void> {
    const db = await open(1);
    for (let id = 0; id < 3; id++) await put(db, id);
    const fields = { ...items.fields, note: { typeId: Types.varchar } };
    db.registerSchema({ ...items, version: 2, fields, ...(migrate && { migrate }) } as never);
    await db.setTargetSchemaVersion('items', 2);
    await db.stop();
    expect(await db.start().then(() => db.migrationStatus('items'))).toMatchObject({ state: 'building', rowsDone: 0 });
    await db.stop();
  }

  it('completes a migration that was requested', async () => {
    await requestMigration();
    const tended = await run(['tend', folder.url(), '--yes', '--json']);
    const migration = { table: 'items', from: 1, to: 2, state: 'switched', rowsDone: 3, rowsTotal: 3 };
    expect(tended.messages).toBe('');
    expect([tended.status, jsonLines(tended.output)[0]]).toMatchObject([0, { migrations: [migration], indexes: [] }]);
    expect(jsonLines((await run(['tend', folder.url(), '--yes', '--json'])).output)[0]).toMatchObject({
      migrations: [],
    });
  });

  it('says which migration needs the application, and collects all the same', async () => {
    await requestMigration((row) => ({ ...row, note: 'made' }));
    const tended = await run(['tend', folder.url(), '--yes']);
    expect(tended.status).toBe(1);
    expect(tended.output).toContain('items to version 2: 0 of 3 rows migrated. It needs the migrate function');
    expect(tended.output).toContain('Nothing to delete.');
  });

  it('adds an index that another process has begun', { timeout: 60_000 }, async () => {
    const count = 120_000;
    const db = await open(1);
    const batch = db.batch();
    for (let id = 0; id < count; id++) void batch.upsert(items, { id });
    await batch.flush();
    await db.checkpoint();
    db.registerSchema({ ...items, indexes: [{ name: 'byId', fields: ['id'] }] });
    const state = async (): Promise<unknown> => (await db.indexes('items')).find(({ name }) => name === 'byId')?.state;
    while ((await state()) !== 'building') await wait(5);
    await db.stop();
    const tended = await run(['tend', folder.url(), '--yes', '--json']);
    const index = { table: 'items', name: 'byId', state: 'ready', rowsDone: count, rowsTotal: count };
    expect([tended.status, jsonLines(tended.output)[0]]).toMatchObject([0, { indexes: [index] }]);
  });

  it('tends every database of a folder with --all, goes on where one fails, and says which', async () => {
    const prefixes = ['tenants/ada', 'tenants/alan', 'tenants/grace', 'other'];
    for (const prefix of prefixes) {
      const db = await open(1, prefix);
      await put(db, 1);
      await db.stop();
    }
    const driver = new FileDriver(folder.file('db'));
    await driver.put('tenants/alan/block0', Buffer.from('damaged'), { if: 'any' });
    const url = (prefix: string): string => `file:${folder.file('db')}#${prefix}`;
    const all = ['tend', url('tenants'), '--all'];
    expect(await run(all)).toMatchObject({ status: 2, messages: expect.stringContaining('pass --yes') as unknown });
    const tended = await run([...all, '--yes', '--json', '--concurrency', '1']);
    expect(tended.status).toBe(1);
    expect(tended.messages).toContain('1 of 3 databases failed.');
    expect(jsonLines(tended.output)).toMatchObject([
      { database: url('tenants/ada'), merged: 1 },
      { database: url('tenants/alan'), error: expect.stringContaining('Block 0') as unknown },
      { database: url('tenants/grace'), merged: 1 },
    ]);
    // Not under that prefix.
    expect((await run(['tend', url('other'), '--yes', '--json'])).output).toContain('"merged":1');
    const none = await run(['tend', url('nothing'), '--all', '--yes']);
    expect(none).toMatchObject({ status: 2, messages: expect.stringContaining('There is no database in') as unknown });
  });

  it('finds more databases with --all than a search by itself looks for', async () => {
    const driver = new FileDriver({ path: folder.file('db'), durability: 'none' });
    for (let i = 0; i < 210; i++) await driver.put(`tenants/${i}/block0`, new Uint8Array(1), { if: 'any' });
    const tended = await run(['tend', `file:${folder.file('db')}`, '--all', '--yes', '--json']);
    expect([tended.status, jsonLines(tended.output).length]).toEqual([1, 210]);
  });
});

describe('snapshots release', () => {
  it('ends a snapshot by its id, after a confirmation', async () => {
    const db = await open(1);
    await put(db, 1);
    const snapshot = await db.snapshot();
    const words = ['snapshots', 'release', folder.url(), snapshot.id];
    expect(await run(words)).toMatchObject({ status: 2, messages: expect.stringContaining('pass --yes') as unknown });
    const unknown = await run(['snapshots', 'release', folder.url(), '0-none', '--yes']);
    expect(unknown).toMatchObject({ status: 2, messages: expect.stringContaining('no snapshot 0-none') as unknown });
    expect(jsonLines((await run(['snapshots', folder.url(), '--json'])).output)[0]).toHaveLength(1);
    expect(await run([...words, '--yes'])).toMatchObject({ status: 0, output: `Snapshot ${snapshot.id} has ended.\n` });
    expect(jsonLines((await run(['snapshots', folder.url(), '--json'])).output)[0]).toEqual([]);
    await db.stop();
  });
});

describe('the script for bash', { timeout: 60_000 }, () => {
  it('completes store-db, and npx store-db with the version installed in the project', async () => {
    const root = fileURLToPath(new URL('../../../', import.meta.url));
    const bin = folder.file('node_modules/.bin');
    await mkdir(bin, { recursive: true });
    await mkdir(folder.file('below'));
    const lines = [
      `#!/bin/sh`,
      `exec '${root}node_modules/.bin/tsx' --tsconfig '${root}tsconfig.json' '${root}src/cli/main.ts' "$@"`,
      '',
    ];
    await writeFile(`${bin}/store-db`, lines.join('\n'));
    await chmod(`${bin}/store-db`, 0o755);
    await writeFile(folder.file('completion.sh'), (await run(['completion', 'bash'])).output);
    const script = `
      _other() { COMPREPLY=(other); }
      complete -F _other npx
      source ../completion.sh
      source ../completion.sh
      try() {
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _store_db_completions
        echo "\${COMPREPLY[*]}"
      }
      try npx store-db sn
      try npx -y store-db snapshots rel
      try store-db gc --dry
      try npx store-db import x --mode sk
      try npx eslint sn
      try npx store-d`;
    const { stdout } = await promisify(execFile)('bash', ['-c', script], { cwd: folder.file('below') });
    expect(stdout.split('\n')).toEqual(['snapshots', 'release', '--dry-run', 'skip-existing', 'other', 'other', '']);
  });

  it('is printed for the shell that is named, or that SHELL names', async () => {
    expect((await run(['completion', 'zsh'])).output).toContain('compdef _store_db_completions store-db npx');
    expect((await run(['completion', 'fish'])).status).toBe(2);
    process.env['SHELL'] = '/bin/zsh';
    expect((await run(['completion'])).output).toContain('compdef');
  });
});
