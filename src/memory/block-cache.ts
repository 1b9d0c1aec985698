/**
 * Blocks in memory, bounded in bytes. Whoever holds a {@link CacheSlot} finds its block again without a look-up;
 * eviction empties the slot. The order of eviction is a clock: a block that was used since the hand last passed is
 * spared once, and one that was read and never used again goes first, so that a scan of everything does not empty the
 * cache. A query may go on using a node that was evicted meanwhile: nodes are immutable.
 */
import type { Node } from '../format/node.ts';

/** Where a cached block is found again; empty once it was evicted. */
export interface CacheSlot {
  readonly name: string;
  node: Node | undefined;
  /** Used since the hand last passed. */
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
}

/** What a slot and its place in the tables cost beside the block, in bytes: an estimate. */
const overheadBytes = 256;

export class BlockCache {
  /** Kept by those who read through the cache: a look-up that remembers its slot does not come by here. */
  readonly counters: CacheCounters = { hits: 0, driverHits: 0, misses: 0 };
  readonly #maxBytes: number;
  readonly #slots = new Map<string, CacheSlot>();
  /** The clock's ring: slots in order of arrival; the hand goes round. */
  #ring: CacheSlot[] = [];
  #hand = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that the cached blocks take. */
  get sizeBytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#slots.size;
  }

  /** The slot of a cached block. */
  find(name: string): CacheSlot | undefined {
    const slot = this.#slots.get(name);
    if (slot !== undefined) slot.used = true;
    return slot;
  }

  /** The same for those who only want to know whether it is there: it does not count as used. */
  glance(name: string): CacheSlot | undefined {
    return this.#slots.get(name);
  }

  /** Holds a node and returns its slot; evicts others to make room. A node larger than the whole cache is not held. */
  add(node: Node): CacheSlot {
    const known = this.#slots.get(node.name);
    if (known !== undefined) return known;
    const bytes = node.memoryBytes + overheadBytes;
    const slot: CacheSlot = { name: node.name, node, used: false, bytes };
    if (bytes > this.#maxBytes) {
      slot.node = undefined;
      return slot;
    }
    this.#slots.set(node.name, slot);
    this.#ring.push(slot);
    this.#bytes += bytes;
    node.onGrow = (extra) => {
      if (slot.node === undefined) return;
      slot.bytes += extra;
      this.#bytes += extra;
      if (slot.bytes > this.#maxBytes) this.#drop(slot, this.#ring.indexOf(slot));
      else if (this.#bytes > this.#maxBytes) this.#evict(slot);
    };
    if (this.#bytes > this.#maxBytes) this.#evict(slot);
    return slot;
  }

  /** Forgets everything. */
  clear(): void {
    for (const slot of this.#ring) slot.node = undefined;
    this.#slots.clear();
    this.#ring = [];
    this.#hand = 0;
    this.#bytes = 0;
  }

  #evict(keep: CacheSlot): void {
    // Two rounds at most: the first takes away the marks, the second finds every slot but `keep` unmarked.
    for (let steps = this.#ring.length * 2; steps > 0 && this.#bytes > this.#maxBytes; steps--) {
      if (this.#hand >= this.#ring.length) this.#hand = 0;
      const slot = this.#ring[this.#hand] as CacheSlot;
      if (slot === keep || slot.used) {
        slot.used = false;
        this.#hand++;
        continue;
      }
      this.#drop(slot, this.#hand);
    }
  }

  /** Forgets the slot at a place of the ring; the ring's last one takes the place. */
  #drop(slot: CacheSlot, place: number): void {
    const last = this.#ring.pop() as CacheSlot;
    if (last !== slot) this.#ring[place] = last;
    this.#slots.delete(slot.name);
    this.#bytes -= slot.bytes;
    slot.node = undefined;
  }
}
