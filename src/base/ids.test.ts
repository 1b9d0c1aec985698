import { describe, expect, it } from 'vitest';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';
import { newId, randomUuid, timeOrderedUuid } from './ids.ts';

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
    // All that tells them apart: a moment, or clocks that differ a little.
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

  it('of one process in the order of time are in that order', async () => {
    const environment = new VirtualEnvironment({ seed: 3 });
    const first = timeOrderedUuid(environment);
    await environment.advance(1);
    expect(timeOrderedUuid(environment) > first).toBe(true);
  });
});
