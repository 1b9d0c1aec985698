/**
 * Character encodings of files. Each decodes whole characters and refuses every byte that is none: nothing becomes U+FFFD. The
 * single-byte ones are decoded here, since runtimes differ in them, and the standard takes the name of ISO 8859-1 for
 * Windows-1252.
 */
import { UsageError } from '../terminal/exit-code.ts';

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
/** One that says in which order its bytes are. */
type ExactName = Exclude<EncodingName, 'utf-16'>;

export interface Encoding {
  readonly name: ExactName;
  /** Whether a character takes one byte or several, and not every byte says which. */
  readonly isMultibyte?: boolean;
  /** Throws for bytes that are not text in the encoding. */
  decode(bytes: Uint8Array): string;
  /** How many of the first bytes are sure to be whole characters. */
  wholeLength(bytes: Uint8Array): number;
}

class NotDecodable extends Error {}

const all = (bytes: Uint8Array): number => bytes.length;

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}

/** What Windows-1252 has in the place of the controls from 0x80 on. Five are not assigned. */
const windowsCharacters = '€\0‚ƒ„…†‡ˆ‰Š‹Œ\0Ž\0\0‘’“”•–—˜™š›œ\0žŸ';

function windows1252(bytes: Uint8Array): string {
  return latin1(bytes).replace(/[\u0080-\u009f]/g, (control) => {
    const character = windowsCharacters[control.charCodeAt(0) - 0x80];
    if (character === '\0' || character === undefined) throw new NotDecodable();
    return character;
  });
}

/** UTF-8 in which the last character may not be whole yet. */
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

/** UTF-16 may end within a unit, or between the two of a pair. */
function wholeUtf16(bytes: Uint8Array, high: 0 | 1): number {
  const even = bytes.length - (bytes.length % 2);
  const last = even === 0 ? 0 : (bytes[even - 2 + high] as number);
  return last >= 0xd8 && last <= 0xdb ? even - 2 : even;
}

/** In no multi-byte encoding of East Asia is a byte below 0x30 a part of another character: a space, a comma, a line feed. */
function wholeMultibyte(bytes: Uint8Array): number {
  for (let at = bytes.length - 1; at >= 0; at--) if ((bytes[at] as number) < 0x30) return at + 1;
  return 0;
}

/** What some runtimes make of single bytes that are nothing in these encodings. */
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

/** Throws `UsageError` where the runtime does not have it. */
export function encodingOf(name: EncodingName): Encoding {
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

/** The encoding that the first bytes of a file name, and how long that mark is. */
export function byteOrderMark(bytes: Uint8Array): { readonly name: ExactName; readonly length: number } | undefined {
  const [first, second, third] = bytes;
  if (first === 0xef && second === 0xbb && third === 0xbf) return { name: 'utf-8', length: 3 };
  if (first === 0xff && second === 0xfe) return { name: 'utf-16le', length: 2 };
  return first === 0xfe && second === 0xff ? { name: 'utf-16be', length: 2 } : undefined;
}

/** The order of UTF-16 without a mark: in text, the first characters have a zero for one of their two bytes. */
export function utf16Without(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  const [a, b, c, d] = bytes;
  if (a !== 0 && b === 0 && c !== 0 && d === 0) return 'utf-16le';
  return a === 0 && b !== 0 && c === 0 && d !== 0 ? 'utf-16be' : undefined;
}

/** Bytes of 0x80 and above that stand alone, as those of the letters of Western Europe mostly do. */
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

/** The encoding that bytes are likely to be in; undefined where none of the others fits. */
export function fittingEncoding(bytes: Uint8Array): { readonly name: EncodingName; readonly text: string } | undefined {
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

/** Encodings that bytes may be in as well, where nothing but the text tells: whoever sees it knows. */
export function encodingsBeside(name: EncodingName, bytes: Uint8Array): EncodingName[] {
  if (name !== 'gbk') return [];
  return (['shift_jis', 'euc-jp'] as const).filter((other) => decodes(other, bytes) !== undefined);
}

/** Text in which U+FFFD stands for bytes that are none; every ASCII character stays. Not for UTF-16. */
export function decodeLeniently(bytes: Uint8Array, encoding: Encoding): string {
  const { name } = encoding;
  try {
    return encoding.decode(bytes);
  } catch {
    if (name === 'windows-1252') return latin1(bytes).replace(/[\u0080-\u009f]/g, '\ufffd');
    return new TextDecoder(name, { ignoreBOM: true }).decode(bytes).replace(new RegExp(noCharacter, 'g'), '\ufffd');
  }
}
