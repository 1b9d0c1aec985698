/**
 * Lists the keys of a `FileDriver`: walks over the folders that can hold keys of the page, in the order of keys.
 *
 * The names of a folder are sorted as the keys that they stand for, so that whole folders can be skipped. Every name stands for
 * one key or for all keys with one prefix, and no such prefix is a prefix of another.
 */
import { compareStrings } from '../../base/bytes.ts';
import type { Environment } from '../../base/env.ts';
import type { ListEntry, ListPage } from '../contract/driver.ts';
import { folderOfPrefix, fromByteString, isNumbered, parseName, TEMPORARY_MARK, toByteString } from './file-names.ts';
import type { FileSystem } from './file-system.ts';
import type { FolderJournal } from './folder-journal.ts';
import type { Folders } from './folders.ts';
import type { JournalEntry } from './journal-replay.ts';
import { TRAILER_BYTES } from './stored-file.ts';
import type { TemporaryFiles, StoredFile } from './stored-file.ts';

/** A name in a folder that stands for a key, or for all keys with one prefix. */
interface ListedItem {
  readonly kind: 'object' | 'versions' | 'folder' | 'continued' | 'journal';
  /** The object, if it is in the journal of the folder. */
  readonly entry?: JournalEntry;
  /** The key as a byte string, or the prefix of all keys in the folder. */
  readonly bytes: string;
  /** The name in the folder. */
  readonly name: string;
}

/** The names of a folder, sorted, as they were when it last changed. */
export interface ListedFolder {
  readonly path: string;
  readonly changedNs: bigint;
  /** The version of the journal; undefined if the folder had none. */
  readonly journal: string | undefined;
  readonly items: readonly ListedItem[];
}

/** The state that the parts of a `FileDriver` share. */
export interface FileContext {
  readonly system: FileSystem;
  readonly environment: Environment;
  readonly folders: Folders;
  readonly temporaries: TemporaryFiles;
  /** Old versions are removed when there are this many. */
  readonly keptVersions: number;
  /** The large folder that was listed last. */
  readonly lastListed: { folder?: ListedFolder };
  /** Returns the journal of a folder, which may have none yet. */
  readonly journalOf: (folder: string) => FolderJournal;
}

/** The names of larger folders are remembered from one page to the next. */
const LARGE_FOLDER_NAMES = 2000;
/** A folder that changed this recently may change again with the same time of change, because clocks have ticks. */
const TICK_MS = 2000;

/** Lists one page. Made for one call. */
export class FileListing {
  readonly #context: FileContext;
  readonly #root: string;
  readonly #openObject: (key: string) => Promise<StoredFile | undefined>;
  readonly #entries: ListEntry[] = [];
  #prefix = '';
  #after: string | undefined;
  #wanted = 0;

  constructor(context: FileContext, root: string, openObject: (key: string) => Promise<StoredFile | undefined>) {
    this.#context = context;
    this.#root = root;
    this.#openObject = openObject;
  }

  async page(prefix: string, after: string | undefined, limit: number): Promise<ListPage> {
    this.#prefix = toByteString(prefix);
    this.#after = after === undefined ? undefined : toByteString(after);
    // One entry more than the page holds shows whether more follow.
    this.#wanted = limit + 1;
    const start = folderOfPrefix(prefix);
    await this.#visit(this.#root + start.folder, start.bytes);
    const more = this.#entries.length > limit;
    if (!more) delete this.#context.lastListed.folder;
    return { entries: more ? this.#entries.slice(0, limit) : this.#entries, more };
  }

  get #isFull(): boolean {
    return this.#entries.length >= this.#wanted;
  }

  /** Adds the entries of a folder, whose keys all begin with `beginning`. */
  async #visit(folder: string, beginning: string): Promise<void> {
    const items = (await this.#items(folder, beginning)).filter((item) => this.#concerns(item));
    let synced = false;
    for (let i = 0; i < items.length && !this.#isFull; i++) {
      const item = items[i] as ListedItem;
      if (item.kind === 'folder' || item.kind === 'continued') {
        await this.#visit(`${folder}${item.name}/`, item.bytes);
        continue;
      }
      // An object with versions has two names here.
      const isVersioned = item.kind === 'versions' || items[i + 1]?.bytes === item.bytes;
      if (items[i + 1]?.bytes === item.bytes) i++;
      const needsSync = await this.#add(item, folder, isVersioned);
      if (!needsSync || synced) continue;
      // The writer may not have synced this write yet: it must be durable before it is listed.
      await this.#context.folders.sync(folder);
      synced = true;
    }
  }

