/** Parses JSON without rounding integers beyond 2^53, and splits files into JSON values. */
import { LineError } from './line-error.ts';

/** Lines up to this length cannot be nested deeply enough to do harm. */
const shallowLength = 100_000;
/** More than the depth that json in a field of a row may have. */
const maxDepth = 520;

/** Whether a text is nested so deeply that parsing it would use up all memory. */
export function isTooDeep(text: string): boolean {
  if (text.length <= shallowLength) return false;
  let depth = 0;
  let isText = false;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (isText) {
      if (unit === 0x5c) i++;
      else if (unit === 0x22) isText = false;
    } else if (unit === 0x22) isText = true;
    else if (unit === 0x5b || unit === 0x7b) {
      if (++depth > maxDepth) return true;
    } else if (unit === 0x5d || unit === 0x7d) depth--;
  }
  return false;
}

/** An integer that a JavaScript number cannot hold exactly. */
export class LargeInteger {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }
}

/** Characters that JSON strings can contain only as this escape, so that a search shows whether a text contains them. */
const marks = ['0001', '0002', '0003', '0004', '0005', '0006', '0007', '0010', '0011', '0012', '0013', '0014', '0015'];

const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/gs;

/**
 * Parses JSON. Integers that are not exact as numbers become {@link LargeInteger}. Throws `SyntaxError`, and `RangeError` if it cannot
 * keep them exact.
 */
export function parseExactly(text: string): unknown {
  // Few lines have so many digits together.
  if (!/\d{16}/.test(text)) return JSON.parse(text) as unknown;
  const code = marks.find((candidate) => !text.includes(`\\u${candidate}`));
  if (code === undefined) throw new RangeError('it has too many kinds of control characters beside large integers');
  let found = false;
  const marked = text.replace(tokens, (token) => {
    if (token.length < 16 || !/^-?\d+$/.test(token) || Number.isSafeInteger(Number(token))) return token;
    found = true;
    return `"\\u${code}${token}"`;
  });
  const mark = String.fromCharCode(Number.parseInt(code, 16));
  if (!found) return JSON.parse(text) as unknown;
  return JSON.parse(marked, (_, value: unknown) => {
    return typeof value === 'string' && value.startsWith(mark) ? new LargeInteger(value.slice(1)) : value;
  }) as unknown;
}

export const largeIntegerRules = ['refuse', 'text', 'round'] as const;
/** The treatment of integers in json fields that are not exact as numbers. */
export type LargeIntegerRule = (typeof largeIntegerRules)[number];

/** Replaces the large integers in a value for a json field. Throws `RangeError` for one if the rule is `refuse`. */
export function convertLargeIntegers(value: unknown, rule: LargeIntegerRule): unknown {
  if (value instanceof LargeInteger) {
    if (rule === 'refuse') {
      throw new RangeError(
        `${value.digits} is not exact in json: --large-integers text keeps its digits, round takes the nearest number`,
      );
    }
    return rule === 'text' ? value.digits : Number(value.digits);
  }
  if (Array.isArray(value)) return value.map((item) => convertLargeIntegers(item, rule));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, convertLargeIntegers(part, rule)]));
}

/** The text of one JSON value in a file. */
export interface JsonPart {
  /** The line on which it ends, counted from 1. */
  readonly line: number;
  readonly text: string;
}

function tooLong(line: number, maxLength: number): LineError {
  return new LineError(line, `it is longer than ${Math.floor(maxLength / 1048576)} MiB`);
}

/** Splits a text at line feeds only: JSON strings may contain other characters that count as line ends elsewhere. */
export async function* linesOf(pieces: AsyncIterable<string>, maxLength: number): AsyncGenerator<JsonPart[]> {
  let line = 0;
  let pending: string[] = [];
  let length = 0;
  for await (const piece of pieces) {
    const parts: JsonPart[] = [];
    let from = 0;
    for (let at = piece.indexOf('\n'); at !== -1; at = piece.indexOf('\n', from)) {
      const last = piece.slice(from, at);
      const text = pending.length === 0 ? last : [...pending, last].join('');
      pending = [];
      length = 0;
      from = at + 1;
      line++;
      if (text.trim() !== '') parts.push({ line, text });
    }
    if (parts.length > 0) yield parts;
    if (from < piece.length) pending.push(piece.slice(from));
    length += piece.length - from;
    if (length > maxLength) throw tooLong(line + 1, maxLength);
  }
  const text = pending.join('');
  if (text.trim() !== '') yield [{ line: line + 1, text }];
}

