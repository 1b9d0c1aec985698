/** A journal as far as this process has read it. */
import type { PutCondition } from '../contract/driver.ts';
import type { FileStatus, ReadableFile } from './file-system.ts';
import { journalName } from './journal-names.ts';
import { bodyOffset, decodeRecord, findRecord, isDamaged, JOURNAL_HEADER_BYTES } from './journal-records.ts';
import type { EndReason, JournalHeader, JournalRecord, WriterView } from './journal-records.ts';
import { damaged } from './stored-file.ts';

/** An object of a journal. */
export interface JournalEntry {
  readonly name: string;
  readonly etag: string;
  readonly timeMs: number;
  readonly sizeBytes: number;
  /** The file that has its bytes, in the folder, and their offset there. */
  readonly file: string;
  readonly at: number;
  /** End of the record in the journal: it is durable once the journal is synced up to here. */
  readonly recordEnd: number;
}

/** An object that was in the folder before it had a journal. */
export interface ImportedObject {
  readonly etag: string;
  readonly timeMs: number;
  readonly sizeBytes: number;
  /** The bytes; undefined if the file with the name of the object has them, from its beginning on. */
  readonly bytes: Uint8Array | undefined;
}

/** All objects of a journal at one time. */
export interface JournalListing {
  /** Differs whenever the objects do. */
  readonly version: string;
  readonly entries: readonly JournalEntry[];
}

const READ_BYTES = 256 * 1024;
/** The smallest unit that a disk writes as a whole. */
const SECTOR_BYTES = 512;

/** Whether a condition holds for an object. */
export function holds(condition: PutCondition, present: JournalEntry | undefined): boolean {
  if (condition === 'any') return true;
  return condition === 'absent' ? present === undefined : present?.etag === condition.etag;
}

/** The objects of a journal, and the place up to which it was read. */
export class Replay {
  readonly number: number;
  readonly id: string;
  /** The records before this offset are those that the journal began with. */
  readonly begunTo: number;
  readonly entries: Map<string, JournalEntry> = new Map();
  /** All records before this offset are in `entries`. */
  end: number = JOURNAL_HEADER_BYTES;
  /** Why the journal has ended, if it has: bytes behind `end` are void. */
  ended: EndReason | undefined;
  /** The journal is on stable storage up to here. */
  syncedTo = 0;
  /** The beginning and the end of the last torn bytes that were passed over. */
  #skippedFrom = 0;
  skippedTo = 0;
  /** The sync that runs. */
  syncing: Promise<void> | undefined;
  /** The error of a sync. A later sync may succeed without having written the bytes that this one could not. */
  failure: { readonly error: unknown } | undefined;
  /** ETags of records of this process that were not read back yet, and then whether they were applied. */
  readonly outcomes: Map<string, boolean | undefined> = new Map();
  readonly #path: string;
  readonly #sectorBytes: number;

  constructor(folder: string, number: number, header: JournalHeader, sectorBytes: number = SECTOR_BYTES) {
    this.number = number;
    this.id = header.id;
    this.begunTo = header.begunTo;
    this.#path = folder + journalName(number);
    this.#sectorBytes = sectorBytes;
  }

  /** Name of the file. */
  get file(): string {
    return journalName(this.number);
  }

  /** Reads on from where the last read ended. `sizeBytes`: what the file had at the last look. */
  async catchUp(file: ReadableFile, { sizeBytes }: FileStatus): Promise<void> {
    let wanted = READ_BYTES;
    while (this.ended === undefined && this.end < sizeBytes) {
      const buffer = new Uint8Array(Math.min(sizeBytes - this.end, wanted));
      const bytes = buffer.subarray(0, await file.read(buffer, this.end));
      const before = this.end;
      this.#applyWhole(bytes);
      if (this.ended !== undefined) break;
      if (this.end > before) wanted = READ_BYTES;
      // A record may be larger than the part that was read.
      else if (bytes.length === wanted && before + wanted < sizeBytes) wanted *= 4;
      else if (!(await this.#skipTorn(file, bytes))) break;
    }
    if (this.end < this.begunTo) throw damaged(this.#path, this.#path);
  }

  /** Applies records that this process has appended, at the place up to which it had read the journal. */
  applyOwn(records: readonly JournalRecord[], encoded: readonly Uint8Array[]): void {
    for (const [i, record] of records.entries()) {
      const { length } = encoded[i] as Uint8Array;
      const bodyAt = this.end + bodyOffset(record, length);
      this.end += length;
      const isApplied = this.#apply(record, bodyAt);
      if (this.outcomes.has(record.etag)) this.outcomes.set(record.etag, isApplied);
    }
  }

  /**
   * Goes on behind records that are torn, because their process was killed or the power failed. They are torn, and not still being
   * written, if there is a whole record behind them: the system appends one record after the other. False if there is none yet.
   */
  async #skipTorn(file: ReadableFile, bytes: Uint8Array): Promise<boolean> {
    const from = this.end;
    const length = findRecord(this.id, bytes);
    // They were read before the whole record behind them, so they are read once more.
    const again = new Uint8Array(length ?? bytes.length);
    const gap = again.subarray(0, await file.read(again, from));
    this.#applyWhole(gap);
    if (this.ended !== undefined || this.end > from) return true;
    if (from < this.begunTo || isDamaged(this.id, gap, from, this.#sectorBytes)) throw damaged(this.#path, this.#path);
    if (length === undefined) return false;
    this.#skippedFrom = from;
    this.skippedTo = from + length;
    this.end = this.skippedTo;
    return true;
  }

  /** Applies the whole records at the beginning of `bytes`, which are the bytes of the journal from `end` on. */
  #applyWhole(bytes: Uint8Array): void {
    for (let at = 0; this.ended === undefined; ) {
      const decoded = decodeRecord(this.id, bytes.subarray(at));
      if (decoded === undefined) return;
      if (this.#isKnownWhole(decoded.seen)) throw damaged(this.#path, this.#path);
      const bodyAt = this.end + decoded.bodyAt;
      at += decoded.length;
      this.end += decoded.length;
      const isApplied = this.#apply(decoded.record, bodyAt);
      if (this.outcomes.has(decoded.record.etag)) this.outcomes.set(decoded.record.etag, isApplied);
    }
  }

  /** Whether the writer of a record had synced whole records where this process has passed over bytes as torn. */
  #isKnownWhole({ syncedTo, skippedTo }: WriterView): boolean {
    return this.skippedTo > skippedTo && syncedTo > Math.max(this.#skippedFrom, skippedTo);
  }

  #apply({ kind, name, etag, condition, timeMs, sizeBytes, body }: JournalRecord, bodyAt: number): boolean {
    if (kind === 'end') {
      this.ended = name === 'full' ? 'full' : 'copied';
      return true;
    }
    if (kind === 'delete') return this.entries.delete(name);
    if (!holds(condition, this.entries.get(name))) return false;
    const [file = '', offset] = kind === 'file' ? Buffer.from(body).toString('latin1').split(' ') : [this.file];
    const at = kind === 'file' ? Number(offset) : bodyAt;
    this.entries.set(name, { name, etag, timeMs, sizeBytes, file, at, recordEnd: this.end });
    return true;
  }
}

/** Returns the names of the files that have the bytes of objects. */
export function filesOf({ entries }: Replay): Set<string> {
  const files = new Set<string>();
  for (const { file } of entries.values()) files.add(file);
  return files;
}

/** Encodes the file and the offset of an object's bytes. */
export function reference(file: string, at: number): Uint8Array {
  return Buffer.from(`${file} ${at}`, 'latin1');
}
