/**
 * Memory budgets. Each instance that draws from a budget has an account, and cached blocks get the memory that pending commits
 * and queries leave. The queues of the budget choose the blocks to evict, from any instance. A hit in the block cache executes no
 * code of this file.
 */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { EvictionQueues, CollectionHint, defaultBlockBytes } from './eviction-queues.ts';

/** Part of a budget for blocks and pending commits: the rest is for memory that is not counted. */
const cachedShare = 0.5;
/** Part of {@link cachedShare} that blocks can always use, however much commits and queries take. */
const minCacheShare = 1 / 8;
/** Part of a budget for queries and pending commits: usually, and for the queries of an instance that has taken little so far. */
const scratchShares = { usual: 3 / 4, small: 7 / 8 };
/** Part of a budget up to which an instance has taken little. */
const smallShare = 1 / 64;
/** Bytes that queries may collect however small the budget is: the smallest budget that can be set. */
const minScratchBytes = 1024 * 1024;
/** Part of the memory for blocks that blocks read ahead may take. */
const readAheadShare = 1 / 8;
/** Part of a budget that the pending commits of all instances may take before some of them are merged out of turn. */
const waitingShare = 1 / 8;
/** Bytes of pending commits that one instance may always have, however much the other instances take. */
const minWaitingBytes = 128 * 1024;

/** Returns the bytes that queries may hold, of an instance or a budget whose pending commits take `committedBytes`. */
export function scratchRoom(maxBytes: number, committedBytes: number, share: number = scratchShares.usual): number {
  return Math.max(minScratchBytes, maxBytes * share - committedBytes);
}

/** Returns the bytes that blocks may take, of an instance or a budget whose commits and queries take `otherBytes`. */
export function cacheRoom(maxBytes: number, otherBytes: number): number {
  const most = Math.floor(maxBytes * cachedShare);
  return Math.max(Math.floor(most * minCacheShare), most - otherBytes);
}

/** Returns the bytes of blocks that may be read ahead at the same time. */
export function readAheadRoom(maxBytes: number): number {
  return Math.floor(Math.floor(maxBytes * cachedShare) * readAheadShare);
}

/** The memory that one instance takes from a budget. */
export class Account {
  readonly #memory: SharedMemory;
  #merge: (() => Promise<unknown>) | undefined;
  #committedBytes = 0;
  #scratchBytes = 0;
  #readAheadBytes = 0;
  #hasLeft = false;
  /** Whether merging has not helped since commits were counted last. */
  #isStuck = false;

  /** Made by {@link SharedMemory.join}. */
  constructor(memory: SharedMemory) {
    this.#memory = memory;
  }

  /**
   * Sets the function that merges the pending commits of the instance, if it can merge. It is called when the pending commits of
   * all instances take too much and this instance has the most of them. It must not reject.
   */
  mergeWith(merge: () => Promise<unknown>): void {
    this.#merge = merge;
  }

  get committedBytes(): number {
    return this.#committedBytes;
  }

  get scratchBytes(): number {
    return this.#scratchBytes;
  }

  get readAheadBytes(): number {
    return this.#readAheadBytes;
  }

  get canMerge(): boolean {
    return this.#merge !== undefined && !this.#isStuck;
  }

