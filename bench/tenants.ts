/**
 * How much memory many databases in one process take: `npm run bench:tenants [-- --counts 20,200,2000 --kib 1024 --budget <MiB>
 * --folder <path>]`. So many databases of that size each are made in a folder, which goes in the end. Then a process of its own opens all of them, with a `MemoryBudget` that they share or without one, leaves them
 * alone for a while, reads from every block of each, and stops them. What it tells of is what is left once garbage
 * was collected: at every step, in all and for each database. Another process counts the rows of all by `forEachDatabase()`, and
 * one more brings all of them to a new version of their table.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import CliTable from 'cli-table3';
import { defineSchema, forEachDatabase, MemoryBudget, StoreDb, Types } from 'store-db';
import type { Database, StoreDbOptions } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';

const run = promisify(execFile);
const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;

const notes = defineSchema({
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, day: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['day'],
});

const rowBytes = 256;
const filler = 'All work and no play makes a dull table. '.repeat(10).slice(0, rowBytes - 40);
/** Every so many rows one is read: from every block several. */
const stride = 32;
/** How long nobody does anything, in milliseconds: longer than some intervals of the default. */
const restMs = 12_000;

const { values: given } = parseArgs({
  options: {
    counts: { type: 'string', default: '20,200,2000' },
    kib: { type: 'string', default: '1024' },
    budget: { type: 'string', default: '256' },
    folder: { type: 'string' },
    /** Of a process that measures. */
    count: { type: 'string' },
    shared: { type: 'boolean', default: false },
    mode: { type: 'string', default: 'all' },
  },
});
const rows = Math.round((Number(given.kib) * kibibyte) / rowBytes);
const folder = given.folder ?? path.join(tmpdir(), `store-db-tenants-${given.kib}`);

interface Usage {
  readonly rss: number;
  readonly heapUsed: number;
  readonly arrayBuffers: number;
}

interface Step extends Usage {
  readonly name: string;
}

interface Report {
  readonly before: Usage;
  readonly steps: readonly Step[];
  /** Requests of all while nobody did anything. */
  readonly requestsAtRest: number;
  /** Requests that opening one of them took. */
  readonly requestsToOpen: number;
  readonly openMs: number;
}

function make(i: number, driver: FileDriver, options: Partial<StoreDbOptions> = {}): Database {
  const db = StoreDb({ dbPrefix: `tenant-${i}`, nodeId: 0, driver, polling: 'onDemand', logLevel: 'warn', ...options });
  db.registerSchema(notes);
  return db;
}

// Durability would only measure the disk.
function newDriver(): FileDriver {
  return new FileDriver({ path: folder, durability: 'none' });
}

async function load(count: number): Promise<void> {
  const driver = newDriver();
  for (let i = 0; i < count; i++) {
    if (existsSync(path.join(folder, `loaded-${i}`))) continue;
    const db = make(i, driver);
    await db.start();
    const batch = db.batch();
    for (let id = 0; id < rows; id++) void batch.insert(notes, { id, day: (id * 7919) % 365, text: `${i} ${filler}` });
    await batch.flush();
    await db.checkpoint();
    await db.stop();
    writeFileSync(path.join(folder, `loaded-${i}`), '');
  }
}

/** What is in use once garbage is gone. */
async function settle(): Promise<Usage> {
  for (let i = 0; i < 4; i++) {
    globalThis.gc?.();
    await sleep(100);
  }
  const { rss, heapUsed, arrayBuffers } = process.memoryUsage();
  return { rss, heapUsed, arrayBuffers };
}

async function readSome(db: Database): Promise<void> {
  for (let id = 0; id < rows; id += stride) {
    if ((await db.get(notes, id))?.id !== id) throw new Error('Wrong row');
  }
}

function requestsOf(tenants: readonly Database[]): number {
  let sum = 0;
  for (const db of tenants) {
    const { get, getUnchanged, getMissing, put, putLost, delete: deletes, list } = db.stats().requests;
    sum += get + getUnchanged + getMissing + put + putLost + deletes + list;
  }
  return sum;
}

async function measure(count: number): Promise<Report> {
  const driver = newDriver();
  const options = given.shared ? { memory: new MemoryBudget(Number(given.budget) * mebibyte) } : {};
  // What is loaded and compiled once is not what a database costs.
  const first = make(0, driver, options);
  await first.start();
  await readSome(first);
  await first.stop();
  const before = await settle();
  const steps: Step[] = [];
  const tenants: Database[] = [];
  const began = performance.now();
  for (let i = 0; i < count; i++) {
    const db = make(i, driver, options);
    await db.start();
    tenants.push(db);
  }
  const openMs = (performance.now() - began) / count;
  steps.push({ name: 'opened', ...(await settle()) });
  const opened = requestsOf(tenants);
  await sleep(restMs);
  const requestsAtRest = requestsOf(tenants) - opened;
  for (const db of tenants) await readSome(db);
  steps.push({ name: 'read', ...(await settle()) });
  for (const db of tenants) await db.stop();
  tenants.length = 0;
  steps.push({ name: 'stopped', ...(await settle()) });
  return { before, steps, requestsAtRest, requestsToOpen: opened / count, openMs };
}

