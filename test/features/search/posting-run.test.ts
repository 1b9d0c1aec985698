/** Rows with a word, taken apart: their keys, which may be long, and their scores. */
import { describe, expect, it } from 'vitest';
import { compareBytes } from '../../../src/base/bytes.ts';
import { KeyBuffer, PostingRun, RunBuilder } from '../../../src/query/search/posting-run.ts';
import { wordScore } from '../../../src/search/bm25.ts';
import { Random } from '../../properties/model/random.ts';

/** Ordered keys, of which none is the beginning of another. */
function keysOf(random: Random, least: number, most: number): Uint8Array[] {
  const keys = Array.from({ length: 60 }, () => {
    const length = random.between(least, most);
    // Few different bytes, so that many keys begin alike.
    return Uint8Array.from({ length }, (_, i) => (i === length - 1 ? 0 : 1 + random.below(i < 8 ? 2 : 200)));
  });
  const sorted = keys.toSorted(compareBytes);
  return sorted.filter((key, i) => i === 0 || compareBytes(key, sorted[i - 1] as Uint8Array) !== 0);
}

function runOf(keys: readonly Uint8Array[]): PostingRun {
  const builder = new RunBuilder();
  for (const [i, key] of keys.entries()) builder.add(key, 0, key.length, 1 + (i % 3), 5 + (i % 2));
  return new PostingRun(builder);
}

describe('the rows with a word', () => {
  it.each([
    ['of five bytes', 5, 5],
    ['of six bytes', 6, 6],
    ['of different lengths', 2, 6],
    ['that begin alike', 9, 12],
    ['of hundreds of bytes', 300, 900],
  ])('have their keys, %s, and are found by those of others', (_, least, most) => {
    const random = new Random(least * 1000 + most);
    for (let round = 0; round < 10; round++) {
      const [keys, others] = [keysOf(random, least, most), keysOf(random, least, most)];
      const [run, other] = [runOf(keys), runOf(others)];
      const buffer = new KeyBuffer();
      for (const [i, key] of keys.entries()) {
        run.readKey(i, buffer);
        expect(compareBytes(buffer.bytes.slice(0, buffer.length), key)).toBe(0);
      }
      for (const [j, wanted] of others.entries()) {
        const from = random.below(keys.length + 1);
        const place = keys.findIndex((key, i) => i >= from && compareBytes(key, wanted) >= 0);
        const bound = run.bound(from, other, j);
        expect(bound).toBe(place < 0 ? keys.length : place);
        const i = random.below(keys.length);
        const order = compareBytes(keys[i] as Uint8Array, wanted);
        expect(Math.sign(run.compare(i, other, j))).toBe(Math.sign(order));
      }
    }
  });

  it('have scores, which another search does not change', () => {
    const run = runOf(keysOf(new Random(3), 5, 5));
    const first = run.rankingFor(2, 6);
    const before = [...first.scores];
    const second = run.rankingFor(3, 7);
    expect([...first.scores]).toEqual(before);
    expect(run.rankingFor(3, 7)).toBe(second);
    expect(first.scores[run.kinds[4] as number]).toBe(wordScore(2, 2, 5, 6));
    expect(second.scores[run.kinds[5] as number]).toBe(wordScore(3, 3, 6, 7));
    expect(second.best).toBe(Math.max(...second.scores));
  });
});
