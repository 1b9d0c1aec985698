/**
 * The contract of a storage driver: the narrowest thing on which the protocol (docs/protocol.md) works.
 *
 * Three rules hold for every call:
 * - A lost race is a value (`lost`), never an error.
 * - A failure says whether it may have had an effect: drivers reject with `StorageError`, whose `outcome` is `none`
 *   only where the request definitely had no effect, now or later. Anything else is `unknown`.
 * - A condition is checked and the write made in one atomic step; a driver that reads first and then writes is unsafe.
 *
 * Keys are non-empty strings of at most 1,024 UTF-8 bytes; `/` separates folders only by convention.
 */
import { defined } from '../../base/options.ts';

/** Options that every request takes. */
export interface RequestOptions {
  /** Gives the request up. Whether it had an effect is then unknown. */
  readonly signal?: AbortSignal;
}

/** Options of `StorageDriver.get()`. */
export interface GetOptions extends RequestOptions {
  /** Bytes to read: `start` inclusive, `end` exclusive, both offsets in the object; clipped to its size. */
  readonly range?: { readonly start: number; readonly end: number };
  /** Answer `unchanged` if the object still has this ETag. */
  readonly ifNoneMatch?: string;
}

/** An object, or the range of it that was asked for. */
export interface FoundObject {
  /** Tells this answer from the others. */
  readonly status: 'found';
  /** The bytes that were asked for. */
  readonly bytes: Uint8Array;
  /** Opaque name of this version of the object. */
  readonly etag: string;
  /** Size of the whole object in bytes, whatever range was read. */
  readonly sizeBytes: number;
  /** When the store says the object was written, in milliseconds since 1970, by the store's clock. */
  readonly lastModifiedMs: number;
}

/** What a read is answered with. `unchanged` only where `ifNoneMatch` was given. */
export type GetResult = FoundObject | { readonly status: 'missing' } | { readonly status: 'unchanged' };

/** What must hold for a put to happen: nothing, no object of that key, or an object with exactly this ETag. */
export type PutCondition = 'any' | 'absent' | { readonly etag: string };

/** Whole bytes, or a stream of them whose size need not be known. A stream is consumed once. */
export type PutBody = Uint8Array | AsyncIterable<Uint8Array>;

/** Options of `StorageDriver.put()`. */
export interface PutOptions extends RequestOptions {
  /** What must hold for the put to happen. */
  readonly if: PutCondition;
  /** Media type that a download of the object should carry. Drivers that cannot keep it may ignore it. */
  readonly contentType?: string;
  /** Nothing of what is replaced is to stay behind, as far as the driver keeps old versions itself. Default false. */
  readonly purge?: boolean;
  /** One of many writes of work in the background: others may go before it. Default false. */
  readonly background?: boolean;
}

/**
 * `lost`: the condition did not hold (also when the object to replace is missing), and nothing was written. `requests`
 * is how many requests to the store it took, where that is not one.
 */
export type PutResult =
  | { readonly status: 'written'; readonly etag: string; readonly requests?: number }
  | { readonly status: 'lost'; readonly requests?: number };

/** What a deletion is answered with. */
export interface DeleteResult {
  /** Keys that could not be deleted; deleting a missing key is no failure. */
  readonly failed: readonly { readonly key: string; readonly message: string }[];
  /** How many requests to the store it took, where that is not one. */
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
  /** When the store says the object was written, in milliseconds since 1970. */
  readonly lastModifiedMs: number;
}

/** One page of keys in the order of their UTF-8 bytes. */
export interface ListPage {
  /** The entries of this page. */
  readonly entries: readonly ListEntry[];
  /** Whether keys follow; ask again with `after` set to the last entry's key. */
  readonly more: boolean;
}

