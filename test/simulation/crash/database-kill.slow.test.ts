/**
 * A process that writes to a database in a folder, takes snapshots and collects garbage is killed, again and again, often
 * in the middle of a merge or of gc; the next one goes on in the same folder. After every kill the folder is opened and
 * compared with what was acknowledged. Now and then all garbage is collected, and what is left must be exactly what is
 * reachable.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import type { GetOptions, GetResult } from '../../../src/storage/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { databaseOptions, workload } from './database-chain.ts';
import { reachableNames, superfluousNames } from '../../features/gc/reachable.ts';
import {
  apply,
  batchOf,
  checkDatabase,
  emptyState,
  nextPapers,
  papers,
  papersText,
  readPapers,
  tables,
} from './database-workload.ts';
import type { Papers, State } from './database-workload.ts';

/** A folder as it looks some time later: what gc goes by is the time of what is written there. */
class LaterFolder extends FileDriver {
  readonly #aheadMs: number;

  constructor(folder: string, aheadMs: number) {
    super(folder);
    this.#aheadMs = aheadMs;
  }

  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    const result = await super.get(key, options);
    return result.status === 'found' ? { ...result, lastModifiedMs: result.lastModifiedMs + this.#aheadMs } : result;
  }
}

const KILLS = Number(process.env['KILLS'] ?? 70);
const MERGE_KILLS = Math.ceil(KILLS / 4);
const GC_KILLS = Math.ceil(KILLS / 10);
const CHAINS = 2;

const repository = fileURLToPath(new URL('../../../', import.meta.url));

let folder = '';
let child = '';

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-kill-'));
  // Bundled once: compiling the sources anew in every process takes ten times as long as all that it does.
  child = path.join(folder, 'child.mjs');
  const entry = fileURLToPath(new URL('collecting-child.ts', import.meta.url));
  // It comes with tsx, which compiles the scripts.
  const esbuild = path.join(repository, 'node_modules', '.bin', 'esbuild');
  execFileSync(esbuild, [
    entry,
    '--bundle',
    '--platform=node',
    '--format=esm',
    `--outfile=${child}`,
    '--log-level=error',
  ]);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** When to kill: some time after the start, or after the beginning of a merge or of gc. */
interface Aim {
  readonly what: 'start' | 'ready' | 'merge' | 'gc';
  /** Which of these lines. */
  readonly nth: number;
  readonly afterMs: number;
}

function randomAim(random: SeededRandom): Aim {
  const dice = random.next();
  if (dice < 0.1) return { what: 'start', nth: 1, afterMs: random.between(20, 120) };
  if (dice < 0.35) return { what: 'ready', nth: 1, afterMs: random.between(0, 100) };
  if (dice < 0.65) return { what: 'gc', nth: random.integer(1, 3), afterMs: random.between(0, 12) };
  return { what: 'merge', nth: random.integer(1, 4), afterMs: random.chance(0.3) ? 0 : random.between(0, 8) };
}

