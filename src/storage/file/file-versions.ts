/**
 * Compare-and-swap on files without locks: the versions of one object, as files `1`, `2`, `3`, … in a folder.
 *
 * An object that was never replaced is one file (the *plain* file). The first replacement moves it to a folder of versions; from
 * then on the version with the highest number is the object, for good, and the plain file is only a mark that nobody reads. A
 * writer creates version N+1 by a `link` of a finished file to that name: of all writers that try, one succeeds.
 *
 * Old versions are removed, so a writer that slept since it saw version N could find the name N+1 free again. Its *token* stops
 * it: a second name of the file that it wants to link, in the folder of the versions, from which it links. Two rules keep this
 * safe without any clock or lock:
 *
 * - A writer makes its token before it reads which version is the highest.
 * - A process that removes versions first sees a higher one (H), then removes every token in a listing begun after that, and only
 *   then the versions below H, in ascending order.
 *
 * So a writer whose view is older than H has lost its token by the time a name below H becomes free, and its link fails; a writer
 * that made its token later sees H. docs/drivers.md has the full proof.
 */
import type { PutCondition } from '../contract/driver.ts';
import { sleep } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { isRefusal, errorCode } from './file-system.ts';
import type { FileSystem } from './file-system.ts';
import { GUARD, TEMPORARY_MARK, VERSIONS_MARK } from './file-names.ts';
import type { FileContext } from './file-listing.ts';
import { checkNotAborted } from '../contract/requests.ts';
import { damaged, StoredFile, TRAILER_BYTES } from './stored-file.ts';
import type { Attempt, TemporaryFile } from './stored-file.ts';

/** `swept`: the temporary file is gone, and nothing was written. */
export type AppendResult = 'written' | 'lost' | 'swept';

interface Scan {
  /** Number of the newest version; 0 if there are none. */
  readonly top: number;
  readonly versions: readonly number[];
  readonly tokens: readonly string[];
}

/** A version that was the newest when this process opened it, and durable when it was returned. */
export interface SeenVersion {
  readonly number: number;
  readonly etag: string;
  readonly sizeBytes: number;
  readonly lastModifiedMs: number;
}

const NO_VERSIONS: Scan = { top: 0, versions: [], tokens: [] };
/** A marker file of folders from which versions were removed: if such a folder seems to have none, the listing was outdated. */
const CLEANED = 'cleaned';
const VERSION = /^[1-9][0-9]{0,14}$/;
/** Old versions are also removed when they take this many bytes. */
const KEPT_BYTES = 1024 * 1024;
const MAX_ATTEMPTS = 10_000;
const GUARD_TEXT =
  'This folder has a journal, which older releases of store-db cannot read. Use a newer release. ' +
  'Do not move or remove this file.\n';

/** Links in one step, and records whether the result may be visible if the call fails. */
export async function linkFinal(
  system: FileSystem,
  key: string,
  from: string,
  to: string,
  attempt: Attempt,
): Promise<'linked' | 'exists' | 'missing'> {
  // The caller may have got the abort of the write long ago.
  checkNotAborted(key, attempt.signal);
  attempt.mayBeVisible = true;
  try {
    const result = await system.link(from, to);
    attempt.mayBeVisible = result === 'linked';
    return result;
  } catch (error) {
    attempt.mayBeVisible = !isRefusal(error);
    throw error;
  }
}

/** The versions of one object. Paths of folders end with a slash. */
export class FileVersions {
  readonly key: string;
  /** The file of an object that was never replaced. */
  readonly plainPath: string;
  /** The folder of the plain file. */
  readonly parent: string;
  readonly folder: string;
  /** Name of the plain file in its folder. */
  readonly name: string;
  readonly #context: FileContext;

  constructor(context: FileContext, key: string, parent: string, name: string) {
    this.#context = context;
    this.key = key;
    this.parent = parent;
    this.name = name;
    this.plainPath = parent + name;
    this.folder = `${parent}${name}${VERSIONS_MARK}/`;
  }

  /**
   * Returns the number of the newest version, or 0. After a 0 no version can be made from the plain file as it was before the
   * call: the tokens made from it are removed. (Otherwise a paused writer could bring back a deleted object.)
   */
  async settle(): Promise<number> {
    const scan = await this.#scan();
    if (scan.top > 0 || scan.tokens.length === 0) return scan.top;
    await this.#removeTokens(scan.tokens);
    return (await this.#scan()).top;
  }

  /** Opens the newest version, which may be a `deleted` one. Undefined if there are no versions. */
  async openNewest(whole: boolean): Promise<{ readonly number: number; readonly file: StoredFile } | undefined> {
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      const { top } = await this.#scan();
      if (top === 0) return undefined;
      const file = await this.#open(top, whole);
      if (file !== undefined) return { number: top, file };
    }
    throw this.#restless();
  }

