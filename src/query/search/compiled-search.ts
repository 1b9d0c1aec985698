/** A search for the words of an index: which words it looks for, and a test of rows. */
import { isPromise } from '../../base/brands.ts';
import { readKeyComponent, skipKeyComponent } from '../../format/ordered-key.ts';
import { readField } from '../../format/row-decode.ts';
import type { LayoutField, RowSource } from '../../format/row-layout.ts';
import { Types } from '../../format/types.ts';
import { loadedAnalyzer } from '../../search/analyzer.ts';
import type { TextAnalyzer } from '../../search/analyzer.ts';
import { mostDistance, withinDistance } from '../../search/distance.ts';
import { parseSearch } from '../../search/search-text.ts';
import type { SearchClause, SearchToken } from '../../search/search-text.ts';
import type { TextFields } from '../../schema/text-fields.ts';
import { openCursor } from '../../tree/cursor-sequence.ts';
import { prefixEnd } from '../../base/bytes.ts';
import { Condition } from '../conditions/condition.ts';
import { RowSelector, slowCost } from '../conditions/filter.ts';
import type { Corpus, SearchedWord, SearchedWords } from './find-rows.ts';
import { rangeOf } from './postings.ts';
import type { SearchedIndex, TextSpan, WrittenSearch } from '../conditions/search-options.ts';

/** The most words that one misspelled word stands for. */
const maxAlternatives = 1000;

export class CompiledSearch {
  readonly #clauses: readonly SearchClause[];
  readonly #any: boolean;
  readonly #isFuzzy: boolean;
  readonly #test: RowTest;
  /** Tests rows for the whole search, as it is by their texts. */
  readonly condition: Condition;
  /** Whether words must stand one after the other, which the index does not tell. */
  readonly hasPhrases: boolean;

