/**
 * A store in a folder of a local file system. It is safe with any number of processes on one machine, with kill -9 at any moment
 * and with loss of power. There are no locks, so a stopped process blocks nobody. docs/drivers.md explains how and why it works.
 */
import path from 'node:path';
import { isBytes } from '../../base/brands.ts';
import { realEnvironment } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import type { RequestOutcome } from '../../base/errors.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type {
  CopyResult,
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutCondition,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';
import { checkKey, checkList, checkNotAborted, checkWholeBytes, clipRange, readBody } from '../contract/requests.ts';
import { FolderJournal } from './folder-journal.ts';
import type { JournalContext, JournalPolicy } from './journal-context.ts';
import { JournalHandles } from './journal-handles.ts';
import type { ImportedObject } from './journal-replay.ts';
import { FileListing } from './file-listing.ts';
import type { FileContext } from './file-listing.ts';
import {
  folderOfPrefix,
  fromByteString,
  isNumbered,
  JOURNAL_MARK,
  parseName,
  placeOf,
  toByteString,
} from './file-names.ts';
import { isFull, toStorageError } from './file-system.ts';
import type { FileSystem } from './file-system.ts';
import { FileVersions, linkFinal } from './file-versions.ts';
import type { AppendResult, SeenVersion } from './file-versions.ts';
import { leadsNowhere, Folders } from './folders.ts';
import type { Durability } from './folders.ts';
import { NodeFileSystem } from './node-file-system.ts';
import { damaged, StoredFile, TRAILER_BYTES, TemporaryFiles } from './stored-file.ts';
import type { Attempt, TemporaryFile } from './stored-file.ts';
import { WriteLanes } from './write-lanes.ts';

/** Options of `FileDriver`. */
export interface FileDriverOptions {
  /** The folder. It is created with the first write; relative paths are resolved when the driver is constructed. */
  readonly path: string;
  /**
   * With `'fsync'`, writes survive a loss of power. With `'none'` they survive the end of the process but not a crash of the
   * machine: for tests and for data that can be made again. Default `'fsync'`.
   */
  readonly durability?: Durability;
  /** Clock, timers and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
  /** @internal Operations on files; tests replace them. */
  readonly fileSystem?: FileSystem;
  /** @internal Old versions of a replaced object that are kept. */
  readonly keptVersions?: number;
  /** @internal Sizes of journals. */
  readonly journalPolicy?: JournalPolicy;
}

/** How often a write of bytes starts again because its temporary file was removed. */
const MAX_REWRITES = 3;
/** Most objects that are remembered. Objects found under two names are synced once per process. */
const MAX_REMEMBERED = 4096;
const KEPT_VERSIONS = 8;
/** The object of a database that every release reads before it counts a commit as done. */
const BLOCK0 = 'block0';

const driverOptions = new OptionTable<FileDriverOptions>({
  path: kinds.required({ ...kinds.named, allowed: "the path of a folder, such as './data'" }),
  durability: kinds.choice('fsync', 'none'),
  environment: kinds.environment,
  fileSystem: kinds.anything,
  keptVersions: kinds.whole(1),
  journalPolicy: kinds.anything,
});

/**
 * Stores objects as files under one folder, and commits in a file to which all processes append. Content types are not stored.
 */
export class FileDriver implements StorageDriver {
  readonly name = 'file';
  readonly #root: string;
  readonly #context: FileContext;
  readonly #lanes: WriteLanes;
  /** Writes of other processes, by folder and ETag, that this process synced before it returned them. */
  readonly #durable = new Map<string, true>();
  /** The last version seen of each key. An object that has versions always has some, so its plain file need not be opened. */
  readonly #versioned = new Map<string, SeenVersion>();
  /** Whether the folder is known to exist. */
  #isRootKnown = false;
  readonly #journals = new Map<string, FolderJournal>();
  readonly #journalContext: JournalContext;

