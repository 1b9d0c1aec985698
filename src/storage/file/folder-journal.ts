/**
 * The journal of a folder: one file to which all processes append the changes of the objects whose names are numbers, such as commits.
 * The order of the records decides which of several puts wins, so a put takes one append and one sync. docs/drivers.md explains why
 * that is safe with any pauses, deaths and losses of power.
 */
import { messageOf } from '../../base/brands.ts';
import { joinBytes } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import { StorageError } from '../../base/errors.ts';
import { newId } from '../../base/ids.ts';
import { itemsInStep, Pacer, withPauses } from '../../base/pacer.ts';
import type { PutCondition } from '../contract/driver.ts';
import { checkNotAborted } from '../contract/requests.ts';
import { isNumbered } from './file-names.ts';
import { isRefusal } from './file-system.ts';
import type { AppendableFile, FileStatus, ReadableFile } from './file-system.ts';
import type { JournalContext } from './journal-context.ts';
import type { JournalHandle } from './journal-handles.ts';
import { encodeJournal, encodeRecord, JOURNAL_HEADER_BYTES, plainRecord } from './journal-records.ts';
import type { EndReason, JournalRecord } from './journal-records.ts';
import { BODY_NAME, bodyName, JOURNAL_NAME, journalName, MARKER, numberOf, TOKEN_PREFIX } from './journal-names.ts';
import { filesOf, holds, reference, Replay } from './journal-replay.ts';
import type { JournalEntry, JournalListing } from './journal-replay.ts';
import { damaged } from './stored-file.ts';
import type { Attempt } from './stored-file.ts';

const MAX_BODY_BYTES = 64 * 1024;
const MAX_GROWTH_BYTES = 4 * 1024 * 1024;
const MAX_ATTEMPTS = 1000;

interface Opened {
  readonly handle: JournalHandle;
  readonly file: AppendableFile;
  readonly replay: Replay;
}

/** The journal of one folder. */
export class FolderJournal {
  readonly #context: JournalContext;
  /** The folder; ends with a slash. */
  readonly #folder: string;
  #replay: Replay | undefined;
  /** The journal of which this process knows that its name is durable. */
  #durableId: string | undefined;
  /** Whether files of earlier journals may have to be removed. */
  #isCleaningDue = true;
  #appends: Promise<boolean> | undefined;
  /** Reads of the journal and appends run one after the other, so that each sees the journal as the one before has left it. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(context: JournalContext, folder: string) {
    this.#context = context;
    this.#folder = folder;
  }

  /** Whether the folder, which must exist, is on a file system on which processes can share a journal. */
  mayAppend(): Promise<boolean> {
    this.#appends ??= this.#context.system.appendsInOneStep(this.#folder);
    return this.#appends;
  }

  /** Whether the folder has, or gets, a journal. */
  async isMarked(): Promise<boolean> {
    return this.#replay !== undefined || (await this.#context.system.status(this.#folder + MARKER)) !== undefined;
  }

  /** Whether the folder has a journal. */
  async isThere(): Promise<boolean> {
    return this.#replay !== undefined || ((await this.isMarked()) && (await this.#numbers()).length > 0);
  }

  /**
   * Calls `use` with the entry of an object, durable, and the file of its bytes. Undefined if there is no such object; `none` if the
   * folder has no journal.
   */
  async read<R>(
    name: string,
    use: (entry: JournalEntry, file: ReadableFile) => Promise<R>,
  ): Promise<R | undefined | 'none'> {
    let missing: JournalEntry | undefined;
    for (;;) {
      const result = await this.#inJournal(
        'read',
        async ({ replay }) => replay.entries.get(name) ?? 'missing',
        async ({ file, replay }, entry) => {
          if (entry === 'missing') return undefined;
          await this.#sync(file, replay, entry.recordEnd);
          if (entry.file === replay.file) return { value: await use(entry, file) };
          const other = await this.#context.system.open(this.#folder + entry.file);
          if (other === undefined) {
            if (missing?.etag === entry.etag && missing.file === entry.file)
              throw damaged(name, this.#folder + entry.file);
            // It was deleted just now, or is in another file.
            missing = entry;
            return 'again';
          }
          try {
            return { value: await use(entry, other) };
          } finally {
            await other.close();
          }
        },
      );
      if (result === 'again') continue;
      return typeof result === 'object' ? result.value : result;
    }
  }

