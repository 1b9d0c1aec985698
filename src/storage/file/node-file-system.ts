/**
 * Implements {@link FileSystem} with the runtime's file functions.
 *
 * A small operation on a local file system takes 2 to 10 µs, a round trip to the runtime's thread pool 30 to 50 µs. So small
 * operations are synchronous, and only operations that wait for the disk (syncs, large reads and writes, folders of unknown size)
 * go to the pool. Two rules keep the event loop responsive: it gets a turn after every few operations, and after a slow operation
 * (on a busy or remote disk) the next ones of its kind go to the pool: a few at first, since the system may only have given the
 * processor to somebody else, and up to some hundreds if the operations after them are slow as well. While much is being synced,
 * creating and removing names waits for the journal of the file system, so background work always does that in the pool.
 */
import fs from 'node:fs';
import { promisify } from 'node:util';
import type { Environment } from '../../base/env.ts';
import { errorCode } from './file-system.ts';
import type { AppendableFile, FileStatus, FileSystem, FileWork, ReadableFile, WritableFile } from './file-system.ts';

const openFile = promisify(fs.open);
const closeFile = promisify(fs.close);
const readStatus = promisify(fs.fstat);
const readFile = promisify(fs.read);
const writeFile = promisify(fs.write);
const syncFile = promisify(fs.fsync);
const syncData = promisify(fs.fdatasync);
const truncateFile = promisify(fs.ftruncate);

/** An operation that took this long waited for the disk. */
const SLOW_MS = 4;
/** Operations that go to the pool after a slow one. Each slow one that follows soon doubles them, up to the second number. */
const POOLED_AFTER_SLOW = 8;
const MAX_POOLED = 256;
/** Synchronous operations after which the event loop gets a turn. */
const OPERATIONS_PER_TURN = 32;
/** Larger reads and writes go to the pool. */
const SMALL_BYTES = 64 * 1024;

/** Opening a pipe must not wait for a writer. On regular files this has no effect. */
const openToRead = fs.constants.O_RDONLY | (fs.constants.O_NONBLOCK ?? 0);
/** Not `a+`, which would create the file. */
const openToAppend = fs.constants.O_RDWR | fs.constants.O_APPEND;
const openFolder = openToRead | (fs.constants.O_DIRECTORY ?? 0);

/** Types of local file systems, by `statfs`: ext2 to ext4, XFS, Btrfs, ZFS, F2FS, bcachefs, tmpfs, and overlays of them. */
const LOCAL_TYPES: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x2fc12fc1, 0xf2f52010, 0xca451a4e, 0x01021994, 0x794c7630,
]);

/** Throws unless the path is a regular file: reading a pipe or a device may never end, or have effects. */
function checkIsFile(stats: fs.Stats, path: string): void {
  if (stats.isFile()) return;
  const code = stats.isDirectory() ? 'EISDIR' : 'EFTYPE';
  throw Object.assign(new Error(`${code}: this is no regular file, '${path}'`), { code });
}

function toStatus(stats: fs.Stats): FileStatus {
  const { size: sizeBytes, mtimeMs, nlink: linkCount, dev: device, ino: inode } = stats;
  return { sizeBytes, lastModifiedMs: Math.floor(mtimeMs), linkCount, device, inode };
}

/** Waits for an operation. If it fails with one of `codes`, resolves with the value of that code. */
async function unless<T>(operation: Promise<T>, codes: Readonly<Record<string, T>>): Promise<T> {
  try {
    return await operation;
  } catch (error) {
    const code = errorCode(error);
    if (code !== undefined && Object.hasOwn(codes, code)) return codes[code] as T;
    throw error;
  }
}

/** Operations that are slow at the same times: those that change names or files wait for the disk when looks do not. */
class Kind {
  /** Operations that go to the pool now. */
  pooled = 0;
  /** How many went there after the last slow operation. */
  #lastPooled = 0;
  /** Quick operations after which the kind counts as quick again. */
  #untilQuick = 0;

  note(tookMs: number): void {
    if (tookMs > SLOW_MS) {
      this.#lastPooled = Math.min(MAX_POOLED, Math.max(POOLED_AFTER_SLOW, this.#lastPooled * 2));
      this.#untilQuick = this.#lastPooled;
      this.pooled = this.#lastPooled;
    } else if (this.#untilQuick > 0 && --this.#untilQuick === 0) {
      this.#lastPooled = 0;
    }
  }
}

/** Decides for each operation whether to run it synchronously or in the pool. */
class Pace {
  readonly #environment: Environment;
  readonly #looks = new Kind();
  readonly #changes = new Kind();
  #sinceTurn = 0;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Runs an operation that changes nothing. */
  look<T>(atOnce: () => T, inPool: () => Promise<T>): Promise<T> {
    return this.#run(this.#looks, atOnce, inPool);
  }

