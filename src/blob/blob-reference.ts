/** A stored blob as an application reads it. */
import { copyBytes, streamOf, toText } from '#platform';
import type { BlobStream, Bytes, TextEncoding } from '#platform';
import { namedAbort, namingAborts, untilAborted } from '../base/abort.ts';
import { BlobNotFoundError, InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { signalOptions, defined, kinds, OptionTable } from '../base/options.ts';
import type { DownloadHeaders } from '../storage/contract/driver.ts';
import type { BlobStore } from './blob-store.ts';
import type { BlobRecord } from './blob-rows.ts';
import { contentTypeKind } from './blob-value.ts';

const defaultExpirySeconds = 3600;
/** Size of the pieces that a stream yields, in bytes. */
const pieceBytes = 256 * 1024;

/** Looks up the record of a reference. Rejects with `BlobNotFoundError`. */
export type RecordLookup = (reference: string) => Promise<BlobRecord>;

/** Where the bytes of a blob are read. */
export type BlobBytes = Pick<BlobStore, 'read' | 'stream' | 'presign'>;

/** Options of calls that read a blob. */
export interface BlobCallOptions {
  /** Gives the call up: it rejects with `AbortedError`. */
  readonly signal?: AbortSignal;
}

function offset(name: string, value: unknown, fallback: number, size: number): number {
  if (value === undefined || value === null) return fallback;
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw new InvalidOptionError(name, `${name} is ${describeValue(value)}; it must be a whole number of bytes.`);
  }
  // As in Buffer.subarray: a negative offset counts from the end, and the result is clipped to the blob.
  return Math.min(size, Math.max(0, value < 0 ? size + value : value));
}

/** A reference to a blob. Nothing is read until one of its methods is called. */
export class BlobReference {
  /** UUID of the blob, as the row holds it. */
  readonly reference: string;
  readonly #store: () => BlobBytes;
  readonly #lookup: RecordLookup;
  readonly #whenGone: (error: BlobNotFoundError) => Error;

  /** @internal Use `db.getBlob()`. `whenGone` makes the error for a blob that has a record but no object. */
  constructor(
    reference: string,
    store: () => BlobBytes,
    lookup: RecordLookup,
    whenGone: (error: BlobNotFoundError) => Error = (error) => error,
  ) {
    this.reference = reference;
    this.#store = store;
    this.#lookup = lookup;
    this.#whenGone = whenGone;
  }

