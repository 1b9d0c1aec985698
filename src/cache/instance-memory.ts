/**
 * The memory of an instance, for everything that grows with the data: leaves and inner nodes in the cache, the committed cache,
 * and the rows that queries collect. The cache uses the memory that the others leave, and shrinks as soon as they need more;
 * within it, its queues learn their shares. A part is reserved for memory that is not counted: blocks being read, merges, and
 * garbage that the runtime has not collected yet. An instance that shares a budget stays within its own limit and within the
 * limit of the budget ({@link SharedMemory}).
 */
import { MemoryBudgetError } from '../base/errors.ts';
import { BlockCache } from './block-cache.ts';
import { budgetStats, readAheadRoom, cacheRoom, scratchRoom, SharedMemory } from './memory-budget.ts';
import type { SharedMemoryStats, ReadMemory, Account } from './memory-budget.ts';

/** The present use of the memory of an instance. */
export interface MemoryStats {
  /** The limit of the instance: `maxMemoryBytes`. */
  readonly maxBytes: number;
  /** Bytes of cached leaves: rows, and entries of indexes. */
  readonly leafBytes: number;
  /** Bytes of cached inner nodes. */
  readonly innerBytes: number;
  /** Bytes of commits that queries see and that are not merged yet. */
  readonly committedBytes: number;
  /** Bytes that running queries have collected. */
  readonly scratchBytes: number;
  /** Bytes that cached blocks may take at the moment. */
  readonly cacheLimitBytes: number;
  /** The use of the shared budget by all its instances; undefined without the option `memory`. */
  readonly budget: SharedMemoryStats | undefined;
}

export interface InstanceMemoryOptions {
  readonly maxBytes: number;
  /** An estimate of the size of a block. */
  readonly blockBytes: number;
  /** The budget that the instance shares with others. */
  readonly shared?: SharedMemory | undefined;
}

/** Part of a shared budget that one instance may take for work that is not counted. */
const workShare = 1 / 4;

const mebibyte = 1024 * 1024;

/** The memory of an instance: its block cache and its account. */
export class InstanceMemory implements ReadMemory {
  readonly cache: BlockCache;
  readonly blockBytes: number;
  readonly readAheadBytes: number;
  /** The budget from which the memory of uncounted work is calculated: merging, checking, migrating. */
  readonly workBytes: number;
  readonly #maxBytes: number;
  readonly #memory: SharedMemory;
  readonly #isShared: boolean;
  readonly #account: Account;
  /** Whether the instance may take less than the whole budget that it draws from. */
  readonly #hasOwnBound: boolean;

  constructor({ maxBytes, blockBytes, shared }: InstanceMemoryOptions) {
    this.#maxBytes = maxBytes;
    this.blockBytes = blockBytes;
    this.#isShared = shared !== undefined;
    this.#memory = shared ?? new SharedMemory(maxBytes, blockBytes);
    this.workBytes = shared === undefined ? maxBytes : Math.min(maxBytes, shared.maxBytes * workShare);
    this.readAheadBytes = readAheadRoom(maxBytes);
    this.#account = this.#memory.join();
    // An instance that may take the whole budget needs no limit of its own: the limit of the budget applies.
    this.#hasOwnBound = maxBytes < this.#memory.maxBytes;
    const limitBytes = this.#hasOwnBound ? this.#ownCacheLimitBytes : Infinity;
    this.cache = new BlockCache(limitBytes, blockBytes, undefined, this.#memory.queues);
  }

  /**
   * Sets the function that merges pending commits, if the instance can merge. It is called when they take too much, and must not
   * reject.
   */
  mergeWith(merge: () => Promise<unknown>): void {
    this.#account.mergeWith(merge);
  }

  get #ownCacheLimitBytes(): number {
    const { committedBytes, scratchBytes } = this.#account;
    return cacheRoom(this.#maxBytes, committedBytes + scratchBytes);
  }

  /** Sets the bytes that the committed cache takes now. */
  setCommitted(bytes: number): void {
    this.#account.setCommitted(bytes);
    if (this.#hasOwnBound) this.cache.setLimit(this.#ownCacheLimitBytes);
  }

  /** The bytes that pending commits may take, given the pending commits of the other instances. */
  get waitingRoomBytes(): number {
    return this.#isShared ? this.#memory.waitingRoom(this.#account) : Infinity;
  }

  beginReadAhead(bytes: number): boolean {
    if (this.#account.readAheadBytes + bytes > this.readAheadBytes || !this.#memory.hasReadAheadRoom(bytes))
      return false;
    this.#account.addReadAhead(bytes);
    return true;
  }

  endReadAhead(bytes: number): void {
    this.#account.addReadAhead(-bytes);
  }

  take(bytes: number): void {
    if (bytes > 0) this.#checkRoom(bytes);
    this.#account.addScratch(bytes);
    if (this.#hasOwnBound) this.cache.setLimit(this.#ownCacheLimitBytes);
  }

  #checkRoom(more: number): void {
    const { committedBytes, scratchBytes } = this.#account;
    const own = scratchRoom(this.#maxBytes, committedBytes);
    const all = this.#memory.scratchRoom(this.#account, more);
    if (scratchBytes + more > own && this.#maxBytes < this.#memory.maxBytes) this.#refuse(own, false);
    if (this.#memory.scratchBytes + more > all) this.#refuse(all, this.#isShared);
    if (scratchBytes + more > own) this.#refuse(own, this.#isShared);
  }

  #refuse(roomBytes: number, ofAll: boolean): never {
    const maxBytes = ofAll ? this.#memory.maxBytes : this.#maxBytes;
    const room = `${(roomBytes / mebibyte).toFixed(1)} MiB of rows`;
    const ways =
      "Read the rows one by one with 'for await', by primary key or in the order of an index; ask for fewer, with " +
      'conditions, a limit or select(); or raise ';
    throw new MemoryBudgetError(
      maxBytes,
      ofAll
        ? `Queries under way, of all instances that share it, would hold more than ${room}, all that the MemoryBudget ` +
            `(${maxBytes}) leaves them. ${ways}it; with maxMemoryBytes for each instance, none takes all of it.`
        : `Queries under way would hold more than ${room}, all that the option maxMemoryBytes (${maxBytes}) leaves them. ` +
            `${ways}maxMemoryBytes.`,
    );
  }

  /** Gives everything back, for good. */
  close(): void {
    this.cache.close();
    this.#account.leave();
  }

  stats(): MemoryStats {
    const { leafBytes, innerBytes } = this.cache;
    const { committedBytes, scratchBytes } = this.#account;
    return {
      maxBytes: this.#maxBytes,
      leafBytes,
      innerBytes,
      committedBytes,
      scratchBytes,
      cacheLimitBytes: Math.min(this.#ownCacheLimitBytes, this.#memory.cacheLimitBytes),
      budget: this.#isShared ? budgetStats(this.#memory) : undefined,
    };
  }
}
