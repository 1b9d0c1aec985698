/** Events in virtual time: a queue ordered by time, and the loop that runs them. */
import { realEnvironment } from '../base/env.ts';
import { loadAll } from '../base/later.ts';

/** A scheduled event. Cancelling it after it has happened does nothing. */
export interface TimelineEvent {
  /** The time of the event, in milliseconds since the timeline began. */
  readonly atMs: number;
  /** Cancels the event. */
  cancel(): void;
}

interface Entry extends TimelineEvent {
  readonly order: number;
  happen: (() => void) | undefined;
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** The virtual time without a result after which a call counts as hanging. */
const defaultPatienceMs = 24 * 60 * 60_000;

/**
 * The virtual time that all processes of a test share. It stands still while any code can run, and then jumps to
 * the next event. Events of the same time happen in the order in which they were scheduled.
 */
export class VirtualTimeline {
  #nowMs = 0;
  #made = 0;
  #happened = 0;
  /** A binary heap, the next event first. */
  readonly #queue: Entry[] = [];

  /** Milliseconds since the timeline began. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** The number of events that have happened. */
  get happened(): number {
    return this.#happened;
  }

  /** Schedules an event in `delayMs`. */
  schedule(happen: () => void, delayMs: number): TimelineEvent {
    const delay = Number.isFinite(delayMs) ? Math.max(0, delayMs) : 0;
    const entry: Entry = {
      atMs: this.#nowMs + delay,
      order: this.#made++,
      happen,
      cancel: () => {
        entry.happen = undefined;
      },
    };
    this.#push(entry);
    return entry;
  }

  /** Runs all code that can run without time moving on, until no settled promise has a pending callback. */
  async drain(): Promise<void> {
    // One turn of the event loop: it begins only when no microtask is left.
    await realEnvironment.yieldToEventLoop();
  }

  /** Lets virtual time pass, with all events that happen meanwhile. */
  async advance(ms: number): Promise<void> {
    // Loading code takes real time, which no event waits for.
    await loadAll();
    const untilMs = this.#nowMs + ms;
    await this.drain();
    for (let next = this.#next(); next !== undefined && next.atMs <= untilMs; next = this.#next()) {
      this.#step(next);
      await this.drain();
    }
    this.#nowMs = untilMs;
  }

  /**
   * Waits for a promise while events happen. Rejects if no event is left that could settle it, or if it takes more than
   * `patienceMs` of virtual time (default: a day). Only one such loop may be under way at a time.
   */
  async run<T>(promise: Promise<T>, patienceMs: number = defaultPatienceMs): Promise<T> {
    let settled = false;
    const note = (): void => {
      settled = true;
    };
    promise.then(note, note);
    const startedMs = this.#nowMs;
    await loadAll();
    for (;;) {
      await this.drain();
      if (settled) return promise;
      const next = this.#next();
      if (next === undefined) throw new Error('The call hangs: nothing is left that could happen.');
      if (next.atMs - startedMs > patienceMs) {
        throw new Error(`The call hangs: it has no result after ${patienceMs} ms of virtual time.`);
      }
      this.#step(next);
    }
  }

  #step(entry: Entry): void {
    this.#pop();
    this.#nowMs = Math.max(this.#nowMs, entry.atMs);
    this.#happened++;
    const { happen } = entry;
    entry.happen = undefined;
    happen?.();
  }

  /** Returns the next event that was not cancelled. */
  #next(): Entry | undefined {
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      if (first.happen !== undefined) return first;
      this.#pop();
    }
    return undefined;
  }

  #push(entry: Entry): void {
    const queue = this.#queue;
    let at = queue.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, queue[parent] as Entry)) break;
      queue[at] = queue[parent] as Entry;
      at = parent;
    }
    queue[at] = entry;
  }

  #pop(): void {
    const queue = this.#queue;
    const last = queue.pop();
    if (last === undefined || queue.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= queue.length) break;
      if (child + 1 < queue.length && isBefore(queue[child + 1] as Entry, queue[child] as Entry)) child++;
      if (!isBefore(queue[child] as Entry, last)) break;
      queue[at] = queue[child] as Entry;
      at = child;
    }
    queue[at] = last;
  }
}
