import { assert, property, string } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidQueryError } from '../base/errors.ts';
import { loadAnalyzer } from './analyzer.ts';
import { SearchMatcher } from './matcher.ts';
import { maxSearchLength, maxSearchWords, parseSearch } from './search-text.ts';
import type { SearchTextOptions } from './search-text.ts';

const english = await loadAnalyzer('en');
const plain = await loadAnalyzer(undefined);

/** Writes a search as its clauses: phrases in brackets, `-` before what is excluded, `*` and the beginning behind a prefix. */
function shown(text: string, options?: SearchTextOptions): string {
  const { wanted, excluded } = parseSearch(text, english, options);
  return [...wanted, ...excluded]
    .map(({ words, isPhrase, isExcluded, prefix, maxDistance }) => {
      const joined = isPhrase ? `[${words.join(' ')}]` : words.join(' ');
      return `${isExcluded ? '-' : ''}${joined}${prefix === undefined ? '' : `*${prefix}`}${maxDistance > 0 ? `~${maxDistance}` : ''}`;
    })
    .join(' ');
}

function isMatch(text: string, row: string | (string | null)[], options?: SearchTextOptions): boolean {
  const search = parseSearch(text, english, options);
  return new SearchMatcher(search, english).match(Array.isArray(row) ? row : [row]).isMatch;
}

describe('the text of a search', () => {
  it.each([
    ['red wines', 'red wine'],
    ['  Red\u00a0\tWINES  ', 'red wine'],
    ['"red wines" glass', '[red wine] glass'],
    ['“red wine” „old wine“ «vin»', '[red wine] [old wine] vin'],
    ['"red wine', '[red wine]'],
    ['wine"red cork"', 'wine [red cork]'],
    ['wine -white -"old cork"', 'wine -white -[old cork]'],
    ['e-mail full-bodied', '[e mail] [full bodi]'],
    ['wine - white', 'wine white'],
    ['--old −sweet', '-old -sweet'],
    ['"" "!" ... -', ''],
    ["don't 3.14", 'dont [3 14]'],
  ])('%s', (text, clauses) => {
    expect(shown(text)).toBe(clauses);
  });

  it('may end with a beginning, of a word that is no stem', () => {
    expect(shown('red runnin', { prefix: true })).toBe('red runnin*runnin');
    expect(shown('red running ', { prefix: true })).toBe('red run*running');
    expect(shown('web e-ma', { prefix: true })).toBe('web [e ma]*ma');
    expect(shown('"red wi"', { prefix: true })).toBe('[red wi]');
    expect(shown('red -wi', { prefix: true })).toBe('red -wi');
  });

  it('may allow for letters that differ, by the length of a word', () => {
    expect(shown('red wine cabernet "merlot" -syrah', { fuzzy: true })).toBe('red wine~1 cabernet~2 merlot -syrah');
  });

  it('takes a run of a script without spaces as a phrase', () => {
    const [clause] = parseSearch('東京都に住んでいます', plain).wanted;
    expect(clause?.isPhrase).toBe(true);
    expect(clause?.words.join('')).toBe('東京都に住んでいます');
  });

  it('is refused where it is too long', () => {
    const words = (count: number): string => Array.from({ length: count }, (_, at) => `w${at}`).join(' ');
    expect(parseSearch(words(maxSearchWords), plain).wanted).toHaveLength(maxSearchWords);
    expect(() => parseSearch(words(maxSearchWords + 1), plain)).toThrow(InvalidQueryError);
    expect(() => parseSearch('x'.repeat(maxSearchLength + 1), plain)).toThrow('search for fewer words');
  });

  it('can be anything', () => {
    assert(
      property(string({ unit: 'binary' }), (text) => {
        const search = parseSearch(text, plain, { prefix: true, fuzzy: true });
        return [...search.wanted, ...search.excluded].every(({ words }) => words.length > 0);
      }),
      { numRuns: 40 },
    );
  });
});

describe('a row matches', () => {
  it.each([
    ['all words', 'red wine', 'Wines that are red', true],
    ['not all words', 'red wine', 'White wine', false],
    ['a phrase', '"red wine"', 'some red wines', true],
    ['words in another order than the phrase', '"red wine"', 'wine, red', false],
    ['what is excluded', 'wine -white', 'white wine', false],
    ['not what is excluded', 'wine -white', 'red wine', true],
    ['an excluded phrase', 'wine -"dry white"', 'dry white wine', false],
    ['words of an excluded phrase apart', 'wine -"dry white"', 'white wine, dry', true],
    ['nothing', '', 'wine', false],
    ['only exclusions', '-white', 'red wine', false],
  ])('%s', (_, text, row, expected) => {
    expect(isMatch(text, row)).toBe(expected);
  });

  it('any word, if any is enough', () => {
    expect(isMatch('red wine', 'white wine', { match: 'any' })).toBe(true);
    expect(isMatch('red wine -white', 'white wine', { match: 'any' })).toBe(false);
    expect(isMatch('red wine', 'beer', { match: 'any' })).toBe(false);
  });

  it('words that begin so, or that have the stem of what is typed', () => {
    expect(isMatch('cab', 'Cabernet', { prefix: true })).toBe(true);
    expect(isMatch('cab', 'Cabernet')).toBe(false);
    expect(isMatch('running', 'He runs', { prefix: true })).toBe(true);
    expect(isMatch('red wi', 'wine, red', { prefix: true })).toBe(true);
    expect(isMatch('"red wi"', 'red wine', { prefix: true })).toBe(false);
  });

  it('words that are mistyped', () => {
    expect(isMatch('cabrenet', 'Cabernet', { fuzzy: true })).toBe(true);
    expect(isMatch('cabrenet', 'Cabernet')).toBe(false);
    expect(isMatch('rde', 'red', { fuzzy: true })).toBe(false);
  });

  it('by all fields together, with counts for each', () => {
    const search = parseSearch('red wine', english);
    const match = new SearchMatcher(search, english).match(['Wine', null, 'red wine and red meat', undefined]);
    expect(match).toEqual({
      isMatch: true,
      frequencies: [
        [0, 0, 2, 0],
        [1, 0, 1, 0],
      ],
      length: 6,
    });
    expect(isMatch('"wine red"', ['wine', 'red'])).toBe(false);
  });
});
