/**
 * Plain files in a folder, at the paths that their keys are: for bundles, which a server of static files then serves. A database needs
 * `FileDriver`, whose files are laid out for many writers and loss of power.
 */
import { link, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { compareStrings } from '../../base/bytes.ts';
import { realEnvironment } from '../../base/env.ts';
import { InvalidOptionError, StorageError } from '../../base/errors.ts';
import { describeValue } from '../../base/messages.ts';
import { newId } from '../../base/ids.ts';
import { block0Name } from '../../format/object-names.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListEntry,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';
import { checkKey, checkList, checkNotAborted, clipRange, readBody } from '../contract/requests.ts';

/** After so long, the lock of a process that replaces a file counts as left behind, in milliseconds. */
const staleLockMs = 60_000;
const temporaryMark = '.tmp-';
const lockMark = '.lock';

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((error as { readonly code?: string } | undefined)?.code ?? '');
}

/** Whether a part of a key can be the name of a file on every system. */
function isFileName(part: string): boolean {
  return (
    /^[\w-][\w.-]*$/.test(part) && !part.endsWith('.') && !part.includes(temporaryMark) && !part.endsWith(lockMark)
  );
}

interface Facts {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

/** Every replacement is another file. */
function etagOf({ ino, size, mtimeMs }: Facts): string {
  return `${ino}-${size}-${mtimeMs}`;
}

/**
 * A folder of plain files, for `db.publish()`: `new StaticFolderDriver('./public')` with the prefix `cities` writes `./public/cities/bundle`
 * and the other files of the bundle, as a server of static files needs them. Files appear whole. Publish from one machine only. It
 * refuses databases, which need `FileDriver`.
 */
export class StaticFolderDriver implements StorageDriver {
  readonly name = 'static-folder';
  readonly bundlesOnly = true;
  readonly #folder: string;

  /** The folder is made with the first file. Throws `InvalidOptionError` unless it is a path. */
  constructor(folder: string) {
    if (typeof folder !== 'string' || folder === '') {
      const message = `new StaticFolderDriver() takes the path of a folder, not ${describeValue(folder)}.`;
      throw new InvalidOptionError('folder', message);
    }
    this.#folder = path.resolve(folder);
  }

  #pathOf(key: string): string {
    checkKey(key);
    const parts = key.split('/');
    if (!parts.every(isFileName)) {
      const message = `${key} cannot be the path of a file: use letters, digits, dashes, underscores and dots in prefixes.`;
      throw new StorageError(key, 'none', message);
    }
    if (parts.at(-1) === block0Name) {
      throw new StorageError(key, 'none', 'A folder of static files cannot hold a database: use FileDriver.');
    }
    return path.join(this.#folder, ...parts);
  }

