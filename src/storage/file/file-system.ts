/**
 * The file operations that `FileDriver` uses. They are behind an interface so that a test can stop a process between any two of
 * them, or replay them as if the power had failed after any one.
 *
 * Results that a caller acts on (a missing file, a name that is taken) are values; all other failures are thrown as the runtime's
 * own errors.
 */
import { messageOf } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import type { RequestOutcome } from '../../base/errors.ts';

export interface FileStatus {
  readonly sizeBytes: number;
  /** Milliseconds since 1970, by the clock of the file system. */
  readonly lastModifiedMs: number;
  /** Number of names that the file has. */
  readonly linkCount: number;
  /** The disk and the number that no other file has at the same time, whatever its name. */
  readonly device: number;
  readonly inode: number;
}

/** A file opened for reading. */
export interface ReadableFile {
  status(): Promise<FileStatus>;
  /** Reads up to `into.length` bytes from `position`; fewer only at the end of the file. Returns the number of bytes. */
  read(into: Uint8Array, position: number): Promise<number>;
  close(): Promise<void>;
}

/** A file that was just created. Writes go to its end. */
export interface WritableFile {
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves once all writes are on stable storage. */
  sync(): Promise<void>;
  close(): Promise<void>;
}

/** A file that several processes read, and append to. */
export interface AppendableFile extends ReadableFile {
  /** Appends bytes in one step: no bytes of other processes come between them. If that fails, a part of them may be there. */
  append(bytes: Uint8Array): Promise<void>;
  /** Resolves once all bytes that are in the file, of any process, are on stable storage. */
  sync(): Promise<void>;
}

/** The work that an operation is part of. */
export interface FileWork {
  /** Whether the operation is one of many of background work: it may take long, because the others keep the disk busy. */
  readonly background?: boolean | undefined;
}

export interface FileSystem {
  /**
   * Opens a file for reading; undefined if there is none. Anything but a regular file (a pipe, a device) is refused here or by
   * the file's `status()`, and never waited for.
   */
  open(path: string): Promise<ReadableFile | undefined>;
  /** Opens a file for reading and appending; undefined if there is none. */
  openToAppend(path: string): Promise<AppendableFile | undefined>;
  /** Whether the file system of a folder appends in one step, for all processes that have the folder. */
  appendsInOneStep(path: string): Promise<boolean>;
  /** Creates a file under a name that is not taken; undefined if its folder is missing. */
  create(path: string, options?: FileWork): Promise<WritableFile | undefined>;
  /**
   * Creates a file, under a name that is not taken, with the content of another one without its last bytes. If the file system
   * supports it, both share disk blocks until one is changed. Writes go to its end. Undefined if the file or the folder is
   * missing.
   */
  copy(from: string, to: string, withoutLastBytes: number): Promise<WritableFile | undefined>;
  /** Returns the status of a file or folder; undefined if there is none. */
  status(path: string): Promise<FileStatus | undefined>;
  /** Whether the path is a symbolic link whose target is missing. */
  leadsNowhere?(path: string): Promise<boolean>;
  /**
   * Returns the names in a folder; undefined if it is missing. They include every entry that exists from the beginning of the
   * call to its end. `few` means that there cannot be many.
   */
  readFolder(path: string, options?: { readonly few?: boolean }): Promise<string[] | undefined>;
  /**
   * Returns the time at which names in the folder last changed, as precisely as the file system knows; undefined if the folder is
   * missing or the time is not known.
   */
  folderChangedNs(path: string): Promise<bigint | undefined>;
  /** Creates one folder; `missing` if its parent is. */
  createFolder(path: string): Promise<'created' | 'exists' | 'missing'>;
  /** Gives a file a second name, in one step, unless that name is taken. `missing`: the file or the folder is missing. */
  link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'>;
  /** Renames a file in one step, and replaces a file that has the new name. Resolves with false if the file is missing. */
  rename(from: string, to: string): Promise<boolean>;
  /** Removes a name. Resolves with false if it is missing. */
  remove(path: string, options?: FileWork): Promise<boolean>;
  /** Resolves once the names in a folder are on stable storage. */
  syncFolder(path: string): Promise<void>;
}

/** Returns the code of a runtime error, for instance `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full: collect garbage (db.gc(), store-db gc), or free some space, and try again.',
  EDQUOT: 'The disk quota of this user is used up: free some space or raise it, and try again.',
  EFBIG:
    'The file is larger than its file system or this process may have: raise the limit (ulimit -f), and try again.',
  EACCES: 'Permission was denied: give the user of this process read and write access to the folder.',
  EPERM:
    'The operation is not permitted: check the owner of the folder, and that its file system has hard links (FAT and ' +
    'exFAT have none).',
  EROFS: 'The file system is mounted read-only: mount it for writing, or open the database as a replica.',
  EMFILE: 'This process has too many open files: raise its limit (ulimit -n), or run fewer requests at once.',
  ENFILE: 'The system has too many open files: raise its limit (fs.file-max).',
  ENAMETOOLONG: 'The path is longer than this system allows: use a shorter folder, prefix or key.',
  ENOTDIR: 'Part of the path is a file where a folder is needed: choose another folder, or move that file away.',
  EISDIR: 'There is a folder where a file is needed: move it away.',
  EFTYPE: 'There is a pipe, a device or a socket where a file is needed: move it away.',
  ENXIO: 'There is a pipe, a device or a socket where a file is needed: move it away.',
  ENOTSUP: 'The file system cannot do this; it must have hard links. Use a local POSIX file system.',
  EOPNOTSUPP: 'The file system cannot do this; it must have hard links. Use a local POSIX file system.',
  ENOSYS: 'The file system cannot do this; it must have hard links. Use a local POSIX file system.',
  EXDEV: 'The folder spans several file systems: keep all of it on one.',
  EMLINK: 'The file has too many names: remove copies made by hard links.',
  EIO: 'The disk reported an error: check its health and the log of the system before writing on.',
};

/** Codes of operations that the system refused: they had no effect. */
const REFUSALS = new Set(Object.keys(ADVICE).filter((code) => code !== 'EIO'));

/** Whether an operation that failed with this error definitely changed nothing. */
export function isRefusal(error: unknown): boolean {
  const code = errorCode(error);
  return code !== undefined && REFUSALS.has(code);
}

/** Whether a write failed because the disk or the quota is full. */
export function isFull(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/**
 * Converts an error of the file system to a `StorageError`, with the remedy and the outcome. A `StorageError` is returned as it
 * is.
 */
export function toStorageError(error: unknown, key: string, outcome: RequestOutcome, action: string): StorageError {
  if (error instanceof StorageError) return error;
  const code = errorCode(error);
  const reason = messageOf(error);
  const advice = code === undefined ? '' : ` ${ADVICE[code] ?? ''}`;
  return new StorageError(key, outcome, `Could not ${action} ${key}.${advice} (${reason})`, {
    cause: error,
    ...(isFull(error) ? { reason: 'full' } : {}),
  });
}
