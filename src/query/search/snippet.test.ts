import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../testing/seeded-random.ts';
import { snippet } from './snippet.ts';

function spansOf(text: string, word: string): { start: number; end: number }[] {
  return [...text.matchAll(new RegExp(word, 'g'))].map(({ index }) => ({ start: index, end: index + word.length }));
}

function marked(text: string, word: string, maxLength: number): string {
  const part = snippet(text, spansOf(text, word), { maxLength });
  expect(part.text.length).toBeLessThanOrEqual(maxLength);
  return part.spans.toReversed().reduce((shown, { start, end }) => {
    return `${shown.slice(0, start)}[${shown.slice(start, end)}]${shown.slice(end)}`;
  }, part.text);
}

describe('a snippet', () => {
  it('is the text if it is short, and its beginning if nothing was found', () => {
    expect(marked('A glass of wine', 'wine', 20)).toBe('A glass of [wine]');
    expect(marked('A glass of water on a table of oak', 'wine', 20)).toBe('A glass of water…');
    expect(snippet('short').spans).toEqual([]);
  });

  it('shows the part that has most of the words, from word to word', () => {
    const text = 'One wine here. And much other text follows, until wine meets wine, and the rest goes on and on.';
    expect(marked(text, 'wine', 40)).toBe('…until [wine] meets [wine], and the…');
    expect(marked(text, 'One', 24)).toBe('[One] wine here. And…');
    expect(marked(text, 'rest', 30)).toBe('…and the [rest] goes on and…');
  });

  it('has words that are longer than it, texts without spaces, and no half characters', () => {
    const long = 'x'.repeat(50);
    expect(marked(`a ${long} b`, long, 20)).toBe(`…[${'x'.repeat(18)}]…`);
    const random = new SeededRandom(4);
    for (let round = 0; round < 500; round++) {
      const text = Array.from({ length: 120 }, () => random.pick(['a', ' ', '東', '😀', 'b'])).join('');
      const spans = spansOf(text, random.pick(['a', '東', '😀', 'b b']));
      const part = snippet(text, spans, { maxLength: random.integer(16, 90) });
      expect(part.text.isWellFormed()).toBe(true);
      expect(part.spans.length > 0).toBe(spans.length > 0);
      for (const { start, end } of part.spans) expect(end).toBeGreaterThan(start);
      expect(text).toContain(part.text.replaceAll('…', ''));
    }
  });

  it('shows the whole word although it would begin within a character', () => {
    for (const maxLength of [16, 17, 18, 19]) {
      const shown = marked('Old casks stand here 😀 wine cellars', 'cellars', maxLength);
      expect(shown).toContain('[cellars]');
      expect(marked(`${'😀'.repeat(30)} cellars and`, 'cellars', maxLength)).toContain('[cellars]');
    }
  });

  it('marks no half of a word where no space is near', () => {
    const random = new SeededRandom(7);
    for (let round = 0; round < 200; round++) {
      const text = Array.from({ length: 40 }, () => random.pick(['wine', 'a,', '-', ' ', '.'])).join('');
      const spans = spansOf(text, 'wine');
      const part = snippet(text, spans, { maxLength: random.integer(16, 60) });
      for (const { start, end } of part.spans) expect(part.text.slice(start, end)).toBe('wine');
      expect(part.spans.length > 0).toBe(spans.length > 0);
    }
  });

  it('refuses what is no text and options that it does not know', () => {
    expect(() => snippet(null as never)).toThrow('snippet() takes a text, not null.');
    expect(() => snippet('x', [], { maxLength: 3 })).toThrow('maxLength');
  });

  it('refuses marks that are not of the text', () => {
    const text = 'a red wine';
    const takes = 'snippet() takes the marks of one text, such as (await query.highlight(row)).body';
    expect(() => snippet(text, { body: [] } as never)).toThrow(`${takes}, not an object.`);
    expect(() => snippet(text, null as never)).toThrow(`${takes}, not null.`);
    for (const span of [null, 'red', [2, 5], { start: 2 }, { start: 2, end: '5' }, { start: 0.5, end: 1 }]) {
      expect(() => snippet(text, [span] as never)).toThrow(`${takes}: { start, end } for each word.`);
    }
    const misplaced = [
      [{ start: -1, end: 2 }],
      [{ start: 5, end: 2 }],
      [{ start: 6, end: 11 }],
      [
        { start: 6, end: 10 },
        { start: 2, end: 5 },
      ],
    ];
    for (const spans of misplaced) expect(() => snippet(text, spans)).toThrow('the text has 10 UTF-16 units.');
  });
});
