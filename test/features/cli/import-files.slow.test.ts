/** Files as people have them: other encodings, separators and quotes, compressed, several at once; and the mistakes in them. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import * as zlib from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { jsonLines, run, TestFolder } from './shell.ts';
import type { Ran } from './shell.ts';

let folder: TestFolder;
let template: TestFolder;
const fields = { id: 'uint64', name: 'varchar', at: 'timestamp', more: 'json' };

beforeAll(async () => {
  template = await TestFolder.make();
  const indexes = [{ fields: ['name'], unique: true }];
  await writeFile(
    template.file('t.json'),
    JSON.stringify({ name: 't', version: 1, fields, primaryKey: 'id', indexes }),
  );
  await run(['import', template.url('main'), 't', '--schema', template.file('t.json')]);
});

afterAll(async () => {
  await template[Symbol.asyncDispose]();
});

beforeEach(async () => {
  folder = await TestFolder.make();
  await cp(template.path, folder.path, { recursive: true });
});

afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

async function load(name: string, content: string | Uint8Array, ...options: string[]): Promise<Ran> {
  await writeFile(folder.file(name), content);
  return run(['import', folder.url('main'), 't', folder.file(name), '--schema', folder.file('t.json'), ...options]);
}

async function rows(): Promise<Record<string, unknown>[]> {
  const { output, messages } = await run(['query', folder.url('main'), 't', '--json']);
  if (messages.includes('There is no table t')) return [];
  return jsonLines(output) as Record<string, unknown>[];
}

const names = async (): Promise<unknown[]> => (await rows()).map(({ id, name }) => `${String(id)} ${String(name)}`);

describe('a file to import', { timeout: 60_000 }, () => {
  it.each<[string, string | Uint8Array, string[], unknown[]]>([
    ['a.csv', '\ufeffid,name\n1,a\n', [], ['1 a']],
    ['a.csv', 'id;name\n1;"a;b"\n', [], ['1 a;b']],
    ['a.csv', 'id~name\n1~a\n', ['--delimiter', '~'], ['1 a']],
    ['a.txt', 'id\tname\n1\ta\n', ['--format', 'csv', '--delimiter', '\\t'], ['1 a']],
    ['a.tsv', 'id\tname\n1\ta,b\n', [], ['1 a,b']],
    ['a.csv', '1,a\n2,b\n', ['--no-header', '--columns', 'id,name'], ['1 a', '2 b']],
    ['a.csv', 'id,name\n1,5" disk\n', ['--quotes', 'lenient'], ['1 5" disk']],
    ['a.csv', 'Id,Title,x\n1,a,b\n', ['--rename', 'Id=id', '--rename', 'Title=name', '--ignore-extra'], ['1 a']],
    ['a.csv', 'id,name,at\n1,a,never\n', ['--columns', 'id,name'], ['1 a']],
    ['a.csv', 'id,name\n1,NULL\n2,"NULL"\n', ['--null', 'NULL'], ['1 null', '2 NULL']],
    ['a.csv', Buffer.from('id,name\n1,Orléans\n', 'latin1'), ['--encoding', 'iso-8859-1'], ['1 Orléans']],
    ['a.csv', Buffer.from('id,name\n1,Orléans\n', 'latin1'), ['--encoding', 'Latin-1'], ['1 Orléans']],
    ['a.csv', Buffer.from('id,name\n1,Orl\x80ans\n', 'latin1'), ['--encoding', 'CP1252'], ['1 Orl€ans']],
    ['a.csv', Buffer.from('\ufeffid,name\n1,東京\n', 'utf16le'), [], ['1 東京']],
    ['a.json', '[\n{"id":1,"name":"a"},\n{"id":2,"name":"b"}\n]', [], ['1 a', '2 b']],
    ['a.ndjson', '{"id":1,"Name":"a","b":1}\n', ['--rename', 'Name=name', '--ignore-extra'], ['1 a']],
    ['a.csv.gz', gzipSync('id,name\n1,a\n'), [], ['1 a']],
  ])('is read as it is: %s %j %j', async (name, content, options, expected) => {
    expect(await load(name, content, ...options)).toMatchObject({ status: 0 });
    expect(await names()).toEqual(expected);
  });

  it.each<[string, string | Uint8Array, string[], string]>([
    ['a.csv', Buffer.from('id,name\n1,Orléans\n', 'latin1'), [], 'a.csv, line 2, column 6: byte 0xE9 is not utf-8'],
    ['a.csv', 'id,name\n1,5" disk\n', [], 'a.csv, line 2, column 4: a quote'],
    ['a.csv', 'id,name\n1,a\n2,b\n1,c\n', [], 'a.csv, line 4: key id "1" is in line 2 of'],
    ['a.csv', 'id,name\n1,a\n2,b\n3,a\n', [], 'a.csv, line 4: unique index name "a" is in line 2 of'],
    ['a.csv', 'id,at\n1,20240131\n', [], '20240131 would be 1970-01-01'],
    ['a.csv', 'id,at\n1,2024\n', [], '--time-unit'],
    ['a.ndjson', '{"id":1,"at":1706659200}\n', [], '1706659200 would be 1970-01-20'],
    ['a.ndjson', '{"id":1,"more":{"n":[9007199254740993]}}\n', [], '9007199254740993 is not exact in json'],
    ['a.csv', 'id,more\n1,"{""n"":9007199254740993}"\n', [], '9007199254740993 is not exact in json'],
    ['a.csv', 'id\n1\n', ['--columns', 'id,name'], 'no column "name"'],
    ['a.csv.gz', Buffer.from('id,name\n1,a\n'), [], 'a.csv.gz: it cannot be decompressed'],
    [
      'a.csv',
      Buffer.from('id,name\n1,\x93\x8c\x8b\x9e\n', 'latin1'),
      [],
      'in gbk it reads "1,搶嫗", in shift_jis it reads "1,東京": pass --encoding gbk or shift_jis',
    ],
    [
      'a.csv',
      'id,name,name\n1,a,b\n',
      [],
      'names a field twice, "name": read the second into another field by --rename name_2=field',
    ],
    ['a.txt', 'id,name\n1,a\n', [], '(--format csv reads CSV)'],
    ['a.csv.gz', gzipSync('id,name\n1,a\n').subarray(0, 20), [], 'a.csv.gz'],
  ])('is refused before anything is written: %s %j %j', async (name, content, options, message) => {
    const { status, messages } = await load(name, content, ...options);
    expect({ status, messages }).toEqual({ status: 1, messages: expect.stringContaining(message) as unknown });
    expect(messages).toContain('Nothing was imported.');
    expect(await rows()).toEqual([]);
  });

  it('may name the separator of its columns in a first line, as spreadsheets do', async () => {
    expect(await load('a.csv', 'sep=;\r\nid;name\r\n1;"a, b"\r\n')).toMatchObject({ status: 0 });
    expect(await names()).toEqual(['1 a, b']);
    const bad = await load('a.csv', 'sep=|\nid|name\n2|b\n3|c|d\n');
    expect(bad.messages).toContain('a.csv, line 4: it has 3 fields');
  });

  it('may be compressed with zstd, where Node.js can read that', async () => {
    const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Buffer) => Buffer };
    const { status, messages } = await load('a.csv.zst', zstdCompressSync?.(Buffer.from('id,name\n1,a\n')) ?? '');
    expect(messages.includes('zstd -dc')).toBe(zstdCompressSync === undefined);
    expect(status).toBe(zstdCompressSync === undefined ? 2 : 0);
    expect(await names()).toEqual(zstdCompressSync === undefined ? [] : ['1 a']);
  });

  it('has numbers for times, in the unit that is named', async () => {
    const times = { s: '1706659200', ms: '1706659200000', us: '1706659200000000', ns: '1706659200000000001' };
    for (const [unit, time] of Object.entries(times)) {
      expect(await load('a.csv', `id,at\n1,${time}\n`, '--mode', 'upsert', '--time-unit', unit)).toMatchObject({
        status: 0,
      });
      expect(await rows()).toMatchObject([{ at: '2024-01-31T00:00:00.000Z' }]);
    }
    expect(await load('a.ndjson', '{"id":2,"at":1706659200000}\n')).toMatchObject({ status: 0 });
  });

  it('has integers beyond 2^53, which arrive exactly', async () => {
    const text = '{"id":9007199254740993,"more":{"n":9007199254740993}}\n{"id":18446744073709551615}\n';
    expect(await load('a.ndjson', text, '--large-integers', 'text')).toMatchObject({ status: 0 });
    const found = await rows();
    expect(found.map(({ id }) => String(id))).toEqual(['9007199254740993', '18446744073709551615']);
    expect(found[0]?.['more']).toEqual({ n: '9007199254740993' });
  });
});

describe('several files', { timeout: 60_000 }, () => {
  it('are read in their order, by patterns too, and gone on with where one was bad', async () => {
    await writeFile(folder.file('1.csv'), 'id,name\n1,a\n2,b\n');
    await writeFile(folder.file('2.csv'), 'id,name\n3,c\n4,d\nx,e\n');
    await writeFile(folder.file('3.ndjson'), '{"id":6}\n');
    const schema = ['--schema', folder.file('t.json')];
    const words = ['import', folder.url('main'), 't', folder.file('[0-9].csv'), folder.file('3.*'), ...schema];
    const refused = await run(words);
    expect(refused).toMatchObject({
      status: 1,
      messages: expect.stringContaining('2.csv, line 4: field id') as unknown,
    });
    expect(await rows()).toEqual([]);
    const stopped = await run([...words, '--on-bad-row', 'stop', '--rows-per-flush', '1']);
    expect(stopped.status).toBe(1);
    expect(stopped.messages).toContain(`Continue with --from-file ${folder.file('2.csv')} --from-line 4.`);
    expect(await names()).toEqual(['1 a', '2 b', '3 c', '4 d']);
    await writeFile(folder.file('2.csv'), 'id,name\n3,c\n4,d\n5,e\n');
    const rest = await run([...words, '--from-file', folder.file('2.csv'), '--from-line', '4']);
    expect(rest.output).toBe('2 rows imported into t.\n');
    expect(await names()).toEqual(['1 a', '2 b', '3 c', '4 d', '5 e', '6 null']);
  });

  it('are named if there are none', async () => {
    const none = await run(['import', folder.url('main'), 't', folder.file('*.tsv')]);
    expect(none).toMatchObject({ status: 2, messages: expect.stringContaining('No file matches') as unknown });
    expect((await run(['import', folder.url('main'), 't', folder.path])).messages).toContain('is a folder');
  });
});

describe('bad rows', { timeout: 60_000 }, () => {
  const text = 'id,name\n1,a\nx,b\n2,5" disk\n3\n1,c\n4,d\n';

  it('are left out if asked, and listed in a file', async () => {
    const rejects = folder.file('rejects.ndjson');
    const options = ['--on-bad-row', 'skip', '--rejects', rejects, '--rows-per-flush', '2'];
    expect(await load('a.csv', text, ...options)).toMatchObject({ status: 1, output: '2 rows imported into t.\n' });
    expect(await names()).toEqual(['1 a', '4 d']);
    const told = jsonLines(await readFile(rejects, 'utf8')) as { file: string; line: number; row: string }[];
    expect(told.map(({ line }) => line).toSorted((a, b) => a - b)).toEqual([3, 4, 5, 6]);
    expect(told[0]?.file).toBe(folder.file('a.csv'));
    const lines = text.split('\n');
    expect(told.map(({ row }) => row)).toEqual(told.map(({ line }) => lines[line - 1]));
    // A second run gives the same state.
    expect(await load('a.csv', text, ...options)).toMatchObject({ status: 1, output: '0 rows imported into t.\n' });
    expect(await names()).toEqual(['1 a', '4 d']);
  });

  it.each<[string, Uint8Array, string[], string[], number[]]>([
    [
      'a.csv',
      Buffer.from('id,name\n1,a\n2,Orl\xe9ans\n3,"x\ny\xe9"\n4,\xc3\xa9\xef\xbf\xbd\n', 'latin1'),
      [],
      ['1 a', '4 é\ufffd'],
      [3, 5],
    ],
    ['a.csv', Buffer.from('id,name\r1,a\r2,\xe9\r3,c\r', 'latin1'), [], ['1 a', '3 c'], [3]],
    [
      'a.ndjson',
      Buffer.from('{"id":1}\n{"id":2,"name":"\xe9"}\n{"id":3,"name":"c"}\n', 'latin1'),
      [],
      ['1 null', '3 c'],
      [2],
    ],
    ['a.json', Buffer.from('[{"id":1,"name":"\xe9"}, {"id":2},\n{"id":3}]', 'latin1'), [], ['2 null', '3 null'], [1]],
    ['a.csv', Buffer.from('id,name\n1,\x81\n2,b\n', 'latin1'), ['--encoding', 'windows-1252'], ['2 b'], [2]],
    ['a.csv', Buffer.from('id,name\n1,\xff\n2,\x93\x8c\n', 'latin1'), ['--encoding', 'shift_jis'], ['2 東'], [2]],
  ])('may have bytes that are no text, which costs no other row: %s %#', async (name, content, words, found, lines) => {
    const bytes = Buffer.from(content);
    const rejects = folder.file('rejects.ndjson');
    const { status } = await load(name, bytes, '--on-bad-row', 'skip', '--rejects', rejects, ...words);
    expect(status).toBe(1);
    expect(await names()).toEqual(found);
    const told = jsonLines(await readFile(rejects, 'utf8')) as { line: number; message: string }[];
    expect(told.map(({ line }) => line)).toEqual(lines);
    for (const { message } of told) expect(message).toMatch(/^byte 0x.. is not/);
  });

  it('are those as well that agree with others in a unique index', async () => {
    await load('a.csv', 'id,name\n1,a\n2,b\n');
    const rejects = folder.file('rejects.ndjson');
    const words = ['--on-bad-row', 'skip', '--rejects', rejects];
    const doubled = 'id,name\n3,a\n4,d\n5,d\n6,\n7,\n';
    expect(await load('b.csv', doubled, ...words)).toMatchObject({ status: 1, output: '3 rows imported into t.\n' });
    expect(await names()).toEqual(['1 a', '2 b', '4 d', '6 null', '7 null']);
    expect(jsonLines(await readFile(rejects, 'utf8'))).toMatchObject([
      { line: 2, row: '3,a', message: 'unique index name "a" is in the table already' },
      { line: 4, row: '5,d', message: 'unique index name "d" is in a row before this one already' },
    ]);
    // Rows that replace others are compared when they are committed.
    const upsert = await load('c.csv', 'id,name\n2,z\n8,b\n9,a\n', ...words, '--mode', 'upsert');
    expect(upsert).toMatchObject({ status: 1, output: '2 rows imported into t.\n' });
    expect(await names()).toEqual(['1 a', '2 z', '4 d', '6 null', '7 null', '8 b']);
  });

  it('are the only ones that --rejects is for', async () => {
    expect(await load('a.csv', text, '--rejects', folder.file('r'))).toMatchObject({ status: 2 });
  });
});

describe('rows that are there', { timeout: 60_000 }, () => {
  it('are skipped, and those that come twice: a second run gives the same state', async () => {
    const text = 'id,name\n1,a\n2,b\n1,c\n';
    for (const output of ['2 rows imported into t.\n', '0 rows imported into t.\n']) {
      expect(await load('a.csv', text, '--mode', 'skip-existing')).toMatchObject({ status: 0, output });
      expect(await names()).toEqual(['1 a', '2 b']);
    }
  });

  it('are named with their line before anything is written', async () => {
    await load('a.csv', 'id,name\n2,b\n');
    const { status, messages } = await load('b.csv', 'id,name\n1,a\n2,b\n');
    expect({ status, messages }).toEqual({
      status: 1,
      messages: expect.stringContaining('b.csv, line 3: there is') as unknown,
    });
    expect(await names()).toEqual(['2 b']);
  });

  it('are named too if only a unique index has their values', async () => {
    await load('a.csv', 'id,name\n2,b\n');
    const { status, messages } = await load('b.csv', 'id,name\n1,a\n3,b\n');
    const message = 'b.csv, line 3: unique index name "b" is in the table already';
    expect({ status, messages }).toEqual({ status: 1, messages: expect.stringContaining(message) as unknown });
    expect(messages).toContain('Nothing was imported.');
    expect(await names()).toEqual(['2 b']);
    const indexes = [{ fields: ['name', 'at'], unique: true }];
    const schema = folder.file('two.json');
    await writeFile(schema, JSON.stringify({ name: 'two', version: 1, fields, primaryKey: 'id', indexes }));
    const into = async (text: string): Promise<Ran> => {
      await writeFile(folder.file('two.csv'), text);
      return run(['import', folder.url('main'), 'two', folder.file('two.csv'), '--schema', schema]);
    };
    expect(await into('id,name,at\n1,a,2026-01-01\n2,a,2026-01-02\n')).toMatchObject({ status: 0 });
    expect(await into('id,name,at\n3,a,2026-01-03\n4,a,2026-01-02\n')).toMatchObject({
      status: 1,
      messages: expect.stringContaining('line 3: unique index name,at') as unknown,
    });
  });

  it('may agree outside of the condition of a unique index', async () => {
    const indexes = [{ fields: ['name'], unique: true, where: { at: null } }];
    const schema = folder.file('p.json');
    await writeFile(schema, JSON.stringify({ name: 'p', version: 1, fields, primaryKey: 'id', indexes }));
    const importing = async (name: string, text: string): Promise<Ran> => {
      await writeFile(folder.file(name), text);
      return run(['import', folder.url('main'), 'p', folder.file(name), '--schema', schema]);
    };
    const gone = 'id,name,at\n1,a,2026-01-01T00:00:00Z\n2,a,2026-01-02T00:00:00Z\n3,a,\n';
    expect(await importing('a.csv', gone)).toMatchObject({ status: 0, output: '3 rows imported into p.\n' });
    const { status, messages } = await importing('b.csv', 'id,name,at\n4,a,2026-01-03T00:00:00Z\n5,a,\n');
    expect({ status, messages }).toEqual({
      status: 1,
      messages: expect.stringContaining('would both have') as unknown,
    });
    const { output } = await run(['query', folder.url('main'), 'p', '--json']);
    expect(jsonLines(output)).toHaveLength(3);
  });
});
