/**
 * The words of a text, as an index on text keeps them: cut by the characters of Unicode, without case and diacritics, and as stems
 * where the index has a language. Entries in databases depend on every rule here: docs/format.md has them to the letter.
 */
import { invariant } from '../base/errors.ts';
import { apostrophe, invisible, kindOf, letter, mark, separator, unspaced } from './characters.ts';
import { lowered, withoutDiacritics } from './folding.ts';
import { loadStemmer } from './languages.ts';
import type { Stemmer, TextLanguage } from './languages.ts';

/** Called with a word, and where the text has it: from `start` up to `end`. */
export type WordVisitor = (word: string, start: number, end: number) => void;

/** Makes words of texts. It keeps no state that a caller could notice. */
export interface TextAnalyzer {
  readonly language: TextLanguage | undefined;
  /** Calls `visit` for each word of a text, in the order of the text. */
  eachWord(text: string, visit: WordVisitor): void;
  /** Returns the words of a text, in the order of the text. */
  words(text: string): string[];
  /** Calls `visit` for each word of a text as it stands before it becomes a stem, without case and diacritics. */
  eachFolded(text: string, visit: WordVisitor): void;
}

/** The length of the longest word, in UTF-16 units. What is longer is cut. */
export const maxWordLength = 64;
/** Units of a word in the text that are looked at. The rest of a longer word belongs to it, and changes nothing. */
const maxTokenLength = 2 * maxWordLength;
/** Units of a run without spaces that the segmenter cuts at a time. */
const maxRunLength = 1024;
/** Words that an analyzer remembers. */
const maxRemembered = 8192;

function cutTo(text: string, length: number): string {
  if (text.length <= length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length);
}

/** The segmenter of the runtime. It cuts by dictionaries for scripts, so no locale matters. */
function makeSegmenter(): Intl.Segmenter | undefined {
  return typeof Intl.Segmenter === 'function' ? new Intl.Segmenter('en', { granularity: 'word' }) : undefined;
}

/** The code point at `at`; half of a pair alone is itself. */
function codeAt(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xd800 && code <= 0xdbff ? (text.codePointAt(at) as number) : code;
}

class Analyzer implements TextAnalyzer {
  readonly language: TextLanguage | undefined;
  readonly #stemmer: Stemmer | undefined;
  readonly #joinsApostrophes: boolean;
  readonly #stems = new Map<string, string>();
  readonly #folded = new Map<string, string>();
  #segmenter: Intl.Segmenter | undefined;

  constructor(language: TextLanguage | undefined, stemmer: Stemmer | undefined) {
    this.language = language;
    this.#stemmer = stemmer;
    this.#joinsApostrophes = language === 'en';
  }

  eachWord(text: string, visit: WordVisitor): void {
    this.#scan(text, visit, this.#stems, true);
  }

  words(text: string): string[] {
    const words: string[] = [];
    this.eachWord(text, (word) => words.push(word));
    return words;
  }

  eachFolded(text: string, visit: WordVisitor): void {
    this.#scan(text, visit, this.#folded, false);
  }

