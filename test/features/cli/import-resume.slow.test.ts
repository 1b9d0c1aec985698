/** An import that can be resumed: what a killed one has stored stays, and the same command goes on behind it. */
import { spawn } from 'node:child_process';
import { readdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { defineSchema, StoreDb, Types } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import { Database } from '../../../src/api/database.ts';
import { jsonLines, run, TestFolder } from './shell.ts';
import type { Ran } from './shell.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** Rows of 128 KB: some hundred are as many bytes as a load records at once. */
const count = 520;
const wide = 'abcdefgh'.repeat(16_384);
let folder: TestFolder;

beforeEach(async () => {
  folder = await TestFolder.make();
});

afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

const schema = {
  name: 't',
  version: 1,
  fields: { id: 'uint32', name: 'varchar', text: 'varchar' },
  primaryKey: 'id',
  indexes: [{ fields: ['name'], unique: true }],
};

async function writeRows(ids: readonly number[], text: string): Promise<void> {
  await writeFile(folder.file('t.json'), JSON.stringify(schema));
  await writeFile(
    folder.file('t.csv'),
    ['id,name,text', ...ids.map((id) => `${id},name ${id},${text}`), ''].join('\n'),
  );
}

function words(options: readonly string[] = []): string[] {
  return ['import', folder.url('main'), 't', folder.file('t.csv'), '--schema', folder.file('t.json'), ...options];
}

function loads(): Promise<Ran> {
  return run(['loads', folder.url('main'), '--json']);
}

/** Kills an import once it has recorded some of its rows. */
async function killed(options: readonly string[]): Promise<void> {
  const program = ['--import', 'tsx', `${root}src/cli/main.ts`];
  const env = { ...process.env, TSX_TSCONFIG_PATH: `${root}tsconfig.json` };
  const child = spawn(process.execPath, [...program, ...words(options)], { cwd: root, env, stdio: 'ignore' });
  const ended = new Promise<number | null>((resolve) => {
    child.once('exit', resolve);
  });
  // The file with the commits is there before the record is in it.
  const hasRecord = async (): Promise<boolean> => {
    const files = await readdir(folder.file('.'), { recursive: true });
    return files.some((file) => /committed.*0*1$/.test(file)) && (await loads()).output.includes('import t.csv');
  };
  while (child.exitCode === null && !(await hasRecord())) {
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  child.kill('SIGKILL');
  expect(await ended).toBe(null);
}

describe('import --resume', () => {
  it('goes on behind the rows that a killed import has stored', { timeout: 120_000 }, async () => {
    const ids = Array.from({ length: count }, (_, i) => (i * 7) % count);
    await writeRows(ids, wide);
    await killed(['--resume']);
    const [found] = jsonLines((await loads()).output) as { name: string; table: string; rows: number }[][];
    expect(found).toMatchObject([{ name: 'import t.csv into t', table: 't' }]);
    const rows = found?.[0]?.rows ?? 0;
    expect(rows).toBeGreaterThan(100);
    expect(rows).toBeLessThan(count);
    const interrupt = new AbortController();
    const original = Reflect.get(Database.prototype, 'load') as (...given: unknown[]) => Promise<{ rows: number }>;
    vi.spyOn(Database.prototype, 'load').mockImplementation(async function (this: Database, ...given) {
      interrupt.abort();
      return original.call(this, ...given);
    });
    const interrupted = await run(words(['--resume']), { signal: interrupt.signal });
    vi.restoreAllMocks();
    expect(interrupted.status).toBe(130);
    expect(interrupted.messages).toContain(`${rows} rows are stored for later: the same command goes on behind them`);
    expect(interrupted.messages).toContain('Nothing was imported.');
    const { status, output, messages } = await run(words(['--resume']));
    expect({ status, output }).toEqual({ status: 0, output: `${count} rows imported into t.\n` });
    expect(messages).toContain(`${rows} rows are stored already: the import goes on behind them.`);
    const { output: shown } = await run([
      'query',
      folder.url('main'),
      't',
      '--fields',
      'id',
      '--limit',
      '1000',
      '--json',
    ]);
    expect(jsonLines(shown)).toEqual(Array.from({ length: count }, (_, id) => ({ id })));
    expect(await loads()).toMatchObject({ status: 0, output: '[]\n' });
    expect((await run(['verify', folder.url('main'), '--deep'])).status).toBe(0);
  });

  it.each([
    [['--mode', 'upsert'], 'leave out --mode upsert'],
    [['--on-bad-row', 'skip'], 'leave out --on-bad-row skip'],
    [['--rows-per-flush', '100'], 'leave out --rows-per-flush'],
    [['--blobs', '.'], 'leave out --blobs'],
  ])('is refused with %s', async (options, message) => {
    await writeRows([1], 'x');
    expect(await run(words(['--resume', ...options]))).toMatchObject({
      status: 2,
      messages: expect.stringContaining(message) as unknown,
    });
  });

  it('is refused with --create, for standard input, and for tables that a load does not take', async () => {
    await writeRows([1], 'x');
    const create = await run(['import', folder.file('t.csv'), '--create', '--resume']);
    expect(create).toMatchObject({ status: 2, messages: expect.stringContaining('leave out --create') as unknown });
    const withInput = words(['--resume']).map((word) => (word.endsWith('t.csv') ? '-' : word));
    const piped = await run(withInput, { input: 'id,name,text\n' });
    expect(piped).toMatchObject({ status: 2, messages: expect.stringContaining('name files') as unknown });
    for (const [made, message] of [
      [{ ...schema, fields: { ...schema.fields, file: 'blob' } }, 'takes no table with blobs'],
      [{ ...schema, indexes: [{ fields: ['name'], unique: true, where: { id: 1 } }] }, 'an index that has a condition'],
    ] as const) {
      await writeFile(folder.file('t.json'), JSON.stringify(made));
      const refused = await run(words(['--resume']));
      expect(refused).toMatchObject({ status: 2, messages: expect.stringContaining(message) as unknown });
    }
  });

  it('makes one commit of few rows too, and names the line of a row that is refused', async () => {
    await writeRows([1, 2, 3], 'x');
    expect(await run(words(['--resume']))).toMatchObject({ status: 0, output: '3 rows imported into t.\n' });
    const again = await run(words(['--resume']));
    expect(again).toMatchObject({ status: 1, messages: expect.stringContaining('t.csv, line 2: ') as unknown });
    expect(await loads()).toMatchObject({ status: 0, output: '[]\n' });
  });
});

describe('loads', () => {
  it('lists the loads that are unfinished, and gives one up after a confirmation', async () => {
    const table = defineSchema({ name: 't', version: 1, fields: { id: { typeId: Types.uint32 } }, primaryKey: 'id' });
    const [, path = '', prefix = ''] = /^file:([^#]*)#?(.*)$/.exec(folder.url('main')) ?? [];
    const driver = new FileDriver(path);
    const db = StoreDb({ driver, dbPrefix: prefix, nodeId: 7, logLevel: 'error', maxMemoryBytes: 1024 * 1024 });
    db.registerSchema(table);
    await db.start();
    const rows = function* (): Generator<{ id: number }> {
      for (let id = 0; id < 40_000; id++) yield { id };
      throw new RangeError('the source ends here');
    };
    await expect(db.load(table, rows(), { resume: 'numbers' })).rejects.toThrow('the source ends here');
    await db.stop();
    const listed = await run(['loads', folder.url('main')]);
    expect(listed.output).toMatch(/^load +table +rows +node +started +expires\nnumbers +t +\d{5} +7 /);
    const discard = ['loads', 'discard', folder.url('main')];
    const unknown = await run([...discard, 'others', '--yes']);
    expect(unknown).toMatchObject({ status: 2, messages: expect.stringContaining("no load 'others'") as unknown });
    const unasked = await run([...discard, 'numbers']);
    expect(unasked).toMatchObject({ status: 2, messages: expect.stringContaining('pass --yes') as unknown });
    const done = { status: 0, output: "The load 'numbers' is given up.\n" };
    expect(await run([...discard, 'numbers', '--yes'])).toMatchObject(done);
    expect((await run(['loads', folder.url('main')])).messages).toBe('No load is unfinished.\n');
  });
});
