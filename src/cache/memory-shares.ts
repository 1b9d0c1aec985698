/**
 * What a budget of memory is spent on: the blocks that are cached, and the accounts of the instances that draw from it, one or
 * many. Blocks have what the rest leaves; which of them go, of whichever instance, their queues decide.
 *
 * Nothing here is done for a read of a block that is in memory.
 */
import { BlockQueues } from './block-queues.ts';
import { CollectionHint } from './heap-hint.ts';

/** Part of a budget that blocks may have, with the commits that wait: the rest is for what is not counted. */
const cachedShare = 0.5;
/** Part of that which is left to blocks, whatever the others ask for. */
const leastCacheShare = 1 / 8;
/** Part of a budget that queries may have, with the commits that wait; and those of an instance that has little yet. */
const scratchShares = { usual: 3 / 4, small: 7 / 8 };
/** Part of a budget that is little. */
const smallShare = 1 / 64;
/** Queries may collect this much however small the budget is: the least that can be set for it. */
const leastScratchBytes = 1024 * 1024;
/** Part of what blocks may have that may be read ahead. */
const aheadShare = 1 / 8;
/** Part of a budget that the commits that wait in several instances may take before some of them are merged out of turn. */
const waitingShare = 1 / 8;
/** What one instance may have waiting, whatever those of the others take, in bytes. */
const leastWaitingBytes = 128 * 1024;

/** Bytes that queries may hold, of an instance or a budget of which commits that wait take `committedBytes`. */
export function scratchRoom(maxBytes: number, committedBytes: number, share: number = scratchShares.usual): number {
  return Math.max(leastScratchBytes, maxBytes * share - committedBytes);
}

/** What blocks may take, of an instance or a budget of which other things take `otherBytes`. */
export function cacheRoom(maxBytes: number, otherBytes: number): number {
  const most = Math.floor(maxBytes * cachedShare);
  return Math.max(Math.floor(most * leastCacheShare), most - otherBytes);
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
    return Math.max(leastWaitingBytes, this.maxBytes * waitingShare * 2 - others);
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
    // Whoever has counted its commits is not done yet.
    await Promise.resolve();
    await account.merge();
    this.#isMerging = false;
    this.#relieve();
  }
}