const isSpace = (unit: number): boolean => unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;

/** Splits an array, or a sequence, into the texts of its objects, piece by piece. It does not parse the objects. */
class ObjectCutter {
  readonly #maxLength: number;
  #line = 1;
  #depth = 0;
  #isText = false;
  #isEscaped = false;
  /** Pieces of the object that is open. */
  #open: string[] = [];
  #length = 0;
  /** Undefined before the first character. */
  #isArray: boolean | undefined;
  #isOver = false;
  /** Whether an object of the array must be followed by a comma before the next. */
  #needsComma = false;

  constructor(maxLength: number) {
    this.#maxLength = maxLength;
  }

  push(piece: string): JsonPart[] {
    const parts: JsonPart[] = [];
    let begin = this.#depth > 0 ? 0 : -1;
    for (let at = 0; at < piece.length; at++) {
      const unit = piece.charCodeAt(at);
      if (unit === 0x0a) this.#line++;
      if (this.#isText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (unit === 0x5c) this.#isEscaped = true;
        else if (unit === 0x22) this.#isText = false;
      } else if (this.#depth === 0) {
        if (!isSpace(unit) && this.#opens(unit)) {
          this.#depth = 1;
          begin = at;
        }
      } else if (unit === 0x22) this.#isText = true;
      else if (unit === 0x7b || unit === 0x5b) this.#depth++;
      else if ((unit === 0x7d || unit === 0x5d) && --this.#depth === 0) {
        const last = piece.slice(begin, at + 1);
        parts.push({ line: this.#line, text: this.#open.length === 0 ? last : [...this.#open, last].join('') });
        this.#open = [];
        this.#length = 0;
        begin = -1;
      }
    }
    if (begin !== -1) {
      this.#open.push(begin === 0 ? piece : piece.slice(begin));
      this.#length += piece.length - begin;
      if (this.#length > this.#maxLength) throw tooLong(this.#line, this.#maxLength);
    }
    return parts;
  }

  /** Whether a character begins an object. Throws `LineError` if it cannot be part of a list of objects. */
  #opens(unit: number): boolean {
    if (this.#isArray === undefined) {
      this.#isArray = unit === 0x5b;
      if (this.#isArray) return false;
    }
    const isComma = unit === 0x2c;
    if (this.#isArray && isComma && this.#needsComma) {
      this.#needsComma = false;
      return false;
    }
    if (this.#isArray && unit === 0x5d && !this.#isOver) {
      this.#isOver = true;
      return false;
    }
    if (unit === 0x7b && !this.#isOver && !(this.#isArray && this.#needsComma)) {
      this.#needsComma = true;
      return true;
    }
    const found = JSON.stringify(String.fromCharCode(unit));
    throw new LineError(this.#line, `found ${found} where an object of the list should begin`);
  }

  /** Throws `LineError` if an object or the array is not closed. */
  end(): void {
    if (this.#depth > 0) throw new LineError(this.#line, 'the file ends within an object');
    if (this.#isArray === true && !this.#isOver) throw new LineError(this.#line, 'the file ends within the array');
  }
}

/** Splits a text into the objects of an array, or into objects that follow each other. Throws `LineError`. */
export async function* objectsOf(pieces: AsyncIterable<string>, maxLength: number): AsyncGenerator<JsonPart[]> {
  const cutter = new ObjectCutter(maxLength);
  for await (const piece of pieces) {
    const parts = cutter.push(piece);
    if (parts.length > 0) yield parts;
  }
  cutter.end();
}
