/**
 * The bytes of a journal: a header of 40 bytes, and records behind each other. Numbers are little-endian.
 *
 *     0   "sdbj"                       24  offset behind the records that the journal began with, float64
 *     4   format, u32                  32  checksum of the bytes before
 *     8   id, 16 hexadecimal digits    36  zeros
 *
 * A record has a header of 72 bytes, then the name and the body, and a trailer of 12 bytes:
 *
 *     0   "sdbr"                       24  time, milliseconds since 1970, float64
 *     4   checksum of bytes 12 to 71   32  ETag, 8 bytes
 *     8   checksum of name and body    40  ETag of the condition, 8 bytes
 *     12  kind                         48  bytes of the object, float64
 *     13  condition                    56  the writer knew the journal to be durable up to here, float64
 *     14  bytes of the name, u16       64  the writer passed over torn bytes up to here, float64
 *     16  bytes of the body, u32
 *     20  zeros                        0   "sdbt"
 *                                      4   bytes of the record, u32
 *                                      8   checksum of the bytes of the record
 *
 * The checksums cover the id of the journal too, which nobody can know beforehand. So bytes of an object that look like a record do
 * not pass for one. The trailer says that a record was appended to its end, even if nothing else of it can be read.
 */
import { checksum, encodeUtf8, readLatin1 } from '../../base/bytes.ts';
import { mapped } from '../../base/pacer.ts';
import type { Steps } from '../../base/pacer.ts';
import type { PutCondition } from '../contract/driver.ts';

/**
 * `put`: an object whose bytes are in the record; `file`: an object whose bytes are in another file, of which the body has the name
 * and the offset; `delete`; `end`: the journal ends here, for the reason in the name, and records behind it are void.
 */
export type RecordKind = 'put' | 'file' | 'delete' | 'end';

/**
 * The reason for the end of a journal. `full`: its bytes are whole, so the next journal may refer to them. `copied`: the file must not
 * be used any more, because a sync failed, another folder has it too, or its bytes must be forgotten. The next journal refers to no other.
 */
export type EndReason = 'full' | 'copied';

/** A change of an object, as a journal holds it. */
export interface JournalRecord {
  readonly kind: RecordKind;
  /** Name of the object in its folder. */
  readonly name: string;
  /** ETag of the object; for other kinds any unique 16 hexadecimal digits. */
  readonly etag: string;
  readonly condition: PutCondition;
  readonly timeMs: number;
  readonly sizeBytes: number;
  readonly body: Uint8Array;
}

/** The journal as the writer of a record knew it. */
export interface WriterView {
  /** The journal was on stable storage up to here. */
  readonly syncedTo: number;
  /** The end of the last torn bytes that the writer has passed over; 0 if there were none. */
  readonly skippedTo: number;
}

/** A record in a journal. */
export interface DecodedRecord {
  readonly record: JournalRecord;
  readonly seen: WriterView;
  /** The offset of the body in the record. */
  readonly bodyAt: number;
  readonly length: number;
}

/** The header of a journal. */
export interface JournalHeader {
  readonly id: string;
  /** The records before this offset are those that the journal began with. */
  readonly begunTo: number;
}

export const JOURNAL_HEADER_BYTES = 40;
const RECORD_HEADER_BYTES = 72;
const RECORD_TRAILER_BYTES = 12;
const JOURNAL_MAGIC = Buffer.from('sdbj', 'latin1').readUInt32LE();
const RECORD_MAGIC_TEXT = 'sdbr';
const RECORD_MAGIC = Buffer.from(RECORD_MAGIC_TEXT, 'latin1').readUInt32LE();
const TRAILER_MAGIC_TEXT = 'sdbt';
const TRAILER_MAGIC = Buffer.from(TRAILER_MAGIC_TEXT, 'latin1').readUInt32LE();
const FORMAT = 1;
const KINDS: readonly RecordKind[] = ['put', 'file', 'delete', 'end'];
const CONDITIONS = ['any', 'absent', 'etag'] as const;
const NO_ETAG = '0'.repeat(16);
const NOTHING_SEEN: WriterView = { syncedTo: 0, skippedTo: 0 };

