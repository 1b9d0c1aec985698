/**
 * One file of a `FileDriver`: the object's bytes, then a trailer of 25 ASCII bytes that says what the file is and
 * which write made it. The ETag is random and inside the file, so it is never that of another write (unlike inode
 * numbers and times, which are used again), and it survives copies and backups.
 *
 *     <bytes of the object> \n sdb1 <kind> <16 hexadecimal digits> \n
 */
import { StorageError } from '../../base/errors.ts';
import { readLatin1 } from '../../base/text.ts';
import { checkWholeBytes } from '../contract/requests.ts';
import type { FileStatus, FileSystem, ReadableFile } from './file-system.ts';

/** `object`; `deleted`: a version that says there is no object; `moved`: see the folder with the versions. */
export type StoredKind = 'object' | 'deleted' | 'moved';

/** Bytes that every file has after the object's own. */
export const TRAILER_BYTES = 25;

const LETTERS: Readonly<Record<StoredKind, string>> = { object: 'o', deleted: 'd', moved: 'm' };
const KINDS: Readonly<Record<string, StoredKind>> = { o: 'object', d: 'deleted', m: 'moved' };
const TRAILER = /^\nsdb1 ([odm]) ([0-9a-f]{16})\n$/;

export function encodeTrailer(kind: StoredKind, etag: string): Uint8Array {
  return Buffer.from(`\nsdb1 ${LETTERS[kind]} ${etag}\n`, 'latin1');
}

/** A file opened for reading. Whoever opened it closes it. */
export class StoredFile {
  readonly kind: StoredKind;
  readonly etag: string;
  /** Size of the object, without the trailer. */
  readonly sizeBytes: number;
  readonly lastModifiedMs: number;
  /** More than one as long as a write under this name is not known to be finished and durable. */
  readonly linkCount: number;
  readonly #key: string;
  readonly #file: ReadableFile;
  readonly #whole: Uint8Array | undefined;

  private constructor(
    key: string,
    file: ReadableFile,
    status: FileStatus,
    trailer: { readonly kind: StoredKind; readonly etag: string },
    whole: Uint8Array | undefined,
  ) {
    this.#key = key;
    this.#file = file;
    this.kind = trailer.kind;
    this.etag = trailer.etag;
    this.sizeBytes = status.sizeBytes - TRAILER_BYTES;
    this.lastModifiedMs = status.lastModifiedMs;
    this.linkCount = status.linkCount;
    this.#whole = whole;
  }

  /** Opens the file; undefined if there is none. With `whole`, all of it is read at once. */
  static async open(system: FileSystem, path: string, key: string, whole: boolean): Promise<StoredFile | undefined> {
    const file = await system.open(path);
    if (file === undefined) return undefined;
    try {
      const status = await file.status();
      if (whole) checkWholeBytes(key, status.sizeBytes - TRAILER_BYTES);
      const from = whole ? 0 : Math.max(0, status.sizeBytes - TRAILER_BYTES);
      const bytes = await readExactly(file, key, path, from, status.sizeBytes);
      const match = TRAILER.exec(readLatin1(bytes, Math.max(0, bytes.length - TRAILER_BYTES), bytes.length));
      if (match === null) throw damaged(key, path);
      const trailer = { kind: KINDS[match[1] as string] as StoredKind, etag: match[2] as string };
      const content = whole ? bytes.subarray(0, bytes.length - TRAILER_BYTES) : undefined;
      return new StoredFile(key, file, status, trailer, content);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Bytes `start` to `end` of the object. */
  async read(start: number, end: number): Promise<Uint8Array> {
    if (this.#whole !== undefined) return this.#whole.subarray(start, end);
    return await readExactly(this.#file, this.#key, this.#key, start, end);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

async function readExactly(
  file: ReadableFile,
  key: string,
  path: string,
  start: number,
  end: number,
): Promise<Uint8Array> {
  // Without the zeroes that a new array is filled with: every byte is overwritten below.
  const buffer = Buffer.allocUnsafeSlow(end - start);
  const bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
  if ((await file.read(bytes, start)) !== bytes.length) throw damaged(key, path);
  return bytes;
}

/** The error for a file that is not as a finished write left it. */
export function damaged(key: string, path: string): StorageError {
  return new StorageError(
    key,
    'none',
    `The file ${path} is damaged or was not written by this driver. Restore it from a backup, or move it away.`,
  );
}
