/** The commands of the CLI on tables whose primary key is made of several fields. */
import { readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { jsonLines, run, TestFolder } from '../cli/shell.ts';

let folder: TestFolder;
let url: string;

const schema = {
  name: 'pages',
  version: 1,
  fields: { tenant: 'uint16', slug: 'varchar', title: 'varchar' },
  primaryKey: ['tenant', 'slug'],
  indexes: ['title'],
};

async function file(name: string, text: string): Promise<string> {
  await writeFile(folder.file(name), text);
  return folder.file(name);
}

const csv = 'tenant,slug,title\n2,a,two\n1,b,\n1,a,one\n';

beforeEach(async () => {
  folder = await TestFolder.make();
  url = folder.url('main');
  const definition = await file('pages.json', JSON.stringify(schema));
  const given = await file('rows.csv', csv);
  expect(await run(['import', url, 'pages', given, '--schema', definition])).toMatchObject({ status: 0 });
});

afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

async function rows(...words: string[]): Promise<unknown[]> {
  const { status, output, messages } = await run(['query', url, 'pages', '--json', ...words]);
  expect(status, messages).toBe(0);
  return jsonLines(output);
}

describe('import', () => {
  it('takes rows in the order of their keys, and refuses those that are there, or come twice', async () => {
    expect(await rows()).toEqual([
      { tenant: 1, slug: 'a', title: 'one' },
      { tenant: 1, slug: 'b', title: null },
      { tenant: 2, slug: 'a', title: 'two' },
    ]);
    const there = await run(['import', url, 'pages', await file('more.csv', 'tenant,slug\n3,a\n1,b\n')]);
    expect(there.status).not.toBe(0);
    expect(there.messages).toContain('more.csv');
    expect(there.messages).toContain('line 3');
    expect(there.messages).toContain('there is a row with key ["1","b"] already');
    const twice = await run(['import', url, 'pages', await file('twice.csv', 'tenant,slug\n3,a\n3,b\n3,a\n')]);
    expect(twice.status).not.toBe(0);
    expect(twice.messages).toContain('key tenant, slug ["3","a"]');
    expect(twice.messages).toContain('is in line 2 of');
    const missing = await run(['import', url, 'pages', await file('missing.ndjson', '{"tenant":9,"title":"x"}\n')]);
    expect(missing.status).not.toBe(0);
    expect(missing.messages).toContain("'slug'");
    // The same values in another field are another key.
    const other = await run(['import', url, 'pages', await file('other.csv', 'slug,tenant\n12,1\n2,11\n')]);
    expect(other.status, other.messages).toBe(0);
    expect(await rows('--where', "slug in ('12', '2')", '--fields', 'tenant,slug')).toEqual([
      { tenant: 1, slug: '12' },
      { tenant: 11, slug: '2' },
    ]);
  });

  it('leaves out, replaces or updates rows by their keys, as --mode says', async () => {
    const changed = await file('changed.csv', 'tenant,slug,title\n1,a,new\n3,c,more\n3,c,again\n');
    expect(await run(['import', url, 'pages', changed, '--mode', 'skip-existing'])).toMatchObject({ status: 0 });
    expect(await rows('--where', 'tenant = 1 and slug = a or tenant = 3')).toEqual([
      { tenant: 1, slug: 'a', title: 'one' },
      { tenant: 3, slug: 'c', title: 'more' },
    ]);
    const rejects = folder.file('rejects.ndjson');
    const update = ['--mode', 'update', '--on-bad-row', 'skip', '--rejects', rejects];
    const updated = await file('updated.csv', 'tenant,slug,title\n1,a,new\n4,d,none\n');
    await run(['import', url, 'pages', updated, ...update]);
    expect(await readFile(rejects, 'utf8')).toContain('there is no row with key [\\"4\\",\\"d\\"] to update');
    expect(await run(['import', url, 'pages', changed, '--mode', 'upsert'])).toMatchObject({ status: 0 });
    expect(await rows('--where', 'tenant = 1 and slug = a or tenant = 3', '--fields', 'title')).toEqual([
      { title: 'new' },
      { title: 'again' },
    ]);
    const again = await run(['import', url, 'pages', changed, '--on-bad-row', 'skip', '--rejects', rejects]);
    expect(again.messages + again.output).toContain('3');
    expect(await rows('--fields', 'tenant')).toHaveLength(4);
  });
});

describe('other commands', () => {
  it('export files that import takes, as text and as Parquet', async () => {
    for (const name of ['out.csv', 'out.ndjson', 'out.parquet']) {
      expect(await run(['export', url, 'pages', folder.file(name)])).toMatchObject({ status: 0 });
      const target = folder.url(`copy of ${name}`);
      const definition = folder.file('pages.json');
      const copied = await run(['import', target, 'pages', folder.file(name), '--schema', definition]);
      expect(copied.status, copied.messages).toBe(0);
      const { output } = await run(['query', target, 'pages', '--json']);
      expect(jsonLines(output)).toEqual(await rows());
    }
  });

  it('clear rows by their keys', async () => {
    expect(await run(['clear', url, 'pages', '--where', 'tenant = 1', '--yes'])).toMatchObject({ status: 0 });
    expect(await rows('--fields', 'tenant,slug')).toEqual([{ tenant: 2, slug: 'a' }]);
    expect(await run(['clear', url, 'pages', '--yes'])).toMatchObject({ status: 0 });
    expect(await rows()).toEqual([]);
  });

  it('name the fields of the key', async () => {
    const { output } = await run(['tables', url]);
    expect(output).toContain('tenant, slug');
    const told = await run(['tables', url, '--json']);
    expect(told.output).toContain('"primaryKey":["tenant","slug"]');
    expect(await run(['verify', url, '--deep'])).toMatchObject({ status: 0 });
    const explained = await run(['explain', url, 'pages', '--where', "tenant = 1 and slug >= 'a'"]);
    expect(explained.output).toContain('Reads 1 range of primary keys');
    const shell = await run(['shell', url], {
      input: "pages where tenant = 1 and slug = 'a';\n.tables\n",
    });
    expect(shell.output).toContain('one');
    expect(shell.output).toContain('tenant, slug');
  });

  it('write the key into rows recovered from blocks', async () => {
    const { output } = await run(['cat', url, 'block0', '--json']);
    expect(output).toContain('"primaryKey":["tenant","slug"]');
    const log = await run(['log', url, '--json']);
    expect(log.status, log.messages).toBe(0);
  });
});
