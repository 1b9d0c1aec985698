/**
 * Measures what grows with the number of rows: `npm run bench:growth [-- --sizes 100000,1000000,10000000 --folder <path> --keep]`.
 * A table of each size is loaded into a folder. For each kind of work a process of its own opens the table, does the work with a
 * memory of 64 MiB, and reports the requests and bytes, the time, and how much its resident memory has grown at most. Large tables
 * are sampled: scans read a million rows.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, openSync, closeSync, readdirSync, readSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { Presets, SingleBar } from 'cli-progress';
import CliTable from 'cli-table3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';
import { fractionOf } from './peers/cities.ts';

const run = promisify(execFile);
const mebibyte = 1024 * 1024;
const memoryBytes = 64 * mebibyte;

/** Entries that come in the order of their days, as most that are logged, ordered or published do. */
const entries = defineSchema({
  name: 'entries',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    day: { typeId: Types.uint32 },
    author: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: ['day'],
});

const rowsOfDay = 100;
const batchRows = 250_000;
const scannedRows = 1_000_000;

const { values: given } = parseArgs({
  options: {
    sizes: { type: 'string', default: '100000,1000000,10000000' },
    folder: { type: 'string', default: path.join(tmpdir(), 'store-db-growth') },
    keep: { type: 'boolean', default: false },
    /** Of a process that measures. */
    rows: { type: 'string' },
    work: { type: 'string' },
  },
});

/** A number from 0 to `count` - 1 that belongs to another, spread evenly. */
function spread(n: number, count: number): number {
  return Math.floor(fractionOf(n) * count);
}

function entry(id: number): { id: number; day: number; author: number; title: string } {
  const author = spread(id, 10_000);
  return { id, day: Math.floor(id / rowsOfDay), author, title: `Entry ${id} of ${author}` };
}

interface Figures {
  /** Units of work: reads, thousands of rows, commits. */
  readonly units: number;
  readonly ms: number;
  readonly requests: number;
  readonly bytes: number;
  readonly grownBytes: number;
}

function folderOf(rows: number): string {
  return path.join(given.folder, String(rows));
}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(`Wrong: ${what}`);
}

async function open(rows: number, maxMemoryBytes: number): Promise<Database> {
  // Syncs would measure the disk.
  const driver = new FileDriver({ path: folderOf(rows), durability: 'none' });
  const db = StoreDb({ dbPrefix: 'db', nodeId: 0, driver, logLevel: 'silent', polling: 'onDemand', maxMemoryBytes });
  db.registerSchema(entries);
  await db.start();
  return db;
}

const backups = {
  driver: new FileDriver({ path: path.join(given.folder, 'backups'), durability: 'none' }),
  prefix: 'b',
};

/** Each kind of work returns how many units it did. Those that change the table come last. */
const works: Readonly<Record<string, (db: Database, rows: number) => Promise<number>>> = {
  'open, and get a row': async (db) => {
    check((await db.get(entries, 7))?.day === 0, 'first row');
    return 1;
  },
  'get a row': async (db, rows) => {
    for (let i = 0; i < 2000; i++) {
      const id = spread(i, rows);
      check((await db.get(entries, id))?.author === entry(id).author, 'get');
    }
    return 2000;
  },
  'range of 20 rows by an index': async (db, rows) => {
    for (let i = 0; i < 500; i++) {
      const day = Math.min(spread(i, rows / rowsOfDay), rows / rowsOfDay - 1);
      const found = await db.query(entries).where('day', '>=', day).orderBy('day').limit(20).execute();
      check(found[0]?.day === day, 'range');
    }
    return 500;
  },
  'scan, 1,000 rows': async (db, rows) => {
    const count = Math.min(rows, scannedRows);
    const from = Math.floor((rows - count) / 2);
    const found = db
      .query(entries)
      .where('id', '>=', from)
      .where('id', '<', from + count);
    check((await found.where('author', '<', 10_000).count()) === count, 'scan');
    return count / 1000;
  },
  'verify, 1,000 rows': async (db, rows) => {
    const report = await db.verify();
    check(report.ok && report.tables.some((table) => table.rows === rows), 'verify');
    return rows / 1000;
  },
  'back up, 1,000 rows': async (db, rows) => {
    await db.backup(backups);
    return rows / 1000;
  },
  'back up again, after a commit': async (db) => {
    await update(db, 5);
    await db.backup(backups);
    return 1;
  },
  'commit and merge a row': async (db, rows) => {
    for (let i = 0; i < 20; i++) await update(db, spread(i, rows));
    return 20;
  },
  'gc after 21 commits': async (db) => {
    const report = await db.gc({ graceMs: 0, logRetentionMs: 0 });
    check(report.deletedCount > 0, 'gc');
    return 1;
  },
};

async function update(db: Database, id: number): Promise<void> {
  const batch = db.batch();
  void batch.update(entries, { id, title: `Entry ${id}, changed` });
  await batch.flush();
  await db.checkpoint();
}