  /** Returns all names in the folder, in the order of keys. */
  async #items(folder: string, beginning: string): Promise<readonly ListedItem[]> {
    const { system, environment, temporaries, lastListed, journalOf } = this.#context;
    const nowMs = environment.now();
    const changedNs = await system.folderChangedNs(folder);
    const last = lastListed.folder;
    // Sorting a large folder takes far longer than reading a page of it, so the pages after the first reuse the sorted names.
    const mayBeSame =
      last?.path === folder && last.changedNs === changedNs && this.#after?.startsWith(beginning) === true;
    const names = mayBeSame ? [] : ((await system.readFolder(folder)) ?? []);
    // After the names: if there is no journal by now, it has taken none of them in.
    const listed = await journalOf(folder).list(mayBeSame ? last.journal : undefined);
    const journal = listed === 'none' ? undefined : listed.version;
    if (mayBeSame) {
      if (last.journal === journal) return last.items;
      delete lastListed.folder;
      return this.#items(folder, beginning);
    }
    const items: ListedItem[] = [];
    const unfinished: string[] = [];
    for (const entry of listed === 'none' ? [] : (listed.entries ?? [])) {
      items.push({ kind: 'journal', bytes: beginning + entry.name, name: entry.name, entry });
    }
    for (const name of names) {
      const parsed = parseName(name);
      // The journal has the object, or another object that replaced it.
      if (journal !== undefined && isNumbered(name.replace(/\+$/, ''))) continue;
      if (parsed !== undefined) items.push({ kind: parsed.kind, bytes: beginning + parsed.bytes, name });
      else if (name.startsWith(TEMPORARY_MARK)) unfinished.push(name);
    }
    items.sort((a, b) => compareStrings(a.bytes, b.bytes));
    if (unfinished.length > 0) await temporaries.sweep(folder, unfinished);
    const isQuiet = changedNs !== undefined && Number(changedNs / 1_000_000n) < nowMs - TICK_MS;
    if (items.length > LARGE_FOLDER_NAMES && isQuiet) lastListed.folder = { path: folder, changedNs, journal, items };
    return items;
  }

  /** Whether this name can stand for keys of the page. */
  #concerns(item: ListedItem): boolean {
    const { bytes } = item;
    const after = this.#after;
    if (item.kind === 'object' || item.kind === 'versions' || item.kind === 'journal') {
      return bytes.startsWith(this.#prefix) && (after === undefined || compareStrings(bytes, after) > 0);
    }
    if (!bytes.startsWith(this.#prefix) && !this.#prefix.startsWith(bytes)) return false;
    return after === undefined || compareStrings(bytes, after) > 0 || after.startsWith(bytes);
  }

  /** Adds the object if it still exists. Resolves with true if its write may not be durable yet. */
  async #add(item: ListedItem, folder: string, isVersioned: boolean): Promise<boolean> {
    const key = fromByteString(item.bytes);
    if (key === undefined) return false;
    if (item.entry !== undefined) {
      this.#entries.push({ key, sizeBytes: item.entry.sizeBytes, lastModifiedMs: item.entry.timeMs });
      return false;
    }
    const status = isVersioned ? undefined : await this.#context.system.status(folder + item.name);
    // A file of the trailer's size is an empty object, or the mark of an object that was just replaced.
    if (status !== undefined && status.sizeBytes > TRAILER_BYTES) {
      const { lastModifiedMs } = status;
      this.#entries.push({ key, sizeBytes: status.sizeBytes - TRAILER_BYTES, lastModifiedMs });
      return status.linkCount > 1;
    }
    const file = await this.#openObject(key);
    if (file === undefined) return false;
    await file.close();
    this.#entries.push({ key, sizeBytes: file.sizeBytes, lastModifiedMs: file.lastModifiedMs });
    return false;
  }
}
