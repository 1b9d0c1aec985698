/** Checks that all drivers share: keys, ranges, page limits, aborts and bodies, and the options for drivers and prefixes. */
import { utf8Length } from '#platform';
import { flawOf } from '../../base/abort.ts';
import { isBytes, messageOf } from '../../base/brands.ts';
import { encodeUtf8, joinBytes } from '../../base/bytes.ts';
import { StorageError } from '../../base/errors.ts';
import type { RequestOutcome } from '../../base/errors.ts';
import { withoutEnding } from '../../base/messages.ts';
import { kinds } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';
import { sharedPrefix } from '../../format/object-names.ts';
import type { GetOptions, ListOptions, PutBody } from './driver.ts';

/** Longest key, in UTF-8 bytes. */
export const MAX_KEY_BYTES = 1024;
/**
 * Largest object that is read without a range, in bytes: twice the largest row. StoreDb writes no larger object that it reads as
 * a whole, so larger ones are not read into memory.
 */
export const MAX_WHOLE_BYTES: number = 512 * 1024 * 1024;
/** Most entries in one page of a listing. */
export const MAX_PAGE_ENTRIES = 1000;

function checkText(what: string, text: string): void {
  if (typeof text !== 'string') throw new StorageError(String(text), 'none', `A ${what} is a string.`);
  // A lone surrogate has no UTF-8 form: it would be stored as U+FFFD, and two keys would become one.
  if (!text.isWellFormed()) throw new StorageError(text, 'none', `The ${what} holds half of a surrogate pair.`);
}

/** Throws for an invalid key: one that is empty, too long, or without a UTF-8 form. */
export function checkKey(key: string): void {
  checkText('key', key);
  if (key === '') throw new StorageError(key, 'none', 'A key has at least one character.');
  if (key.length * 3 > MAX_KEY_BYTES && utf8Length(key) > MAX_KEY_BYTES) {
    throw new StorageError(key, 'none', `The key is longer than ${MAX_KEY_BYTES} bytes of UTF-8: use a shorter one.`);
  }
}

/** Checks the arguments of a listing and returns the page's limit. */
export function checkList(prefix: string, options: ListOptions | undefined): number {
  checkText('prefix', prefix);
  if (options?.after !== undefined) checkText('key to list after', options.after);
  const limit = options?.limit ?? MAX_PAGE_ENTRIES;
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE_ENTRIES) {
    throw new StorageError(prefix, 'none', `The limit of a page is 1 to ${MAX_PAGE_ENTRIES}, not ${String(limit)}.`);
  }
  return limit;
}

/** Throws if the signal is aborted. `outcome` is `none` as long as nothing was sent or written. */
export function checkNotAborted(key: string, signal: AbortSignal | undefined, outcome: RequestOutcome = 'none'): void {
  const flaw = signal === undefined ? undefined : flawOf(signal);
  if (flaw !== undefined)
    throw new StorageError(key, 'none', `The signal of the request is ${flaw}; it must be an AbortSignal.`);
  if (signal?.aborted !== true) return;
  throw new StorageError(key, outcome, 'The request was given up: its signal was aborted.', { cause: signal.reason });
}

/** Throws if an object is too large to be read without a range. */
export function checkWholeBytes(key: string, sizeBytes: number): void {
  if (sizeBytes <= MAX_WHOLE_BYTES) return;
  throw new StorageError(
    key,
    'none',
    `The object ${key} has ${sizeBytes} bytes or more; at most ${MAX_WHOLE_BYTES} are read at once. StoreDb does not write such ` +
      'objects: restore it from a backup. Read larger objects of your own by ranges.',
  );
}

/** Clips a range to an object of `sizeBytes`. Returns offsets, end exclusive, within the object. */
export function clipRange(
  key: string,
  range: GetOptions['range'],
  sizeBytes: number,
): { readonly start: number; readonly end: number } {
  if (range === undefined) return { start: 0, end: sizeBytes };
  const { start, end } = range;
  if (!Number.isSafeInteger(start) || !Number.isSafeInteger(end) || start < 0 || end < start) {
    throw new StorageError(key, 'none', `A range is two offsets, 0 <= start <= end, not ${start} to ${end}.`);
  }
  return { start: Math.min(start, sizeBytes), end: Math.min(end, sizeBytes) };
}

/** Yields the chunks of a body. Failures of the stream itself are reported as requests without effect. */
export async function* readBody(key: string, body: PutBody, signal?: AbortSignal): AsyncGenerator<Uint8Array, void> {
  if (isBytes(body)) {
    yield body;
    return;
  }
  try {
    for await (const chunk of body) {
      checkNotAborted(key, signal);
      if (!isBytes(chunk)) throw new TypeError('A body stream yields Uint8Array chunks.');
      yield chunk;
    }
  } catch (error) {
    if (error instanceof StorageError) throw error;
    const reason = withoutEnding(messageOf(error), '.');
    throw new StorageError(key, 'none', `The stream of the body failed: ${reason}. Nothing was written.`, {
      cause: error,
    });
  }
}

/** Reads a whole body into memory of its own. Rejects as {@link readBody} does. */
export async function wholeBody(key: string, body: PutBody, signal?: AbortSignal): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  // Copies each chunk, because a stream may reuse its buffer. Not slice(), which returns a view for a Buffer.
  for await (const chunk of readBody(key, body, signal)) chunks.push(new Uint8Array(chunk));
  return joinBytes(chunks);
}

/** Longest prefix, in bytes of UTF-8. */
const maxPrefixBytes = 512;

function isPrefix(prefix: string): boolean {
  if (prefix === '' || !prefix.isWellFormed() || prefix.startsWith('/') || prefix.endsWith('/')) return false;
  // Clients normalize `.` and `..` in the path of a URL, so blobs under such a prefix would have no working URL.
  return (
    encodeUtf8(prefix).length <= maxPrefixBytes && !prefix.split('/').some((part) => part === '.' || part === '..')
  );
}

const wellFormed = `a string of 1 to ${maxPrefixBytes} UTF-8 bytes that neither begins nor ends with /`;

/** The kind of an option that takes a storage driver. */
export const driverKind: OptionKind = kinds.methods('a storage driver', 'get', 'put', 'delete', 'list');

/** The kind of an option that takes the prefix of a database. */
export const prefixKind: OptionKind = kinds.text(
  `${wellFormed}, without . and .. between slashes, and not under ${sharedPrefix}, where what belongs to no database is`,
  (prefix) => isPrefix(prefix) && !`${prefix}/`.startsWith(sharedPrefix),
);

/** The kind of an option that takes the prefix of a place to which databases are copied. */
export const placePrefixKind: OptionKind = kinds.text(
  `${wellFormed}, as dbPrefix, without ., .. and nothing between slashes`,
  (prefix) => isPrefix(prefix) && !prefix.includes('//'),
);