/** What it took to do something with each. */
interface Visit {
  readonly ms: number;
  readonly requests: number;
  /** The most that was resident, with what the runtime takes. */
  readonly maxRssBytes: number;
  readonly failed: readonly string[];
}

async function visitAll(count: number, visit: (db: Database) => Promise<unknown>): Promise<Visit> {
  const prefixes = Array.from({ length: count }, (_, i) => `tenant-${i}`);
  let requests = 0;
  const began = performance.now();
  const { failed } = await forEachDatabase(prefixes, visit, {
    driver: newDriver(),
    logLevel: 'error',
    writeForwardInterval: 1000,
    onRequest: () => requests++,
  });
  const ms = performance.now() - began;
  const maxRssBytes = process.resourceUsage().maxRSS * kibibyte;
  return { ms, requests, maxRssBytes, failed: failed.map(({ prefix, error }) => `${prefix}: ${String(error)}`) };
}

/** Brings a database to a version that it has not had, and retires the one before. */
async function migrate(db: Database): Promise<void> {
  const [stored] = await db.tables();
  if (stored === undefined) throw new Error('There is no table');
  const version = stored.version + 1;
  const { name, fields, primaryKey, indexes = [] } = stored;
  db.registerSchema({
    name,
    version,
    primaryKey,
    indexes,
    fields: { ...fields, [`added${version}`]: { typeId: Types.uint8, default: 1 } },
  });
  await db.setTargetSchemaVersion(name, version);
  while ((await db.migrationStatus(name)).state !== 'switched') await sleep(20);
  await db.finishMigration(name);
}

async function countRows(db: Database): Promise<void> {
  const [stored] = await db.tables();
  if (stored === undefined) throw new Error('There is no table');
  db.registerSchema(stored);
  if ((await db.query(stored.name).count()) !== rows) throw new Error('Rows are missing');
}

function visitText(what: string, { ms, requests, maxRssBytes, failed }: Visit, count: number): string {
  const each = `${(ms / count).toFixed(1)} ms and ${(requests / count).toFixed(1)} requests each`;
  const memory = `at most ${(maxRssBytes / mebibyte).toFixed(0)} MiB resident`;
  return `${what} ${count} by forEachDatabase(): ${(ms / 1000).toFixed(1)} s, ${each}; ${memory}; ${failed.length} failed.\n${failed.join('\n')}`;
}

async function inProcess(args: readonly string[]): Promise<string> {
  const flags = ['--expose-gc', '--max-old-space-size=16000', '--import', 'tsx', fileURLToPath(import.meta.url)];
  const sizes = ['--kib', given.kib, '--budget', given.budget, '--folder', folder];
  const { stdout } = await run(process.execPath, [...flags, ...sizes, ...args], { maxBuffer: mebibyte });
  return stdout;
}

async function main(): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const counts = given.counts.split(',').map(Number);
  const head = ['databases', 'budget', '', 'resident MiB', 'heap', 'buffers', 'each: resident KiB', 'heap', 'buffers'];
  const table = new CliTable({ head, colAligns: head.map(() => 'right'), style: { head: [] } });
  for (const count of counts) {
    await inProcess(['--mode', 'load', '--count', `${count}`]);
    for (const shared of [false, true]) {
      const flag = shared ? ['--shared'] : [];
      const output = await inProcess(['--mode', 'measure', '--count', `${count}`, ...flag]);
      const { before, steps, requestsAtRest, requestsToOpen, openMs } = JSON.parse(output) as Report;
      for (const { name, rss, heapUsed, arrayBuffers } of steps) {
        const grown = [rss - before.rss, heapUsed - before.heapUsed, arrayBuffers - before.arrayBuffers];
        const all = grown.map((bytes) => (bytes / mebibyte).toFixed(0));
        const each = grown.map((bytes) => (bytes / count / kibibyte).toFixed(0));
        table.push([`${count}`, shared ? `${given.budget} MiB` : 'none', name, ...all, ...each]);
      }
      console.log(
        `${count} databases${shared ? ', with a budget' : ''}: opened in ${openMs.toFixed(1)} ms and ` +
          `${requestsToOpen.toFixed(1)} requests each; ${requestsAtRest} requests of all in ${restMs / 1000} s at rest.`,
      );
    }
  }
  for (const each of counts) {
    for (const mode of ['count', 'migrate']) {
      const output = await inProcess(['--mode', mode, '--count', `${each}`]);
      console.log(visitText(mode, JSON.parse(output) as Visit, each).trimEnd());
    }
  }
  rmSync(folder, { recursive: true, force: true });
  console.log(
    `Databases of ${given.kib} KiB of rows each, by how much memory has grown since before they were opened:`,
  );
  console.log(table.toString());
}

if (given.mode === 'load') await load(Number(given.count));
else if (given.mode === 'measure') console.log(JSON.stringify(await measure(Number(given.count))));
else if (given.mode === 'count') console.log(JSON.stringify(await visitAll(Number(given.count), countRows)));
else if (given.mode === 'migrate') console.log(JSON.stringify(await visitAll(Number(given.count), migrate)));
else await main();
