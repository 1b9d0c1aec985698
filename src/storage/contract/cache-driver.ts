/** The contract of a cache of the user's own for blocks: a place that may forget, and whose bytes are checked anyway. */
export interface CacheDriver {
  /** The bytes held under a key, or undefined (null is taken for that too). */
  get(key: string): Uint8Array | null | undefined | Promise<Uint8Array | null | undefined>;
  /** Holds bytes; may be forgotten at any time. Blocks never change, so nothing is ever out of date. */
  set(key: string, bytes: Uint8Array): void | Promise<void>;
  /** Drops the bytes held under a key, if there are any. */
  delete(key: string): void | Promise<void>;
}
