/**
 * How fast reads are while a table is migrated, compared with the same reads before: `npm run bench:migration [-- <rows>]`.
 * For each driver a process opens version 2 of a table whose rows are all of version 1, reads for some seconds, asks for the
 * migration, and goes on reading until it has switched. On a folder another process does the same with version 1. Gets and
 * queries take turns, so that each is compared with its own kind; all keys are as likely as each other.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as yieldToEventLoop, setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import CliTable from 'cli-table3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver, MemoryDriver } from 'store-db/lib/storage';
import type { StorageDriver } from 'store-db/lib/storage';

const drivers = ['MemoryDriver', 'FileDriver'] as const;
type DriverName = (typeof drivers)[number];

const cities1 = defineSchema({
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 40 },
    country: { typeId: Types.varchar, maxLength: 2 },
    population: { typeId: Types.int32 },
  },
  primaryKey: 'id',
  indexes: ['country'],
});
/** A wider number, a field more, and an index more. */
const cities2 = defineSchema({
  name: 'cities',
  version: 2,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 40 },
    country: { typeId: Types.varchar, maxLength: 2 },
    population: { typeId: Types.float64 },
    level: { typeId: Types.uint8, default: 3 },
  },
  primaryKey: 'id',
  indexes: ['country', 'population'],
});

/** Gets between two turns of the event loop, as many as a server may answer for what came in at once. */
const getsAtOnce = 16;
const windowMs = 250;
const rowsOfQuery = 20;
const baselineMs = 8000;
/** As much as holds all rows: where most reads go to the store, the work in between is hardly seen. */
const maxMemoryBytes = 512 * 1024 * 1024;

/** What was read in some time. */
interface Reads {
  readonly getsPerSecond: number;
  readonly queriesPerSecond: number;
  /** Longest time that the event loop was held for, in milliseconds. */
  readonly maxWaitMs: number;
  /** Most CPU time of the main thread between two runs of a timer, in milliseconds; NaN where it cannot be told. */
  readonly maxTurnMs: number;
}

interface Result {
  readonly rows: number;
  readonly before: Reads;
  readonly during: Reads;
  /** The process with version 1. */
  readonly other?: { readonly before: Reads; readonly during: Reads };
  readonly seconds: number;
  readonly chunks: number;
  readonly gets: number;
  readonly puts: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
  readonly rssBeforeBytes: number;
  readonly rssPeakBytes: number;
}

/** CPU time of the main thread so far, in milliseconds. */
function mainThreadMs(): number {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    return NaN;
  }
}

/** Reads until it is told to stop: windows of gets, and windows of queries. */
async function read(db: Database, version: 1 | 2, rows: number, goesOn: () => boolean): Promise<Reads> {
  const table = version === 1 ? cities1 : cities2;
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let [maxTurnMs, cpuMs] = [0, mainThreadMs()];
  const sampler = setInterval(() => {
    const now = mainThreadMs();
    maxTurnMs = Math.max(maxTurnMs, now - cpuMs);
    cpuMs = now;
  }, 1);
  let [gets, getMs, queries, queryMs] = [0, 0, 0, 0];
  const someKey = (): number => Math.floor(Math.random() * rows);
  while (goesOn()) {
    const getsFrom = performance.now();
    while (performance.now() - getsFrom < windowMs && goesOn()) {
      for (let i = 0; i < getsAtOnce; i++)
        if ((await db.get(table, someKey())) === undefined) throw new Error('no row');
      gets += getsAtOnce;
      await yieldToEventLoop();
    }
    const queriesFrom = performance.now();
    getMs += queriesFrom - getsFrom;
    while (performance.now() - queriesFrom < windowMs && goesOn()) {
      const from = Math.floor(Math.random() * (rows - rowsOfQuery));
      const found = await db.query(table).where('id', '>=', from).limit(rowsOfQuery).execute();
      if (found.length !== rowsOfQuery) throw new Error(`${found.length} rows`);
      queries++;
      await yieldToEventLoop();
    }
    queryMs += performance.now() - queriesFrom;
  }
  delay.disable();
  clearInterval(sampler);
  return {
    getsPerSecond: (gets * 1000) / getMs,
    queriesPerSecond: (queries * 1000) / queryMs,
    maxWaitMs: delay.max / 1e6,
    maxTurnMs,
  };
}

