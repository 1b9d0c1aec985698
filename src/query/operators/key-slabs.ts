/**
 * Room for keys that are held for a while and then overwritten by others. They lie in a few large arrays: an array of
 * its own takes some 300 bytes beside its key, and leaves a hole of its size where it is freed.
 */
import type { ByteWriter } from '../../base/bytes.ts';
import { copyRange } from '../../base/bytes.ts';

/** Sizes of slabs: each is twice as large as the one before, up to the largest. */
const firstSlabBytes = 4096;
const largestSlabBytes = 256 * 1024;
/** Room is given in steps: then most keys fit where one of nearly their length was. */
const stepBytes = 32;

/** A key, and where it lies. */
export interface HeldKey {
  bytes: Uint8Array;
  start: number;
  /** One past its last byte. */
  end: number;
  /** One past the last byte that it may have there. */
  limit: number;
}

export class KeySlabs {
  #slab: Uint8Array = new Uint8Array(0);
  #used = 0;
  /** Memory that all slabs take. */
  sizeBytes = 0;

  /** Copies what was written to where `key` lies, or to a new place if it does not fit there. */
  put(key: HeldKey, { bytes, length }: ByteWriter): void {
    if (key.limit - key.start < length) this.#move(key, length);
    copyRange(bytes, 0, length, key.bytes, key.start);
    key.end = key.start + length;
  }

  /** A key that is to be put: it has no room yet. */
  get none(): HeldKey {
    return { bytes: this.#slab, start: 0, end: 0, limit: 0 };
  }

  #move(key: HeldKey, length: number): void {
    // Doubled where it moves once more, or keys that grow little by little would leave as many places behind.
    const room = Math.ceil(Math.max(length, (key.limit - key.start) * 2) / stepBytes) * stepBytes;
    if (this.#used + room > this.#slab.length) {
      const next = Math.min(largestSlabBytes, Math.max(firstSlabBytes, this.#slab.length * 2));
      this.#slab = new Uint8Array(Math.max(next, room));
      this.#used = 0;
      this.sizeBytes += this.#slab.length;
    }
    key.bytes = this.#slab;
    key.start = this.#used;
    this.#used += room;
    key.limit = this.#used;
  }
}
