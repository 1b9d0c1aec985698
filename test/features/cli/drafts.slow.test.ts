/** Tables made from files: the draft can hold every value of the file exactly, and nothing is written before that is sure. */
import { readdir, writeFile } from 'node:fs/promises';
import {
  array,
  assert,
  asyncProperty,
  bigInt,
  constant,
  constantFrom,
  double,
  integer,
  oneof,
  string,
  uuid,
} from 'fast-check';
import { compileFunction } from 'node:vm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineSchema, Types } from '../../../src/index.ts';
import type { SchemaDefinition } from '../../../src/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';
import type { Ran } from './shell.ts';

let folder: TestFolder;

beforeEach(async () => {
  folder = await TestFolder.make();
});

afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

async function file(name: string, content: string | Uint8Array): Promise<string> {
  await writeFile(folder.file(name), content);
  return folder.file(name);
}

interface DraftedSchema {
  readonly name: string;
  readonly primaryKey: string;
  readonly fields: Readonly<Record<string, { readonly typeId: string; readonly [rule: string]: unknown }>>;
}

async function draft(name: string, content: string | Uint8Array, ...words: string[]): Promise<DraftedSchema> {
  const { output, messages } = await run(['schema', 'draft', await file(name, content), '--json', ...words]);
  expect(messages).toBe('');
  return jsonLines(output)[0] as DraftedSchema;
}

/** Makes a table of files, in the database of the test. */
async function create(name: string, content: string | Uint8Array, ...words: string[]): Promise<Ran> {
  return run(['import', folder.url('main'), await file(name, content), '--create', '--yes', ...words]);
}

async function rowsOf(table: string): Promise<Record<string, unknown>[]> {
  const { output } = await run(['query', folder.url('main'), table, '--json']);
  return jsonLines(output) as Record<string, unknown>[];
}

const databases = async (): Promise<string[]> => {
  const found = await readdir(folder.path);
  return found.filter((name) => name === 'db');
};

describe('one command', { timeout: 60_000 }, () => {
  it('leads from a file to a table, in a database that it makes', async () => {
    await file('cities.csv', 'code,name\nFR,Paris\nDE,Berlin\n');
    const before = process.cwd();
    process.chdir(folder.path);
    try {
      const made = await run(['import', 'cities.csv', '--create', '--yes']);
      expect(made).toMatchObject({
        status: 0,
        output: expect.stringContaining('2 rows imported into cities.') as unknown,
      });
      expect(made.output).toContain('export const cities = defineSchema({');
      expect(made.messages).toContain('npx store-db query file:./data cities');
      expect((await run(['query', 'file:./data', 'cities', '--count'])).output).toBe('2\n');
      const again = await run(['import', 'cities.csv', '--create', '--yes']);
      expect(again).toMatchObject({ status: 2, messages: expect.stringContaining('already. Leave out') as unknown });
      const other = await run(['import', 'cities.csv', '--create', '--yes', '--table', 'places', '--key', 'name']);
      expect(other.status).toBe(0);
      const tables = jsonLines((await run(['tables', 'file:./data#main', '--json'])).output)[0];
      expect(tables).toMatchObject([
        { name: 'cities', primaryKey: 'code' },
        { name: 'places', primaryKey: 'name' },
      ]);
    } finally {
      process.chdir(before);
    }
  });

  it('shows the draft and writes nothing where nobody says yes', async () => {
    const cities = await file('cities.csv', 'code,name\nFR,Paris\n');
    const refused = await run(['import', folder.url(), cities, '--create']);
    expect(refused).toMatchObject({ status: 2, messages: expect.stringContaining('pass --yes') as unknown });
    expect(refused.output).toContain('primaryKey: ');
    expect(await databases()).toEqual([]);
  });

  it('takes the table before the files, several files, and the input', async () => {
    const one = await file('1.csv', 'id,a\n1,x\n');
    const two = await file('2.ndjson', '{"id":2,"a":"y","b":[1]}\n');
    const made = await run(['import', folder.url('main'), 'things', one, two, '--create', '--yes', '--json']);
    expect(jsonLines(made.output)[0]).toMatchObject({ rows: 2, table: 'things', schema: { primaryKey: 'id' } });
    expect(await rowsOf('things')).toEqual([
      { id: 1, a: 'x', b: null },
      { id: 2, a: 'y', b: [1] },
    ]);
    const words = ['import', folder.url('main'), '-', '--create', '--yes', '--format', 'csv'];
    const unnamed = await run(words, { input: 'k\n7\n' });
    expect(unnamed).toMatchObject({ status: 2, messages: expect.stringContaining('--table') as unknown });
    expect(await run([...words, '--table', 'piped'], { input: 'k\n7\n8\n' })).toMatchObject({ status: 0 });
    expect(await rowsOf('piped')).toEqual([{ k: 7 }, { k: 8 }]);
  });

  it('is printed with the options that belong to it', async () => {
    const cities = await file('cities.csv', 'code\nFR\n');
    for (const [words, message] of [
      [['import', cities], 'pass --create'],
      [['import', '--create'], 'Name a file'],
      [['import', folder.url('main'), 't', cities, '--sample', '5'], '--sample needs --create'],
      [['import', cities, '--create', '--schema', cities], 'leave out --schema'],
      [['import', cities, '--create', '--sample', '0'], '--sample is 0'],
      [['import', cities, '--create', '--key', 'cod'], 'Did you mean code?'],
      [['import', cities, '--create', '--date-format', 'DD.MM'], 'it has no year'],
      [['schema', 'draft', folder.path], 'is a folder'],
      [['schema'], 'Which command?'],
    ] as const) {
      const ran = await run([...words]);
      expect({ words, ...ran }).toMatchObject({ status: 2, messages: expect.stringContaining(message) as unknown });
    }
    expect(await databases()).toEqual([]);
  });
});

