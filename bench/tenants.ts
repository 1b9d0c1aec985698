/**
 * How much memory many databases in one process take: `npm run bench:tenants [-- --counts 20,200,2000 --kib 1024 --budget <MiB>
 * --folder <path>]`. So many databases of that size each are made in a folder, which is used again if it holds them, and
 * stays. Then a process of its own opens all of them, with a `MemoryBudget` that they share or without one, leaves them
 * alone for a while, reads from every block of each, and stops them. What it tells of is what is left once garbage
 * was collected: at every step, in all and for each database.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import CliTable from 'cli-table3';
import { defineSchema, MemoryBudget, StoreDb, Types } from 'store-db';
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
  console.log(
    `Databases of ${given.kib} KiB of rows each, by how much memory has grown since before they were opened:`,
  );
  console.log(table.toString());
}

if (given.mode === 'load') await load(Number(given.count));
else if (given.mode === 'measure') console.log(JSON.stringify(await measure(Number(given.count))));
else await main();
