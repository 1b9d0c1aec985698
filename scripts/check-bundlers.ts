/**
 * Checks that programs which bundlers make one file of work, with everything that they need in it: on a bucket of the test
 * server, and with a stream and a link. Where a bundle cannot load the S3 client, every call must say so. The same in a server
 * that Next.js has made, which brings what it needs in a folder of its own.
 *
 *   check-bundlers.ts <folder in which the package is installed>
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startS3Server } from '../test/servers/s3-server/server.ts';

const execute = promisify(execFile);
const [consumer] = process.argv.slice(2);
if (consumer === undefined) throw new Error('Name the folder in which the package is installed.');

const versions = ['esbuild@0.28.2', 'webpack@5.112.2', 'rolldown@1.2.19', 'vite@8.3.8'];
const nextVersions = ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1'];

const usage = `
import { StoreDb } from 'store-db';
import { ObjectStoreDriver } from 'store-db/lib/storage';
import { Readable } from 'node:stream';

async function use(driver) {
  const db = StoreDb({ dbPrefix: 'bundled', nodeId: 1, driver, logLevel: 'silent', compression: 'deflate' });
  const fields = { id: { typeId: 1 }, name: { typeId: 10 }, photo: { typeId: 11 } };
  db.registerSchema({ name: 'cities', version: 1, fields, primaryKey: 'id' });
  await db.start();
  const batch = db.batch();
  const photo = db.Blob(Readable.from([Buffer.alloc(9 << 20, 'a'), Buffer.from('end')]));
  await batch.upsert('cities', { id: 1, name: 'Turku', photo });
  await batch.flush();
  const row = await db.get('cities', 1);
  const blob = db.getBlob(row.photo);
  const url = await blob.getDownloadUrl();
  const answer = await fetch(url, { headers: { range: 'bytes=' + (9 << 20) + '-' } });
  await db.stop();
  return row.name + ' ' + (await answer.text());
}
`;

/** What the bundled program does; it has to end by itself. */
const program = `
${usage}
/** Nothing of it may read as an object or a database that is missing. */
async function failures(driver) {
  const replica = StoreDb({ dbPrefix: 'bundled', nodeId: 1, role: 'replica', driver, logLevel: 'silent' });
  const calls = [driver.get('key'), driver.get('key', { range: { start: 0, end: 0 } }), driver.list('key'), replica.start()];
  calls.push(driver.put('key', new Uint8Array(1), { if: 'absent' }), driver.delete(['key']), driver.presign('key', { expiresInSeconds: 9 }));
  calls.push(driver.put('key', Readable.from([Buffer.alloc(1)]), { if: 'any' }), driver.copy('key', 'other'));
  const ended = await Promise.allSettled(calls);
  return ended.map(({ status, reason }) => status + ' ' + reason?.code + ' ' + /"Bundlers"/.test(reason?.message)).join();
}

async function main() {
  const driver = new ObjectStoreDriver({ bucket: 'bundles', endpoint: process.env.ENDPOINT });
  try {
    console.log(process.argv[2] === 'failing' ? await failures(driver) : await use(driver));
  } finally {
    await driver.close();
  }
}
main();
`;

const requireBanner = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/** A script for each bundle that makes it, run where the package is installed. */
const builders: Readonly<Record<string, string>> = {
  'esbuild-cjs.cjs': `
await (await import('esbuild')).build({
  entryPoints: ['main.mjs'], bundle: true, platform: 'node', format: 'cjs', outfile: 'bundled/esbuild-cjs.cjs',
});`,
  'esbuild-banner.mjs': `
await (await import('esbuild')).build({
  entryPoints: ['main.mjs'], bundle: true, platform: 'node', format: 'esm', outfile: 'bundled/esbuild-banner.mjs',
  banner: { js: ${JSON.stringify(requireBanner)} },
});`,
  'esbuild-failing.mjs': `
await (await import('esbuild')).build({
  entryPoints: ['main.mjs'], bundle: true, platform: 'node', format: 'esm', outfile: 'bundled/esbuild-failing.mjs',
});`,
  'webpack.cjs': webpackBuilder('webpack.cjs', {}),
  'webpack-module.mjs': webpackBuilder('webpack-module.mjs', { experiments: { outputModule: true } }),
  'rolldown.mjs': rolldownBuilder('rolldown.mjs', 'esm'),
  'rolldown-cjs.cjs': rolldownBuilder('rolldown-cjs.cjs', 'cjs'),
  'vite.mjs': `
await (await import('vite')).build({
  configFile: false, logLevel: 'error', ssr: { noExternal: true },
  build: {
    ssr: 'main.mjs', outDir: 'bundled/vite', target: 'node20',
    rolldownOptions: { output: { entryFileNames: 'vite.mjs', codeSplitting: false } },
  },
});
await (await import('node:fs/promises')).copyFile('bundled/vite/vite.mjs', 'bundled/vite.mjs');`,
};

function webpackBuilder(filename: string, more: object): string {
  const isModule = filename.endsWith('.mjs');
  const config = {
    entry: './main.mjs',
    mode: 'production',
    target: 'node20',
    optimization: { minimize: false },
    ...more,
  };
  const output = { filename, ...(isModule && { module: true, chunkFormat: 'module' }) };
  return `
const { default: webpack } = await import('webpack');
const { default: path } = await import('node:path');
const output = { path: path.resolve('bundled'), ...${JSON.stringify(output)} };
const plugins = [new webpack.optimize.LimitChunkCountPlugin({ maxChunks: 1 })];
const compiler = webpack({ ...${JSON.stringify(config)}, output, plugins });
await new Promise((done, fail) => compiler.run((error, stats) => {
  if (error || stats.hasErrors()) fail(error ?? new Error(stats.toString('errors-only')));
  else compiler.close(done);
}));`;
}

