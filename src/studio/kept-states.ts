/** Earlier states that the page looks at: each is taken once, and held for a minute after its last use. */
import type { Environment, Timer } from '../base/env.ts';
import { InvalidOptionError, SnapshotExpiredError } from '../index.ts';
import type { Database, Snapshot } from '../index.ts';
import { timeOf } from '../text/cell-values.ts';
import type { Asked } from './asked.ts';

const keptMs = 60_000;
/** How long the database keeps a state of a process that died. */
const expiresAfterMs = 600_000;
const mostKept = 8;

interface KeptState {
  readonly snapshot: Promise<Snapshot>;
  users: number;
  timer: Timer | undefined;
}

/** A state in use. */
export interface UsedState {
  readonly source: Database | Snapshot;
  /** Must be called once the state is not used any more, with the error that ended its use if there was one. */
  readonly release: (error?: unknown) => void;
}

export class KeptStates {
  readonly #db: Database;
  readonly #environment: Environment;
  readonly #kept = new Map<string, KeptState>();

  constructor(db: Database, environment: Environment) {
    this.#db = db;
    this.#environment = environment;
  }

  /** Calls `work` with the state that was asked for; the database itself for the newest one. */
  async use<T>(
    moment: Asked | undefined,
    signal: AbortSignal,
    work: (source: Database | Snapshot) => Promise<T>,
  ): Promise<T> {
    const held = await this.hold(moment, signal);
    try {
      return await work(held.source);
    } catch (error) {
      held.release(error);
      throw error;
    } finally {
      held.release();
    }
  }

  /** Takes the state that was asked for, for a longer time. */
  async hold(moment: Asked | undefined, signal: AbortSignal): Promise<UsedState> {
    if (moment === undefined) return { source: this.#db, release: () => undefined };
    const state = await this.#stateOf(moment, signal);
    const key = typeof state === 'number' ? `#${state}` : state.toISOString();
    const kept = await this.#take(key, state);
    kept.users++;
    kept.timer?.cancel();
    let isReleased = false;
    const release = (error?: unknown): void => {
      if (isReleased) return;
      isReleased = true;
      kept.users--;
      // On a replica a state ends once its blocks are collected.
      if (error instanceof SnapshotExpiredError) void this.#drop(key, kept);
      else if (kept.users === 0) this.#keepFor(key, kept);
    };
    try {
      return { source: await kept.snapshot, release };
    } catch (error) {
      await this.#drop(key, kept);
      throw error;
    }
  }

  /** Ends all states. */
  async close(): Promise<void> {
    await Promise.all([...this.#kept].map(([key, kept]) => this.#drop(key, kept)));
  }

  async #stateOf(moment: Asked, signal: AbortSignal): Promise<number | Date> {
    const generation = moment.optionalWhole('generation', 0, Number.MAX_SAFE_INTEGER);
    if (generation !== undefined) return generation;
    const time = moment.optionalText('time');
    if (time !== undefined) {
      const ms = timeOf(time);
      return Number.isNaN(ms) ? moment.fail('time', 'a time such as 2026-01-31T12:00:00Z') : new Date(ms);
    }
    const id = moment.text('snapshot');
    const found = (await this.#db.snapshots({ signal })).find((snapshot) => snapshot.id === id);
    if (found !== undefined) return found.generation;
    throw new InvalidOptionError('snapshot', `There is no snapshot ${id} any more: it was released, or has expired.`);
  }

  async #take(key: string, state: number | Date): Promise<KeptState> {
    const known = this.#kept.get(key);
    if (known !== undefined) return known;
    for (const [other, kept] of this.#kept) {
      if (this.#kept.size < mostKept) break;
      if (kept.users === 0) await this.#drop(other, kept);
    }
    // Not the signal of the call: others may wait for the same state.
    const kept = { snapshot: this.#db.at(state, { expiresAfterMs }), users: 0, timer: undefined };
    kept.snapshot.catch(() => undefined);
    this.#kept.set(key, kept);
    return kept;
  }

  #keepFor(key: string, kept: KeptState): void {
    kept.timer = this.#environment.setTimer(() => void this.#drop(key, kept), keptMs, { background: true });
  }

  async #drop(key: string, kept: KeptState): Promise<void> {
    kept.timer?.cancel();
    if (this.#kept.get(key) === kept) this.#kept.delete(key);
    // It may have failed, or have ended already.
    await kept.snapshot.then((snapshot) => snapshot.release()).catch(() => undefined);
  }
}
