/**
 * The bytes of a journal: a header of 40 bytes, and records behind each other. Numbers are little-endian.
 *
 *     0   "sdbj"                       24  offset behind the records that the journal began with, float64
 *     4   format, u32                  32  checksum of the bytes before
 *     8   id, 16 hexadecimal digits    36  zeros
 *
 * A record has a header of 56 bytes, and then the name and the body:
 *
 *     0   "sdbr"                       16  bytes of the body, u32
 *     4   checksum of bytes 12 to 55   20  zeros
 *     8   checksum of name and body    24  time, milliseconds since 1970, float64
 *     12  kind                         32  ETag, 8 bytes
 *     13  condition                    40  ETag of the condition, 8 bytes
 *     14  bytes of the name, u16       48  bytes of the object, float64
 *
 * The checksums cover the id of the journal too, which nobody can know beforehand. So bytes of an object that look like a record do
 * not pass for one.
 */
import { checksum, encodeUtf8, readLatin1 } from '../../base/bytes.ts';
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

/** The header of a journal. */
export interface JournalHeader {
  readonly id: string;
  /** The records before this offset are those that the journal began with. */
  readonly begunTo: number;
}

export const JOURNAL_HEADER_BYTES = 40;
const RECORD_HEADER_BYTES = 56;
const JOURNAL_MAGIC = Buffer.from('sdbj', 'latin1').readUInt32LE();
const RECORD_MAGIC = Buffer.from('sdbr', 'latin1').readUInt32LE();
const FORMAT = 1;
const KINDS: readonly RecordKind[] = ['put', 'file', 'delete', 'end'];
const CONDITIONS = ['any', 'absent', 'etag'] as const;
const NO_ETAG = '0'.repeat(16);

/** Encodes a journal that begins with records. */
export function encodeJournal(id: string, records: readonly JournalRecord[]): Uint8Array {
  const encoded = records.map((record) => encodeRecord(id, record));
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
export function encodeRecord(id: string, record: JournalRecord): Uint8Array {
  const { kind, name, etag, condition, timeMs, sizeBytes, body } = record;
  const key = encodeUtf8(name);
  const bytes = Buffer.alloc(RECORD_HEADER_BYTES + key.length + body.length);
  const isEtag = typeof condition === 'object';
  bytes.writeUInt32LE(RECORD_MAGIC, 0);
  bytes.writeUInt8(KINDS.indexOf(kind), 12);
  bytes.writeUInt8(CONDITIONS.indexOf(isEtag ? 'etag' : condition), 13);
  bytes.writeUInt16LE(key.length, 14);
  bytes.writeUInt32LE(body.length, 16);
  bytes.writeDoubleLE(timeMs, 24);
  bytes.write(etag, 32, 'hex');
  bytes.write(isEtag ? condition.etag : NO_ETAG, 40, 'hex');
  bytes.writeDoubleLE(sizeBytes, 48);
  bytes.set(key, RECORD_HEADER_BYTES);
  bytes.set(body, RECORD_HEADER_BYTES + key.length);
  bytes.writeUInt32LE(sumOf(id, bytes.subarray(RECORD_HEADER_BYTES)), 8);
  bytes.writeUInt32LE(sumOf(id, bytes.subarray(12, RECORD_HEADER_BYTES)), 4);
  return bytes;
}

/** Returns the length of the record whose whole header is at the beginning of `bytes`; undefined if there is no such header. */
function lengthOf(id: string, bytes: Uint8Array): number | undefined {
  if (bytes.length < RECORD_HEADER_BYTES) return undefined;
  const view = viewOf(bytes);
  if (view.readUInt32LE(0) !== RECORD_MAGIC) return undefined;
  if (view.readUInt32LE(4) !== sumOf(id, bytes.subarray(12, RECORD_HEADER_BYTES))) return undefined;
  return RECORD_HEADER_BYTES + view.readUInt16LE(14) + view.readUInt32LE(16);
}

/** Decodes the record at the beginning of `bytes`; undefined if there is no whole one. */
export function decodeRecord(
  id: string,
  bytes: Uint8Array,
): { readonly record: JournalRecord; readonly length: number } | undefined {
  const length = lengthOf(id, bytes);
  if (length === undefined || length > bytes.length) return undefined;
  const view = viewOf(bytes);
  if (view.readUInt32LE(8) !== sumOf(id, bytes.subarray(RECORD_HEADER_BYTES, length))) return undefined;
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
    body: bytes.subarray(nameEnd, length),
  };
  return { record, length };
}

/** Returns the offset of the first whole record; undefined if there is none. */
export function findRecord(id: string, bytes: Uint8Array): number | undefined {
  const view = viewOf(bytes);
  for (let at = view.indexOf('sdbr', 0, 'latin1'); at >= 0; at = view.indexOf('sdbr', at + 1, 'latin1')) {
    if (decodeRecord(id, bytes.subarray(at)) !== undefined) return at;
  }
  return undefined;
}

/**
 * Whether bytes before a whole record look as a killed process or a loss of power leaves them: records that were cut short, or sectors
 * of zeros. Anything else was damaged later, and may have been an acknowledged record. `offset`: their place in the journal.
 */
export function isTorn(id: string, gap: Uint8Array, offset: number, sectorBytes: number): boolean {
  const view = viewOf(gap);
  for (let at = 0; at < gap.length; ) {
    const found = view.indexOf('sdbr', at + 1, 'latin1');
    const next = found < 0 ? gap.length : found;
    // A header that was cut short, and perhaps the beginning of another one.
    const isCut = next - at < (lengthOf(id, gap.subarray(at)) ?? RECORD_HEADER_BYTES + 4);
    if (!isCut && !hasZeroSector(gap, at, next, offset, sectorBytes)) return false;
    at = next;
  }
  return true;
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

function sumOf(id: string, bytes: Uint8Array): number {
  return checksum(bytes, checksum(encodeUtf8(id)));
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
