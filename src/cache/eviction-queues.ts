/**
 * The eviction order of cached blocks, of one instance or of all instances that share a budget. In a shared budget the blocks of
 * an idle instance are evicted before the blocks of the others.
 *
 * There are three queues. Inner nodes have a separate one, because every path to a row leads through them. A leaf is `fresh` at
 * first, and `kept` once it was used again. A leaf read by a scan stays fresh, and in a full cache it is held only if it was read
 * or evicted lately, so a full scan does not displace blocks that are read often. As in ARC, the shares of the queues are learnt
 * from the names of recently evicted blocks (ghosts): a block that is read again after its eviction would have been a hit if its
 * queue had been longer, so the share of that queue grows at the expense of the others.
 */
import type { CacheEntry, QueuedEntry, QueueName } from './cached-node.ts';

const mebibyte = 1024 * 1024;
/** Growth of memory outside V8's heap after which V8 starts a collection (`kExternalAllocationSoftLimit`). */
const softLimitBytes = 64 * mebibyte;
/** Fewest bytes of evicted blocks between hints: more frequent collections would cost more than the memory is worth. */
const minBytes = 16 * mebibyte;
/** Part of the budget that evicted blocks may take before a hint. */
const unusedShare = 1 / 4;

/**
 * Makes V8 collect the buffers of evicted blocks sooner. V8 starts a collection once memory outside its heap, such as blocks, has
 * grown by 64 MiB, and as much may be allocated while it collects: more than a small budget leaves room for. V8 counts buffers by
 * their length, so allocating one of that length starts a collection at once. The system gives such a buffer no memory until it
 * is written, and it is never written.
 */
export class CollectionHint {
  readonly #everyBytes: number;
  readonly #give: (lengthBytes: number) => void;
  #unusedBytes = 0;

  /** `budgetBytes` is the budget, part of which evicted blocks may take. Tests replace `give`, which gives the hint. */
  constructor(budgetBytes: number, give: (lengthBytes: number) => void = allocate) {
    this.#everyBytes = Math.max(minBytes, Math.floor(budgetBytes * unusedShare));
    this.#give = give;
  }