async function load(rows: number): Promise<Figures> {
  const db = await open(rows, 512 * mebibyte);
  const before = process.memoryUsage.rss();
  const began = performance.now();
  for (let id = 0; id < rows; ) {
    const batch = db.batch();
    for (const end = Math.min(rows, id + batchRows); id < end; id++) void batch.insert(entries, entry(id));
    await batch.flush();
    await db.checkpoint();
    console.error(id);
  }
  const ms = performance.now() - began;
  const figures = figuresOf(db, rows / 1000, ms, process.memoryUsage.rss() - before);
  await db.gc({ graceMs: 0, logRetentionMs: 0 });
  await db.stop();
  return figures;
}

function figuresOf(db: Database, units: number, ms: number, grownBytes: number): Figures {
  const { bytesRead, bytesWritten, deletedKeys: _, ...requests } = db.stats().requests;
  const sum = Object.values(requests).reduce((total, each) => total + each, 0);
  return { units, ms, requests: sum, bytes: bytesRead + bytesWritten, grownBytes };
}

async function measure(name: string, rows: number): Promise<Figures> {
  const opened = performance.now();
  const db = await open(rows, memoryBytes);
  const before = process.memoryUsage.rss();
  let most = before;
  const watching = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 20);
  const isOpening = name.startsWith('open');
  const start = figuresOf(db, 0, 0, 0);
  const began = isOpening ? opened : performance.now();
  const units = (await works[name]?.(db, rows)) ?? 0;
  const ms = performance.now() - began;
  clearInterval(watching);
  const end = figuresOf(db, units, ms, Math.max(most, process.memoryUsage.rss()) - before);
  await db.stop();
  if (isOpening) return end;
  return { ...end, requests: end.requests - start.requests, bytes: end.bytes - start.bytes };
}

async function inProcess(work: string, rows: number, onLine?: (line: string) => void): Promise<Figures> {
  const own = ['--work', work, '--rows', String(rows), '--folder', given.folder];
  const child = run(process.execPath, ['--import', 'tsx', fileURLToPath(import.meta.url), ...own]);
  child.child.stderr?.on('data', (text: Buffer) => onLine?.(String(text).trim()));
  return JSON.parse((await child).stdout) as Figures;
}

async function loaded(rows: number): Promise<Figures> {
  if (existsSync(folderOf(rows))) {
    throw new Error(`${folderOf(rows)} holds a table already: remove it, or name another folder.`);
  }
  mkdirSync(folderOf(rows), { recursive: true });
  const bar = new SingleBar({ format: `${rows} rows {bar} {percentage} %` }, Presets.shades_classic);
  bar.start(rows, 0);
  const figures = await inProcess('load', rows, (line) => bar.update(Number(line.split('\n').at(-1)) || 0));
  bar.stop();
  return figures;
}

/** Counts the inner nodes in a folder: blocks of the kind 3, which the fifth byte of a block's header tells. */
function innerNodesIn(folder: string): { readonly count: number; readonly bytes: number } {
  const head = Buffer.alloc(64);
  let count = 0;
  let bytes = 0;
  for (const file of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const name = path.join(file.parentPath, file.name);
    const descriptor = openSync(name, 'r');
    const length = readSync(descriptor, head);
    closeSync(descriptor);
    const at = head.subarray(0, length).indexOf('SDB');
    if (at < 0 || head[at + 4] !== 3) continue;
    count++;
    bytes += statSync(name).size;
  }
  return { count, bytes };
}

function printed(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en');
  if (value === 0) return '0';
  return value >= 1 ? value.toFixed(1) : value.toPrecision(2);
}

async function main(): Promise<void> {
  const sizes = given.sizes.split(',').map(Number);
  const head = ['Work', ...sizes.map((rows) => `${rows.toLocaleString('en')} rows`)];
  const table = new CliTable({ head, style: { head: [], border: [] } });
  const lines = new Map<string, string[]>();
  for (const rows of sizes) {
    const add = (name: string, values: readonly number[]): void => {
      lines.set(name, [...(lines.get(name) ?? []), values.map(printed).join(' · ')]);
    };
    const addFigures = (name: string, { units, ms, requests, bytes, grownBytes }: Figures): void => {
      add(name, [requests / units, bytes / units / 1000, ms / units, grownBytes / mebibyte]);
    };
    rmSync(path.join(given.folder, 'backups'), { recursive: true, force: true });
    addFigures('load, 1,000 rows', await loaded(rows));
    const inner = innerNodesIn(folderOf(rows));
    add('inner nodes in files: number · KB', [inner.count, inner.bytes / 1000]);
    for (const name of Object.keys(works)) {
      console.error(`${rows.toLocaleString('en')} rows: ${name}`);
      addFigures(name, await inProcess(name, rows));
    }
    if (!given.keep) rmSync(folderOf(rows), { recursive: true, force: true });
  }
  for (const [name, cells] of lines) table.push([name, ...cells]);
  console.log('Requests · KB · ms for each, and MiB that memory has grown by at most:');
  console.log(table.toString());
}

if (given.work === undefined) await main();
else {
  const rows = Number(given.rows);
  console.log(JSON.stringify(given.work === 'load' ? await load(rows) : await measure(given.work, rows)));
}
