/**
 * A cache for blocks in a folder of a local disk, which any number of processes and databases may share, at once and one
 * after the other. Nothing here is ever relied upon: files are not synced, may be removed at any time, and are checked
 * whenever they are read. A file appears under its name whole, by `rename`; one that is torn or damaged all the same, by a
 * loss of power for instance, counts as missing and is removed.
 *
 * A file is a header (magic, length of the key, length of the block, CRC-32 of what follows), the key, and the block. Its
 * name is a hash of the key. What was used last is known by the files' times, so that processes agree on what goes first.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import { checksum, encodeUtf8 } from '../base/bytes.ts';
import { realEnvironment } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { newId } from '../base/ids.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { CacheDriver } from './contract/driver.ts';
import { errorCode } from './file/file-system.ts';

/** Options of `DiskCacheDriver`. */
export interface DiskCacheDriverOptions {
  /** The folder. It is made with the first block; relative paths are resolved when the driver is constructed. */
  readonly path: string;
  /**
   * What the files may take, in bytes, at least 1 MiB. Each process that shares the folder may go past it by an eighth for a
   * moment. Default 1 GiB.
   */
  readonly maxSizeBytes?: number;
  /** Clock and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

const mebibyte = 1024 * 1024;

const driverOptions = new OptionTable<DiskCacheDriverOptions>({
  path: kinds.required({ ...kinds.named, allowed: "the path of a folder, such as './cache'" }),
  maxSizeBytes: kinds.whole(mebibyte),
  environment: kinds.environment,
});

const magic = 0x31434453;
const headerBytes = 16;
/** A file that was used longer ago is marked as used again, in milliseconds: not with every use, which costs a write. */
const markAfterMs = 60_000;

/** Opening a pipe must not wait for somebody who writes into it. */
const openToRead = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

function encodeFile(key: string, block: Uint8Array): Uint8Array {
  const name = encodeUtf8(key);
  const bytes = new Uint8Array(headerBytes + name.length + block.length);
  bytes.set(name, headerBytes);
  bytes.set(block, headerBytes + name.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, magic, true);
  view.setUint32(4, name.length, true);
  view.setUint32(8, block.length, true);
  view.setUint32(12, checksum(bytes.subarray(headerBytes), checksum(bytes.subarray(0, 12))), true);
  return bytes;
}

/** The block in a file; undefined if the file is damaged, or of another key. */
function decodeFile(key: string, bytes: Uint8Array): Uint8Array | undefined {
  if (bytes.length < headerBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = headerBytes + view.getUint32(4, true);
  if (view.getUint32(0, true) !== magic || start + view.getUint32(8, true) !== bytes.length) return undefined;
  const sum = checksum(bytes.subarray(headerBytes), checksum(bytes.subarray(0, 12)));
  if (view.getUint32(12, true) !== sum) return undefined;
  if (Buffer.compare(bytes.subarray(headerBytes, start), encodeUtf8(key)) !== 0) return undefined;
  return bytes.subarray(start);
}

/** Keeps blocks as files in a folder, for the option `cacheDriver`. */
export class DiskCacheDriver implements CacheDriver {
  readonly #root: string;
  readonly #maxFileBytes: number;
  readonly #environment: Environment;
  readonly #sweep: FolderSweep;
  /** Folders that were made, or found. */
  readonly #folders = new Set<string>();

  /** Takes the path of a folder, or options. Nothing is touched yet. Throws `InvalidOptionError`. */
  constructor(options: string | DiskCacheDriverOptions) {
    const given = driverOptions.check(
      'new DiskCacheDriver()',
      typeof options === 'string' ? { path: options } : options,
    );
    const { maxSizeBytes = 1024 * mebibyte, environment = realEnvironment } = given;
    this.#root = path.resolve(given.path);
    this.#maxFileBytes = Math.floor(maxSizeBytes / 8);
    this.#environment = environment;
    this.#sweep = new FolderSweep(this.#root, maxSizeBytes, environment);
  }

  #place(key: string): { readonly folder: string; readonly file: string } {
    const hash = createHash('sha256').update(key).digest('hex').slice(0, 40);
    const folder = path.join(this.#root, hash.slice(0, 2));
    return { folder, file: path.join(folder, hash.slice(2)) };
  }

  /** The block held under a key; undefined if there is none, or only a damaged one. */
  async get(key: string): Promise<Uint8Array | undefined> {
    const { file } = this.#place(key);
    const bytes = await this.#read(file);
    if (bytes === undefined) return undefined;
    const block = decodeFile(key, bytes);
    if (block === undefined) await fs.rm(file, { force: true });
    return block;
  }

  async #read(file: string): Promise<Uint8Array | undefined> {
    let handle: fs.FileHandle;
    try {
      handle = await fs.open(file, openToRead);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return undefined;
      throw error;
    }
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) return undefined;
      const { size, mtimeMs } = stats;
      // Nobody who has as much room as this one wrote it: whatever it is, it is not read into memory.
      if (size > this.#maxFileBytes) return undefined;
      const bytes = new Uint8Array(size);
      const { bytesRead } = await handle.read(bytes, 0, size, 0);
      const now = this.#environment.now();
      if (Math.abs(now - mtimeMs) > markAfterMs) await handle.utimes(now / 1000, now / 1000).catch(() => undefined);
      return bytes.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  }

  /** Holds a block, unless it is larger than an eighth of what the folder may hold, or others must be removed first. */
  async set(key: string, block: Uint8Array): Promise<void> {
    const bytes = encodeFile(key, block);
    if (bytes.length > this.#maxFileBytes || !this.#sweep.hasRoom) return;
    const { folder, file } = this.#place(key);
    await this.#makeFolder(folder);
    const temporary = this.#sweep.temporaryFile(folder, newId(this.#environment, 12));
    try {
      await fs.writeFile(temporary, bytes, { flag: 'wx' });
      await fs.rename(temporary, file);
    } catch (error) {
      // If the folder was removed, the next block makes it anew.
      this.#folders.delete(folder);
      await fs.rm(temporary, { force: true }).catch(() => undefined);
      if (errorCode(error) !== 'ENOENT') throw error;
    }
    this.#sweep.noteWritten(bytes.length);
  }

  async #makeFolder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    await fs.mkdir(folder, { recursive: true });
    this.#folders.add(folder);
  }

  /** Removes the block held under a key, if there is one. */
  async delete(key: string): Promise<void> {
    await fs.rm(this.#place(key).file, { force: true });
  }

  /** Resolves once no old blocks are being removed. Nothing need be closed; this is for a caller that removes the folder. */
  idle(): Promise<void> {
    return this.#sweep.idle();
  }
}

// Keeps a folder of cached files within its bound, together with other processes that do the same: each counts what it
// writes, and looks at what is there now and then. Files that were not used for longest go first.

interface CachedFile {
  readonly file: string;
  readonly sizeBytes: number;
  readonly usedMs: number;
}

const temporaryMark = '#';
/** A file that is still being written after so long was left behind, in milliseconds. */
const abandonedMs = 60 * 60 * 1000;
/** Parts of the bound: what is left after a sweep, what may be written between two, and how far it may be passed. */
const keptShare = 0.9;
const writtenShare = 1 / 16;
const excessShare = 1 / 8;
/** Files that are looked at, or removed, at once. */
const together = 32;

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += together) await Promise.all(items.slice(at, at + together).map(work));
}

