import { describe, expect, it } from 'vitest';
import { MergeWait } from './merge-policy.ts';

describe('a merge policy', () => {
  it('by default waits for nothing', () => {
    const wait = new MergeWait({ minCommits: 1, maxWaitMs: 600_000 });
    expect(wait.untilDue(0, 0, false)).toBeUndefined();
    wait.note(1, 0, 1000);
    expect(wait.untilDue(1, 1000, false)).toBe(0);
  });

  it('waits for so many commits', () => {
    const wait = new MergeWait({ minCommits: 3, maxWaitMs: 10_000 });
    for (const tail of [1, 2, 3]) wait.note(tail, 0, 0);
    expect([1, 2, 3, 4].map((pending) => wait.untilDue(pending, 0, false))).toEqual([10_000, 10_000, 0, 0]);
  });

  it('waits until the oldest has waited long enough, from when it was seen first', () => {
    const wait = new MergeWait({ minCommits: 100, maxWaitMs: 10_000 });
    wait.note(1, 0, 1000);
    wait.note(1, 0, 2000);
    wait.note(3, 0, 4000);
    expect(wait.untilDue(3, 4000, false)).toBe(7000);
    expect(wait.untilDue(3, 10_999, false)).toBe(1);
    expect(wait.untilDue(3, 11_000, false)).toBe(0);
    expect(wait.untilDue(3, 99_000, false)).toBe(0);
  });

  it('goes on with the oldest that is left when some were merged', () => {
    const wait = new MergeWait({ minCommits: 100, maxWaitMs: 10_000 });
    for (const tail of [1, 2, 3]) wait.note(tail, 0, tail * 1000);
    wait.note(3, 1, 3500);
    expect(wait.untilDue(2, 3500, false)).toBe(8500);
    wait.note(3, 3, 4000);
    expect(wait.untilDue(0, 4000, false)).toBeUndefined();
    wait.note(4, 3, 20_000);
    expect(wait.untilDue(1, 20_000, false)).toBe(10_000);
  });

  it('of no time to wait merges at once', () => {
    const wait = new MergeWait({ minCommits: 100, maxWaitMs: 0 });
    wait.note(1, 0, 5);
    expect(wait.untilDue(1, 5, false)).toBe(0);
  });

  it('rests after a merge that took long while it is alone, and not once there are others', () => {
    const wait = new MergeWait({ minCommits: 1, maxWaitMs: 600_000 });
    expect(wait.untilDue(1, 0, true)).toBe(0);
    wait.merged(700, 1000);
    expect([1000, 3099, 3100, 9000].map((nowMs) => wait.untilDue(1, nowMs, true))).toEqual([2100, 1, 0, 0]);
    expect(wait.untilDue(1, 1000, false)).toBe(0);
    expect(wait.untilDue(0, 1000, true)).toBeUndefined();
  });

  it('rests for a minute at most', () => {
    const wait = new MergeWait({ minCommits: 1, maxWaitMs: 600_000 });
    wait.merged(100_000, 0);
    expect(wait.untilDue(1, 0, true)).toBe(60_000);
  });

  it('pauses, or waits for as many commits as the policy asks for, until both are over', () => {
    const wait = new MergeWait({ minCommits: 3, maxWaitMs: 10_000 });
    wait.merged(1000, 0);
    wait.note(1, 0, 0);
    expect(wait.untilDue(1, 0, true)).toBe(10_000);
    expect(wait.untilDue(3, 0, true)).toBe(3000);
    wait.merged(4000, 0);
    expect(wait.untilDue(1, 0, true)).toBe(12_000);
  });
});
