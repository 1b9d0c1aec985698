/**
 * How much memory reading takes: `npm run bench:memory [-- --budget <MiB> --times <n> --folder <path> --only <phase>]`. A table of so many
 * times the budget (20 times `maxMemoryBytes`, by default 100 MiB) is loaded into a folder; then a process of its own scans
 * it, counts, sorts and reads it row by row, and tells by how much its resident memory has grown at most, and what it is
 * made of. The folder is used again if it holds the table already, and stays.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import CliTable from 'cli-table3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver } from 'store-db/lib/storage';

const run = promisify(execFile);
const mebibyte = 1024 * 1024;

const pages = defineSchema({
  name: 'pages',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, rank: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['rank'],
});

const rowBytes = 4096;
const filler = 'All work and no play makes a dull table. '.repeat(100).slice(0, rowBytes - 32);
const pointReads = 20_000;

const { values: given } = parseArgs({
  options: {
    budget: { type: 'string', default: '100' },
    times: { type: 'string', default: '20' },
    folder: { type: 'string' },
    only: { type: 'string', default: '' },
    mode: { type: 'string', default: 'all' },
  },
});
const budgetBytes = Number(given.budget) * mebibyte;
const rows = Math.round((budgetBytes * Number(given.times)) / rowBytes);
const folder = given.folder ?? path.join(tmpdir(), `store-db-memory-${rows}`);

function rankOf(id: number): number {
  return (id * 7919) % rows;
}

async function open(options: { readonly maxMemoryBytes?: number } = {}): Promise<Database> {
  // Durability would only measure the disk.
  const driver = new FileDriver({ path: folder, durability: 'none' });
  const db = StoreDb({ dbPrefix: 'db', nodeId: 0, driver, logLevel: 'silent', ...options });
  db.registerSchema(pages);
  await db.start();
  return db;
}

async function load(): Promise<void> {
  const db = await open();
  for (let id = 0; id < rows; ) {
    const batch = db.batch();
    for (const end = Math.min(rows, id + 8000); id < end; id++) {
      void batch.insert(pages, { id, rank: rankOf(id), text: `${rankOf(id * 31)} ${filler}` });
    }
    await batch.flush();
  }
  await db.checkpoint();
  await db.stop();
}

/** The most that was seen, of each. */
interface Memory {
  readonly rss: number;
  readonly heapUsed: number;
  readonly heapTotal: number;
  readonly arrayBuffers: number;
}

interface Phase {
  readonly name: string;
  readonly ms: number;
  readonly most: Memory;
}

interface Report {
  readonly before: Memory;
  readonly phases: readonly Phase[];
}

function most(a: Memory, b: Memory): Memory {
  return {
    rss: Math.max(a.rss, b.rss),
    heapUsed: Math.max(a.heapUsed, b.heapUsed),
    heapTotal: Math.max(a.heapTotal, b.heapTotal),
    arrayBuffers: Math.max(a.arrayBuffers, b.arrayBuffers),
  };
}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(`Wrong: ${what}`);
}

const work: Readonly<Record<string, (db: Database, look: () => void) => Promise<void>>> = {
  'scan, row by row': async (db, look) => {
    let count = 0;
    for await (const { id } of db.query(pages)) {
      check(id === count++, 'scan');
      if ((id & 1023) === 0) look();
    }
    check(count === rows, 'scan');
  },
  'count, by an unindexed field': async (db) => {
    check((await db.query(pages).where('text', '!=', null).count()) === rows, 'count');
  },
  'top 20, by an unindexed field': async (db) => {
    check((await db.query(pages).orderBy('text', 'desc').limit(20).execute()).length === 20, 'top rows');
  },
  'first 5,000 ids, by an unindexed field': async (db) => {
    const found = await db.query(pages).orderBy('text').select('id').limit(5000).execute();
    check(found.length === 5000, 'many top rows');
  },
  'in the order of an index, limit 1,000': async (db) => {
    const found = await db.query(pages).orderBy('rank', 'desc').limit(1000).execute();
    check(found.length === 1000 && found[0]?.rank === rows - 1, 'order of an index');
  },
  'point reads': async (db, look) => {
    for (let i = 0; i < pointReads; i++) {
      const id = (i * 7907) % rows;
      check((await db.get(pages, id))?.rank === rankOf(id), 'point read');
      if ((i & 255) === 0) look();
    }
  },
};

async function read(): Promise<Report> {
  const db = await open({ maxMemoryBytes: budgetBytes });
  const before = process.memoryUsage();
  const phases: Phase[] = [];
  for (const [name, phase] of Object.entries(work)) {
    if (!name.includes(given.only)) continue;
    let seen: Memory = process.memoryUsage();
    const look = (): void => {
      seen = most(seen, process.memoryUsage());
    };
    const watching = setInterval(look, 50);
    const began = performance.now();
    await phase(db, look);
    const ms = performance.now() - began;
    look();
    clearInterval(watching);
    phases.push({ name, ms, most: seen });
  }
  await db.stop();
  return { before, phases };
}

async function inProcess(mode: string): Promise<string> {
  const args = ['--import', 'tsx', fileURLToPath(import.meta.url), '--mode', mode, '--folder', folder];
  const sizes = ['--budget', given.budget, '--times', given.times, '--only', given.only];
  const { stdout } = await run(process.execPath, [...args, ...sizes], { maxBuffer: mebibyte });
  return stdout;
}

function print({ before, phases }: Report): void {
  const head = ['', 's', 'resident', 'grown', 'of the budget', 'heap used', 'heap', 'buffers'];
  const table = new CliTable({
    head,
    colAligns: head.map((name) => (name === '' ? 'left' : 'right')),
    style: { head: [] },
  });
  const inMib = (bytes: number): string => (bytes / mebibyte).toFixed(0);
  const line = (name: string, seconds: string, memory: Memory): void => {
    const { rss, heapUsed, heapTotal, arrayBuffers } = memory;
    const grown = rss - before.rss;
    const ofBudget = (grown / budgetBytes).toFixed(2);
    table.push([name, seconds, inMib(rss), inMib(grown), ofBudget, ...[heapUsed, heapTotal, arrayBuffers].map(inMib)]);
  };
  line('opened', '', before);
  for (const { name, ms, most: memory } of phases) line(name, (ms / 1000).toFixed(1), memory);
  console.log(`${rows} rows of ${rowBytes} bytes, maxMemoryBytes of ${given.budget} MiB; the most of each, in MiB:`);
  console.log(table.toString());
  const grown = Math.max(...phases.map((phase) => phase.most.rss)) - before.rss;
  console.log(`Resident memory has grown by ${(grown / budgetBytes).toFixed(2)} times the budget.`);
}

if (given.mode === 'load') await load();
else if (given.mode === 'read') console.log(JSON.stringify(await read()));
else {
  const done = path.join(folder, 'loaded');
  if (!existsSync(done)) {
    mkdirSync(folder, { recursive: true });
    await inProcess('load');
    writeFileSync(done, '');
  }
  print(JSON.parse(await inProcess('read')) as Report);
}