/** What the answer of a URL says of the bytes. A browser may run what comes without them, so drivers must carry them. */
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
  /** Size of the object, where the caller knows it; one that may be larger than 256 MiB needs it. Default: not known. */
  readonly sizeBytes?: number;
  /** Media type of the object, for drivers that must be told it again. Default: none. */
  readonly contentType?: string;
}

/**
 * `copied`: all of it is there. `refused`: the driver cannot copy this object, or there is none, and nothing was written.
 * `requests` is how many requests to the store it took, where that is not one.
 */
export interface CopyResult {
  /** How it ended. */
  readonly status: 'copied' | 'refused';
  /** How many requests to the store it took. Default: one. */
  readonly requests?: number;
}

/** Options of `StorageDriver.removeUploads()`. */
export interface RemoveUploadsOptions extends RequestOptions {
  /** Uploads that began later are left alone; milliseconds since 1970. Only asked where there are any. */
  readonly startedBeforeMs: () => Promise<number>;
}

/** What StoreDb needs of a store. docs/drivers.md has the rules, and `driverConformance` checks them. */
export interface StorageDriver {
  /** Short name for logs, for instance `memory`. */
  readonly name: string;
  /**
   * True where the driver itself makes conditions atomic, so that a new database need not try them out. A driver that
   * relies on a server, or on anything else that it cannot see, leaves it out.
   */
  readonly certified?: true;
  /**
   * Names the store, and how it is reached: two drivers give the same text only if they reach the same objects through the same
   * server. A store that was tried out with one need not be tried out with the other, for which a note is kept in the store.
   * Without it, that is remembered of this very driver, while the process runs.
   */
  readonly identity?: string;
  /** Reads an object or a range of it. Never answers with bytes of two versions. */
  get(key: string, options?: GetOptions): Promise<GetResult>;
  /** Writes a whole object atomically: readers see the old bytes or all of the new ones. Durable once resolved. */
  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult>;
  /** Deletes objects. Not atomic across keys. */
  delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult>;
  /** One page of the keys that begin with `prefix`. Every put that was answered before the call is in it. */
  list(prefix: string, options?: ListOptions): Promise<ListPage>;
  /** A URL from which anyone can download the object for a while, where the store can do that. */
  presign?(key: string, options: PresignOptions): Promise<string>;
  /**
   * Copies an object within the store, where the store can do that without the bytes being moved through this process.
   * Atomic and durable as a put is. An object that is there already is replaced or stays, and so this is for names whose
   * object never differs, and may be repeated.
   */
  copy?(from: string, to: string, options?: ObjectCopyOptions): Promise<CopyResult>;
  /**
   * Removes what uploads under a prefix left behind that began before a time of the store's clock, and that nobody
   * completed: parts that are no objects yet. For stores that keep such parts. Resolves to how many uploads there were.
   */
  removeUploads?(prefix: string, options: RemoveUploadsOptions): Promise<number>;
  /**
   * The store's own time now, in milliseconds since 1970, as its answers have told it without being asked; undefined as long as
   * they have not. Where there is none, the clock of the process is believed.
   */
  storeTimeMs?(): number | undefined;
  /** What the driver knows or has learnt of its store, for reports: for instance how it wants ETags to be written. */
  describe?(): Readonly<Record<string, string>>;
  /** Releases sockets and handles. The driver may be used again afterwards. */
  close?(): Promise<void>;
}

/** The contract of a cache of the user's own for blocks: a place that may forget, and whose bytes are checked anyway. */
export interface CacheDriver {
  /** The bytes held under a key, or undefined (null is taken for that too). */
  get(key: string): Uint8Array | null | undefined | Promise<Uint8Array | null | undefined>;
  /** Holds bytes; may be forgotten at any time. Blocks never change, so nothing is ever out of date. */
  set(key: string, bytes: Uint8Array): void | Promise<void>;
  /** Drops the bytes held under a key, if there are any. */
  delete(key: string): void | Promise<void>;
}

// Listings of more than one page.

/** Every object whose key begins with `prefix`, in the order of keys. */
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