  /** Size of the blob in bytes. Rejects with `BlobNotFoundError` if there is no such blob. */
  async size(): Promise<number> {
    return (await this.#lookup(this.reference)).sizeBytes;
  }

  /**
   * Reads the bytes from `start` (inclusive) to `end` (exclusive), as in `Buffer.subarray`; by default all. Fetches only the
   * chunks of 64 KiB that the range touches, and verifies them. Negative offsets count from the end, and offsets outside the blob
   * are clipped. Rejects with `BlobNotFoundError`, and with `CorruptionError` if the bytes are damaged.
   */
  async getBuffer(start?: number, end?: number, options: BlobCallOptions = {}): Promise<Bytes> {
    const { signal } = signalOptions.check('getBuffer()', options);
    const read = async (): Promise<Bytes> => {
      const { record, from, to } = await this.#range(start, end);
      return this.#store().read(this.reference, record, from, to, signal);
    };
    try {
      return await namingAborts('getBuffer()', signal, () => untilAborted(read(), signal));
    } catch (error) {
      throw error instanceof BlobNotFoundError ? this.#whenGone(error) : error;
    }
  }

  /** Reads the bytes as text. `encoding` defaults to `utf8`. */
  async getString(start?: number, end?: number, encoding: TextEncoding = 'utf8'): Promise<string> {
    return toText(await this.getBuffer(start, end), encoding);
  }

  /**
   * Reads the bytes as a stream, which holds some megabytes at a time. The stream emits errors of reading, `BlobNotFoundError`
   * too. Throws `InvalidOptionError`.
   */
  stream(start?: number, end?: number, options: BlobCallOptions = {}): BlobStream {
    const { signal } = signalOptions.check('stream()', options);
    return streamOf(this.#pieces(start, end, signal));
  }

  async *#pieces(
    start: number | undefined,
    end: number | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Bytes, void, undefined> {
    try {
      const { record, from, to } = await untilAborted(this.#range(start, end), signal);
      for await (const piece of this.#store().stream(this.reference, record, from, to, signal)) {
        // Copies the bytes, because drivers may return the buffer that they keep.
        for (let at = 0; at < piece.length; at += pieceBytes) yield copyBytes(piece.subarray(at, at + pieceBytes));
      }
    } catch (error) {
      if (error instanceof BlobNotFoundError) throw this.#whenGone(error);
      throw signal === undefined ? error : namedAbort('stream()', signal, error);
    }
  }

  async #range(start?: number, end?: number): Promise<{ record: BlobRecord; from: number; to: number }> {
    const record = await this.#lookup(this.reference);
    const from = offset('start', start, 0, record.sizeBytes);
    const to = Math.max(from, offset('end', end, record.sizeBytes, record.sizeBytes));
    return { record, from, to };
  }

  /**
   * Returns a URL from which anyone can download the blob for `expiresIn` seconds (default 3600, at most 604800). Browsers save
   * types that they would run, such as HTML and SVG, unless `contentDisposition` says otherwise. Rejects with `NotSupportedError`
   * if the driver cannot make URLs.
   */
  async getDownloadUrl(options: DownloadUrlOptions = {}): Promise<string> {
    const { expiresIn = defaultExpirySeconds } = downloadOptions.check('getDownloadUrl()', options);
    const { contentType } = await this.#lookup(this.reference);
    return this.#store().presign(this.reference, {
      expiresInSeconds: expiresIn,
      ...downloadHeaders(contentType, options),
    });
  }
}

/** Options of `getDownloadUrl()`. */
export interface DownloadUrlOptions {
  /** How long the URL works, in seconds: 1 to 604800. Default 3600. */
  readonly expiresIn?: number;
  /** Media type of the response. Default: the blob's own. */
  readonly contentType?: string;
  /**
   * How a browser handles the download: `'inline'` shows it, `'attachment'` saves it, also with a name: `attachment;
   * filename="a.pdf"`. Default: `'attachment'` for types that a browser runs or guesses, such as HTML, SVG and XML; for other
   * types the browser decides.
   */
  readonly contentDisposition?: string;
}

const maxDispositionLength = 1024;
const maxExpirySeconds = 604_800;

const downloadOptions: OptionTable<DownloadUrlOptions> = new OptionTable({
  expiresIn: kinds.whole(1, maxExpirySeconds, 'a whole number of seconds'),
  contentType: contentTypeKind,
  contentDisposition: kinds.text(
    `'inline' or 'attachment', with parameters such as filename="a.pdf" or filename*=UTF-8''%C3%A9.pdf, up to ${maxDispositionLength} ASCII characters`,
    (value) => value.length <= maxDispositionLength && /^(?:inline|attachment)(?:\s*;[\x20-\x7e]*)?$/i.test(value),
  ),
});

/** Scripts, documents that may hold scripts, and wrappers of both. */
const active = /html|svg|xml|xsl|javascript|ecmascript|livescript|jscript|vbscript|flash|^multipart\/|^message\//;
/** Types for which browsers guess another type from the bytes. */
const unknown: ReadonlySet<string> = new Set(['unknown/unknown', 'application/unknown', '*/*']);

/** Whether a browser that opens a blob of this type would run it with the origin of the bucket. */
function isActive(contentType: string): boolean {
  const type = (contentType.toLowerCase().split(';')[0] ?? '').trim();
  // Browsers guess the type too if the header is not a valid type.
  return !/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(type) || unknown.has(type) || active.test(type);
}

/** Returns the headers of the response to a download URL. */
function downloadHeaders(stored: string, options: DownloadUrlOptions): DownloadHeaders {
  const { contentType, contentDisposition } = options;
  const disposition = contentDisposition ?? (isActive(contentType ?? stored) ? 'attachment' : undefined);
  return {
    ...defined({ contentType, contentDisposition: disposition }),
  };
}
