/**
 * Checks the package as its users will get it: packs what was built, has the tarball looked over, installs it in an
 * empty project, and there imports, requires, type-checks, bundles and uses it, also from a terminal and with other versions of its
 * dependencies. Run `npm run build` first.
 *
 *   check-package.ts [another node binary to use the installed package with]...
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../', import.meta.url));
/**
 * Modules of code in the package, as ES modules and as CommonJS: loading each takes longer than running it. Most are of one line, which
 * names what `import()` loads from a larger one.
 */
const mostModules = 106;
const consumer = mkdtempSync(join(tmpdir(), 'store-db-consumer-'));

function run(folder: string, command: string, ...args: string[]): string {
  return execFileSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
    // A script that uses the package must end by itself; one that does not is stopped, and so fails.
    timeout: 600_000,
  });
}

function tool(name: string): string {
  return join(repository, 'node_modules', '.bin', name);
}

/** One use of the database from end to end, in a script that then has to end by itself. */
const exercise = `
async function exercise() {
  if (StoreDb !== defaultExport) throw new Error('The default export is not StoreDb');
  for (const [name, value] of Object.entries({ StoreDb, ...whole, ...storage, ...testing })) {
    if (value === undefined) throw new Error(name + ' is undefined');
    // An error prints the name of its class, which a bundler may change.
    const isClass = typeof value === 'function' && /^class\\b/.test(String(value));
    if (isClass && value.name !== name) throw new Error('The class ' + name + ' is called ' + value.name);
  }
  if (Object.keys(testing).length === 0) throw new Error('store-db/testing exports nothing');
  for (const name of ['FileDriver', 'MemoryDriver', 'ObjectStoreDriver', 'ObservedDriver']) {
    if (typeof storage[name] !== 'function') throw new Error('store-db/lib/storage does not export ' + name);
  }
  const db = StoreDb({ dbPrefix: 'smoke', nodeId: 1, driver: new storage.MemoryDriver(), logLevel: 'silent' });
  const fields = { id: { typeId: 1 }, name: { typeId: 10, maxLength: 20 } };
  db.registerSchema({ name: 'cities', version: 1, fields, primaryKey: 'id', indexes: ['name'] });
  await db.start();
  const batch = db.batch();
  batch.insert('cities', { id: 1, name: 'Turku' });
  await batch.flush();
  const rows = await db.query('cities').where('name', '=', 'Turku').execute();
  await db.stop();
  if (JSON.stringify(rows) !== '[{"id":1,"name":"Turku"}]') throw new Error('Read ' + JSON.stringify(rows));
  await loadWithThread();
  const hasSdk = () => Object.keys(modules).some((path) => path.includes('@aws-sdk'));
  const bucket = new storage.ObjectStoreDriver({ bucket: 'nowhere', endpoint: 'http://127.0.0.1:9' });
  const error = await bucket.get('key').catch((cause) => cause);
  await bucket.close();
  if (error.code !== 'STORAGE') throw new Error('ObjectStoreDriver failed in an odd way', { cause: error });
  if (hasSdk()) throw new Error('The AWS SDK was loaded, although the application has no client of it');
  console.log(process.version, 'works');
}
async function loadWithThread() {
  let threads = 0;
  process.on('worker', () => threads++);
  const driver = new storage.MemoryDriver();
  const db = StoreDb({ dbPrefix: 'load', nodeId: 1, driver, logLevel: 'silent', maxMemoryBytes: 1 << 20 });
  db.registerSchema({ name: 'numbers', version: 1, fields: { id: { typeId: 3 } }, primaryKey: 'id' });
  await db.start();
  const rows = Array.from({ length: 9000 }, (_, i) => ({ id: (i * 7919) % 9000 }));
  await db.load('numbers', rows, { thread: true });
  const found = await db.query('numbers').count();
  await db.stop();
  if (found !== 9000 || threads !== 1) throw new Error('Loaded ' + found + ' rows with ' + threads + ' threads');
}
exercise();
`;

const consumers: Readonly<Record<string, string>> = {
  'use.mjs': `
import defaultExport, * as whole from 'store-db';
import * as storage from 'store-db/lib/storage';
import * as testing from 'store-db/testing';
const { StoreDb } = whole;
import { createRequire } from 'node:module';
const modules = createRequire(import.meta.url).cache;
${exercise}`,
  'use.cjs': `
const { default: defaultExport, ...whole } = require('store-db');
const { StoreDb } = whole;
const storage = require('store-db/lib/storage');
const testing = require('store-db/testing');
const modules = require.cache;
if (require('store-db/package.json').name !== 'store-db') throw new Error('package.json cannot be required');
${exercise}`,
};

const typedConsumer = `
import defaultExport, { StoreDb } from 'store-db';
import type { StorageDriver } from 'store-db/lib/storage';
import { MemoryDriver } from 'store-db/lib/storage';
import * as testing from 'store-db/testing';
const driver: StorageDriver = new MemoryDriver();
export const db: ReturnType<typeof defaultExport> = StoreDb({ dbPrefix: 'typed', nodeId: 0, driver });
export const kit: object = testing;
`;

