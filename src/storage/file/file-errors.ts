/** Errors of the file system, as a driver reports them: what happened, what to do, whether it had an effect. */
import { messageOf } from '../../base/brands.ts';
import { StorageError, type RequestOutcome } from '../../base/errors.ts';
import { errorCode } from './file-system.ts';

const ADVICE: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full: collect garbage (db.gc(), store-db gc), or free some space, and try again.',
  EDQUOT: 'The disk quota of this user is used up: free some space or raise it, and try again.',
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

/** These say that the system refused the operation: it had no effect. */
const REFUSALS = new Set(Object.keys(ADVICE).filter((code) => code !== 'EIO'));

/** Whether an operation that failed with this error definitely changed nothing. */
export function isRefusal(error: unknown): boolean {
  const code = errorCode(error);
  return code !== undefined && REFUSALS.has(code);
}

/** Whether there is no room for what was to be written. */
export function isFull(error: unknown): boolean {
  const code = errorCode(error);
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** The error as a driver reports it. Errors that already are `StorageError`s stay what they are. */
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