describe('a column of CSV', { timeout: 60_000 }, () => {
  it.each<[string, string[], string]>([
    ['small integers', ['0', '1', '-5'], 'int32'],
    ['counts', ['0', '2147483648'], 'uint32'],
    ['larger integers', ['1', '3000000000'], 'int64'],
    ['integers beyond 2^53', ['9007199254740993'], 'int64'],
    ['the largest integers', ['18446744073709551615'], 'uint64'],
    ['integers beyond 64 bits', ['18446744073709551616'], 'varchar'],
    ['ids with leading zeros', ['007', '8'], 'varchar'],
    ['integers with a plus', ['+1'], 'varchar'],
    ['decimals', ['1', '-2.5', '.5', '1.5e-7'], 'float64'],
    [
      'floats as programs write them',
      ['0.30000000000000004', '-1.2345678901234566e-7', '123456.12345678912'],
      'float64',
    ],
    ['decimals that no float holds', ['0.30000000000000001'], 'varchar'],
    ['decimals with more digits than a float has', ['0.12345678901234567'], 'varchar'],
    ['decimals beside integers beyond 2^53', ['9007199254740993', '0.5'], 'varchar'],
    ['codes that look like exponents', ['1e5', '3e7'], 'varchar'],
    ['numbers and words', ['1', 'n/a'], 'varchar'],
    ['truth values', ['true', 'False', 'TRUE'], 'boolean'],
    ['yes and no', ['yes', 'no'], 'varchar'],
    ['days', ['2024-01-31', '2024-02-29'], 'timestamp'],
    ['times', ['2024-01-31T12:00:00Z', '2024-01-31T12:00:00.123Z'], 'timestamp'],
    ['a day that there is not', ['2024-01-31', '2024-02-30'], 'varchar'],
    ['days and times', ['2024-01-31', '2024-01-31T12:00:00Z'], 'varchar'],
    ['times with a zone and without', ['2024-01-31T12:00:00Z', '2024-01-31T12:00:00'], 'varchar'],
    ['times finer than milliseconds', ['2024-01-31T12:00:00.123456Z'], 'varchar'],
    ['ambiguous days', ['01/02/2024'], 'varchar'],
    ['days as digits', ['20240131'], 'uint32'],
    ['uuids', ['0192f0c1-2d3e-7f40-8123-456789abcdef'], 'uuid'],
    ['uuids in large letters', ['0192F0C1-2D3E-7F40-8123-456789ABCDEF'], 'varchar'],
    ['nothing', ['', ''], 'varchar'],
    ['JSON', ['"{""a"":1}"'], 'varchar'],
    ['negative zero', ['-0'], 'float64'],
  ])('of %s', async (_, values, typeId) => {
    const text = `n,value\n${values.map((value, i) => `${i},${value}`).join('\n')}\n`;
    const { fields } = await draft('t.csv', text);
    expect(fields['value']?.typeId).toBe(typeId);
    expect(fields['value']?.['required']).toBe(values[0] === '' ? undefined : true);
    // And it holds what was written.
    expect(await create('t.csv', text)).toMatchObject({ status: 0 });
    const { output } = await run(['export', folder.url('main'), 't', '-', '--format', 'csv']);
    const written = output
      .split('\n')
      .slice(1, -1)
      .map((line) => line.slice(line.indexOf(',') + 1));
    const isToTheLetter = typeId === 'varchar' || typeId === 'uuid' || typeId.includes('int');
    expect(written).toEqual(isToTheLetter ? values : written);
  });

  it('has days of another form where --date-format says which', async () => {
    const text =
      'n,born,seen,other\n1,01/02/2024,1/2/2024 3:04 PM,2024-05-06\n2,31/12/2023,12/31/2023 12:00 AM,2024-05-07\n';
    const words = ['--date-format', 'DD/MM/YYYY', '--date-format', 'seen=M/D/YYYY h:mm A'];
    expect((await draft('t.csv', text, ...words)).fields).toMatchObject({
      born: { typeId: 'timestamp' },
      seen: { typeId: 'timestamp' },
      other: { typeId: 'timestamp' },
    });
    expect(await create('t.csv', text, ...words)).toMatchObject({ status: 0 });
    expect(await rowsOf('t')).toMatchObject([
      { born: '2024-02-01T00:00:00.000Z', seen: '2024-01-02T15:04:00.000Z', other: '2024-05-06T00:00:00.000Z' },
      { born: '2023-12-31T00:00:00.000Z', seen: '2023-12-31T00:00:00.000Z', other: '2024-05-07T00:00:00.000Z' },
    ]);
    const { output } = await run(['import', folder.url('main'), folder.file('t.csv'), '--create', '--table', 'u']);
    expect(output).toContain('--date-format "born=DD/MM/YYYY"');
  });

  it('has room for longer texts, and loses none of those that are longer still', async () => {
    expect(await create('t.csv', `id,name\n1,${'x'.repeat(11)}\n`)).toMatchObject({ status: 0 });
    const [table] = jsonLines((await run(['tables', folder.url('main'), '--json'])).output)[0] as SchemaDefinition[];
    expect(table?.fields['name']).toMatchObject({ maxLength: 20 });
    const longer = await file('more.csv', `id,name\n2,${'y'.repeat(5000)}\n`);
    expect(await run(['import', folder.url('main'), 't', longer])).toMatchObject({ status: 0 });
    expect(await rowsOf('t')).toMatchObject([{}, { name: 'y'.repeat(5000) }]);
  });
});

