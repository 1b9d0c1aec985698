/** `store-db shell`: statements from the input, and the prompt. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { completions, splitStatements, splitWords } from '../../../src/cli/shell/shell.ts';
import { ShellHistory } from '../../../src/cli/shell/history.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const cities = {
  name: 'cities',
  version: 1,
  fields: { id: 'uint32', name: 'varchar', country: 'varchar', people: 'uint32' },
  primaryKey: 'id',
};

let folder: TestFolder;

beforeAll(async () => {
  folder = await TestFolder.make();
  await writeFile(folder.file('schema.json'), JSON.stringify(cities));
  const rows = ['1,Paris,FR,2100000', '2,Lyon,FR,520000', '3,Berlin,DE,3600000', '4,a;b,DE,1'];
  await writeFile(folder.file('cities.csv'), `id,name,country,people\n${rows.join('\n')}\n`);
  await run([
    'import',
    folder.url('shop'),
    'cities',
    folder.file('cities.csv'),
    '--schema',
    folder.file('schema.json'),
  ]);
});

afterAll(() => folder[Symbol.asyncDispose]());

const page = readFile(new URL('../../../docs/cli.md', import.meta.url), 'utf8');

/** A block of the page, by how its first line begins. */
async function blockOf(begin: string): Promise<string> {
  const blocks = Array.from((await page).matchAll(/^```text\n(.*?)\n```$/gms), ([, text]) => text as string);
  const found = blocks.filter((text) => text.startsWith(begin));
  expect(found).toHaveLength(1);
  return found[0] as string;
}

describe('the examples of docs/cli.md', () => {
  it('show a session as a terminal does', async () => {
    const example = await blockOf('shop> ');
    const prompt = 'shop> ';
    const typed = example.split('\n').filter((line) => line.startsWith(prompt));
    const lines = [...typed.map((line) => line.slice(prompt.length)), '.quit'];
    process.env['STOREDB_PAGER'] = '';
    process.env['STOREDB_HISTORY'] = '';
    const input = new PassThrough();
    let answered = 0;
    const ran = await run(['shell', folder.url()], {
      input,
      tty: 'screen',
      // Each is typed once the shell asks for it: with the prompt, which is not what was typed behind one.
      onOutput: (text) => {
        const prompts = stripVTControlCharacters(text).split(prompt).length - 1;
        if (prompts > answered) input.write(`${lines[answered++] ?? ''}\n`);
      },
    });
    expect(ran.status).toBe(0);
    const screen = stripVTControlCharacters(ran.output).replaceAll('\r', '');
    expect(screen).toContain(`\n${example}\n${prompt}.quit\n`);
  });

  it('show the mistake in a condition with its message', async () => {
    const example = await blockOf('error: Table cities has no field');
    const ran = await run(['query', folder.url(), 'cities', '--where', 'contry = FR']);
    expect(ran).toEqual({ status: 2, output: '', messages: `${example}\n` });
  });
});

const shell = (input: string, ...words: string[]) => run(['shell', folder.url(), ...words], { input });

describe('statements from the input', () => {
  it('are queries, one in a line, and commands with a dot', async () => {
    const { status, output, messages } = await shell(`select name from cities limit 1\n\n.tables\n.help\n`);
    expect(messages).toBe('');
    expect(status).toBe(0);
    expect(output).toMatch(/^name\nParis\n/);
    expect(output).toContain('cities        1     4  id');
    expect(output).toContain('.explain QUERY');
  });

  it('go on in the next line until they are complete, and end with ; in any case', async () => {
    const { status, output } = await shell(
      "select name\nfrom cities\n;cities where name = 'a;b';select count() from cities",
    );
    expect(status).toBe(0);
    expect(output.split('\n').filter((line) => /^name|^\s*4|^count/.test(line))).toHaveLength(4);
  });

  it('are JSON if that is wanted', async () => {
    const { output } = await shell(
      "select name from cities where country = 'DE' limit 1\nselect count() from cities",
      '--json',
    );
    expect(jsonLines(output)).toEqual([{ name: 'Berlin' }, { count: 4 }]);
  });

  it('end with the first that fails, with its status and its line', async () => {
    const { status, output, messages } = await shell('select count() from cities\n\ncitis\nselect name from cities\n');
    expect(status).toBe(2);
    expect(output).not.toContain('Paris');
    expect(messages).toMatch(/^In line 3 of the input:\nerror: There is no table citis .*did you mean cities\?/);
    const json = await shell('cities wher id = 1\n', '--json');
    expect(json.status).toBe(2);
    expect(JSON.parse(json.messages)).toMatchObject({ error: { code: 'USAGE', position: 8 } });
  });

  it('recognise a query that is not complete at the end', async () => {
    const { status, messages } = await shell('select name\n');
    expect(status).toBe(2);
    expect(messages).toContain('Expected from and a table');
  });

  it('run commands with the database of the shell, and show their changes', async () => {
    await writeFile(folder.file('more.csv'), 'code,label\nx,y\n');
    const { status, output, messages } = await shell(
      `cities where id = 1\n.import '${folder.file('more.csv')}' --create --table codes --yes\ncodes\n.clear codes --yes\nselect count() from codes\n`,
    );
    expect(messages).not.toContain('error');
    expect(status).toBe(0);
    expect(output).toContain('code  label\nx     y');
    expect(output).toMatch(/count\n\s*0\n/);
  });

  it('end with the status of a command that fails', async () => {
    expect((await shell('.import cities no-such-file.csv\nselect count() from cities\n')).output).not.toContain(
      'count',
    );
    const { status, messages } = await shell('.tabels\n');
    expect(status).toBe(2);
    expect(messages).toContain('There is no command .tabels: did you mean .tables?');
    expect((await shell('.explain\n')).messages).toContain('.explain takes a query');
    for (const line of ['.schema cities', '.schema']) {
      const shown = await shell(`${line}\n`);
      expect(shown.status).toBe(0);
      expect(shown.output).toMatch(/^cities, version 1$/m);
      expect(shown.output).toMatch(/name varchar[^]*primary key +id\n[^]*indexes +none/);
    }
    expect((await shell('.schema citis\n')).messages).toContain('did you mean cities?');
    expect((await shell('.quit\ncitis\n')).status).toBe(0);
  });

  it('explain a query as it is written', async () => {
    const { status, output } = await shell(".explain cities where name = 'it''s'\n");
    expect(status).toBe(0);
    expect(output).toContain('Tests name');
  });
});

