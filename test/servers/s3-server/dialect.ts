/** The departures of a store from Amazon S3. With everything off it acts as Amazon does. */

export interface S3Dialect {
  /** `If-Match` on a write only matches an ETag without its quotes; quoted ones answer 412. */
  bareEtags: boolean;
  /** `If-Match` on a write of a missing key answers 412 instead of 404. */
  missingIs412: boolean;
  /** Writes take no notice of `If-None-Match`. */
  ignoreIfNoneMatch: boolean;
  /** Writes take no notice of `If-Match`. */
  ignoreIfMatch: boolean;
  /** `If-Match` holds where there is no object. */
  ignoreIfMatchOnMissing: boolean;
  /** Checks a condition, waits for so many milliseconds, and only then writes: races have several winners. 0 is off. */
  checkThenWriteMs: number;
  /** The caller may not list: a listing is answered with 403, and so is a read of a missing key. */
  noListBucket: boolean;
  /** The caller may not delete: 403, and an `AccessDenied` for every key of a `DeleteObjects`. */
  noDelete: boolean;
  /** Completing a multipart upload takes no notice of conditions. */
  noConditionalMultipart: boolean;
  /** Completing a multipart upload once more answers `NoSuchUpload`, instead of what it was answered with before. */
  forgetsCompleted: boolean;
  /** The status that writes with additional checksums or in `aws-chunked` encoding are refused with. */
  noChecksums: false | 400 | 501;
  /** `DeleteObjects` answers 501. */
  noDeleteObjects: boolean;
  /** Copies within the store are not known. */
  noCopies: boolean;
  /** Reads show what was there so many milliseconds ago. 0 is off. */
  staleReadsMs: number;
  /** Listings show what was there so many milliseconds ago. 0 is off. */
  staleListsMs: number;
  /** How far the clock of the server is ahead, in milliseconds. */
  clockSkewMs: number;
  /** Refuses to write a key again within `intervalMs`, with 429 or 503. */
  tooManyPerKey: { readonly intervalMs: number; readonly status: 429 | 503 } | undefined;
}

export const amazonDialect: Readonly<S3Dialect> = {
  bareEtags: false,
  missingIs412: false,
  ignoreIfNoneMatch: false,
  ignoreIfMatch: false,
  ignoreIfMatchOnMissing: false,
  checkThenWriteMs: 0,
  noListBucket: false,
  noDelete: false,
  noConditionalMultipart: false,
  forgetsCompleted: false,
  noChecksums: false,
  noDeleteObjects: false,
  noCopies: false,
  staleReadsMs: 0,
  staleListsMs: 0,
  clockSkewMs: 0,
  tooManyPerKey: undefined,
};
