/** Imports with bad lines, existing rows, and Ctrl-C: nothing is lost, and the import reports its position. */
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { jsonLines, run, TestFolder } from './shell.ts';

let folder: TestFolder;
/** With a database in which nothing is: to make one takes longer than most of the tests do. */
let template: TestFolder;
const fields = { id: 'uint8', name: 'varchar', at: 'timestamp', photo: 'blob' };

beforeAll(async () => {
  template = await TestFolder.make();
  await writeFile(
    template.file('t.json'),
    JSON.stringify({ name: 't', version: 1, fields, primaryKey: 'id', indexes: [] }),
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

async function file(text: string | Uint8Array, name = 'rows.ndjson'): Promise<string> {
  await writeFile(folder.file(name), text);
  return folder.file(name);
}

const into = (...words: string[]): string[] => [
  'import',
  folder.url('main'),
  't',
  '--schema',
  folder.file('t.json'),
  ...words,
];
const ids = async (): Promise<unknown[]> => {
  const { output } = await run(['query', folder.url('main'), 't', '--fields', 'id', '--json']);
  return jsonLines(output).map((row) => (row as { id: number }).id);
};

it('takes times without a zone as UTC, wherever it runs', async () => {
  const times = [
    '2026-01-31',
    '2026-01-31T12:00',
    '2026-01-31 12:00:00.5',
    '2026-01-31T12:00:00+02:00',
    '-000001-01-01',
  ];
  const lines = times.map((at, id) => JSON.stringify({ id, at })).join('\n');
  process.env['TZ'] = 'America/New_York';
  expect(await run(into(await file(`${lines}\n`)))).toMatchObject({ status: 0 });
  const { output } = await run(['query', folder.url('main'), 't', '--fields', 'at', '--json']);
  expect(jsonLines(output).map((row) => (row as { at: string }).at)).toEqual([
    '2026-01-31T00:00:00.000Z',
    '2026-01-31T12:00:00.000Z',
    '2026-01-31T12:00:00.500Z',
    '2026-01-31T10:00:00.000Z',
    '-000001-01-01T00:00:00.000Z',
  ]);
});

it('reads the input for - as well', async () => {
  const words = into('-', '--format', 'ndjson');
  expect(await run(words, { input: '{"id":7}\n' })).toMatchObject({ status: 0 });
  expect(await ids()).toEqual([7]);
  const { output } = await run(['export', folder.url('main'), 't', '-']);
  expect(jsonLines(output)).toMatchObject([{ id: 7 }]);
});

it('exports into a file of its own, and not to where a link leads', async () => {
  expect(await run(into(await file('{"id":1}\n')))).toMatchObject({ status: 0 });
  const [target, elsewhere] = [folder.file('out.ndjson'), folder.file('elsewhere')];
  await writeFile(elsewhere, 'untouched');
  await symlink(elsewhere, `${target}.partial`);
  expect(await run(['export', folder.url('main'), 't', target])).toMatchObject({ status: 0 });
  expect(await readFile(elsewhere, 'utf8')).toBe('untouched');
  expect(jsonLines(await readFile(target, 'utf8'))).toMatchObject([{ id: 1 }]);
});

describe('a bad line', () => {
  it.each([
    ['{"id":1}\n{"id":2\n{"id":3}\n', 2, 'it is not JSON'],
    ['{"id":1}\n\n\n[2]\n', 4, 'not an object'],
    ['{"id":1}\n{"id":300}\n', 2, 'id'],
    ['{"id":1}\n{"id":2,"nam":"x"}\n', 2, 'no field "nam"'],
    ['{"id":1,"name":5}\n', 1, '5 is no varchar'],
    ['{"id":1,"at":"yesterday"}\n', 1, '"yesterday" is no timestamp'],
    ['{"id":1,"at":"2026-02-31T00:00:00Z"}\n', 1, '"2026-02-31T00:00:00Z" is no timestamp'],
    ['{"id":1,"at":"2026-01-31T25:00:00Z"}\n', 1, 'is no timestamp'],
    ['{"id":1}\n{"name":"x"}\n', 2, 'id'],
    ['{"id":1}\n{"id":2,"__proto__":{"name":"x"}}\n', 2, 'no field "__proto__"'],
    ['{"id":1}\n{"id":2,"constructor":1}\n', 2, 'no field "constructor"'],
    [Buffer.from([0x7b, 0x7d, 0x0a, 0xff, 0xfe, 0x0a]), 2, 'byte 0xFF'],
    [Buffer.from([...Buffer.from('{"id":1}\n'), 0xff, 0x0a]), 2, 'byte 0xFF is not utf-8'],
    ['{"id":1}\n{"id":2,"photo":"0192f0c1-2d3e-7f40-8123-456789abcdef"}\n', 2, '--blobs'],
  ])('%j is named, and nothing is imported', async (text, line, message) => {
    const { status, messages } = await run(into(await file(text)));
    expect({ status, messages }).toEqual({ status: 1, messages: expect.stringContaining(`, line ${line}`) as unknown });
    expect(messages).toContain(message);
    expect(messages).toContain('Nothing was imported.');
    expect(await ids()).toEqual([]);
  });

  it.each([
    ['id,name\n1,a\n2\n', 3, '1 fields'],
    ['id,name\n1,"a\nb"\n2,"c\nd"\nx,e\n', 6, '"x" is no uint8'],
    ['id,nom\n1,a\n', 1, 'no field "nom"'],
    ['id,id\n1,1\n', 1, 'names a field twice'],
    ['id,name\n1,"a\n', 2, 'never closed'],
  ])('of CSV: %j', async (text, line, message) => {
    const { status, messages } = await run(into(await file(text, 'rows.csv')));
    expect({ status, messages }).toEqual({ status: 1, messages: expect.stringContaining(`, line ${line}`) as unknown });
    expect(messages).toContain(message);
    expect(await ids()).toEqual([]);
  });

  it('from a pipe leaves the rows before it, and says where to go on', async () => {
    const lines = ['{"id":1}', '{"id":2}', '{"id":3}', '{"id":4}', '{"id":5}', 'oops', '{"id":7}'].join('\n');
    const first = await run(into('--rows-per-flush', '2', '--json'), { input: lines });
    expect(first.status).toBe(1);
    expect(jsonLines(first.output)[0]).toMatchObject({ rows: 4, importedToLine: 4, badLine: 6, resumeFromLine: 5 });
    expect(await ids()).toEqual([1, 2, 3, 4]);
    const mended = lines.replace('oops', '{"id":6}');
    expect((await run(into('--from-line', '5'), { input: mended })).output).toBe('3 rows imported into t.\n');
    expect(await ids()).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });
});

describe('rows that are there already', () => {
  it('are refused, replaced or updated', async () => {
    await run(into(await file('{"id":1,"name":"a"}\n{"id":2,"name":"b"}\n')));
    const again = await file('{"id":2,"at":"2026-01-31T00:00:00.000Z"}\n{"id":3}\n');
    const refused = await run(into(again));
    expect(refused).toMatchObject({ status: 1, messages: expect.stringContaining('Nothing was imported.') as unknown });
    expect(await ids()).toEqual([1, 2]);
    expect((await run(into(again, '--mode', 'update'))).status).toBe(1);
    const updated = await file('{"id":2,"at":"2026-01-31T00:00:00.000Z"}\n', 'updated.ndjson');
    expect((await run(into(updated, '--mode', 'update'))).status).toBe(0);
    const row = async (): Promise<unknown> =>
      jsonLines((await run(['query', folder.url(), 't', '--where', 'id = 2', '--json'])).output)[0];
    expect(await row()).toMatchObject({ name: 'b', at: '2026-01-31T00:00:00.000Z' });
    expect((await run(into(again, '--mode', 'upsert'))).status).toBe(0);
    expect(await row()).toMatchObject({ name: null, at: '2026-01-31T00:00:00.000Z' });
    expect(await ids()).toEqual([1, 2, 3]);
  });
});

describe('Ctrl-C', () => {
  it('ends an import between two flushes', async () => {
    const interrupt = new AbortController();
    async function* lines(): AsyncGenerator<Buffer> {
      for (let id = 1; id < 200; id++) {
        if (id === 100) interrupt.abort();
        // Longer than what is read ahead.
        yield Buffer.from(`{"id":${id},"name":"${'x'.repeat(4000)}"}\n`);
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      }
    }
    const { status, messages } = await run(into('--rows-per-flush', '10'), {
      input: Readable.from(lines(), { objectMode: false }),
      signal: interrupt.signal,
    });
    expect(status).toBe(130);
    const imported = (await ids()).length;
    expect(imported).toBeGreaterThan(0);
    expect(imported % 10).toBe(0);
    expect(messages).toContain(`Continue with --from-line ${imported + 1}.`);
  });
});

describe('blobs', () => {
  it('come from the folder that is named, and nothing else does', async () => {
    await mkdir(folder.file('blobs'));
    const reference = '0192f0c1-2d3e-7f40-8123-456789abcdef';
    await writeFile(folder.file(`blobs/${reference}`), 'a photo');
    const blobs = ['--blobs', folder.file('blobs')];
    const outside = await run(into(await file('{"id":1,"photo":"../t.json"}\n'), ...blobs));
    expect(outside).toMatchObject({ status: 1, messages: expect.stringContaining('is no blob reference') as unknown });
    const missing = reference.replace('0192', '0193');
    expect((await run(into(await file(`{"id":1,"photo":"${missing}"}\n`), ...blobs))).messages).toContain(
      'there is no file',
    );
    expect((await run(into(await file(`{"id":1,"photo":"${reference}"}\n`), ...blobs))).status).toBe(0);
    const [row] = jsonLines((await run(['query', folder.url(), 't', '--json'])).output) as { photo: string }[];
    expect((await run(['cat', folder.url(), `blobs/${row?.photo}`])).output).toBe('a photo');
  });

  it('have the media types that are beside them', async () => {
    await mkdir(folder.file('blobs'));
    const reference = '0192f0c1-2d3e-7f40-8123-456789abcdef';
    const typeFile = folder.file(`blobs/${reference}.type`);
    await writeFile(folder.file(`blobs/${reference}`), 'a photo');
    const args = into(await file(`{"id":1,"photo":"${reference}"}\n`), '--blobs', folder.file('blobs'));
    for (const wrong of ['imagé/jpeg', 'x'.repeat(2000)]) {
      await writeFile(typeFile, wrong);
      const refused = await run(args);
      expect(refused.status).toBe(1);
      expect(refused.messages).toContain(`field photo: file ${typeFile} must hold the media type of the blob: `);
    }
    await writeFile(typeFile, 'image/jpeg\n');
    expect((await run(args)).status).toBe(0);
    await run(['export', folder.url(), 't', folder.file('back.ndjson'), '--blobs', folder.file('back')]);
    const names = await readdir(folder.file('back'));
    const [photo, type] = names.toSorted();
    expect(names).toHaveLength(2);
    expect(type).toBe(`${photo}.type`);
    expect(await readFile(folder.file(`back/${type}`), 'utf8')).toBe('image/jpeg');
  });
});