describe('writes', () => {
  it.each<[string, string[], boolean]>([
    ['a; b', ['a', 'b'], false],
    ["a where b = ';' ;", ["a where b = ';'"], true],
    ['a where "x;y" = 1;;', ['a where "x;y" = 1'], true],
    ["a where b = 'it''s; c'", ["a where b = 'it''s; c'"], false],
    ["a where b = 'open; c", ["a where b = 'open", 'c'], false],
    ['  ', [], false],
  ])('%s is taken apart', (text, statements, isEnded) => {
    expect(splitStatements(text)).toEqual({ statements, isEnded });
  });

  it('has words as a Unix shell has them', () => {
    expect(splitWords(`cities 'a b.csv' --where "name = 'x y'" --null ''`)).toEqual([
      'cities',
      'a b.csv',
      '--where',
      "name = 'x y'",
      '--null',
      '',
    ]);
    expect(() => splitWords("a 'b")).toThrow("The quote ' is opened here and not closed");
  });
});

describe('completion', () => {
  const tables = [
    { name: 'cities', version: 1, fields: { id: { typeId: 3 }, country: { typeId: 10 } }, primaryKey: 'id' },
    { name: 'orders', version: 1, fields: { id: { typeId: 3 }, total: { typeId: 9 } }, primaryKey: 'id' },
  ] as const;
  it.each<[string, string[]]>([
    ['ci', ['cities']],
    ['', ['cities', 'orders', 'select']],
    ['.ta', ['.tables']],
    ['.export o', ['orders']],
    ['cities where co', ['count()', 'country']],
    ['orders where to', ['total']],
    ['select to', ['total']],
    ['select id from ', ['cities', 'orders']],
    ['cities order', ['order by']],
    ['.explain cities where COU', ['count()', 'country']],
    ['cities where (cou', ['count()', 'country']],
  ])('of %s', (line, expected) => {
    expect(completions(line, tables, ['.tables', '.export'])[0]).toEqual(expected);
  });
});

describe('history', () => {
  it('is kept in a file that others cannot read, each line once in a row', async () => {
    const file = folder.file('state/history');
    const first = await ShellHistory.read(file);
    for (const line of ['a', 'a', ' ', 'b']) first.add(line);
    expect(await first.written()).toBeUndefined();
    expect(await readFile(file, 'utf8')).toBe('a\nb\n');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const second = await ShellHistory.read(file);
    expect(second.newestFirst).toEqual(['b', 'a']);
    second.add('c');
    expect(second.newestFirst[0]).toBe('c');
    await second.written();
    expect((await ShellHistory.read(file)).newestFirst).toEqual(['c', 'b', 'a']);
  });

  it('is cut where it is long, and says where it cannot be written', async () => {
    const file = folder.file('long');
    await writeFile(file, Array.from({ length: 2500 }, (_, i) => `line ${i}\n`).join(''));
    const long = await ShellHistory.read(file);
    await long.written();
    expect((await readFile(file, 'utf8')).split('\n')).toHaveLength(1001);
    const nowhere = await ShellHistory.read('/dev/null/history');
    nowhere.add('a');
    expect(await nowhere.written()).toBeInstanceOf(Error);
    const none = await ShellHistory.read(undefined);
    none.add('a');
    expect(none.newestFirst).toEqual(['a']);
  });
});
