/**
 * Decodes the bytes of files. An encoding decodes whole characters, and refuses bytes that are not characters instead of replacing them
 * by U+FFFD. Single-byte encodings are decoded here: runtimes differ in them, and the standard decodes ISO 8859-1 as Windows-1252.
 */
import { UsageError } from '../terminal/exit-code.ts';
import { LineError } from './line-error.ts';

export const encodingNames = [
  'utf-8',
  'utf-16',
  'utf-16le',
  'utf-16be',
  'iso-8859-1',
  'windows-1252',
  'shift_jis',
  'euc-jp',
  'gbk',
  'gb18030',
] as const;
export type EncodingName = (typeof encodingNames)[number];

/** Other common names of encodings, in lower case, without hyphens, underscores and spaces. */
const otherNames: Readonly<Record<string, EncodingName>> = {
  utf8: 'utf-8',
  utf16: 'utf-16',
  utf16le: 'utf-16le',
  utf16be: 'utf-16be',
  iso88591: 'iso-8859-1',
  latin1: 'iso-8859-1',
  windows1252: 'windows-1252',
  cp1252: 'windows-1252',
  ansi: 'windows-1252',
  shiftjis: 'shift_jis',
  sjis: 'shift_jis',
  cp932: 'shift_jis',
  eucjp: 'euc-jp',
  cp936: 'gbk',
  gb2312: 'gbk',
};

/** Returns the canonical name of an encoding. An unknown text is returned unchanged, for the parser of the command line to refuse. */
export function encodingNamed(name: string): EncodingName {
  const plain = name.toLowerCase().replaceAll(/[-_ ]/g, '');
  return Object.hasOwn(otherNames, plain) ? (otherNames[plain] as EncodingName) : (name as EncodingName);
}

/** The name of an encoding with a fixed byte order. */
type ExactName = Exclude<EncodingName, 'utf-16'>;

interface Encoding {
  readonly name: ExactName;
  /** Whether characters take one or several bytes, and a byte by itself may not show where a character ends. */
  readonly isMultibyte?: boolean;
  /** Decodes bytes. Throws if they are not text in the encoding. */
  decode(bytes: Uint8Array): string;
  /** Returns the length of the longest beginning that is sure to consist of whole characters. */
  wholeLength(bytes: Uint8Array): number;
}

class NotDecodable extends Error {}

const all = (bytes: Uint8Array): number => bytes.length;

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

/** The characters of Windows-1252 from 0x80 to 0x9f. Five are not assigned. */
const windowsCharacters = '€\0‚ƒ„…†‡ˆ‰Š‹Œ\0Ž\0\0‘’“”•–—˜™š›œ\0žŸ';

function windows1252(bytes: Uint8Array): string {
  return latin1(bytes).replace(/[\u0080-\u009f]/g, (control) => {
    const character = windowsCharacters[control.charCodeAt(0) - 0x80];
    if (character === '\0' || character === undefined) throw new NotDecodable();
    return character;
  });
}

