/**
 * A process that writes to a database in a folder is killed, again and again, often in the middle of a merge; the next
 * one goes on in the same folder. After every kill the folder is opened and compared with what was acknowledged.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb } from '../../src/index.ts';
import { FileDriver } from '../../src/storage/index.ts';
import { SeededRandom } from '../../src/testing/seeded-random.ts';
import { databaseOptions, workload } from './database-chain.ts';
import { apply, batchOf, checkDatabase, emptyState, tables } from './database-workload.ts';
import type { State } from './database-workload.ts';

const KILLS = Number(process.env['KILLS'] ?? 200);
const MERGE_KILLS = Math.ceil(KILLS / 4);
const CHAINS = 2;

const repository = fileURLToPath(new URL('../../', import.meta.url));

let folder = '';
let child = '';

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-kill-'));
  // Bundled once: compiling the sources anew in every process takes ten times as long as all that it does.
  child = path.join(folder, 'child.mjs');
  const entry = fileURLToPath(new URL('database-child.ts', import.meta.url));
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

/** When to kill: some time after the start, or after the beginning of a merge. */
interface Aim {
  readonly what: 'start' | 'ready' | 'merge';
  /** Which of these lines. */
  readonly nth: number;
  readonly afterMs: number;
}

function randomAim(random: SeededRandom): Aim {
  const dice = random.next();
  if (dice < 0.1) return { what: 'start', nth: 1, afterMs: random.between(20, 120) };
  if (dice < 0.4) return { what: 'ready', nth: 1, afterMs: random.between(0, 100) };
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
  merges: number;
  acknowledged: number;
  /** Batches that were under way when the process was killed, and are there, or not. */
  survived: number;
  vanished: number;
}

class Chain {
  readonly #store: string;
  readonly #random: SeededRandom;
  readonly #tally: Tally;
  #state: State = emptyState;
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
      await this.#check(lines);
    }
  }

  /** What was acknowledged must be there, and what was under way, wholly or not at all. */
  async #check(lines: readonly string[]): Promise<void> {
    let pending: State | undefined;
    for (const line of lines) {
      if (line === 'merged') this.#tally.merges++;
      if (line.startsWith('flush ')) pending = apply(this.#state, batchOf(workload, this.#next++, this.#state));
      if (!line.startsWith('flushed ')) continue;
      this.#tally.acknowledged++;
      this.#state = pending as State;
      pending = undefined;
    }
    const db = StoreDb({ ...databaseOptions, driver: new FileDriver(this.#store), writeForwardInterval: 60_000 });
    for (const table of tables) db.registerSchema(table);
    await db.start();
    const allowed = pending === undefined ? [this.#state] : [this.#state, pending];
    const at = await checkDatabase(db, allowed);
    if (pending !== undefined) this.#tally[at === 0 ? 'vanished' : 'survived']++;
    this.#state = allowed[at] as State;
    await db.stop();
  }
}

describe('a database in a folder', () => {
  it('holds what was acknowledged, and nothing torn, however often its writer is killed', {
    timeout: 600_000,
  }, async ({ annotate }) => {
    const tally: Tally = { kills: 0, mergeKills: 0, merges: 0, acknowledged: 0, survived: 0, vanished: 0 };
    // Until both counts are reached; aiming is no more than aiming.
    const goesOn = (): boolean => (tally.kills < KILLS || tally.mergeKills < MERGE_KILLS) && tally.kills < 4 * KILLS;
    await Promise.all(Array.from({ length: CHAINS }, (_, i) => new Chain(i, tally).run(goesOn)));
    await annotate(JSON.stringify(tally));
    expect(tally.kills).toBeGreaterThanOrEqual(KILLS);
    expect(tally.mergeKills).toBeGreaterThanOrEqual(MERGE_KILLS);
    expect(tally.merges).toBeGreaterThan(KILLS / 4);
    expect(tally.acknowledged).toBeGreaterThan(KILLS);
    expect(tally.survived + tally.vanished).toBeGreaterThan(0);
  });
});
