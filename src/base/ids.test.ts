import { describe, expect, it } from 'vitest';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';
import { newId, nextPosition, randomUuid, timeOrderedUuid } from './ids.ts';

const makers = {
  'an id': (environment: VirtualEnvironment) => newId(environment, 8),
  'a random UUID': randomUuid,
  'a UUID in the order of time': timeOrderedUuid,
};

describe('ids', () => {
  it.each(Object.entries(makers))('of clones differ: %s', async (_, make) => {
    const original = new VirtualEnvironment({ seed: 1 });
    const clone = original.fork({ seed: 1 });
    const ids = [make(original)];
    // They differ only in the time, or in clocks that differ a little.
    await original.advance(0.002);
    ids.push(make(clone));
    expect(new Set(ids).size).toBe(2);
    const later = original.fork({ seed: 1 });
    later.skewMs = 1;
    const ofRandomnessAlone = original.fork({ seed: 1 });
    expect(make(later)).not.toBe(make(ofRandomnessAlone));
  });

  it('are as random as the environment', () => {
    const environment = new VirtualEnvironment({ seed: 2 });
    const ids = Array.from({ length: 1000 }, () => newId(environment, 8));
    expect(new Set(ids).size).toBe(1000);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{16}$/);
    expect(randomUuid(environment)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(timeOrderedUuid(environment)).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });

  describe('in the order of time', () => {
    const format = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
    const timeOf = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);

    it.each([0, 0.001, 1])('are in the order in which they were made, %s ms apart', async (pauseMs) => {
      const environment = new VirtualEnvironment({ seed: 3 });
      const ids: string[] = [];
      for (let i = 0; i < 10_000; i++) {
        ids.push(timeOrderedUuid(environment));
        if (pauseMs > 0) await environment.advance(pauseMs);
      }
      expect(ids.toSorted()).toEqual(ids);
      expect(new Set(ids).size).toBe(ids.length);
      for (const id of ids) expect(id).toMatch(format);
      expect(timeOf(ids[0] as string)).toBe(timeOf(timeOrderedUuid(new VirtualEnvironment({ seed: 4 }))));
    });

    it('are so when the clock is set back', () => {
      const environment = new VirtualEnvironment({ seed: 5 });
      const ids = [0, -3_600_000, 10, -1, 11].map((skewMs) => {
        environment.skewMs = skewMs;
        return timeOrderedUuid(environment);
      });
      expect(ids.toSorted()).toEqual(ids);
      const times = ids.map(timeOf);
      expect(times.map((time) => time - (times[0] as number))).toEqual([0, 0, 10, 10, 11]);
    });

    it('go on in the next millisecond when the counter is used up', () => {
      expect(nextPosition({ ms: 5, counter: 2 ** 26 - 2 }, 5, 7)).toEqual({ ms: 5, counter: 2 ** 26 - 1 });
      expect(nextPosition({ ms: 5, counter: 2 ** 26 - 1 }, 5, 7)).toEqual({ ms: 6, counter: 7 });
      expect(nextPosition(undefined, 5, 2 ** 32 - 1)).toEqual({ ms: 5, counter: 2 ** 25 - 1 });
    });
  });
});
