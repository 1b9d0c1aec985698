/**
 * The files of a `FileDriver`: the object's bytes, then a trailer of 25 ASCII bytes with the kind of the file and the ETag of its
 * write. The ETag is random and inside the file, so two writes never share one (unlike inode numbers and times, which are
 * reused), and it survives copies and backups.
 *
 *     <bytes of the object> \n sdb1 <kind> <16 hexadecimal digits> \n
 */
import { isBytes } from '../../base/brands.ts';
import { readLatin1 } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import type { PutBody } from '../contract/driver.ts';
import { checkWholeBytes, readBody } from '../contract/requests.ts';
import { TEMPORARY_MARK } from './file-names.ts';
import type { FileStatus, FileSystem, ReadableFile, FileWork, WritableFile } from './file-system.ts';
import type { Durability, Folders } from './folders.ts';

/**
 * `object`; `deleted`: a version that means that there is no object; `moved`: the mark of a plain file whose object has versions.
 */
type StoredKind = 'object' | 'deleted' | 'moved';

/** Size of the trailer in bytes. */
export const TRAILER_BYTES = 25;

const LETTERS: Readonly<Record<StoredKind, string>> = { object: 'o', deleted: 'd', moved: 'm' };
const KINDS: Readonly<Record<string, StoredKind>> = { o: 'object', d: 'deleted', m: 'moved' };
const TRAILER = /^\nsdb1 ([odm]) ([0-9a-f]{16})\n$/;

function encodeTrailer(kind: StoredKind, etag: string): Uint8Array {
  return Buffer.from(`\nsdb1 ${LETTERS[kind]} ${etag}\n`, 'latin1');
}

/** A file opened for reading. The caller must close it. */
export class StoredFile {
  readonly kind: StoredKind;
  readonly etag: string;
  /** Size of the object, without the trailer. */
  readonly sizeBytes: number;
  readonly lastModifiedMs: number;
  /** More than one while the write of this file may be unfinished or not durable. */
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

  /** Opens the file; undefined if there is none. With `whole`, reads all of it at once. */
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

  /** Reads bytes `start` to `end` of the object. */
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
  // Allocates without clearing, because every byte is overwritten below.
  const buffer = Buffer.allocUnsafeSlow(end - start);
  const bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
  if ((await file.read(bytes, start)) !== bytes.length) throw damaged(key, path);
  return bytes;
}

/** Makes the error for a file that is not the result of a finished write. */
export function damaged(key: string, path: string): StorageError {
  return new StorageError(
    key,
    'none',
    `The file ${path} is damaged or was not written by this driver. Restore it from a backup, or move it away.`,
  );
}

/** The progress of a write, for the error that it may end with. */
export interface Attempt {
  /** Aborts the write, as long as it is not visible to others. */
  readonly signal?: AbortSignal | undefined;
  /** Whether the write may be visible to others. */
  mayBeVisible: boolean;
}

/** Age from which temporary files are swept, so that slow writers seldom lose theirs. */
const SWEEP_AGE_MS = 60 * 60 * 1000;
/** Bodies up to this size are written together with their trailer: for larger ones, copying takes longer than a second write. */
const JOINED_BYTES = 4 * 1024;
/** Chunks of a stream are combined to writes of this size. */
const WRITE_BYTES = 256 * 1024;
const SWEPT_PREFIX = `${TEMPORARY_MARK}swept-`;

/** A complete, synced file without a final name. */
export interface TemporaryFile {
  readonly path: string;
  readonly etag: string;
}

/** The content of a temporary file. */
export interface Content extends FileWork {
  readonly kind: StoredKind;
  readonly key: string;
  readonly body: PutBody;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The files that are being written. A write puts its bytes into a file `#<random>` in the folder of the object, syncs it, and
 * gives it its final name by `link` (which fails if the name is taken) before it removes the temporary name. Files that a killed
 * process left behind are swept once they are old. That is safe with any clocks, and however long a writer was paused: without
 * its temporary file a writer's link fails, so it knows that it has written nothing.
 */
export class TemporaryFiles {
  readonly #system: FileSystem;
  readonly #environment: Environment;
  readonly #folders: Folders;
  readonly #durability: Durability;

  constructor(system: FileSystem, environment: Environment, folders: Folders, durability: Durability) {
    this.#system = system;
    this.#environment = environment;
    this.#folders = folders;
    this.#durability = durability;
  }

