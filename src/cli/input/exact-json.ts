/** JSON whose integers beyond 2^53 keep all of their digits. */

/** Lines of that length can do no harm by how deep they are. */
const shallowLength = 100_000;
/** JSON in a row is less deep, in its field of the row. */
const maxDepth = 520;

/** Whether so many brackets are open at once that the parser would take up all memory before anybody looks at the value. */
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

/** An integer that no number of JavaScript holds exactly. */
export class LargeInteger {
  readonly digits: string;

  constructor(digits: string) {
    this.digits = digits;
  }
}

/** Characters that JSON has in strings as one escape only, so that it is plain whether a text holds them. */
const marks = ['0001', '0002', '0003', '0004', '0005', '0006', '0007', '0010', '0011', '0012', '0013', '0014', '0015'];

const tokens = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/gs;

/**
 * Parses JSON, and gives integers that are not exact as numbers as {@link LargeInteger}. Throws `SyntaxError`, and `RangeError`
 * for what it cannot keep exact.
 */
export function parseExactly(text: string): unknown {
  // Few lines have so many digits in a row.
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
/** What becomes of integers within json that are not exact there. */
export type LargeIntegerRule = (typeof largeIntegerRules)[number];

/** A value for a field of type json. Throws `RangeError` for a large integer, if these are refused. */
export function settleLargeIntegers(value: unknown, rule: LargeIntegerRule): unknown {
  if (value instanceof LargeInteger) {
    if (rule === 'refuse') {
      throw new RangeError(
        `${value.digits} is not exact in json: --large-integers text keeps its digits, round takes the nearest number`,
      );
    }
    return rule === 'text' ? value.digits : Number(value.digits);
  }
  if (Array.isArray(value)) return value.map((item) => settleLargeIntegers(item, rule));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, settleLargeIntegers(part, rule)]));
}
