/**
 * Blocks in memory, bounded in bytes. A holder of a {@link CacheEntry} finds its block again without a look-up;
 * eviction empties the entry. A query may go on using a node that was evicted meanwhile: nodes are immutable. Which block goes
 * is decided by queues ({@link BlockQueues}), of its own or shared with the caches of other instances.
 */
import { BlockQueues, defaultBlockBytes } from './block-queues.ts';
import type { CollectionHint } from './block-queues.ts';
import type { CachedNode, CacheEntry, QueuedEntry, EntryOwner } from './cached-node.ts';

/** How often blocks were asked for, by where they were found. */
export interface CacheCounters {
  /** In memory. */
  hits: number;
  /** In the cache behind it. */
  driverHits: number;
  /** In the store. */
  misses: number;
  /** How often a block came into memory or went: while this stays the same, so does what is there. */
  turnover: number;
}

/** What an entry and its place in the tables cost beside the block, in bytes: an estimate. */
const overheadBytes = 256;

export class BlockCache implements EntryOwner {
  /** Kept by those who read through the cache: a look-up that remembers its entry does not come by here. */
  readonly counters: CacheCounters = { hits: 0, driverHits: 0, misses: 0, turnover: 0 };
  readonly #queues: BlockQueues;
  /** What this cache may take of queues that it shares, in bytes, now. */
  readonly #share: (() => number) | undefined;
  readonly #entries = new Map<string, QueuedEntry>();
  #innerBytes = 0;
  #leafBytes = 0;
  #isClosed = false;

  /**
   * `limit`: what the blocks may take, in bytes, now. `blockBytes`: what a block takes, as an estimate. `hint` is told of
   * blocks that went. `shared`: queues of several caches, of which `limit` is the most that this one may take.
   */
  constructor(
    limit: number | (() => number),
    blockBytes: number = defaultBlockBytes,
    hint?: CollectionHint,
    shared?: BlockQueues,
  ) {
    const bound = typeof limit === 'number' ? () => limit : limit;
    this.#share = shared && bound;
    this.#queues = shared ?? new BlockQueues(bound, blockBytes, hint);
  }

  /** Bytes that the cached blocks take. */
  get sizeBytes(): number {
    return this.#innerBytes + this.#leafBytes;
  }

  /** Bytes that inner nodes take. */
  get innerBytes(): number {
    return this.#innerBytes;
  }

  /** Bytes that leaves take. */
  get leafBytes(): number {
    return this.#leafBytes;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** The entry of a cached block. `passing`: it is part of a scan, which is no reason to keep it longer. */
  find(name: string, passing = false): CacheEntry | undefined {
    const entry = this.#entries.get(name);
    if (entry !== undefined && !passing) entry.used = true;
    return entry;
  }

  /** Finds the entry of a cached block without counting the block as used, for callers that only ask whether it is there. */
  glance(name: string): CacheEntry | undefined {
    return this.#entries.get(name);
  }

  /** Holds a node and returns its entry; evicts others to make room. A node larger than the whole cache is not held. */
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
    const share = this.#share?.() ?? Infinity;
    const isHeld = !this.#isClosed && bytes <= share;
    if (!isHeld || !this.#queues.take(entry, passing, this.sizeBytes + bytes > share)) {
      entry.node = undefined;
      return entry;
    }
    this.#entries.set(node.name, entry);
    this.counters.turnover++;
    this.#count(entry, bytes);
    node.holder = entry;
    this.#queues.fit(entry);
    if (this.sizeBytes > share) this.#giveWay(share, entry);
    return entry;
  }

  /** Evicts what there is no room for any more. */
  fit(): void {
    this.#queues.fit();
    const share = this.#share?.() ?? Infinity;
    if (this.sizeBytes > share) this.#giveWay(share, undefined);
  }

  /** Forgets everything. */
  clear(): void {
    for (const entry of this.#entries.values()) this.#queues.drop(entry);
    this.counters.turnover++;
    if (this.#share === undefined) this.#queues.clearGhosts();
  }

  /** Forgets everything, and holds nothing any more: a read that ends later leaves nothing behind. */
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
    const share = this.#share?.() ?? Infinity;
    if (this.sizeBytes > share) this.#giveWay(share, entry);
  }

  /** Lets blocks of this cache alone go: what was used since, and inner nodes, only where nothing else is left. */
  #giveWay(share: number, keep: QueuedEntry | undefined): void {
    let spared = this.#entries.size;
    for (const [name, entry] of this.#entries) {
      if (this.sizeBytes <= share) return;
      if (entry === keep) continue;
      if ((entry.used || entry.queue === 'inner') && spared-- > 0) {
        entry.used = false;
        // Behind the others, where this loop comes by again.
        this.#entries.delete(name);
        this.#entries.set(name, entry);
      } else this.#queues.giveWay(entry);
    }
  }
}