function rolldownBuilder(file: string, format: string): string {
  return `
const build = await (await import('rolldown')).rolldown({ input: 'main.mjs', platform: 'node', logLevel: 'silent' });
await build.write({ file: 'bundled/${file}', format: '${format}', codeSplitting: false });
await build.close();`;
}

async function checkBundle(name: string, folder: string, variables: Readonly<Record<string, string>>): Promise<void> {
  await writeFile(join(folder, 'build.mjs'), builders[name] as string);
  await execute(process.execPath, ['build.mjs'], { cwd: folder, timeout: 120_000 });
  // Elsewhere, where there are no packages: the bundle has all that it needs.
  const elsewhere = await mkdtemp(join(tmpdir(), 'store-db-bundle-'));
  try {
    await cp(join(folder, 'bundled', name), join(elsewhere, name));
    const isFailing = name.includes('failing');
    const words = isFailing ? [name, 'failing'] : [name];
    const { stdout } = await execute(process.execPath, words, {
      cwd: elsewhere,
      env: { ...process.env, ...variables },
      timeout: 60_000,
    });
    const expected = isFailing ? Array.from({ length: 9 }, () => 'rejected STORAGE true').join() : 'Turku end';
    if (stdout.trim() !== expected) throw new Error(`The bundle ${name} printed ${stdout}`);
    console.log(`${name} works${isFailing ? ' not, and says so' : ''}`);
  } finally {
    await rm(elsewhere, { recursive: true });
  }
}

/** An application with one route, which uses a database on the bucket. */
const nextApplication: Readonly<Record<string, string>> = {
  'package.json': '{ "private": true }',
  // One folder up are the packages.
  'next.config.mjs': `
import { dirname } from 'node:path';
const root = dirname(import.meta.dirname);
export default { output: 'standalone', outputFileTracingRoot: root, turbopack: { root } };`,
  'app/layout.js': 'export default function Layout({ children }) { return <html><body>{children}</body></html>; }',
  'app/cities/route.js': `
${usage}
export const dynamic = 'force-dynamic';
export async function GET() {
  const driver = new ObjectStoreDriver({ bucket: 'bundles', endpoint: process.env.ENDPOINT });
  try {
    return new Response(await use(driver));
  } finally {
    await driver.close();
  }
}`,
};

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, 'close');
  return port;
}

/** What the server in a folder answers under a path, once it listens. */
async function askServer(folder: string, path: string, variables: NodeJS.ProcessEnv): Promise<string> {
  const port = await freePort();
  const environment = { ...process.env, ...variables, PORT: String(port), HOSTNAME: '127.0.0.1' };
  const server = spawn(process.execPath, ['server.js'], { cwd: folder, env: environment });
  const exited = once(server, 'exit');
  let output = '';
  for (const stream of [server.stdout, server.stderr])
    stream.on('data', (bytes: Buffer) => (output += bytes.toString()));
  try {
    for (const until = Date.now() + 60_000; ; await setTimeout(100)) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(60_000) }).catch(
        () => {},
      );
      if (answer?.ok) return await answer.text();
      if (answer !== undefined || server.exitCode !== null || Date.now() > until) {
        throw new Error(`The server of Next answered ${answer?.status ?? 'nothing'}: ${output}`);
      }
    }
  } finally {
    server.kill();
    await exited;
  }
}

async function checkNext(folder: string, variables: Readonly<Record<string, string>>): Promise<void> {
  await install(folder, nextVersions);
  for (const [name, text] of Object.entries(nextApplication)) {
    await mkdir(dirname(join(folder, 'next-app', name)), { recursive: true });
    await writeFile(join(folder, 'next-app', name), text);
  }
  const next = join(folder, 'node_modules', 'next', 'dist', 'bin', 'next');
  const environment = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };
  await execute(process.execPath, [next, 'build', 'next-app'], { cwd: folder, env: environment, timeout: 240_000 });
  const elsewhere = await mkdtemp(join(tmpdir(), 'store-db-next-'));
  try {
    await cp(join(folder, 'next-app', '.next', 'standalone'), elsewhere, { recursive: true });
    const answer = await askServer(join(elsewhere, 'next-app'), '/cities', variables);
    if (answer !== 'Turku end') throw new Error(`The server of Next answered ${answer}`);
    console.log('next works');
  } finally {
    await rm(elsewhere, { recursive: true });
  }
}

async function install(folder: string, packages: readonly string[]): Promise<void> {
  const npmArguments = ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', ...packages];
  await execute('npm', npmArguments, { cwd: folder, shell: process.platform === 'win32', timeout: 300_000 });
}

await install(consumer, versions);
await mkdir(join(consumer, 'bundled'), { recursive: true });
await writeFile(join(consumer, 'main.mjs'), program);
const server = await startS3Server({ buckets: ['bundles'] });
try {
  const { accessKeyId, secretAccessKey } = server.credentials;
  const variables = {
    ENDPOINT: server.endpoint,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
  const checks = new Map(Object.keys(builders).map((name) => [name, () => checkBundle(name, consumer, variables)]));
  checks.set('next', () => checkNext(consumer, variables));
  const failed: string[] = [];
  for (const [name, check] of checks) {
    try {
      await check();
    } catch (error) {
      const { message, stderr = '' } = error as Error & { stderr?: string };
      failed.push(`${name}: ${message}\n${stderr}`);
    }
  }
  if (failed.length > 0) throw new Error(failed.join('\n'));
} finally {
  await server.close();
}
