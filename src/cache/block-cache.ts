/**
 * The cache of blocks in memory, bounded in bytes. A holder of a {@link CacheEntry} finds its block again without a look-up;
 * eviction empties the entry. A query may keep using an evicted node, because nodes are immutable. The queues ({@link
 * BlockQueues}) choose the blocks to evict; a cache has its own queues, or shares them with the caches of other instances.
 */
import { EvictionQueues, defaultBlockBytes } from './eviction-queues.ts';
import type { CollectionHint } from './eviction-queues.ts';
import type { CachedNode, CacheEntry, QueuedEntry, EntryOwner } from './cached-node.ts';

/** Counts of block reads, by the place where the block was found. */
export interface CacheCounters {
  /** Reads served from memory. */
  hits: number;
  /** Reads served from the cache driver. */
  driverHits: number;
  /** Reads served from the store. */
  misses: number;
  /** Number of insertions and evictions: while it stays the same, the cache holds the same blocks. */
  turnover: number;
}

/** An estimate of the bytes that an entry takes, in the map too, without its block. */
const overheadBytes = 256;

/** A cache of blocks by name. */
export class BlockCache implements EntryOwner {
  /** Incremented by the readers: a reader that holds an entry reads its block without a call of the cache. */
  readonly counters: CacheCounters = { hits: 0, driverHits: 0, misses: 0, turnover: 0 };
  readonly #queues: EvictionQueues;
  readonly #sharesQueues: boolean;
  /** The bytes that this cache may take of queues that it shares. */
  #shareBytes = Infinity;
  readonly #entries = new Map<string, QueuedEntry>();
  #innerBytes = 0;
  #leafBytes = 0;
  #isClosed = false;

  /**
   * `limitBytes` is the number of bytes that the blocks may take at first. `blockBytes` is an estimate of the size of a block.
   * `hint` counts evicted blocks. `shared` are queues of several caches; `limitBytes` is then this cache's share of them.
   */
  constructor(
    limitBytes: number,
    blockBytes: number = defaultBlockBytes,
    hint?: CollectionHint,
    shared?: EvictionQueues,
  ) {
    this.#sharesQueues = shared !== undefined;
    if (shared !== undefined) this.#shareBytes = limitBytes;
    this.#queues = shared ?? new EvictionQueues(limitBytes, blockBytes, hint);
  }

  /** Bytes of all cached blocks. */
  get sizeBytes(): number {
    return this.#innerBytes + this.#leafBytes;
  }

  /** Bytes of inner nodes. */
  get innerBytes(): number {
    return this.#innerBytes;
  }

  /** Bytes of leaves. */
  get leafBytes(): number {
    return this.#leafBytes;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Returns the entry of a cached block, and marks it as used. With `passing`, for scans, it is not marked. */
  find(name: string, passing = false): CacheEntry | undefined {
    const entry = this.#entries.get(name);
    if (entry !== undefined && !passing) entry.used = true;
    return entry;
  }

  /** Finds the entry of a cached block without counting the block as used, for callers that only ask whether it is there. */
  peek(name: string): CacheEntry | undefined {
    return this.#entries.get(name);
  }

  /** Caches a node and returns its entry; evicts others to make room. A node larger than the whole cache is not cached. */
  add(node: CachedNode, passing = false): CacheEntry {
    const known = this.#entries.get(node.name);
    if (known !== undefined) return known;
    const bytes = node.memoryBytes + overheadBytes;
    const entry: QueuedEntry = {
      name: node.name,
      node,
      used: false,
      bytes,
      queue: node.level > 0 ? 'inner' : 'fresh',
      before: undefined,
      after: undefined,
      owner: this,
    };
    const share = this.#shareBytes;
    const isHeld = !this.#isClosed && bytes <= share;
    if (!isHeld || !this.#queues.take(entry, passing, this.sizeBytes + bytes > share)) {
      entry.node = undefined;
      return entry;
    }
    this.#entries.set(node.name, entry);
    this.counters.turnover++;
    this.#count(entry, bytes);
    node.holder = entry;
    if (share < Infinity) this.#fitShare(entry);
    return entry;
  }

  /** Sets the bytes that the blocks of this cache may take from now on, and evicts blocks while they take more. */
  setLimit(bytes: number): void {
    if (!this.#sharesQueues) return this.#queues.setLimit(bytes);
    this.#shareBytes = bytes;
    this.#fitShare(undefined);
  }

  /** Empties the cache. */
  clear(): void {
    for (const entry of this.#entries.values()) this.#queues.drop(entry);
    this.counters.turnover++;
    if (!this.#sharesQueues) this.#queues.clearGhosts();
  }

  /** Empties the cache for good: a read that ends later does not fill it again. */
  close(): void {
    this.#isClosed = true;
    this.clear();
  }

  dropped(entry: QueuedEntry): void {
    this.#entries.delete(entry.name);
    this.counters.turnover++;
    this.#count(entry, -entry.bytes);
  }

  #count({ queue }: QueuedEntry, bytes: number): void {
    if (queue === 'inner') this.#innerBytes += bytes;
    else this.#leafBytes += bytes;
  }

  grew(entry: QueuedEntry, extra: number): void {
    if (entry.node === undefined) return;
    this.#count(entry, extra);
    this.#queues.grow(entry, extra);
    if (this.#shareBytes < Infinity) this.#fitShare(entry);
  }

  /** Evicts blocks of this cache while they take more than its share of the queues, but never `keep`. */
  #fitShare(keep: QueuedEntry | undefined): void {
    if (this.sizeBytes > this.#shareBytes) this.#giveWay(this.#shareBytes, keep);
  }

  /** Evicts blocks of this cache only. Used leaves and inner nodes are evicted only if no other block is left. */
  #giveWay(share: number, keep: QueuedEntry | undefined): void {
    let spared = this.#entries.size;
    for (const [name, entry] of this.#entries) {
      if (this.sizeBytes <= share) return;
      if (entry === keep) continue;
      if ((entry.used || entry.queue === 'inner') && spared-- > 0) {
        entry.used = false;
        // Moves the entry to the end of the map, where this loop reaches it again.
        this.#entries.delete(name);
        this.#entries.set(name, entry);
      } else this.#queues.giveWay(entry);
    }
  }
}
