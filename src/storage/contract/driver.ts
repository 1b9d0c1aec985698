/**
 * The contract of a storage driver: the smallest interface that the protocol (docs/protocol.md) needs.
 *
 * Three rules hold for every call:
 * - A lost race is a value (`lost`), never an error.
 * - A failure says whether it may have had an effect: drivers reject with `StorageError`, whose `outcome` is `none` only if the
 *   request definitely had no effect, now or later. Anything else is `unknown`.
 * - A conditional put checks its condition and writes in one atomic step; a driver that reads first and then writes is unsafe.
 *
 * Keys are non-empty strings of at most 1,024 UTF-8 bytes; `/` separates folders only by convention.
 */
import { defined } from '../../base/options.ts';

/** Options that every request takes. */
export interface RequestOptions {
  /** Aborts the request. Whether it had an effect is then unknown. */
  readonly signal?: AbortSignal;
}

/** Options of `StorageDriver.get()`. */
export interface GetOptions extends RequestOptions {
  /** Bytes to read: `start` inclusive, `end` exclusive, both offsets in the object; clipped to its size. */
  readonly range?: { readonly start: number; readonly end: number };
  /** Return `unchanged` if the object still has this ETag. */
  readonly ifNoneMatch?: string;
}

/** An object, or the requested range of it. */
export interface FoundObject {
  /** Distinguishes this result from the others. */
  readonly status: 'found';
  /** The bytes requested. */
  readonly bytes: Uint8Array;
  /** Opaque name of this version of the object. */
  readonly etag: string;
  /** Size of the whole object in bytes, also if a range was read. */
  readonly sizeBytes: number;
  /** Time of the last write by the store's clock, in milliseconds since 1970. */
  readonly lastModifiedMs: number;
  /** Number of requests to the store, if it is not one. */
  readonly requests?: number;
}

/**
 * The result of a read. `unchanged` is only possible with `ifNoneMatch`. `requests` is the number of requests to the store, if it is
 * not one.
 */
export type GetResult =
  | FoundObject
  | { readonly status: 'missing'; readonly requests?: number }
  | { readonly status: 'unchanged'; readonly requests?: number };

/** The condition of a put: none, that there is no object with the key, or that the object has exactly this ETag. */
export type PutCondition = 'any' | 'absent' | { readonly etag: string };

/** Whole bytes, or a stream of them whose size need not be known. A stream is consumed once. */
export type PutBody = Uint8Array | AsyncIterable<Uint8Array>;

/** Options of `StorageDriver.put()`. */
export interface PutOptions extends RequestOptions {
  /** The condition under which the put happens. */
  readonly if: PutCondition;
  /** Media type that a download of the object should carry. Drivers that cannot store it may ignore it. */
  readonly contentType?: string;
  /** The header `Cache-Control` of downloads, if it is not the one that follows from the key. Drivers that cannot store it may ignore it. */
  readonly cacheControl?: string;
  /** Whether to remove the replaced version at once, if the driver itself keeps old versions. Default false. */
  readonly purge?: boolean;
  /** Whether the put is one of many writes of background work: other writes may go first. Default false. */
  readonly background?: boolean;
}

/**
 * `lost`: the condition did not hold (also when the object to replace is missing), and nothing was written. `requests` is the
 * number of requests to the store, if it is not one.
 */
export type PutResult =
  | { readonly status: 'written'; readonly etag: string; readonly requests?: number }
  | { readonly status: 'lost'; readonly requests?: number };

/** The result of a deletion. */
export interface DeleteResult {
  /** Keys that could not be deleted; deleting a missing key is no failure. */
  readonly failed: readonly { readonly key: string; readonly message: string }[];
  /** Number of requests to the store, if it is not one. */
  readonly requests?: number;
}

/** Options of `StorageDriver.list()`. */
export interface ListOptions extends RequestOptions {
  /** Only keys after this one. */
  readonly after?: string;
  /** Most entries in one page, 1 to 1000. Default 1000. */
  readonly limit?: number;
}

/** An object in a listing. */
export interface ListEntry {
  /** Name of the object. */
  readonly key: string;
  /** Size of the object in bytes. */
  readonly sizeBytes: number;
  /** Time of the last write by the store's clock, in milliseconds since 1970. */
  readonly lastModifiedMs: number;
}

/** One page of keys in the order of their UTF-8 bytes. */
export interface ListPage {
  /** The entries of this page. */
  readonly entries: readonly ListEntry[];
  /** Whether more keys follow; list again with `after` set to the last entry's key. */
  readonly more: boolean;
  /** Number of requests to the store, if it is not one. */
  readonly requests?: number;
}

/** Headers of the response to a download URL. Without them a browser may run the bytes, so drivers must send them. */
export interface DownloadHeaders {
  /** Media type in place of the object's own. */
  readonly contentType?: string;
  /** The header `Content-Disposition`. Default: none. */
  readonly contentDisposition?: string;
}

/** Options of `StorageDriver.presign()`. */
export interface PresignOptions extends DownloadHeaders {
  /** How long the URL works, in seconds, 1 to 604,800. */
  readonly expiresInSeconds: number;
}

