/**
 * What StoreDb's S3 client adds to the requests that it makes: the time to the first row of a new process and to a commit, beside
 * as many plain requests of `node:http`, and the memory of a process that has read one row.
 *
 *   s3-client.ts [rounds] [folder of another build of the package, to compare with]
 *
 * `NODE_BINARY` is the Node.js that runs the programs, by default the one that runs this file.
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
const node = process.env['NODE_BINARY'] ?? process.execPath;
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

/** Returns the end of a program: it reports a value, given as code, and its memory. */
function reportOf(value: string): string {
  return `
console.log(JSON.stringify({ value: ${value}, rss: process.memoryUsage.rss() }));
process.exit();
`;
}

const reportFirst = reportOf('Date.now()');
const reportCommits = reportOf('commits.sort((a, b) => a - b)[10]');
const plainGet = `
import http from 'node:http';
const agent = new http.Agent({ keepAlive: true });
const get = () => new Promise((resolve, reject) => {
  http.get(process.env.STOREDB_ENDPOINT + '/nothing', { agent }, (res) => res.resume().on('end', resolve)).on('error', reject);
});
`;

/** The programs of a contender. The one that commits does so in a database of its own, so that a first row has no commits to read. */
interface Programs {
  readonly firstRow: string;
  readonly commits: string;
}

const plain: Programs = {
  firstRow: `${plainGet}
for (let i = 0; i < 3; i++) await get();
${reportFirst}`,
  commits: `${plainGet}
const commits = [];
for (let i = 0; i < 20; i++) {
  const startedMs = performance.now();
  await get();
  await get();
  commits.push(performance.now() - startedMs);
}
${reportCommits}`,
};

function storeDb(build: string): Programs {
  const open = (dbPrefix: string, role: string): string => `
import { StoreDb } from '${pathToFileURL(join(build, 'dist/index.js')).href}';
const db = StoreDb({ dbPrefix: '${dbPrefix}', logLevel: 'silent', nodeId: 1, role: '${role}' });
db.registerSchema(${schema});
await db.start();
`;
  return {
    firstRow: `${open('db', 'replica')}
const row = await db.get('cities', 1);
if (row?.name !== 'Turku') throw new Error('It read ' + JSON.stringify(row));
${reportFirst}`,
    commits: `${open('commits', 'writer')}
const commits = [];
for (let i = 0; i < 20; i++) {
  const batch = db.batch();
  batch.upsert('cities', { id: 2, name: 'Oulu' });
  const startedMs = performance.now();
  await batch.flush();
  commits.push(performance.now() - startedMs);
}
${reportCommits}`,
  };
}

interface Round {
  readonly firstMs: number;
  readonly rssMb: number;
  readonly commitMs: number;
}

async function runProgram(script: string, env: NodeJS.ProcessEnv): Promise<{ value: number; rss: number }> {
  const { stdout } = await run(node, [script], { env, cwd: folder });
  return JSON.parse(stdout) as { value: number; rss: number };
}

async function measureFirst(name: string, env: NodeJS.ProcessEnv): Promise<Pick<Round, 'firstMs' | 'rssMb'>> {
  const startedMs = Date.now();
  const { value, rss } = await runProgram(join(folder, `${name} first row.mjs`), env);
  return { firstMs: value - startedMs, rssMb: rss / 2 ** 20 };
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
  const contenders: Record<string, Programs> = { 'plain requests': plain, StoreDb: storeDb(root) };
  if (other !== undefined) contenders['other build'] = storeDb(resolve(other));
  const results = new Map<string, Round[]>();
  for (const [name, programs] of Object.entries(contenders)) {
    writeFileSync(join(folder, `${name} first row.mjs`), programs.firstRow);
    writeFileSync(join(folder, `${name} commits.mjs`), programs.commits);
    await measureFirst(name, env);
    results.set(name, []);
  }
  for (let round = 0; round < rounds; round++) {
    const firsts = new Map<string, Pick<Round, 'firstMs' | 'rssMb'>>();
    for (const name of results.keys()) firsts.set(name, await measureFirst(name, env));
    for (const [name, first] of firsts) {
      const { value: commitMs } = await runProgram(join(folder, `${name} commits.mjs`), env);
      results.get(name)?.push({ ...first, commitMs });
    }
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