  /** Takes the path of a folder, or options. It does no I/O. Throws `InvalidOptionError`. */
  constructor(options: string | FileDriverOptions) {
    const given = driverOptions.check('new FileDriver()', typeof options === 'string' ? { path: options } : options);
    const { durability = 'fsync', environment = realEnvironment } = given;
    const system = given.fileSystem ?? new NodeFileSystem(environment);
    const root = path.resolve(given.path);
    const folders = new Folders(system, durability, root);
    const temporaries = new TemporaryFiles(system, environment, folders, durability);
    this.#lanes = new WriteLanes(environment);
    this.#root = path.join(root, path.sep);
    const keptVersions = given.keptVersions ?? KEPT_VERSIONS;
    const journalOf = (folder: string): FolderJournal => this.#journalOf(folder);
    this.#context = { system, environment, folders, temporaries, keptVersions, lastListed: {}, journalOf };
    this.#journalContext = {
      system,
      environment,
      folders,
      durability,
      handles: new JournalHandles(system, environment),
      policy: given.journalPolicy ?? {},
      openPlain: (folder, name) => this.#openPlain(folder, name),
      fenceOlderReleases: (folder) => this.#fenceOlderReleases(folder),
    };
  }

  async get(key: string, options?: GetOptions): Promise<GetResult> {
    checkKey(key);
    checkNotAborted(key, options?.signal);
    clipRange(key, options?.range, 0);
    try {
      const versions = this.#versionsOf(key);
      if (isNumbered(versions.name)) return await this.#getNumbered(versions, options);
      const seen = this.#versioned.get(key);
      const isSeen = seen !== undefined && seen.etag === options?.ifNoneMatch;
      if (isSeen && (await versions.isNewest(seen))) return { status: 'unchanged' };
      const whole = options?.range === undefined && options?.ifNoneMatch === undefined;
      return await this.#answer(key, await this.#open(versions, whole), options);
    } catch (error) {
      throw toStorageError(error, key, 'none', 'read');
    }
  }

  /** Answers a `get` with an opened file, and closes it. */
  async #answer(key: string, file: StoredFile | undefined, options: GetOptions | undefined): Promise<GetResult> {
    if (file === undefined) {
      await this.#checkRoot();
      return { status: 'missing' };
    }
    try {
      const { etag, sizeBytes, lastModifiedMs } = file;
      if (options?.ifNoneMatch === etag) return { status: 'unchanged' };
      if (options?.range === undefined) checkWholeBytes(key, sizeBytes);
      const { start, end } = clipRange(key, options?.range, sizeBytes);
      return { status: 'found', bytes: await file.read(start, end), etag, sizeBytes, lastModifiedMs };
    } finally {
      await file.close();
    }
  }

  #journalOf(folder: string): FolderJournal {
    let journal = this.#journals.get(folder);
    if (journal === undefined) {
      journal = new FolderJournal(this.#journalContext, folder);
      this.#journals.set(folder, journal);
    }
    return journal;
  }

  /** Gets an object from the journal of its folder, or from its file as long as there is no journal. */
  async #getNumbered(versions: FileVersions, options: GetOptions | undefined): Promise<GetResult> {
    const { key, parent, name } = versions;
    const journal = this.#journalOf(parent);
    for (;;) {
      const found = await journal.read(name, async ({ file: from, at, ...entry }, file): Promise<GetResult> => {
        const { etag, sizeBytes, timeMs: lastModifiedMs } = entry;
        if (options?.ifNoneMatch === etag) return { status: 'unchanged' };
        if (options?.range === undefined) checkWholeBytes(key, sizeBytes);
        const { start, end } = clipRange(key, options?.range, sizeBytes);
        const buffer = Buffer.allocUnsafeSlow(end - start);
        const bytes = new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
        if ((await file.read(bytes, at + start)) !== bytes.length) throw damaged(key, parent + from);
        return { status: 'found', bytes, etag, sizeBytes, lastModifiedMs };
      });
      if (found !== 'none') return found ?? (await this.#answer(key, undefined, options));
      const file = await this.#open(versions, false);
      if (!(await journal.isThere())) return await this.#answer(key, file, options);
      // Another process made the journal meanwhile.
      await file?.close();
    }
  }

  /** Puts an object into the journal of its folder; undefined if it must be a file. */
  async #putInJournal(
    versions: FileVersions,
    body: PutBody,
    options: PutOptions,
    attempt: Attempt,
  ): Promise<PutResult | undefined> {
    const { key, parent, name } = versions;
    await this.#context.folders.ensure(parent.slice(0, -1));
    if (!(await this.#hasJournal(parent))) return undefined;
    const bytes = isBytes(body) ? body : await wholeOf(key, body, options.signal);
    const etag = await this.#journalOf(parent).put(name, bytes, options.if, attempt);
    return etag === undefined ? { status: 'lost' } : { status: 'written', etag };
  }

  /** Whether objects in a folder, which exists, are put into its journal, and deleted there. */
  async #hasJournal(parent: string): Promise<boolean> {
    const journal = this.#journalOf(parent);
    if (await journal.mayAppend()) return true;
    if (await journal.isMarked()) throw foreignJournal(parent);
    return false;
  }

  /** Opens an object that a folder had before it had a journal. */
  async #openPlain(folder: string, name: string): Promise<ImportedObject | undefined> {
    const versions = new FileVersions(this.#context, folder + name, folder, name);
    const file = await this.#open(versions, false);
    if (file === undefined) return undefined;
    try {
      const { etag, sizeBytes, lastModifiedMs } = file;
      const isPlain = !this.#versioned.has(versions.key);
      return { etag, timeMs: lastModifiedMs, sizeBytes, bytes: isPlain ? undefined : await file.read(0, sizeBytes) };
    } finally {
      await file.close();
    }
  }

  /** Fences Block 0 of the database whose log is in a folder: it is above, and every release reads it before a commit counts. */
  async #fenceOlderReleases(folder: string): Promise<void> {
    if (folder.length <= this.#root.length) return;
    const above = path.join(path.dirname(folder.slice(0, -1)), path.sep);
    await new FileVersions(this.#context, above + BLOCK0, above, BLOCK0).fence();
  }

  /** Rejects if the folder is a symbolic link to a missing folder: its contents are not known. */
  async #checkRoot(): Promise<void> {
    if (this.#isRootKnown) return;
    const { system } = this.#context;
    const root = this.#root.slice(0, -1);
    if ((await system.status(root)) === undefined) {
      if ((await system.leadsNowhere?.(root)) === true) throw leadsNowhere(root);
      return;
    }
    this.#isRootKnown = true;
  }

  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.#lanes.write(options.background === true, () => this.#put(key, body, options), options.signal);
  }

  async #put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    checkKey(key);
    checkNotAborted(key, options.signal);
    const attempt: Attempt = { signal: options.signal, mayBeVisible: false };
    try {
      const versions = this.#versionsOf(key);
      if (isNumbered(versions.name)) {
        const inJournal = await this.#putInJournal(versions, body, options, attempt);
        if (inJournal !== undefined) return inJournal;
      }
      // If the race is already lost, this costs two file operations instead of a write.
      // The names of background work are new, so that there is no race: there it would be two operations for nothing.
      const isRace = options.background !== true || options.if !== 'absent';
      if (isRace && !(await this.#mayHold(versions, options.if))) return { status: 'lost' };
      for (let rewrites = 0; ; rewrites++) {
        const { signal, background } = options;
        const content = { kind: 'object', key, body, signal, background } as const;
        let temporary: TemporaryFile;
        try {
          temporary = await this.#context.temporaries.write(versions.parent, content);
        } catch (error) {
          // Old versions serve as a reserve: removing them lets an object be replaced on a full disk.
          if (!isFull(error) || !isBytes(body) || rewrites >= MAX_REWRITES) throw error;
          if (typeof options.if === 'string' || !(await versions.makeRoom(body.length + TRAILER_BYTES))) throw error;
          continue;
        }
        const result = await this.#publish(versions, temporary, options, attempt);
        if (result === 'written') {
          const isNews = isNumbered(versions.name) && (await this.#journalOf(versions.parent).isMarked());
          if (isNews) throw foreignJournal(versions.parent, 'unknown');
          return { status: 'written', etag: temporary.etag };
        }
        if (result === 'lost') return { status: 'lost' };
        this.#context.folders.forget();
        if (rewrites >= MAX_REWRITES || !isBytes(body)) break;
      }
      throw new StorageError(key, 'none', 'The file was removed while it was being written. Try again.');
    } catch (error) {
      throw toStorageError(error, key, attempt.mayBeVisible ? 'unknown' : 'none', 'write');
    }
  }

  async delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    for (const key of keys) checkKey(key);
    checkNotAborted(keys[0] ?? '', options?.signal);
    const failed: { key: string; message: string }[] = [];
    const removedFrom = new Map<string, string[]>();
    const fail = (key: string, error: unknown): void => {
      failed.push({ key, message: toStorageError(error, key, 'unknown', 'delete').message });
    };
    const numbered = new Map<string, { readonly keys: string[]; readonly names: string[] }>();
    for (const key of keys) {
      checkNotAborted(key, options?.signal, 'unknown');
      try {
        const versions = this.#versionsOf(key);
        const { parent, name } = versions;
        const isThere = isNumbered(name) && (await this.#context.system.status(parent)) !== undefined;
        if (isThere && (await this.#hasJournal(parent))) {
          const others = numbered.get(parent) ?? { keys: [], names: [] };
          numbered.set(parent, others);
          others.keys.push(key);
          others.names.push(name);
          continue;
        }
        const folder = await this.#deleteOne(versions);
        if (folder === undefined) continue;
        const others = removedFrom.get(folder);
        if (others === undefined) removedFrom.set(folder, [key]);
        else others.push(key);
      } catch (error) {
        fail(key, error);
      }
    }
    for (const [folder, of] of numbered) {
      try {
        await this.#journalOf(folder).delete(of.names);
      } catch (error) {
        for (const key of of.keys) fail(key, error);
      }
    }
    for (const [folder, removed] of removedFrom) {
      try {
        await this.#context.folders.sync(folder);
      } catch (error) {
        for (const key of removed) fail(key, error);
      }
    }
    return { failed };
  }

  async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    const limit = checkList(prefix, options);
    checkNotAborted(prefix, options?.signal);
    const listing = new FileListing(this.#context, this.#root, (key) => this.#open(this.#versionsOf(key), false));
    try {
      const page = await listing.page(prefix, options?.after, limit);
      if (page.entries.length === 0) await this.#checkRoot();
      return page;
    } catch (error) {
      throw toStorageError(error, prefix, 'none', 'list');
    }
  }

  /** Copies the file, without reading its bytes if the file system supports that. Refuses objects that were replaced. */
  async copy(from: string, to: string, options?: RequestOptions): Promise<CopyResult> {
    checkKey(from);
    checkKey(to);
    checkNotAborted(to, options?.signal);
    const attempt: Attempt = { signal: options?.signal, mayBeVisible: false };
    try {
      const source = this.#versionsOf(from);
      const target = this.#versionsOf(to);
      if (isNumbered(source.name) || isNumbered(target.name)) return { status: 'refused' };
      const file = await this.#open(source, false);
      await file?.close();
      if (file === undefined || this.#versioned.has(from)) return { status: 'refused' };
      const temporary = await this.#context.temporaries.copy(target.parent, source.plainPath);
      if (temporary === undefined) return { status: 'refused' };
      // If there are still no versions, the plain file was the object while it was copied.
      if ((await source.settle()) > 0) {
        await this.#context.temporaries.discard(temporary.path);
        return { status: 'refused' };
      }
      const result = await this.#publish(target, temporary, { if: 'absent' }, attempt);
      return { status: result === 'swept' ? 'refused' : 'copied' };
    } catch (error) {
      throw toStorageError(error, to, attempt.mayBeVisible ? 'unknown' : 'none', 'write');
    }
  }

  /** Closes the files that it keeps open. The driver may be used again afterwards. */
  async close(): Promise<void> {
    await this.#journalContext.handles.close();
  }

  /** Removes all earlier versions of objects, and all bytes of journals that no object needs. */
  async forget(prefix: string, options?: RequestOptions): Promise<void> {
    checkList(prefix, options);
    const start = folderOfPrefix(prefix);
    try {
      await this.#forgetIn(this.#root + start.folder, start.bytes, toByteString(prefix), options?.signal);
    } catch (error) {
      throw toStorageError(error, prefix, 'unknown', 'delete');
    }
  }

  /** Forgets in a folder, whose keys all begin with `beginning`, and in the folders below that may have keys with the prefix. */
  async #forgetIn(folder: string, beginning: string, prefix: string, signal: AbortSignal | undefined): Promise<void> {
    const { system, folders } = this.#context;
    const names = (await system.readFolder(folder)) ?? [];
    const used = (await this.#isAppended(folder, names)) ? await this.#journalOf(folder).forget() : undefined;
    for (const name of names) {
      checkNotAborted(folder, signal, 'unknown');
      const parsed = parseName(name);
      if (parsed === undefined) continue;
      const bytes = beginning + parsed.bytes;
      const isBelow = parsed.kind === 'folder' || parsed.kind === 'continued';
      if (isBelow) {
        const mayHold = bytes.startsWith(prefix) || prefix.startsWith(bytes);
        if (mayHold) await this.#forgetIn(`${folder}${name}/`, bytes, prefix, signal);
        continue;
      }
      const own = parsed.kind === 'versions' ? name.slice(0, -1) : name;
      const versions = new FileVersions(this.#context, fromByteString(bytes) ?? name, folder, own);
      // The journal has the object, or another object that replaced it.
      const isOutdated = used !== undefined && isNumbered(own) && !used.has(own);
      const changed = isOutdated ? await this.#deleteOne(versions) : undefined;
      if (changed !== undefined) await folders.sync(changed);
      if (parsed.kind === 'versions') await versions.removeEarlier();
    }
  }

  /** Whether a folder with these names has a journal, to which this process can append. */
  async #isAppended(folder: string, names: readonly string[]): Promise<boolean> {
    return names.some((name) => name.startsWith(JOURNAL_MARK)) && (await this.#hasJournal(folder));
  }

  #versionsOf(key: string): FileVersions {
    const { folder, name } = placeOf(key);
    return new FileVersions(this.#context, key, this.#root + folder, name);
  }

  /**
   * Opens the present object. The order matters: it first opens the plain file, then checks that there are no versions. An object
   * that has versions keeps some, so there were none when the file was opened.
   */
  async #open(versions: FileVersions, whole: boolean): Promise<StoredFile | undefined> {
    const { key, plainPath } = versions;
    if (!this.#versioned.has(key)) {
      const plain = await StoredFile.open(this.#context.system, plainPath, key, whole);
      if (await this.#isPlain(versions, plain)) return plain;
    }
    const newest = await versions.openNewest(whole);
    if (newest === undefined) {
      if (!this.#versioned.delete(key)) throw damaged(key, versions.folder);
      // Another program removed the folder.
      return await this.#open(versions, whole);
    }
    const { number, file } = newest;
    const { etag, sizeBytes, lastModifiedMs } = file;
    try {
      if (file.linkCount > 1) await this.#makeDurable(versions.folder, file);
    } catch (error) {
      await file.close();
      throw error;
    }
    remember(this.#versioned, key, { number, etag, sizeBytes, lastModifiedMs });
    if (file.kind === 'object') return file;
    await file.close();
    return undefined;
  }

  /** Whether the plain file, just opened, is the object, because there are no versions; closes it otherwise. */
  async #isPlain(versions: FileVersions, plain: StoredFile | undefined): Promise<boolean> {
    try {
      if ((await versions.settle()) === 0) {
        if (plain !== undefined && plain.kind !== 'object') throw damaged(versions.key, versions.plainPath);
        if (plain !== undefined && plain.linkCount > 1) await this.#makeDurable(versions.parent, plain);
        return true;
      }
    } catch (error) {
      await plain?.close();
      throw error;
    }
    await plain?.close();
    return false;
  }

  /**
   * Syncs the folder of a file that has a temporary name too. Its writer removes that name once the write is durable; until then
   * readers sync it themselves.
   */
  async #makeDurable(folder: string, file: StoredFile): Promise<void> {
    const name = folder + file.etag;
    if (this.#durable.has(name)) return;
    await this.#context.folders.sync(folder);
    remember(this.#durable, name, true);
  }

  async #mayHold(versions: FileVersions, condition: PutCondition): Promise<boolean> {
    if (condition === 'any') return true;
    const current = await this.#open(versions, false);
    await current?.close();
    return condition === 'absent' ? current === undefined : current?.etag === condition.etag;
  }

  /** Gives a finished file its final name. Its temporary name stays only if the outcome is not known. */
  async #publish(
    versions: FileVersions,
    temporary: TemporaryFile,
    options: PutOptions,
    attempt: Attempt,
  ): Promise<AppendResult> {
    const { if: condition } = options;
    let result: AppendResult | 'again' = 'again';
    try {
      while (result === 'again') {
        result =
          typeof condition === 'object'
            ? await this.#replace(versions, temporary, options, attempt)
            : await this.#create(versions, temporary, condition, attempt);
      }
      return result;
    } finally {
      if (!attempt.mayBeVisible) await this.#context.temporaries.discard(temporary.path, options);
    }
  }

  async #replace(
    versions: FileVersions,
    temporary: TemporaryFile,
    { if: condition, purge = false }: PutOptions,
    attempt: Attempt,
  ): Promise<AppendResult> {
    return (await versions.begin(attempt)) ? await versions.append(temporary, condition, attempt, purge) : 'lost';
  }

  async #create(
    versions: FileVersions,
    temporary: TemporaryFile,
    condition: 'absent' | 'any',
    attempt: Attempt,
  ): Promise<AppendResult | 'again'> {
    const { system, folders } = this.#context;
    const linked = await linkFinal(system, versions.key, temporary.path, versions.plainPath, attempt);
    if (linked === 'missing') return 'swept';
    const isVersioned = (await versions.settle()) > 0;
    if (linked === 'linked') {
      if (isVersioned) await this.#checkFirstVersion(versions, temporary);
      await folders.sync(versions.parent);
      attempt.mayBeVisible = false;
      return 'written';
    }
    if (isVersioned) return await versions.append(temporary, condition, attempt);
    if (condition === 'absent') {
      // The winner of the race must be durable before a loss is reported.
      await folders.sync(versions.parent);
      return 'lost';
    }
    const begun = await versions.begin(attempt);
    return begun ? await versions.append(temporary, condition, attempt) : 'again';
  }

  /**
   * Checks a plain file that was linked while another process made versions. If the versions began with this file, all is well;
   * if they existed before, the file must not stay. If the first version is gone, the outcome is unknown.
   */
  async #checkFirstVersion(versions: FileVersions, temporary: TemporaryFile): Promise<void> {
    const first = await versions.openFirst();
    await first?.close();
    if (first?.etag === temporary.etag) return;
    await versions.markPlainFile();
    throw new StorageError(
      versions.key,
      'unknown',
      'Others replaced or deleted the object while it was created. Read it to see what became of the write.',
    );
  }

  /** Deletes one object. Returns the folder that must be synced for it, even if another process removed the file. */
  async #deleteOne(versions: FileVersions): Promise<string | undefined> {
    const { system, temporaries } = this.#context;
    for (let rewrites = 0; rewrites <= MAX_REWRITES; rewrites++) {
      if ((await versions.settle()) === 0) {
        const removed = await system.remove(versions.plainPath);
        if ((await versions.settle()) === 0) {
          return removed || (await system.status(versions.parent)) !== undefined ? versions.parent : undefined;
        }
      }
      const current = await this.#open(versions, false);
      await current?.close();
      if (current === undefined) return undefined;
      const content = { kind: 'deleted', key: versions.key, body: new Uint8Array() } as const;
      const tombstone = await temporaries.write(versions.parent, content);
      const attempt: Attempt = { mayBeVisible: false };
      try {
        if ((await versions.append(tombstone, 'present', attempt)) !== 'swept') return undefined;
      } finally {
        if (!attempt.mayBeVisible) await temporaries.discard(tombstone.path);
      }
    }
    throw new StorageError(versions.key, 'none', 'The folder was removed again and again. Try again.');
  }
}

/** Returns all bytes of a stream. */
async function wholeOf(key: string, body: PutBody, signal: AbortSignal | undefined): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of readBody(key, body, signal)) {
    chunks.push(Uint8Array.from(chunk));
    length += chunk.length;
    checkWholeBytes(key, length);
  }
  return Buffer.concat(chunks);
}

function foreignJournal(folder: string, outcome: RequestOutcome = 'none'): StorageError {
  return new StorageError(
    folder,
    outcome,
    `The folder ${folder} has a journal, which was made on a local file system of Linux, and this process cannot append to it ` +
      'safely here. Copy the folder back to such a file system, or take a backup there and restore it here.',
  );
}

function remember<Value>(map: Map<string, Value>, name: string, value: Value): void {
  if (map.size >= MAX_REMEMBERED && !map.has(name)) map.clear();
  map.set(name, value);
}
