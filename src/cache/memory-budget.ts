/** A budget of memory as users make it, to be given to several instances. */
import { InvalidOptionError } from '../base/errors.ts';
import { describeValue } from '../base/messages.ts';
import { BlockQueues, CollectionHint, defaultBlockBytes } from './block-queues.ts';

// What a budget of memory is spent on: the blocks that are cached, and the accounts of the instances that draw from it, one or
// many. Blocks have what the rest leaves; which of them go, of whichever instance, their queues decide.
//
// Nothing here is done for a read of a block that is in memory.

/** Part of a budget that blocks may have, with the commits that wait: the rest is for what is not counted. */
const cachedShare = 0.5;
/** Part of that which is left to blocks, whatever the others ask for. */
const minCacheShare = 1 / 8;
/** Part of a budget that queries may have, with the commits that wait; and those of an instance that has little yet. */
const scratchShares = { usual: 3 / 4, small: 7 / 8 };
/** Part of a budget that is little. */
const smallShare = 1 / 64;
/** Queries may collect this much however small the budget is: the least that can be set for it. */
const minScratchBytes = 1024 * 1024;
/** Part of what blocks may have that may be read ahead. */
const aheadShare = 1 / 8;
/** Part of a budget that the commits that wait in several instances may take before some of them are merged out of turn. */
const waitingShare = 1 / 8;
/** What one instance may have waiting, whatever those of the others take, in bytes. */
const minWaitingBytes = 128 * 1024;

/** Bytes that queries may hold, of an instance or a budget of which commits that wait take `committedBytes`. */
export function scratchRoom(maxBytes: number, committedBytes: number, share: number = scratchShares.usual): number {
  return Math.max(minScratchBytes, maxBytes * share - committedBytes);
}

/** What blocks may take, of an instance or a budget of which other things take `otherBytes`. */
export function cacheRoom(maxBytes: number, otherBytes: number): number {
  const most = Math.floor(maxBytes * cachedShare);
  return Math.max(Math.floor(most * minCacheShare), most - otherBytes);
}

/** What may be read ahead at the same time. */
export function aheadRoom(maxBytes: number): number {
  return Math.floor(Math.floor(maxBytes * cachedShare) * aheadShare);
}

/** What one instance takes of a budget. */
export class Account {
  readonly #memory: SharedMemory;
  #merge: (() => Promise<unknown>) | undefined;
  #committedBytes = 0;
  #scratchBytes = 0;
  #aheadBytes = 0;
  #hasLeft = false;
  /** Whether merging has not helped since commits were counted last. */
  #isStuck = false;

  /** Made by {@link SharedMemory.join}. */
  constructor(memory: SharedMemory) {
    this.#memory = memory;
  }

