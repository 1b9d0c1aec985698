/**
 * Makes the words of texts, as indexes hold them and searches look for them. Entries of a database depend on these rules: a change needs
 * another format. Letters, digits and marks are parts of words, and so is an apostrophe between letters, except in French and Italian.
 * Case, accents and the forms of letters are folded; then the ending goes, in a language. Scripts without spaces are segmented by
 * `Intl.Segmenter`, and character by character where that is missing (docs/format.md, "Words of texts").
 */
import { invariant } from '../base/errors.ts';
import type { TextLanguage } from './languages.ts';
import { loadStemmer } from './stemmers.ts';
import type { Stemmer } from './stemmers.ts';

/** Called with a word, its form before the ending went, and where it is in the text: in UTF-16 units, the end exclusive. */
export type WordVisitor = (word: string, start: number, end: number, folded: string) => void;

/** Makes the words of texts in one language. */
export interface TextAnalyzer {
  /** Calls `visit` for each word of a text, in its order. */
  eachWord(text: string, visit: WordVisitor): void;
  /** Returns the words of a text, in its order. */
  words(text: string): string[];
  /** Whether an apostrophe between letters is a part of the word. */
  readonly joins: boolean;
  /** Returns the word that a part of a text becomes, which {@link eachWord} would find: '' for none. It is not remembered. */
  wordOf(part: string): string;
}

/** The longest word, in UTF-16 units: others are cut, so that they fit into keys. */
const maxUnits = 64;
/** The most words whose forms are remembered. */
const maxKnown = 8192;

/** The parts of words, besides ASCII. */
const wordPart = /[\p{L}\p{N}\p{M}]/u;
/** Scripts that are written without spaces between words. */
const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\u{30fc}]/u;
const onlyLetters = /^\p{L}+$/u;

/** Whether a unit below 128 is an ASCII letter or digit. */
function isAsciiPart(unit: number): boolean {
  const lower = unit | 0x20;
  return (lower >= 0x61 && lower <= 0x7a) || (unit >= 0x30 && unit <= 0x39);
}

/** Letters that have no decomposition, and the ones that people type for them. */
const plainLetters: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ß: 'ss',
    æ: 'ae',
    œ: 'oe',
    ø: 'o',
    đ: 'd',
    ð: 'd',
    þ: 'th',
    ł: 'l',
    ı: 'i',
    ħ: 'h',
    ŧ: 't',
    ŋ: 'n',
    ς: 'σ',
    ё: 'е',
  }),
);

/** Accents and vowel points that a word may be written with or without. Marks of other scripts are letters of their own. */
const accents: readonly (readonly [from: number, to: number])[] = [
  [0x300, 0x36f],
  // Hebrew points and Arabic vowels.
  [0x591, 0x5bd],
  [0x5bf, 0x5bf],
  [0x5c1, 0x5c2],
  [0x5c4, 0x5c5],
  [0x5c7, 0x5c7],
  [0x64b, 0x65f],
  [0x670, 0x670],
  [0x1ab0, 0x1aff],
  [0x1dc0, 0x1dff],
  [0xfe20, 0xfe2f],
];

function isAccent(character: string): boolean {
  const code = character.codePointAt(0) as number;
  return accents.some(([from, to]) => code >= from && code <= to);
}

const cyrillic = /[\u0400-\u052f]/;
const stress = /[\u0300\u0301]/;

const onlyAscii = /^[\0-\x7f]*$/;

/** Returns a text without case, accents and forms of letters. */
function fold(text: string): string {
  if (onlyAscii.test(text)) return text.toLowerCase();
  const lower = text.normalize('NFKD').toLowerCase();
  let folded = '';
  let before = '';
  for (const character of lower) {
    if (isAccent(character)) {
      // A breve or two dots make another letter in Cyrillic.
      if (!cyrillic.test(before) || stress.test(character)) continue;
    } else before = character;
    folded += plainLetters.get(character) ?? character;
  }
  const composed = folded.normalize('NFC');
  return composed.includes('ё') ? composed.replaceAll('ё', 'е') : composed;
}

/** Whether a text is all small ASCII letters and digits. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7a || !isAsciiPart(unit) || (unit >= 0x41 && unit <= 0x5a)) return false;
  }
  return true;
}

/** Cuts a word, not between the two units of a character. */
function cut(word: string): string {
  if (word.length <= maxUnits) return word;
  const last = word.charCodeAt(maxUnits - 1);
  return word.slice(0, last >= 0xd800 && last <= 0xdbff ? maxUnits - 1 : maxUnits);
}

interface Forms {
  readonly folded: string;
  readonly word: string;
}

class Analyzer implements TextAnalyzer {
  readonly #stem: Stemmer | undefined;
  readonly joins: boolean;
  readonly #known = new Map<string, Forms>();
  readonly #segmenter: Intl.Segmenter | undefined;

  constructor(language: TextLanguage | undefined, stem: Stemmer | undefined) {
    this.#stem = stem;
    this.joins = language !== 'fr' && language !== 'it';
    this.#segmenter =
      typeof Intl.Segmenter === 'function' ? new Intl.Segmenter('en', { granularity: 'word' }) : undefined;
  }

