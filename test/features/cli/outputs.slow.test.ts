/** Where results go: terminals with and without a pager, pipes, links, devices, and places that take nothing more. */
import { execFile } from 'node:child_process';
import { copyFile, lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import path from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleProgram } from '../../simulation/crash/program-bundle.ts';
import { TableWriter } from '../../../src/cli/terminal/text-table.ts';
import { Terminal } from '../../../src/cli/terminal/terminal.ts';
import { PassThrough } from 'node:stream';
import { run, TestFolder } from './shell.ts';

const execute = promisify(execFile);
const rows = 3000;
const root = fileURLToPath(new URL('../../../', import.meta.url));

let folder: TestFolder;
let url: string;
let program: string;

beforeAll(async () => {
  folder = await TestFolder.make();
  url = folder.url('main');
  const fields = { id: 'uint32', name: 'varchar', n: 'int32' };
  await writeFile(folder.file('t.json'), JSON.stringify({ name: 't', version: 1, fields, primaryKey: 'id' }));
  const lines = Array.from({ length: rows }, (_, id) => `${JSON.stringify({ id, name: `Name ${id}`, n: -id })}\n`);
  const words = ['import', url, 't', '--schema', folder.file('t.json')];
  expect(await run(words, { input: lines.join('') })).toMatchObject({ status: 0 });
  program = bundleProgram(
    new URL('../../../src/cli/main.ts', import.meta.url),
    path.join(folder.path, 'package', 'dist', 'cli'),
  );
  await copyFile(path.join(root, 'package.json'), path.join(folder.path, 'package', 'package.json'));
}, 60_000);
afterAll(() => folder[Symbol.asyncDispose]());

/** A line for a shell in which `store-db` is the command, as a process of its own. */
async function shell(
  line: string,
): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }> {
  const script = `set -o pipefail; store-db() { '${process.execPath}' '${program}' "$@"; }; cd '${folder.path}'; ${line}`;
  const env = { ...process.env, URL: url };
  try {
    return { status: 0, ...(await execute('bash', ['-c', script], { env })) };
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string };
    return { status: code, stdout, stderr };
  }
}

describe('a long table', () => {
  it('is printed piece by piece, at any length', async () => {
    const output = new PassThrough();
    const terminal = new Terminal(new PassThrough(), output, new PassThrough());
    let read = 0;
    let maxWaiting = 0;
    output.on('data', (chunk: Buffer) => (read += chunk.length));
    const table = new TableWriter(terminal, [{ name: 'id', align: 'right' }, { name: 'what' }]);
    for (let i = 0; i < 200_000; i++) {
      await table.add([String(i), 'x'.repeat(i % 20)]);
      maxWaiting = Math.max(maxWaiting, output.writableLength);
    }
    table.end();
    await terminal.flushed();
    expect(read).toBeGreaterThan(200_000 * 15);
    expect(maxWaiting).toBeLessThan(400_000);
  }, 20_000);

  it('lines up behind the rows that were measured, and cuts nothing in a pipe', async () => {
    const { output } = await run(['query', url, 't']);
    const lines = output.trimEnd().split('\n');
    expect(lines).toHaveLength(rows + 1);
    expect(lines.at(-1)?.trim().split(/ +/)).toEqual(['2999', 'Name', '2999', '-2999']);
  });

  it('is cut to the first rows in a terminal without a pager, with word of it', async () => {
    process.env['STOREDB_PAGER'] = '';
    const { output, messages } = await run(['query', url, 't'], { tty: 'both' });
    expect(output.split('\n')).toHaveLength(100 + 4 + 1);
    expect(messages).toContain('first 100 rows, but there are more');
    const all = await run(['query', url, 't', '--limit', '2500'], { tty: 'both' });
    expect(all.output.split('\n')).toHaveLength(2500 + 4 + 1);
  });
});