  /** Returns a unique path for a temporary file in this folder. */
  newPath(folder: string): string {
    return `${folder}${TEMPORARY_MARK}${newId(this.#environment, 12)}`;
  }

  /** Writes a temporary file into a folder (a path that ends with a slash), and creates the folder if needed. */
  async write(folder: string, content: Content): Promise<TemporaryFile> {
    const path = this.newPath(folder);
    const etag = newId(this.#environment, 8);
    let file: WritableFile | undefined;
    for (let attempt = 0; file === undefined; attempt++) {
      await this.#folders.ensure(folder.slice(0, -1));
      file = await this.#system.create(path, content);
      if (file !== undefined) break;
      // Another program has removed the folder since this process saw it.
      this.#folders.forget();
      if (attempt >= 3)
        throw new StorageError(
          content.key,
          'none',
          `The folder ${folder} is being removed, or a symbolic link that leads nowhere.`,
        );
    }
    const written = file;
    return this.#finish(path, file, etag, () =>
      this.#writeContent(written, content, encodeTrailer(content.kind, etag)),
    );
  }

  /** Makes a temporary file with the bytes of an object's file; undefined if that file is gone. It must hold an object. */
  async copy(folder: string, objectPath: string): Promise<TemporaryFile | undefined> {
    const path = this.newPath(folder);
    const etag = newId(this.#environment, 8);
    await this.#folders.ensure(folder.slice(0, -1));
    const file = await this.#system.copy(objectPath, path, TRAILER_BYTES);
    if (file === undefined) return undefined;
    return this.#finish(path, file, etag, () => file.write(encodeTrailer('object', etag)));
  }

  async #finish(path: string, file: WritableFile, etag: string, write: () => Promise<void>): Promise<TemporaryFile> {
    try {
      await write();
      if (this.#durability === 'fsync') await file.sync();
      await file.close();
    } catch (error) {
      await file.close().catch(() => undefined);
      await this.discard(path);
      throw error;
    }
    return { path, etag };
  }

  async #writeContent(file: WritableFile, content: Content, trailer: Uint8Array): Promise<void> {
    const { body, key, signal } = content;
    if (isBytes(body)) {
      if (body.length > JOINED_BYTES) {
        await file.write(body);
        await file.write(trailer);
      } else {
        await file.write(Buffer.concat([body, trailer]));
      }
      return;
    }
    // One buffer is reused for all writes, so that a stream leaves no garbage.
    const buffer = Buffer.allocUnsafeSlow(WRITE_BYTES);
    let filled = 0;
    for await (const chunk of readBody(key, body, signal)) {
      for (let at = 0; at < chunk.length; ) {
        const taken = Math.min(chunk.length - at, WRITE_BYTES - filled);
        // Copies the bytes, because the stream may reuse its memory.
        buffer.set(chunk.subarray(at, at + taken), filled);
        at += taken;
        filled += taken;
        if (filled < WRITE_BYTES) continue;
        await file.write(buffer);
        filled = 0;
      }
    }
    await file.write(Buffer.concat([buffer.subarray(0, filled), trailer]));
  }

  /** Removes a temporary file. Ignores failures: the file will be swept. */
  async discard(path: string, work?: FileWork): Promise<void> {
    await this.#system.remove(path, work).catch(() => false);
  }

  /** Removes the old temporary files in a folder. */
  async sweep(folder: string, names: readonly string[]): Promise<void> {
    try {
      for (const name of names) await this.#sweepOne(folder, name);
    } catch {
      // This process may only have read access to the folder: another process sweeps it.
    }
  }

  async #sweepOne(folder: string, name: string): Promise<void> {
    const status = await this.#system.status(folder + name);
    if (status === undefined || this.#environment.now() - status.lastModifiedMs < SWEEP_AGE_MS) return;
    // A second name is the final name. The temporary name stays then, as the sign that the write may not be durable.
    if (status.linkCount > 1) return;
    if (name.startsWith(SWEPT_PREFIX)) {
      await this.#system.remove(folder + name);
      return;
    }
    // Renames the file first: then its writer can no longer link it, and a link that it made before shows in the link count.
    const swept = `${folder}${SWEPT_PREFIX}${name.slice(1)}`;
    if (!(await this.#system.rename(folder + name, swept))) return;
    const now = await this.#system.status(swept);
    if (now?.linkCount === 1) await this.#system.remove(swept);
  }
}