  #scan(text: string, visit: WordVisitor, known: Map<string, string>, isStem: boolean): void {
    const { length } = text;
    let at = 0;
    while (at < length) {
      const code = codeAt(text, at);
      const kind = kindOf(code);
      if (kind === letter) {
        const end = this.#endOfWord(text, at + (code > 0xffff ? 2 : 1));
        this.#visitToken(text, at, end, { visit, known, isStem });
        at = end;
      } else if (kind === unspaced) {
        const end = endOfRun(text, at + (code > 0xffff ? 2 : 1));
        this.#scanRun(text, at, end, { visit, known, isStem });
        at = end;
      } else {
        at += code > 0xffff ? 2 : 1;
      }
    }
  }

  /** Returns where a word ends that goes on at `from`: behind its last letter or mark. */
  #endOfWord(text: string, from: number): number {
    const { length } = text;
    let end = from;
    let at = from;
    while (at < length) {
      const code = codeAt(text, at);
      const kind = kindOf(code);
      if (kind === separator || kind === unspaced) break;
      // An apostrophe belongs to a word if a letter follows.
      if (kind === apostrophe && !(this.#joinsApostrophes && end === at)) break;
      at += code > 0xffff ? 2 : 1;
      if (kind === letter || kind === mark) end = at;
    }
    return end;
  }

  #visitToken(text: string, start: number, end: number, to: Target): void {
    const token = cutTo(text.slice(start, Math.min(end, start + maxTokenLength + 1)), maxTokenLength);
    let word = to.known.get(token);
    if (word === undefined) {
      // A part of a text keeps the whole text in memory: what is remembered is a copy.
      const copy = ` ${token}`.slice(1);
      word = this.#wordOf(copy, to.isStem);
      if (to.known.size >= maxRemembered) to.known.clear();
      to.known.set(copy, word);
    }
    if (word !== '') to.visit(word, start, end);
  }

  /** Cuts a run of letters without spaces between words. */
  #scanRun(text: string, start: number, end: number, to: Target): void {
    this.#segmenter ??= makeSegmenter();
    for (let at = start; at < end; ) {
      const part = cutTo(text.slice(at, Math.min(end, at + maxRunLength + 1)), maxRunLength);
      if (this.#segmenter === undefined) {
        let offset = at;
        for (const character of part) {
          this.#visitToken(text, offset, offset + character.length, to);
          offset += character.length;
        }
      } else {
        for (const { segment, index } of this.#segmenter.segment(part)) {
          this.#visitToken(text, at + index, at + index + segment.length, to);
        }
      }
      at += part.length;
    }
  }

  #wordOf(token: string, isStem: boolean): string {
    const word = lowered(token, this.language === 'tr');
    if (!isStem || this.#stemmer === undefined || word.length > maxWordLength) {
      return cutTo(withoutDiacritics(word), maxWordLength);
    }
    // English endings have no diacritics. Those of other languages do, so their stems come first.
    const stem = this.#stemmer(this.language === 'en' ? withoutDiacritics(word, true) : word);
    return cutTo(withoutDiacritics(stem), maxWordLength);
  }
}

/** The receiver of the words that a scan finds. */
interface Target {
  readonly visit: WordVisitor;
  readonly known: Map<string, string>;
  readonly isStem: boolean;
}

/** Returns where a run ends that goes on at `from`: behind its last letter without spaces or mark. */
function endOfRun(text: string, from: number): number {
  const { length } = text;
  let end = from;
  let at = from;
  while (at < length) {
    const code = codeAt(text, at);
    const kind = kindOf(code);
    if (kind !== unspaced && kind !== mark && kind !== invisible) break;
    at += code > 0xffff ? 2 : 1;
    if (kind !== invisible) end = at;
  }
  return end;
}

/** The analyzers of a process, by language. */
const analyzers = new Map<TextLanguage | undefined, TextAnalyzer>();

/** Returns the analyzer of a language once its code is loaded; without a language, words are no stems, and nothing is loaded. */
export async function loadAnalyzer(language: TextLanguage | undefined): Promise<TextAnalyzer> {
  const known = analyzers.get(language);
  if (known !== undefined) return known;
  const stemmer = language === undefined ? undefined : await loadStemmer(language);
  return analyzers.get(language) ?? addAnalyzer(language, stemmer);
}

function addAnalyzer(language: TextLanguage | undefined, stemmer: Stemmer | undefined): TextAnalyzer {
  const analyzer = new Analyzer(language, stemmer);
  analyzers.set(language, analyzer);
  return analyzer;
}

/** Returns the analyzer of a language that {@link loadAnalyzer} has loaded before. */
export function loadedAnalyzer(language: TextLanguage | undefined): TextAnalyzer {
  const known = analyzers.get(language);
  if (known !== undefined) return known;
  invariant(language === undefined, `Words in the language ${language} were made before their stemmer was loaded`);
  return addAnalyzer(undefined, undefined);
}
