/**
 * What StoreDb's S3 client adds to the requests that it makes: the time to the first row of a new process and to a commit, beside
 * as many plain requests of `node:http`, and the memory of a process that has read one row.
 *
 *   s3-client.ts [rounds] [folder of another build of the package, to compare with]
 */
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { StoreDb } from 'store-db';
import { medianOf } from './peers/figures.ts';

const run = promisify(execFile);
const rounds = Number(process.argv[2] ?? 15);
const other = process.argv[3];
/** Time that the store takes for each request, in milliseconds. */
const delayMs = 20;
const folder = mkdtempSync(join(tmpdir(), 'store-db-bench-'));
const root = fileURLToPath(new URL('../', import.meta.url));

interface Target {
  readonly endpoint: string;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

const schema = `{ name: 'cities', version: 1, fields: { id: { typeId: 3 }, name: { typeId: 10 } }, primaryKey: 'id' }`;

/** A process that makes three requests one after the other, and then pairs of them. */
const plain = `
import http from 'node:http';
const agent = new http.Agent({ keepAlive: true });
const get = () => new Promise((resolve, reject) => {
  http.get(process.env.STOREDB_ENDPOINT + '/nothing', { agent }, (res) => res.resume().on('end', resolve)).on('error', reject);
});
for (let i = 0; i < 3; i++) await get();
const atMs = Date.now();
const commits = [];
for (let i = 0; i < 20; i++) {
  const startedMs = performance.now();
  await get();
  await get();
  commits.push(performance.now() - startedMs);
}
console.log(JSON.stringify({ atMs, rss: process.memoryUsage.rss(), commits }));
process.exit();
`;

/** A process that reads one row, and then commits. */
function storeDb(build: string): string {
  return `
import { StoreDb } from '${pathToFileURL(join(build, 'dist/index.js')).href}';
const options = { dbPrefix: 'db', logLevel: 'silent' };
const reader = StoreDb({ ...options, nodeId: 1, role: 'replica' });
reader.registerSchema(${schema});
await reader.start();
const row = await reader.get('cities', 1);
const atMs = Date.now();
if (row?.name !== 'Turku') throw new Error('It read ' + JSON.stringify(row));
const rss = process.memoryUsage.rss();
await reader.stop();
const writer = StoreDb({ ...options, nodeId: 1 });
writer.registerSchema(${schema});
await writer.start();
const commits = [];
for (let i = 0; i < 20; i++) {
  const batch = writer.batch();
  batch.upsert('cities', { id: 2, name: 'Oulu' });
  const startedMs = performance.now();
  await batch.flush();
  commits.push(performance.now() - startedMs);
}
console.log(JSON.stringify({ atMs, rss, commits }));
process.exit();
`;
}

interface Round {
  readonly firstMs: number;
  readonly rssMb: number;
  readonly commitMs: number;
}

async function measure(script: string, env: NodeJS.ProcessEnv): Promise<Round> {
  const startedMs = Date.now();
  const { stdout } = await run(process.execPath, [script], { env, cwd: folder });
  const { atMs, rss, commits } = JSON.parse(stdout) as { atMs: number; rss: number; commits: number[] };
  return { firstMs: atMs - startedMs, rssMb: rss / 2 ** 20, commitMs: medianOf(commits) };
}

const server = fork(join(root, 'bench/peers/store-server.ts'), { execArgv: ['--import', 'tsx'] });
async function ask<T>(request: object): Promise<T> {
  const answer = once(server, 'message');
  server.send(request);
  const [{ value }] = (await answer) as [{ value: T }];
  return value;
}

try {
  const target = await ask<Target>({ kind: 'target', prefix: 'db' });
  const env = {
    ...process.env,
    STOREDB_BUCKET: target.bucket,
    STOREDB_ENDPOINT: target.endpoint,
    STOREDB_REGION: target.region,
    AWS_ACCESS_KEY_ID: target.accessKeyId,
    AWS_SECRET_ACCESS_KEY: target.secretAccessKey,
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
  Object.assign(process.env, env);
  const db = StoreDb({ dbPrefix: 'db', nodeId: 0, logLevel: 'silent' });
  db.registerSchema({
    name: 'cities',
    version: 1,
    fields: { id: { typeId: 3 }, name: { typeId: 10 } },
    primaryKey: 'id',
  });
  await db.start();
  const batch = db.batch();
  void batch.insert('cities', { id: 1, name: 'Turku' });
  await batch.flush();
  await db.checkpoint();
  await db.stop();
  await ask({ kind: 'delay', delayMs });
  const scripts: Record<string, string> = { 'plain requests': plain, StoreDb: storeDb(root) };
  if (other !== undefined) scripts['other build'] = storeDb(resolve(other));
  const results = new Map<string, Round[]>();
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(folder, `${name}.mjs`), text);
    await measure(join(folder, `${name}.mjs`), env);
    results.set(name, []);
  }
  for (let round = 0; round < rounds; round++) {
    for (const name of results.keys()) results.get(name)?.push(await measure(join(folder, `${name}.mjs`), env));
  }
  const median = (name: string, value: keyof Round): number =>
    medianOf((results.get(name) ?? []).map((round) => round[value]));
  console.table(
    Object.fromEntries(
      [...results.keys()].map((name) => [
        name,
        {
          'first row, ms': Math.round(median(name, 'firstMs')),
          'x plain': (median(name, 'firstMs') / median('plain requests', 'firstMs')).toFixed(2),
          'commit, ms': median(name, 'commitMs').toFixed(1),
          'x two plain': (median(name, 'commitMs') / median('plain requests', 'commitMs')).toFixed(3),
          'memory, MB': median(name, 'rssMb').toFixed(1),
        },
      ]),
    ),
  );
} finally {
  server.disconnect();
  rmSync(folder, { recursive: true, force: true });
}
