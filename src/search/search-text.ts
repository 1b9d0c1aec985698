/** Takes the text of a search apart: words, phrases in double quotes, and words and phrases that a `-` excludes. */
import { InvalidQueryError } from '../base/errors.ts';
import type { TextAnalyzer } from './analyzer.ts';

/** A word of a search. */
export interface SearchToken {
  /** The word as indexes hold it. */
  readonly word: string;
  /** The word with its ending. */
  readonly typed: string;
  /** Whether it stands for all words that begin with {@link typed}, too. */
  readonly isPrefix: boolean;
}

/** A word, or the words of a phrase. */
export interface SearchClause {
  readonly tokens: readonly SearchToken[];
  /** Whether rows with it are not found. */
  readonly isExcluded: boolean;
}

/** The most words of a search: each reads entries of its own. */
const maxWords = 64;

const spaces = /\s/u;
const quotes = /["\u201c\u201d\u201e\u201f\u00ab\u00bb]/;

/**
 * Returns the clauses of a search. `prefix`: somebody still types the last word that is not excluded, unless it is in a phrase whose closing
 * quote is there.
 */
export function parseSearch(text: string, analyzer: TextAnalyzer, prefix: boolean): readonly SearchClause[] {
  const clauses: SearchClause[] = [];
  let lastWord = -1;
  let words = 0;
  const add = (part: string, isExcluded: boolean, phrase: 'none' | 'open' | 'closed'): void => {
    const tokens: SearchToken[] = [];
    analyzer.eachWord(part, (word, _start, _end, typed) => tokens.push({ word, typed, isPrefix: false }));
    if (tokens.length === 0) return;
    words += tokens.length;
    if (!isExcluded) lastWord = -1;
    if (phrase === 'none') for (const token of tokens) clauses.push({ tokens: [token], isExcluded });
    else clauses.push({ tokens, isExcluded });
    if (phrase !== 'closed' && !isExcluded) lastWord = clauses.length - 1;
  };
  for (let at = 0; at < text.length; ) {
    if (spaces.test(text[at] as string)) {
      at++;
      continue;
    }
    const isExcluded = text[at] === '-';
    const start = isExcluded ? at + 1 : at;
    if (quotes.test(text[start] ?? '')) {
      let end = start + 1;
      while (end < text.length && !quotes.test(text[end] as string)) end++;
      add(text.slice(start + 1, end), isExcluded, end < text.length ? 'closed' : 'open');
      at = end + 1;
      continue;
    }
    let end = start;
    while (end < text.length && !spaces.test(text[end] as string) && !quotes.test(text[end] as string)) end++;
    add(text.slice(start, end), isExcluded, 'none');
    at = Math.max(end, at + 1);
  }
  if (words > maxWords) {
    throw new InvalidQueryError(`search() takes up to ${maxWords} words, and this text has ${words}.`);
  }
  if (!prefix || lastWord < 0) return clauses;
  const { tokens, isExcluded } = clauses[lastWord] as SearchClause;
  const last = tokens.at(-1) as SearchToken;
  return clauses.with(lastWord, { tokens: [...tokens.slice(0, -1), { ...last, isPrefix: true }], isExcluded });
}
