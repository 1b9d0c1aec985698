import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { loopActiveMs } from '#platform';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';
import { BackgroundPacer } from './background-pacer.ts';
import { realEnvironment, sleep } from './env.ts';
import { forEachOf, Pacer, atOnce, itemsInStep, mapped, sorted, withPauses } from './pacer.ts';
import type { Steps } from './pacer.ts';

/** Returns the share of the time that passes in work that pauses whenever a pause is due. */
async function shareOfWork(makePacer: (environment: VirtualEnvironment) => Pacer, stepMs: number): Promise<number> {
  const environment = new VirtualEnvironment({ startMs: 0 });
  const pacer = makePacer(environment);
  let workedMs = 0;
  const work = async (): Promise<void> => {
    for (let i = 0; i < 100; i++) {
      await sleep(environment, stepMs);
      workedMs += stepMs;
      if (pacer.due()) await pacer.pause();
    }
  };
  await environment.run(work());
  return workedMs / environment.monotonicMs();
}

const unknown = (environment: VirtualEnvironment): Pacer => new BackgroundPacer(environment);

it('work in the background leaves three quarters of the time to others, other work none', async () => {
  expect(await shareOfWork((environment) => new Pacer(environment), 1)).toBe(1);
  expect(await shareOfWork(unknown, 1)).toBeCloseTo(0.25, 1);
  // Work that takes that long is mostly waiting.
  expect(await shareOfWork(unknown, 120)).toBeGreaterThan(0.85);
});

it('work in the background leaves little time where nobody else works', async () => {
  const busy = (share: number) => (environment: VirtualEnvironment) =>
    new BackgroundPacer(environment, () => environment.monotonicMs() * share);
  expect(await shareOfWork(busy(0.1), 1)).toBeCloseTo(0.8, 1);
  expect(await shareOfWork(busy(0.5), 1)).toBeCloseTo(0.25, 1);
  expect(await shareOfWork(busy(1), 1)).toBeCloseTo(0.25, 1);
  expect(await shareOfWork((environment) => new BackgroundPacer(environment, () => undefined), 1)).toBeCloseTo(0.25, 1);
});

it('learns from the runtime how long the event loop was active', async () => {
  const untilMs = realEnvironment.monotonicMs() + 20;
  const before = loopActiveMs() ?? 0;
  while (realEnvironment.monotonicMs() < untilMs);
  await setImmediate();
  expect((loopActiveMs() ?? 0) - before).toBeGreaterThan(15);
});

describe('forEachOf', () => {
  async function* slowly(items: readonly number[]): AsyncGenerator<number, void, undefined> {
    for (const item of items) yield await Promise.resolve(item);
  }

  it.each([
    ['a list', (items: readonly number[]) => items],
    ['what comes one after the other', slowly],
  ])('works on all items of %s, some at a time', async (_, made) => {
    const seen: number[] = [];
    let [working, most] = [0, 0];
    await forEachOf(made([1, 2, 3, 4, 5, 6, 7]), 3, async (item) => {
      working++;
      most = Math.max(most, working);
      await setImmediate();
      seen.push(item);
      working--;
    });
    expect(seen.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(most).toBe(3);
  });

  it('begins nothing after a failure, and rejects with the first one once nothing is under way', async () => {
    const [begun, ended]: [number[], number[]] = [[], []];
    const work = forEachOf([1, 2, 3, 4, 5], 2, async (item) => {
      begun.push(item);
      if (item === 2) throw new Error('second');
      for (let turn = 0; turn < 5; turn++) await setImmediate();
      ended.push(item);
      throw new Error('first, but later');
    });
    await expect(work).rejects.toThrow(/second|first/);
    expect({ begun, ended }).toEqual({ begun: [1, 2], ended: [1] });
  });

  it('ends the source of the items after a failure', async () => {
    let isEnded = false;
    async function* items(): AsyncGenerator<number, void, undefined> {
      try {
        for (let item = 0; ; item++) yield await Promise.resolve(item);
      } finally {
        isEnded = true;
      }
    }
    await expect(forEachOf(items(), 2, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(isEnded).toBe(true);
  });
});

function stepsOf<T>(steps: Steps<T>): { readonly value: T; readonly pauses: number } {
  let pauses = 0;
  for (let step = steps.next(); ; step = steps.next(), pauses++)
    if (step.done === true) return { value: step.value, pauses };
}

/** Unsorted numbers, some of them equal. */
function scattered(count: number): { readonly key: number; readonly at: number }[] {
  return Array.from({ length: count }, (_, at) => ({ key: (at * 7919) % 997, at }));
}

describe('steps', () => {
  it('sort as a list is sorted at once, those that tie in their order', { timeout: 60_000 }, () => {
    for (const count of [0, 1, 2, itemsInStep, itemsInStep + 1, 3 * itemsInStep, 10_000]) {
      const items = scattered(count);
      const byKey = (a: { readonly key: number }, b: { readonly key: number }): number => a.key - b.key;
      const { value, pauses } = stepsOf(sorted(items, byKey));
      expect(value).toEqual(items.toSorted(byKey));
      // Each item is examined at least once.
      expect(pauses).toBeGreaterThanOrEqual(count <= itemsInStep ? 0 : count / itemsInStep);
      expect(items).toEqual(scattered(count));
    }
  });

  it('pause after so many items', () => {
    const items = Array.from({ length: 2500 }, (_, i) => i);
    const { value, pauses } = stepsOf(mapped(items, (item) => item * 2));
    expect(value).toEqual(items.map((item) => item * 2));
    expect(pauses).toBe(2);
    expect(atOnce(mapped(items, (item) => item))).toEqual(items);
  });

  it('end where a pause throws', async () => {
    let made = 0;
    const work = mapped(Array.from({ length: 5000 }), () => made++);
    const pause = (): void => {
      throw new Error('given up');
    };
    await expect(withPauses(work, pause)).rejects.toThrow('given up');
    expect(made).toBe(itemsInStep);
  });
});
