/** The messages of the command line for wrong usage, after which it never writes. */
import { readdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { commands } from '../../../src/cli/program.ts';
import { run, TestFolder } from './shell.ts';

describe('usage', () => {
  it.each([
    [[], 'Which command?'],
    [['querry', 'file:./data'], 'There is no command querry: did you mean query?'],
    [['query', 'file:./data'], 'Name the query: store-db query <database> <query>\n'],
    [['tables', 'file:./data', 'a', 'b'], '2 words are too many: store-db tables <database>\n'],
    [['schema'], 'Which command? See store-db schema --help.'],
    [['schema', 'drft', 'a.csv'], 'store-db schema has no command drft: did you mean draft?'],
    [['tables', 'file:./data', '--colour'], 'There is no option --colour.'],
    [['tables', './data'], 'write file:./data'],
    [['tables', 'http://example.com/data'], 'is no URL of a database'],
    [['tables', 'file:'], 'names no folder'],
    [['tables', 's3://'], 'names no bucket'],
    [['tables', 's3://key:secret@bucket/x'], 'AWS_ACCESS_KEY_ID'],
    [['tables', 's3://bucket/x?endpont=http://localhost'], 'parameter endpont'],
    [
      ['tables', 'file:./data#x', '--colour', '--jsn'],
      'There is no option --colour. There is no option --jsn: did you mean --json?',
    ],
    [
      ['snapshots', 'release', 'file:./data#x', 'a', '--lg-level', 'info'],
      'There is no option --lg-level: did you mean --log-level?',
    ],
    [
      ['tables', 'file:./data#x', '--log-level', 'loud'],
      '--log-level takes debug, info, warn, error or silent, and not loud.\n',
    ],
    [
      ['import', 'a.csv', 'file:./data'],
      'file:./data is a database and must come first: store-db import file:./data <table>',
    ],
    [['import', 'a.csv', 'file:./data', 't', '--create'], 'file:./data is a database and must come first'],
    [['export', 'file:./data#x', 't', '--format', 'ndjsn'], 'and not ndjsn: did you mean ndjson?'],
    [['import', 'file:./data#x', 't', 'a.csv', '--encoding', 'latin-7'], 'gbk or gb18030, and not latin-7.'],
    [['log', 'file:./data', '--limit', 'x'], '--limit takes a number, and not x.'],
    [['log', 'file:./data', '--limit'], '--limit needs a value.'],
    [['query', 'file:./data', 't', '--where', '--json'], '--where needs a value. Write --where=... for one'],
    [['tables', 'file:./data', '--json=yes'], '--json takes no value, or true or false, and not yes.'],
    [['query', 'file:./data', 't', '--no-pagr'], 'There is no option --no-pagr: did you mean --no-pager?'],
    [['tables', 'file:./data', '-q'], 'There is no option -q.'],
    [['completion', 'fish'], 'shell takes bash or zsh, and not fish.'],
    [['s3://key:secret@bucket/x'], 'The first word is no command.'],
  ])('%j', async (words, message) => {
    const { status, output, messages } = await run(words);
    expect({ status, output, messages }).toEqual({
      status: 2,
      output: '',
      messages: expect.stringContaining(message) as unknown,
    });
    // Never what may be a secret.
    expect(messages).not.toContain('key:secret');
  });

  it('every command has a help that describes it', async () => {
    const { output, status } = await run(['--help']);
    expect(status).toBe(0);
    for (const { name, summary } of commands) {
      expect(output).toContain(`store-db ${name} `);
      const help = await run([name, '--help']);
      expect(help.output.replace(/\s+/g, ' ')).toContain(summary.replace(/\s+/g, ' '));
    }
  });

  it('has options of the same type in all commands that share a name, so that they may stand before the command', () => {
    const types = new Map<string, string>();
    const all = [...commands, ...commands.flatMap(({ subcommands = [] }) => subcommands)];
    for (const { options } of all) {
      for (const [name, { type }] of Object.entries(options)) {
        const kind = type === 'boolean' ? 'flag' : 'value';
        expect(types.get(name) ?? kind, name).toBe(kind);
        types.set(name, kind);
      }
    }
  });

  it('prints a script that completes commands, and completes them', async () => {
    expect((await run(['completion'])).output).toContain('begin-store-db-completions');
    expect((await run(['--get-completions', 'store-db', 'sn'])).output).toBe('snapshots\n');
  });
});

describe('a place without a database', () => {
  it('is reported, and stays unchanged', async () => {
    await using folder = await TestFolder.make();
    for (const command of ['tables', 'stats', 'verify', 'log', 'cat', 'snapshots', 'cost']) {
      const { status, messages } = await run([command, folder.url()]);
      expect({ status, messages }).toEqual({
        status: 2,
        messages: expect.stringContaining('There is no database in') as unknown,
      });
      expect((await run([command, folder.url('app')])).status).toBe(2);
    }
    expect((await run(['gc', folder.url('app'), '--yes'])).status).toBe(2);
    expect(await readdir(folder.path)).toEqual([]);
  });

  it('errors are JSON for those who want that', async () => {
    await using folder = await TestFolder.make();
    const { messages } = await run(['tables', folder.url('app'), '--json']);
    expect(JSON.parse(messages)).toEqual({
      error: { code: 'USAGE', message: expect.stringContaining('#app') as unknown },
    });
  });
});

describe('a place with several databases', () => {
  it('has them named', async () => {
    await using folder = await TestFolder.make();
    const schema = folder.file('t.json');
    const { writeFile } = await import('node:fs/promises');
    await writeFile(schema, JSON.stringify({ name: 't', version: 1, fields: { id: 'uint8' }, primaryKey: 'id' }));
    for (const prefix of ['shop', 'tenants/a', 'tenants/b']) {
      const words = ['import', folder.url(prefix), 't', '--schema', schema];
      expect((await run(words, { input: '{"id":1}' })).status).toBe(0);
    }
    const { status, messages } = await run(['tables', folder.url()]);
    expect(status).toBe(2);
    for (const prefix of ['shop', 'tenants/a', 'tenants/b']) expect(messages).toContain(`  ${folder.url(prefix)}\n`);
    expect((await run(['query', folder.url('tenants/b'), 't', '--count'])).output).toBe('1\n');
    const unknown = await run(['query', folder.url('shop'), 'orders']);
    expect(unknown).toMatchObject({ status: 2, messages: expect.stringContaining('The tables are t.') as unknown });
    for (const where of ['id', 'name = x', 'id = x', 'id ~ 5']) {
      expect((await run(['query', folder.url('shop'), 't', '--where', where])).status).toBe(2);
    }
  });
});

describe('the keys of an encrypted database', () => {
  it.each([
    ['{"keys":{"a":"c2VjcmV0', 'is not JSON'],
    ['{"keys":{"a":"c2VjcmV0"},"current":"a"}', 'encryption'],
    ['c2VjcmV0', 'cannot be read'],
  ])('are not shown to anybody: %s', async (given, message) => {
    await using folder = await TestFolder.make();
    const { status, output, messages } = await run(['tables', folder.url('nothing'), '--keys', given]);
    expect(status).not.toBe(0);
    expect(messages).toContain(message);
    expect(output + messages).not.toContain('c2VjcmV0');
  });
});
