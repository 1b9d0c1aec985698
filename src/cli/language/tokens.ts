/** Splits the text of a condition or a query into tokens. */
import { withoutControls } from '../../base/messages.ts';
import { UsageError } from '../terminal/exit-code.ts';
import { displayWidth } from '../terminal/terminal.ts';

export interface Token {
  /**
   * `word`: a word without quotes; `text`: in single quotes; `name`: in double quotes; `hex`: the digits of `x'00ff'`; `symbol`:
   * an operator, a parenthesis or a comma.
   */
  readonly kind: 'word' | 'text' | 'name' | 'hex' | 'symbol' | 'end';
  /** The text of the token, without quotes. */
  readonly value: string;
  /** The index of its first character in the text. */
  readonly at: number;
}

const space = /\s*/y;
const hex = /x'([^']*)'/iy;
const text = /'((?:[^']|'')*)'/y;
const name = /"((?:[^"]|"")*)"/y;
const symbol = /!=|<>|<=|>=|[=<>(),]/y;
const bareWord = /[^\s"'=!<>(),;]+/y;

/** Operators of other languages, and the ones to use instead. */
const foreign: readonly (readonly [pattern: RegExp, instead: string])[] = [
  [/==+/y, '='],
  [/&&?/y, 'and'],
  [/\|\|?/y, 'or'],
  [/!(?!=)/y, 'not'],
];

/** Reads the token that begins at an index. */
function tokenAt(source: string, at: number): { readonly token: Token; readonly end: number } {
  const found = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    return match === null ? undefined : (match[1] ?? match[0]);
  };
  const made = (kind: Token['kind'], pattern: RegExp, value: string) => {
    return { token: { kind, value, at }, end: pattern.lastIndex };
  };
  for (const [pattern, instead] of foreign) {
    const written = found(pattern);
    if (written !== undefined) throw new LanguageError(`There is no operator ${written}: write ${instead}`, source, at);
  }
  const digits = found(hex);
  if (digits !== undefined) return made('hex', hex, digits);
  const quoted = found(text);
  if (quoted !== undefined) return made('text', text, quoted.replaceAll("''", "'"));
  const named = found(name);
  if (named !== undefined) return made('name', name, named.replaceAll('""', '"'));
  const operator = found(symbol);
  if (operator !== undefined) return made('symbol', symbol, operator);
  const bare = found(bareWord);
  if (bare !== undefined) return made('word', bareWord, bare);
  const character = String.fromCodePoint(source.codePointAt(at) as number);
  throw new LanguageError(
    character === "'" || character === '"'
      ? `The quote ${character} is opened here and not closed; inside a text, double it`
      : `${character} has no meaning here: put a text that contains it in quotes`,
    source,
    at,
  );
}

/** Splits a text into tokens, of which the last is the end. Throws `LanguageError`. */
export function tokensOf(source: string): readonly Token[] {
  const tokens: Token[] = [];
  for (let at = 0; ; ) {
    space.lastIndex = at;
    space.exec(source);
    at = space.lastIndex;
    if (at === source.length) {
      tokens.push({ kind: 'end', value: '', at: source.trimEnd().length });
      return tokens;
    }
    const { token, end } = tokenAt(source, at);
    tokens.push(token);
    at = end;
  }
}

function described({ kind, value }: Token): string {
  if (kind === 'end') return 'the text ends';
  if (kind === 'text') return `found '${value}'`;
  return `found ${kind === 'name' ? `"${value}"` : value}`;
}

/** Reads the tokens of a text one by one. */
export class TokenReader {
  readonly source: string;
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(source: string) {
    this.source = source;
    this.#tokens = tokensOf(source);
  }

  get next(): Token {
    return this.#tokens[this.#next] as Token;
  }

  take(): Token {
    const token = this.next;
    if (token.kind !== 'end') this.#next++;
    return token;
  }

  /** Whether the next tokens are these words without quotes, in upper or lower case. */
  isWord(...words: readonly string[]): boolean {
    return words.every((expected, i) => {
      const token = this.#tokens[this.#next + i];
      return token?.kind === 'word' && token.value.toLowerCase() === expected;
    });
  }

  isSymbol(value: string, ahead = 0): boolean {
    const token = this.#tokens[this.#next + ahead];
    return token?.kind === 'symbol' && token.value === value;
  }

  /** Takes the words if they come next, and returns whether they did. */
  takeWord(...words: readonly string[]): boolean {
    if (!this.isWord(...words)) return false;
    this.#next += words.length;
    return true;
  }

  takeSymbol(value: string): boolean {
    if (!this.isSymbol(value)) return false;
    this.#next++;
    return true;
  }

  expectSymbol(value: string, what: string): void {
    if (!this.takeSymbol(value)) this.expected(what);
  }

  expectWord(word: string, what: string): void {
    if (!this.takeWord(word)) this.expected(what);
  }

  /** Takes parts separated by commas. */
  list<T>(part: () => T): T[] {
    const parts = [part()];
    while (this.takeSymbol(',')) parts.push(part());
    return parts;
  }

  /** Throws unless all tokens are taken. */
  end(what: string): void {
    if (this.next.kind !== 'end') this.expected(what);
  }

  /** Throws for a next token that is not expected here. */
  expected(what: string): never {
    this.fail(`Expected ${what}, but ${described(this.next)}`, this.next);
  }

  fail(message: string, { at }: Pick<Token, 'at'>): never {
    throw new LanguageError(message, this.source, at);
  }
}

/** Characters of a long line that are shown before and after the position of an error. */
const shownBefore = 50;
const shownBehind = 25;

/** Returns the line with the error, and a line below it with a caret at the position. */
function pointedAt(source: string, at: number): [string, string] {
  const begin = source.lastIndexOf('\n', at - 1) + 1;
  const end = source.indexOf('\n', at);
  const line = source.slice(begin, end === -1 ? undefined : end);
  const column = at - begin;
  const from = Math.max(0, column - shownBefore);
  const to = Math.min(line.length, column + shownBehind);
  const [left, right] = [from > 0 ? '\u2026' : '', to < line.length ? '\u2026' : ''];
  const before = left + withoutControls(line.slice(from, column));
  const shown = before + withoutControls(line.slice(column, to)) + right;
  return [`  ${shown}`, `  ${' '.repeat(displayWidth(before))}^`];
}

/** An error in a condition or query. Its message ends with the line and a caret below the position. */
export class LanguageError extends UsageError {
  /** The position of the character in the text, counted from 1. */
  readonly position: number;

  constructor(message: string, source: string, at: number) {
    super(`${message} (at character ${at + 1})`, pointedAt(source, at));
    this.position = at + 1;
  }
}
