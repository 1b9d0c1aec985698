/** Events in virtual time: a queue in the order of their times, and the loop that makes them happen. */
import { realEnvironment } from '../base/env.ts';

/** Something that is to happen. Cancelling it after it has happened does nothing. */
export interface TimelineEvent {
  /** When it happens, in milliseconds since the timeline began. */
  readonly atMs: number;
  /** Makes it not happen. */
  cancel(): void;
}

interface Entry extends TimelineEvent {
  readonly order: number;
  happen: (() => void) | undefined;
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** After so much virtual time without a result, a call is taken to hang. */
const defaultPatienceMs = 24 * 60 * 60_000;

/**
 * One virtual time for everybody who takes part in a test. It stands still while anything can run, and then jumps to
 * the next event. Events of the same time happen in the order in which they were made.
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

  /** How many events have happened. */
  get happened(): number {
    return this.#happened;
  }

  /** Makes something happen `delayMs` from now. */
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

  /** Lets everything happen that can without time moving on: all promises that are settled are followed up. */
  async drain(): Promise<void> {
    // One turn of the event loop: it begins only when no microtask is left.
    await realEnvironment.yieldToEventLoop();
  }

  /** Moves on by so much, with everything that happens meanwhile. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await this.drain();
    for (let next = this.#next(); next !== undefined && next.atMs <= untilMs; next = this.#next()) {
      this.#step(next);
      await this.drain();
    }
    this.#nowMs = untilMs;
  }

  /**
   * Waits for a promise while events happen. Rejects if nothing is left that could settle it, or if it takes more than
   * `patienceMs` of virtual time (default: a day). Only one such loop may be under way at a time.
   */
  async run<T>(promise: Promise<T>, patienceMs: number = defaultPatienceMs): Promise<T> {
    let settled = false;
    const note = (): void => {
      settled = true;
    };
    promise.then(note, note);
    const startedMs = this.#nowMs;
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

  /** The next event that was not cancelled. */
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
