/** Tables by schema files with every kind of index, and the queries of the command line that use them. */
import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { jsonLines, run, TestFolder } from './shell.ts';

const schema = {
  name: 'shops',
  version: 1,
  fields: {
    id: 'uint32',
    name: { typeId: 'varchar', required: true },
    seen: 'timestamp',
    tags: 'json',
    at: 'json',
  },
  primaryKey: 'id',
  indexes: [
    { fields: ['tags'], each: true },
    { fields: [{ path: 'at.city', typeId: 'varchar' }], include: ['name', 'at.zip'] },
    { fields: ['name'], where: { seen: ['2026-01-31', null], 'at.country': 'FR' }, name: 'french' },
    { fields: ['name'], text: { language: 'en' }, name: 'words' },
    { function: 'area', typeId: 'float64' },
  ],
};
const rows = [
  { id: 1, name: 'Red wines', seen: null, tags: ['wine', 'red'], at: { city: 'Lyon', country: 'FR', zip: 7 } },
  { id: 2, name: 'Teas', seen: '2026-01-31T00:00:00Z', tags: ['tea'], at: { city: 'Lille', country: 'FR' } },
  { id: 3, name: 'Wine and tea', seen: '2026-02-01T00:00:00Z', tags: ['tea', 'wine'], at: { city: 'Turku' } },
];
let folder: TestFolder;
let file: string;

beforeAll(async () => {
  folder = await TestFolder.make();
  file = folder.file('shops.json');
  await writeFile(file, JSON.stringify(schema));
  await writeFile(folder.file('shops.ndjson'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
});
afterAll(() => folder[Symbol.asyncDispose]());

const ids = async (...words: string[]): Promise<unknown[]> => {
  const { output, messages } = await run(['query', folder.url('main'), ...words, '--json']);
  expect(messages).toBe('');
  return (jsonLines(output) as { id: number }[]).map(({ id }) => id);
};

it('makes a table of a schema file with types by their names, and queries use its indexes', async () => {
  const words = ['import', folder.url('main'), 'shops', folder.file('shops.ndjson'), '--schema', file];
  expect(await run(words)).toMatchObject({ status: 0 });
  const found = await run(['indexes', folder.url('main'), 'shops']);
  for (const told of ['each of tags', 'at.city', 'name, at.zip', 'words of name (en)', 'function area']) {
    expect(found.output).toContain(told);
  }
  expect(found.output).toMatch(/french .* seen .*2026-01-31/);
  expect(await ids("shops where tags has any ('red', 'tea') order by id")).toEqual([1, 2, 3]);
  expect(await ids("shops where tags has all ('tea', 'wine')")).toEqual([3]);
  expect(await ids("shops where at.city like 'L%' order by at.city desc")).toEqual([1, 2]);
  expect(await ids("shops where at.country = 'FR' and seen is null")).toEqual([1]);
  expect(await ids('shops where tags has wine', '--search', 'wine tea', '--any')).toEqual([3, 1]);
  const plan = async (query: string): Promise<string> =>
    (await run(['explain', folder.url('main'), query, '--json'])).output;
  expect(await plan("select at.city, name from shops where at.city = 'Lyon'")).toContain('"index":"at.city"');
  const told = await run(['tables', folder.url('main')]);
  expect(told.output).toContain('words (each word of en)');
});

it('names the types where a schema file has an unknown one', async () => {
  const wrong = { ...schema, name: 'others', indexes: [{ fields: [{ path: 'at.city', typeId: 'text' }] }] };
  await writeFile(folder.file('others.json'), JSON.stringify(wrong));
  const words = ['import', folder.url('main'), 'others', folder.file('shops.ndjson')];
  const refused = await run([...words, '--schema', folder.file('others.json')]);
  expect(refused).toMatchObject({ status: 2, output: '' });
  expect(refused.messages).toContain('Path at.city of an index');
  expect(refused.messages).toContain('has an unknown type "text". The types are ');
  expect(refused.messages).toContain('varchar');
});
