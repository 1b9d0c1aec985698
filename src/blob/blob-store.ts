/**
 * Blobs as objects: exactly their bytes, under a random name, created once. Their checksums are in the database, one
 * for every chunk, so that a range can be verified without reading the rest.
 */
import { isBytes } from '../base/brands.ts';
import { checksum } from '../base/bytes.ts';
import { defined } from '../base/options.ts';
import { BlobNotFoundError, CorruptionError, NotSupportedError } from '../base/errors.ts';
import { blobName } from '../format/object-names.ts';
import type { PresignOptions, PutBody, StorageDriver } from '../storage/contract/driver.ts';
import { blobChunkBytes } from './blob-tables.ts';
import type { BlobRecord } from './blob-tables.ts';
import type { BlobValue } from './blob-value.ts';
import type { StreamLimits } from './live-stream.ts';

/** Most bytes that are read in one request. */
const maxReadBytes = 4 * 1024 * 1024;
/** Larger ones are given to the driver in pieces, so that it can upload them in parts. */
const maxWholeBytes = 8 * 1024 * 1024;
const pieceBytes = 1024 * 1024;

/** Checksums of a stream of bytes, whatever pieces it comes in. */
class ChunkChecksums {
  #sums: number[] = [];
  #current = 0;
  #filled = 0;
  sizeBytes = 0;

  add(bytes: Uint8Array): void {
    this.sizeBytes += bytes.length;
    for (let at = 0; at < bytes.length; ) {
      const end = Math.min(bytes.length, at + blobChunkBytes - this.#filled);
      this.#current = checksum(bytes.subarray(at, end), this.#current);
      this.#filled += end - at;
      at = end;
      if (this.#filled === blobChunkBytes) this.#close();
    }
  }

  #close(): void {
    this.#sums.push(this.#current);
    this.#current = 0;
    this.#filled = 0;
  }

  finish(): Uint8Array {
    if (this.#filled > 0) this.#close();
    const bytes = new Uint8Array(this.#sums.length * 4);
    const view = new DataView(bytes.buffer);
    this.#sums.forEach((sum, i) => view.setUint32(i * 4, sum, true));
    return bytes;
  }
}

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

async function* observed(
  source: AsyncIterable<Uint8Array | string>,
  sums: ChunkChecksums,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const piece of source) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece, 'utf8') : piece;
    if (!isBytes(bytes)) throw new TypeError('A blob stream must give bytes or strings');
    sums.add(bytes);
    yield bytes;
  }
}

function bodyOf(bytes: Uint8Array): PutBody {
  return bytes.length > maxWholeBytes ? inPieces(bytes) : bytes;
}

export class BlobStore {
  readonly #driver: StorageDriver;
  readonly #prefix: string;

  constructor(driver: StorageDriver, prefix: string) {
    this.#driver = driver;
    this.#prefix = prefix;
  }