/** What tests of an application do: a folder, a bucket, and a database that has compressed blocks. */
const jestConsumer = `
const { existsSync, mkdtempSync, rmSync } = require('node:fs');
const { StoreDb, StoreDbError } = require('store-db');
const { FileDriver, ObjectStoreDriver } = require('store-db/lib/storage');
const folder = mkdtempSync('jest-');
afterAll(() => rmSync(folder, { recursive: true }));

test.each(['none', 'deflate'])('a table in a folder, compression %s', async (compression) => {
  const db = StoreDb({ dbPrefix: compression, nodeId: 0, driver: new FileDriver(folder), logLevel: 'silent', compression });
  db.registerSchema({ name: 'cities', version: 1, fields: { id: { typeId: 1 }, photo: { typeId: 11 } }, primaryKey: 'id' });
  await db.start();
  const batch = db.batch();
  await batch.insert('cities', { id: 1, photo: db.Blob(Buffer.from('picture')) });
  await batch.flush();
  const row = await db.get('cities', 1);
  expect((await db.getBlob(row.photo).getBuffer()).toString()).toBe('picture');
  await db.stop();
});

test('a load with a thread', async () => {
  const db = StoreDb({ dbPrefix: 'load', nodeId: 0, driver: new FileDriver(folder), logLevel: 'silent', maxMemoryBytes: 1 << 20 });
  db.registerSchema({ name: 'numbers', version: 1, fields: { id: { typeId: 3 } }, primaryKey: 'id' });
  await db.start();
  const rows = Array.from({ length: 9000 }, (_, i) => ({ id: (i * 7919) % 9000 }));
  expect(await db.load('numbers', rows, { thread: true })).toEqual({ rows: 9000 });
  expect(await db.query('numbers').count()).toBe(9000);
  await db.stop();
});

// Written by a newer Node where the check was given one: reading it takes a module that is bundled for CommonJS.
test('what another Node compressed with zstd', async () => {
  if (!existsSync('zstd')) return;
  const options = { dbPrefix: 'zstd', nodeId: 0, driver: new FileDriver('zstd'), compression: 'none' };
  const db = StoreDb({ ...options, logLevel: 'silent' });
  db.registerSchema({ name: 'cities', version: 1, fields: { id: { typeId: 1 }, name: { typeId: 10 } }, primaryKey: 'id' });
  await db.start();
  expect(await db.get('cities', 1)).toEqual({ id: 1, name: 'Turku' });
  await db.stop();
});

test('a bucket that cannot be reached', async () => {
  const bucket = new ObjectStoreDriver({ bucket: 'nowhere', endpoint: 'http://127.0.0.1:9', region: 'here' });
  process.env.AWS_ACCESS_KEY_ID = process.env.AWS_SECRET_ACCESS_KEY = 'none';
  const error = await bucket.get('key').catch((cause) => cause);
  await bucket.close();
  expect(error).toBeInstanceOf(StoreDbError);
  expect(error.code).toBe('STORAGE');
  // Not a module that could not be loaded: the connection was refused.
  expect(String(error.cause)).toMatch(/ECONNREFUSED/);
});
`;

function packAndInstall(): string {
  // Not rebuilt here: what is checked is what the build step made.
  const packed = run(repository, 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', consumer);
  const [{ filename, files }] = JSON.parse(packed) as [{ filename: string; files: { path: string }[] }];
  const stray = files.filter(({ path }) =>
    /\.test\.|\.map$|^dist\/(cjs\/)?cli\/.*\.d\.ts$|^(src|test|scripts|bench)\//.test(path),
  );
  if (stray.length > 0) throw new Error(`The package has files that nobody needs: ${JSON.stringify(stray)}`);
  const modules = files.filter(({ path }) => /^dist\/.*\.js$/.test(path));
  if (modules.length > mostModules) throw new Error(`The package has ${modules.length} modules: it is not bundled`);
  console.log(`${filename}: ${files.length} files, ${modules.length} modules`);
  writeFileSync(join(consumer, 'package.json'), '{ "private": true }');
  run(consumer, 'npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', join(consumer, filename));
  return join(consumer, filename);
}

function checkTypesWith(compiler: string, file: string, options: Readonly<Record<string, unknown>>): void {
  writeFileSync(join(consumer, file), typedConsumer);
  writeFileSync(
    join(consumer, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        target: 'ES2023',
        lib: ['ES2023', 'ESNext.Disposable'],
        strict: true,
        exactOptionalPropertyTypes: true,
        // Our declarations are checked too, not only how they are used.
        skipLibCheck: false,
        outDir: 'built',
        types: ['node'],
        typeRoots: [join(repository, 'node_modules', '@types')],
        ...options,
      },
      files: [file],
    }),
  );
  run(consumer, compiler, '-p', consumer);
  console.log(`${file} compiles with`, options);
}

