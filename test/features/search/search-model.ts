/** A search over rows in memory, written a second time and simply: every row is looked at, and its score is the sum of BM25. */
import type { SearchOptions } from '../../../src/query/conditions/search-options.ts';

export interface Article {
  readonly id: number;
  readonly title: string | null;
  readonly body: string | null;
  readonly section: number;
}

interface Term {
  readonly words: readonly string[];
  readonly isExcluded: boolean;
  /** Of the last word. */
  readonly isPrefix: boolean;
}

function termsOf(text: string, isPrefix: boolean): Term[] {
  const terms: Term[] = [];
  let isClosed = false;
  for (const [, minus, phrase, end, word] of text.matchAll(/(-?)(?:"([^"]*)("|$)|(\S+))/g)) {
    const words = (phrase ?? word ?? '').split(' ');
    terms.push({ words, isExcluded: minus === '-', isPrefix: false });
    isClosed = end === '"';
  }
  const last = terms.pop() as Term;
  return [...terms, { ...last, isPrefix: isPrefix && !isClosed }];
}

/** Whether one letter differs, is missing, is too much, or is exchanged with the next. */
function differsByOne(a: string, b: string): boolean {
  const letters = 'abcdefghijklmnopqrstuvwxyz';
  for (let i = 0; i <= a.length; i++) {
    const [before, after] = [a.slice(0, i), a.slice(i)];
    if (before + after.slice(1) === b) return true;
    if (after.length > 1 && before + after[1] + after[0] + after.slice(2) === b) return true;
    for (const letter of letters) {
      if (before + letter + after.slice(1) === b || before + letter + after === b) return true;
    }
  }
  return false;
}

/** Returns the rows that a search finds, the best ones first. The last words of the model have no endings and no accents. */
export function searchModel(
  rows: readonly Article[],
  fieldWeights: readonly number[],
  text: string,
  { prefix = false, fuzzy = false, match = 'all', fields = ['title', 'body'], weights = {} }: SearchOptions,
): Article[] {
  const terms = termsOf(text, prefix);
  const names = ['title', 'body'] as const;
  const wordsOf = (row: Article, name: 'title' | 'body'): string[] =>
    (row[name] ?? '').split(' ').filter((w) => w !== '');
  const isSame = (word: string, wanted: string, isPrefix: boolean): boolean =>
    word === wanted ||
    (isPrefix && word.startsWith(wanted)) ||
    (fuzzy && wanted.length >= 4 && word[0] === wanted[0] && differsByOne(word, wanted));
  const frequency = (row: Article, wanted: string, isPrefix: boolean): number =>
    names.reduce((sum, name, i) => {
      if (!fields.includes(name)) return sum;
      return (
        sum +
        (weights[name] ?? fieldWeights[i] ?? 1) * wordsOf(row, name).filter((w) => isSame(w, wanted, isPrefix)).length
      );
    }, 0);
  const has = (row: Article, { words, isPrefix }: Term): boolean =>
    names.some((name) => {
      const all = wordsOf(row, name);
      const isAt = (at: number): boolean =>
        words.every((w, i) => isSame(all[at + i] ?? '', w, isPrefix && i === words.length - 1));
      return fields.includes(name) && all.some((_, at) => isAt(at));
    });
  const lengthOf = (row: Article): number => names.reduce((sum, name) => sum + wordsOf(row, name).length, 0);
  const mean = rows.reduce((sum, row) => sum + lengthOf(row), 0) / rows.length;
  const asked = terms.filter(({ isExcluded }) => !isExcluded);
  const found = rows.filter((row) => {
    const isFound = match === 'any' ? asked.some((term) => has(row, term)) : asked.every((term) => has(row, term));
    return isFound && !terms.some((term) => term.isExcluded && has(row, term));
  });
  const scoreOf = (row: Article): number =>
    asked
      .flatMap(({ words, isPrefix }) => words.map((word, i) => [word, isPrefix && i === words.length - 1] as const))
      .reduce((sum, [word, isPrefix]) => {
        const count = rows.filter((other) => frequency(other, word, isPrefix) > 0).length;
        const factor = Math.max(1e-6, Math.log((rows.length - count + 0.5) / (count + 0.5)));
        const times = frequency(row, word, isPrefix);
        return sum + (factor * times * 2.2) / (times + 1.2 * (0.25 + (0.75 * lengthOf(row)) / mean));
      }, 0);
  const scores = new Map(found.map((row) => [row, Number(scoreOf(row).toPrecision(12))]));
  return found.toSorted((a, b) => (scores.get(b) as number) - (scores.get(a) as number) || a.id - b.id);
}
