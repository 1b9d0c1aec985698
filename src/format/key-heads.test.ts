import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstNotBelow, headOf } from './node.ts';

const highest = 0xffff_ffff;
/** Spread evenly, in clusters, and anywhere. */
const number = fc.oneof(
  fc.nat({ max: 400 }),
  fc.nat({ max: 3 }).map((cluster) => cluster * 1_000_000_000),
  fc.integer({ min: 0, max: highest }),
);

describe('heads of keys', () => {
  it('are found as a plain search finds them', () => {
    fc.assert(
      fc.property(fc.array(number, { maxLength: 300 }), fc.array(number, { maxLength: 20 }), (list, wanted) => {
        const heads = Uint32Array.from(list).toSorted();
        for (const each of [...list, ...list.map((one) => Math.min(one + 1, highest)), ...wanted, 0, highest]) {
          const below = heads.filter((head) => head < each).length;
          for (const guess of [
            0,
            heads.length >> 1,
            Math.max(0, heads.length - 1),
            Math.min(below, heads.length - 1),
          ]) {
            expect(firstNotBelow(heads, each, Math.max(0, guess))).toBe(below);
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  it('sort as the bytes do, zeros standing for those that are missing', () => {
    const bytes = Uint8Array.of(255, 1, 2, 3, 4);
    expect(headOf(bytes, 0, 5)).toBe(0xff010203);
    expect(headOf(bytes, 3, 5)).toBe(0x03040000);
    expect(headOf(bytes, 1, 1)).toBe(0);
  });
});
