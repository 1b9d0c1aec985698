/**
 * Checks the package as its users will get it: packs what was built, has the tarball looked over, installs it in an
 * empty project, and there imports, requires, type-checks and uses it, also from a terminal. Run `npm run build` first.
 *
 *   check-package.ts [another node binary to use the installed package with]...
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('../', import.meta.url));
/** Modules of code in the package: loading each takes longer than running it. */
const mostModules = 16;
const consumer = mkdtempSync(join(tmpdir(), 'store-db-consumer-'));

function run(folder: string, command: string, ...args: string[]): string {
  return execFileSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    shell: process.platform === 'win32',
    // A script that uses the package must end by itself; one that does not is stopped, and so fails.
    timeout: 300_000,
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
  const hasSdk = () => Object.keys(modules).some((path) => path.includes('@aws-sdk'));
  if (hasSdk()) throw new Error('The AWS SDK was loaded, although nothing is in a bucket');
  const bucket = new storage.ObjectStoreDriver({ bucket: 'nowhere', endpoint: 'http://127.0.0.1:9' });
  const error = await bucket.get('key').catch((cause) => cause);
  await bucket.close();
  if (error.code !== 'STORAGE' || !hasSdk()) throw new Error('ObjectStoreDriver failed in an odd way', { cause: error });
  console.log(process.version, 'works');
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

function packAndInstall(): string {
  // Not rebuilt here: what is checked is what the build step made.
  const packed = run(repository, 'npm', 'pack', '--json', '--ignore-scripts', '--pack-destination', consumer);
  const [{ filename, files }] = JSON.parse(packed) as [{ filename: string; files: { path: string }[] }];
  const stray = files.filter(({ path }) => /\.test\.|^(src|test|scripts|bench|examples)\//.test(path));
  if (stray.length > 0) throw new Error(`The package has files that nobody needs: ${JSON.stringify(stray)}`);
  const modules = files.filter(({ path }) => path.endsWith('.js'));
  if (modules.length > mostModules) throw new Error(`The package has ${modules.length} modules: it is not bundled`);
  console.log(`${filename}: ${files.length} files, ${modules.length} modules`);
  writeFileSync(join(consumer, 'package.json'), '{ "private": true }');
  run(consumer, 'npm', 'install', '--no-audit', '--no-fund', '--ignore-scripts', join(consumer, filename));
  return join(consumer, filename);
}

function checkTypes(): void {
  writeFileSync(join(consumer, 'use.mts'), typedConsumer);
  writeFileSync(
    join(consumer, 'tsconfig.json'),
    JSON.stringify({
      compilerOptions: {
        target: 'ES2023',
        lib: ['ES2023', 'ESNext.Disposable'],
        module: 'NodeNext',
        strict: true,
        exactOptionalPropertyTypes: true,
        // Our declarations are checked too, not only how they are used.
        skipLibCheck: false,
        noEmit: true,
        types: ['node'],
        typeRoots: [join(repository, 'node_modules', '@types')],
      },
      files: ['use.mts'],
    }),
  );
  console.log(run(consumer, tool('tsc'), '-p', consumer));
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
  console.log(run(repository, tool('attw'), tarball, '--profile', 'esm-only', '--no-color'));
  for (const [name, text] of Object.entries(consumers)) {
    writeFileSync(join(consumer, name), text);
    for (const node of [process.execPath, ...process.argv.slice(2)])
      console.log(name, run(consumer, node, name).trim());
  }
  if (process.platform !== 'win32') for (const node of [process.execPath, ...process.argv.slice(2)]) useCommand(node);
  checkTypes();
} catch (error) {
  // What a failed command printed says more than where it was called.
  const { message, stdout } = error as Error & { stdout?: unknown };
  console.error(message);
  if (typeof stdout === 'string') console.error(stdout);
  process.exitCode = 1;
} finally {
  rmSync(consumer, { recursive: true, force: true });
}
