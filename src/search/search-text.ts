/**
 * Searches as people type them: words, phrases in quotes, and what must not occur. The words are made by
 * the analyzer of the index, so that they meet the words of the rows.
 */
import { InvalidQueryError } from '../base/errors.ts';
import type { TextAnalyzer } from './analyzer.ts';

/** How a search reads its text. */
export interface SearchTextOptions {
  /** Whether the last word matches words that begin with it, as for a search while a person types. Default false. */
  readonly prefix?: boolean;
  /** Whether a row needs all clauses, or any of them. Default `all`. */
  readonly match?: 'all' | 'any';
  /** Whether a word also matches words that differ in one letter from 4 letters on, and in two from 8 on. Default false. */
  readonly fuzzy?: boolean;
}

/** One word or one phrase of a search. */
export interface SearchClause {
  /** The words as an index has them, at least one. Those of a phrase follow one another. */
  readonly words: readonly string[];
  readonly isPhrase: boolean;
  /** Whether a row must not have it. */
  readonly isExcluded: boolean;
  /**
   * The beginning that the last word may have instead, without case and diacritics, and not as a stem. The last of `words` is the stem:
   * what a person has typed whole finds it too.
   */
  readonly prefix: string | undefined;
  /** Letters that may differ in a word that is alone in its clause: 0, 1 or 2. */
  readonly maxDistance: number;
}

/** A search, without the text that it was made from. */
export interface ParsedSearch {
  /** Clauses that a row needs. Empty if the text has no word, or only excludes: no row matches then. */
  readonly wanted: readonly SearchClause[];
  readonly excluded: readonly SearchClause[];
  readonly match: 'all' | 'any';
}

/** The most words that a search may have. */
export const maxSearchWords = 64;
/** The longest text of a search, in UTF-16 units. */
export const maxSearchLength = 4096;

const quotes = '"“”„«»‟＂';
const dashes = '-−－';
const spaces = /\s/u;

/** A part of a search as it is typed. */
interface TypedPart {
  readonly text: string;
  readonly isQuoted: boolean;
  readonly isExcluded: boolean;
}

/** Returns where the quotes end that begin before `from`: at the next quote, else at the end of the text. */
function endOfQuotes(text: string, from: number): number {
  let at = from;
  while (at < text.length && !quotes.includes(text[at] as string)) at++;
  return at;
}

/** Returns where an unquoted part ends: at a space or a quote. */
function endOfPart(text: string, from: number): number {
  let at = from;
  while (at < text.length && !spaces.test(text[at] as string) && !quotes.includes(text[at] as string)) at++;
  return at;
}

function typedParts(text: string): TypedPart[] {
  const parts: TypedPart[] = [];
  let at = 0;
  while (at < text.length) {
    if (spaces.test(text[at] as string)) {
      at++;
      continue;
    }
    // A dash excludes where a word begins: within a word, it belongs to the word.
    const isExcluded = dashes.includes(text[at] as string);
    const start = isExcluded ? at + 1 : at;
    const isQuoted = start < text.length && quotes.includes(text[start] as string);
    const end = isQuoted ? endOfQuotes(text, start + 1) : endOfPart(text, start);
    parts.push({ text: text.slice(isQuoted ? start + 1 : start, end), isQuoted, isExcluded });
    at = isQuoted ? end + 1 : end;
  }
  return parts;
}

/** Letters that may differ in a word of so many. */
function distanceFor(word: string): number {
  const { length } = Array.from(word);
  if (length >= 8) return 2;
  return length >= 4 ? 1 : 0;
}

/** The last word of a text, without case and diacritics. */
function lastFolded(text: string, analyzer: TextAnalyzer): string | undefined {
  let last: string | undefined;
  analyzer.eachFolded(text, (word) => {
    last = word;
  });
  return last;
}

function clauseOf(
  part: TypedPart,
  words: readonly string[],
  prefix: string | undefined,
  isFuzzy: boolean,
): SearchClause {
  const { isExcluded } = part;
  const isPhrase = words.length > 1;
  const mayDiffer = isFuzzy && !isPhrase && !part.isQuoted && !isExcluded;
  return Object.freeze({
    words: Object.freeze(words),
    isPhrase,
    isExcluded,
    prefix,
    maxDistance: mayDiffer ? distanceFor(words[0] as string) : 0,
  });
}

/**
 * Reads the text of a search. A part between spaces that holds several words, such as `e-mail`, is a phrase of them; so is a run of a
 * script without spaces. Throws `InvalidQueryError` for a text that is too long or has too many words.
 */
export function parseSearch(text: string, analyzer: TextAnalyzer, options: SearchTextOptions = {}): ParsedSearch {
  if (text.length > maxSearchLength) {
    throw new InvalidQueryError(
      `The text of a search has ${text.length} characters, and may have ${maxSearchLength}: search for fewer words`,
    );
  }
  const wanted: SearchClause[] = [];
  const excluded: SearchClause[] = [];
  const parts = typedParts(text);
  let count = 0;
  for (const [index, part] of parts.entries()) {
    const words = analyzer.words(part.text);
    if (words.length === 0) continue;
    count += words.length;
    if (count > maxSearchWords) {
      throw new InvalidQueryError(
        `The text of a search has more than ${maxSearchWords} words: search for fewer words, or for a part of the text`,
      );
    }
    const mayBegin = options.prefix === true && index === parts.length - 1 && !part.isQuoted && !part.isExcluded;
    const prefix = mayBegin ? lastFolded(part.text, analyzer) : undefined;
    (part.isExcluded ? excluded : wanted).push(clauseOf(part, words, prefix, options.fuzzy === true));
  }
  return Object.freeze({
    wanted: Object.freeze(wanted),
    excluded: Object.freeze(excluded),
    match: options.match ?? 'all',
  });
}