  /** Sets the bytes that pending commits take now. */
  setCommitted(bytes: number): void {
    const more = bytes - this.#committedBytes;
    if (more === 0 || this.#hasLeft) return;
    this.#committedBytes = bytes;
    this.#isStuck = false;
    this.#memory.addCommitted(more);
  }

  /** Adds to the bytes that queries hold; a negative number subtracts. */
  addScratch(bytes: number): void {
    if (this.#hasLeft) return;
    this.#scratchBytes += bytes;
    this.#memory.addScratch(bytes);
  }

  /** Adds to the bytes of blocks being read ahead; a negative number subtracts. */
  addReadAhead(bytes: number): void {
    if (this.#hasLeft) return;
    this.#readAheadBytes += bytes;
    this.#memory.addReadAhead(bytes);
  }

  async merge(): Promise<void> {
    const before = this.#committedBytes;
    await this.#merge?.();
    this.#isStuck = this.#committedBytes >= before;
  }

  /** Gives everything back. Later calls count nothing. */
  leave(): void {
    if (this.#hasLeft) return;
    this.setCommitted(0);
    this.addScratch(-this.#scratchBytes);
    this.addReadAhead(-this.#readAheadBytes);
    this.#hasLeft = true;
    this.#memory.left(this);
  }
}

/** The state of a budget: its accounts, the sums of their bytes, and the queues of cached blocks. */
export class SharedMemory {
  readonly maxBytes: number;
  readonly queues: EvictionQueues;
  readonly #accounts = new Set<Account>();
  #committedBytes = 0;
  #scratchBytes = 0;
  #readAheadBytes = 0;
  #isMerging = false;

  /** `blockBytes` is an estimate of the size of a block. */
  constructor(maxBytes: number, blockBytes: number) {
    this.maxBytes = maxBytes;
    this.queues = new EvictionQueues(this.cacheLimitBytes, blockBytes, new CollectionHint(maxBytes));
  }

  /** The number of instances that draw from the budget. */
  get count(): number {
    return this.#accounts.size;
  }

  get committedBytes(): number {
    return this.#committedBytes;
  }

  get scratchBytes(): number {
    return this.#scratchBytes;
  }

  /** The bytes that blocks may take at the moment. */
  get cacheLimitBytes(): number {
    return cacheRoom(this.maxBytes, this.#committedBytes + this.#scratchBytes);
  }

  /** Opens an account for an instance. */
  join(): Account {
    const account = new Account(this);
    this.#accounts.add(account);
    return account;
  }

  left(account: Account): void {
    this.#accounts.delete(account);
  }

  /** Returns the bytes that the queries of all accounts may hold, when the queries of `account` request `more` bytes. */
  scratchRoom(account: Account, more: number): number {
    const isSmall = account.scratchBytes + more <= this.maxBytes * smallShare;
    return scratchRoom(this.maxBytes, this.#committedBytes, isSmall ? scratchShares.small : scratchShares.usual);
  }

  /** Returns whether `more` bytes of blocks may be read ahead. */
  hasReadAheadRoom(more: number): boolean {
    return this.#readAheadBytes + more <= readAheadRoom(this.maxBytes);
  }

  /** Returns the bytes that the pending commits of an instance may take, given the pending commits of the others. */
  waitingRoom(account: Account): number {
    const others = this.#committedBytes - account.committedBytes;
    return Math.max(minWaitingBytes, this.maxBytes * waitingShare * 2 - others);
  }

  addCommitted(bytes: number): void {
    this.#committedBytes += bytes;
    this.queues.setLimit(this.cacheLimitBytes);
    this.#relieve();
  }

  addScratch(bytes: number): void {
    this.#scratchBytes += bytes;
    this.queues.setLimit(this.cacheLimitBytes);
  }

  addReadAhead(bytes: number): void {
    this.#readAheadBytes += bytes;
  }

  /** If the pending commits of all instances take too much, lets the instance with the most merge, one instance at a time. */
  #relieve(): void {
    if (this.#isMerging || this.#committedBytes <= this.maxBytes * waitingShare) return;
    let most: Account | undefined;
    for (const account of this.#accounts) {
      if (account.canMerge && account.committedBytes > (most?.committedBytes ?? 0)) most = account;
    }
    if (most === undefined) return;
    this.#isMerging = true;
    void this.#merge(most);
  }

  async #merge(account: Account): Promise<void> {
    // The caller, which has just counted its commits, must finish first.
    await Promise.resolve();
    await account.merge();
    this.#isMerging = false;
    this.#relieve();
  }
}

/** The memory that queries use. */
export interface ReadMemory {
  /** Bytes of blocks that one reader may read ahead or keep. */
  readonly readAheadBytes: number;
  /** Size of a block, as an estimate. */
  readonly blockBytes: number;
  /**
   * Reserves memory for a block to be read ahead. Returns false if there is none left: then the block should not be read ahead.
   */
  beginReadAhead(bytes: number): boolean;
  /** Releases the memory of a block that was read ahead. */
  endReadAhead(bytes: number): void;
  /**
   * Adds to the bytes that queries hold; a negative number subtracts. Throws `MemoryBudgetError` if there is no room for them.
   */
  take(bytes: number): void;
}

/** Memory without a bound, for tests and for readers that hold nothing. */
export const unboundedMemory: ReadMemory = {
  readAheadBytes: 16 * 1024 * 1024,
  blockBytes: 65_536,
  beginReadAhead: () => true,
  endReadAhead: () => undefined,
  take: () => undefined,
};

/** Bytes taken from the memory at once. */
const stepBytes = 64 * 1024;

/** The memory of one query apart from blocks: the rows that it collects, and their keys. */
export class Scratch {
  readonly #memory: ReadMemory;
  #used = 0;
  #taken = 0;

  constructor(memory: ReadMemory) {
    this.#memory = memory;
  }

  /** Adds to the bytes of the query. Throws `MemoryBudgetError` if there is no room for them. */
  add(bytes: number): void {
    this.#used += bytes;
    if (this.#used <= this.#taken) return;
    // Estimates may be fractions, and sums of fractions do not cancel out exactly.
    const more = Math.ceil(Math.max(this.#used - this.#taken, Math.min(stepBytes, this.#used)));
    this.#memory.take(more);
    this.#taken += more;
  }

  /** Gives everything back. */
  release(): void {
    if (this.#taken > 0) this.#memory.take(-this.#taken);
    this.#taken = 0;
    this.#used = 0;
  }
}

/** The present use of a budget that instances share, by all of them together. */
export interface SharedMemoryStats {
  /** The budget. */
  readonly maxBytes: number;
  /** Running instances that draw from the budget. */
  readonly instances: number;
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
}

/**
 * The property that identifies a budget across copies of the package: a program may load two, one as ES modules and one as
 * CommonJS. Its number changes whenever {@link SharedMemory} changes.
 */
const brand: unique symbol = Symbol.for('store-db/memory-budget/1');

const minBytes = 1024 * 1024;

/**
 * Memory that several instances share: passed to each of them as the option `memory`, it bounds the memory that they take
 * together. The least recently used blocks of all instances are evicted first, so idle databases make room for databases in use.
 * `db.stop()` gives the memory of an instance back.
 */
export class MemoryBudget {
  /** The budget, in bytes. */
  readonly maxBytes: number;
  /** @internal */
  readonly [brand]: SharedMemory;

  /** `maxBytes`: at least 1 MiB; 256 MiB are enough for thousands of databases. Throws `InvalidOptionError`. */
  constructor(maxBytes: number) {
    if (!Number.isSafeInteger(maxBytes) || maxBytes < minBytes) {
      throw new InvalidOptionError(
        'maxBytes',
        `new MemoryBudget() was given ${describeValue(maxBytes)}; it must be a number of bytes, an integer of at least ` +
          `${minBytes} (1 MiB), such as 256 * 1024 * 1024.`,
      );
    }
    this.maxBytes = maxBytes;
    this[brand] = new SharedMemory(maxBytes, defaultBlockBytes);
  }

  /** Returns the present use of the budget. `db.stats().memory` has the part of one instance. */
  stats(): SharedMemoryStats {
    return budgetStats(this[brand]);
  }
}

/** Returns the state of a budget; undefined for any other value. */
export function sharedMemoryOf(value: unknown): SharedMemory | undefined {
  return typeof value === 'object' && value !== null ? (value as Partial<MemoryBudget>)[brand] : undefined;
}

export function budgetStats(memory: SharedMemory): SharedMemoryStats {
  const { leafBytes, innerBytes } = memory.queues;
  const { maxBytes, count: instances, committedBytes, scratchBytes, cacheLimitBytes } = memory;
  return { maxBytes, instances, leafBytes, innerBytes, committedBytes, scratchBytes, cacheLimitBytes };
}
