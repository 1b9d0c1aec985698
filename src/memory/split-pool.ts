/**
 * One budget of memory for everything that grows with the data: leaves and inner nodes in the cache, the committed cache,
 * and what queries collect. The cache has whatever the others leave, and gives it back as soon as they ask for more; within
 * it, its queues learn their shares ({@link BlockCache}). A part is set aside for what is not counted: blocks on their way,
 * merges, and garbage that the runtime has not collected yet.
 */
import { MemoryBudgetError } from '../base/errors.ts';
import { BlockCache } from './block-cache.ts';
import { CollectionHint } from './collection-hint.ts';
import type { ReadMemory } from './scratch.ts';

/** How the budget of an instance is split at the moment. */
export interface MemoryStats {
  /** The budget: `maxMemoryBytes`. */
  readonly maxBytes: number;
  /** Bytes of cached leaves: rows, and entries of indexes. */
  readonly leafBytes: number;
  /** Bytes of cached inner nodes. */
  readonly innerBytes: number;
  /** Bytes of commits that are shown and not merged yet. */
  readonly committedBytes: number;
  /** Bytes that queries under way have collected. */
  readonly scratchBytes: number;
  /** Bytes that cached blocks may take beside those. */
  readonly cacheLimitBytes: number;
}

export interface SplitPoolOptions {
  readonly maxBytes: number;
  /** What a block takes, as an estimate. */
  readonly blockBytes: number;
  /** Bytes that the committed cache takes at the moment. */
  readonly committedBytes: () => number;
}

/** Part of the budget that the cache may have, with the committed cache: the rest is for what is not counted. */
const cachedShare = 0.5;
/** Part of that which is left to the cache, whatever the others ask for. */
const leastCacheShare = 1 / 8;
/** Part of the budget that queries may have, with the committed cache. */
const scratchShare = 3 / 4;
/** Queries may collect this much however small the budget is: the least that can be set for it. */
const leastScratchBytes = 1024 * 1024;

const mebibyte = 1024 * 1024;

export class SplitPool implements ReadMemory {
  readonly cache: BlockCache;
  readonly blockBytes: number;
  readonly #options: SplitPoolOptions;
  readonly #cachedBytes: number;
  #scratchBytes = 0;
  /** Bytes of blocks that are read ahead at the moment, by all. */
  #aheadBytes = 0;

  constructor(options: SplitPoolOptions) {
    this.#options = options;
    this.#cachedBytes = Math.floor(options.maxBytes * cachedShare);
    this.blockBytes = options.blockBytes;
    const hint = new CollectionHint(options.maxBytes);
    this.cache = new BlockCache(() => this.#cacheLimitBytes, options.blockBytes, hint);
  }

  get #cacheLimitBytes(): number {
    const left = this.#cachedBytes - this.#options.committedBytes() - this.#scratchBytes;
    return Math.max(Math.floor(this.#cachedBytes * leastCacheShare), left);
  }

  get aheadBytes(): number {
    return Math.floor(this.#cachedBytes / 8);
  }

  beginAhead(bytes: number): boolean {
    if (this.#aheadBytes + bytes > this.aheadBytes) return false;
    this.#aheadBytes += bytes;
    return true;
  }

  endAhead(bytes: number): void {
    this.#aheadBytes -= bytes;
  }

  take(bytes: number): void {
    const taken = this.#scratchBytes + bytes;
    if (bytes > 0) this.#checkRoom(taken);
    this.#scratchBytes = taken;
    if (bytes > 0) this.cache.fit();
  }

  #checkRoom(taken: number): void {
    const { maxBytes, committedBytes } = this.#options;
    const left = maxBytes * scratchShare - committedBytes();
    if (taken <= Math.max(leastScratchBytes, left)) return;
    throw new MemoryBudgetError(
      maxBytes,
      `Queries under way would hold more than ${(Math.max(leastScratchBytes, left) / mebibyte).toFixed(1)} MiB of rows, ` +
        `all that the option maxMemoryBytes (${maxBytes}) leaves them. Read the rows one by one with 'for await', by ` +
        'primary key or in the order of an index; ask for fewer, with conditions, a limit or select(); or raise ' +
        'maxMemoryBytes.',
    );
  }

  stats(): MemoryStats {
    const { leafBytes, innerBytes } = this.cache;
    const { maxBytes, committedBytes } = this.#options;
    return {
      maxBytes,
      leafBytes,
      innerBytes,
      committedBytes: committedBytes(),
      scratchBytes: this.#scratchBytes,
      cacheLimitBytes: this.#cacheLimitBytes,
    };
  }
}