describe('a column of JSON', { timeout: 60_000 }, () => {
  it('has the type of its values, and text where they are mixed', async () => {
    const text = [
      '{"n":1,"digits":"7","mixed":1,"large":9007199254740993,"deep":{"a":1},"both":1,"late":null,"at":"2024-01-31T00:00:00Z"}',
      '{"n":2,"digits":"8","mixed":"x","large":1,"deep":[2],"both":[1],"yes":true,"at":null}',
      '{"n":3,"mixed":true,"large":2,"ratio":0.5}',
    ].join('\n');
    expect(await create('t.ndjson', text)).toMatchObject({ status: 0 });
    const { fields } = await draft('t.ndjson', text);
    expect(Object.entries(fields).map(([name, { typeId }]) => `${name} ${typeId}`)).toEqual([
      'n uint32',
      'digits varchar',
      'mixed varchar',
      'large int64',
      'deep json',
      'both json',
      'late varchar',
      'at timestamp',
      'yes boolean',
      'ratio float64',
    ]);
    expect(await rowsOf('t')).toMatchObject([
      { n: 1, mixed: '1', large: '9007199254740993', deep: { a: 1 }, both: 1, late: null },
      { n: 2, mixed: 'x', large: 1, deep: [2], both: [1], yes: true },
      { n: 3, mixed: 'true', large: 2, digits: null, ratio: 0.5 },
    ]);
    // Later files of the same kind go into it as well.
    const more = await file('more.ndjson', '{"n":4,"mixed":5,"large":0}');
    expect((await run(['import', folder.url('main'), 't', more])).messages).toContain('5 is no varchar');
    expect((await run(['import', folder.url('main'), 't', more, '--scalars-as-text'])).status).toBe(0);
  });
});

