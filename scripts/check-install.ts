/**
 * Installs the packed package as applications do, and uses it: alone, with every dependency at the lower end of its range, and in
 * an application that has other versions of the same libraries, outside of the ranges. Also checks how large the installation is.
 *
 *   check-install.ts <tarball> [another node binary to use the installed package with]...
 */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startS3Server } from '../test/servers/s3-server/server.ts';

const execute = promisify(execFile);
const [tarball, ...nodes] = process.argv.slice(2);
if (tarball === undefined) throw new Error('Name the tarball.');

const manifest = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
};
const names = Object.keys(manifest.dependencies);
/**
 * Most packages of an installation, StoreDb among them, and megabytes on the disk. The reader is bundled for itself, which takes 0.4 of
 * them, Studio with its page takes 0.6, the entries of live queries for browsers, React, TanStack DB and OpenTelemetry take 0.5,
 * and the code of the thread of a load takes 0.2.
 */
const most = { packages: 45, megabytes: 15.5 };

/** Uses everything that needs a dependency: a bucket, with a large upload, a list and a link, and the same behind a proxy. */
const program = `
import { StoreDb } from 'store-db';
import { ObjectStoreDriver } from 'store-db/lib/storage';
import { Readable } from 'node:stream';

const driver = new ObjectStoreDriver({ bucket: 'installed', endpoint: process.env.ENDPOINT });
const db = StoreDb({ dbPrefix: process.env.PREFIX, nodeId: 1, driver, logLevel: 'silent', compression: 'deflate' });
const fields = { id: { typeId: 1 }, name: { typeId: 10 }, photo: { typeId: 11 } };
db.registerSchema({ name: 'cities', version: 1, fields, primaryKey: 'id' });
await db.start();
const batch = db.batch();
const photo = db.Blob(Readable.from([Buffer.alloc(9 << 20, 'a'), Buffer.from('end')]));
await batch.upsert('cities', { id: 1, name: 'Turku', photo });
await batch.flush();
const row = await db.get('cities', 1);
if ((await driver.list(process.env.PREFIX + '/')).length === 0) throw new Error('The list is empty');
const answer = await fetch(await db.getBlob(row.photo).getDownloadUrl(), { headers: { range: 'bytes=' + (9 << 20) + '-' } });
console.log(row.name, await answer.text());
await db.stop();
await driver.close();

// The proxy refuses to connect to it, and the error says that.
const secret = new ObjectStoreDriver({ bucket: 'installed', endpoint: 'https://store.invalid' });
const { code } = await secret.get('key').catch((error) => error);
await secret.close();
if (code !== 'STORAGE') throw new Error('A refusal of the proxy ended with ' + code);
`;

async function npm(folder: string, ...words: readonly string[]): Promise<string> {
  const { stdout } = await execute('npm', words, {
    cwd: folder,
    shell: process.platform === 'win32',
    timeout: 600_000,
  });
  return stdout;
}

/** Makes an application with `packages` and the package in it. */
async function install(folder: string, packages: readonly string[]): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, 'package.json'), '{ "private": true }');
  const options = ['--omit=dev', '--no-audit', '--no-fund', '--ignore-scripts'];
  await npm(folder, 'install', ...options, tarball as string, ...packages);
}

