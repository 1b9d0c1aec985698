/** A blob that a transaction brings with it, as the transaction itself reads it: no flush has stored it yet. */
import { copyBytes } from '#platform';
import type { Bytes } from '#platform';
import { isBytes } from '../base/brands.ts';
import { BlobNotFoundError } from '../base/errors.ts';
import type { BlobBytes } from './blob-reference.ts';
import type { BlobRecord } from './blob-rows.ts';
import type { BlobValue } from './blob-value.ts';

export class UnstoredBlob implements BlobBytes {
  readonly #reference: string;
  readonly #value: BlobValue;

  constructor(reference: string, value: BlobValue) {
    this.#reference = reference;
    this.#value = value;
  }

  /** Throws `BlobNotFoundError` for a stream, which can be read only once. */
  get #bytes(): Uint8Array {
    const { source } = this.#value;
    if (isBytes(source)) return source;
    throw this.#notStored('Its stream can be read only once, and the commit of the transaction stores it');
  }

  /** The record without checksums: nothing verifies bytes that were never stored. Throws `BlobNotFoundError`. */
  get record(): BlobRecord {
    const { contentType } = this.#value;
    return { sizeBytes: this.#bytes.length, contentType, checksums: new Uint8Array() };
  }

  async read(_reference: string, _record: BlobRecord, start: number, end: number): Promise<Bytes> {
    return copyBytes(this.#bytes.subarray(start, end));
  }

  async *stream(_reference: string, _record: BlobRecord, start: number, end: number): AsyncGenerator<Uint8Array, void> {
    yield this.#bytes.subarray(start, end);
  }

  async presign(): Promise<never> {
    throw this.#notStored('A download URL needs an object in the store, and the commit of the transaction stores it');
  }

  #notStored(why: string): BlobNotFoundError {
    const message = `Blob ${this.#reference} is not stored yet. ${why}: read the blob after the transaction.`;
    return new BlobNotFoundError(this.#reference, message);
  }
}