describe('the key', { timeout: 60_000 }, () => {
  it.each<[string, string, string]>([
    ['id', 'country,id\nFR,1\nDE,2\n', 'is the column that is called so'],
    ['City ID', 'name,City ID\nParis,1\nBerlin,2\n', 'is the column that is called so'],
    ['country', 'country,people\nFR,1\nDE,2\n', 'is the first column where that tells rows apart'],
    ['id', 'country,people\nFR,1\nFR,2\n', 'is made where it does not'],
    ['row_id', 'id,people\n1,1\n1,2\n', 'is made under a free name'],
    ['id', 'country,people\n,1\nDE,2\n', 'is made where a row has none'],
    ['id', 'ratio\n1.5\n2.5\n', 'is made where the column is no key'],
  ])('%s %j %s', async (key, text) => {
    expect((await draft('cities.csv', text)).primaryKey).toBe(key);
    expect(await create('cities.csv', text)).toMatchObject({ status: 0 });
    expect(await rowsOf('cities')).toHaveLength(2);
  });

  it('is looked for in the whole file, wherever the types come from', async () => {
    const text = `id,name\n${Array.from({ length: 50 }, (_, i) => `${i},x`).join('\n')}\n49,y\n`;
    expect((await draft('t.csv', text, '--sample', '3')).primaryKey).toBe('row_id');
  });

  it('that is asked for must be unique for all rows, which is checked before anything is made', async () => {
    const made = await create('t.csv', 'a,b\n1,x\n2,x\n', '--key', 'b');
    expect(made).toMatchObject({
      status: 1,
      messages: expect.stringContaining('t.csv, line 3: key b "x" is in line 2') as unknown,
    });
    expect(await databases()).toEqual([]);
  });
});

describe('a value that does not go with the draft', { timeout: 60_000 }, () => {
  it('comes behind a sample only, and is named before anything is made', async () => {
    const text = 'id,n,b\n1,1,x\n2,2,\n3,oops,z\n';
    expect((await draft('t.csv', text, '--sample', '2')).fields).toMatchObject({ n: { typeId: 'uint32' } });
    const sampled = await create('t.csv', text, '--sample', '2');
    expect(sampled.status).toBe(1);
    expect(sampled.messages).toContain('t.csv, line 4: field n: "oops" is no uint32');
    expect(sampled.messages).toContain('leave out --sample');
    expect(sampled.messages).toContain('Nothing was imported.');
    expect(await databases()).toEqual([]);
    expect(await create('t.csv', text)).toMatchObject({ status: 0 });
    expect(await rowsOf('t')).toMatchObject([{ n: '1', b: 'x' }, { n: '2', b: null }, { n: 'oops' }]);
  });

  it('may be in a row that is bad, which is named or left out', async () => {
    const text = 'id,n\n1,1\n2\n3,5" disk\n4,4\n';
    const refused = await create('t.csv', text);
    expect(refused).toMatchObject({
      status: 1,
      messages: expect.stringContaining('t.csv, line 3: it has 1') as unknown,
    });
    expect(await databases()).toEqual([]);
    const left = await create('t.csv', text, '--on-bad-row', 'skip');
    expect(left).toMatchObject({ status: 1, messages: expect.stringContaining('2 bad rows left out') as unknown });
    expect(await rowsOf('t')).toEqual([
      { id: 1, n: 1 },
      { id: 4, n: 4 },
    ]);
  });
});

