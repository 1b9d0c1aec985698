/** The words of texts: entries of databases depend on them. */
import { describe, expect, it } from 'vitest';
import { InvalidQueryError, NotSupportedError } from '../../../src/base/errors.ts';
import { loadAnalyzer } from '../../../src/search/analyzer.ts';
import { textLanguages } from '../../../src/search/languages.ts';
import { parseSearch } from '../../../src/search/search-text.ts';
import { mostDistance, withinDistance } from '../../../src/search/distance.ts';
import { Random } from '../../properties/model/random.ts';

const plain = await loadAnalyzer(undefined);

describe('the words of a text', () => {
  it.each([
    ['Red wine, GLASSES', ['red', 'wine', 'glasses']],
    ["don't e-mail foo_bar 3.14 C++", ['dont', 'e', 'mail', 'foo', 'bar', '3', '14', 'c']],
    ['Café CAFÉ cafe\u0301 Straße STRASSE', ['cafe', 'cafe', 'cafe', 'strasse', 'strasse']],
    ['Ærø œuvre Łódź þorn', ['aero', 'oeuvre', 'lodz', 'thorn']],
    ['İstanbul ılık', ['istanbul', 'ilik']],
    ['ΟΔΟΣ οδός', ['οδοσ', 'οδοσ']],
    ['ёлка йод', ['елка', 'йод']],
    ['한국어 검색', ['한국어', '검색']],
    ['שָׁלוֹם مَرْحَبًا', ['שלום', 'مرحبا']],
    ['हिन्दी किताब', ['हिन्दी', 'किताब']],
    ['ﬁne ｗｉｄｅ ①', ['fine', 'wide', '1']],
    ['iPhone手机', ['iphone', '手机']],
    ['😀 \ud800 a\udc00b', ['a', 'b']],
    ['', []],
    [' \' - " ', []],
  ])('of %j are %j', (text, words) => {
    expect(plain.words(text)).toEqual(words);
  });

  it('of Japanese, Chinese and Thai are those of the runtime', () => {
    expect(plain.words('東京都の赤ワイン')).toContain('東京');
    expect(plain.words('我喜欢红酒')).toContain('喜欢');
    expect(plain.words('ฉันชอบไวน์แดง')).toContain('ไวน์');
  });

  it('have offsets in the text, in order, and are cut to 64 units', () => {
    const random = new Random(3);
    const parts = ['a', 'É', 'ß', '東', '京', "'", ' ', '\ud83d\ude00', '\ud800', 'ก', '1', '-', 'й', '\u0301'];
    for (let round = 0; round < 300; round++) {
      const text = Array.from({ length: random.below(40) }, () => parts[random.below(parts.length)]).join('');
      let last = 0;
      plain.eachWord(text, (word, start, end, folded) => {
        expect(start).toBeGreaterThanOrEqual(last);
        expect(end).toBeGreaterThan(start);
        expect(end).toBeLessThanOrEqual(text.length);
        expect(folded).toBe(word);
        expect(word).toBe(word.toLowerCase());
        last = end;
      });
      // Words of words are the same words.
      const words = plain.words(text).filter((word) => /^[a-z0-9]+$/.test(word));
      expect(plain.words(words.join(' '))).toEqual(words);
    }
    expect(plain.words('x'.repeat(1_000_000))).toEqual(['x'.repeat(64)]);
    expect(plain.words('😀a'.repeat(100_000))).toHaveLength(100_000);
  });

  it.each([
    ['da', 'bilerne', 'bil'],
    ['de', 'Häusern', 'haus'],
    ['en', 'nationally', 'nation'],
    ['en', "wine's", 'wine'],
    ['es', 'vinos', 'vin'],
    ['fi', 'talossa', 'talo'],
    ['fr', 'chevaux', 'cheval'],
    ['hu', 'házak', 'haz'],
    ['it', 'vini', 'vin'],
    ['nl', 'boeken', 'boek'],
    ['no', 'bilene', 'bil'],
    ['pt', 'vinhos', 'vinh'],
    ['ro', 'vinuri', 'vinur'],
    ['ru', 'книги', 'книг'],
    ['sv', 'bilarna', 'bil'],
    ['tr', 'kitaplar', 'kitap'],
  ])('lose their endings in %s: %s becomes %s', async (language, text, word) => {
    const analyzer = await loadAnalyzer(language);
    expect(analyzer.words(text)).toEqual([word]);
  });

  it('are of fifteen languages, and no others', async () => {
    expect(textLanguages).toHaveLength(15);
    await expect(loadAnalyzer('xx')).rejects.toThrow(NotSupportedError);
    expect((await loadAnalyzer('fr')).words("l'eau")).toEqual(['l', 'eau']);
  });
});

describe('the text of a search', () => {
  const clausesOf = (text: string, prefix = false): unknown[] =>
    parseSearch(text, plain, prefix).map(({ tokens, isExcluded }) => {
      const words = tokens.map(({ word, isPrefix }) => (isPrefix ? `${word}*` : word)).join(' ');
      return isExcluded ? `-${words}` : words;
    });

  it.each([
    ['red wine', false, ['red', 'wine']],
    ['"red wine" glass', false, ['red wine', 'glass']],
    ['“red wine” -oak -"old cask"', false, ['red wine', '-oak', '-old cask']],
    ['"red wine', false, ['red wine']],
    ['e-mail - -', false, ['e', 'mail']],
    ['red wi', true, ['red', 'wi*']],
    ['red "wi"', true, ['red', 'wi']],
    ['glass "red wi', true, ['glass', 'red wi*']],
    ['red "', true, ['red*']],
    ['wi -"red oa', true, ['wi*', '-red oa']],
    ['wi "red" -oak', true, ['wi', 'red', '-oak']],
    ['wi -red', true, ['wi*', '-red']],
    ['', true, []],
    ['"" -"" ', true, []],
  ])('%j, with prefix %j, is %j', (text, prefix, clauses) => {
    expect(clausesOf(text, prefix)).toEqual(clauses);
  });

  it('has up to 64 words', () => {
    expect(clausesOf('word '.repeat(64))).toHaveLength(64);
    expect(() => clausesOf('word '.repeat(65))).toThrow(InvalidQueryError);
  });
});

describe('words that differ', () => {
  it.each([
    ['wine', 'wine', 0, true],
    ['wine', 'wime', 1, true],
    ['wine', 'wie', 1, true],
    ['wine', 'winne', 1, true],
    ['wine', 'wien', 1, true],
    ['wine', 'wiens', 1, false],
    ['cellar', 'selar', 2, true],
    ['cellar', 'sealr', 2, false],
    ['', 'ab', 2, true],
  ])('%s and %s by at most %i: %j', (a, b, most, expected) => {
    expect(withinDistance(a, b, most)).toBe(expected);
    expect(withinDistance(b, a, most)).toBe(expected);
  });

  it('by a letter from four letters on, and by two from eight', () => {
    expect(['abc', 'abcd', 'abcdefg', 'abcdefgh'].map(mostDistance)).toEqual([0, 1, 1, 2]);
  });
});
