/** The work of an import for each row: it encodes the row at once, and still knows where every row comes from. */
import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Batch } from '../../../src/batch/batch.ts';
import { jsonLines, run, TestFolder } from './shell.ts';
import type { Ran } from './shell.ts';

let folder: TestFolder;

beforeEach(async () => {
  folder = await TestFolder.make();
});

afterEach(async () => {
  vi.restoreAllMocks();
  await folder[Symbol.asyncDispose]();
});

const made = {
  name: 't',
  version: 1,
  fields: { id: { typeId: 'uuid', default: 'uuidv7' }, name: 'varchar' },
  primaryKey: 'id',
  indexes: [{ fields: ['name'], unique: true }],
};
const given = { ...made, fields: { id: 'uint32', name: 'varchar' } };

/** Imports files, each with its text. */
async function load(schema: object, files: Readonly<Record<string, string>>, ...options: string[]): Promise<Ran> {
  await writeFile(folder.file('t.json'), JSON.stringify(schema));
  const paths: string[] = [];
  for (const [name, text] of Object.entries(files)) {
    paths.push(folder.file(name));
    await writeFile(folder.file(name), text);
  }
  return run(['import', folder.url('main'), 't', ...paths, '--schema', folder.file('t.json'), ...options]);
}

async function names(): Promise<unknown[]> {
  const { output } = await run(['query', folder.url('main'), 't', '--fields', 'name', '--json']);
  return jsonLines(output).map((row) => (row as { name: string }).name);
}

it.each(['insert', 'upsert', 'update'] as const)('needs no promise for a row: %s', async (mode) => {
  if (mode === 'update') await load(given, { 'a.csv': 'id,name\n1,x\n2,y\n3,z\n' });
  const spies = (['insert', 'upsert', 'update'] as const).map((name) => vi.spyOn(Batch.prototype, name));
  const options = ['--on-bad-row', 'stop', '--mode', mode, '--rows-per-flush', '2'];
  const imported = await load(given, { 'b.csv': 'id,name\n1,a\n2,b\n3,c\n' }, ...options);
  expect(imported).toMatchObject({ status: 0, output: '3 rows imported into t.\n' });
  expect(spies.map(({ mock }) => mock.calls.length)).toEqual([0, 0, 0]);
  expect(await names()).toEqual(['a', 'b', 'c']);
});

it.each([
  ['whose key is there', given, 'id,name\n4,d\n1,e\n', 'primary key 1'],
  ['whose name is there', given, 'id,name\n4,d\n5,a\n', 'name'],
  ['whose name is there, of a key that is made', made, 'name\nd\na\n', 'name'],
])('names the file and the line of a row %s', async (_, schema, text, message) => {
  const [first, last] =
    schema === made ? ['name\na\nb\n', 'name\nf\ng\n'] : ['id,name\n1,a\n2,b\n', 'id,name\n6,f\n7,g\n'];
  const options = ['--on-bad-row', 'stop', '--rows-per-flush', '3'];
  const { status, messages } = await load(schema, { 'a.csv': first, 'b.csv': text, 'c.csv': last }, ...options);
  expect(status).toBe(1);
  expect(messages).toContain('b.csv, line 3: ');
  expect(messages).toContain(message);
  // The flush before is there, and nothing of the one that was refused.
  expect(messages).toContain('Continue with --from-file');
  expect(await names()).toEqual(['a', 'b', 'd']);
});

it('names the file and the line of a row that does not fit its field', async () => {
  const files = { 'a.csv': 'id,name\n1,a\n2,b\n', 'b.csv': 'id,name\n3,c\n-4,d\n' };
  const { status, messages } = await load(given, files, '--on-bad-row', 'stop', '--rows-per-flush', '2');
  expect({ status, messages }).toEqual({ status: 1, messages: expect.stringContaining('b.csv, line 3: ') as unknown });
  expect(await names()).toEqual(['a', 'b']);
});
