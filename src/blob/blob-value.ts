/** The value that `db.Blob()` returns: data to be stored in a blob field. */
import { encodeUtf8 } from '../base/bytes.ts';
import { isBytes } from '../base/brands.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { OptionKind } from '../base/options.ts';
import { describeValue } from '../base/messages.ts';
import { onStreamError, whileLive } from './live-stream.ts';
import type { StreamLimits } from './live-stream.ts';

/** The data that a blob can be made of. A stream is read once, when the batch is flushed. */
export type BlobData = Uint8Array | string | AsyncIterable<Uint8Array | string> | ReadableStream<Uint8Array>;

/** Options of `db.Blob()`. */
export interface BlobOptions {
  /** Media type that a download of the blob carries. Default `application/octet-stream`. */
  readonly contentType?: string;
  /**
   * How long a stream may send no data before it is ended and the flush rejects with `DeadlineExceededError`, in milliseconds, 1
   * to 2,147,483,647. After `stop()` was called, five seconds at most. Default 60,000.
   */
  readonly idleMs?: number;
}

/** The media type of blobs that were given none. */
export const defaultContentType = 'application/octet-stream';
const maxContentTypeLength = 255;
const defaultIdleMs = 60_000;
const maxIdleMs = 2_147_483_647;

function isStream(data: unknown): data is AsyncIterable<Uint8Array | string> {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data;
}

/** A media type, which must fit in an HTTP header. */
export const contentTypeKind: OptionKind = kinds.text(
  `printable ASCII of up to ${maxContentTypeLength} characters`,
  (value) => value.length <= maxContentTypeLength && !/[^\x20-\x7e]/.test(value),
);

const blobOptions = new OptionTable<BlobOptions>({
  contentType: contentTypeKind,
  idleMs: kinds.milliseconds(1, maxIdleMs),
});

/** A value for a blob field, as `db.Blob()` returns it. */
export class BlobValue {
  /** Media type that a download of the blob carries. */
  readonly contentType: string;
  /**
   * The bytes, copied when the value was made, or the stream of the bytes.
   *
   * @hidden
   */
  readonly source: Uint8Array | AsyncIterable<Uint8Array | string>;

  readonly #idleMs: number;
  #isSpent = false;
  /** The error of a stream that failed. */
  #broken: { readonly error: unknown } | undefined;

  /** @hidden Use `db.Blob()`. */
  constructor(data: unknown, options: BlobOptions = {}) {
    const { contentType = defaultContentType, idleMs = defaultIdleMs } = blobOptions.check('db.Blob()', options);
    this.contentType = contentType;
    this.#idleMs = idleMs;
    if (typeof data === 'string') this.source = encodeUtf8(data);
    // Not slice(), which returns a view if `data` is a Buffer.
    else if (isBytes(data)) this.source = new Uint8Array(data);
    else if (isStream(data)) {
      this.source = data;
      onStreamError(data, (error) => (this.#broken ??= { error }));
    } else {
      const allowed = 'a Buffer, Uint8Array, string, or a readable stream of bytes';
      throw new InvalidOptionError('data', `A blob cannot be made of ${describeValue(data)}: give ${allowed}.`);
    }
  }

  /**
   * Whether reading of the stream has begun: it cannot be read again.
   *
   * @hidden
   */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /**
   * Reads the data. Calls `failure` with the error if it ends a stream.
   *
   * @hidden
   */
  async *read(
    limits: StreamLimits,
    failure: (error: Error) => void,
  ): AsyncGenerator<Uint8Array | string, void, undefined> {
    const { source } = this;
    if (isBytes(source)) {
      yield source;
      return;
    }
    this.#isSpent = true;
    // Not every kind of stream tells its error again to somebody who reads it later.
    if (this.#broken !== undefined) throw this.#broken.error;
    yield* whileLive(source, this.#idleMs, limits, failure);
  }
}