/** Encodes a journal that begins with records, in steps: a long log has many of them. */
export function* encodeJournal(id: string, records: readonly JournalRecord[]): Steps<Uint8Array> {
  const encoded = yield* mapped(records, (record) => encodeRecord(id, record));
  const header = Buffer.alloc(JOURNAL_HEADER_BYTES);
  header.writeUInt32LE(JOURNAL_MAGIC, 0);
  header.writeUInt32LE(FORMAT, 4);
  header.write(id, 8, 'latin1');
  const begunTo = encoded.reduce((sum, bytes) => sum + bytes.length, JOURNAL_HEADER_BYTES);
  header.writeDoubleLE(begunTo, 24);
  header.writeUInt32LE(checksum(header.subarray(0, 32)), 32);
  return Buffer.concat([header, ...encoded], begunTo);
}

/** Decodes the header of a journal; undefined if the bytes are none. */
export function decodeJournalHeader(bytes: Uint8Array): JournalHeader | undefined {
  const view = viewOf(bytes);
  if (bytes.length < JOURNAL_HEADER_BYTES || view.readUInt32LE(0) !== JOURNAL_MAGIC) return undefined;
  if (view.readUInt32LE(4) !== FORMAT || view.readUInt32LE(32) !== checksum(bytes.subarray(0, 32))) return undefined;
  return { id: readLatin1(bytes, 8, 24), begunTo: view.readDoubleLE(24) };
}

/** Returns a record that is no put. */
export function plainRecord(kind: 'delete' | 'end', name: string, etag: string, timeMs: number): JournalRecord {
  return { kind, name, etag, condition: 'any', timeMs, sizeBytes: 0, body: new Uint8Array() };
}

/** Encodes a record for the journal with an id. */
export function encodeRecord(id: string, record: JournalRecord, seen: WriterView = NOTHING_SEEN): Uint8Array {
  const { kind, name, etag, condition, timeMs, sizeBytes, body } = record;
  const key = encodeUtf8(name);
  const end = RECORD_HEADER_BYTES + key.length + body.length;
  const bytes = Buffer.allocUnsafe(end + RECORD_TRAILER_BYTES);
  const isEtag = typeof condition === 'object';
  const seed = seedOf(id);
  bytes.writeUInt32LE(RECORD_MAGIC, 0);
  bytes[12] = KINDS.indexOf(kind);
  bytes[13] = CONDITIONS.indexOf(isEtag ? 'etag' : condition);
  bytes.writeUInt16LE(key.length, 14);
  bytes.writeUInt32LE(body.length, 16);
  bytes.writeUInt32LE(0, 20);
  bytes.writeDoubleLE(timeMs, 24);
  writeHex(bytes, 32, etag);
  writeHex(bytes, 40, isEtag ? condition.etag : NO_ETAG);
  bytes.writeDoubleLE(sizeBytes, 48);
  bytes.writeDoubleLE(seen.syncedTo, 56);
  bytes.writeDoubleLE(seen.skippedTo, 64);
  bytes.set(key, RECORD_HEADER_BYTES);
  bytes.set(body, RECORD_HEADER_BYTES + key.length);
  bytes.writeUInt32LE(checksum(bytes.subarray(RECORD_HEADER_BYTES, end), seed), 8);
  bytes.writeUInt32LE(checksum(bytes.subarray(12, RECORD_HEADER_BYTES), seed), 4);
  bytes.writeUInt32LE(TRAILER_MAGIC, end);
  bytes.writeUInt32LE(bytes.length, end + 4);
  bytes.writeUInt32LE(checksum(bytes.subarray(end + 4, end + 8), seed), end + 8);
  return bytes;
}

/** Writes 16 hexadecimal digits as 8 bytes. */
function writeHex(bytes: Buffer, at: number, digits: string): void {
  bytes.writeUInt32BE(Number.parseInt(digits.slice(0, 8), 16), at);
  bytes.writeUInt32BE(Number.parseInt(digits.slice(8, 16), 16), at + 4);
}