/** Options of `StorageDriver.copy()`. */
export interface ObjectCopyOptions extends RequestOptions {
  /** Size of the object, if the caller knows it; required for an object that may be larger than 256 MiB. Default: not known. */
  readonly sizeBytes?: number;
  /** Media type of the object, for drivers that do not copy it. Default: none. */
  readonly contentType?: string;
}

/**
 * `copied`: the whole object was copied. `refused`: the driver cannot copy this object, or there is none, and nothing was
 * written. `requests` is the number of requests to the store, if it is not one.
 */
export interface CopyResult {
  /** The outcome. */
  readonly status: 'copied' | 'refused';
  /** Number of requests to the store. Default: one. */
  readonly requests?: number;
}

/** Options of `StorageDriver.removeUploads()`. */
export interface RemoveUploadsOptions extends RequestOptions {
  /** Uploads that began at this time or later are kept; milliseconds since 1970. Called only if there are any uploads. */
  readonly startedBeforeMs: () => Promise<number>;
}

/** The interface of a store that StoreDb needs. docs/drivers.md has the rules, and `driverConformance` checks them. */
export interface StorageDriver {
  /** Short name for logs, for instance `memory`. */
  readonly name: string;
  /**
   * True if the driver itself makes conditional puts atomic, so that a new database need not probe them. A driver that relies on
   * a server, or on anything else that it cannot check, leaves it out.
   */
  readonly certified?: true;
  /** True if the driver is for bundles of `db.publish()` only: `StoreDb()` refuses it. */
  readonly bundlesOnly?: true;
  /**
   * Identifies the store and its endpoint: two drivers have the same identity only if they reach the same objects through the
   * same server. If a store was certified with one of them, the other need not certify it again: a note in the store says so.
   * Without an identity, the result is remembered for this driver object only, while the process runs.
   */
  readonly identity?: string;
  /** Reads an object or a range of it. Never returns bytes of two versions. */
  get(key: string, options?: GetOptions): Promise<GetResult>;
  /** Writes a whole object atomically: readers see the old bytes or all of the new ones. Durable once resolved. */
  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult>;
  /** Deletes objects. Not atomic across keys. */
  delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult>;
  /** Returns one page of the keys that begin with `prefix`. The listing includes every put that resolved before the call. */
  list(prefix: string, options?: ListOptions): Promise<ListPage>;
  /** Returns a URL from which anyone can download the object for a limited time, if the store supports that. */
  presign?(key: string, options: PresignOptions): Promise<string>;
  /**
   * Copies an object within the store, if the store can do so without moving the bytes through this process. Atomic and durable
   * like a put. An existing object may be replaced or kept, so use it only for names whose objects never differ. It may be
   * repeated.
   */
  copy?(from: string, to: string, options?: ObjectCopyOptions): Promise<CopyResult>;
  /**
   * Removes the parts of multipart uploads under a prefix that began before a time of the store's clock and were never completed.
   * For stores that keep such parts. Resolves to the number of these uploads.
   */
  removeUploads?(prefix: string, options: RemoveUploadsOptions): Promise<number>;
  /**
   * Makes the store keep no bytes of objects under a prefix that were deleted or replaced before the call. For stores that keep such
   * bytes for a while. It may be repeated.
   */
  forget?(prefix: string, options?: RequestOptions): Promise<void>;
  /**
   * Returns the present time of the store's clock, in milliseconds since 1970, learnt from earlier responses without an extra
   * request; undefined before the first one. Without it, StoreDb uses the clock of the process.
   */
  storeTimeMs?(): number | undefined;
  /**
   * Returns facts about the store that the driver knows or has learnt, for reports: for instance the form of ETags that it
   * accepts.
   */
  describe?(): Readonly<Record<string, string>>;
  /** Releases sockets and handles. The driver may be used again afterwards. */
  close?(): Promise<void>;
}

/**
 * The interface of a cache for blocks that the user supplies. It may drop blocks, and StoreDb verifies the bytes that it returns.
 */
export interface CacheDriver {
  /** Returns the bytes stored under a key, or undefined (or null). */
  get(key: string): Uint8Array | null | undefined | Promise<Uint8Array | null | undefined>;
  /** Stores bytes; the cache may drop them at any time. Blocks never change, so no entry is ever out of date. */
  set(key: string, bytes: Uint8Array): void | Promise<void>;
  /** Deletes the bytes stored under a key, if there are any. */
  delete(key: string): void | Promise<void>;
}

/** Lists all objects whose keys begin with `prefix`, page by page, in the order of keys. */
export async function* listAll(
  driver: StorageDriver,
  prefix: string,
  options: RequestOptions = {},
): AsyncGenerator<ListEntry, void, undefined> {
  for (let after: string | undefined; ; ) {
    options.signal?.throwIfAborted();
    const page = await driver.list(prefix, { ...options, ...defined({ after }) });
    yield* page.entries;
    after = page.entries.at(-1)?.key;
    if (!page.more || after === undefined) return;
  }
}
