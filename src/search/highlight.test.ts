import { describe, expect, it } from 'vitest';
import { loadAnalyzer } from './analyzer.ts';
import { highlight, snippet } from './highlight.ts';
import { parseSearch } from './search-text.ts';
import type { SearchTextOptions } from './search-text.ts';

const english = await loadAnalyzer('en');

/** Returns a text with brackets around what a search finds in it. */
function marked(text: string, search: string, options?: SearchTextOptions): string {
  let result = '';
  let last = 0;
  for (const { start, end } of highlight(text, parseSearch(search, english, options), english)) {
    result += `${text.slice(last, start)}[${text.slice(start, end)}]`;
    last = end;
  }
  return result + text.slice(last);
}

describe('highlights', () => {
  it.each([
    ['words', 'wine red', 'Red, white: Wines!', '[Red], white: [Wines]!'],
    ['phrases', '"red wine"', 'red wine, wine red, Red-Wines', '[red wine], wine red, [Red-Wines]'],
    ['phrases that overlap', '"a b" "b c"', 'a b c d', '[a b c] d'],
    ['diacritics', 'elan', 'L’ÉLAN vital', 'L’ÉLAN vital'],
    ['folded letters', 'strasse', 'die Straße', 'die [Straße]'],
    ['not what is excluded', 'wine -white', 'white wine', 'white [wine]'],
    ['nothing', '', 'white wine', 'white wine'],
  ])('%s', (_, search, text, expected) => {
    expect(marked(text, search)).toBe(expected);
  });

  it('shows whole words for beginnings and mistyped ones', () => {
    expect(marked('a Cabernet', 'cab', { prefix: true })).toBe('a [Cabernet]');
    expect(marked('a Cabernet', 'cabrenet', { fuzzy: true })).toBe('a [Cabernet]');
  });
});

describe('a snippet', () => {
  const filler = 'lorem ipsum dolor sit amet '.repeat(20);
  const search = parseSearch('red wine', english);

  it('is the whole text where that is short', () => {
    const spans = highlight('red wine', search, english);
    expect(snippet('red wine', spans)).toEqual({ text: 'red wine', spans, isCutBefore: false, isCutAfter: false });
  });

  it('is around most of what was found, and ends between words', () => {
    const text = `${filler}wine ${filler}red wine and red meat ${filler}`;
    const cut = snippet(text, highlight(text, search, english), 60);
    expect(cut.text).toContain('red wine and red meat');
    expect(cut.text.length).toBeLessThanOrEqual(60);
    expect(cut.spans.map(({ start, end }) => cut.text.slice(start, end))).toEqual(['red', 'wine', 'red']);
    expect(text).toContain(` ${cut.text} `);
    expect([cut.isCutBefore, cut.isCutAfter]).toEqual([true, true]);
  });

  it('is the beginning where nothing was found', () => {
    const cut = snippet(filler, [], 20);
    expect(cut).toEqual({ text: 'lorem ipsum dolor', spans: [], isCutBefore: false, isCutAfter: true });
  });

  it('cuts no pair, and a long word where it must', () => {
    const text = '🍷'.repeat(100);
    for (const length of [10, 11, 12]) {
      const cut = snippet(text, [{ start: 40, end: 160 }], length);
      expect(cut.text.length).toBeLessThanOrEqual(length);
      expect(cut.text.isWellFormed()).toBe(true);
      expect(cut.spans).toEqual([{ start: 0, end: cut.text.length }]);
    }
  });
});