  /** Returns all objects, durable, or the version if it is the one that the caller knows; `none` if the folder has no journal. */
  list(known?: string): Promise<JournalListing | { readonly version: string; readonly entries?: undefined } | 'none'> {
    return this.#inJournal(
      'read',
      async ({ replay }) => {
        const version = `${replay.id}-${replay.end}`;
        return {
          end: replay.end,
          listing: version === known ? { version } : { version, entries: [...replay.entries.values()] },
        };
      },
      async ({ file, replay }, { end, listing }) => {
        await this.#sync(file, replay, end);
        return listing;
      },
    );
  }

  /** Puts an object if the condition holds. Returns its ETag; undefined if the condition does not hold, durably. */
  async put(name: string, body: Uint8Array, condition: PutCondition, attempt: Attempt): Promise<string | undefined> {
    const { environment, policy } = this.#context;
    const isLarge = body.length > (policy.maxBodyBytes ?? MAX_BODY_BYTES);
    const files = new Set<string>();
    let kept: string | undefined;
    try {
      const outcome = await this.#inJournal(
        'write',
        async (opened) => {
          const { replay } = opened;
          checkNotAborted(name, attempt.signal);
          if (!holds(condition, replay.entries.get(name))) return { end: replay.end };
          const etag = newId(environment, 8);
          const base = { name, etag, condition, timeMs: environment.now(), sizeBytes: body.length };
          let record: JournalRecord = { ...base, kind: 'put', body };
          if (isLarge) {
            const large = bodyName(replay.number, etag);
            files.add(large);
            await this.#writeBody(large, body);
            record = { ...base, kind: 'file', body: reference(large, 0) };
          }
          const isApplied = await this.#append(opened, [record], attempt);
          return isApplied === undefined ? 'ended' : { end: replay.end, written: isApplied ? etag : undefined };
        },
        async ({ file, replay }, { end, written }) => {
          await this.#sync(file, replay, end);
          attempt.mayBeVisible = false;
          if (written !== undefined) kept = bodyName(replay.number, written);
          return { written };
        },
      );
      return outcome === 'none' ? undefined : outcome.written;
    } finally {
      if (!attempt.mayBeVisible) {
        for (const file of files) if (file !== kept) await this.#remove(file);
      }
    }
  }

  /** Deletes objects, durably. Names without an object are ignored. */
  async delete(names: readonly string[]): Promise<void> {
    const { environment } = this.#context;
    await this.#inJournal(
      'write',
      async (opened) => {
        const { replay } = opened;
        const deleted = names.flatMap((name) => replay.entries.get(name) ?? []);
        const records = deleted.map(({ name }) =>
          plainRecord('delete', name, newId(environment, 8), environment.now()),
        );
        const attempt: Attempt = { mayBeVisible: false };
        if (records.length > 0 && (await this.#append(opened, records, attempt)) === undefined) return 'ended';
        const unused = new Set(deleted.map((entry) => entry.file));
        unused.delete(replay.file);
        if (unused.size > 0) for (const entry of replay.entries.values()) unused.delete(entry.file);
        return { end: replay.end, unused };
      },
      async ({ file, replay }, { end, unused }) => {
        await this.#sync(file, replay, end);
        if (unused.size > 0) await this.#removeUnused([...unused]);
      },
    );
  }

  /**
   * Makes the folder hold no bytes of objects that were deleted or replaced: ends the journal, and removes all files to which the next
   * one does not refer. Returns the names of the files that are in use; undefined if the folder has no journal.
   */
  async forget(): Promise<ReadonlySet<string> | undefined> {
    if (!(await this.isThere())) return undefined;
    let begunIn: number | undefined;
    const used = await this.#inJournal(
      'write',
      async (opened) => {
        const { replay } = opened;
        const first = (begunIn ??= replay.number);
        const files = filesOf(replay);
        const isOld = (file: string): boolean => (numberOf(JOURNAL_NAME, file) ?? Number.POSITIVE_INFINITY) <= first;
        if (replay.number > first && ![...files].some(isOld)) return { end: replay.end, files };
        // Another process may end it first, and for another reason: then the next journal may refer to this one, and ends as well.
        await this.#end(opened, 'copied');
        return 'ended';
      },
      async ({ file, replay }, { end, files }) => {
        await this.#sync(file, replay, end);
        const names = await this.#unused(replay.number, files);
        await this.#prepareRemoval(names);
        for (const name of names) await this.#context.system.remove(this.#folder + name);
        await this.#context.folders.sync(this.#folder);
        return files;
      },
    );
    return used === 'none' ? undefined : used;
  }

  /**
   * Opens the newest journal, reads on in it, and calls `inTurn`, which alone may append to it, and then `after`. Calls both again in
   * the next journal if the journal has ended. `none`: there is no journal, and `access` is `read`.
   */
  async #inJournal<T extends object | string | undefined, R>(
    access: 'read' | 'write',
    inTurn: (opened: Opened) => Promise<T | 'ended'>,
    after: (opened: Opened, value: T) => Promise<R>,
  ): Promise<R | 'none'> {
    const take = (): Promise<{ readonly opened: Opened; readonly value: T } | 'none'> => this.#take(access, inTurn);
    const next = this.#turn.then(take, take);
    this.#turn = next.catch(() => undefined);
    const taken = await next;
    if (taken === 'none') return 'none';
    const { opened, value } = taken;
    let isDone = false;
    try {
      const result = await after(opened, value);
      isDone = true;
      return result;
    } finally {
      await this.#release(opened, isDone);
    }
  }

  /** Ends the use of a journal. It stays open while it is the newest one, and nothing has failed. */
  async #release({ handle, replay }: Opened, isDone: boolean): Promise<void> {
    await this.#context.handles.release(handle, isDone && replay.ended === undefined && this.#replay === replay);
  }

  async #take<T>(
    access: 'read' | 'write',
    inTurn: (opened: Opened) => Promise<T | 'ended'>,
  ): Promise<{ readonly opened: Opened; readonly value: T } | 'none'> {
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      const opened = await this.#openNewest();
      if (opened === undefined) {
        if (access === 'read') return 'none';
        await this.#begin();
        continue;
      }
      let isTaken = false;
      try {
        const result = await this.#use(access, opened, inTurn);
        if (result === 'ended') continue;
        isTaken = true;
        return { opened, value: result };
      } finally {
        if (!isTaken) await this.#release(opened, false);
      }
    }
    throw restless(this.#folder);
  }

  /** Reads on in a journal and calls `inTurn`. Makes the next journal if this one has ended. */
  async #use<T>(
    access: 'read' | 'write',
    opened: Opened,
    inTurn: (opened: Opened) => Promise<T | 'ended'>,
  ): Promise<T | 'ended'> {
    const { replay } = opened;
    const status = await this.#catchUp(opened);
    // Another program restored an earlier state of the folder.
    if (status === undefined || status.sizeBytes < replay.end) {
      this.#replay = undefined;
      return 'ended';
    }
    if (access === 'write') {
      if (replay.failure !== undefined) await this.#end(opened, 'copied');
      else if (status.linkCount > 1) await this.#endIfShared(opened);
      if (replay.ended === undefined && this.#isCleaningDue) await this.#clean(opened);
    }
    if (replay.ended === undefined) {
      const result = await inTurn(opened);
      if (access === 'read' || result !== 'ended') {
        if (access === 'write') await this.#endIfFull(opened);
        return result;
      }
    }
    try {
      await this.#startNext(opened);
    } catch (error) {
      if (access === 'write' || !isRefusal(error) || (await this.#hasNext(replay))) throw error;
      // This process may only read, or the disk is full: the objects of a journal that has ended are those of the next one, until
      // somebody makes it.
      return await inTurn(opened);
    }
    return 'ended';
  }

  /** Reads on in a journal. Undefined if bytes do not follow the ones read before, so that it must be read from its beginning. */
  async #catchUp({ handle, file, replay }: Opened): Promise<FileStatus | undefined> {
    const { status } = handle;
    const isFirst = replay.end === JOURNAL_HEADER_BYTES;
    try {
      await replay.catchUp(file, status);
      return status;
    } catch (error) {
      if (isFirst) throw error;
      return undefined;
    }
  }

  /** Opens the newest journal; undefined if the folder has none. */
  async #openNewest(): Promise<Opened | undefined> {
    const { handles, folders, policy } = this.#context;
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      let number = this.#replay?.number;
      if (number === undefined) {
        if (!(await this.isMarked())) return undefined;
        number = (await this.#numbers()).at(-1);
        if (number === undefined) return undefined;
      }
      const path = this.#folder + journalName(number);
      const handle = await handles.take(path);
      if (handle === undefined) {
        // It has ended, or another program removed the folder.
        this.#replay = undefined;
        continue;
      }
      try {
        const header = await handle.readHeader();
        if (this.#replay?.id !== header.id) this.#replay = new Replay(this.#folder, number, header, policy.sectorBytes);
        const replay = this.#replay;
        if (this.#durableId !== header.id) await folders.sync(this.#folder);
        this.#durableId = header.id;
        return { handle, file: handle.file, replay };
      } catch (error) {
        await handles.release(handle, false);
        throw error;
      }
    }
    throw restless(this.#folder);
  }

  /**
   * Returns the numbers of the journals, ascending: all but the last have ended. A look is no snapshot: it could miss the newest journal,
   * and the one made after that. Then the newest was removed meanwhile, and its remover has announced that before.
   */
  async #numbers(): Promise<number[]> {
    const { system } = this.#context;
    const removals = async (): Promise<number> => (await system.status(this.#folder + MARKER))?.sizeBytes ?? 0;
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      const before = await removals();
      const names = (await system.readFolder(this.#folder)) ?? [];
      if ((await removals()) !== before) continue;
      return names.flatMap((name) => numberOf(JOURNAL_NAME, name) ?? []).toSorted((a, b) => a - b);
    }
    throw restless(this.#folder);
  }

  /** Whether there is a journal after one. */
  async #hasNext({ number }: Replay): Promise<boolean> {
    return (await this.#numbers()).some((other) => other > number);
  }

  /**
   * Appends records, and reads the journal up to them. Returns whether the last one was applied; undefined if all are void, since the
   * journal has ended before them.
   */
  async #append(opened: Opened, records: readonly JournalRecord[], attempt: Attempt): Promise<boolean | undefined> {
    const { file, replay } = opened;
    const last = (records.at(-1) as JournalRecord).etag;
    const encoded = records.map((record) => encodeRecord(replay.id, record, replay));
    const bytes = encoded.length === 1 ? (encoded[0] as Uint8Array) : joinBytes(encoded);
    replay.outcomes.set(last, undefined);
    try {
      attempt.mayBeVisible = true;
      try {
        await file.append(bytes);
      } catch (error) {
        // A part of a record is none.
        attempt.mayBeVisible = !isRefusal(error);
        throw error;
      }
      await this.#readBack(opened, records, encoded);
      const isApplied = replay.outcomes.get(last);
      if (isApplied === undefined) attempt.mayBeVisible = false;
      return isApplied;
    } finally {
      replay.outcomes.delete(last);
    }
  }

  /**
   * Reads the journal up to records that were just appended. Nobody knows their outcome if that fails. If the file is only as much longer
   * as they are, nobody else has appended to it, and they need not be read.
   */
  async #readBack(
    { handle, file, replay }: Opened,
    records: readonly JournalRecord[],
    encoded: readonly Uint8Array[],
  ): Promise<void> {
    const { outcomes } = replay;
    const ownEnd = encoded.reduce((end, { length }) => end + length, replay.end);
    try {
      const status = await handle.lookAgain();
      if (status.sizeBytes === ownEnd) replay.applyOwn(records, encoded);
      else await replay.catchUp(file, status);
      if (replay.ended === undefined && [...outcomes.values()].includes(undefined)) {
        throw damaged(this.#folder, this.#folder + replay.file);
      }
    } catch (error) {
      throw new StorageError(this.#folder, 'unknown', messageOf(error), { cause: error });
    }
  }

  /** Resolves once the journal is on stable storage up to `end`. Callers at the same time share syncs. */
  async #sync(file: AppendableFile, replay: Replay, end: number): Promise<void> {
    if (this.#context.durability === 'none') return;
    while (replay.syncedTo < end) {
      if (replay.failure !== undefined) throw replay.failure.error;
      if (replay.syncing === undefined) {
        const upTo = replay.end;
        replay.syncing = this.#syncAll(file, replay, upTo);
      }
      await replay.syncing;
    }
  }

  async #syncAll(file: AppendableFile, replay: Replay, upTo: number): Promise<void> {
    try {
      await file.sync();
      replay.syncedTo = Math.max(replay.syncedTo, upTo);
    } catch (error) {
      replay.failure = { error };
      // The system may take bytes for written that it could not write: the next journal has them again.
      await this.#endAfterFailure(file, replay);
      throw error;
    } finally {
      replay.syncing = undefined;
    }
  }

  #endRecord(replay: Replay, reason: EndReason): Uint8Array {
    const { environment } = this.#context;
    return encodeRecord(replay.id, plainRecord('end', reason, newId(environment, 8), environment.now()), replay);
  }

  /** Appends the end although the disk has errors: until it is there, other processes write on. */
  async #endAfterFailure(file: AppendableFile, replay: Replay): Promise<void> {
    for (let attempts = 0; attempts < 3; attempts++) {
      try {
        return await file.append(this.#endRecord(replay, 'copied'));
      } catch {
        // A part of it may be there, behind which another one counts.
      }
    }
  }

  async #end({ file, replay }: Opened, reason: EndReason): Promise<void> {
    if (replay.ended !== undefined) return;
    await file.append(this.#endRecord(replay, reason));
    await replay.catchUp(file, await file.status());
  }

  /** Ends a journal of which another folder has a name too: what is appended here would show there. */
  async #endIfShared(opened: Opened): Promise<void> {
    // Its first name may be left, from a process that was killed when it had made the journal.
    await this.#removeTokens();
    if ((await opened.file.status()).linkCount > 1) await this.#end(opened, 'copied');
  }

  /** Ends a journal that has grown much. The next one has only what is needed of it. */
  async #endIfFull(opened: Opened): Promise<void> {
    const { replay } = opened;
    const { maxGrowthBytes = MAX_GROWTH_BYTES } = this.#context.policy;
    if (replay.ended !== undefined || replay.end - replay.begunTo < Math.max(maxGrowthBytes, replay.begunTo)) return;
    // If that fails, the next process tries.
    await this.#end(opened, 'full').catch(() => undefined);
  }

  /** Makes the first journal of a folder, with the objects that the folder has. */
  async #begin(): Promise<void> {
    const { system, folders, environment, openPlain } = this.#context;
    await folders.ensure(this.#folder.slice(0, -1));
    if (!(await this.isMarked())) {
      await this.#context.fenceOlderReleases(this.#folder);
      try {
        const marker = await system.create(this.#folder + MARKER);
        // Another program removed the folder.
        if (marker === undefined) return folders.forget();
        await marker.close();
      } catch (error) {
        if (!(await this.isMarked())) throw error;
      }
    }
    // From here on nobody creates such an object without a journal.
    await folders.sync(this.#folder);
    if ((await this.#numbers()).length > 0) return;
    const records: JournalRecord[] = [];
    const names = ((await system.readFolder(this.#folder)) ?? []).map((name) => name.replace(/\+$/, ''));
    for (const name of new Set(names)) {
      if (!isNumbered(name)) continue;
      const object = await openPlain(this.#folder, name);
      if (object === undefined) continue;
      const { etag, timeMs, sizeBytes, bytes } = object;
      const base = { name, etag, condition: 'any', timeMs, sizeBytes } as const;
      if (bytes === undefined) records.push({ ...base, kind: 'file', body: reference(name, 0) });
      else records.push({ ...base, kind: 'put', body: bytes });
    }
    // Another process may have made one of these names just now.
    await folders.sync(this.#folder);
    await this.#make(0, newId(environment, 8), records);
  }

  /** Makes the journal after one that has ended, with its objects. */
  async #startNext(opened: Opened): Promise<void> {
    const { replay } = opened;
    if (!(await this.mayAppend()))
      throw Object.assign(new Error('EROFS: a journal cannot be made here'), { code: 'EROFS' });
    if (!(await this.#hasNext(replay))) {
      const records = await this.#recordsOfNext(opened);
      if (records !== undefined) await this.#make(replay.number, newId(this.#context.environment, 8), records);
    }
    this.#replay = undefined;
    this.#isCleaningDue = true;
  }

  /** Returns the records with which the next journal begins; undefined if another process has made that journal. */
  async #recordsOfNext(opened: Opened): Promise<JournalRecord[] | undefined> {
    const { replay } = opened;
    const isWhole = await this.#isWhole(opened);
    const isCopied = ({ file }: JournalEntry): boolean =>
      file === replay.file ? !isWhole : replay.ended !== 'full' && JOURNAL_NAME.test(file);
    const pause = pauses(this.#context.environment);
    const records: JournalRecord[] = [];
    for (const entry of replay.entries.values()) {
      if (records.length % itemsInStep === 0) await pause();
      const { name, etag, timeMs, sizeBytes, file, at } = entry;
      const base = { name, etag, condition: 'any', timeMs, sizeBytes } as const;
      if (!isCopied(entry)) {
        records.push({ ...base, kind: 'file', body: reference(file, at) });
        continue;
      }
      const body = await this.#bytesOf(opened, entry);
      if (body !== undefined) records.push({ ...base, kind: 'put', body });
      else if (await this.#hasNext(replay)) return undefined;
      else throw damaged(name, this.#folder + file);
    }
    return records;
  }

  /** Reads the bytes of an object; undefined if they are not there. */
  async #bytesOf({ replay, file }: Opened, { sizeBytes, file: of, at }: JournalEntry): Promise<Uint8Array | undefined> {
    const bytes = new Uint8Array(sizeBytes);
    const from = of === replay.file ? file : await this.#context.system.open(this.#folder + of);
    if (from === undefined) return undefined;
    try {
      return (await from.read(bytes, at)) === sizeBytes ? bytes : undefined;
    } finally {
      if (from !== file) await from.close();
    }
  }

  /** Whether the next journal may refer to the bytes in this one: they are on stable storage, and worth keeping. */
  async #isWhole({ file, replay }: Opened): Promise<boolean> {
    if (replay.ended !== 'full' || replay.failure !== undefined) return false;
    let live = 0;
    for (const entry of replay.entries.values()) if (entry.file === replay.file) live += entry.sizeBytes;
    if (live * 4 < replay.end) return false;
    try {
      await this.#sync(file, replay, replay.end);
      return true;
    } catch {
      return false;
    }
  }

  /**
   * Makes the journal after the one with a number, durably, unless somebody has made it. Its file has another name first, the token,
   * which is removed before a journal is. So a process that went to sleep here cannot make a journal again that was removed since:
   * see "Replacing" in docs/drivers.md, where the same rule has its proof.
   */
  async #make(previous: number, id: string, records: readonly JournalRecord[]): Promise<void> {
    const { system, environment, folders, durability } = this.#context;
    const token = `${this.#folder}${TOKEN_PREFIX}${newId(environment, 12)}`;
    const file = await system.create(token);
    if (file === undefined) {
      folders.forget();
      return;
    }
    try {
      try {
        await file.write(await withPauses(encodeJournal(id, records), pauses(environment)));
        if (durability === 'fsync') await file.sync();
      } finally {
        await file.close();
      }
      // The token first, then the look.
      if ((await this.#numbers()).some((number) => number > previous)) return;
      await system.link(token, this.#folder + journalName(previous + 1));
    } finally {
      await system.remove(token).catch(() => false);
    }
    await folders.sync(this.#folder);
  }

  /** Removes files that the newest journal, which was read, does not refer to, and that are older than it. */
  async #clean({ file, replay }: Opened): Promise<void> {
    this.#isCleaningDue = false;
    const names = await this.#unused(replay.number, filesOf(replay));
    if (names.length === 0) return;
    // Otherwise the records by which they are not in use could be lost.
    await this.#sync(file, replay, replay.end);
    await this.#removeUnused(names);
  }

  /** Returns the names of the journals before one, and of their large objects, that are not in use. */
  async #unused(before: number, used: ReadonlySet<string>): Promise<string[]> {
    const names = (await this.#context.system.readFolder(this.#folder)) ?? [];
    return names.filter((name) => {
      const number = numberOf(JOURNAL_NAME, name) ?? numberOf(BODY_NAME, name);
      return number !== undefined && number < before && !used.has(name);
    });
  }

  async #removeUnused(names: readonly string[]): Promise<void> {
    try {
      await this.#prepareRemoval(names);
      for (const name of names) await this.#remove(name);
    } catch {
      // Another process removes them.
    }
  }

  /** Announces that files will be removed, if they are journals: a newer one is there. */
  async #prepareRemoval(names: readonly string[]): Promise<void> {
    if (!names.some((name) => JOURNAL_NAME.test(name))) return;
    const marker = await this.#context.system.openToAppend(this.#folder + MARKER);
    try {
      await marker?.append(Uint8Array.of(0x0a));
    } finally {
      await marker?.close();
    }
    // A name of a journal must not become free while somebody may make it.
    await this.#removeTokens();
  }

  async #removeTokens(): Promise<void> {
    const { system } = this.#context;
    for (const name of (await system.readFolder(this.#folder)) ?? []) {
      if (name.startsWith(TOKEN_PREFIX)) await system.remove(this.#folder + name);
    }
  }

  async #remove(name: string): Promise<void> {
    await this.#context.system.remove(this.#folder + name).catch(() => false);
  }

  /** Writes the bytes of a large object into a file of its own, durably. */
  async #writeBody(name: string, bytes: Uint8Array): Promise<void> {
    const { system, folders, durability } = this.#context;
    const file = await system.create(this.#folder + name);
    if (file === undefined) throw restless(name);
    try {
      await file.write(bytes);
      if (durability === 'fsync') await file.sync();
    } finally {
      await file.close();
    }
    await folders.sync(this.#folder);
  }
}

/** Lets the event loop run between steps. */
function pauses(environment: Environment): () => Promise<void> | undefined {
  const pacer = new Pacer(environment);
  return () => (pacer.due() ? pacer.pause() : undefined);
}

function restless(key: string): StorageError {
  return new StorageError(key, 'none', 'Other processes change this folder without a pause. Try again later.');
}