describe('a pager', () => {
  it('gets all rows, with values that a terminal can show', async () => {
    process.env['STOREDB_PAGER'] = `cat > '${folder.file('paged')}'`;
    const { output, status } = await run(['query', url, 't'], { tty: 'both' });
    expect({ output, status }).toEqual({ output: '', status: 0 });
    const lines = (await readFile(folder.file('paged'), 'utf8')).split('\n');
    expect(lines).toHaveLength(rows + 4 + 1);
    expect(lines[1]).toContain('name');
  });

  it('may be left before the end', async () => {
    process.env['PAGER'] = `head -n 3 > '${folder.file('left')}'`;
    const { output, messages, status } = await run(['query', url, 't'], { tty: 'both' });
    expect({ output, messages, status }).toEqual({ output: '', messages: '', status: 0 });
    expect((await readFile(folder.file('left'), 'utf8')).split('\n')).toHaveLength(4);
  });

  it('that is missing is reported', async () => {
    process.env['PAGER'] = 'no-such-pager-1';
    const { messages, status } = await run(['query', url, 't'], { tty: 'both' });
    expect(messages).toContain('--no-pager');
    expect(status).toBe(2);
  });

  it('is not asked where nobody sits before a terminal, for JSON, or with --no-pager', async () => {
    process.env['STOREDB_PAGER'] = `cat > '${folder.file('never')}'`;
    for (const [words, options] of [
      [[], {}],
      [[], { tty: 'output' }],
      [['--json'], { tty: 'both' }],
      [['--no-pager'], { tty: 'both' }],
    ] as const) {
      const { output } = await run(['query', url, 't', ...words], options);
      expect(output).toContain('Name 7');
    }
    await expect(lstat(folder.file('never'))).rejects.toThrow('ENOENT');
  });
});