  /** Runs an operation that changes a name or a file; with `background`, always in the pool. */
  change<T>(atOnce: () => T, inPool: () => Promise<T>, background = false): Promise<T> {
    return background ? inPool() : this.#run(this.#changes, atOnce, inPool);
  }

  async #run<T>(kind: Kind, atOnce: () => T, inPool: () => Promise<T>): Promise<T> {
    if (kind.pooled > 0) {
      kind.pooled--;
      return await inPool();
    }
    if (++this.#sinceTurn >= OPERATIONS_PER_TURN) {
      this.#sinceTurn = 0;
      await this.#environment.yieldToEventLoop();
    }
    const startedMs = this.#environment.monotonicMs();
    try {
      return atOnce();
    } finally {
      kind.note(this.#environment.monotonicMs() - startedMs);
    }
  }
}

class OpenFile implements AppendableFile, WritableFile {
  readonly #descriptor: number;
  readonly #path: string;
  readonly #pace: Pace;
  readonly #isAppendable: boolean;

  constructor(descriptor: number, path: string, pace: Pace, isAppendable = false) {
    this.#descriptor = descriptor;
    this.#path = path;
    this.#pace = pace;
    this.#isAppendable = isAppendable;
  }

  async status(): Promise<FileStatus> {
    const descriptor = this.#descriptor;
    const stats = await this.#pace.look(
      () => fs.fstatSync(descriptor),
      () => readStatus(descriptor),
    );
    checkIsFile(stats, this.#path);
    return toStatus(stats);
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    const descriptor = this.#descriptor;
    let done = 0;
    while (done < into.length) {
      const [at, rest] = [done, into.length - done];
      const inPool = async (): Promise<number> => (await readFile(descriptor, into, at, rest, position + at)).bytesRead;
      const count =
        rest > SMALL_BYTES
          ? await inPool()
          : await this.#pace.look(() => fs.readSync(descriptor, into, at, rest, position + at), inPool);
      if (count === 0) break;
      done += count;
    }
    return done;
  }

  async write(bytes: Uint8Array): Promise<void> {
    const descriptor = this.#descriptor;
    let done = 0;
    while (done < bytes.length) {
      const [at, rest] = [done, bytes.length - done];
      const inPool = async (): Promise<number> => (await writeFile(descriptor, bytes, at, rest)).bytesWritten;
      done +=
        rest > SMALL_BYTES
          ? await inPool()
          : await this.#pace.change(() => fs.writeSync(descriptor, bytes, at, rest), inPool);
    }
  }

  async append(bytes: Uint8Array): Promise<void> {
    if (!this.#isAppendable)
      throw Object.assign(new Error(`EACCES: permission denied, '${this.#path}'`), { code: 'EACCES' });
    // One call: the system puts nothing between the bytes of one call.
    const descriptor = this.#descriptor;
    const count = await this.#pace.change(
      () => fs.writeSync(descriptor, bytes),
      async () => (await writeFile(descriptor, bytes)).bytesWritten,
    );
    if (count === bytes.length) return;
    throw Object.assign(
      new Error(`ENOSPC: only ${count} of ${bytes.length} bytes could be appended, '${this.#path}'`),
      {
        code: 'ENOSPC',
      },
    );
  }

  sync(): Promise<void> {
    return this.#isAppendable ? syncData(this.#descriptor) : syncFile(this.#descriptor);
  }

  close(): Promise<void> {
    const descriptor = this.#descriptor;
    return this.#pace.look(
      () => fs.closeSync(descriptor),
      () => closeFile(descriptor),
    );
  }
}

/** The file system of this machine. */
export class NodeFileSystem implements FileSystem {
  readonly #pace: Pace;

  constructor(environment: Environment) {
    this.#pace = new Pace(environment);
  }

  open(path: string): Promise<ReadableFile | undefined> {
    return this.#open(path, openToRead);
  }

  async openToAppend(path: string): Promise<AppendableFile | undefined> {
    try {
      return await this.#open(path, openToAppend);
    } catch (error) {
      if (!['EACCES', 'EPERM', 'EROFS'].includes(errorCode(error) ?? '')) throw error;
      // This process may only read.
      return this.#open(path, openToRead);
    }
  }

  async appendsInOneStep(path: string): Promise<boolean> {
    if (process.platform !== 'linux') return false;
    try {
      const { type } = await fs.promises.statfs(path);
      return LOCAL_TYPES.has(type >>> 0);
    } catch {
      return false;
    }
  }

