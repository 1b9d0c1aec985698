/**
 * A cache for blocks in a folder on a local disk. Any number of processes and databases may share it, at the same time or one
 * after the other. Correctness never depends on it: files are not synced, may be removed at any time, and are verified whenever
 * they are read. `rename` makes a whole file appear under its name; a file that is torn or damaged nevertheless, for instance by
 * a loss of power, counts as missing and is removed.
 *
 * A file is a header (magic, length of the key, length of the block, CRC-32 of all other bytes), the key, and the block. Its name
 * is a hash of the key. The modification time of a file is the time of its last use, so all processes evict in the same order.
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
  /** The folder. It is created with the first block; relative paths are resolved when the driver is constructed. */
  readonly path: string;
  /**
   * Limit of the size of all files, in bytes, at least 1 MiB. Each process that shares the folder may exceed it by an eighth for
   * a moment. Default 1 GiB.
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
/** A hit updates the time of a file only if it is older than this, in milliseconds, because an update costs a write. */
const markAfterMs = 60_000;

/** Opening a pipe must not wait for a writer. */
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

/** Returns the block in a file; undefined if the file is damaged, or has another key. */
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

/** Caches blocks as files in a folder, for the option `cacheDriver`. */
export class DiskCacheDriver implements CacheDriver {
  readonly #root: string;
  readonly #maxFileBytes: number;
  readonly #environment: Environment;
  readonly #sweep: FolderSweep;
  /** Folders that are known to exist. */
  readonly #folders = new Set<string>();

  /** Takes the path of a folder, or options. It does no I/O. Throws `InvalidOptionError`. */
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

  /** Returns the block stored under a key; undefined if there is none, or if it is damaged. */
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
      // No process with this limit wrote a file of this size: do not read it into memory.
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

  /** Stores a block, unless it is larger than an eighth of the limit, or others must be removed first. */
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
      // If the folder was removed, the next block creates it again.
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

  /** Removes the block stored under a key, if there is one. */
  async delete(key: string): Promise<void> {
    await fs.rm(this.#place(key).file, { force: true });
  }

  /** Waits until no old blocks are being removed. Call it before you remove the folder; the driver need not be closed. */
  idle(): Promise<void> {
    return this.#sweep.idle();
  }
}

interface CachedFile {
  readonly file: string;
  readonly sizeBytes: number;
  readonly usedMs: number;
}

const temporaryMark = '#';
/** Age from which a temporary file counts as abandoned, in milliseconds. */
const abandonedMs = 60 * 60 * 1000;
/** Parts of the limit: kept by a sweep, written between two sweeps, and by which the limit may be exceeded. */
const keptShare = 0.9;
const writtenShare = 1 / 16;
const excessShare = 1 / 8;
/** Files that are examined or removed at the same time. */
const together = 32;

async function eachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += together) await Promise.all(items.slice(at, at + together).map(work));
}

/**
 * Keeps a folder of cached files within its limit, together with other processes that do the same: each counts the bytes that it
 * writes, and measures the folder now and then. The least recently used files are removed first.
 */
class FolderSweep {
  readonly #root: string;
  readonly #maxBytes: number;
  readonly #environment: Environment;
  /** Bytes in the folder at the last sweep; undefined before the first. */
  #foundBytes: number | undefined;
  #writtenBytes = 0;
  #running: Promise<void> | undefined;

  constructor(root: string, maxBytes: number, environment: Environment) {
    this.#root = root;
    this.#maxBytes = maxBytes;
    this.#environment = environment;
  }

  /** Whether another file may be written before others are removed. */
  get hasRoom(): boolean {
    return (this.#foundBytes ?? 0) + this.#writtenBytes <= this.#maxBytes * (1 + excessShare);
  }

  /** Returns the path of a temporary file in a folder. */
  temporaryFile(folder: string, id: string): string {
    return path.join(folder, `${temporaryMark}${id}`);
  }

  /** Counts a written file. Starts a sweep if one is due, and does not wait for it. */
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
      // The next sweep tries again; until then the folder may grow by the excess share.
      this.#foundBytes ??= 0;
    }
  }

  async #list(): Promise<CachedFile[]> {
    const found: CachedFile[] = [];
    const now = this.#environment.now();
    const look = async (file: string): Promise<void> => {
      // Another process may have removed it.
      const status = await fs.stat(file).catch(() => undefined);
      if (status?.isFile() !== true) return;
      const isTemporary = path.basename(file).startsWith(temporaryMark);
      if (!isTemporary) found.push({ file, sizeBytes: status.size, usedMs: status.mtimeMs });
      else if (now - status.mtimeMs > abandonedMs) await fs.rm(file, { force: true });
    };
    for (const folder of await fs.readdir(this.#root)) {
      // Considers only folders and files that the cache made.
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
