/**
 * How long a large batch holds up the event loop, and how much memory it takes: `npm run bench:event-loop [-- <rows>]`.
 * Each driver is measured in a process of its own, with the default options. Delays include the time in which another
 * process had the CPU; the longest turn does not: it is CPU time of the main thread, as Linux counts it.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import CliTable from 'cli-table3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { FileDriver, MemoryDriver } from 'store-db/lib/storage';
import type { StorageDriver } from 'store-db/lib/storage';

const drivers = ['MemoryDriver', 'FileDriver'] as const;
type DriverName = (typeof drivers)[number];

interface Phase {
  readonly name: string;
  readonly seconds: number;
  readonly maxDelayMs: number;
  readonly p999DelayMs: number;
  readonly p99DelayMs: number;
  /** Most CPU time of the main thread between two runs of a timer; undefined where it cannot be told. */
  readonly maxTurnMs: number | undefined;
  /** Peak of the resident memory in this phase, over that before the first one. */
  readonly rssGrowthBytes: number;
}

const table = defineSchema({
  name: 'cities',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar, maxLength: 40 },
    country: { typeId: Types.varchar, maxLength: 2 },
    lat: { typeId: Types.float64 },
    population: { typeId: Types.int32 },
  },
  primaryKey: 'id',
  indexes: ['country', 'population'],
});
const countries = ['FR', 'IS', 'DE', 'US', 'BR', 'JP', 'NZ', 'KE'] as const;

const rssAtStart = process.memoryUsage.rss();

/** CPU time of the main thread so far, in milliseconds. */
function mainThreadMs(): number | undefined {
  try {
    return Number(readFileSync('/proc/self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    return undefined;
  }
}

async function measurePhase(name: string, work: () => Promise<void>): Promise<Phase> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  let peak = process.memoryUsage.rss();
  let cpuMs = mainThreadMs();
  let maxTurnMs = cpuMs === undefined ? undefined : 0;
  const sample = (): void => {
    peak = Math.max(peak, process.memoryUsage.rss());
    const now = mainThreadMs();
    if (now === undefined || cpuMs === undefined) return;
    maxTurnMs = Math.max(maxTurnMs ?? 0, now - cpuMs);
    cpuMs = now;
  };
  const sampler = setInterval(sample, 1);
  delay.enable();
  const startedMs = performance.now();
  await work();
  const seconds = (performance.now() - startedMs) / 1000;
  delay.disable();
  clearInterval(sampler);
  sample();
  return {
    name,
    seconds,
    maxDelayMs: delay.max / 1e6,
    p999DelayMs: delay.percentile(99.9) / 1e6,
    p99DelayMs: delay.percentile(99) / 1e6,
    maxTurnMs,
    rssGrowthBytes: peak - rssAtStart,
  };
}

async function insertRows(batch: ReturnType<Database['batch']>, rows: number): Promise<void> {
  for (let i = 0; i < rows; i++) {
    // Not awaited: what is wrong with a row would reject the flush.
    void batch.insert(table, {
      id: i,
      name: `City number ${i}`,
      country: countries[i % countries.length] ?? null,
      lat: (i % 1800) / 10 - 90,
      population: (i * 7919) % 1_000_003,
    });
    if (i % 10_000 === 9_999) await yieldToEventLoop();
  }
}

/** In the child: measures one driver, in phases. */
async function measureDriver(driver: StorageDriver, rows: number): Promise<Phase[]> {
  const db = StoreDb({ dbPrefix: 'bench', nodeId: 0, driver });
  db.registerSchema(table);
  await db.start();
  const batch = db.batch();
  const phases = [
    await measurePhase('insert', () => insertRows(batch, rows)),
    await measurePhase('flush()', () => batch.flush()),
    await measurePhase('checkpoint()', () => db.checkpoint()),
  ];
  const count = await db.query(table).count();
  if (count !== rows) throw new Error(`${rows} rows were written, and ${count} are there.`);
  await db.stop();
  return phases;
}

async function runChild(name: DriverName, rows: number): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), 'store-db-bench-'));
  try {
    const driver = name === 'FileDriver' ? new FileDriver(folder) : new MemoryDriver();
    process.send?.(await measureDriver(driver, rows));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function formatMs(milliseconds: number | undefined): string {
  return milliseconds === undefined ? '?' : `${milliseconds.toFixed(1)} ms`;
}

async function runParent(rows: number): Promise<void> {
  console.log(
    `${rows} rows, 2 indexes, one batch. Node ${process.version}, ${cpus()[0]?.model.trim() ?? 'unknown CPU'}`,
  );
  const result = new CliTable({
    head: ['Driver', 'Phase', 'Time', 'Delay max', 'p99.9', 'p99', 'Longest turn', 'RSS growth'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  for (const name of drivers) {
    const child = fork(fileURLToPath(import.meta.url), ['--child', name, String(rows)]);
    let phases: Phase[] = [];
    child.on('message', (message) => {
      phases = message as Phase[];
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    if (code !== 0 || phases.length === 0) throw new Error(`The process that measures ${name} failed.`);
    for (const phase of phases) {
      const { maxDelayMs, p999DelayMs, p99DelayMs, maxTurnMs } = phase;
      result.push([
        name,
        phase.name,
        `${phase.seconds.toFixed(2)} s`,
        ...[maxDelayMs, p999DelayMs, p99DelayMs, maxTurnMs].map(formatMs),
        `${(phase.rssGrowthBytes / 1e6).toFixed(0)} MB`,
      ]);
    }
  }
  console.log(result.toString());
}

const [mode, ...args] = process.argv.slice(2);
if (mode === '--child') await runChild(args[0] as DriverName, Number(args[1]));
else await runParent(Number(mode ?? 1_000_000));
