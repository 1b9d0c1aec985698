/**
 * Stores blobs as objects that hold exactly their bytes, under a random name, and are written once. The database holds a checksum
 * for every chunk, so a range can be verified without reading the rest.
 */
import { asBytes, uncleared } from '#platform';
import type { Bytes } from '#platform';
import { checksum } from '../base/bytes.ts';
import { defined } from '../base/options.ts';
import { BlobNotFoundError, CorruptionError, NotSupportedError } from '../base/errors.ts';
import { blobName } from '../format/object-names.ts';
import type { PresignOptions, PutBody, PutOptions, StorageDriver } from '../storage/contract/driver.ts';
import { blobChunkBytes } from './blob-rows.ts';
import type { BlobRecord } from './blob-rows.ts';

/** Most bytes read in one request. */
const maxReadBytes = 4 * 1024 * 1024;
export class BlobStore {
  readonly #driver: StorageDriver;
  readonly #prefix: string;

  constructor(driver: StorageDriver, prefix: string) {
    this.#driver = driver;
    this.#prefix = prefix;
  }

  /** The name of a blob's object in the store. */
  keyOf(reference: string): string {
    // UUIDs do not depend on case; object names do.
    return `${this.#prefix}/${blobName(reference.toLowerCase())}`;
  }

  /** Writes the object of a blob, which must not exist. */
  async put(reference: string, body: PutBody, options: Omit<PutOptions, 'if'>): Promise<void> {
    await this.#driver.put(this.keyOf(reference), body, { ...options, if: 'absent' });
  }

  /** Returns whether the object of a blob exists. */
  async exists(reference: string, signal?: AbortSignal): Promise<boolean> {
    const range = { start: 0, end: 0 };
    const found = await this.#driver.get(this.keyOf(reference), { range, ...defined({ signal }) });
    return found.status === 'found';
  }

  /** Reads and verifies a whole blob, some megabytes at a time. Rejects as {@link read} does. */
  async check(reference: string, record: BlobRecord, signal?: AbortSignal): Promise<void> {
    // An empty blob yields no pieces, but its object must exist and be empty.
    if (record.sizeBytes === 0) await this.#readChunks(reference, record, 0, 0, signal);
    for await (const _ of this.stream(reference, record, 0, record.sizeBytes, signal));
  }

  /** Reads bytes `start` to `end` of a blob, and verifies them. */
  async read(reference: string, record: BlobRecord, start: number, end: number, signal?: AbortSignal): Promise<Bytes> {
    let result: Uint8Array | undefined;
    let filled = 0;
    for await (const piece of this.stream(reference, record, start, end, signal)) {
      // Allocates after the first piece: by then the object is known to be as long as its record says.
      result ??= uncleared(end - start);
      result.set(piece, filled);
      filled += piece.length;
    }
    return asBytes(result ?? new Uint8Array(0));
  }

  /** Reads a blob in pieces of up to some megabytes. */
  async *stream(
    reference: string,
    record: BlobRecord,
    start: number,
    end: number,
    signal?: AbortSignal,
  ): AsyncGenerator<Uint8Array, void, undefined> {
    for (let at = start; at < end; ) {
      // Rounds to whole chunks, because each checksum covers a chunk.
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
  ): Promise<Uint8Array> {
    const key = this.keyOf(reference);
    for (let attempt = 1; ; attempt++) {
      const range = { start: from, end: to };
      const result = await this.#driver.get(key, { range, ...defined({ signal }) });
      if (result.status !== 'found') {
        throw new BlobNotFoundError(reference, `The bytes of blob ${reference} are gone: it was deleted.`);
      }
      const { bytes, sizeBytes } = result;
      const isWhole = sizeBytes === record.sizeBytes && bytes.length === to - from;
      if (isWhole && chunksMatch(bytes, record.checksums, from / blobChunkBytes)) {
        return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      }
      // The bytes may have been damaged in transit: read them again. Damage in the store shows in the second read too.
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
    return this.#driver.presign(this.keyOf(reference), options);
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
