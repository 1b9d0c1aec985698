import { describe, expect, it } from 'vitest';
import { CollectionHint } from './eviction-queues.ts';

const mebibyte = 1024 * 1024;

/** Returns how often a hint was given while `blocks` blocks of 1 MiB were evicted. */
function hintsFor(budgetBytes: number, blocks: number): number {
  const lengths: number[] = [];
  const hint = new CollectionHint(budgetBytes, (length) => lengths.push(length));
  for (let i = 0; i < blocks; i++) hint.add(mebibyte);
  expect(lengths.every((length) => length === 64 * mebibyte)).toBe(true);
  return lengths.length;
}

describe('CollectionHint', () => {
  it('is given once a quarter of the budget is unused, but not for less than 16 MiB', () => {
    expect(hintsFor(100 * mebibyte, 24)).toBe(0);
    expect(hintsFor(100 * mebibyte, 25)).toBe(1);
    expect(hintsFor(100 * mebibyte, 100)).toBe(4);
    expect(hintsFor(mebibyte, 15)).toBe(0);
    expect(hintsFor(mebibyte, 160)).toBe(10);
  });

  it('is not given where the runtime looks as often by itself', () => {
    expect(hintsFor(256 * mebibyte, 2000)).toBe(0);
  });
});
