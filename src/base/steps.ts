/**
 * Work in steps, between which others may have their turn: a generator that yields after each of them. Those who have little to do
 * take all steps at once.
 */

export type Steps<T> = Generator<undefined, T, undefined>;

/** Items that are worked on in one step. */
export const itemsInStep = 1024;

/** Takes all steps without a pause. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Calls `pause` after each step, and waits where it says so. */
export async function withPauses<T>(steps: Steps<T>, pause: () => void | Promise<void>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    const waiting = pause();
    if (waiting !== undefined) await waiting;
    step = steps.next();
  }
  return step.value;
}

/** What a function makes of each item. */
export function* mapped<T, U>(items: readonly T[], make: (item: T) => U): Steps<U[]> {
  const made: U[] = [];
  for (let i = 0; i < items.length; i++) {
    made.push(make(items[i] as T));
    if (made.length % itemsInStep === 0) yield;
  }
  return made;
}

/** The items in order; those that tie stay as they are. */
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
