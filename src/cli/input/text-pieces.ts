/** Bytes of a file as text, in pieces. */
import {
  byteOrderMark,
  decodeLeniently,
  encodingOf,
  encodingsBeside,
  fittingEncoding,
  utf16Without,
} from './encodings.ts';
import type { Encoding, EncodingName } from './encodings.ts';
import { LineError } from './line-error.ts';

/** Text around the first byte that is none, as people are shown it. */
const shownLength = 40;

function countLineFeeds(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
}

/** How many of the bytes can be decoded before the first that cannot. */
function goodLength(bytes: Uint8Array, encoding: Encoding): number {
  const { name } = encoding;
  const decode = (part: Uint8Array): string => encoding.decode(part);
  if (name === 'windows-1252') {
    // Each byte by itself.
    return bytes.findIndex((_, at) => !canDecode(decode, bytes.subarray(at, at + 1)));
  }
  const decoder = new TextDecoder(name, { fatal: true, ignoreBOM: true });
  let good = 0;
  for (let at = 0; at < bytes.length; at++) {
    try {
      if (decoder.decode(bytes.subarray(at, at + 1), { stream: true }) !== '') {
        // What this runtime decodes may still be no character.
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

/** The error for bytes that are not text. `before`: the text of the line that was decoded already. */
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
  const names = [name, ...encodingsBeside(name, rest)];
  const shown = names.map((each) => {
    const end = encodingOf(each)
      .decode(rest)
      .slice(0, shownLength / 2);
    return `in ${each} it reads ${JSON.stringify(`${begin}${end}`.replaceAll('\r', ''))}`;
  });
  return new LineError(line, `${problem}; ${shown.join(', ')}: say --encoding ${names.join(' or ')}`, column);
}

function startOf(head: Uint8Array, asked: EncodingName | undefined): { encoding: Encoding; skipped: number } {
  const mark = byteOrderMark(head);
  if (asked === undefined && mark === undefined) {
    const order = utf16Without(head);
    if (order !== undefined) throw new LineError(1, `it looks like UTF-16 without a mark: say --encoding ${order}`, 1);
  }
  const name = asked === undefined || (asked === 'utf-16' && mark?.name !== 'utf-8') ? mark?.name : undefined;
  const encoding = encodingOf(name ?? asked ?? 'utf-8');
  return { encoding, skipped: mark?.name === encoding.name ? mark.length : 0 };
}

/** Lines with bytes that are not text, as they come, for a reader that leaves the rows of these out. */
export class BadLines {
  #lines: LineError[] = [];
  #first: LineError | undefined;
  /** Whether lines are counted otherwise by who reads the text: then every row with U+FFFD is taken for a bad one. */
  areCountedOtherwise = false;

  add(problem: LineError): void {
    this.#first ??= problem;
    if (this.#lines.at(-1)?.line !== problem.line) this.#lines.push(problem);
  }

  /** The first problem in lines `from` to `to`. Those before `from` are forgotten. */
  within(from: number, to: number): LineError | undefined {
    if (this.areCountedOtherwise) return this.#first;
    if (this.#lines.length === 0) return undefined;
    const at = this.#lines.findIndex(({ line }) => line >= from);
    this.#lines = at === -1 ? [] : this.#lines.slice(at);
    const [first] = this.#lines;
    return first !== undefined && first.line <= to ? first : undefined;
  }
}

/** Decodes line by line, with U+FFFD for what is not text. `first`: the line that the bytes begin in. */
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
 * Decodes a stream of bytes; a byte order mark is left out. Without `asked` the mark says the encoding, and UTF-8 is meant where
 * there is none. Throws `LineError` at the first bytes that are not text in the encoding; with `badLines` it names their lines
 * there, and U+FFFD stands for them, but not in UTF-16. `maxBytes`: how much of it is held where no character is sure to end.
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
    // A text without a safe end is put together once, when there is one.
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
