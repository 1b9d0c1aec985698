/** Parquet: files of other programs, files for them, and damaged files. */
import { createReadStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

/** Written by Apache Arrow: 3 rows in 2 groups, compressed with zstd. */
const arrow = fileURLToPath(new URL('arrow.parquet', import.meta.url));
/** Written by DuckDB. */
const duckdb = fileURLToPath(new URL('duckdb.parquet', import.meta.url));

let folder: TestFolder;
beforeAll(async () => {
  folder = await TestFolder.make();
});
afterAll(() => folder[Symbol.asyncDispose]());

async function draftOf(...files: string[]): Promise<Record<string, unknown>> {
  const { status, output } = await run(['schema', 'draft', ...files, '--json']);
  expect(status).toBe(0);
  const [schema] = jsonLines(output) as [{ fields: Record<string, { typeId: string }> }];
  return Object.fromEntries(Object.entries(schema.fields).map(([name, { typeId }]) => [name, typeId]));
}

async function rowsIn(url: string, table: string): Promise<unknown[]> {
  const { status, output } = await run(['query', url, table, '--json']);
  expect(status).toBe(0);
  return jsonLines(output);
}

describe('a file of Apache Arrow', () => {
  it('becomes a table with the types that it has, and exactly its values', async () => {
    const url = `file:${folder.file('arrow')}#main`;
    const words = ['import', url, 'arrow', arrow, '--create', '--yes'];
    expect((await run(words)).messages).toContain('line 2: field n2: NaN is no value: --null NaN reads it as null');
    expect(await run([...words, '--null', 'NaN'])).toMatchObject({ status: 0 });
    const found = (await rowsIn(url, 'arrow')) as Record<string, unknown>[];
    expect(found).toHaveLength(3);
    const nulls = Object.entries(found[1] as object).filter(([, value]) => value !== null);
    expect(nulls).toEqual([
      ['id', 2],
      ['f16', 1.5],
    ]);
    expect(found[0]).toEqual({
      id: 1,
      i8: -128,
      u32: 4_294_967_295,
      u64: '18446744073709551615',
      i64: '-9223372036854775808',
      f16: null,
      f64: 1e308,
      s: 'Żółć',
      b: 'AP8=',
      fix: 'YWJjZA==',
      ok: true,
      day: '1969-12-31T00:00:00.000Z',
      ms: '1969-12-31T23:59:59.999Z',
      us: '1969-12-31T23:59:59.999Z',
      ns: '1969-12-31T23:59:59.999Z',
      tm: '23:59:59.123456',
      dec: -123.45,
      dec2: '-12345678901234567890.123456789',
      dec3: '123456789012345678',
      list: [1, null, 3],
      ll: [[1], []],
      st: { a: 1, t: '2024-01-01T00:00:00.000Z' },
      mp: { x: '1.10', y: null },
      ls: [{ b: 'AQ==', d: '2024-01-01T00:00:00.000Z' }],
      n2: 1.5,
    });
    expect(found[2]).toMatchObject({
      u64: '9007199254740993',
      f64: '-0',
      s: '',
      b: '',
      us: '2024-01-31T12:00:00.123Z',
      ns: '2024-01-31T12:00:00.123Z',
      dec3: -5,
      list: [],
      ll: [null, [2, 3]],
      st: { a: null, t: null },
      mp: {},
      ls: [null],
      n2: null,
    });
  });

  it('has its types in a draft, for any values', async () => {
    expect(await draftOf(arrow)).toEqual({
      id: 'uint16',
      i8: 'int8',
      u32: 'uint32',
      u64: 'uint64',
      i64: 'int64',
      f16: 'float32',
      f64: 'float64',
      s: 'varchar',
      b: 'bytes',
      fix: 'bytes',
      ok: 'boolean',
      day: 'timestamp',
      ms: 'timestamp',
      us: 'timestamp',
      ns: 'timestamp',
      tm: 'varchar',
      dec: 'float64',
      dec2: 'varchar',
      dec3: 'int64',
      list: 'json',
      ll: 'json',
      st: 'json',
      mp: 'json',
      ls: 'json',
      n2: 'float64',
    });
  });

  it('goes into fields of other types where its values are such, by the names and columns that are asked for', async () => {
    const fields = { key: 'int64', dec: 'varchar', i64: 'float64', day: 'varchar', b: 'varchar' };
    await writeFile(folder.file('t.json'), JSON.stringify({ name: 't', version: 1, fields, primaryKey: 'key' }));
    const url = `file:${folder.file('chosen')}#main`;
    const schema = ['--schema', folder.file('t.json'), '--rename', 'id=key'];
    const words = ['import', url, 't', arrow, ...schema, '--columns'];
    // 0x00 0xff is no text.
    const bad = await run([...words, 'id,dec,b']);
    expect(bad).toMatchObject({ status: 1 });
    expect(bad.messages).toContain('line 1: field b: its bytes are not UTF-8');
    const rejects = folder.file('rejects.ndjson');
    const skipped = await run([...words, 'id,dec,b', '--on-bad-row', 'skip', '--rejects', rejects]);
    expect(skipped).toMatchObject({ status: 1, output: '2 rows imported into t.\n' });
    expect(jsonLines(await readFile(rejects, 'utf8'))).toMatchObject([
      { line: 1, row: '{"id":1,"b":"AP8=","dec":"-123.45"}' },
    ]);
    expect(await run([...words, 'id,dec,i64,day', '--mode', 'upsert'])).toMatchObject({ status: 0 });
    expect(await rowsIn(url, 't')).toMatchObject([
      { key: 1, dec: '-123.45', i64: -(2 ** 63), day: '1969-12-31T00:00:00.000Z' },
      { key: 2, dec: null },
      { key: 3, dec: '0.01' },
    ]);
  });

  it('comes through a pipe, and with another ending', async () => {
    const url = `file:${folder.file('piped')}#main`;
    const schema = ['--create', '--yes', '--table', 'arrow', '--null', 'NaN', '--format', 'parquet'];
    expect(await run(['import', url, '-', ...schema], { input: createReadStream(arrow) })).toMatchObject({ status: 0 });
    const again = await run(['import', url, 'arrow', '--null', 'NaN', '--format', 'parquet', '--mode', 'upsert'], {
      input: createReadStream(arrow),
    });
    expect(again).toMatchObject({ status: 0, output: '3 rows imported into arrow.\n' });
    const twice = await run(['import', url, 'arrow', arrow, '--null', 'NaN']);
    expect(twice.messages).toContain('line 1: there is a row with key "1" already');
  });
});

it('a file of DuckDB has its types', async () => {
  expect(await draftOf(duckdb)).toEqual({
    id: 'int32',
    u: 'uuid',
    t: 'varchar',
    tz: 'timestamp',
    j: 'json',
    h: 'float64',
    iv: 'bytes',
    l: 'json',
    s: 'json',
    e: 'varchar',
    bl: 'bytes',
  });
});

describe('several files', () => {
  const file = (type: 'INT32' | 'INT64', ids: readonly (number | bigint)[]): Promise<string> => {
    const name = folder.file(`${type}.parquet`);
    return writeFile(
      name,
      Buffer.from(parquetWriteBuffer({ columnData: [{ name: 'id', type, data: [...ids] }] })),
    ).then(() => name);
  };

  it('that differ in a type get the type of their values', async () => {
    const files = [await file('INT32', [1, 2]), await file('INT64', [3n, 2n ** 40n])];
    expect(await draftOf(files[0] as string)).toEqual({ id: 'int32' });
    expect(await draftOf(...files)).toEqual({ id: 'int64' });
    await writeFile(folder.file('more.csv'), 'id\n7\n');
    expect(await draftOf(files[0] as string, folder.file('more.csv'))).toEqual({ id: 'uint32' });
  });

  it('are read where one has its rows in many groups, and rows are counted through them', async () => {
    const data = Array.from({ length: 2500 }, (_, i) => (i === 2222 ? -1 : i));
    const bytes = parquetWriteBuffer({ columnData: [{ name: 'id', type: 'INT32', data }], rowGroupSize: 300 });
    await writeFile(folder.file('groups.parquet'), Buffer.from(bytes));
    await writeFile(
      folder.file('g.json'),
      JSON.stringify({ name: 'g', version: 1, fields: { id: 'uint32' }, primaryKey: 'id' }),
    );
    const words = ['import', `file:${folder.file('groups')}#main`, 'g', folder.file('groups.parquet')];
    const schema = ['--schema', folder.file('g.json')];
    const stopped = await run([...words, ...schema, '--on-bad-row', 'stop', '--rows-per-flush', '1000']);
    expect(stopped).toMatchObject({ status: 1 });
    expect(stopped.messages).toContain('groups.parquet, line 2223: ');
    expect(stopped.messages).toContain('2,000 rows up to line 2000 are imported');
    expect(await run([...words, '--from-line', '2224'])).toMatchObject({ output: '277 rows imported into g.\n' });
  });
});

describe('an export', () => {
  it('writes groups of rows that are bounded by their size', async () => {
    const url = `file:${folder.file('wide')}#main`;
    const text = 'x'.repeat(6 * 1024 * 1024);
    const lines = [1, 2, 3, 4, 5].map((id) => `${id},${text}${id}\n`).join('');
    const words = ['import', url, '-', '--create', '--yes', '--format', 'csv', '--table', 'wide'];
    expect(await run(words, { input: `id,text\n${lines}` })).toMatchObject({ status: 0 });
    const file = folder.file('wide.parquet');
    expect(await run(['export', url, 'wide', file])).toMatchObject({ status: 0 });
    const bytes = await readFile(file);
    const metadata = parquetMetadata(new Uint8Array(bytes).buffer);
    expect(metadata.row_groups.map(({ num_rows: rows }) => Number(rows))).toEqual([3, 2]);
    expect(metadata.schema).toMatchObject([
      { num_children: 2 },
      { name: 'id', type: 'INT32', converted_type: 'UINT_32', repetition_type: 'REQUIRED' },
      { name: 'text', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
    ]);
    // Other readers refuse the width that the writer gives logical types of integers.
    expect(metadata.schema[1]?.logical_type).toBeUndefined();
  });

  it('takes the columns and rows that are asked for, and an empty answer is a file as well', async () => {
    const url = `file:${folder.file('part')}#main`;
    await run(['import', url, '-', '--create', '--yes', '--format', 'csv', '--table', 'part'], {
      input: 'id,a,b\n1,x,2024-01-31\n2,y,2024-02-29\n',
    });
    const file = folder.file('part.parquet');
    const read = async (): Promise<unknown[]> => {
      const bytes = new Uint8Array(await readFile(file)).buffer;
      return parquetReadObjects({ file: { byteLength: bytes.byteLength, slice: (from, to) => bytes.slice(from, to) } });
    };
    expect(await run(['export', url, 'part', file, '--columns', 'b,id', '--where', 'id = 2'])).toMatchObject({
      status: 0,
    });
    expect(await read()).toEqual([{ b: new Date('2024-02-29'), id: 2 }]);
    expect(await run(['export', url, 'part', file, '--where', 'id = 3'])).toMatchObject({ status: 0 });
    expect(await read()).toEqual([]);
  });

  it('is not compressed again, and not shown in a terminal', async () => {
    const url = `file:${folder.file('part')}#main`;
    const gz = await run(['export', url, 'part', folder.file('part.parquet.gz')]);
    expect(gz).toMatchObject({ status: 2 });
    expect(gz.messages).toContain('Parquet is compressed internally');
    const shown = await run(['export', url, 'part', '--format', 'parquet'], { tty: 'output' });
    expect(shown).toMatchObject({ status: 2, output: '' });
    expect(await stat(folder.file('part.parquet.gz')).catch(() => 'none')).toBe('none');
  });
});

describe('a file that cannot be read', () => {
  const draft = async (bytes: Uint8Array | string): Promise<{ status: number; messages: string }> => {
    await writeFile(folder.file('bad.parquet'), bytes);
    return run(['schema', 'draft', folder.file('bad.parquet')]);
  };

  it.each([
    ['is another format', () => 'id,name\n1,a\n', 'it does not end with PAR1'],
    ['is empty', () => '', 'it does not end with PAR1'],
    ['is encrypted', () => `PAR1${'x'.repeat(40)}PARE`, 'it is encrypted'],
    [
      'has nothing before its end',
      () => `PAR1\0\0\0\0\0\0\0\0PAR1`,
      'it cannot be read as Parquet, and may be damaged',
    ],
  ])('since it %s is reported', async (_, content, message) => {
    expect(await draft(content())).toMatchObject({ status: 1, messages: expect.stringContaining(message) as string });
  });

  it('since its compression is not known is reported', async () => {
    const compressors = { LZ4_RAW: (input: Uint8Array) => input };
    const columnData = [{ name: 'id', type: 'INT32' as const, data: [1, 2] }];
    const bytes = parquetWriteBuffer({ columnData, codec: 'LZ4_RAW', compressors });
    const { status, messages } = await draft(new Uint8Array(bytes));
    expect(status).toBe(1);
    expect(messages).toContain('bad.parquet: it is compressed with LZ4_RAW: write it with Snappy, zstd');
  });

  it('is named, or has other values: damage has no other effect', async () => {
    const whole = await readFile(duckdb);
    const random = new SeededRandom(5);
    for (let round = 0; round < 30; round++) {
      const { status } = await draft(whole.subarray(0, random.integer(0, whole.length - 1)));
      expect(status).toBe(1);
    }
    for (let round = 0; round < 120; round++) {
      const bytes = Buffer.from(whole);
      for (let flips = random.integer(1, 3); flips > 0; flips--) {
        bytes[random.integer(0, bytes.length - 1)] = random.integer(0, 255);
      }
      const { status, messages } = await draft(bytes);
      expect(messages).not.toContain('UNEXPECTED');
      expect([0, 1, 2]).toContain(status);
    }
  });
});

it('is loaded where such a file is read or written, and nowhere before', async () => {
  const root = fileURLToPath(new URL('../../../src/', import.meta.url));
  for (const file of ['cli/input/parquet-file.ts', 'cli/output/export-output.ts']) {
    const source = await readFile(root + file, 'utf8');
    expect(source.match(/^import (?!type)[^;]* from 'hyparquet[^;]*;/gm)).toBeNull();
    expect(source).toContain("await import('hyparquet");
  }
});
