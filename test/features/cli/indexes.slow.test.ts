/** `store-db indexes --drop`: an index goes, without a new version of the table. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { jsonLines, run, TestFolder } from './shell.ts';

const cities = {
  name: 'cities',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar }, country: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['country', { fields: ['name'], unique: true }],
} as const;
let folder: TestFolder;

async function open(nodeId: number): Promise<Database> {
  const driver = new FileDriver({ path: folder.file('db'), durability: 'none' });
  const db = StoreDb({ dbPrefix: 'main', nodeId, driver, logLevel: 'silent', polling: 'onDemand' });
  await db.start();
  return db;
}

beforeEach(async () => {
  folder = await TestFolder.make();
  const db = await open(1);
  db.registerSchema(cities);
  await db.transaction(async (tx) => {
    for (let id = 0; id < 5; id++) await tx.insert(cities, { id, name: `City ${id}`, country: 'FR' });
  });
  await db.checkpoint();
  // Its entry waits in the log when the index goes.
  await db.transaction((tx) => tx.insert(cities, { id: 5, name: 'City 5', country: 'DE' }));
  await db.stop();
});

afterEach(() => folder[Symbol.asyncDispose]());

const indexes = (...words: string[]) => run(['indexes', folder.url(), 'cities', ...words]);
const names = async (): Promise<string[]> => {
  const [found] = jsonLines((await indexes('--json')).output) as [{ name: string }[]];
  return found.map(({ name }) => name);
};

it('drops an index after a confirmation, and nothing else', async () => {
  const asked = await indexes('--drop', 'name');
  expect(asked).toMatchObject({ status: 2, output: '' });
  expect(asked.messages).toMatch(
    /Drop index name of cities, which has 5 entries\? Its values are no longer checked to be unique\./,
  );
  expect(await names()).toEqual(['country', 'name']);
  const unknown = await indexes('--drop', 'nam', '--yes');
  expect(unknown).toMatchObject({ status: 2, output: '' });
  expect(unknown.messages).toContain(
    'Table cities has no index nam: did you mean name? Its indexes are country; name.',
  );
  const dropped = await indexes('--drop', 'name', '--yes', '--json');
  expect(dropped).toMatchObject({ status: 0, messages: '' });
  expect(jsonLines(dropped.output)).toEqual([{ table: 'cities', dropped: 'name', entries: 5 }]);
  expect(await names()).toEqual(['country']);
  // Rows stay, and may agree where they were unique.
  const more = await run(['import', folder.url(), 'cities'], { input: '{"id":6,"name":"City 5","country":"FR"}\n' });
  expect(more).toMatchObject({ status: 0 });
  const found = await run(['query', folder.url(), "cities where name = 'City 5'", '--json']);
  expect(jsonLines(found.output)).toHaveLength(2);
  expect((await run(['verify', folder.url(), '--deep'])).status).toBe(0);
  // No command that registers what is stored brings it back.
  expect(await names()).toEqual(['country']);
});

it('warns that a definition with it adds it again, and that happens', async () => {
  expect((await indexes('--drop', 'country')).messages).toContain(
    'Processes whose definition of the table has the index add it again',
  );
  expect((await indexes('--drop', 'country', '--yes')).output).toBe(
    'Index country of cities was dropped. gc deletes its blocks.\n',
  );
  const db = await open(1);
  db.registerSchema(cities);
  const isBack = async (): Promise<void> => {
    expect((await db.indexes(cities)).find(({ name }) => name === 'country')).toMatchObject({ state: 'ready' });
  };
  await vi.waitFor(isBack, { timeout: 20_000 });
  await db.stop();
});
