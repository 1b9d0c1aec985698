/** Tests the texts of one row for a search, and counts what its rank depends on: for rows without an index, and for phrases. */
import type { TextAnalyzer } from './analyzer.ts';
import { NearWords } from './distance.ts';
import type { ParsedSearch, SearchClause } from './search-text.ts';

/** The findings of a search in one row. */
export interface RowMatch {
  readonly isMatch: boolean;
  /** How often each wanted clause occurs in each field: `frequencies[clause][field]`. */
  readonly frequencies: readonly (readonly number[])[];
  /** The words of all fields. */
  readonly length: number;
}

/** Tells whether words meet one word of a clause. */
export type WordTest = (word: string) => boolean;

/** Returns the tests of the words of a clause, in their order. The last one may be a beginning. */
export function wordTests(clause: SearchClause): WordTest[] {
  const { words, prefix, maxDistance } = clause;
  return words.map((wanted, index) => {
    const beginning = index === words.length - 1 ? prefix : undefined;
    const near = maxDistance > 0 ? new NearWords(wanted, maxDistance) : undefined;
    if (beginning === undefined && near === undefined) return (word) => word === wanted;
    return (word) =>
      word === wanted ||
      (beginning !== undefined && word.startsWith(beginning)) ||
      near?.distanceOf(word) !== undefined;
  });
}

/** Whether the words from `at` on meet the tests of a clause, one after the other. */
export function meetsAt(words: readonly string[], at: number, tests: readonly WordTest[]): boolean {
  if (at + tests.length > words.length) return false;
  return tests.every((test, index) => test(words[at + index] as string));
}

function frequencyOf(words: readonly string[], tests: readonly WordTest[]): number {
  let count = 0;
  for (let at = 0; at + tests.length <= words.length; at++) if (meetsAt(words, at, tests)) count++;
  return count;
}

/** Tests rows for one search. */
export class SearchMatcher {
  readonly #search: ParsedSearch;
  readonly #analyzer: TextAnalyzer;
  readonly #wanted: readonly WordTest[][];
  readonly #excluded: readonly WordTest[][];

  constructor(search: ParsedSearch, analyzer: TextAnalyzer) {
    this.#search = search;
    this.#analyzer = analyzer;
    this.#wanted = search.wanted.map((clause) => wordTests(clause));
    this.#excluded = search.excluded.map((clause) => wordTests(clause));
  }

  /** Tests a row by the texts of its fields, in the order of the index. A field without text has no words. */
  match(texts: readonly (string | null | undefined)[]): RowMatch {
    return this.matchWords(texts.map((text) => (text ? this.#analyzer.words(text) : [])));
  }

  /** Tests a row by the words of its fields. */
  matchWords(fields: readonly (readonly string[])[]): RowMatch {
    const frequencies = this.#wanted.map((tests) => fields.map((words) => frequencyOf(words, tests)));
    const found = frequencies.filter((counts) => counts.some((count) => count > 0)).length;
    const isFound = this.#search.match === 'any' ? found > 0 : found > 0 && found === frequencies.length;
    const isExcluded = isFound && this.#excluded.some((tests) => fields.some((words) => frequencyOf(words, tests) > 0));
    const length = fields.reduce((sum, words) => sum + words.length, 0);
    return { isMatch: isFound && !isExcluded, frequencies, length };
  }
}