describe('a file as people have it', { timeout: 60_000 }, () => {
  it.each<[string, string | Uint8Array, string[], object]>([
    ['an index of pandas', ',name\n0,a\n1,b\n', [], { column1: 0, name: 'a' }],
    ['a name that comes twice', 'id,name,name,name_2\n1,a,b,c\n', [], { id: 1, name: 'a', name_3: 'b', name_2: 'c' }],
    ['no head', '1,a\n2,b\n', ['--no-header'], { column1: 1, column2: 'a' }],
    ['no head, and a key that is made', 'a,1\na,2\n', ['--no-header'], { column1: 'a', column2: 1 }],
    ['no head, and names', '1,a\n', ['--no-header', '--columns', 'x,y'], { x: 1, y: 'a' }],
    ['spaces around names', 'id , full name \n1,a\n', [], { id: 1, 'full name': 'a' }],
    ['a mark and semicolons', '\ufeffid;n\r\n1;1,5\r\n', [], { id: 1, n: '1,5' }],
    [
      'another encoding',
      Buffer.from('id,ville\n1,Orléans\n', 'latin1'),
      ['--encoding', 'windows-1252'],
      { ville: 'Orléans' },
    ],
    ['names that go elsewhere', 'Id,b,c\n1,2,3\n', ['--rename', 'Id=id', '--columns', 'Id,c'], { id: 1, c: 3 }],
    ['nulls of its own', 'id,n\n1,NA\n2,5\n', ['--null', 'NA'], { id: 1, n: null }],
    ['odd names', "id,__proto__,constructor,it's\n1,a,b,c\n", [], { id: 1, constructor: 'b', "it's": 'c' }],
  ])('with %s', async (_, content, words, first) => {
    expect(await create('t.csv', content, ...words)).toMatchObject({ status: 0 });
    expect((await rowsOf('t'))[0]).toMatchObject(first);
  });

  it.each([
    ['', 'There is no row'],
    ['id,name\n', 'There is no row'],
  ])('may have no rows: %j', async (content, message) => {
    const { status, messages } = await create('t.csv', content);
    expect({ status, messages }).toEqual({ status: 2, messages: expect.stringContaining(message) as unknown });
    expect(await databases()).toEqual([]);
  });
});

describe('the printed schema', { timeout: 60_000 }, () => {
  const text = "n,it's,__proto__,when,\u001b[31m\n1,a,b,2024-01-31,x\n1,b,c,2024-02-01,y\n";

  it('is the same in TypeScript and in JSON, which --schema takes', async () => {
    const found = await draft('my cities-2.csv', text);
    const { output } = await run(['schema', 'draft', folder.file('my cities-2.csv')]);
    expect(output).not.toContain('\u001b');
    expect(output).toContain('export const myCities2 = ');
    const body = output.replace(/^import .*$/m, '').replace('export const myCities2 =', 'return');
    const evaluate = compileFunction(body, ['defineSchema', 'Types']) as (...parts: unknown[]) => SchemaDefinition;
    const evaluated = evaluate(defineSchema, Types);
    const schemaFile = await file('s.json', JSON.stringify(found));
    const words = ['import', folder.url('main'), 'my_cities_2', folder.file('my cities-2.csv'), '--schema', schemaFile];
    expect(await run(words)).toMatchObject({ status: 0 });
    const [stored] = jsonLines((await run(['tables', folder.url('main'), '--json'])).output)[0] as SchemaDefinition[];
    expect(stored).toMatchObject({ ...evaluated, fields: evaluated.fields });
    expect(Object.keys(evaluated.fields)).toEqual(['id', 'n', "it's", '__proto__', 'when', '\\x1b[31m']);
  });
});

