import { describe, expect, it } from 'vitest';
import { EntryDigest } from './table-check.ts';

function digestOf(entries: readonly string[]): EntryDigest {
  const digest = new EntryDigest();
  for (const entry of entries) digest.add(Buffer.from(entry));
  return digest;
}

describe('a digest of entries', () => {
  it('is the same in any order', () => {
    expect(digestOf(['a1', 'b2', 'c3']).isSame(digestOf(['c3', 'a1', 'b2']))).toBe(true);
    expect(digestOf([]).isSame(digestOf([]))).toBe(true);
  });

  it.each([
    ['two entries have changed keys', ['a1', 'b2'], ['a2', 'b1']],
    ['one is there twice and another is missing', ['a1', 'b2'], ['a1', 'a1']],
    ['one is missing', ['a1', 'b2'], ['a1']],
    ['there is one of no bytes', ['a1', ''], ['a1']],
    ['bytes have moved from one to another', ['ab', 'c'], ['a', 'bc']],
  ])('is another one where %s', (_, one, other) => {
    expect(digestOf(one).isSame(digestOf(other))).toBe(false);
  });

  it('takes bytes up to a length', () => {
    const digest = new EntryDigest();
    digest.add(Buffer.from('a1 and more'), 2);
    expect(digest.isSame(digestOf(['a1']))).toBe(true);
  });
});
