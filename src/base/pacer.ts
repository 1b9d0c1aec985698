/** Lets the event loop run during long work: a pacer that says when a pause is due, work in steps, and work in parallel. */
import type { Environment } from './env.ts';

/** Longest time that work may run without a pause, in milliseconds. */
const sliceMs = 4;
/** Measures slices of work, and pauses between them. */
export class Pacer {
  readonly #environment: Environment;
  #since: number;

  constructor(environment: Environment) {
    this.#environment = environment;
    this.#since = environment.monotonicMs();
  }

  /** Whether a pause is due. */
  due(): boolean {
    return this.#environment.monotonicMs() - this.#since >= sliceMs;
  }

  /** Lets the event loop run. */
  async pause(): Promise<void> {
    await this.wait(this.#environment.monotonicMs() - this.#since);
    this.#since = this.#environment.monotonicMs();
  }

  /** Waits for as long as a pause after so much work takes. */
  protected wait(_workedMs: number): Promise<void> {
    return this.#environment.yieldToEventLoop();
  }
}

/**
 * Work in steps: a generator that yields after each step, so that other work can run in between. Callers with little to do take
 * all steps at once.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Items per step. */
export const itemsInStep = 1024;

/** Takes all steps without a pause. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Calls `pause` after each step, and waits if it returns a promise. */
export async function withPauses<T>(steps: Steps<T>, pause: () => void | Promise<void>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    const waiting = pause();
    if (waiting !== undefined) await waiting;
    step = steps.next();
  }
  return step.value;
}

/** Maps the items with a function. */
export function* mapped<T, U>(items: readonly T[], make: (item: T) => U): Steps<U[]> {
  const made: U[] = [];
  for (let i = 0; i < items.length; i++) {
    made.push(make(items[i] as T));
    if (made.length % itemsInStep === 0) yield;
  }
  return made;
}

/** Sorts the items; the sort is stable. */
export function* sorted<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  if (items.length <= itemsInStep) return items.toSorted(compare);
  let from: T[] = [];
  for (let start = 0; start < items.length; start += itemsInStep) {
    for (const item of items.slice(start, start + itemsInStep).toSorted(compare)) from.push(item);
    yield;
  }
  let to: T[] = [];
  for (let width = itemsInStep; width < from.length; width *= 2) {
    to.length = 0;
    for (let start = 0; start < from.length; start += 2 * width) {
      const middle = Math.min(start + width, from.length);
      const end = Math.min(middle + width, from.length);
      for (let a = start, b = middle; a < middle || b < end; ) {
        const takesFirst = b === end || (a < middle && compare(from[a] as T, from[b] as T) <= 0);
        to.push(from[takesFirst ? a++ : b++] as T);
        if (to.length % itemsInStep === 0) yield;
      }
    }
    [from, to] = [to, from];
  }
  return from;
}

/** Waits until all promises have settled, then rejects with the first failure, if there is one. */
export async function allEnded(work: Iterable<Promise<unknown>>): Promise<void> {
  const ended = await Promise.allSettled(work);
  const failed = ended.find(({ status }) => status === 'rejected');
  if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
}

/**
 * Calls a function with each item, up to `limit` at the same time. After a failure it starts no further item, and rejects with
 * the first failure once all running calls have ended.
 */
export async function forEachOf<T>(
  items: Iterable<T> | AsyncIterable<T>,
  limit: number,
  run: (item: T) => Promise<void>,
): Promise<void> {
  const left = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]();
  let hasFailed = false;
  const worker = async (): Promise<void> => {
    try {
      for (;;) {
        const next = await left.next();
        if (hasFailed || next.done === true) return;
        await run(next.value);
      }
    } catch (error) {
      hasFailed = true;
      await left.return?.();
      throw error;
    }
  };
  await allEnded(Array.from({ length: limit }, worker));
}
