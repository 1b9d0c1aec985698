import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ByteWriter,
  decodeUtf8,
  encodeUtf8,
  compareBytes,
  readLatin1,
  readUtf8,
  compareStrings,
  compareValues,
} from './bytes.ts';
import type { OrderedValue } from './bytes.ts';

/** Any sequence of UTF-16 units: characters of one to four bytes, and lone surrogates. */
const texts = fc
  .array(
    fc.oneof(
      fc.integer({ min: 0, max: 0x7f }),
      fc.integer({ min: 0x80, max: 0x7ff }),
      fc.integer({ min: 0x800, max: 0xffff }),
      fc.constantFrom(0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xe000, 0xffff),
    ),
    { maxLength: 40 },
  )
  .map((units) => String.fromCharCode(...units));

function expected(text: string): number[] {
  return [...new TextEncoder().encode(text)];
}

describe('UTF-8', () => {
  it('is as the standard says, however long the text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect([...encodeUtf8(text)]).toEqual(expected(text));
      }),
      { numRuns: 2000 },
    );
  });

  it('is read as the strict decoder reads it, from any bytes', () => {
    const parts = fc.constantFrom(
      0x00,
      0x41,
      0x7f,
      0x80,
      0xbf,
      0xc0,
      0xc1,
      0xc2,
      0xc3,
      0xdf,
      0xe0,
      0xe2,
      0x82,
      0xf0,
      0xff,
    );
    const bytesOf = fc.oneof(
      texts.map(expected),
      fc.array(fc.oneof(parts, fc.integer({ min: 0, max: 255 })), { maxLength: 14 }),
    );
    fc.assert(
      fc.property(bytesOf, fc.integer({ min: 0, max: 3 }), (given, before) => {
        const bytes = Uint8Array.from([...Array.from({ length: before }, () => 0x41), ...given, 0xa9]);
        const outcome = (read: () => string): string => {
          try {
            return read();
          } catch (error) {
            return (error as Error).name;
          }
        };
        const end = before + given.length;
        expect(outcome(() => readUtf8(bytes, before, end))).toBe(outcome(() => decodeUtf8(Uint8Array.from(given))));
        expect(readLatin1(bytes, before, end)).toBe(String.fromCharCode(...given));
      }),
      { numRuns: 5000 },
    );
  });

  it('is appended to the contents of a writer', () => {
    fc.assert(
      fc.property(texts, texts, (first, second) => {
        const writer = new ByteWriter();
        const lengths = [writer.utf8(first), writer.utf8(second)];
        const bytes = [expected(first), expected(second)];
        expect(lengths).toEqual(bytes.map(({ length }) => length));
        expect([...writer.finish()]).toEqual(bytes.flat());
      }),
      { numRuns: 2000 },
    );
  });

  it('of one text differs from the next one', () => {
    const first = encodeUtf8('Åbo');
    encodeUtf8('Oulu!');
    expect([...first]).toEqual(expected('Åbo'));
  });
});

function expectAscending(values: readonly OrderedValue[]): void {
  for (let i = 0; i < values.length; i++) {
    for (let j = 0; j < values.length; j++) {
      const [a, b] = [values[i] as OrderedValue, values[j] as OrderedValue];
      expect(Math.sign(compareValues(a, b)), `${String(a)} and ${String(b)}`).toBe(Math.sign(i - j));
    }
  }
}

describe('compareStrings', () => {
  it('orders by code point, not by UTF-16 code unit', () => {
    expectAscending(['', '\0', 'A', 'a', 'aa', 'é', '\uD7FF', '\uE000', '\uFFFF', '\u{10000}', '\u{10FFFF}']);
    expect(compareStrings('\uFFFF', '\u{10000}')).toBeLessThan(0);
    expect(compareStrings('x\uFF5Ey', 'x\u{1F600}')).toBeLessThan(0);
  });

  it('is the order of UTF-8 bytes', () => {
    const text = fc.string({ unit: 'binary', maxLength: 6 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareStrings(a, b))).toBe(Math.sign(compareBytes(encodeUtf8(a), encodeUtf8(b))));
      }),
      { numRuns: 2000 },
    );
  });
});

describe('compareValues', () => {
  it('puts null first and orders each kind by value', () => {
    expectAscending([null, -Infinity, -1.5, -Number.MIN_VALUE, 0, Number.MIN_VALUE, 2, 10, Infinity]);
    expectAscending([null, -(2n ** 63n), -1n, 0n, 9_007_199_254_740_993n, 2n ** 64n - 1n]);
    expectAscending([null, false, true]);
    expectAscending([null, new Date(-1), new Date(0), new Date(1)]);
    expectAscending([null, Uint8Array.of(), Uint8Array.of(0), Uint8Array.of(0, 0), Uint8Array.of(1), Buffer.of(255)]);
    expectAscending([null, '', '10', '9']);
  });

  it('takes -0 and 0 for equal, and compares numbers with bigints exactly', () => {
    expect(compareValues(-0, 0)).toBe(0);
    expect(compareValues(9_007_199_254_740_992, 9_007_199_254_740_993n)).toBeLessThan(0);
    expect(compareValues(null, null)).toBe(0);
  });
});