describe('random rows', { timeout: 120_000 }, () => {
  const cell = oneof(
    constant(null),
    integer().map(String),
    bigInt({ min: -(2n ** 65n), max: 2n ** 65n }).map(String),
    double({ noNaN: true }).map(String),
    constantFrom('true', 'false', '', ' ', '007', '1e5', '-0', '2024-01-31', '2024-01-31T12:00:00.5Z', '1.10', 'NaN'),
    string({ unit: 'grapheme', maxLength: 12 }).filter((text) => text.isWellFormed()),
    uuid(),
  );
  /** Columns of one kind, and mixed ones. */
  const column = oneof(
    ...[
      cell,
      oneof(integer().map(String), constant(null)),
      double({ noNaN: true, noDefaultInfinity: true }).map(String),
    ].map((kind) => array(kind, { minLength: 12, maxLength: 12 })),
  );
  const quoted = (text: string | null): string => (text === null ? '' : `"${text.replaceAll('"', '""')}"`);

  it('are the same in the table as in the file: by value where they are numbers, and else to the letter', async () => {
    let n = 0;
    await assert(
      asyncProperty(array(column, { minLength: 1, maxLength: 5 }), async (columns) => {
        const table = `t${n++}`;
        const lines = Array.from({ length: 12 }, (_, i) =>
          [String(i), ...columns.map((values) => quoted(values[i] ?? null))].join(','),
        );
        const head = ['n', ...columns.map((_, i) => `c${i}`)].join(',');
        expect(await create(`${table}.csv`, `${head}\n${lines.join('\n')}\n`, '--key', 'n')).toMatchObject({
          status: 0,
        });
        const exported = await run(['export', folder.url('main'), table, '-', '--format', 'ndjson']);
        const found = jsonLines(exported.output) as Record<string, unknown>[];
        const { fields } = await draft(`${table}.csv`, `${head}\n${lines.join('\n')}\n`);
        for (const [c, values] of columns.entries()) {
          const type = fields[`c${c}`]?.typeId;
          const got = found.map((row) => row[`c${c}`]);
          const same = values.map((text) => {
            if (text === null) return null;
            if (type === 'varchar' || type === 'uuid') return text;
            if (type === 'boolean') return text === 'true';
            if (type === 'timestamp') return new Date(text).toISOString();
            if (type?.includes('int') === true) return Number.isSafeInteger(Number(text)) ? Number(text) : text;
            return Object.is(Number(text), -0) ? '-0' : Number(text);
          });
          expect({ type, got }).toEqual({ type, got: same });
        }
      }),
      { numRuns: 15 },
    );
  });
});

describe('a draft names the places that somebody should look at', () => {
  it('a first line that looks like values', async () => {
    const noHead = await run(['schema', 'draft', await file('no-head.csv', '1,A,2.5\n2,B,3.5\n')]);
    expect(noHead.messages).toContain('"1" looks like a value: if it is a row, pass --no-header.');
    const told = await run(['schema', 'draft', folder.file('no-head.csv'), '--no-header']);
    expect(told.messages).toBe('');
    const years = await run(['schema', 'draft', await file('years.csv', 'country,2020,2021\nFR,1,2\n')]);
    expect(years.messages).toBe('');
  });

  it('words that may stand for null', async () => {
    const { output } = await run(['schema', 'draft', await file('nulls.csv', 'id,n\n1,5\n2,NULL\n')]);
    expect(output).toContain('// "NULL"? --null "NULL" takes it for null');
    const { fields } = await draft('nulls.csv', 'id,n\n1,5\n2,NULL\n', '--null', 'NULL');
    expect(fields['n']).toEqual({ typeId: 'uint32' });
  });

  it('a bad row, as JSON where that is asked for', async () => {
    const { status, output, messages } = await run(['schema', 'draft', await file('short.csv', 'a,b\n1\n'), '--json']);
    expect({ status, output }).toEqual({ status: 1, output: '' });
    expect(jsonLines(messages)).toEqual([
      { error: { code: 'BAD_ROW', message: expect.stringContaining('line 2: it has 1 fields') as unknown } },
    ]);
  });

  it('a table for the input, where no - says so', async () => {
    const { status, messages } = await run(['import', folder.url('main'), 'piped', '--create', '--yes']);
    expect(status).toBe(2);
    expect(messages).toContain('To make a table piped from standard input, write - after it');
  });
});