describe('an export', () => {
  const exported = (file: string, ...words: string[]) => run(['export', url, 't', folder.file(file), ...words]);

  it('goes through a link to where it leads, and leaves the link', async () => {
    await mkdir(folder.file('elsewhere'));
    await writeFile(folder.file('elsewhere/old.csv'), 'before');
    await symlink('elsewhere/old.csv', folder.file('link.csv'));
    await symlink(path.join('elsewhere', 'new.csv'), folder.file('dangling.csv'));
    for (const [link, file] of [
      ['link.csv', 'elsewhere/old.csv'],
      ['dangling.csv', 'elsewhere/new.csv'],
    ] as const) {
      expect(await exported(link)).toMatchObject({ status: 0 });
      expect(await readlink(folder.file(link))).toBe(file);
      expect((await readFile(folder.file(file), 'utf8')).split('\n')).toHaveLength(rows + 2);
    }
    expect(await readdir(folder.file('elsewhere'))).toEqual(['new.csv', 'old.csv']);
    await symlink('round', folder.file('round'));
    expect(await exported('round')).toMatchObject({ status: expect.not.stringMatching('0') as unknown });
  });

  it('goes into a named pipe once somebody reads it, and leaves it', async () => {
    await execute('mkfifo', [folder.file('pipe')]);
    const [{ status }, text] = await Promise.all([exported('pipe'), textOf(createReadStream(folder.file('pipe')))]);
    expect(status).toBe(0);
    expect(text.split('\n')).toHaveLength(rows + 1);
    expect((await lstat(folder.file('pipe'))).isFIFO()).toBe(true);
  });

  it('gives up waiting for a reader of a pipe on a signal', async () => {
    await execute('mkfifo', [folder.file('unread')]);
    const words = ['export', url, 't', folder.file('unread')];
    expect(await run(words, { signal: AbortSignal.timeout(400) })).toMatchObject({ status: 130 });
  });

  it('goes to a device, and reports a full one', async () => {
    expect(await run(['export', url, 't', '/dev/null'])).toMatchObject({ status: 0 });
    expect((await lstat('/dev/null')).isCharacterDevice()).toBe(true);
    const { status, messages } = await run(['export', url, 't', '/dev/full']);
    expect(status).toBe(3);
    expect(messages).toContain('/dev/full cannot be written: ENOSPC');
    expect(messages).not.toMatch(/^ +at /m);
    expect(await run(['export', url, 't', folder.path])).toMatchObject({ status: 2 });
  });

  it('into a missing folder is reported', async () => {
    const { status, messages } = await run(['export', url, 't', folder.file('nowhere/t.csv')]);
    expect(status).toBe(2);
    expect(messages).toContain(`There is no folder ${folder.file('nowhere')}`);
  });

  it('as Parquet goes into a named pipe as it goes into a file', async () => {
    const { status } = await shell(
      'store-db export "$URL" t t.parquet && mkfifo pq && (cat pq > piped.parquet & store-db export "$URL" t pq --format parquet && wait) && cmp t.parquet piped.parquet',
    );
    expect(status).toBe(0);
  });

  it('counts the texts that a spreadsheet takes for formulas, and defuses them if asked', async () => {
    const texts = ['=1+1', '+1', '-1', '@x', "'=1", 'a=b', '\t=1'];
    const lines = texts.map((name, id) => `${JSON.stringify({ id, name, n: -id })}\n`).join('');
    const where = folder.url('formulas');
    await run(['import', where, 't', '--schema', folder.file('t.json')], { input: lines });
    const plain = await run(['export', where, 't', folder.file('plain.csv')]);
    expect(plain.messages).toContain('run 5 texts as formulas');
    const defused = await run(['export', where, 't', folder.file('defused.csv'), '--defuse-formulas']);
    expect(defused.messages).not.toContain('formulas');
    const cells = (await readFile(folder.file('defused.csv'), 'utf8')).split('\n').map((line) => line.split(',')[1]);
    expect(cells.slice(1, 7)).toEqual(["'=1+1", "'+1", "'-1", "'@x", "'=1", 'a=b']);
    // Numbers are none.
    expect(await readFile(folder.file('defused.csv'), 'utf8')).toContain(',-5');
    expect((await run(['export', where, 't'])).messages).not.toContain('formulas');
  });

  it('is of the columns, the rows and the order that are asked for, as JSON, CSV or TSV, compressed or not', async () => {
    const some = ['--columns', 'n,name', '--where', 'id >= 10 and id < 20', '--order', 'n', '--limit', '2'];
    const wanted = [
      { n: -19, name: 'Name 19' },
      { n: -18, name: 'Name 18' },
    ];
    for (const [file, text] of [
      ['some.json', `[\n${wanted.map((row) => JSON.stringify(row)).join(',\n')}\n]\n`],
      ['some.ndjson', wanted.map((row) => `${JSON.stringify(row)}\n`).join('')],
      ['some.csv', 'n,name\n-19,Name 19\n-18,Name 18\n'],
      ['some.tsv', 'n\tname\n-19\tName 19\n-18\tName 18\n'],
    ] as const) {
      expect(await exported(file, ...some)).toMatchObject({ status: 0 });
      expect(await readFile(folder.file(file), 'utf8')).toBe(text);
      expect(await exported(`${file}.gz`, ...some)).toMatchObject({ status: 0 });
      expect(gunzipSync(await readFile(folder.file(`${file}.gz`))).toString()).toBe(text);
    }
    expect(await exported('none.json', '--where', 'id < 0')).toMatchObject({ status: 0 });
    expect(JSON.parse(await readFile(folder.file('none.json'), 'utf8'))).toEqual([]);
    const piped = await shell('store-db export "$URL" t --gzip --format csv | gunzip | wc -l');
    expect(piped).toMatchObject({ status: 0, stdout: expect.stringMatching(/^\s*3001\n$/) as unknown });
    expect((await shell('store-db export "$URL" t --gzip | head -c 10 | wc -c')).stdout.trim()).toBe('10');
    expect(await run(['export', url, 't', '/dev/full', '--gzip'])).toMatchObject({ status: 3 });
  });

  it.each([
    [['t', 'x.csv', '--columns', 'id,nmae'], 'did you mean name'],
    [['t', 'x.csv', '--where', 'id = 1 id'], 'Expected and'],
    [['t', 'x.csv', '--order', 'id up'], 'Expected'],
    [['t', 'x.csv', '--limit', '-1'], 'whole number'],
    [['t', 'x.csv.zst'], 'name it .gz'],
    [['t', 'x.xlsx'], 'which is no format of exports'],
    [['t where id = 1', 'x.csv'], 'There is no table'],
  ])('that is not understood writes nothing: %j', async ([table = '', file = '', ...words], message) => {
    const before = await readdir(folder.path);
    const { status, messages } = await run(['export', url, table, folder.file(file), ...words]);
    expect({ status, messages }).toEqual({ status: 2, messages: expect.stringContaining(message) as unknown });
    expect(await readdir(folder.path)).toEqual(before);
  });

  it('that is no text is not for a terminal', async () => {
    const { status, output } = await run(['export', url, 't', '--gzip'], { tty: 'output' });
    expect({ status, output }).toEqual({ status: 2, output: '' });
  });

  it('of an import from a pipe needs no second reading', async () => {
    await execute('mkfifo', [folder.file('in')]);
    const line = `store-db export "$URL" t > in & store-db import 'file:db#piped' t in --schema t.json; wait`;
    expect(await shell(line)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('3,000 rows imported') as unknown,
    });
  });
});

