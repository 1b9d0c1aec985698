import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ExactSum } from './aggregate.ts';

function sum(values: readonly number[]): number {
  const total = new ExactSum();
  for (const value of values) total.add(value);
  return total.value();
}

/** A number times 2^1074, which is an integer. */
function scaled(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = (bits >> 52n) & 0x7ffn;
  const fraction = bits & 0xf_ffff_ffff_ffffn;
  const size = exponent === 0n ? fraction : (fraction | (1n << 52n)) << (exponent - 1n);
  return bits >> 63n === 1n ? -size : size;
}

function distance(value: number, exact: bigint): bigint {
  const difference = scaled(value) - exact;
  return difference < 0n ? -difference : difference;
}

describe('a sum', () => {
  it('loses nothing on the way', () => {
    expect(sum([0.1, 0.2, 0.3])).toBe(0.6);
    expect(sum([1e16, 1, -1e16])).toBe(1);
    expect(sum([1e308, 1e308, -1e308, -1e308, 3])).toBe(3);
    expect(sum([1e308, 1e308])).toBe(Number.POSITIVE_INFINITY);
    expect(sum([1, 2 ** -53, 2 ** -106])).toBe(1 + 2 ** -52);
    expect(sum([Number.POSITIVE_INFINITY, 1])).toBe(Number.POSITIVE_INFINITY);
    expect(sum([Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])).toBeNaN();
    expect(sum(Array<number>(10).fill(0.1))).toBe(1);
  });

  it('loses nothing where some are huge, and the others too small to be scaled down with them', () => {
    // Halfway between two numbers: the smallest number that there is decides.
    expect(sum([-1e300, -9.174860240509062e299, 5e-324])).not.toBe(sum([-1e300, -9.174860240509062e299, -5e-324]));
    expect(sum([2 ** 960, -(2 ** 960 + 2 ** 908), 2 ** 908, 5e-324])).toBe(5e-324);
    expect(sum([2 ** 960, -(2 ** 960 + 2 ** 908), 2 ** 908, 5e-324, -1e-320])).toBe(5e-324 - 1e-320);
  });

  it('has a mean where it is beyond all numbers itself', () => {
    const total = new ExactSum();
    for (const value of [1.5e308, 1.5e308]) total.add(value);
    expect(total.value(2)).toBe(1.5e308);
  });

  it('is the number next to the exact one, in any order', () => {
    const finite = fc.double({ noNaN: true, noDefaultInfinity: true, max: 1e300, min: -1e300 });
    fc.assert(
      fc.property(
        fc.array(fc.oneof(finite, fc.constantFrom(1e300, -1e300, 1, 5e-324)), { maxLength: 30 }),
        (values) => {
          const exact = values.reduce((total, value) => total + scaled(value), 0n);
          const got = sum(values);
          expect(sum(values.toReversed())).toBe(got);
          const ulp = Math.max(Math.abs(got) * 2 ** -52, 5e-324);
          for (const other of [got + ulp, got - ulp]) {
            expect(distance(got, exact) <= distance(other, exact)).toBe(true);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
