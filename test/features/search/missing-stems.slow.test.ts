/** A language whose stems come from a package that is not installed: the sources are run from a folder without packages. */
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/file/file-driver.ts';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'store-db-stems-'));

beforeAll(() => {
  cpSync(path.join(root, 'src'), path.join(folder, 'src'), { recursive: true });
  for (const file of ['package.json', 'tsconfig.json']) cpSync(path.join(root, file), path.join(folder, file));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const fields = { id: { typeId: Types.uint32 }, body: { typeId: Types.varchar } };
const danish = { fields: ['body'], text: { language: 'da' } } as const;
const articles = { name: 'articles', version: 1, fields, primaryKey: 'id', indexes: [danish] } as const;

const head = `
import { Types } from './src/format/types.ts';
import { StoreDb } from './src/index.ts';
import { MemoryDriver } from './src/storage/memory-driver.ts';
import { FileDriver } from './src/storage/file/file-driver.ts';

const fields = { id: { typeId: Types.uint32 }, body: { typeId: Types.varchar } };
const articles = (language) => {
  return { name: 'articles', version: 1, fields, primaryKey: 'id', indexes: [{ fields: ['body'], text: { language } }] };
};
const others = { name: 'others', version: 1, fields, primaryKey: 'id' };
const opened = (driver, options = {}) => {
  return StoreDb({ driver, dbPrefix: 'db', nodeId: 7, logLevel: 'warn', logger, writeForwardInterval: 200, ...options });
};
const lines = [];
const note = (message) => void lines.push(message);
const logger = { debug: note, info: note, warn: note, error: note };
const tell = async (name, run) => {
  try {
    console.log(name, JSON.stringify(await run()));
  } catch (error) {
    console.log(name, error.code, error.message);
  }
};
const write = async (db, table) => {
  const batch = db.batch();
  await batch.insert(table, { id: 1, body: 'bilerne' });
  await batch.flush();
};
`;

/** Runs a program where no package is installed, and returns what it tells, by the name of each thing. */
async function run(body: string): Promise<Record<string, string>> {
  writeFileSync(path.join(folder, 'program.ts'), head + body);
  const loader = new URL('../../../node_modules/tsx/dist/loader.mjs', import.meta.url).href;
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', loader, 'program.ts'], { cwd: folder });
  const told = stdout.trim().split('\n');
  return Object.fromEntries(told.map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]));
}

const refused =
  /^NOT_SUPPORTED Nothing can be written to table 'articles' here\. .*'da'.*npm install @orama\/stemmers@\d/;

it('refuses to start before anything is written, with what to install; English needs no package', async () => {
  const told = await run(`
for (const language of ['en', 'da']) {
  const driver = new MemoryDriver();
  const db = opened(driver);
  db.registerSchema(articles(language));
  await tell(language, async () => {
    await db.start();
    await write(db, 'articles');
    await db.checkpoint();
    return (await db.query('articles').search('bilerne').execute()).length;
  });
  await db.stop();
  const { entries } = await driver.list('');
  console.log(language + '-objects', entries.length > 0);
}
`);
  expect(told['en']).toBe('1');
  expect(told['en-objects']).toBe('true');
  expect(told['da']).toMatch(refused);
  expect(told['da-objects']).toBe('false');
});

it('refuses writes, loads and versions where the table is registered after the start, and other tables go on', async () => {
  const told = await run(`
const db = opened(new MemoryDriver());
await db.start();
db.registerSchema(articles('da'));
db.registerSchema(others);
await tell('flush', () => write(db, 'articles'));
await tell('load', () => db.load('articles', [{ id: 1, body: 'bilerne' }]));
await tell('transaction', () => db.transaction((tx) => tx.insert('articles', { id: 1, body: 'bilerne' })));
await tell('target', () => db.setTargetSchemaVersion('articles', 1));
await tell('others', async () => {
  await write(db, 'others');
  await db.checkpoint();
  return (await db.query('others').execute()).length;
});
await tell('health', () => db.health().status);
await db.stop();
`);
  for (const call of ['flush', 'load', 'transaction', 'target']) expect(told[call], call).toMatch(refused);
  expect(told['others']).toBe('1');
  expect(told['health']).toBe('"ok"');
});

it('reads the rows that others write, and says that it cannot merge them', async () => {
  const place = path.join(folder, 'data');
  const driver = new FileDriver(place);
  const writer = StoreDb({ driver, dbPrefix: 'db', nodeId: 0, logLevel: 'error', polling: 'onDemand' });
  writer.registerSchema(articles);
  await writer.start();
  const insert = async (id: number): Promise<void> => {
    const batch = writer.batch();
    await batch.insert('articles', { id, body: 'bilerne' });
    await batch.flush();
  };
  await insert(1);
  await writer.checkpoint();
  await insert(2);
  const told = await run(`
const driver = new FileDriver(${JSON.stringify(place)});
const replica = opened(driver, { role: 'replica' });
replica.registerSchema(articles('da'));
await replica.start();
await tell('replica', async () => (await replica.query('articles').execute()).length);
await tell('search', () => replica.query('articles').search('bilerne').execute());
await replica.stop();
const db = opened(driver, { mergePolicy: { minCommits: 1 } });
db.registerSchema(others);
await db.start();
await tell('others', () => write(db, 'others'));
await tell('before', () => db.health().status);
await tell('checkpoint', () => db.checkpoint());
await tell('health', () => db.health().reasons.map(({ code, status, message }) => [code, status, message].join(' ')));
await new Promise((resolve) => setTimeout(resolve, 1500));
await tell('log', () => lines);
await db.stop();
`);
  expect(told['replica']).toBe('2');
  expect(told['search']).toMatch(/^NOT_SUPPORTED .*npm install @orama\/stemmers@\d/);
  expect(told['others']).toBe('undefined');
  expect(told['before']).toBe('"ok"');
  const cannot =
    /This process cannot merge commits to table 'articles', .*wait for a process that can\. .*npm install @orama/;
  expect(told['checkpoint']).toMatch(cannot);
  expect(told['health']).toMatch(/^\["merges-failing degraded This process/);
  expect(told['health']).toMatch(cannot);
  expect(told['log']).toMatch(cannot);
  // An instance that has the package merges what waits.
  await writer.checkpoint();
  expect((await writer.query('articles').search('bilerne').execute()).length).toBe(2);
  await writer.stop();
});
