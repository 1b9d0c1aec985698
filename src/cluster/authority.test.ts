import { describe, expect, it } from 'vitest';
import { authorityAt, untilNextSlot } from './authority.ts';

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
