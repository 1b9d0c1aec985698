/** Exports and imports return exactly the same rows: every type, every odd value, in both formats. */
import { readFile, writeFile } from 'node:fs/promises';
import { gunzipSync } from 'node:zlib';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { SchemaDefinition } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { run, TestFolder } from './shell.ts';

const everything: SchemaDefinition = {
  name: 'everything',
  version: 4,
  fields: {
    id: { typeId: Types.varchar },
    u8: { typeId: Types.uint8 },
    u16: { typeId: Types.uint16 },
    u32: { typeId: Types.uint32 },
    u64: { typeId: Types.uint64 },
    i8: { typeId: Types.int8 },
    i16: { typeId: Types.int16 },
    i32: { typeId: Types.int32 },
    i64: { typeId: Types.int64 },
    f64: { typeId: Types.float64 },
    f32: { typeId: Types.float32 },
    text: { typeId: Types.varchar },
    yes: { typeId: Types.boolean },
    at: { typeId: Types.timestamp },
    json: { typeId: Types.json },
    uuid: { typeId: Types.uuid },
    raw: { typeId: Types.bytes },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'id',
};

const nothing = Object.fromEntries(Object.keys(everything.fields).map((name) => [name, null]));
const rows: Record<string, unknown>[] = [
  { ...nothing, id: 'nothing' },
  { ...nothing, id: '' },
  { ...nothing, id: ' spaces ', text: '' },
  { ...nothing, id: 'a,"b"\r\nc\u2028d', text: 'line\nline, "quoted"', json: 'a, "b"\n' },
  { ...nothing, id: 'numbers', u8: 255, u64: 18446744073709551615n, i64: -9223372036854775808n, f64: -0, f32: 0.5 },
  { ...nothing, id: 'widest', u16: 65_535, u32: 4_294_967_295, i8: 127, i16: 32_767, i32: 2_147_483_647 },
  { ...nothing, id: 'lowest', u16: 0, u32: 0, i8: -128, i16: -32_768, i32: -2_147_483_648 },
  { ...nothing, id: 'small', u8: 0, u64: 0n, i64: -1n, f64: 5e-324, f32: -0 },
  { ...nothing, id: 'large', u64: 9007199254740993n, f64: 1.7976931348623157e308, i64: 42n },
  { ...nothing, id: 'infinite', f64: Infinity, f32: -Infinity },
  { ...nothing, id: 'times', at: new Date(-8.64e15), yes: true },
  { ...nothing, id: 'times 2', at: new Date(8.64e15), yes: false },
  { ...nothing, id: 'times 3', at: new Date('0001-01-01T00:00:00.001Z') },
  {
    ...nothing,
    id: 'json',
    json: { a: [1, null, { b: 'ü\u0000' }], __proto__x: 1 },
    uuid: '0192f0c1-2d3e-7f40-8123-456789abcdef',
  },
  { ...nothing, id: 'json 2', json: [], raw: Buffer.from([0, 255, 10, 13]) },
  { ...nothing, id: 'json 3', json: false, raw: Buffer.alloc(0) },
  { ...nothing, id: 'null', text: 'null', json: 'null' },
];

async function fill(folder: TestFolder, filled: readonly Record<string, unknown>[] = rows): Promise<void> {
  const db = StoreDb({ dbPrefix: 'from', nodeId: 1, driver: new FileDriver(folder.file('db')), logLevel: 'silent' });
  db.registerSchema(everything);
  await db.start();
  const batch = db.batch();
  for (const row of filled) void batch.insert('everything', row);
  if (filled === rows) {
    void batch.insert('everything', { id: 'blob', photo: db.Blob(Buffer.alloc(300_000, 'blob')) });
    void batch.insert('everything', { id: 'blob 2', photo: db.Blob('<svg/>', { contentType: 'image/svg+xml' }) });
  }
  await batch.flush();
  await db.stop();
}

async function read(folder: TestFolder, prefix: string): Promise<Record<string, unknown>[]> {
  const db = StoreDb({ dbPrefix: prefix, nodeId: 1, driver: new FileDriver(folder.file('db')), logLevel: 'silent' });
  db.registerSchema(everything);
  await db.start();
  try {
    const found = await db.query('everything').execute();
    for (const row of found) {
      const reference = row['photo'];
      if (typeof reference !== 'string') continue;
      const record = await db.query('_blobs').where('id', '=', reference).first();
      row['photo'] = [await db.getBlob(reference).getString(), record?.['contentType']];
    }
    return found;
  } finally {
    await db.stop();
  }
}

const schemaFile = JSON.stringify({ ...everything, fields: { ...everything.fields, text: 'varchar' } });

const textFormats = ['ndjson', 'json', 'csv', 'tsv'];
const formats = [...textFormats, 'parquet'];

/** What is in a file, decompressed if need be. */
async function contentOf(file: string): Promise<string> {
  const bytes = await readFile(file);
  return (file.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}

describe.each([...formats, 'csv.gz', 'json.gz'])('a table that is exported as %s and imported again', (format) => {
  it('is the same table', async () => {
    await using folder = await TestFolder.make();
    await fill(folder);
    const blobs = ['--blobs', folder.file('blobs')];
    const file = folder.file(`rows.${format}`);
    const exported = await run(['export', folder.url(), 'everything', file, ...blobs]);
    expect(exported).toMatchObject({ status: 0, output: '' });
    expect(exported.messages).toContain(`${rows.length + 2} rows exported`);
    await writeFile(folder.file('schema.json'), schemaFile);
    const into = ['import', folder.url('to'), 'everything', file, '--schema', folder.file('schema.json')];
    const imported = await run([...into, ...blobs, '--rows-per-flush', '4']);
    expect(imported).toMatchObject({ status: 0, output: `${rows.length + 2} rows imported into everything.\n` });
    const expected = await read(folder, 'from');
    expect(expected.map(({ id }) => id)).toContain('a,"b"\r\nc\u2028d');
    expect(expected.find(({ id }) => id === 'blob 2')).toMatchObject({ photo: ['<svg/>', 'image/svg+xml'] });
    const found = await read(folder, 'to');
    expect(found).toEqual(expected);
    // Equality of numbers does not tell zeros apart.
    const small = found.find(({ id }) => id === 'small');
    expect(
      [found.find(({ id }) => id === 'numbers')?.['f64'], small?.['f32']].map((zero) => Object.is(zero, -0)),
    ).toEqual([true, true]);
    if (format === 'parquet') return;
    // And once more, to the byte, but for the references that blobs have there.
    const again = folder.file(`again.${format}`);
    expect(await run(['export', folder.url('to'), 'everything', again])).toMatchObject({ status: 0 });
    const uuid = /[0-9a-f]{8}-[0-9a-f-]{27}/g;
    const lines = async (name: string): Promise<string> => (await contentOf(name)).replace(uuid, 'uuid');
    expect(await lines(again)).toBe(await lines(file));
  });
});

describe.each(textFormats)('a table in pipes as %s', (format) => {
  it('arrives as it was', async () => {
    await using folder = await TestFolder.make();
    await fill(folder);
    await writeFile(folder.file('schema.json'), schemaFile);
    const { output } = await run(['export', folder.url(), 'everything', '--format', format]);
    const noBlob = output.replaceAll(/^.*\bblob\b.*\n/gm, '');
    const into = ['import', folder.url('to'), 'everything', '--schema', folder.file('schema.json'), '--format', format];
    expect(await run(into, { input: noBlob })).toMatchObject({ status: 0 });
    const expected = await read(folder, 'from');
    expect(await read(folder, 'to')).toEqual(expected.filter(({ id }) => !String(id).startsWith('blob')));
  });
});

/** Text of what formats are made of, and of anything else. */
const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...'"\',;\t\r\n |[]{}:\\=+-@#'.split('')),
    fc.constantFrom('null', 'NULL', '\ufeff', '\u0000', '\u2028', '\u0085', '\u00a0', '1', 'true'),
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 }),
  ),
  maxLength: 12,
});
const anyFloat = fc.double({ noNaN: true });
// JSON has no -0, and storing one is refused.
const anyJson = fc
  .jsonValue({ maxDepth: 3, stringUnit: 'grapheme' })
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown);
const values: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  u8: fc.integer({ min: 0, max: 255 }),
  u16: fc.integer({ min: 0, max: 65_535 }),
  u32: fc.integer({ min: 0, max: 4_294_967_295 }),
  i8: fc.integer({ min: -128, max: 127 }),
  i16: fc.integer({ min: -32_768, max: 32_767 }),
  i32: fc.integer({ min: -2_147_483_648, max: 2_147_483_647 }),
  u64: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  i64: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  f64: anyFloat,
  f32: fc.float({ noNaN: true }),
  text: anyText,
  yes: fc.boolean(),
  at: fc.date({ noInvalidDate: true }),
  json: anyJson,
  uuid: fc.uuid(),
  raw: fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
};
const anyRow = fc.record({
  id: anyText,
  photo: fc.constant(null),
  ...Object.fromEntries(
    // Null for json is the same as JSON's null.
    Object.entries(values).map(([name, value]) => [name, fc.option(value, { nil: null, freq: 3 })]),
  ),
});

it('rows of random values come back from every format as they were', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(anyRow, { selector: ({ id }) => id, minLength: 1, maxLength: 20 }),
      fc.constantFrom(...formats),
      fc.boolean(),
      async (random, format, gzip) => {
        await using folder = await TestFolder.make();
        await fill(folder, random);
        const expected = await read(folder, 'from');
        await writeFile(folder.file('schema.json'), schemaFile);
        const file = folder.file(`rows.${format}${gzip && format !== 'parquet' ? '.gz' : ''}`);
        expect(await run(['export', folder.url('from'), 'everything', file])).toMatchObject({ status: 0 });
        const into = ['import', folder.url('to'), 'everything', file, '--schema', folder.file('schema.json')];
        // Numbers in json are those of JavaScript, which are exact as they are.
        expect(await run([...into, '--large-integers', 'round'])).toMatchObject({ status: 0 });
        expect(await read(folder, 'to')).toStrictEqual(expected);
      },
    ),
    { numRuns: 20 },
  );
}, 60_000);