/** Returns the size of a folder on the disk in bytes, with its files in blocks. */
async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(
    entries.map(async (name) => {
      const { blocks, size } = await lstat(join(folder, name));
      // Windows knows no blocks.
      return process.platform === 'win32' ? size : blocks * 512;
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function checkSize(folder: string): Promise<void> {
  const lines = (await npm(folder, 'ls', '--all', '--parseable', '--omit=dev')).trim().split('\n').slice(1);
  const packages = new Set(lines).size;
  const megabytes = (await sizeOf(join(folder, 'node_modules'))) / 1e6;
  const own = (await sizeOf(join(folder, 'node_modules', 'store-db'))) / 1e6;
  const size = `${packages} packages, ${megabytes.toFixed(1)} MB on the disk, of them ${own.toFixed(1)} MB store-db`;
  console.log(`An installation has ${size}.`);
  if (packages > most.packages || megabytes > most.megabytes) {
    throw new Error(`At most ${most.packages} packages and ${most.megabytes} MB are allowed, and it has ${size}.`);
  }
}

/** Returns the version of a dependency that the package gets, and whether it shares the copy of the application. */
async function resolved(
  folder: string,
  name: string,
): Promise<{ readonly version: string; readonly isShared: boolean }> {
  const inside = join('node_modules', 'store-db', 'node_modules', name, 'package.json');
  const outside = join('node_modules', name, 'package.json');
  const nested = await readFile(join(folder, inside), 'utf8').catch(() => undefined);
  const { version } = JSON.parse(nested ?? (await readFile(join(folder, outside), 'utf8'))) as { version: string };
  return { version, isShared: nested === undefined };
}

/** Returns the lower end of a range `^1.2.3`. Every range has this form. */
function lowerEnd(name: string): string {
  const end = /^\^(\d+\.\d+\.\d+)$/.exec(manifest.dependencies[name] as string)?.[1];
  if (end === undefined) throw new Error(`${name} must have a caret range, and has ${manifest.dependencies[name]}.`);
  return end;
}

/** Returns the numbers that versions share which a caret range holds: the first, or of `0.x` the first two. */
function major(version: string): string {
  const [first, second] = version.split('.');
  return first === '0' ? `0.${second}` : String(first);
}

/** Returns the newest version of a library that is outside of the range; undefined if there is none. */
async function otherVersion(name: string): Promise<string | undefined> {
  const listed = JSON.parse(await npm(tmpdir(), 'view', name, 'versions', '--json')) as readonly string[];
  const own = major(lowerEnd(name));
  return listed.findLast((version) => /^\d+\.\d+\.\d+$/.test(version) && major(version) !== own);
}

/** Forwards requests, and refuses to connect to TLS servers. */
class Proxy implements AsyncDisposable {
  readonly seen = new Set<string | undefined>();
  readonly #server = createServer((incoming, outgoing) => {
    this.seen.add(incoming.method);
    const { method, headers, url = '' } = incoming;
    // As proxies do, which forward only whole URLs.
    if (!URL.canParse(url)) {
      outgoing.writeHead(400).end();
      return;
    }
    const forwarded = request(url, { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode as number, answer.rawHeaders);
      answer.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  }).on('connect', (incoming, socket) => {
    this.seen.add(incoming.method);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

const server = await startS3Server({ buckets: ['installed'] });
const { accessKeyId, secretAccessKey } = server.credentials;
const credentials = { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey, AWS_REGION: 'us-east-1' };
let uses = 0;

/** Uses the package in an application: on a bucket, behind a proxy, and from the command line with files of Parquet. */
async function use(folder: string): Promise<void> {
  await writeFile(join(folder, 'use.mjs'), program);
  for (const node of [process.execPath, ...nodes]) {
    await using proxy = new Proxy();
    const address = await proxy.listen();
    const variables = { ...credentials, ENDPOINT: server.endpoint, PREFIX: `use-${uses++}` };
    const proxies = { HTTP_PROXY: address, HTTPS_PROXY: address, NO_PROXY: '' };
    const { stdout } = await execute(node, ['use.mjs'], {
      cwd: folder,
      env: { ...process.env, ...variables, ...proxies },
      timeout: 120_000,
    });
    if (stdout.trim() !== 'Turku end') throw new Error(`The package printed ${stdout}`);
    if (!['GET', 'PUT', 'CONNECT'].every((method) => proxy.seen.has(method))) {
      throw new Error(`The proxy has only seen ${[...proxy.seen].join(', ')}`);
    }
    await useParquet(folder, node);
  }
}

/** A file from another program, which is compressed with zstd, goes into a table, out into a file of ours, and in again. */
async function useParquet(folder: string, node: string): Promise<void> {
  const command = join(folder, 'node_modules', 'store-db', 'dist', 'cli', 'main.js');
  const run = async (...words: readonly string[]): Promise<string> =>
    (await execute(node, [command, ...words], { cwd: folder, timeout: 120_000 })).stdout;
  const foreign = fileURLToPath(new URL('../test/features/cli/arrow.parquet', import.meta.url));
  const draft = ['--create', '--yes', '--null', 'NaN'];
  await run('import', 'file:./data#a', foreign, '--table', 'rows', ...draft);
  await run('export', 'file:./data#a', 'rows', 'rows.parquet');
  await run('import', 'file:./data#b', 'rows.parquet', '--table', 'rows', '--create', '--yes');
  const [first, second] = [
    await run('query', 'file:./data#a', 'rows', '--json'),
    await run('query', 'file:./data#b', 'rows', '--json'),
  ];
  if (first === '' || first !== second) throw new Error('Rows have changed on their way through Parquet');
  await rm(join(folder, 'data'), { recursive: true });
}

const root = await mkdtemp(join(tmpdir(), 'store-db-install-'));
try {
  const alone = join(root, 'alone');
  await install(alone, []);
  await checkSize(alone);
  await use(alone);
  console.log('The newest versions of the dependencies work');

  const lowest = join(root, 'lowest');
  await install(
    lowest,
    names.map((name) => `${name}@${lowerEnd(name)}`),
  );
  for (const name of names) {
    const { version, isShared } = await resolved(lowest, name);
    if (!isShared || version !== lowerEnd(name))
      throw new Error(`${name} ${version} is not the one of the application`);
  }
  await use(lowest);
  console.log('The lowest versions of the dependencies work, and are shared with the application');

  const others = join(root, 'others');
  const versions = await Promise.all(names.map(async (name) => [name, await otherVersion(name)] as const));
  const present = versions.filter(([, version]) => version !== undefined);
  await install(
    others,
    present.map(([name, version]) => `${name}@${version}`),
  );
  for (const [name] of present) {
    const { version, isShared } = await resolved(others, name);
    if (isShared || major(version) !== major(lowerEnd(name)))
      throw new Error(`${name} ${version} is outside of the range`);
  }
  await use(others);
  console.log(`The package works beside ${present.map(([name, version]) => `${name} ${version}`).join(', ')}`);
} finally {
  await server.close();
  await rm(root, { recursive: true, force: true });
}