  /**
   * Whether a version is still the newest, with two `status` calls instead of a listing. The order matters: versions are removed
   * in ascending order, so if this version exists, its successor was not removed earlier, and was missing because nobody had made
   * it. Size and time are compared because another program may have restored the folder.
   */
  async isNewest({ number, sizeBytes, lastModifiedMs }: SeenVersion): Promise<boolean> {
    const { system } = this.#context;
    if ((await system.status(`${this.folder}${number + 1}`)) !== undefined) return false;
    const status = await system.status(`${this.folder}${number}`);
    return status?.sizeBytes === sizeBytes + TRAILER_BYTES && status.lastModifiedMs === lastModifiedMs;
  }

  /** Opens the first version, if it still exists. */
  openFirst(): Promise<StoredFile | undefined> {
    return this.#open(1, false);
  }

  /**
   * Makes the plain file version 1, unless there are versions already. Resolves with false if there is neither. The plain file
   * may be deleted and created again at any time; the token decides which of these files becomes version 1.
   */
  async begin({ signal }: Attempt): Promise<boolean> {
    const { system, folders, temporaries } = this.#context;
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      checkNotAborted(this.key, signal);
      if ((await this.#scan()).top > 0) return true;
      await folders.ensure(this.folder.slice(0, -1));
      const token = temporaries.newPath(this.folder);
      if ((await system.link(this.plainPath, token)) === 'missing') {
        if ((await system.status(this.plainPath)) === undefined) return (await this.settle()) > 0;
        folders.forget();
        continue;
      }
      try {
        if ((await this.#scan()).top > 0) return true;
        const linked = await system.link(token, `${this.folder}1`);
        if (linked === 'missing') await this.#pause(attempts, signal);
        else return true;
      } finally {
        await folders.sync(this.folder);
        await temporaries.discard(token);
      }
    }
    throw this.#restless();
  }

  /**
   * Makes a finished temporary file the next version if `condition` holds for the newest (`present`: there is an object). There
   * must be versions already. A loss is reported only when the winner of the race is durable. `purge`: removes the earlier
   * versions at once.
   */
  async append(
    temporary: TemporaryFile,
    condition: PutCondition | 'present',
    attempt: Attempt,
    purge = false,
  ): Promise<AppendResult> {
    const { system, temporaries } = this.#context;
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      checkNotAborted(this.key, attempt.signal);
      // The token first, then the scan: see the head of this file.
      const token = temporaries.newPath(this.folder);
      if ((await system.link(temporary.path, token)) !== 'linked') return 'swept';
      try {
        const scan = await this.#scan();
        // Another program removed the folder.
        if (scan.top === 0) return 'swept';
        const newest = await this.#open(scan.top, false);
        if (newest === undefined) continue;
        await newest.close();
        if (!holds(condition, newest)) {
          if (newest.linkCount > 1) await this.#context.folders.sync(this.folder);
          return 'lost';
        }
        if (scan.top === 1) await this.markPlainFile();
        const linked = await linkFinal(system, this.key, token, `${this.folder}${scan.top + 1}`, attempt);
        if (linked === 'linked') {
          await this.#context.folders.sync(this.folder);
          attempt.mayBeVisible = false;
          await this.#cleanIfDue(scan, newest.sizeBytes, purge);
          return 'written';
        }
        // ETags are never reused: a condition on a replaced one can never hold again.
        if (linked === 'exists' && typeof condition === 'object') {
          await this.#context.folders.sync(this.folder);
          return 'lost';
        }
      } finally {
        await temporaries.discard(token);
      }
      await this.#pause(attempts, attempt.signal);
    }
    throw this.#restless();
  }

  /**
   * Makes releases that do not know journals refuse this object from now on: they take the guard for the newest version, and find that
   * it is none. A process that looks only whether there is a next version finds one: the same version under the next number.
   */
  async fence(): Promise<void> {
    const { folders } = this.#context;
    for (let attempts = 0; !(await this.#makeGuard()); attempts++) {
      // Another program removed the folder.
      folders.forget();
      if (attempts > 3) throw this.#restless();
    }
    await folders.sync(this.folder);
    for (let result: AppendResult | undefined; result !== 'written'; ) {
      const newest = await this.openNewest(false);
      if (newest === undefined) return;
      const { number, file } = newest;
      await file.close();
      if (file.kind !== 'object') return;
      const same = { path: `${this.folder}${number}`, etag: file.etag };
      result = await this.append(same, { etag: file.etag }, { mayBeVisible: false });
    }
  }

  /** Makes the guard. False if the folder is missing. */
  async #makeGuard(): Promise<boolean> {
    const { system, folders, temporaries } = this.#context;
    await folders.ensure(this.folder.slice(0, -1));
    if ((await system.status(this.folder + GUARD)) !== undefined) return true;
    const path = temporaries.newPath(this.folder);
    const file = await system.create(path);
    if (file === undefined) return false;
    try {
      await file.write(Buffer.from(GUARD_TEXT, 'latin1'));
      await file.sync();
      return (await system.link(path, this.folder + GUARD)) !== 'missing';
    } finally {
      await file.close();
      await temporaries.discard(path);
    }
  }

  /**
   * Replaces the plain file by the mark. Its content is no longer used: the mark frees its bytes, keeps the name taken, and keeps
   * the object in listings that began before there were versions.
   */
  async markPlainFile(): Promise<void> {
    const { system, folders, temporaries } = this.#context;
    // Version 1 is the same file: it must be durable under that name before it loses this one.
    await folders.sync(this.folder);
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      const present = await StoredFile.open(system, this.plainPath, this.key, false);
      await present?.close();
      if (present?.kind === 'moved') return;
      const mark = await temporaries.write(this.parent, { kind: 'moved', key: this.key, body: new Uint8Array() });
      if (await system.rename(mark.path, this.plainPath)) return;
    }
    throw this.#restless();
  }

  /** Removes old versions if it is time to, after a version was written and synced. `before` is the scan before that write. */
  async #cleanIfDue(before: Scan, replacedBytes: number, purge: boolean): Promise<void> {
    const old = before.versions.length;
    if (!purge && old < this.#context.keptVersions && old * replacedBytes < KEPT_BYTES) return;
    try {
      await this.#clean(before.top + 1);
    } catch {
      // The write is done; the next writer cleans up.
    }
  }

  /**
   * Frees `bytes` bytes: removes the oldest versions, but not the newest one. Resolves with false if there are no old versions.
   */
  async makeRoom(bytes: number): Promise<boolean> {
    const { system, folders } = this.#context;
    const { top, versions } = await this.#scan();
    let before = versions[0] ?? top;
    let freed = 0;
    for (const version of versions) {
      if (version === top || freed > bytes) break;
      const status = await system.status(`${this.folder}${version}`);
      // A version that has the next number too frees nothing yet.
      if (status?.linkCount === 1) freed += status.sizeBytes;
      before = version + 1;
    }
    if (freed === 0) return false;
    // Another process may have written the newest version just now.
    await folders.sync(this.folder);
    await this.#clean(before);
    return true;
  }

  /** Removes all versions but the newest one, durably. */
  async removeEarlier(): Promise<void> {
    const { folders } = this.#context;
    const { top, versions, tokens } = await this.#scan();
    // After a loss of power the plain file may be there again.
    if (top > 1) await this.markPlainFile();
    await folders.sync(this.parent);
    if (top === 0 || (versions.length < 2 && tokens.length === 0)) return;
    // Another process may have written the newest version just now.
    await folders.sync(this.folder);
    await this.#clean(top);
    await folders.sync(this.folder);
  }

  /** Removes the versions before `own`, which is durable or followed by a durable version. */
  async #clean(own: number): Promise<void> {
    const { system } = this.#context;
    const notice = this.folder + CLEANED;
    if ((await system.status(notice)) === undefined) {
      try {
        await (await system.create(notice))?.close();
      } catch (error) {
        if (errorCode(error) !== 'EEXIST') throw error;
      }
    }
    const { versions, tokens } = await this.#scan();
    await this.#removeTokens(tokens);
    for (const version of versions) if (version < own) await system.remove(`${this.folder}${version}`);
  }