/** Runs the child on a folder from batch `first` on, kills it, and gives the lines that it told. */
async function runAndKill(store: string, first: number, aim: Aim): Promise<string[]> {
  const running = spawn(process.execPath, [child, store, String(first)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const kill = (): boolean => running.kill('SIGKILL');
  const killSoon = (): unknown => (aim.afterMs < 1 ? kill() : setTimeout(kill, aim.afterMs));
  // Nothing that goes wrong in the child may let it live for ever.
  const atLatest = setTimeout(kill, 10_000);
  const lines: string[] = [];
  let seen = 0;
  const reader = createInterface({ input: running.stdout });
  reader.on('line', (line) => {
    lines.push(line);
    if (line === aim.what && ++seen === aim.nth) killSoon();
  });
  if (aim.what === 'start') killSoon();
  await Promise.all([once(running, 'exit'), once(reader, 'close')]);
  clearTimeout(atLatest);
  expect(running.signalCode, lines.slice(-5).join('\n')).toBe('SIGKILL');
  return lines;
}

interface Tally {
  kills: number;
  mergeKills: number;
  gcKills: number;
  merges: number;
  collections: number;
  /** Snapshots of killed processes that were found, and ended. */
  abandoned: number;
  /** How often all garbage was collected. */
  cleanings: number;
  acknowledged: number;
  /** Batches that were under way when the process was killed, and are there, or not. */
  survived: number;
  vanished: number;
}

/** What a database holds. */
interface Content {
  readonly rows: State;
  readonly papers: Papers;
}

/** After so long whoever held a snapshot and was killed has lost it. */
const abandonedMs = 2 * 3_600_000;

class Chain {
  readonly #store: string;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  #content: Content = { rows: emptyState, papers: new Map() };
  #next = 1;

  constructor(number: number, tally: Tally) {
    this.#store = path.join(folder, `store-${number}`);
    this.#random = new SeededRandom(`kill ${number}`);
    this.#tally = tally;
  }

  async run(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      const lines = await runAndKill(this.#store, this.#next, randomAim(this.#random));
      this.#tally.kills++;
      const lastMerge = lines.findLast((line) => line === 'merge' || line === 'merged');
      if (lastMerge === 'merge') this.#tally.mergeKills++;
      const lastRun = lines.findLast((line) => line === 'gc' || line === 'collected');
      if (lastRun === 'gc') this.#tally.gcKills++;
      await this.#check(lines);
      if (this.#random.chance(0.15)) await this.#clean();
    }
    await this.#clean();
  }

  async #open(aheadMs: number): Promise<Database> {
    const environment: Environment = {
      now: () => realEnvironment.now() + aheadMs,
      monotonicMs: () => realEnvironment.monotonicMs(),
      setTimer: (callback, delayMs, options) => realEnvironment.setTimer(callback, delayMs, options),
      randomBytes: (length) => realEnvironment.randomBytes(length),
      random: () => realEnvironment.random(),
      yieldToEventLoop: () => realEnvironment.yieldToEventLoop(),
    };
    const driver = new LaterFolder(this.#store, aheadMs);
    const db = createDatabase({ ...databaseOptions, driver, writeForwardInterval: 60_000 }, environment);
    for (const table of [...tables, papers]) db.registerSchema(table);
    await db.start();
    return db;
  }

  /** Long after: snapshots of processes that were killed have expired, and nothing is left that cannot be reached. */
  async #clean(): Promise<void> {
    this.#tally.cleanings++;
    const db = await this.#open(abandonedMs);
    for (let run = 0; run < 4; run++) {
      // A clock so far after the last write is doubted, and this one is right.
      const { expiredSnapshots } = await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0, trustClock: true });
      this.#tally.abandoned += expiredSnapshots;
      await db.checkpoint();
    }
    // A probe of the clock whose process was killed stays for a day.
    const left = await superfluousNames(new FileDriver(this.#store), databaseOptions.dbPrefix);
    expect(left.filter((name) => !name.startsWith('probe/'))).toEqual([]);
    expect(await db.snapshots()).toEqual([]);
    await this.#compare(db, [this.#content]);
    await db.stop();
  }

  /** Which of these contents the database has. */
  async #compare(db: Database, allowed: readonly Content[]): Promise<number> {
    const at = await checkDatabase(
      db,
      allowed.map(({ rows }) => rows),
    );
    expect(papersText(await readPapers(db))).toBe(papersText((allowed[at] as Content).papers));
    return at;
  }

  /** What was acknowledged must be there, and what was under way, wholly or not at all. */
  async #check(lines: readonly string[]): Promise<void> {
    let pending: Content | undefined;
    for (const line of lines) {
      if (line === 'merged') this.#tally.merges++;
      if (line === 'collected') this.#tally.collections++;
      if (line.startsWith('flush ')) {
        const { rows, papers: present } = this.#content;
        const number = this.#next++;
        pending = {
          rows: apply(rows, batchOf(workload, number, rows)),
          papers: nextPapers(present, number),
        };
      }
      if (!line.startsWith('flushed ')) continue;
      this.#tally.acknowledged++;
      this.#content = pending as Content;
      pending = undefined;
    }
    // What is kept for snapshots is whole, too.
    if (lines.includes('ready')) await reachableNames(new FileDriver(this.#store), databaseOptions.dbPrefix);
    const db = await this.#open(0);
    const allowed = pending === undefined ? [this.#content] : [this.#content, pending];
    const at = await this.#compare(db, allowed);
    if (pending !== undefined) this.#tally[at === 0 ? 'vanished' : 'survived']++;
    this.#content = allowed[at] as Content;
    await db.stop();
  }
}

describe('a database in a folder', () => {
  it('keeps all acknowledged writes, and nothing torn, however often its writer is killed', {
    timeout: 600_000,
  }, async ({ annotate }) => {
    const tally: Tally = {
      kills: 0,
      mergeKills: 0,
      gcKills: 0,
      merges: 0,
      collections: 0,
      abandoned: 0,
      cleanings: 0,
      acknowledged: 0,
      survived: 0,
      vanished: 0,
    };
    // Until all counts are reached; aiming is no more than aiming.
    const isEnough = (): boolean =>
      tally.kills >= KILLS && tally.mergeKills >= MERGE_KILLS && tally.gcKills >= GC_KILLS;
    const goesOn = (): boolean => !isEnough() && tally.kills < 4 * KILLS;
    await Promise.all(Array.from({ length: CHAINS }, (_, i) => new Chain(i, tally).run(goesOn)));
    await annotate(JSON.stringify(tally));
    expect(tally.kills).toBeGreaterThanOrEqual(KILLS);
    expect(tally.mergeKills).toBeGreaterThanOrEqual(MERGE_KILLS);
    expect(tally.gcKills).toBeGreaterThanOrEqual(GC_KILLS);
    expect(tally.collections).toBeGreaterThan(KILLS / 10);
    expect(tally.abandoned).toBeGreaterThan(KILLS / 20);
    expect(tally.merges).toBeGreaterThan(KILLS / 4);
    expect(tally.acknowledged).toBeGreaterThan(KILLS);
    expect(tally.survived + tally.vanished).toBeGreaterThan(0);
  });
});
