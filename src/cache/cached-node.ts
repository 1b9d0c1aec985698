/**
 * Nodes as trees read them: what was found out on the way through a node stays with it while it is in memory, and counts as
 * part of it. That is where the blocks of its children are, and for leaves of an index where the rows of its entries are.
 */
import { sealedKind } from '../format/block.ts';
import { Node, nodeKind } from '../format/node.ts';
import { RowPlaces } from './row-places.ts';

/** Where a cached block is found again; empty once it was evicted. */
export interface CacheSlot {
  readonly name: string;
  node: CachedNode | undefined;
  /** Used since its queue last passed it. */
  used: boolean;
  bytes: number;
}

export type QueueName = 'inner' | 'fresh' | 'kept';

/** A slot in a queue. */
export interface HeldSlot extends CacheSlot {
  queue: QueueName;
  before: HeldSlot | undefined;
  after: HeldSlot | undefined;
  readonly owner: SlotOwner;
}

/** The cache that a slot is of. */
export interface SlotOwner {
  /** The slot has left its queue, and has no block any more. */
  dropped(slot: HeldSlot): void;
  /** The block of the slot takes so many bytes more. */
  grew(slot: HeldSlot, bytes: number): void;
}

export class CachedNode extends Node {
  /** For inner nodes: the slot of each child that was looked for, which has its name at least. */
  slots: CacheSlot[] | undefined = undefined;
  /** The slot that holds the node, or the last that did; undefined for nodes that no cache holds. */
  holder: HeldSlot | undefined = undefined;
  #places: RowPlaces | undefined = undefined;

  /** For leaves of an index: where rows of its entries are in the tree with this identity. Those in another tree are forgotten. */
  placesIn(tree: object): RowPlaces {
    const places = (this.#places ??= new RowPlaces(this));
    places.enter(tree);
    return places;
  }

  override grow(bytes: number): void {
    super.grow(bytes);
    const { holder } = this;
    holder?.owner.grew(holder, bytes);
  }
}

/** Checks a stored block and opens it as a node of a tree. */
export function openCached(name: string, bytes: Uint8Array): CachedNode {
  return new CachedNode(name, nodeKind(name, bytes), bytes);
}

/** Opens a block that was sealed here a moment ago: its checksum need not be made again. */
export function openCachedSealed(name: string, bytes: Uint8Array): CachedNode {
  return new CachedNode(name, sealedKind(bytes), bytes);
}

/** The slots of an inner node's children; of a node that remembers none, new ones each time. */
export function slotsOf(node: Node): CacheSlot[] {
  return node instanceof CachedNode ? (node.slots ??= []) : [];
}
