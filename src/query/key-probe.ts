/** Tells of primary keys whether the ranges of an index have entries for them. */

export interface KeyProbe {
  /**
   * Whether the bytes of `key` from `start` to `end` are a primary key that is there; a promise if a block must be read to
   * tell: then it is to be asked again.
   */
  has(key: Uint8Array, start: number, end: number): boolean | Promise<void>;
}
