import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ByteWriter, encodeUtf8 } from './bytes.ts';

/** Any sequence of units: characters of one to four bytes, and halves of such of two units. */
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
  it('is what the standard says, however long the text', () => {
    fc.assert(
      fc.property(texts, (text) => {
        expect([...encodeUtf8(text)]).toEqual(expected(text));
      }),
      { numRuns: 2000 },
    );
  });

  it('is appended to what a writer holds', () => {
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

  it('of one text is not that of the next', () => {
    const first = encodeUtf8('Åbo');
    encodeUtf8('Oulu!');
    expect([...first]).toEqual(expected('Åbo'));
  });
});