function forSome(ms: number): () => boolean {
  const untilMs = performance.now() + ms;
  return () => performance.now() < untilMs;
}

/** In a process of its own, so that reading begins with an empty memory. */
async function load(driver: StorageDriver, rows: number): Promise<void> {
  const db = StoreDb({ dbPrefix: 'bench', nodeId: 1, driver, logLevel: 'warn' });
  db.registerSchema(cities1);
  await db.start();
  const batch = db.batch();
  for (let i = 0; i < rows; i++) {
    // Not awaited: what is wrong with a row would reject the flush.
    void batch.insert(cities1, {
      id: i,
      name: `City number ${i}`,
      country: `C${i % 8}`,
      population: (i * 7919) % 1_000_003,
    });
    if (i % 10_000 === 9999) await yieldToEventLoop();
  }
  await batch.flush();
  await db.checkpoint();
  await db.stop();
}

/** The process with version 1: reads before, and once it is told to, during the migration. */
async function runReader(folder: string, rows: number): Promise<void> {
  const db = StoreDb({
    dbPrefix: 'bench',
    nodeId: 1,
    driver: new FileDriver(folder),
    logLevel: 'warn',
    maxMemoryBytes,
  });
  db.registerSchema(cities1);
  await db.start();
  await read(db, 1, rows, forSome(baselineMs / 2));
  const before = await read(db, 1, rows, forSome(baselineMs));
  process.send?.({ before });
  await once(process, 'message');
  let isOver = false;
  process.once('message', () => {
    isOver = true;
  });
  const during = await read(db, 1, rows, () => !isOver);
  process.send?.({ during });
  await db.stop();
  process.disconnect();
}

function reportOf(child: ChildProcess): Promise<Record<string, Reads>> {
  return once(child, 'message').then(([message]) => message as Record<string, Reads>);
}

/** In the child: migrates on one driver. */
async function measure(driver: StorageDriver, rows: number, folder: string | undefined): Promise<Result> {
  const db = StoreDb({ dbPrefix: 'bench', nodeId: 2, driver, logLevel: 'warn', maxMemoryBytes });
  db.registerSchema(cities2);
  await db.start();
  const reader =
    folder === undefined ? undefined : fork(fileURLToPath(import.meta.url), ['--reader', folder, String(rows)]);
  // Both at once, as later on.
  const reported = reader && reportOf(reader);
  await read(db, 2, rows, forSome(baselineMs / 2));
  const before = await read(db, 2, rows, forSome(baselineMs));
  const otherBefore = await reported;
  const rssBeforeBytes = process.memoryUsage.rss();
  let rssPeakBytes = rssBeforeBytes;
  const requests = db.stats().requests;
  const startedMs = performance.now();
  await db.setTargetSchemaVersion('cities', 2, { rowsPerSecond: 1_000_000, keepOld: true });
  const generation = db.stats().log?.generation ?? 0;
  reader?.send('begin');
  let isOver = false;
  const watch = async (): Promise<void> => {
    while ((await db.migrationStatus('cities')).state === 'building') {
      rssPeakBytes = Math.max(rssPeakBytes, process.memoryUsage.rss());
      await sleep(100);
    }
    isOver = true;
  };
  const [during] = await Promise.all([read(db, 2, rows, () => !isOver), watch()]);
  const seconds = (performance.now() - startedMs) / 1000;
  const otherReported = reader && reportOf(reader);
  const ended = reader && once(reader, 'exit');
  reader?.send('end');
  const otherDuring = await otherReported;
  await ended;
  const { state } = await db.migrationStatus('cities');
  if (state !== 'switched') throw new Error(`The migration is ${state}.`);
  const stats = db.stats();
  await db.stop();
  const other = { before: otherBefore?.['before'] as Reads, during: otherDuring?.['during'] as Reads };
  return {
    rows,
    before,
    during,
    ...(reader === undefined ? {} : { other }),
    seconds,
    chunks: (stats.log?.generation ?? 0) - generation,
    gets:
      stats.requests.get +
      stats.requests.getMissing +
      stats.requests.getUnchanged -
      requests.get -
      requests.getMissing -
      requests.getUnchanged,
    puts: stats.requests.put - requests.put,
    bytesRead: stats.requests.bytesRead - requests.bytesRead,
    bytesWritten: stats.requests.bytesWritten - requests.bytesWritten,
    rssBeforeBytes,
    rssPeakBytes,
  };
}