  async #removeTokens(tokens: readonly string[]): Promise<void> {
    for (const token of tokens) await this.#context.system.remove(this.folder + token);
  }

  #open(version: number, whole: boolean): Promise<StoredFile | undefined> {
    return StoredFile.open(this.#context.system, `${this.folder}${version}`, this.key, whole);
  }

  async #scan(): Promise<Scan> {
    const { system } = this.#context;
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      if ((await system.status(this.folder)) === undefined) return NO_VERSIONS;
      const names = await system.readFolder(this.folder, { few: true });
      if (names === undefined) return NO_VERSIONS;
      const versions: number[] = [];
      const tokens: string[] = [];
      for (const name of names) {
        if (name === GUARD) continue;
        if (VERSION.test(name)) versions.push(Number(name));
        else if (name.startsWith(TEMPORARY_MARK)) tokens.push(name);
      }
      versions.sort((a, b) => a - b);
      const top = versions.at(-1) ?? 0;
      if (!(await this.#isOutdated(top))) return { top, versions, tokens };
    }
    throw damaged(this.key, this.folder);
  }

  /**
   * Whether a listing is outdated. A listing is no snapshot: the version that was the newest when it began may have been replaced
   * and removed meanwhile, and a token may have become a version and have been removed. The newest version has no successor and
   * still exists (a process that opens it finds out).
   */
  async #isOutdated(top: number): Promise<boolean> {
    const { system } = this.#context;
    if ((await system.status(`${this.folder}${top + 1}`)) !== undefined) return true;
    // In this order: the marker file exists before a first version is removed.
    return top === 0 && (await system.status(this.folder + CLEANED)) !== undefined;
  }

  /** Waits a little because other writers were faster; longer after many attempts. */
  async #pause(attempts: number, signal: AbortSignal | undefined): Promise<void> {
    if (attempts < 2 || signal?.aborted === true) return;
    const { environment } = this.#context;
    await sleep(environment, environment.random() * Math.min(attempts, 20));
  }

  #restless(): StorageError {
    return new StorageError(this.key, 'none', 'Other processes change this object without a pause. Try again later.');
  }
}

function holds(condition: PutCondition | 'present', newest: StoredFile): boolean {
  const present = newest.kind === 'object';
  if (condition === 'any') return true;
  if (condition === 'absent') return !present;
  if (condition === 'present') return present;
  return present && newest.etag === condition.etag;
}
