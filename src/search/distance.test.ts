import { array, assert, constantFrom, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isWithinDistance, NearWords } from './distance.ts';

/** The distance by its definition: the least over all last steps. */
function plainDistance(a: readonly string[], b: readonly string[]): number {
  if (a.length === 0 || b.length === 0) return a.length + b.length;
  const [restA, restB] = [a.slice(0, -1), b.slice(0, -1)];
  const costs = [
    plainDistance(restA, restB) + (a.at(-1) === b.at(-1) ? 0 : 1),
    plainDistance(restA, b) + 1,
    plainDistance(a, restB) + 1,
  ];
  if (a.length > 1 && b.length > 1 && a.at(-1) === b.at(-2) && a.at(-2) === b.at(-1)) {
    costs.push(plainDistance(a.slice(0, -2), b.slice(0, -2)) + 1);
  }
  return Math.min(...costs);
}

describe('the distance of words', () => {
  it.each([
    ['wine', 'wine', 0],
    ['wine', 'wines', 1],
    ['wine', 'win', 1],
    ['wine', 'wane', 1],
    ['wine', 'wnie', 1],
    ['wine', 'wnies', 2],
    ['🍷🍷🍷', '🍷🍺🍷', 1],
  ])('%s and %s: %i', (a, b, distance) => {
    expect(new NearWords(a, 2).distanceOf(b)).toBe(distance);
    expect(new NearWords(b, 2).distanceOf(a)).toBe(distance);
    expect(isWithinDistance(a, b, distance)).toBe(true);
    expect(isWithinDistance(a, b, distance - 1)).toBe(false);
  });

  it('is what it is by definition, or more than the most', () => {
    const letters = array(constantFrom('a', 'b', '🍷'), { maxLength: 5 });
    assert(
      property(letters, array(letters, { maxLength: 4 }), (word, others) => {
        const near = new NearWords(word.join(''), 2);
        return others.every((other) => {
          const distance = plainDistance(word, other);
          return near.distanceOf(other.join('')) === (distance <= 2 ? distance : undefined);
        });
      }),
      { numRuns: 60 },
    );
  });
});
