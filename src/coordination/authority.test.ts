import { describe, expect, it } from 'vitest';
import { authorityAt, untilNextSlot, untilOwnSlot } from './rotation.ts';

describe('write authority', () => {
  it('goes round the nodes in the order of their ids, whatever order they are listed in', () => {
    for (const nodes of [
      [1, 5, 9],
      [9, 1, 5, 5],
    ]) {
      const turns = [0, 999, 1000, 2000, 3000, 4500].map((nowMs) => authorityAt(nowMs, 1000, nodes));
      expect(turns).toEqual([1, 1, 5, 9, 1, 5]);
    }
  });

  it('is with somebody at any time, also before 1970', () => {
    for (let nowMs = -5000; nowMs < 5000; nowMs += 250) expect([3, 4]).toContain(authorityAt(nowMs, 1000, [4, 3]));
    expect(authorityAt(-1, 1000, [3, 4])).toBe(4);
  });

  it('sorts ids as numbers', () => {
    expect([0, 1, 2].map((slot) => authorityAt(slot, 1, [100, 9, 20]))).toEqual([9, 20, 100]);
  });

  it('is with the only node always', () => {
    for (const nowMs of [0, 1, 1e15]) expect(authorityAt(nowMs, 5000, [7])).toBe(7);
  });
});

describe('the time until the next slot', () => {
  it('is a whole slot at its beginning, and never nothing', () => {
    expect([0, 1, 999, 1000, -1, -1000].map((nowMs) => untilNextSlot(nowMs, 1000))).toEqual([
      1000, 999, 1, 1000, 1, 1000,
    ]);
  });
});

describe('the time until an own slot', () => {
  it('is the least after which a slot of that node begins', () => {
    for (const nodes of [[3], [1, 3], [3, 9, 4, 3], [7, 0, 3, 250, 12]]) {
      for (let nowMs = -3000; nowMs < 12_000; nowMs += 333) {
        const untilMs = untilOwnSlot(nowMs, 0, 1000, 3, nodes);
        expect(untilMs).toBeGreaterThan(0);
        expect(authorityAt(nowMs + untilMs, 1000, nodes)).toBe(3);
        expect((nowMs + untilMs) % 1000).toBeCloseTo(0);
        for (let earlier = untilMs - 1000; earlier > 0; earlier -= 1000) {
          expect(authorityAt(nowMs + earlier, 1000, nodes)).not.toBe(3);
        }
      }
    }
  });

  it('begins after what is waited for', () => {
    for (const waitMs of [0, 1, 999, 1000, 5500, 86_400_000.5]) {
      const untilMs = untilOwnSlot(500, waitMs, 1000, 9, [1, 9]);
      expect(untilMs).toBeGreaterThan(waitMs);
      expect(untilMs - waitMs).toBeLessThanOrEqual(2000);
      expect(authorityAt(500 + untilMs, 1000, [1, 9])).toBe(9);
    }
  });
});