  /** Counts the bytes of a block that is no longer used, and gives the hint once there are enough. */
  add(bytes: number): void {
    this.#unusedBytes += bytes;
    if (this.#unusedBytes < this.#everyBytes) return;
    this.#unusedBytes = 0;
    // With a larger budget the runtime collects often enough by itself.
    if (this.#everyBytes < softLimitBytes) this.#give(softLimitBytes);
  }
}

function allocate(lengthBytes: number): void {
  try {
    void new ArrayBuffer(lengthBytes);
  } catch {
    // If the allocation fails, the runtime has already collected.
  }
}

/** A member of a queue; it is in at most one. */
export interface Queued<T> {
  bytes: number;
  before: T | undefined;
  after: T | undefined;
}

/** A doubly linked list: the cache takes entries from the front, adds them at the end, and can remove any entry. */
class LruQueue<T extends Queued<T>> {
  first: T | undefined;
  #last: T | undefined;
  count = 0;
  bytes = 0;

  push(entry: T): void {
    entry.before = this.#last;
    entry.after = undefined;
    if (this.#last === undefined) this.first = entry;
    else this.#last.after = entry;
    this.#last = entry;
    this.count++;
    this.bytes += entry.bytes;
  }

  remove(entry: T): void {
    if (entry.before === undefined) this.first = entry.after;
    else entry.before.after = entry.after;
    if (entry.after === undefined) this.#last = entry.before;
    else entry.after.before = entry.before;
    entry.before = undefined;
    entry.after = undefined;
    this.count--;
    this.bytes -= entry.bytes;
  }

  clear(): void {
    this.first = undefined;
    this.#last = undefined;
    this.count = 0;
    this.bytes = 0;
  }
}

export const defaultBlockBytes = 65_536;
/** Ghosts that the smallest cache may have. */
const minGhosts = 64;
/** The ranges of the learnt shares: of fresh leaves among all leaves, and of inner nodes among all blocks. */
const freshShares = { least: 0.1, most: 0.5 };
const innerShares = { least: 0.25, most: 0.9, first: 0.5 };
/** Weight of a miss of an inner node. It is worth more than a leaf, because it must be read before the nodes below it. */
const innerWeight = 4;
/** Part of a scanned block's size that counts as unused memory: the runtime frees most such blocks with the young generation. */
const passingShare = 1 / 2;

/** The queues of cached blocks: they hold the entries of one or several caches, and evict them. */
export class EvictionQueues {
  #limitBytes: number;
  readonly #blockBytes: number;
  readonly #hint: CollectionHint | undefined;
  readonly #queues = {
    inner: new LruQueue<QueuedEntry>(),
    fresh: new LruQueue<QueuedEntry>(),
    kept: new LruQueue<QueuedEntry>(),
  };
  /** Names of evicted blocks, the latest last, and the queue that each was evicted from. */
  readonly #ghosts = new Map<string, QueueName>();
  #freshShare = freshShares.least;
  #innerShare = innerShares.first;

  /**
   * `limitBytes`: the bytes that the blocks may take at first. `blockBytes`: the size of a block, as an estimate. `hint` counts
   * evicted blocks.
   */
  constructor(limitBytes: number, blockBytes: number, hint: CollectionHint | undefined) {
    this.#limitBytes = limitBytes;
    this.#blockBytes = blockBytes;
    this.#hint = hint;
  }

  /** Bytes of all blocks. */
  get sizeBytes(): number {
    return this.#queues.inner.bytes + this.leafBytes;
  }

  /** Bytes of inner nodes. */
  get innerBytes(): number {
    return this.#queues.inner.bytes;
  }

  /** Bytes of leaves. */
  get leafBytes(): number {
    return this.#queues.fresh.bytes + this.#queues.kept.bytes;
  }

  get count(): number {
    const { inner, fresh, kept } = this.#queues;
    return inner.count + fresh.count + kept.count;
  }

  /**
   * Adds an entry, and evicts others to make room. Returns false if it is not held: because it is larger than the limit, or because
   * a scan read it (`passing`) and there is no room left (`isFull`: its cache has none left).
   */
  take(entry: QueuedEntry, passing: boolean, isFull: boolean): boolean {
    const { name, bytes } = entry;
    const limit = this.#limitBytes;
    if (bytes > limit) return false;
    if (!passing && this.#recall(entry, limit) && entry.queue === 'fresh') entry.queue = 'kept';
    const hasNoRoom = isFull || this.sizeBytes + bytes > limit;
    if (passing && entry.queue === 'fresh' && hasNoRoom && !this.#ghosts.delete(name)) {
      this.#remember(name, 'fresh');
      this.#hint?.add(bytes * passingShare);
      return false;
    }
    this.#queues[entry.queue].push(entry);
    this.#fit(entry);
    return true;
  }

  /** Sets the bytes that the blocks may take from now on, and evicts blocks while they take more. */
  setLimit(bytes: number): void {
    this.#limitBytes = bytes;
    this.#fit();
  }

  /** Evicts blocks while they take more than the limit, but never `keep`. */
  #fit(keep?: QueuedEntry): void {
    if (this.sizeBytes > this.#limitBytes) this.#evict(this.#limitBytes, keep);
  }

  /** Counts the growth of a block. */
  grow(entry: QueuedEntry, extra: number): void {
    entry.bytes += extra;
    this.#queues[entry.queue].bytes += extra;
    if (entry.bytes > this.#limitBytes) this.drop(entry);
    else this.#fit(entry);
  }

  /** Removes a block. */
  drop(entry: QueuedEntry): void {
    this.#queues[entry.queue].remove(entry);
    entry.node = undefined;
    entry.owner.dropped(entry);
    this.#hint?.add(entry.bytes);
  }

  /** Evicts a block, and remembers its name as a ghost. */
  giveWay(entry: QueuedEntry): void {
    const { name, queue } = entry;
    this.drop(entry);
    this.#remember(name, queue);
  }

  /** Forgets the ghosts. */
  clearGhosts(): void {
    this.#ghosts.clear();
  }

  /** Returns whether a block is a ghost. If so, the share of the queue that it was evicted from grows. */
  #recall({ name, bytes }: CacheEntry, limit: number): boolean {
    const went = this.#ghosts.get(name);
    if (went === undefined) return false;
    this.#ghosts.delete(name);
    const part = bytes / limit;
    if (went === 'inner') this.#innerShare = Math.min(innerShares.most, this.#innerShare + part * innerWeight);
    else {
      this.#innerShare = Math.max(innerShares.least, this.#innerShare - part);
      const fresh = this.#freshShare + (went === 'fresh' ? part : -part);
      this.#freshShare = Math.min(freshShares.most, Math.max(freshShares.least, fresh));
    }
    return true;
  }

  #evict(limit: number, keep: QueuedEntry | undefined): void {
    // At most one round through a queue clears the marks of use; then every entry but `keep` can be evicted.
    while (this.sizeBytes > limit) {
      const queue = this.#nextQueue(limit, keep);
      if (queue === undefined) return;
      const entry = this.#queues[queue].first as QueuedEntry;
      if (entry !== keep && !entry.used) {
        this.giveWay(entry);
        continue;
      }
      this.#queues[queue].remove(entry);
      if (entry.used && queue === 'fresh') entry.queue = 'kept';
      entry.used = false;
      this.#queues[entry.queue].push(entry);
    }
  }

  /** Returns the queue to evict from: one that exceeds its share, if there is one. */
  #nextQueue(limit: number, keep: QueuedEntry | undefined): QueueName | undefined {
    const { inner, fresh } = this.#queues;
    const freshBytes = (limit - Math.min(limit, inner.bytes)) * this.#freshShare;
    const leaves: QueueName[] = fresh.bytes > freshBytes ? ['fresh', 'kept'] : ['kept', 'fresh'];
    const order: QueueName[] = inner.bytes > limit * this.#innerShare ? ['inner', ...leaves] : [...leaves, 'inner'];
    return order.find((name) => this.#queues[name].count > (keep?.queue === name ? 1 : 0));
  }

  #remember(name: string, queue: QueueName): void {
    this.#ghosts.delete(name);
    this.#ghosts.set(name, queue);
    const most = Math.max(minGhosts, this.count, Math.ceil(this.#limitBytes / this.#blockBytes));
    while (this.#ghosts.size > most) this.#ghosts.delete(this.#ghosts.keys().next().value as string);
  }
}
