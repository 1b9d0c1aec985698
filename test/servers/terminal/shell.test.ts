/** The shell as somebody sits before it: Tab, earlier lines, Ctrl-C, questions, and narrow terminals. */
import { readFile, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestFolder } from '../../features/cli/shell.ts';
import { TmuxTerminal } from './tmux.ts';

let folder: TestFolder;
let terminal: TmuxTerminal;

const shell = 'STOREDB_PAGER=cat STOREDB_HISTORY="$PWD_HISTORY" store-db shell "$DATA#shop"';

beforeAll(async () => {
  folder = await TestFolder.make();
  const fields = {
    id: 'uint32',
    name: 'varchar',
    country: 'varchar',
    note: 'varchar',
    more: 'varchar',
    most: 'varchar',
  };
  await writeFile(folder.file('t.json'), JSON.stringify({ name: 'cities', version: 1, fields, primaryKey: 'id' }));
  const rows = Array.from({ length: 20_000 }, (_, id) => ({
    id,
    name: id % 2 === 0 ? `東京都 ${id}` : `City ${id}`,
    country: ['FR', 'JP'][id % 2],
    note: id % 3 === 0 ? null : 'n'.repeat(60),
    more: 'm'.repeat(60),
    most: 'm'.repeat(60),
  }));
  await writeFile(folder.file('rows.ndjson'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  terminal = await TmuxTerminal.open(folder.path, 40);
  await terminal.run(`PWD_HISTORY='${folder.file('history')}'`);
  const imported = `store-db import "$DATA#shop" cities '${folder.file('rows.ndjson')}' --schema '${folder.file('t.json')}'`;
  expect(await terminal.run(imported)).toMatchObject({ status: 0 });
});

afterAll(async () => {
  await (terminal as TmuxTerminal | undefined)?.[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const atPrompt = (screen: { readonly text: string }): boolean => screen.text.endsWith('\nshop>');

async function open(): Promise<void> {
  await terminal.start(shell);
  await terminal.until(atPrompt);
}

async function leave(): Promise<void> {
  await terminal.key('C-d');
  expect((await terminal.until(({ text }) => /^status:/m.test(text))).text).toContain('status:0');
}

describe('the shell', () => {
  it('completes names by Tab, and shows a field in a line where the terminal is narrow', async () => {
    await open();
    // Each by itself: a Tab that comes together with letters is taken for pasted text.
    await terminal.type('cit');
    await terminal.until((screen) => screen.text.endsWith('\nshop> cit'));
    await terminal.key('Tab');
    await terminal.until((screen) => screen.text.endsWith('\nshop> cities'));
    await terminal.line(' where id = 2');
    const { text } = await terminal.until((screen) => atPrompt(screen) && /1 row/.test(screen.text));
    expect(text).toContain('cities where id = 2');
    expect(text).toContain('name     東京都 2');
    expect(text).toContain('country  FR');
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40);
    await leave();
  });

  it('keeps lines for the next time', async () => {
    await open();
    await terminal.line('select count() from cities');
    await terminal.until((screen) => atPrompt(screen) && /20000/.test(screen.text));
    await leave();
    expect(await readFile(folder.file('history'), 'utf8')).toContain('select count() from cities\n');
    await open();
    await terminal.key('Up');
    await terminal.key('Enter');
    await terminal.until((screen) => atPrompt(screen) && /20000/.test(screen.text));
    await leave();
  });

  it('stops a query by Ctrl-C and goes on, gives up a line by it, and leaves at the second', async () => {
    await open();
    await terminal.line('cities limit 20000');
    await terminal.until(({ text }) => /City \d+/.test(text));
    await terminal.key('C-c');
    await terminal.until((screen) => atPrompt(screen) && /Stopped\./.test(screen.text));
    await terminal.type('select nothing');
    await terminal.key('C-c');
    await terminal.until(({ text }) => /select nothing|shop>\n+shop>/.test(text));
    await terminal.line('select count() from cities');
    await terminal.until((screen) => atPrompt(screen) && /20000/.test(screen.text));
    await terminal.key('C-c');
    await terminal.until(({ text }) => /again/.test(text));
    await terminal.key('C-c');
    expect((await terminal.until(({ text }) => /^status:/m.test(text))).text).toContain('status:0');
  });

  it('lets commands ask, and goes on after an error', async () => {
    await open();
    await terminal.line('citis');
    await terminal.until((screen) => atPrompt(screen) && /mean cities/.test(screen.text));
    await terminal.line('.clear cities --where "id >= 19000"');
    await terminal.until(({ text }) => /\(y\/N\)/.test(text.replaceAll('\n', '')));
    await terminal.line('y');
    await terminal.until((screen) => atPrompt(screen) && /1,000 rows of cities deleted/.test(screen.text));
    await terminal.line('select count() from cities');
    await terminal.until((screen) => atPrompt(screen) && /19000/.test(screen.text));
    await leave();
  });
});
