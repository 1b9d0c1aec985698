/**
 * The order in which cached blocks give way: of one instance, or of all that share a budget, so that the blocks of an instance
 * that nobody uses go before those of the others.
 *
 * There are three queues. Inner nodes have one of their own, since every way to a row leads through them. A leaf is
 * `fresh` at first; once it was used again it is `kept`. What a scan passes is never more than fresh, and where there is no
 * room it is held only if it came by lately, so that a scan of everything takes no room from what is read again and again. Which queue gives way is learnt
 * from the names of blocks that went lately (ghosts): a block that is asked for again after it went would have been
 * held if its queue had been longer, and that queue's share grows at the others' expense.
 */
import type { CacheEntry, QueuedEntry, QueueName } from './cached-node.ts';

// Tells the runtime of blocks that went from memory. V8 looks for memory outside its heap that nobody uses any more, as that of
// blocks, once there are 64 MiB more of it, and while it looks as much may come again: more than a small budget leaves room for.
// It counts buffers by their length, so that one of that length makes it look at once. The system gives such a buffer no memory
// until something is written to it, and nothing ever is.

const mebibyte = 1024 * 1024;
/** By how much V8 lets memory outside its heap grow before it looks (`kExternalAllocationSoftLimit`). */
const softLimitBytes = 64 * mebibyte;
/** Looking more often than that would cost more than the memory is worth. */
const minBytes = 16 * mebibyte;
/** Part of the budget that unused blocks may take before they are looked for. */
const unusedShare = 1 / 4;

export class CollectionHint {
  readonly #everyBytes: number;
  readonly #give: (lengthBytes: number) => void;
  #unusedBytes = 0;

  /** `budgetBytes`: of what unused blocks take a part. `give`, which gives the hint, is replaced by tests. */
  constructor(budgetBytes: number, give: (lengthBytes: number) => void = allocate) {
    this.#everyBytes = Math.max(minBytes, Math.floor(budgetBytes * unusedShare));
    this.#give = give;
  }

  /** So many bytes are not used any more. */
  add(bytes: number): void {
    this.#unusedBytes += bytes;
    if (this.#unusedBytes < this.#everyBytes) return;
    this.#unusedBytes = 0;
    // With a larger budget the runtime looks often enough by itself.
    if (this.#everyBytes < softLimitBytes) this.#give(softLimitBytes);
  }
}

function allocate(lengthBytes: number): void {
  try {
    void new ArrayBuffer(lengthBytes);
  } catch {
    // Where there is no room for it, the runtime has looked before it said so.
  }
}

// Entries in a line: the cache takes from the front and puts at the end, and can take out any of them at once.

/** What a queue asks of its members; each is in one queue at most. */
export interface Queued<T> {
  bytes: number;
  before: T | undefined;
  after: T | undefined;
}

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
/** So many ghosts there may be in the smallest cache. */
const minGhosts = 64;
/** Shares of fresh leaves among all leaves, and of inner nodes among all blocks, that the cache may learn. */
const freshShares = { least: 0.1, most: 0.5 };
const innerShares = { least: 0.25, most: 0.9, first: 0.5 };
/** An inner node that is missing is read before whatever lies below it: that is worth more than a leaf. */
const innerWeight = 4;
/** What a block that only passes counts as unused memory: the runtime finds the most of it among what is young. */
const passingShare = 1 / 2;

export class BlockQueues {
  readonly #limit: () => number;
  readonly #blockBytes: number;
  readonly #hint: CollectionHint | undefined;
  readonly #queues = {
    inner: new LruQueue<QueuedEntry>(),
    fresh: new LruQueue<QueuedEntry>(),
    kept: new LruQueue<QueuedEntry>(),
  };
  /** Names of blocks that went, the latest last, and the queue that they went from. */
  readonly #ghosts = new Map<string, QueueName>();
  #freshShare = freshShares.least;
  #innerShare = innerShares.first;

  /**
   * `limit`: what the blocks may take, in bytes, now. `blockBytes`: what a block takes, as an estimate. `hint` is told of
   * blocks that went.
   */
  constructor(limit: () => number, blockBytes: number, hint: CollectionHint | undefined) {
    this.#limit = limit;
    this.#blockBytes = blockBytes;
    this.#hint = hint;
  }

  /** Bytes that the blocks take. */
  get sizeBytes(): number {
    return this.#queues.inner.bytes + this.leafBytes;
  }

  /** Bytes that inner nodes take. */
  get innerBytes(): number {
    return this.#queues.inner.bytes;
  }

  /** Bytes that leaves take. */
  get leafBytes(): number {
    return this.#queues.fresh.bytes + this.#queues.kept.bytes;
  }

  get count(): number {
    const { inner, fresh, kept } = this.#queues;
    return inner.count + fresh.count + kept.count;
  }

  /**
   * Takes an entry in. False where it is not held: it is larger than there is room for at all, or only passes and there is no
   * room left (`isFull`: its owner has none). The caller that took one in makes room for it ({@link fit}).
   */
  take(entry: QueuedEntry, passing: boolean, isFull: boolean): boolean {
    const { name, bytes } = entry;
    const limit = this.#limit();
    if (bytes > limit) return false;
    if (!passing && this.#recall(entry, limit) && entry.queue === 'fresh') entry.queue = 'kept';
    const hasNoRoom = isFull || this.sizeBytes + bytes > limit;
    if (passing && entry.queue === 'fresh' && hasNoRoom && !this.#ghosts.delete(name)) {
      this.#remember(name, 'fresh');
      this.#hint?.add(bytes * passingShare);
      return false;
    }
    this.#queues[entry.queue].push(entry);
    return true;
  }

  /** Evicts what there is no room for any more, but for `keep`. */
  fit(keep?: QueuedEntry): void {
    const limit = this.#limit();
    if (this.sizeBytes > limit) this.#evict(limit, keep);
  }

  /** A block has grown by so many bytes. */
  grow(entry: QueuedEntry, extra: number): void {
    entry.bytes += extra;
    this.#queues[entry.queue].bytes += extra;
    if (entry.bytes > this.#limit()) this.drop(entry);
    else this.fit(entry);
  }

  /** Lets a block go. */
  drop(entry: QueuedEntry): void {
    this.#queues[entry.queue].remove(entry);
    entry.node = undefined;
    entry.owner.dropped(entry);
    this.#hint?.add(entry.bytes);
  }

  /** Lets a block go that gives way to others: if it is asked for again, that will be remembered. */
  giveWay(entry: QueuedEntry): void {
    const { name, queue } = entry;
    this.drop(entry);
    this.#remember(name, queue);
  }

  /** Forgets which blocks went. */
  clearGhosts(): void {
    this.#ghosts.clear();
  }

  /** Whether the block went lately; then the share of the queue that it went from grows. */
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
    // A queue is gone round once at most to take away the marks; then every entry but `keep` may go.
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

  /** The queue that something is to go from: one that has more than its share, if there is one. */
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
    const most = Math.max(minGhosts, this.count, Math.ceil(this.#limit() / this.#blockBytes));
    while (this.#ghosts.size > most) this.#ghosts.delete(this.#ghosts.keys().next().value as string);
  }
}
