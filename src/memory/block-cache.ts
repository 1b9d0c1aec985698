/**
 * Blocks in memory, bounded in bytes. Whoever holds a {@link CacheSlot} finds its block again without a look-up;
 * eviction empties the slot. A query may go on using a node that was evicted meanwhile: nodes are immutable.
 *
 * There are three queues. Inner nodes have one of their own, since every way to a row leads through them. A leaf is
 * `fresh` at first; once it was used again it is `kept`. What a scan passes is never more than fresh, and where there is no
 * room it is held only if it came by lately, so that a scan of everything takes no room from what is read again and again. Which queue gives way is learnt
 * from the names of blocks that went lately (ghosts): a block that is asked for again after it went would have been
 * held if its queue had been longer, and that queue's share grows at the others' expense.
 */
import type { Node } from '../format/node.ts';
import type { CollectionHint } from './collection-hint.ts';
import { SlotQueue } from './slot-queue.ts';

/** Where a cached block is found again; empty once it was evicted. */
export interface CacheSlot {
  readonly name: string;
  node: Node | undefined;
  /** Used since its queue last passed it. */
  used: boolean;
  bytes: number;
}

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

type QueueName = 'inner' | 'fresh' | 'kept';

interface HeldSlot extends CacheSlot {
  queue: QueueName;
  before: HeldSlot | undefined;
  after: HeldSlot | undefined;
}

/** What a slot and its place in the tables cost beside the block, in bytes: an estimate. */
const overheadBytes = 256;
const defaultBlockBytes = 65_536;
/** So many ghosts there may be in the smallest cache. */
const fewestGhosts = 64;
/** Shares of fresh leaves among all leaves, and of inner nodes among all blocks, that the cache may learn. */
const freshShares = { least: 0.1, most: 0.5 };
const innerShares = { least: 0.25, most: 0.9, first: 0.5 };
/** An inner node that is missing is read before whatever lies below it: that is worth more than a leaf. */
const innerWeight = 4;
/** What a block that only passes counts as unused memory: the runtime finds the most of it among what is young. */
const passingShare = 1 / 2;

