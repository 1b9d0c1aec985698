/** The command line as somebody sees it: tables that fit, colours, progress, questions, Ctrl-C and pipes. */
import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestFolder } from '../../features/cli/shell.ts';
import { TmuxTerminal } from './tmux.ts';

let folder: TestFolder;
let terminal: TmuxTerminal;
const escape = '\u001b[';

beforeAll(async () => {
  folder = await TestFolder.make();
  const fields = { id: 'uint32', name: 'varchar', note: 'varchar' };
  await writeFile(folder.file('t.json'), JSON.stringify({ name: 't', version: 1, fields, primaryKey: 'id' }));
  const rows = Array.from(
    { length: 60_000 },
    (_, id) => `${JSON.stringify({ id, name: `Name ${id}`, note: 'n'.repeat(150) })}\n`,
  );
  await writeFile(folder.file('rows.ndjson'), rows.join(''));
  await writeFile(folder.file('few.ndjson'), rows.slice(0, 300).join(''));
  terminal = await TmuxTerminal.open(folder.path);
});

afterAll(async () => {
  // Undefined where it could not be opened.
  await (terminal as TmuxTerminal | undefined)?.[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const importing = (prefix: string, file: string): string =>
  `store-db import "$DATA#${prefix}" t '${folder.file(file)}' --schema '${folder.file('t.json')}'`;

describe('in a terminal', () => {
  it('shows tables that fit into its lines, with colours unless they are not wanted', async () => {
    expect(await terminal.run(importing('few', 'few.ndjson'))).toMatchObject({ status: 0 });
    const query = 'store-db query "$DATA#few" t --limit 3';
    const { text, styled } = await terminal.run(query);
    const lines = text.split('\n').filter((line) => /[│┌└├]/.test(line));
    expect(new Set(lines.map((line) => line.trimEnd().length)).size).toBe(1);
    expect(lines[0]?.length).toBeLessThanOrEqual(90);
    expect(lines).toHaveLength(7);
    expect(text).toContain('nnn…');
    expect(styled).toContain(`${escape}1m`);
    const plain = await terminal.run(`NO_COLOR=1 ${query}`);
    expect(plain.styled).not.toContain(`${escape}1m`);
    expect(plain.text).toContain('nnn…');
  });

  it('gives pipes neither lines nor colours, cuts nothing, and ends when nobody reads on', async () => {
    const piped = await terminal.run(`store-db query "$DATA#few" t --limit 1 --fields id,note | tr -d 'n' | cat -v`);
    expect(piped.text).not.toMatch(/[│…]|\^\[/);
    const cut = await terminal.run('store-db export "$DATA#few" t | head -n 1 | cut -c 1-30');
    expect(cut.text).toContain('{"id":0,"name":"Name 0","note"');
    expect(cut.text).not.toMatch(/EPIPE|Error/);
  });

  it('shows how far it is, and leaves nothing half done after Ctrl-C', async () => {
    await terminal.start(`${importing('many', 'rows.ndjson')} --rows-per-flush 500`);
    await terminal.until(({ text }) => /importing t .*█.* to go/.test(text));
    await terminal.key('C-c');
    const { text, showsCursor } = await terminal.until((screen) => /^status:\d+$/m.test(screen.text));
    expect(showsCursor).toBe(true);
    expect(text).toContain('status:130');
    // The terminal breaks lines anywhere, also within a number.
    const said = /([\d,]+)rowsuptoline(\d+)areimported.*--from-line(\d+)/.exec(text.replace(/\s/g, ''));
    const rows = Number(said?.[1]?.replace(',', ''));
    expect(rows % 500).toBe(0);
    expect(Number(said?.[3])).toBe(rows + 1);
    const counted = await terminal.run('store-db query "$DATA#many" t --count');
    expect(counted.text.split('\n')).toContain(String(rows));
    expect((await terminal.run('store-db verify "$DATA#many" --deep')).status).toBe(0);
  });

  it('asks before steps that cannot be undone', async () => {
    const question = /Delete the garbage of file:.*\(y\/N\)/s;
    await terminal.start('store-db gc "$DATA#many"');
    await terminal.until(({ text }) => question.test(text));
    await terminal.key('Enter');
    expect((await terminal.until(({ text }) => /^status:/m.test(text))).text).toContain('status:130');
    await terminal.start('store-db gc "$DATA#many" --log-hours 0');
    await terminal.until(({ text }) => question.test(text));
    await terminal.line('y');
    expect((await terminal.until(({ text }) => /^status:/m.test(text))).text).toMatch(/deleted|Nothing to delete/);
    await terminal.start('store-db gc "$DATA#many"');
    await terminal.until(({ text }) => question.test(text));
    await terminal.key('C-c');
    const { text, showsCursor } = await terminal.until((screen) => /^status:/m.test(screen.text));
    expect(text).toContain('status:130');
    expect(showsCursor).toBe(true);
  });

  it('makes a table of a file once somebody has said yes', async () => {
    await writeFile(folder.file('cities.csv'), 'code,name\nFR,Paris\n');
    const create = `store-db import "$DATA#drafted" '${folder.file('cities.csv')}' --create`;
    const question = /Create table cities in .*1 row\?.*\(y\/N\)/s;
    await terminal.start(create);
    expect((await terminal.until(({ text }) => question.test(text))).text).toContain("primaryKey: 'code'");
    await terminal.key('Enter');
    expect((await terminal.until(({ text }) => /^status:/m.test(text))).text).toContain('status:130');
    expect((await terminal.run('store-db tables "$DATA#drafted"')).status).toBe(2);
    await terminal.start(create);
    await terminal.until(({ text }) => question.test(text));
    await terminal.line('y');
    expect((await terminal.until(({ text }) => /^status:/m.test(text))).text).toContain('1 row imported into cities.');
  });

  it('prints errors in red, and names the help', async () => {
    const { styled, status } = await terminal.run('store-db tabels "$DATA"');
    expect(status).toBe(2);
    expect(styled).toContain(`${escape}31m`);
    expect(styled).toContain('did you mean tables?');
  });
});