async function runChild(name: DriverName, rows: number): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'store-db-bench-'));
  try {
    if (name === 'FileDriver') {
      const loader = fork(fileURLToPath(import.meta.url), ['--load', folder, String(rows)]);
      await once(loader, 'exit');
      process.send?.(await measure(new FileDriver(folder), rows, folder));
    } else {
      const driver = new MemoryDriver();
      await load(driver, rows);
      process.send?.(await measure(driver, rows, undefined));
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function ratio(during: number, before: number): string {
  return `${((during / before) * 100).toFixed(0)} %`;
}

function readsOf(name: string, before: Reads, during: Reads): string[] {
  return [
    name,
    ...[before, during].map(({ getsPerSecond }) => getsPerSecond.toFixed(0)),
    ratio(during.getsPerSecond, before.getsPerSecond),
    ...[before, during].map(({ queriesPerSecond }) => queriesPerSecond.toFixed(0)),
    ratio(during.queriesPerSecond, before.queriesPerSecond),
    ...[before, during].map(({ maxWaitMs, maxTurnMs }) => `${maxWaitMs.toFixed(0)} (${maxTurnMs.toFixed(0)}) ms`),
  ];
}

async function runParent(rows: number): Promise<void> {
  console.log(
    `${rows} rows, version 2 has 2 indexes. Node ${process.version}, ${cpus()[0]?.model.trim() ?? 'unknown CPU'}`,
  );
  const head = ['Reads by', 'get/s', 'during', '', 'query/s', 'during', '', 'Longest wait (turn)', 'during'];
  const style = { head: [], border: [] };
  const table = new CliTable({ head, style, colAligns: ['left', ...head.slice(1).map(() => 'right' as const)] });
  const lines: string[] = [];
  for (const name of drivers) {
    const child = fork(fileURLToPath(import.meta.url), ['--child', name, String(rows)]);
    let result: Result | undefined;
    child.on('message', (message) => {
      result = message as Result;
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0 || result === undefined) throw new Error(`The process that measures ${name} failed.`);
    const { before, during, other, seconds, chunks, gets, puts, bytesRead, bytesWritten } = result;
    table.push(readsOf(`${name}, the one that migrates`, before, during));
    if (other !== undefined) table.push(readsOf(`${name}, another process`, other.before, other.during));
    const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
    lines.push(
      `${name}: ${seconds.toFixed(1)} s, ${Math.round(rows / seconds)} rows/s, ${chunks} chunks, each with ` +
        `${(puts / chunks).toFixed(1)} puts of ${megabytes(bytesWritten / chunks)} and (with the reads) ` +
        `${(gets / chunks).toFixed(1)} gets of ${megabytes(bytesRead / chunks)}; RSS from ` +
        `${megabytes(result.rssBeforeBytes)} to at most ${megabytes(result.rssPeakBytes)}`,
    );
  }
  console.log(table.toString());
  console.log(lines.join('\n'));
}

const [mode, ...args] = process.argv.slice(2);
if (mode === '--child') await runChild(args[0] as DriverName, Number(args[1]));
else if (mode === '--load') await load(new FileDriver(args[0] as string), Number(args[1]));
else if (mode === '--reader') await runReader(args[0] as string, Number(args[1]));
else await runParent(Number(mode ?? 1_000_000));