  #key(reference: string): string {
    // UUIDs are the same in either case; names are not.
    return `${this.#prefix}/${blobName(reference.toLowerCase())}`;
  }

  /**
   * Stores a blob under a new reference. Once only: an upload that failed may reach the store at any later time, also
   * when a second one under the same name was collected as garbage.
   */
  async upload(reference: string, value: BlobValue, limits: StreamLimits): Promise<BlobRecord> {
    const { signal } = limits;
    const sums = new ChunkChecksums();
    const { source, contentType } = value;
    if (isBytes(source)) sums.add(source);
    const options = { if: 'absent', contentType, ...defined({ signal }) } as const;
    let failure: Error | undefined;
    const stream = (): PutBody =>
      observed(
        value.read(limits, (error) => (failure = error)),
        sums,
      );
    const body = isBytes(source) ? bodyOf(source) : stream();
    try {
      await this.#driver.put(this.#key(reference), body, options);
    } catch (error) {
      throw failure ?? error;
    }
    return { sizeBytes: sums.sizeBytes, contentType, checksums: sums.finish() };
  }

  /** Whether the object of a blob is there. */
  async exists(reference: string, signal?: AbortSignal): Promise<boolean> {
    const range = { start: 0, end: 0 };
    const found = await this.#driver.get(this.#key(reference), { range, ...defined({ signal }) });
    return found.status === 'found';
  }

  /** Reads a whole blob, some megabytes at a time, and rejects as {@link read} does if anything is wrong with it. */
  async check(reference: string, record: BlobRecord, signal?: AbortSignal): Promise<void> {
    // Of an empty one there is nothing to read, and still it must be there, and be empty.
    if (record.sizeBytes === 0) await this.#readChunks(reference, record, 0, 0, signal);
    for await (const _ of this.stream(reference, record, 0, record.sizeBytes, signal));
  }

  /** Bytes `start` to `end` of a blob, verified. */
  async read(reference: string, record: BlobRecord, start: number, end: number, signal?: AbortSignal): Promise<Buffer> {
    let result: Buffer | undefined;
    let filled = 0;
    for await (const piece of this.stream(reference, record, start, end, signal)) {
      // Not before there is a piece: then the object is known to be as long as its record says.
      result ??= Buffer.allocUnsafe(end - start);
      piece.copy(result, filled);
      filled += piece.length;
    }
    return result ?? Buffer.alloc(0);
  }

  /** Reads a blob in pieces of up to some megabytes. */
  async *stream(
    reference: string,
    record: BlobRecord,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): AsyncGenerator<Buffer, void, undefined> {
    for (let at = start; at < end; ) {
      // Rounded to chunks, since those are what can be verified.
      const from = at - (at % blobChunkBytes);
      const to = Math.min(record.sizeBytes, from + maxReadBytes, Math.ceil(end / blobChunkBytes) * blobChunkBytes);
      const bytes = await this.#readChunks(reference, record, from, to, signal);
      const until = Math.min(end, to);
      yield bytes.subarray(at - from, until - from);
      at = until;
    }
  }

  async #readChunks(
    reference: string,
    record: BlobRecord,
    from: number,
    to: number,
    signal?: AbortSignal,
  ): Promise<Buffer> {
    const key = this.#key(reference);
    for (let attempt = 1; ; attempt++) {
      const range = { start: from, end: to };
      const result = await this.#driver.get(key, { range, ...defined({ signal }) });
      if (result.status !== 'found') {
        throw new BlobNotFoundError(reference, `The bytes of blob ${reference} are gone: it was deleted.`);
      }
      const { bytes, sizeBytes } = result;
      const isWhole = sizeBytes === record.sizeBytes && bytes.length === to - from;
      if (isWhole && chunksMatch(bytes, record.checksums, from / blobChunkBytes)) {
        return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      }
      // Damage on the way is possible; damage in the store is there the second time too.
      if (attempt === 1) continue;
      if (sizeBytes === record.sizeBytes) throw new CorruptionError(key, 'A blob does not match its checksums');
      throw new CorruptionError(
        key,
        `A blob is ${sizeBytes} bytes long, and not ${record.sizeBytes} as its record says`,
      );
    }
  }

  presign(reference: string, options: PresignOptions): Promise<string> {
    const { name } = this.#driver;
    if (this.#driver.presign === undefined) {
      throw new NotSupportedError(
        `The ${name} driver cannot make download URLs: read the blob with getBuffer() or stream().`,
      );
    }
    return this.#driver.presign(this.#key(reference), options);
  }
}

function chunksMatch(bytes: Uint8Array, checksums: Uint8Array, firstChunk: number): boolean {
  const view = new DataView(checksums.buffer, checksums.byteOffset, checksums.byteLength);
  for (let at = 0, chunk = firstChunk; at < bytes.length; at += blobChunkBytes, chunk++) {
    if (chunk * 4 + 4 > checksums.length) return false;
    if (checksum(bytes.subarray(at, at + blobChunkBytes)) !== view.getUint32(chunk * 4, true)) return false;
  }
  return true;
}
