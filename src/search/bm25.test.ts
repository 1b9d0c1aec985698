import { describe, expect, it } from 'vitest';
import { clauseScore, highestClauseScore, idfOf } from './bm25.ts';

describe('the rank of a row', () => {
  it('is what FTS5 of SQLite says', () => {
    // `select bm25(t)` for `wine` in the rows `red wine`, `white`, `old cork`, `beer`.
    expect(clauseScore(idfOf(4, 1), 1, 2, 6 / 4)).toBeCloseTo(0.745_622_117_140_739_3, 14);
  });

  it('grows with the frequency and falls with the length and with the rows that have the word', () => {
    expect(clauseScore(1, 2, 10, 10)).toBeGreaterThan(clauseScore(1, 1, 10, 10));
    expect(clauseScore(1, 1, 20, 10)).toBeLessThan(clauseScore(1, 1, 10, 10));
    expect(idfOf(100, 10)).toBeLessThan(idfOf(100, 9));
  });

  it('is above zero for a word of most rows, and below the highest for any', () => {
    expect(idfOf(10, 5)).toBe(1e-6);
    expect(idfOf(10, 10)).toBe(1e-6);
    expect(clauseScore(2, 1e9, 1, 100)).toBeLessThan(highestClauseScore(2));
  });
});