describe('an output that takes no more', () => {
  it.each(['export "$URL" t', 'query "$URL" t', 'query "$URL" t --json', 'tables "$URL"', '--help'])(
    'is reported in a line if it is full: %s',
    async (words) => {
      const { status, stderr } = await shell(`store-db ${words} > /dev/full`);
      expect(status).toBe(3);
      expect(stderr).toMatch(/^(?:error: |\{.*)The output cannot be written: ENOSPC/m);
      expect(stderr).not.toMatch(/^ +at |node:/m);
    },
  );

  it.each(['export "$URL" t', 'query "$URL" t', 'query "$URL" t --json', '--help'])(
    'is no failure where its reader has seen enough: %s',
    async (words) => {
      const { status, stdout, stderr } = await shell(`store-db ${words} | head -n 1`);
      expect({ status, stderr }).toEqual({
        status: 0,
        stderr: expect.stringMatching(/^(?:3,000 rows exported\.\n)?$/) as unknown,
      });
      expect(stdout.split('\n')).toHaveLength(2);
      // Nor where messages go the same way.
      expect((await shell(`store-db ${words} 2>&1 | head -n 1`)).stdout).not.toMatch(/EPIPE|Error/);
    },
  );

  it('leaves no snapshot behind', async () => {
    await shell('store-db export "$URL" t | head -n 1');
    expect((await run(['snapshots', url])).messages).toContain('No snapshot is held');
  });
});

describe('keys on the command line', () => {
  it('are taken, with word of who can read them', async () => {
    const keys = JSON.stringify({ keys: { '1': 'bYpWp4mA0rJx0vQ9p6S3kqH1c2m8dJ7yTzXw5uEoLhI=' }, current: '1' });
    const where = folder.url('encrypted');
    const words = ['--schema', folder.file('t.json'), '--keys', keys];
    const made = await run(['import', where, 't', ...words], { input: '{"id":1}\n' });
    expect(made).toMatchObject({ status: 0, messages: expect.stringContaining('can read keys') as unknown });
    expect(made.messages).not.toContain('bYpW');
    // As a shell that does not know of quotes passes it on.
    expect(await run(['query', where, 't', '--count', '--keys', `'${keys}'`])).toMatchObject({
      status: 0,
      output: '1\n',
    });
    expect(await run(['query', where, 't', '--count'])).toMatchObject({ status: 3 });
  });
});
