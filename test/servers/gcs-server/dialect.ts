/** Ways in which the test server can differ from Cloud Storage, and limits that it can be given. */

export interface GcsDialect {
  /** Whether conditions of writes are ignored, as several emulators do. */
  ignoreConditions: boolean;
  /** Milliseconds between the check of a condition and the write. */
  checkThenWriteMs: number;
  /** Whether a write with the generation of a missing object is answered with 404. */
  missingIs404: boolean;
  /** Least time between two writes of an object, in milliseconds; faster ones get 429. */
  writeIntervalMs: number;
  /** How far the server's clock is ahead, in milliseconds. */
  clockSkewMs: number;
  /** Most bytes of a chunk that a session keeps. */
  keptBytesPerChunk: number;
  /** Bytes that one request of a copy copies. */
  rewrittenBytesPerCall: number;
  /** Whether the caller may not list; missing objects then get 403. */
  noList: boolean;
  /** Whether the caller may not delete or replace objects. */
  noDelete: boolean;
  /** Whether copies are refused. */
  noCopies: boolean;
  /** Whether downloads have no `Last-Modified`. */
  noLastModified: boolean;
  /** Whether a bit of every download is another one than in the object. */
  flippedDownloads: boolean;
}

export const googleDialect: Readonly<GcsDialect> = {
  ignoreConditions: false,
  checkThenWriteMs: 0,
  missingIs404: false,
  writeIntervalMs: 0,
  clockSkewMs: 0,
  keptBytesPerChunk: Infinity,
  rewrittenBytesPerCall: Infinity,
  noList: false,
  noDelete: false,
  noCopies: false,
  noLastModified: false,
  flippedDownloads: false,
};
