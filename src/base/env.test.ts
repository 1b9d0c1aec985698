import { expect, it } from 'vitest';
import { pauseMs } from './env.ts';
import type { Backoff } from './env.ts';

const attempts = [1, 2, 3, 4, 5, 2000];

it('doubles the pause, up to the longest, and takes any part of it', () => {
  const backoff: Backoff = { firstMs: 20, maxMs: 100, jitter: 'full' };
  expect(attempts.map((attempt) => pauseMs(backoff, attempt, 0.5))).toEqual([10, 20, 40, 50, 50, 50]);
  expect(pauseMs(backoff, 3, 0)).toBe(0);
});

it('pauses around the time, from half of it on', () => {
  const backoff: Backoff = { firstMs: 20, maxMs: 100, jitter: 'around' };
  expect(attempts.map((attempt) => pauseMs(backoff, attempt, 0))).toEqual([10, 20, 40, 50, 50, 50]);
  expect(attempts.map((attempt) => pauseMs(backoff, attempt, 1))).toEqual([30, 60, 120, 150, 150, 150]);
});
