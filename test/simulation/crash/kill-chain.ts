/**
 * Kills a process that writes to a database, again and again, often in the middle of a merge; the next one goes on with
 * the same database. After every kill the database is opened and compared with what was acknowledged.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect } from 'vitest';
import { StoreDb } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { isRemote, openStore } from './crash-store.ts';
import type { CrashStore } from './crash-store.ts';
import { databaseOptions, fences, persistently, workload } from './database-chain.ts';
import type { ChildTask } from './database-chain.ts';
import { apply, batchOf, checkDatabase, emptyState, tables } from './database-workload.ts';
import type { State } from './database-workload.ts';
import { bundleProgram } from './program-bundle.ts';

/** Makes the program that is killed, in a folder. */
export function bundleChild(folder: string): string {
  return bundleProgram(new URL('database-child.ts', import.meta.url), folder);
}

/** When to kill: some time after the process was started, or after it told something. */
export interface Aim {
  readonly what: 'start' | 'ready' | 'flush' | 'merge';
  /** Which of these lines. */
  readonly nth: number;
  readonly afterMs: number;
}

export interface Tally {
  kills: number;
  mergeKills: number;
  merges: number;
  acknowledged: number;
  /** Batches that were under way when the process was killed, and are there, or not. */
  survived: number;
  vanished: number;
  /** Calls of the processes that failed, by the error's code. */
  readonly failures: Record<string, number>;
}

export function newTally(): Tally {
  return { kills: 0, mergeKills: 0, merges: 0, acknowledged: 0, survived: 0, vanished: 0, failures: {} };
}

export interface KillChainOptions {
  /** What `bundleChild()` made. */
  readonly child: string;
  /** Where the processes write. */
  readonly store: CrashStore;
  /** The same store as the parent reaches it, for the checks. Default: as the processes do. */
  readonly checkedStore?: CrashStore;
  readonly seed: string;
  readonly aim: (random: SeededRandom) => Aim;
  readonly tally: Tally;
}

/** One database, and the processes that write to it one after the other. */
export class KillChain {
  readonly #options: KillChainOptions;
  readonly #random: SeededRandom;
  readonly #dbPrefix: string;
  #state: State = emptyState;
  #next = 1;
  #checks = 0;

  constructor(options: KillChainOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    this.#dbPrefix = options.seed.replaceAll(/\W/g, '-');
  }

  async run(goesOn: () => boolean): Promise<void> {
    const { tally } = this.#options;
    // The parent makes the database: trying the store out is not what is tested here.
    await this.#check([]);
    while (goesOn()) {
      const lines = await this.#runAndKill(this.#options.aim(this.#random));
      tally.kills++;
      const lastMerge = lines.findLast((line) => line === 'merge' || line === 'merged');
      if (lastMerge === 'merge') tally.mergeKills++;
      await this.#check(lines);
    }
  }

  /** Runs the child from the next batch on, kills it, and gives the lines that it told. */
  async #runAndKill(aim: Aim): Promise<string[]> {
    const { child, store } = this.#options;
    const task: ChildTask = { store, dbPrefix: this.#dbPrefix, first: this.#next };
    // What packages say of the runtime's version is no news here.
    const args = ['--no-warnings', child, JSON.stringify(task)];
    const running = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const kill = (): boolean => running.kill('SIGKILL');
    const killSoon = (): unknown => (aim.afterMs < 1 ? kill() : setTimeout(kill, aim.afterMs));
    // Nothing that goes wrong in the child may let it live for ever, nor wait long for an answer that does not come.
    let atLatest = setTimeout(kill, 10_000);
    const lines: string[] = [];
    let seen = 0;
    const reader = createInterface({ input: running.stdout });
    reader.on('line', (line) => {
      lines.push(line);
      if (line === 'ready' && isRemote(store)) {
        clearTimeout(atLatest);
        atLatest = setTimeout(kill, 5000);
      }
      if (line.split(' ', 1)[0] === aim.what && ++seen === aim.nth) killSoon();
    });
    if (aim.what === 'start') killSoon();
    await Promise.all([once(running, 'exit'), once(reader, 'close')]);
    clearTimeout(atLatest);
    expect(running.signalCode, lines.slice(-5).join('\n')).toBe('SIGKILL');
    return lines;
  }

  /** What was acknowledged must be there, and what was under way, wholly or not at all. */
  async #check(lines: readonly string[]): Promise<void> {
    const { tally, store, checkedStore = store } = this.#options;
    let pending: State | undefined;
    for (const line of lines) {
      const [what = '', code = ''] = line.split(' ');
      if (what === 'merged') tally.merges++;
      if (what === 'failed') tally.failures[code] = (tally.failures[code] ?? 0) + 1;
      if (what === 'flush') pending = apply(this.#state, batchOf(workload, this.#next++, this.#state));
      if (what !== 'flushed') continue;
      tally.acknowledged++;
      this.#state = pending as State;
      pending = undefined;
    }
    const allowed = pending === undefined ? [this.#state] : [this.#state, pending];
    const look = (): Promise<number> => this.#look(checkedStore, allowed);
    const at = isRemote(checkedStore) ? await persistently(look, () => undefined) : await look();
    if (pending !== undefined) tally[at === 0 ? 'vanished' : 'survived']++;
    this.#state = allowed[at] as State;
  }

  /** Opens the database, and gives the number of the state that it is in. */
  async #look(store: CrashStore, allowed: readonly State[]): Promise<number> {
    const driver = openStore(store);
    const db = StoreDb({ ...databaseOptions, dbPrefix: this.#dbPrefix, driver, writeForwardInterval: 60_000 });
    for (const table of [...tables, fences]) db.registerSchema(table);
    try {
      await db.start();
      if (isRemote(store)) await this.#fence(db);
      return await checkDatabase(db, allowed);
    } finally {
      await db.stop().catch(() => undefined);
    }
  }

  /**
   * What the killed process sent last may still be on its way. It can only land in the slot behind those that there are,
   * so when that slot is taken it has landed, or never will.
   */
  async #fence(db: Database): Promise<void> {
    const batch = db.batch();
    void batch.insert(fences, { id: ++this.#checks });
    await batch.flush();
  }
}
