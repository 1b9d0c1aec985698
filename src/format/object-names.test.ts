import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareStrings } from '../base/bytes.ts';
import {
  cacheControlOf,
  blobName,
  blockName,
  commitName,
  escapeSegment,
  parseBlockName,
  parseCommitName,
  stagedName,
} from './object-names.ts';

const id = '0123456789abcdef';

describe('names of objects', () => {
  it('keep every table in its place', () => {
    for (const [table, segment] of [
      ['cities', 'cities'],
      ['Cities', '_43ities'],
      ['../x', '_2e_2e_2fx'],
      ['a/b', 'a_2fb'],
      ['a_b', 'a_5fb'],
      ['_2f', '_5f2f'],
      ['naïve', 'na_c3_afve'],
      ['\u{1F600}', '_f0_9f_98_80'],
      ['.', '_2e'],
      ['a\0', 'a_00'],
    ] as const) {
      expect(escapeSegment(table)).toBe(segment);
      expect(blockName({ table }, { birth: 1, id })).toBe(`data/${segment}/000000000001-${id}`);
    }
  });

  it('are different for different tables, even on a store that ignores case', () => {
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(escapeSegment(a)).toMatch(/^[a-z0-9_-]+$/);
        expect(escapeSegment(a) === escapeSegment(b)).toBe(a === b);
      }),
      { numRuns: 1000 },
    );
    expect(escapeSegment('a').toLowerCase()).not.toBe(escapeSegment('A').toLowerCase());
  });

  it('of commits sort as their slots do, and are parsed', () => {
    const slots = [0, 1, 9, 10, 999_999, 1_000_000, Number.MAX_SAFE_INTEGER];
    const names = slots.map(commitName);
    expect(names.toSorted(compareStrings)).toEqual(names);
    expect(names.map(parseCommitName)).toEqual(slots);
    for (const name of [
      'committed/1',
      'committed/00000000000000001',
      'x/0000000000000001',
      'committed/-000000000000001',
    ]) {
      expect(parseCommitName(name)).toBeUndefined();
    }
    expect(parseCommitName('committed/9999999999999999')).toBeUndefined();
  });

  it('of blocks contain their births', () => {
    const birth = 2 ** 48 - 1;
    const name = blockName({ table: 'T', index: 'By Name' }, { birth, id });
    expect(name).toBe(`indexes/_54/_42y_20_4eame/ffffffffffff-${id}`);
    expect(parseBlockName(name)).toEqual({ birth });
    expect(parseBlockName(blockName({ table: 'T' }, { birth: 10, id }))).toEqual({ birth: 10 });
    for (const other of ['block0', commitName(1), stagedName(id), blobName(id), `data/a/b/00000000000a-${id}`]) {
      expect(parseBlockName(other)).toBeUndefined();
    }
  });
});

describe('cacheControlOf()', () => {
  const once = 'private, max-age=31536000, immutable';

  it.each([
    ['shop/data/orders/00000000000c-0123456789abcdef', once],
    ['shop/indexes/orders/by_5fname/00000000000c-0123456789abcdef', once],
    ['a/b/blobs/01890000-0000-7000-8000-000000000000', once],
    ['shop/committed/0000000000000017', once],
    ['shop/staged/0000000000000017-01890000-0000-7000-8000-000000000000', once],
    ['shop/block0', 'no-cache'],
    ['block0', 'no-cache'],
    // Merges write them again, and a database of the same name may have others.
    ['shop/history/00000000000c', undefined],
    ['shop/roots/00000000000c-0123456789abcdef', undefined],
    ['photo.png', undefined],
  ])('%s: %s', (key, expected) => {
    expect(cacheControlOf(key)).toBe(expected);
  });
});