export class BlockCache {
  /** Kept by those who read through the cache: a look-up that remembers its slot does not come by here. */
  readonly counters: CacheCounters = { hits: 0, driverHits: 0, misses: 0, turnover: 0 };
  readonly #limit: () => number;
  readonly #blockBytes: number;
  readonly #slots = new Map<string, HeldSlot>();
  readonly #queues = {
    inner: new SlotQueue<HeldSlot>(),
    fresh: new SlotQueue<HeldSlot>(),
    kept: new SlotQueue<HeldSlot>(),
  };
  /** Names of blocks that went, the latest last, and the queue that they went from. */
  readonly #ghosts = new Map<string, QueueName>();
  readonly #hint: CollectionHint | undefined;
  #freshShare = freshShares.least;
  #innerShare = innerShares.first;

  /**
   * `limit`: what the blocks may take, in bytes, now. `blockBytes`: what a block takes, as an estimate. `hint` is told of
   * blocks that went.
   */
  constructor(limit: number | (() => number), blockBytes: number = defaultBlockBytes, hint?: CollectionHint) {
    this.#limit = typeof limit === 'number' ? () => limit : limit;
    this.#blockBytes = blockBytes;
    this.#hint = hint;
  }

  /** Bytes that the cached blocks take. */
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
    return this.#slots.size;
  }

  /** The slot of a cached block. `passing`: it is part of a scan, which is no reason to keep it longer. */
  find(name: string, passing = false): CacheSlot | undefined {
    const slot = this.#slots.get(name);
    if (slot !== undefined && !passing) slot.used = true;
    return slot;
  }

  /** The same for those who only want to know whether it is there: it does not count as used. */
  glance(name: string): CacheSlot | undefined {
    return this.#slots.get(name);
  }

  /** Holds a node and returns its slot; evicts others to make room. A node larger than the whole cache is not held. */
  add(node: Node, passing = false): CacheSlot {
    const known = this.#slots.get(node.name);
    if (known !== undefined) return known;
    const bytes = node.memoryBytes + overheadBytes;
    const slot: HeldSlot = {
      name: node.name,
      node,
      used: false,
      bytes,
      queue: node.level > 0 ? 'inner' : 'fresh',
      before: undefined,
      after: undefined,
    };
    const limit = this.#limit();
    if (bytes > limit) {
      slot.node = undefined;
      return slot;
    }
    if (!passing && this.#recall(slot, limit) && slot.queue === 'fresh') slot.queue = 'kept';
    if (passing && slot.queue === 'fresh' && this.sizeBytes + bytes > limit && !this.#ghosts.delete(node.name)) {
      this.#remember(node.name, 'fresh');
      slot.node = undefined;
      this.#hint?.add(bytes * passingShare);
      return slot;
    }
    this.#slots.set(node.name, slot);
    this.counters.turnover++;
    this.#queues[slot.queue].push(slot);
    node.onGrow = (extra) => this.#grow(slot, extra);
    if (this.sizeBytes > limit) this.#evict(limit, slot);
    return slot;
  }

  /** Evicts what there is no room for any more. */
  fit(): void {
    const limit = this.#limit();
    if (this.sizeBytes > limit) this.#evict(limit, undefined);
  }

  /** Forgets everything. */
  clear(): void {
    for (const slot of this.#slots.values()) slot.node = undefined;
    this.counters.turnover++;
    this.#slots.clear();
    this.#ghosts.clear();
    for (const queue of Object.values(this.#queues)) queue.clear();
  }

  #grow(slot: HeldSlot, extra: number): void {
    if (slot.node === undefined) return;
    slot.bytes += extra;
    this.#queues[slot.queue].bytes += extra;
    const limit = this.#limit();
    if (slot.bytes > limit) this.#drop(slot);
    else if (this.sizeBytes > limit) this.#evict(limit, slot);
  }

  /** Whether the block went lately; then the share of the queue that it went from grows. */
  #recall({ name, bytes }: CacheSlot, limit: number): boolean {
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

  #evict(limit: number, keep: HeldSlot | undefined): void {
    // A queue is gone round once at most to take away the marks; then every slot but `keep` may go.
    while (this.sizeBytes > limit) {
      const queue = this.#nextQueue(limit, keep);
      if (queue === undefined) return;
      const slot = this.#queues[queue].first as HeldSlot;
      if (slot !== keep && !slot.used) {
        this.#drop(slot);
        this.#remember(slot.name, queue);
        continue;
      }
      this.#queues[queue].remove(slot);
      if (slot.used && queue === 'fresh') slot.queue = 'kept';
      slot.used = false;
      this.#queues[slot.queue].push(slot);
    }
  }

  /** The queue that something is to go from: one that has more than its share, if there is one. */
  #nextQueue(limit: number, keep: HeldSlot | undefined): QueueName | undefined {
    const { inner, fresh } = this.#queues;
    const freshBytes = (limit - Math.min(limit, inner.bytes)) * this.#freshShare;
    const leaves: QueueName[] = fresh.bytes > freshBytes ? ['fresh', 'kept'] : ['kept', 'fresh'];
    const order: QueueName[] = inner.bytes > limit * this.#innerShare ? ['inner', ...leaves] : [...leaves, 'inner'];
    return order.find((name) => this.#queues[name].count > (keep?.queue === name ? 1 : 0));
  }

  #drop(slot: HeldSlot): void {
    this.#queues[slot.queue].remove(slot);
    this.#slots.delete(slot.name);
    this.counters.turnover++;
    slot.node = undefined;
    this.#hint?.add(slot.bytes);
  }

  #remember(name: string, queue: QueueName): void {
    this.#ghosts.delete(name);
    this.#ghosts.set(name, queue);
    const most = Math.max(fewestGhosts, this.#slots.size, Math.ceil(this.#limit() / this.#blockBytes));
    while (this.#ghosts.size > most) this.#ghosts.delete(this.#ghosts.keys().next().value as string);
  }
}