  constructor({ index, weights }: SearchedIndex, { text, options }: WrittenSearch) {
    const fields = index.text as TextFields;
    const analyzer = loadedAnalyzer(fields.language);
    this.#clauses = parseSearch(text, analyzer, options.prefix === true);
    this.#any = options.match === 'any';
    this.#isFuzzy = options.fuzzy === true;
    this.hasPhrases = this.#clauses.some(({ tokens }) => tokens.length > 1);
    const searched = fields.fields.filter((_, i) => (weights[i] as number) > 0);
    this.#test = new RowTest(this.#clauses, { analyzer, any: this.#any, isFuzzy: this.#isFuzzy, fields: searched });
    const names = searched.map(({ name }) => name);
    this.condition = new Condition(names, undefined, new SearchSelector(this.#test), searched);
  }

  /** Returns where the words and phrases of the search are in a text, in order. Phrases are one part; no part overlaps another. */
  spansIn(text: string): TextSpan[] {
    return this.#test.spansIn(text);
  }

  /** Returns the words to look for in the index. */
  async wordsIn(corpus: Corpus, breathe: () => void | Promise<void>): Promise<SearchedWords> {
    const asked = this.#clauses.filter(({ isExcluded }) => !isExcluded).flatMap(({ tokens }) => tokens);
    const words: SearchedWord[] = [];
    for (const token of asked) words.push(await this.#alternativesTo(token, corpus, breathe));
    // An excluded phrase is looked for in the rows: one of its words alone may be there.
    const excluded = this.#clauses.filter(({ isExcluded, tokens }) => isExcluded && tokens.length === 1);
    return {
      words,
      excluded: excluded.flatMap(({ tokens }) => tokens).map(alternativesOf),
      any: this.#any,
    };
  }

  async #alternativesTo(
    token: SearchToken,
    { sources }: Corpus,
    breathe: () => void | Promise<void>,
  ): Promise<SearchedWord> {
    const own = alternativesOf(token);
    const most = this.#isFuzzy ? mostDistance(token.word) : 0;
    if (most === 0) return own;
    const words = new Set<string>();
    // Words that begin as it does are found already, and would count twice.
    const isOther = (word: string): boolean => word !== token.word && !(token.isPrefix && word.startsWith(token.typed));
    // Words that begin with another letter are not looked at: most of the index would be.
    const [beginning] = token.word;
    for (const { tree } of sources) {
      let from = rangeOf(beginning as string, true).from as Uint8Array;
      const to = rangeOf(beginning as string, true).to;
      while (words.size < maxAlternatives) {
        const cursor = openCursor(tree, { from, to });
        const more = cursor.next();
        if (!(isPromise(more) ? await more : more)) break;
        const { node, to: end } = cursor;
        for (let at = cursor.from; at < end && words.size < maxAlternatives; ) {
          const key = node.key(at);
          const wordEnd = skipKeyComponent(key, 0, Types.varchar);
          const word = readKeyComponent(key, 0, wordEnd, Types.varchar) as string;
          if (isOther(word) && withinDistance(word, token.word, most)) words.add(word);
          // The next word may be several leaves away.
          from = prefixEnd(key.slice(0, wordEnd)) as Uint8Array;
          at = node.boundFrom(at, from, 0, from.length);
          const pause = breathe();
          if (isPromise(pause)) await pause;
        }
      }
    }
    const others = [...words].map((word) => ({ word, isPrefix: false }));
    return { alternatives: [...own.alternatives, ...others] };
  }
}

function alternativesOf({ word, typed, isPrefix }: SearchToken): SearchedWord {
  const whole = { word, isPrefix: false };
  if (!isPrefix) return { alternatives: [whole] };
  const beginning = { word: typed, isPrefix: true };
  return { alternatives: word.startsWith(typed) ? [beginning] : [beginning, whole] };
}

interface TestOptions {
  readonly analyzer: TextAnalyzer;
  readonly any: boolean;
  readonly isFuzzy: boolean;
  readonly fields: readonly LayoutField[];
}

/** Tests rows for a search by their texts. */
class RowTest {
  readonly #clauses: readonly SearchClause[];
  readonly #options: TestOptions;

  constructor(clauses: readonly SearchClause[], options: TestOptions) {
    this.#clauses = clauses;
    this.#options = options;
  }

  matches(source: RowSource, base: number): boolean {
    const { analyzer, any, fields } = this.#options;
    const texts = fields.map((field) => {
      const text = readField(source, base, field) as string | null;
      return text === null ? [] : analyzer.words(text);
    });
    const asked = this.#clauses.filter(({ isExcluded }) => !isExcluded);
    if (asked.length === 0) return false;
    const isIn = (clause: SearchClause): boolean => texts.some((words) => this.#isIn(words, clause));
    if (!(any ? asked.some(isIn) : asked.every(isIn))) return false;
    return !this.#clauses.some((clause) => clause.isExcluded && isIn(clause));
  }

  spansIn(text: string): TextSpan[] {
    const places: TextSpan[] = [];
    const words: string[] = [];
    this.#options.analyzer.eachWord(text, (word, start, end) => {
      words.push(word);
      places.push({ start, end });
    });
    const spans: { readonly start: number; end: number }[] = [];
    for (let at = 0; at < words.length; at++) {
      let length = 0;
      for (const clause of this.#clauses) {
        const { tokens, isExcluded } = clause;
        if (!isExcluded && tokens.length > length && this.#isAt(words, at, clause)) ({ length } = tokens);
      }
      if (length === 0) continue;
      const { start } = places[at] as TextSpan;
      const { end } = places[at + length - 1] as TextSpan;
      const last = spans.at(-1);
      if (last !== undefined && start < last.end) last.end = Math.max(last.end, end);
      else spans.push({ start, end });
    }
    return spans;
  }

  /** Whether the words of a clause stand one after the other. */
  #isIn(words: readonly string[], clause: SearchClause): boolean {
    for (let at = 0; at < words.length; at++) if (this.#isAt(words, at, clause)) return true;
    return false;
  }

  #isAt(words: readonly string[], at: number, { tokens, isExcluded }: SearchClause): boolean {
    if (at + tokens.length > words.length) return false;
    return tokens.every((token, i) => this.#isSame(words[at + i] as string, token, isExcluded));
  }

  #isSame(word: string, token: SearchToken, isExcluded: boolean): boolean {
    if (word === token.word || (token.isPrefix && word.startsWith(token.typed))) return true;
    if (!this.#options.isFuzzy || isExcluded) return false;
    const most = mostDistance(token.word);
    return most > 0 && word[0] === token.word[0] && withinDistance(word, token.word, most);
  }
}

class SearchSelector extends RowSelector {
  readonly cost: number = slowCost;
  readonly #test: RowTest;

  constructor(test: RowTest) {
    super();
    this.#test = test;
  }

  protected matches(source: RowSource, base: number): boolean {
    return this.#test.matches(source, base);
  }
}