  create(path: string, { background = false }: FileWork = {}): Promise<WritableFile | undefined> {
    return this.#open(path, 'wx', background);
  }

  #open(path: string, flags: number | 'wx', background = false): Promise<OpenFile | undefined> {
    const inPool = (): Promise<number> => openFile(path, flags);
    const opened =
      flags === 'wx'
        ? this.#pace.change<number | undefined>(() => fs.openSync(path, flags), inPool, background)
        : this.#pace.look<number | undefined>(() => {
            // Before an object is created, there is usually no file. A `stat` first costs less than an exception.
            const stats = fs.statSync(path, { throwIfNoEntry: false });
            if (stats === undefined) return undefined;
            checkIsFile(stats, path);
            return fs.openSync(path, flags);
          }, inPool);
    return unless<OpenFile | undefined>(
      opened.then((descriptor) =>
        descriptor === undefined ? undefined : new OpenFile(descriptor, path, this.#pace, flags === openToAppend),
      ),
      { ENOENT: undefined },
    );
  }

  async copy(from: string, to: string, withoutLastBytes: number): Promise<WritableFile | undefined> {
    const { COPYFILE_EXCL, COPYFILE_FICLONE } = fs.constants;
    const copied = fs.promises.copyFile(from, to, COPYFILE_EXCL | COPYFILE_FICLONE).then(() => true);
    if (!(await unless(copied, { ENOENT: false }))) return undefined;
    const descriptor = await openFile(to, 'a');
    const file = new OpenFile(descriptor, to, this.#pace);
    try {
      const { sizeBytes } = await file.status();
      await truncateFile(descriptor, Math.max(0, sizeBytes - withoutLastBytes));
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async status(path: string): Promise<FileStatus | undefined> {
    const stats = await this.#pace.look(
      () => fs.statSync(path, { throwIfNoEntry: false }),
      () => unless<fs.Stats | undefined>(fs.promises.stat(path), { ENOENT: undefined }),
    );
    return stats === undefined ? undefined : toStatus(stats);
  }

  async leadsNowhere(path: string): Promise<boolean> {
    const link = await unless<fs.Stats | undefined>(fs.promises.lstat(path), { ENOENT: undefined });
    return link?.isSymbolicLink() === true && (await this.status(path)) === undefined;
  }

  readFolder(path: string, options?: { readonly few?: boolean }): Promise<string[] | undefined> {
    const inPool = (): Promise<string[]> => fs.promises.readdir(path);
    const names = options?.few === true ? this.#pace.look(() => fs.readdirSync(path), inPool) : inPool();
    return unless<string[] | undefined>(names, { ENOENT: undefined });
  }

  async folderChangedNs(path: string): Promise<bigint | undefined> {
    const stats = await this.#pace.look(
      () => fs.statSync(path, { bigint: true, throwIfNoEntry: false }),
      () => unless<fs.BigIntStats | undefined>(fs.promises.stat(path, { bigint: true }), { ENOENT: undefined }),
    );
    return stats?.mtimeNs;
  }

  createFolder(path: string): Promise<'created' | 'exists' | 'missing'> {
    const created = this.#pace.change(
      () => fs.mkdirSync(path),
      () => fs.promises.mkdir(path),
    );
    return unless<'created' | 'exists' | 'missing'>(
      created.then(() => 'created'),
      { EEXIST: 'exists', ENOENT: 'missing' },
    );
  }

  link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'> {
    const linked = this.#pace.change(
      () => fs.linkSync(from, to),
      () => fs.promises.link(from, to),
    );
    return unless<'linked' | 'exists' | 'missing'>(
      linked.then(() => 'linked'),
      { EEXIST: 'exists', ENOENT: 'missing' },
    );
  }

  rename(from: string, to: string): Promise<boolean> {
    const renamed = this.#pace.change(
      () => fs.renameSync(from, to),
      () => fs.promises.rename(from, to),
    );
    return unless(
      renamed.then(() => true),
      { ENOENT: false },
    );
  }

  remove(path: string, { background = false }: FileWork = {}): Promise<boolean> {
    const removed = this.#pace.change(
      () => fs.unlinkSync(path),
      () => fs.promises.unlink(path),
      background,
    );
    return unless(
      removed.then(() => true),
      { ENOENT: false },
    );
  }

  async syncFolder(path: string): Promise<void> {
    // Windows cannot sync a folder; its file systems keep the order of such changes themselves.
    if (process.platform === 'win32') return;
    const descriptor = await this.#pace.look(
      () => fs.openSync(path, openFolder),
      () => openFile(path, openFolder),
    );
    try {
      await syncFile(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  }
}