  /**
   * Says what merges the commits that wait in the instance, where it can: it is called once those of all instances take too much
   * and this one has the most of them. It must not reject.
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

  get aheadBytes(): number {
    return this.#aheadBytes;
  }

  get canMerge(): boolean {
    return this.#merge !== undefined && !this.#isStuck;
  }

  /** Says what the commits that wait take now. */
  setCommitted(bytes: number): void {
    const more = bytes - this.#committedBytes;
    if (more === 0 || this.#hasLeft) return;
    this.#committedBytes = bytes;
    this.#isStuck = false;
    this.#memory.addCommitted(more);
  }

  /** Counts what queries hold: so much more, or less. */
  addScratch(bytes: number): void {
    if (this.#hasLeft) return;
    this.#scratchBytes += bytes;
    this.#memory.addScratch(bytes);
  }

  /** Counts what is read ahead: so much more, or less. */
  addAhead(bytes: number): void {
    if (this.#hasLeft) return;
    this.#aheadBytes += bytes;
    this.#memory.addAhead(bytes);
  }

  async merge(): Promise<void> {
    const before = this.#committedBytes;
    await this.#merge?.();
    this.#isStuck = this.#committedBytes >= before;
  }

  /** Gives everything back. What ends later counts no more. */
  leave(): void {
    if (this.#hasLeft) return;
    this.setCommitted(0);
    this.addScratch(-this.#scratchBytes);
    this.addAhead(-this.#aheadBytes);
    this.#hasLeft = true;
    this.#memory.left(this);
  }
}

export class SharedMemory {
  readonly maxBytes: number;
  readonly queues: BlockQueues;
  readonly #accounts = new Set<Account>();
  #committedBytes = 0;
  #scratchBytes = 0;
  #aheadBytes = 0;
  #isMerging = false;

  /** `blockBytes`: what a block takes, as an estimate. */
  constructor(maxBytes: number, blockBytes: number) {
    this.maxBytes = maxBytes;
    this.queues = new BlockQueues(() => this.cacheLimitBytes, blockBytes, new CollectionHint(maxBytes));
  }

  /** Instances that draw from it. */
  get count(): number {
    return this.#accounts.size;
  }

  get committedBytes(): number {
    return this.#committedBytes;
  }

  get scratchBytes(): number {
    return this.#scratchBytes;
  }

  /** What blocks may take, in bytes, now. */
  get cacheLimitBytes(): number {
    return cacheRoom(this.maxBytes, this.#committedBytes + this.#scratchBytes);
  }

  /** An instance begins to draw from it. */
  join(): Account {
    const account = new Account(this);
    this.#accounts.add(account);
    return account;
  }

  left(account: Account): void {
    this.#accounts.delete(account);
  }

  /** What queries of an account may hold in all before one more is refused: the bytes that all may hold then. */
  scratchRoom(account: Account, more: number): number {
    const isSmall = account.scratchBytes + more <= this.maxBytes * smallShare;
    return scratchRoom(this.maxBytes, this.#committedBytes, isSmall ? scratchShares.small : scratchShares.usual);
  }

  /** Whether so much more may be read ahead. */
  hasAheadRoom(more: number): boolean {
    return this.#aheadBytes + more <= aheadRoom(this.maxBytes);
  }

  /** What commits that wait in an instance may take, by what those of the others do. */
  waitingRoom(account: Account): number {
    const others = this.#committedBytes - account.committedBytes;
    return Math.max(minWaitingBytes, this.maxBytes * waitingShare * 2 - others);
  }

  addCommitted(bytes: number): void {
    this.#committedBytes += bytes;
    if (bytes > 0) this.queues.fit();
    this.#relieve();
  }

  addScratch(bytes: number): void {
    this.#scratchBytes += bytes;
    if (bytes > 0) this.queues.fit();
  }

  addAhead(bytes: number): void {
    this.#aheadBytes += bytes;
  }

  /** Where too much waits in all instances together, the one with the most merges, one after the other. */
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
    // The instance that has counted its commits is not done yet.
    await Promise.resolve();
    await account.merge();
    this.#isMerging = false;
    this.#relieve();
  }
}

// What a query works with beside blocks, as it is counted while the query runs: rows that it collects, and their keys.

/** The memory that queries read with. */
export interface ReadMemory {
  /** Bytes of blocks that one reader may have ahead of what it works on, or hold on to. */
  readonly aheadBytes: number;
  /** Size of a block, as an estimate. */
  readonly blockBytes: number;
  /** Says that a block is read ahead. False if as much is read ahead as may be: then it should not be. */
  beginAhead(bytes: number): boolean;
  /** It was read. */
  endAhead(bytes: number): void;
  /** Counts `bytes` more, or fewer. Throws `MemoryBudgetError` where there is no room for them. */
  take(bytes: number): void;
}

/** Memory of those who need no bound: tests, and readers that hold nothing. */
export const unboundedMemory: ReadMemory = {
  aheadBytes: 16 * 1024 * 1024,
  blockBytes: 65_536,
  beginAhead: () => true,
  endAhead: () => undefined,
  take: () => undefined,
};

/** Bytes that are asked of the pool at once. */
const stepBytes = 64 * 1024;

/** What one query has taken. */
export class Scratch {
  readonly #memory: ReadMemory;
  #used = 0;
  #taken = 0;

  constructor(memory: ReadMemory) {
    this.#memory = memory;
  }

  /** Counts bytes. Throws `MemoryBudgetError` if that is more than there is room for. */
  add(bytes: number): void {
    this.#used += bytes;
    if (this.#used <= this.#taken) return;
    // Estimates may be fractions, of which sums do not cancel out.
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

/** How a budget that instances share is used at the moment: by all of them together. */
export interface SharedMemoryStats {
  /** The budget. */
  readonly maxBytes: number;
  /** Running instances that draw from it. */
  readonly instances: number;
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

/**
 * By this a budget is known, whichever copy of the package it is of: a program may have two, one as ES modules and one as
 * CommonJS. The number changes whenever what stands behind it does.
 */
const brand: unique symbol = Symbol.for('store-db/memory-budget/1');

const minBytes = 1024 * 1024;

/**
 * Memory that several instances share: given to each of them as the option `memory`, it bounds what they take together. Blocks
 * that were not used for the longest time go first, of whichever instance they are, so that idle databases make room for
 * those in use. What an instance takes it gives back with `db.stop()`.
 */
export class MemoryBudget {
  /** The budget, in bytes. */
  readonly maxBytes: number;
  /** @internal */
  readonly [brand]: SharedMemory;

  /** `maxBytes`: at least 1 MiB; 256 MiB do for thousands of databases. Throws `InvalidOptionError`. */
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

  /** How it is used at the moment. `db.stats().memory` tells the part of one instance. */
  stats(): SharedMemoryStats {
    return budgetStats(this[brand]);
  }
}

/** What stands behind a budget; undefined for whatever is none. */
export function sharedMemoryOf(value: unknown): SharedMemory | undefined {
  return typeof value === 'object' && value !== null ? (value as Partial<MemoryBudget>)[brand] : undefined;
}

export function budgetStats(memory: SharedMemory): SharedMemoryStats {
  const { leafBytes, innerBytes } = memory.queues;
  const { maxBytes, count: instances, committedBytes, scratchBytes, cacheLimitBytes } = memory;
  return { maxBytes, instances, leafBytes, innerBytes, committedBytes, scratchBytes, cacheLimitBytes };
}