/** The package types in ES modules and in CommonJS, also as compilers see it that know no `exports`. */
function checkTypes(): void {
  checkTypesWith(tool('tsc'), 'use.mts', { module: 'NodeNext' });
  checkTypesWith(tool('tsc'), 'use.cts', { module: 'NodeNext' });
  run(consumer, 'npm', 'install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', 'typescript@5.9.3');
  const compiler = join(consumer, 'node_modules', '.bin', 'tsc');
  checkTypesWith(compiler, 'use.mts', { module: 'Node16' });
  checkTypesWith(compiler, 'use.cts', { module: 'Node16' });
  checkTypesWith(compiler, 'use.ts', { module: 'CommonJS', moduleResolution: 'node10', esModuleInterop: true });
  checkTypesWith(compiler, 'use.ts', { module: 'ESNext', moduleResolution: 'bundler' });
}

/** Writes a compressed database, where Node can write it. */
const zstdWriter = `
import { StoreDb } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import * as zlib from 'node:zlib';
if (zlib.zstdCompressSync !== undefined) {
  const options = { dbPrefix: 'zstd', nodeId: 0, driver: new FileDriver('zstd'), logLevel: 'silent', compression: 'zstd' };
  const db = StoreDb(options);
  db.registerSchema({ name: 'cities', version: 1, fields: { id: { typeId: 1 }, name: { typeId: 10 } }, primaryKey: 'id' });
  await db.start();
  const batch = db.batch();
  await batch.insert('cities', { id: 1, name: 'Turku' });
  await batch.flush();
  await db.stop();
}
`;

/** The package works in Jest, whose loader requires CommonJS and has no `import()`. `writers` write what it reads. */
function useInJest(node: string, writers: readonly string[]): void {
  writeFileSync(join(consumer, 'zstd.mjs'), zstdWriter);
  for (const writer of writers) run(consumer, writer, 'zstd.mjs');
  run(consumer, 'npm', 'install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', 'jest@30.5.2');
  writeFileSync(join(consumer, 'use.test.js'), jestConsumer);
  const jest = join(consumer, 'node_modules', 'jest', 'bin', 'jest.js');
  run(consumer, node, jest, '--rootDir', consumer, '--testEnvironment', 'node', 'use.test.js');
  console.log('Jest works');
}

/** The command works with the dependencies that users get: a table goes in and out. */
function useCommand(node: string): void {
  const command = join(consumer, 'node_modules', '.bin', 'store-db');
  const schema = { name: 'cities', version: 1, fields: { id: 'uint8', name: 'varchar' }, primaryKey: 'id' };
  writeFileSync(join(consumer, 'cities.json'), JSON.stringify(schema));
  writeFileSync(join(consumer, 'cities.csv'), 'id,name\n1,Turku\n');
  const from = ['--schema', 'cities.json', '--json'];
  run(consumer, node, command, 'import', 'file:./smoke#db', 'cities', 'cities.csv', ...from);
  const rows = run(consumer, node, command, 'query', 'file:./smoke#db', 'cities', '--json').trim();
  if (rows !== '{"id":1,"name":"Turku"}') throw new Error(`store-db printed ${rows}`);
  rmSync(join(consumer, 'smoke'), { recursive: true });
  console.log('store-db', run(consumer, node, command, '--version').trim(), 'works');
}

try {
  const tarball = packAndInstall();
  console.log(run(repository, tool('publint'), 'run', tarball, '--strict'));
  console.log(run(repository, tool('attw'), tarball, '--no-color'));
  for (const [name, text] of Object.entries(consumers)) {
    writeFileSync(join(consumer, name), text);
    for (const node of [process.execPath, ...process.argv.slice(2)])
      console.log(name, run(consumer, node, name).trim());
  }
  if (process.platform !== 'win32') for (const node of [process.execPath, ...process.argv.slice(2)]) useCommand(node);
  console.log(run(repository, tool('tsx'), 'scripts/check-install.ts', tarball, ...process.argv.slice(2)).trim());
  checkTypes();
  useInJest(process.execPath, process.argv.slice(2, 3));
  if (process.platform !== 'win32') {
    console.log(run(repository, tool('tsx'), 'scripts/check-projects.ts', consumer, ...process.argv.slice(2)).trim());
  }
  console.log(run(repository, tool('tsx'), 'scripts/check-bundlers.ts', consumer).trim());
  console.log(run(repository, tool('tsx'), 'scripts/check-worker.ts', consumer).trim());
} catch (error) {
  // What a failed command printed says more than where it was called.
  const { message, stdout } = error as Error & { stdout?: unknown };
  console.error(message);
  if (typeof stdout === 'string') console.error(stdout);
  process.exitCode = 1;
} finally {
  rmSync(consumer, { recursive: true, force: true });
}
