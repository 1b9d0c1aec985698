/**
 * Builds and parses all names in a `FileDriver`'s folder.
 *
 * A key is split at its slashes; each segment becomes a name. Names hold only `a-z 0-9 _ - .`; every other byte of the key's
 * UTF-8 is written `%xx`, capitals included, so that no file system that ignores case, normalises Unicode or reserves names can
 * take two keys for one. The last character shows the kind of an entry:
 *
 *     committed@/        the folder of the keys `committed/…`
 *     committed@/12      the object `committed/12`
 *     block0             the object `block0`, or its mark once the object was replaced
 *     block0+/           the versions of the object `block0`: `1`, `2`, …
 *     <80 bytes>=/       the rest of a segment of 80 bytes or more
 *     %                  an empty segment, as in `a//b` or `a/`
 *     #…                 a file that is being written
 *     !…                 a journal, or a file to which it refers
 *
 * In this file keys are *byte strings*: one character (U+0000 to U+00FF) per byte of UTF-8. Their order as strings is the order
 * of keys, and they can be cut anywhere.
 */

/** Bytes of a segment that one name holds: each takes at most three characters, and file systems allow 255. */
const PIECE_BYTES = 80;

const PLAIN = /^(?:[a-z0-9_-]|[a-z0-9_-][a-z0-9_.-]*[a-z0-9_-])$/;
/** Names of devices on Windows, with any text after the first dot. */
const RESERVED = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/;
const ESCAPED = /%([0-9a-f]{2})/g;
const EMPTY_PIECE = '%';

/** First character of the names of files that are being written. */
export const TEMPORARY_MARK = '#';
/** First character of the names of journals, and of the files that they refer to. */
export const JOURNAL_MARK = '!';
const NUMBERED = /^[0-9]{16}$/;
/** A file among the versions of an object, at which releases that do not know journals stop. It is no version. */
export const GUARD = '999999999999999';
/** Last character of a folder with the versions of one object. */
export const VERSIONS_MARK = '+';
const FOLDER_MARK = '@';
const CONTINUED_MARK = '=';

/** The place of an object: its folder, relative to the root (`''` or ending with a slash), and its name in the folder. */
export interface Place {
  readonly folder: string;
  readonly name: string;
}

/** The meaning of a name in a folder, and the bytes that it adds to the key. */
export interface ParsedName {
  readonly kind: 'object' | 'versions' | 'folder' | 'continued';
  readonly bytes: string;
}

/** Whether an object with this name in its folder is kept in the journal of the folder. */
export function isNumbered(name: string): boolean {
  return NUMBERED.test(name);
}

/** Returns the UTF-8 of a string, one character per byte. */
export function toByteString(text: string): string {
  for (let i = 0; i < text.length; i++) {
    if (text.charCodeAt(i) >= 0x80) return Buffer.from(text, 'utf8').toString('latin1');
  }
  return text;
}

/** Returns the string with this UTF-8; undefined if it is not well-formed. */
export function fromByteString(bytes: string): string | undefined {
  for (let i = 0; i < bytes.length; i++) {
    if (bytes.charCodeAt(i) < 0x80) continue;
    const text = Buffer.from(bytes, 'latin1').toString('utf8');
    return toByteString(text) === bytes ? text : undefined;
  }
  return bytes;
}

function escapeByte(byte: string): string {
  return `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`;
}

function encodePiece(piece: string): string {
  if (piece === '') return EMPTY_PIECE;
  let name = piece;
  if (!PLAIN.test(piece)) {
    name = '';
    for (let i = 0; i < piece.length; i++) {
      const byte = piece[i] as string;
      const isEnd = i === 0 || i === piece.length - 1;
      name += /[a-z0-9_-]/.test(byte) || (byte === '.' && !isEnd) ? byte : escapeByte(byte);
    }
  }
  return RESERVED.test(name) ? escapeByte(name) + name.slice(1) : name;
}

/** Decodes a piece; undefined for a name that {@link encodePiece} does not make: it is not the driver's. */
function decodePiece(name: string): string | undefined {
  if (PLAIN.test(name)) return RESERVED.test(name) ? undefined : name;
  if (name === EMPTY_PIECE) return '';
  const bytes = name.replace(ESCAPED, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return encodePiece(bytes) === name && bytes !== '' ? bytes : undefined;
}

/** Splits a segment into folders for its whole pieces and the rest, which is shorter than a piece. */
function splitSegment(segment: string): { readonly folders: string; readonly rest: string } {
  let folders = '';
  let rest = segment;
  for (; rest.length >= PIECE_BYTES; rest = rest.slice(PIECE_BYTES)) {
    folders += `${encodePiece(rest.slice(0, PIECE_BYTES))}${CONTINUED_MARK}/`;
  }
  return { folders, rest };
}

/** Returns the place of the object with this key. */
export function placeOf(key: string): Place {
  const segments = toByteString(key).split('/');
  let folder = '';
  for (let i = 0; i < segments.length - 1; i++) {
    const { folders, rest } = splitSegment(segments[i] as string);
    folder += `${folders}${encodePiece(rest)}${FOLDER_MARK}/`;
  }
  const { folders, rest } = splitSegment(segments.at(-1) as string);
  return { folder: folder + folders, name: encodePiece(rest) };
}

/** Returns the innermost folder that holds every key with this prefix, and the bytes that these keys share because of it. */
export function folderOfPrefix(prefix: string): { readonly folder: string; readonly bytes: string } {
  const bytes = toByteString(prefix);
  // The rest of the last segment, shorter than a piece, may be only the beginning of names.
  const { folder } = placeOf(prefix);
  const lastSegment = bytes.length - (bytes.lastIndexOf('/') + 1);
  return { folder, bytes: bytes.slice(0, bytes.length - (lastSegment % PIECE_BYTES)) };
}

/** Parses a name found in a folder; undefined for temporary files and for names that are not the driver's. */
export function parseName(name: string): ParsedName | undefined {
  const mark = name.at(-1);
  const stem = name.slice(0, -1);
  let kind: ParsedName['kind'] = 'object';
  if (mark === VERSIONS_MARK) kind = 'versions';
  else if (mark === FOLDER_MARK) kind = 'folder';
  else if (mark === CONTINUED_MARK) kind = 'continued';
  const piece = decodePiece(kind === 'object' ? name : stem);
  if (piece === undefined) return undefined;
  if (kind === 'continued') return piece.length === PIECE_BYTES ? { kind, bytes: piece } : undefined;
  if (piece.length >= PIECE_BYTES) return undefined;
  return { kind, bytes: kind === 'folder' ? `${piece}/` : piece };
}