/** Whether `bytes` end with the trailer of a record with their length. */
function hasTrailer(seed: number, bytes: Buffer): boolean {
  const at = bytes.length - RECORD_TRAILER_BYTES;
  if (bytes.readUInt32LE(at) !== TRAILER_MAGIC || bytes.readUInt32LE(at + 4) !== bytes.length) return false;
  return bytes.readUInt32LE(at + 8) === checksum(bytes.subarray(at + 4, at + 8), seed);
}

/** Returns the length of the record whose whole header is at the beginning of `bytes`; undefined if there is no such header. */
function lengthOf(seed: number, bytes: Buffer): number | undefined {
  if (bytes.length < RECORD_HEADER_BYTES || bytes.readUInt32LE(0) !== RECORD_MAGIC) return undefined;
  if (bytes.readUInt32LE(4) !== checksum(bytes.subarray(12, RECORD_HEADER_BYTES), seed)) return undefined;
  return RECORD_HEADER_BYTES + bytes.readUInt16LE(14) + bytes.readUInt32LE(16) + RECORD_TRAILER_BYTES;
}

/** Whether the name and the body at the beginning of `bytes` are whole. */
function hasWholeBody(seed: number, bytes: Buffer, length: number): boolean {
  const sum = checksum(bytes.subarray(RECORD_HEADER_BYTES, length - RECORD_TRAILER_BYTES), seed);
  return bytes.readUInt32LE(8) === sum;
}

/** Returns the offset of the body in a record with a length. */
export function bodyOffset({ body }: JournalRecord, length: number): number {
  return length - RECORD_TRAILER_BYTES - body.length;
}

/** Decodes the record at the beginning of `bytes`; undefined if there is no whole one. */
export function decodeRecord(id: string, bytes: Uint8Array): DecodedRecord | undefined {
  const view = viewOf(bytes);
  const seed = seedOf(id);
  const length = lengthOf(seed, view);
  if (length === undefined || length > bytes.length || !hasWholeBody(seed, view, length)) return undefined;
  const end = length - RECORD_TRAILER_BYTES;
  if (!hasTrailer(seed, view.subarray(0, length))) return undefined;
  const kind = KINDS[view[12] as number];
  const test = CONDITIONS[view[13] as number];
  if (kind === undefined || test === undefined) return undefined;
  const nameEnd = RECORD_HEADER_BYTES + view.readUInt16LE(14);
  const record: JournalRecord = {
    kind,
    name: readLatin1(bytes, RECORD_HEADER_BYTES, nameEnd),
    etag: view.toString('hex', 32, 40),
    condition: test === 'etag' ? { etag: view.toString('hex', 40, 48) } : test,
    timeMs: view.readDoubleLE(24),
    sizeBytes: view.readDoubleLE(48),
    body: bytes.subarray(nameEnd, end),
  };
  const seen: WriterView = { syncedTo: view.readDoubleLE(56), skippedTo: view.readDoubleLE(64) };
  return { record, seen, bodyAt: nameEnd, length };
}

/** Returns the offset of the first whole record; undefined if there is none. */
export function findRecord(id: string, bytes: Uint8Array): number | undefined {
  for (const at of offsetsOf(RECORD_MAGIC_TEXT, bytes)) {
    if (decodeRecord(id, bytes.subarray(at)) !== undefined) return at;
  }
  return undefined;
}

/**
 * Whether bytes between whole records, or behind the last one, cannot be the remains of appends that a killed process or a loss of
 * power left, so that they were damaged later, and may have been an acknowledged record. Such remains are the beginnings of records,
 * cut at any byte, and records to their end with zeros in place of some sectors. `offset`: the place of the bytes in the journal.
 */
