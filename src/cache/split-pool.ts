/**
 * The memory of an instance, for everything that grows with the data: leaves and inner nodes in the cache, the committed cache,
 * and what queries collect. The cache has whatever the others leave, and gives it back as soon as they ask for more; within
 * it, its queues learn their shares. A part is set aside for what is not counted: blocks on their way,
 * merges, and garbage that the runtime has not collected yet. Where instances share a budget, each is bound by its own
 * bound and by what all of them take ({@link SharedMemory}).
 */
import { MemoryBudgetError } from '../base/errors.ts';
import { BlockCache } from './block-cache.ts';
import { budgetStats, aheadRoom, cacheRoom, scratchRoom, SharedMemory } from './memory-budget.ts';
import type { SharedMemoryStats, ReadMemory, Account } from './memory-budget.ts';

/** How the memory of an instance is split at the moment. */
export interface MemoryStats {
  /** What the instance may take: `maxMemoryBytes`. */
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
  /** How the budget is used that the instance shares with others, by all of them; undefined without the option `memory`. */
  readonly budget: SharedMemoryStats | undefined;
}

export interface SplitPoolOptions {
  readonly maxBytes: number;
  /** What a block takes, as an estimate. */
  readonly blockBytes: number;
  /** What the instance shares with others. */
  readonly shared?: SharedMemory | undefined;
}

/** Part of a shared budget that one instance may take for work that is not counted. */
const workShare = 1 / 4;

const mebibyte = 1024 * 1024;

export class SplitPool implements ReadMemory {
  readonly cache: BlockCache;
  readonly blockBytes: number;
  readonly aheadBytes: number;
  /** By this is reckoned what work may take that is not counted: merging, checking, migrating. */
  readonly workBytes: number;
  readonly #maxBytes: number;
  readonly #memory: SharedMemory;
  readonly #isShared: boolean;
  readonly #account: Account;

  constructor({ maxBytes, blockBytes, shared }: SplitPoolOptions) {
    this.#maxBytes = maxBytes;
    this.blockBytes = blockBytes;
    this.#isShared = shared !== undefined;
    this.#memory = shared ?? new SharedMemory(maxBytes, blockBytes);
    this.workBytes = shared === undefined ? maxBytes : Math.min(maxBytes, shared.maxBytes * workShare);
    this.aheadBytes = aheadRoom(maxBytes);
    this.#account = this.#memory.join();
    // An instance that may take all of it is bound by the sum that all take.
    const bound = maxBytes < this.#memory.maxBytes ? () => this.#ownCacheLimitBytes : Infinity;
    this.cache = new BlockCache(bound, blockBytes, undefined, this.#memory.queues);
  }

  /** Says what merges the commits that wait, where the instance can: it is called when they take too much. Must not reject. */
  mergeWith(merge: () => Promise<unknown>): void {
    this.#account.mergeWith(merge);
  }

  get #ownCacheLimitBytes(): number {
    const { committedBytes, scratchBytes } = this.#account;
    return cacheRoom(this.#maxBytes, committedBytes + scratchBytes);
  }

  /** Says what the committed cache takes now. */
  setCommitted(bytes: number): void {
    this.#account.setCommitted(bytes);
    this.cache.fit();
  }

  /** What commits that wait may take, by what those of other instances do. */
  get waitingRoomBytes(): number {
    return this.#isShared ? this.#memory.waitingRoom(this.#account) : Infinity;
  }

  beginAhead(bytes: number): boolean {
    if (this.#account.aheadBytes + bytes > this.aheadBytes || !this.#memory.hasAheadRoom(bytes)) return false;
    this.#account.addAhead(bytes);
    return true;
  }

  endAhead(bytes: number): void {
    this.#account.addAhead(-bytes);
  }

  take(bytes: number): void {
    if (bytes > 0) this.#checkRoom(bytes);
    this.#account.addScratch(bytes);
    if (bytes > 0) this.cache.fit();
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
