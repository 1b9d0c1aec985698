import { describe, expect, it } from 'vitest';
import { atOnce, itemsInStep, mapped, sorted, withPauses } from './pacer.ts';
import type { Steps } from './pacer.ts';

function stepsOf<T>(steps: Steps<T>): { readonly value: T; readonly pauses: number } {
  let pauses = 0;
  for (let step = steps.next(); ; step = steps.next(), pauses++)
    if (step.done === true) return { value: step.value, pauses };
}

/** Numbers in no order, of which some tie. */
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
      // Each item is looked at once at least.
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