  async get(key: string, { range, ifNoneMatch, signal }: GetOptions = {}): Promise<GetResult> {
    checkKey(key);
    checkNotAborted(key, signal);
    // Asked for before something is published: there is none, since it is refused.
    if (key.split('/').at(-1) === block0Name) return { status: 'missing' };
    try {
      const file = await open(this.#pathOf(key));
      try {
        const facts = await file.stat();
        if (!facts.isFile()) return { status: 'missing' };
        const etag = etagOf(facts);
        if (ifNoneMatch === etag) return { status: 'unchanged' };
        const { start, end } = clipRange(key, range, facts.size);
        const bytes = new Uint8Array(end - start);
        if (bytes.length > 0) await file.read(bytes, 0, bytes.length, start);
        return { status: 'found', bytes, etag, sizeBytes: facts.size, lastModifiedMs: facts.mtimeMs };
      } finally {
        await file.close();
      }
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return { status: 'missing' };
      throw failure(key, 'none', error);
    }
  }

  async put(key: string, body: PutBody, { if: condition, signal }: PutOptions): Promise<PutResult> {
    const target = this.#pathOf(key);
    checkNotAborted(key, signal);
    const temporary = `${target}${temporaryMark}${newId(realEnvironment, 8)}`;
    try {
      await mkdir(path.dirname(target), { recursive: true });
      const file = await open(temporary, 'wx');
      try {
        for await (const chunk of readBody(key, body, signal)) await file.appendFile(chunk);
        await file.sync();
      } finally {
        await file.close();
      }
      if (condition === 'absent') await link(temporary, target);
      else if (condition === 'any') await rename(temporary, target);
      else if (!(await replaceLocked(target, temporary, condition.etag))) return { status: 'lost' };
      return { status: 'written', etag: etagOf(await stat(target)) };
    } catch (error) {
      if (condition === 'absent' && hasCode(error, 'EEXIST')) return { status: 'lost' };
      throw failure(key, 'unknown', error);
    } finally {
      await rm(temporary, { force: true });
    }
  }

  async delete(keys: readonly string[], { signal }: RequestOptions = {}): Promise<DeleteResult> {
    const failed: { readonly key: string; readonly message: string }[] = [];
    for (const key of keys) {
      checkNotAborted(key, signal, 'unknown');
      const target = this.#pathOf(key);
      try {
        await rm(target, { force: true });
        await this.#removeEmpty(path.dirname(target));
      } catch (error) {
        failed.push({ key, message: (error as Error).message });
      }
    }
    return { failed };
  }

  /** Removes folders that are empty now, up to the folder of the driver. */
  async #removeEmpty(folder: string): Promise<void> {
    for (let each = folder; each.startsWith(`${this.#folder}${path.sep}`); each = path.dirname(each)) {
      try {
        await rmdir(each);
      } catch (error) {
        if (hasCode(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT', 'EPERM')) return;
        throw error;
      }
    }
  }

  async list(prefix: string, options: ListOptions = {}): Promise<ListPage> {
    const limit = checkList(prefix, options);
    const { after = '', signal } = options;
    checkNotAborted(prefix, signal);
    const below = prefix.slice(0, prefix.lastIndexOf('/') + 1);
    const keys: string[] = [];
    for (const name of await this.#namesIn(path.join(this.#folder, below))) {
      const key = `${below}${name}`;
      if (key.startsWith(prefix) && compareStrings(key, after) > 0 && key.split('/').every(isFileName)) keys.push(key);
    }
    keys.sort(compareStrings);
    const entries: ListEntry[] = [];
    for (const key of keys.slice(0, limit)) {
      const facts = await stat(this.#pathOf(key)).catch(() => undefined);
      if (facts?.isFile() === true) entries.push({ key, sizeBytes: facts.size, lastModifiedMs: facts.mtimeMs });
    }
    // Files that are gone meanwhile, and folders, must not look like the end.
    return { entries, more: keys.length > limit && entries.length > 0 };
  }

  async #namesIn(folder: string): Promise<string[]> {
    try {
      const names = await readdir(folder, { recursive: true, withFileTypes: true });
      const files = names.filter((name) => name.isFile());
      return files.map((name) =>
        path.relative(folder, path.join(name.parentPath, name.name)).replaceAll(path.sep, '/'),
      );
    } catch (error) {
      if (hasCode(error, 'ENOENT', 'ENOTDIR')) return [];
      throw failure(folder, 'none', error);
    }
  }
}

function failure(key: string, outcome: 'none' | 'unknown', error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  return new StorageError(key, outcome, `${key}: ${(error as Error).message}`, { cause: error });
}

/** Replaces a file if it is the one of an ETag. Only one process at a time does so; the others have lost. */
async function replaceLocked(target: string, temporary: string, etag: string): Promise<boolean> {
  const lock = `${target}${lockMark}`;
  if (!(await takeLock(lock))) return false;
  try {
    const facts = await stat(target).catch(() => undefined);
    if (facts === undefined || etagOf(facts) !== etag) return false;
    await rename(temporary, target);
    return true;
  } finally {
    await rm(lock, { force: true });
  }
}

async function takeLock(lock: string): Promise<boolean> {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      await (await open(lock, 'wx')).close();
      return true;
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
    }
    const facts = await stat(lock).catch(() => undefined);
    if (facts !== undefined && realEnvironment.now() - facts.mtimeMs < staleLockMs) return false;
    await rm(lock, { force: true });
  }
  return false;
}
