/**
 * Journals that stay open between two uses. A use then takes one look at the name, to see whether it still means the same file, in
 * place of opening, reading and closing it.
 */
import type { Environment, Timer } from '../../base/env.ts';
import type { AppendableFile, FileStatus, FileSystem } from './file-system.ts';
import { decodeJournalHeader, JOURNAL_HEADER_BYTES } from './journal-records.ts';
import type { JournalHeader } from './journal-records.ts';
import { damaged } from './stored-file.ts';

/** Most files that stay open. */
const MAX_KEPT = 64;
/** A file that was not used from one look to the next is closed. */
const LOOK_MS = 1000;

/** An open journal. */
export class JournalHandle {
  readonly path: string;
  readonly file: AppendableFile;
  /** The header, if it was read since another program may have changed the file. */
  header: JournalHeader | undefined;
  /** The file as it was last seen. */
  status: FileStatus;
  /** How many requests use it now. */
  uses = 1;
  /** Whether it was used since the last look. */
  isBusy = true;
  /** Whether it must be closed after its use. */
  isDropped = false;

  constructor(path: string, file: AppendableFile, status: FileStatus) {
    this.path = path;
    this.file = file;
    this.status = status;
  }

  /** Returns the header, and reads it if it may have changed. */
  async readHeader(): Promise<JournalHeader> {
    if (this.header !== undefined) return this.header;
    const bytes = new Uint8Array(JOURNAL_HEADER_BYTES);
    this.header = decodeJournalHeader(bytes.subarray(0, await this.file.read(bytes, 0)));
    if (this.header === undefined) throw damaged(this.path, this.path);
    return this.header;
  }

  /** Looks at the file after an append. What this process appended does not change the header. */
  async lookAgain(): Promise<FileStatus> {
    this.status = await this.file.status();
    return this.status;
  }
}

/** Whether a name still means the file. */
function isSameFile(a: FileStatus, b: FileStatus): boolean {
  return a.inode === b.inode && a.device === b.device;
}

/** Opens journals, and keeps them open for some time. */
export class JournalHandles {
  readonly #system: FileSystem;
  readonly #environment: Environment;
  readonly #kept = new Map<string, JournalHandle>();
  #timer: Timer | undefined;

  constructor(system: FileSystem, environment: Environment) {
    this.#system = system;
    this.#environment = environment;
  }

  /** Opens the file that has a name now, or returns it if it is open; undefined if there is none. */
  async take(path: string): Promise<JournalHandle | undefined> {
    const kept = this.#kept.get(path);
    if (kept !== undefined) {
      kept.uses++;
      kept.isBusy = true;
      const status = await this.#system.status(path).catch(() => undefined);
      if (status !== undefined && isSameFile(status, kept.status)) {
        const { sizeBytes, lastModifiedMs } = kept.status;
        // Others have appended to it, or a program has written another journal over it.
        if (status.sizeBytes !== sizeBytes || status.lastModifiedMs !== lastModifiedMs) kept.header = undefined;
        kept.status = status;
        return kept;
      }
      await this.release(kept, false);
    }
    const file = await this.#system.openToAppend(path);
    if (file === undefined) return undefined;
    try {
      return new JournalHandle(path, file, await file.status());
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Ends a use. The file stays open if `isWorthKeeping`; otherwise it is closed once nobody uses it. */
  async release(handle: JournalHandle, isWorthKeeping: boolean): Promise<void> {
    const { path } = handle;
    handle.uses--;
    if (!isWorthKeeping) handle.isDropped = true;
    const other = this.#kept.get(path);
    if (handle.isDropped && other === handle) this.#kept.delete(path);
    if (!handle.isDropped && other === undefined && handle.header !== undefined) this.#keep(handle);
    if (handle.uses === 0 && this.#kept.get(path) !== handle) await handle.file.close();
  }

  #keep(handle: JournalHandle): void {
    if (this.#kept.size >= MAX_KEPT) void Promise.all(this.#closeWhere(() => this.#kept.size >= MAX_KEPT));
    this.#kept.set(handle.path, handle);
    this.#timer ??= this.#environment.setTimer(() => this.#look(), LOOK_MS, { background: true });
  }

  /** Closes all files that nobody uses, and the others after their use. */
  async close(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    await Promise.all(this.#closeWhere(() => true));
  }

  #look(): void {
    this.#timer = undefined;
    void Promise.all(this.#closeWhere(({ isBusy, uses }) => !isBusy && uses === 0));
    for (const handle of this.#kept.values()) handle.isBusy = false;
    if (this.#kept.size > 0)
      this.#timer = this.#environment.setTimer(() => this.#look(), LOOK_MS, { background: true });
  }

  #closeWhere(isDue: (handle: JournalHandle) => boolean): Promise<void>[] {
    const closing: Promise<void>[] = [];
    for (const handle of this.#kept.values()) {
      if (!isDue(handle)) continue;
      this.#kept.delete(handle.path);
      handle.isDropped = true;
      // A failure to close a file that is on the disk says nothing about it.
      if (handle.uses === 0) closing.push(handle.file.close().catch(() => undefined));
    }
    return closing;
  }
}