export function isDamaged(id: string, gap: Uint8Array, offset: number, sectorBytes: number): boolean {
  const view = viewOf(gap);
  const seed = seedOf(id);
  for (const at of offsetsOf(TRAILER_MAGIC_TEXT, gap)) {
    const end = at + RECORD_TRAILER_BYTES;
    if (end > gap.length || view.readUInt32LE(at + 8) !== checksum(view.subarray(at + 4, at + 8), seed)) continue;
    const start = end - view.readUInt32LE(at + 4);
    // The record was appended to its end, and it is not whole: the first whole one is behind these bytes.
    if (start >= 0 && !hasZeroSector(gap, start, end, offset, sectorBytes)) return true;
  }
  if (lengthOf(seed, view) === undefined && !isUnfinished(gap, 0, 0, RECORD_HEADER_BYTES, offset, sectorBytes))
    return true;
  for (const at of offsetsOf(RECORD_MAGIC_TEXT, gap)) {
    const length = lengthOf(seed, view.subarray(at));
    if (length === undefined) continue;
    if (!isUnfinished(gap, at, RECORD_HEADER_BYTES, length, offset, sectorBytes)) return true;
    const end = at + length;
    if (end > gap.length || !hasWholeBody(seed, view.subarray(at), length)) continue;
    if (!isTrailerCut(gap.subarray(at, end + 3), length, offset + at, sectorBytes)) return true;
  }
  return false;
}

/** Whether another record, or zeros that replaced it, begin in the trailer of the record at the beginning of `bytes`. */
function isTrailerCut(bytes: Uint8Array, length: number, offset: number, sectorBytes: number): boolean {
  const end = length - RECORD_TRAILER_BYTES;
  const next = viewOf(bytes).indexOf(RECORD_MAGIC_TEXT, end, 'latin1');
  if (next >= 0 && next < length) return true;
  // A record that is cut in its magic ends with the trailer.
  const tail = readLatin1(bytes, length - 3, length);
  if (['s', 'sd', 'sdb'].some((cut) => tail.endsWith(cut)) || bytes[length - 1] === 0) return true;
  const sectorEnd = length - ((offset + length) % sectorBytes);
  return sectorEnd > end && bytes[sectorEnd - 1] === 0;
}

/** Bytes of a few records behind each other that were cut before their magic ended. */
const CUT_MAGIC_BYTES = 12;

/**
 * Whether a record at `start`, of which `known` bytes are right, may not be there to its end: the bytes end before, another record begins
 * before, or a sector has zeros from a place in the record on. Records behind it that lost their beginning may be in the same sector.
 */
function isUnfinished(
  bytes: Uint8Array,
  start: number,
  known: number,
  length: number,
  offset: number,
  sectorBytes: number,
): boolean {
  const end = start + length + CUT_MAGIC_BYTES;
  if (end >= bytes.length || hasZeroSector(bytes, start, start + length, offset, sectorBytes)) return true;
  const next = viewOf(bytes).indexOf(RECORD_MAGIC_TEXT, start + 1, 'latin1');
  if (next >= 0 && next < end + sectorBytes) return true;
  const from = start + known;
  for (let at = from + sectorBytes - ((offset + from) % sectorBytes); at < end + sectorBytes; at += sectorBytes) {
    if (bytes[Math.min(at, bytes.length) - 1] === 0) return true;
  }
  return false;
}

/** Whether bytes `start` to `end` have all zeros where they lie in one of the sectors of the file. */
function hasZeroSector(bytes: Uint8Array, start: number, end: number, offset: number, sectorBytes: number): boolean {
  for (let at = start; at < end; ) {
    const sectorEnd = Math.min(end, at + sectorBytes - ((offset + at) % sectorBytes));
    if (bytes.subarray(at, sectorEnd).every((byte) => byte === 0)) return true;
    at = sectorEnd;
  }
  return false;
}

function* offsetsOf(text: string, bytes: Uint8Array): Generator<number> {
  const view = viewOf(bytes);
  for (let at = view.indexOf(text, 0, 'latin1'); at >= 0; at = view.indexOf(text, at + 1, 'latin1')) yield at;
}

/** With this seed, checksums cover the id of the journal too. */
function seedOf(id: string): number {
  return checksum(encodeUtf8(id));
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