class FolderSweep {
  readonly #root: string;
  readonly #maxBytes: number;
  readonly #environment: Environment;
  /** Bytes in the folder when it was looked at last; undefined before that. */
  #foundBytes: number | undefined;
  #writtenBytes = 0;
  #running: Promise<void> | undefined;

  constructor(root: string, maxBytes: number, environment: Environment) {
    this.#root = root;
    this.#maxBytes = maxBytes;
    this.#environment = environment;
  }

  /** Whether another file may be written, or must wait until others are removed. */
  get hasRoom(): boolean {
    return (this.#foundBytes ?? 0) + this.#writtenBytes <= this.#maxBytes * (1 + excessShare);
  }

  /** The name of a file that is being written into a folder. */
  temporaryFile(folder: string, id: string): string {
    return path.join(folder, `${temporaryMark}${id}`);
  }

  /** A file was written. Looks at the folder if it is time to, which nobody waits for. */
  noteWritten(bytes: number): void {
    this.#writtenBytes += bytes;
    const isDue =
      this.#foundBytes === undefined ||
      this.#writtenBytes > this.#maxBytes * writtenShare ||
      this.#foundBytes + this.#writtenBytes > this.#maxBytes;
    if (!isDue || this.#running !== undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    const before = this.#writtenBytes;
    try {
      const files = await this.#list();
      let bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
      if (bytes > this.#maxBytes) {
        const target = this.#maxBytes * keptShare;
        const doomed: string[] = [];
        for (const { file, sizeBytes } of files.toSorted((a, b) => a.usedMs - b.usedMs)) {
          if (bytes <= target) break;
          doomed.push(file);
          bytes -= sizeBytes;
        }
        await eachOf(doomed, (file) => fs.rm(file, { force: true }));
      }
      this.#foundBytes = bytes;
      this.#writtenBytes -= before;
    } catch {
      // The next one will see; until then there is room for an eighth more.
      this.#foundBytes ??= 0;
    }
  }

  async #list(): Promise<CachedFile[]> {
    const found: CachedFile[] = [];
    const now = this.#environment.now();
    const look = async (file: string): Promise<void> => {
      // Others may have removed it.
      const status = await fs.stat(file).catch(() => undefined);
      if (status?.isFile() !== true) return;
      const isTemporary = path.basename(file).startsWith(temporaryMark);
      if (!isTemporary) found.push({ file, sizeBytes: status.size, usedMs: status.mtimeMs });
      else if (now - status.mtimeMs > abandonedMs) await fs.rm(file, { force: true });
    };
    for (const folder of await fs.readdir(this.#root)) {
      // Only what is the cache's own.
      if (!/^[0-9a-f]{2}$/.test(folder)) continue;
      const names = await fs.readdir(path.join(this.#root, folder)).catch(() => []);
      const own = names.filter((name) => name.startsWith(temporaryMark) || /^[0-9a-f]{38}$/.test(name));
      await eachOf(
        own.map((name) => path.join(this.#root, folder, name)),
        look,
      );
    }
    return found;
  }
}