/** `wholeLength` of UTF-8. */
function wholeUtf8(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if (byte < 0x80) break;
    if (byte < 0xc0) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return length > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** `wholeLength` of UTF-16, which may end within a unit, or between the units of a surrogate pair. */
function wholeUtf16(bytes: Uint8Array, high: 0 | 1): number {
  const even = bytes.length - (bytes.length % 2);
  const last = even === 0 ? 0 : (bytes[even - 2 + high] as number);
  return last >= 0xd8 && last <= 0xdb ? even - 2 : even;
}

/** `wholeLength` of the East Asian encodings. In none of them is a byte below 0x30, such as a space, part of a longer character. */
function wholeMultibyte(bytes: Uint8Array): number {
  for (let at = bytes.length - 1; at >= 0; at--) if ((bytes[at] as number) < 0x30) return at + 1;
  return 0;
}

/** Characters that some runtimes return for bytes that are not characters in these encodings. */
const noCharacter = /[\u0080-\u009f\uf8f5]/;

function platformDecoder(name: ExactName): (bytes: Uint8Array) => string {
  let decoder: InstanceType<typeof TextDecoder>;
  try {
    decoder = new TextDecoder(name, { fatal: true, ignoreBOM: true });
  } catch {
    throw new UsageError(
      `This Node.js was built without the encoding ${name}. Convert the file first: iconv -f ${name} -t utf-8`,
    );
  }
  return (bytes) => decoder.decode(bytes);
}

function multibyte(name: ExactName): Encoding {
  const decode = platformDecoder(name);
  return {
    name,
    isMultibyte: true,
    decode: (bytes) => {
      const text = decode(bytes);
      if (noCharacter.test(text)) throw new NotDecodable();
      return text;
    },
    wholeLength: wholeMultibyte,
  };
}

/** Returns an encoding by its name. Throws `UsageError` if the runtime lacks it. */
function encodingOf(name: EncodingName): Encoding {
  switch (name) {
    case 'utf-8':
      return { name, decode: platformDecoder(name), wholeLength: wholeUtf8 };
    case 'utf-16':
    case 'utf-16le':
      return { name: 'utf-16le', decode: platformDecoder('utf-16le'), wholeLength: (bytes) => wholeUtf16(bytes, 1) };
    case 'utf-16be':
      return { name, decode: platformDecoder(name), wholeLength: (bytes) => wholeUtf16(bytes, 0) };
    case 'iso-8859-1':
      return { name, decode: latin1, wholeLength: all };
    case 'windows-1252':
      return { name, decode: windows1252, wholeLength: all };
    default:
      return multibyte(name);
  }
}

/** Reads the byte order mark of a file: the encoding that it names, and its length. */
function byteOrderMark(bytes: Uint8Array): { readonly name: ExactName; readonly length: number } | undefined {
  const [first, second, third] = bytes;
  if (first === 0xef && second === 0xbb && third === 0xbf) return { name: 'utf-8', length: 3 };
  if (first === 0xff && second === 0xfe) return { name: 'utf-16le', length: 2 };
  return first === 0xfe && second === 0xff ? { name: 'utf-16be', length: 2 } : undefined;
}

/** Detects UTF-16 without a mark: one of the two bytes of the first characters is zero. */
function utf16Without(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  const [a, b, c, d] = bytes;
  if (a !== 0 && b === 0 && c !== 0 && d === 0) return 'utf-16le';
  return a === 0 && b !== 0 && c === 0 && d !== 0 ? 'utf-16be' : undefined;
}

/** Returns the share of bytes from 0x80 on that stand alone, as most accented letters in Western European text do. */
function isolatedShare(bytes: Uint8Array): number {
  let runs = 0;
  let single = 0;
  for (let at = 0; at < bytes.length; ) {
    const begin = at;
    while (at < bytes.length && (bytes[at] as number) >= 0x80) at++;
    if (at > begin) runs++;
    if (at === begin + 1) single++;
    if (at === begin) at++;
  }
  return runs === 0 ? 0 : single / runs;
}

function decodes(name: EncodingName, bytes: Uint8Array): string | undefined {
  try {
    return encodingOf(name).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Guesses the encoding of bytes; undefined if none fits. */
function fittingEncoding(bytes: Uint8Array): { readonly name: EncodingName; readonly text: string } | undefined {
  const kana = /[\u3041-\u30ff]/;
  for (const name of ['utf-8', 'euc-jp', 'shift_jis'] as const) {
    const text = decodes(name, bytes);
    if (text !== undefined && (name === 'utf-8' || kana.test(text))) return { name, text };
  }
  const order =
    isolatedShare(bytes) >= 0.5 ? (['windows-1252', 'iso-8859-1'] as const) : (['gbk', 'windows-1252'] as const);
  for (const name of order) {
    const text = decodes(name, bytes);
    if (text !== undefined) return { name, text };
  }
  return undefined;
}

/** Returns further encodings that fit, if only a reader of the text can decide. */
function alternativeEncodings(name: EncodingName, bytes: Uint8Array): EncodingName[] {
  if (name !== 'gbk') return [];
  return (['shift_jis', 'euc-jp'] as const).filter((other) => decodes(other, bytes) !== undefined);
}

/** Decodes bytes with U+FFFD in place of bad ones. Keeps every ASCII character. Not for UTF-16. */
function decodeLeniently(bytes: Uint8Array, encoding: Encoding): string {
  const { name } = encoding;
  try {
    return encoding.decode(bytes);
  } catch {
    if (name === 'windows-1252') return latin1(bytes).replace(/[\u0080-\u009f]/g, '\ufffd');
    return new TextDecoder(name, { ignoreBOM: true }).decode(bytes).replace(new RegExp(noCharacter, 'g'), '\ufffd');
  }
}

/** The length of the text around a bad byte that messages show. */
const shownLength = 40;

function countLineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** Returns the number of bytes before the first that cannot be decoded. */
function goodLength(bytes: Uint8Array, encoding: Encoding): number {
  const { name } = encoding;
  const decode = (part: Uint8Array): string => encoding.decode(part);
  if (name === 'windows-1252') {
    // Each byte is a character.
    return bytes.findIndex((_, at) => !canDecode(decode, bytes.subarray(at, at + 1)));
  }
  const decoder = new TextDecoder(name, { fatal: true, ignoreBOM: true });
  let good = 0;
  for (let at = 0; at < bytes.length; at++) {
    try {
      if (decoder.decode(bytes.subarray(at, at + 1), { stream: true }) !== '') {
        // The runtime may decode bytes that are not characters.
        if (!canDecode(decode, bytes.subarray(good, at + 1))) return good;
        good = at + 1;
      }
    } catch {
      return good;
    }
  }
  return good;
}

function canDecode(decode: Encoding['decode'], bytes: Uint8Array): boolean {
  try {
    decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function hex(byte: number | undefined): string {
  return `0x${(byte ?? 0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/** Returns the error for bytes that are not text. `before`: the length of the line's text that was decoded already. */
function undecodable(bytes: Uint8Array, encoding: Encoding, lines: number, before: number): LineError {
  const good = goodLength(bytes, encoding);
  const text = encoding.decode(bytes.subarray(0, good));
  const lineBegin = text.lastIndexOf('\n') + 1;
  const column = text.length - lineBegin + (lineBegin === 0 ? before : 0) + 1;
  const line = lines + countLineFeeds(text) + 1;
  const problem =
    good + 1 >= bytes.length && encoding.name !== 'windows-1252'
      ? `the file ends within a character of ${encoding.name} (byte ${hex(bytes[good])})`
      : `byte ${hex(bytes[good])} is not ${encoding.name}`;
  const lineEnd = bytes.indexOf(0x0a, good);
  const rest = bytes.subarray(good, lineEnd === -1 ? bytes.length : lineEnd);
  const fitting = fittingEncoding(bytes) ?? fittingEncoding(rest);
  if (fitting === undefined) return new LineError(line, problem, column);
  const { name } = fitting;
  const begin = text.slice(lineBegin).slice(-shownLength / 2);
  const names = [name, ...alternativeEncodings(name, rest)];
  const shown = names.map((each) => {
    const end = encodingOf(each)
      .decode(rest)
      .slice(0, shownLength / 2);
    return `in ${each} it reads ${JSON.stringify(`${begin}${end}`.replaceAll('\r', ''))}`;
  });
  return new LineError(line, `${problem}; ${shown.join(', ')}: pass --encoding ${names.join(' or ')}`, column);
}

function startOf(head: Uint8Array, asked: EncodingName | undefined): { encoding: Encoding; skipped: number } {
  const mark = byteOrderMark(head);
  if (asked === undefined && mark === undefined) {
    const order = utf16Without(head);
    if (order !== undefined) throw new LineError(1, `it looks like UTF-16 without a mark: pass --encoding ${order}`, 1);
  }
  const name = asked === undefined || (asked === 'utf-16' && mark?.name !== 'utf-8') ? mark?.name : undefined;
  const encoding = encodingOf(name ?? asked ?? 'utf-8');
  return { encoding, skipped: mark?.name === encoding.name ? mark.length : 0 };
}

/** The lines with bad bytes, in order, for a reader that leaves out the rows of these lines. */
export class BadLines {
  #lines: LineError[] = [];
  #first: LineError | undefined;
  /** Whether the reader of the text counts lines differently: then every row with U+FFFD after the first bad byte counts as bad. */
  areCountedOtherwise = false;

  add(problem: LineError): void {
    this.#first ??= problem;
    if (this.#lines.at(-1)?.line !== problem.line) this.#lines.push(problem);
  }

  /** Returns the first problem in lines `from` to `to`, and forgets the lines before `from`. */
  within(from: number, to: number): LineError | undefined {
    if (this.areCountedOtherwise) return this.#first;
    if (this.#lines.length === 0) return undefined;
    const at = this.#lines.findIndex(({ line }) => line >= from);
    this.#lines = at === -1 ? [] : this.#lines.slice(at);
    const [first] = this.#lines;
    return first !== undefined && first.line <= to ? first : undefined;
  }
}

/** Decodes line by line, with U+FFFD in place of bad bytes. `first`: the number of the line in which the bytes begin. */
function decodeLines(bytes: Uint8Array, encoding: Encoding, first: number, before: number, badLines: BadLines): string {
  let text = '';
  let line = first;
  for (let at = 0; at < bytes.length; line++) {
    const found = bytes.indexOf(0x0a, at);
    const end = found === -1 ? bytes.length : found + 1;
    const part = bytes.subarray(at, end);
    const isGood = canDecode((each) => encoding.decode(each), part);
    if (!isGood) badLines.add(undecodable(part, encoding, line - 1, at === 0 ? before : 0));
    text += isGood ? encoding.decode(part) : decodeLeniently(part, encoding);
    at = end;
  }
  return text;
}

/**
 * Decodes a stream of bytes, without its byte order mark. `asked`: the encoding; default: by the mark, else UTF-8. Throws `LineError` at
 * the first bad bytes; with `badLines`, except in UTF-16, it adds their lines there and replaces them by U+FFFD. `maxBytes`: the maximum
 * number of bytes to hold until a character is sure to end.
 */
export async function* textPieces(
  chunks: AsyncIterable<Uint8Array>,
  asked: EncodingName | undefined,
  maxBytes: number,
  badLines?: BadLines,
): AsyncGenerator<string, void, undefined> {
  let encoding: Encoding | undefined;
  let held: Uint8Array[] = [];
  let heldBytes = 0;
  let lines = 0;
  // UTF-16 units after the last line feed.
  let column = 0;
  const take = (bytes: Uint8Array, decoder: Encoding): string => {
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      if (badLines === undefined || decoder.name.startsWith('utf-16')) throw undecodable(bytes, decoder, lines, column);
      text = decodeLines(bytes, decoder, lines + 1, column, badLines);
    }
    const last = text.lastIndexOf('\n');
    column = last === -1 ? column + text.length : text.length - last - 1;
    if (last !== -1) lines += countLineFeeds(text);
    return text;
  };
  for await (const chunk of chunks) {
    held.push(chunk);
    heldBytes += chunk.length;
    if (encoding === undefined && heldBytes < 4) continue;
    if (heldBytes > maxBytes) throw new LineError(lines + 1, `it is longer than ${Math.floor(maxBytes / 1048576)} MiB`);
    // Chunks without a safe end are only concatenated once there is one.
    if (encoding?.isMultibyte === true && encoding.wholeLength(chunk) === 0) continue;
    let bytes = held.length === 1 ? chunk : Buffer.concat(held);
    if (encoding === undefined) {
      const start = startOf(bytes, asked);
      ({ encoding } = start);
      bytes = bytes.subarray(start.skipped);
    }
    const length = encoding.wholeLength(bytes);
    held = length === bytes.length ? [] : [bytes.subarray(length)];
    heldBytes = bytes.length - length;
    if (length > 0) yield take(bytes.subarray(0, length), encoding);
  }
  if (heldBytes === 0) return;
  let bytes: Uint8Array = Buffer.concat(held);
  if (encoding === undefined) {
    const start = startOf(bytes, asked);
    ({ encoding } = start);
    bytes = bytes.subarray(start.skipped);
  }
  if (bytes.length > 0) yield take(bytes, encoding);
}
