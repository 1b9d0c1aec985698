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
  const terms: { words: readonly string[]; isExcluded: boolean; isPrefix: boolean }[] = [];
  let typed: (typeof terms)[number] | undefined;
  for (const [, minus, phrase, end, word] of text.matchAll(/(-?)(?:"([^"]*)("|$)|(\S+))/g)) {
    const words = (phrase ?? word ?? '').match(/[a-z]+/g) ?? [];
    if (words.length === 0) continue;
    const term = { words, isExcluded: minus === '-', isPrefix: false };
    terms.push(term);
    if (!term.isExcluded) typed = end === '"' ? undefined : term;
  }
  if (typed !== undefined) typed.isPrefix = isPrefix;
  return terms;
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

/** What the scores depend on besides the row: all rows that count, and how many they are, the marks of deletions included. */
export interface Statistics {
  readonly rows: readonly Article[];
  readonly count: number;
}

export interface Scored {
  readonly row: Article;
  readonly score: number;
}

/** Returns the rows that a search finds, the best ones first. */
export function searchModel(
  rows: readonly Article[],
  fieldWeights: readonly number[],
  text: string,
  options: SearchOptions,
): Article[] {
  const rounded = rankedModel(rows, fieldWeights, text, options).map(({ row, score }) => {
    return { row, score: Number(score.toPrecision(12)) };
  });
  return rounded.toSorted((a, b) => b.score - a.score || a.row.id - b.row.id).map(({ row }) => row);
}

/** Returns the rows that a search finds, the best ones first. The words of the model have no endings and no accents. */
export function rankedModel(
  rows: readonly Article[],
  fieldWeights: readonly number[],
  text: string,
  { prefix = false, fuzzy = false, match = 'all', fields = ['title', 'body'], weights = {} }: SearchOptions,
  { rows: counted, count: rowCount }: Statistics = { rows, count: rows.length },
): Scored[] {
  const terms = termsOf(text, prefix);
  const names = ['title', 'body'] as const;
  const wordsOf = (row: Article, name: 'title' | 'body'): string[] =>
    (row[name] ?? '').split(' ').filter((w) => w !== '');
  const isSame = (word: string, wanted: string, isPrefix: boolean, isExcluded = false): boolean =>
    word === wanted ||
    (isPrefix && word.startsWith(wanted)) ||
    (fuzzy && !isExcluded && wanted.length >= 4 && word[0] === wanted[0] && differsByOne(word, wanted));
  const frequency = (row: Article, wanted: string, isPrefix: boolean): number =>
    names.reduce((sum, name, i) => {
      if (!fields.includes(name)) return sum;
      return (
        sum +
        (weights[name] ?? fieldWeights[i] ?? 1) * wordsOf(row, name).filter((w) => isSame(w, wanted, isPrefix)).length
      );
    }, 0);
  const has = (row: Article, { words, isPrefix, isExcluded }: Term): boolean =>
    names.some((name) => {
      const all = wordsOf(row, name);
      const isAt = (at: number): boolean =>
        words.every((w, i) => isSame(all[at + i] ?? '', w, isPrefix && i === words.length - 1, isExcluded));
      return fields.includes(name) && all.some((_, at) => isAt(at));
    });
  const lengthOf = (row: Article): number => names.reduce((sum, name) => sum + wordsOf(row, name).length, 0);
  const mean = counted.reduce((sum, row) => sum + lengthOf(row), 0) / rowCount;
  const asked = terms.filter(({ isExcluded }) => !isExcluded);
  const found = rows.filter((row) => {
    if (asked.length === 0) return false;
    const isFound = match === 'any' ? asked.some((term) => has(row, term)) : asked.every((term) => has(row, term));
    return isFound && !terms.some((term) => term.isExcluded && has(row, term));
  });
  const words = asked
    .flatMap((term) => term.words.map((word, i) => [word, term.isPrefix && i === term.words.length - 1] as const))
    .map(([word, isPrefix]) => {
      const count = counted.filter((other) => frequency(other, word, isPrefix) > 0).length;
      const factor = Math.max(1e-6, Math.log((Math.max(rowCount, count) - count + 0.5) / (count + 0.5)));
      return [word, isPrefix, factor] as const;
    });
  const scoreOf = (row: Article): number =>
    words.reduce((sum, [word, isPrefix, factor]) => {
      const times = frequency(row, word, isPrefix);
      return sum + (factor * times * 2.2) / (times + 1.2 * (0.25 + (0.75 * lengthOf(row)) / mean));
    }, 0);
  const scored = found.map((row) => ({ row, score: scoreOf(row) }));
  return scored.toSorted((a, b) => b.score - a.score || a.row.id - b.row.id);
}
