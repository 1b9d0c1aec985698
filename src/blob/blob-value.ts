/** What `db.Blob()` returns: data on its way into a blob field. */
import { isBytes } from '../base/brands.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../format/values.ts';

/** What a blob can be made of. A stream is read once, when the batch is flushed. */
export type BlobData = Uint8Array | string | AsyncIterable<Uint8Array | string> | ReadableStream<Uint8Array>;

/** Options of `db.Blob()`. */
export interface BlobOptions {
  /** Media type that a download of the blob carries. Default `application/octet-stream`. */
  readonly contentType?: string;
}

const defaultContentType = 'application/octet-stream';
const maxContentTypeLength = 255;

function isStream(data: unknown): data is AsyncIterable<Uint8Array | string> {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data;
}

/** Refuses what cannot stand in a header of HTTP. */
export function checkContentType(contentType: unknown): asserts contentType is string {
  if (
    typeof contentType === 'string' &&
    contentType.length <= maxContentTypeLength &&
    !/[^\x20-\x7e]/.test(contentType)
  ) {
    return;
  }
  const allowed = `printable ASCII of up to ${maxContentTypeLength} characters`;
  throw new InvalidOptionError(
    'contentType',
    `Option contentType is ${describeValue(contentType)}; it must be ${allowed}.`,
  );
}

/** A value for a blob field, as `db.Blob()` returns it. */
export class BlobValue {
  /** Media type that a download of the blob carries. */
  readonly contentType: string;
  /**
   * The bytes, copied when the value was made, or the stream that gives them.
   *
   * @hidden
   */
  readonly source: Uint8Array | AsyncIterable<Uint8Array | string>;

  #isSpent = false;

  /** @hidden Use `db.Blob()`. */
  constructor(data: unknown, options: BlobOptions = {}) {
    const { contentType = defaultContentType } = options;
    checkContentType(contentType);
    this.contentType = contentType;
    if (typeof data === 'string') this.source = Buffer.from(data, 'utf8');
    // Not slice(), which gives a view of a Buffer.
    else if (isBytes(data)) this.source = new Uint8Array(data);
    else if (isStream(data)) this.source = data;
    else {
      const allowed = 'a Buffer, Uint8Array, string, or a readable stream of bytes';
      throw new InvalidOptionError('data', `A blob cannot be made of ${describeValue(data)}: give ${allowed}.`);
    }
  }

  /**
   * Whether the stream was begun to be read: it cannot be read again.
   *
   * @hidden
   */
  get isSpent(): boolean {
    return this.#isSpent;
  }

  /**
   * The data, to be read now.
   *
   * @hidden
   */
  async *read(): AsyncGenerator<Uint8Array | string, void, undefined> {
    if (isBytes(this.source)) {
      yield this.source;
      return;
    }
    this.#isSpent = true;
    yield* this.source;
  }
}