  words(text: string): string[] {
    const words: string[] = [];
    this.eachWord(text, (word) => words.push(word));
    return words;
  }

  eachWord(text: string, visit: WordVisitor): void {
    const { length } = text;
    let at = 0;
    while (at < length) {
      const unit = text.charCodeAt(at);
      if (unit < 128 && !isAsciiPart(unit)) {
        at++;
        continue;
      }
      const end = this.#endOfWord(text, at);
      if (end > at) {
        this.#visit(text, at, end, visit);
        at = end;
        continue;
      }
      const run = endOfRun(text, at);
      if (run > at) this.#segment(text, at, run, visit);
      at = run > at ? run : at + widthAt(text, at);
    }
  }

  /** Returns the end of the word that begins at `from`; `from` if there is none, or it is of a script without spaces. */
  #endOfWord(text: string, from: number): number {
    let at = from;
    while (at < text.length) {
      const unit = text.charCodeAt(at);
      if (unit < 128) {
        if (isAsciiPart(unit)) at++;
        else if (unit === 0x27 && this.#isJoint(text, from, at)) at++;
        else break;
        continue;
      }
      if (unit === 0x2019 && this.#isJoint(text, from, at)) {
        at++;
        continue;
      }
      const width = widthAt(text, at);
      const character = text.slice(at, at + width);
      if (!wordPart.test(character) || unspaced.test(character)) break;
      at += width;
    }
    return at;
  }

  /** Whether an apostrophe is between two letters of a word. */
  #isJoint(text: string, from: number, at: number): boolean {
    return (
      this.joins &&
      at > from &&
      at + 1 < text.length &&
      wordPart.test(text.slice(at + 1, at + 1 + widthAt(text, at + 1)))
    );
  }

  #segment(text: string, from: number, to: number, visit: WordVisitor): void {
    if (this.#segmenter === undefined) {
      for (let at = from; at < to; ) {
        const end = at + widthAt(text, at);
        this.#visit(text, at, end, visit);
        at = end;
      }
      return;
    }
    for (const { segment, index, isWordLike } of this.#segmenter.segment(text.slice(from, to))) {
      if (isWordLike === true) this.#visit(text, from + index, from + index + segment.length, visit);
    }
  }

  #visit(text: string, start: number, end: number, visit: WordVisitor): void {
    const token = text.slice(start, end);
    let forms = this.#known.get(token);
    if (forms === undefined) {
      forms = this.#formsOf(token);
      if (token.length <= maxUnits) {
        if (this.#known.size >= maxKnown) this.#known.clear();
        // A part of a text keeps the whole text in memory, and a copy does not.
        this.#known.set(`.${token}`.slice(1), forms);
      }
    }
    if (forms.word !== '') visit(forms.word, start, end, forms.folded);
  }

  wordOf(part: string): string {
    return this.#formsOf(part).word;
  }

  #formsOf(token: string): Forms {
    // Much longer ones fold to words that are cut anyway.
    const whole = token.length > 8 * maxUnits ? token.slice(0, 8 * maxUnits) : token;
    const folded = cut(isPlain(whole) ? whole : fold(whole.replaceAll(/['\u2019]/g, '').toWellFormed()));
    const isStemmed = this.#stem !== undefined && onlyLetters.test(folded);
    return { folded, word: isStemmed ? cut(this.#stem?.(folded) ?? '') || folded : folded };
  }
}

/** The UTF-16 units of the character at a place. */
function widthAt(text: string, at: number): number {
  return (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
}

/** Runs of scripts without spaces are segmented in parts of so many units: a dictionary looks at a whole part. */
const maxRun = 4096;

/** Returns the end of the run of scripts without spaces that begins at `from`; `from` if there is none. */
function endOfRun(text: string, from: number): number {
  let at = from;
  while (at < text.length && at - from < maxRun) {
    const width = widthAt(text, at);
    const character = text.slice(at, at + width);
    if (!unspaced.test(character) && !(at > from && /\p{M}/u.test(character))) break;
    at += width;
  }
  return at;
}

/** By language; the empty text for none. */
const analyzers = new Map<string, TextAnalyzer>();

/** Loads the analyzer of a language. Rejects with `NotSupportedError` if it is not known, or if its package is missing. */
export async function loadAnalyzer(language: string | undefined): Promise<TextAnalyzer> {
  const known = analyzers.get(language ?? '');
  if (known !== undefined) return known;
  const stemmer = language === undefined ? undefined : await loadStemmer(language);
  const analyzer = new Analyzer(language as TextLanguage | undefined, stemmer);
  analyzers.set(language ?? '', analyzer);
  return analyzer;
}

/** Whether the analyzer of a language is loaded. */
export function isLoaded(language: string): boolean {
  return analyzers.has(language);
}

/** Returns the analyzer of a language that was loaded before. */
export function loadedAnalyzer(language: string | undefined): TextAnalyzer {
  const analyzer = analyzers.get(language ?? '');
  invariant(analyzer !== undefined, `The words of language '${language}' are made before the code for it is loaded`);
  return analyzer;
}
