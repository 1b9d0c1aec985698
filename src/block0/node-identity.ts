/**
 * The node id of an instance: the one in its options, or with `'auto'` one that it takes itself. The entry in Block 0's list of nodes
 * holds the id, so the conditional write that registers the instance also gives it the id, and two instances that try the same id get
 * different ones. Until then an instance uses an id that was free when it last looked.
 *
 * An instance that takes no turns needs no id of its own for long: it goes by a random number beyond all ids of nodes, which only tells
 * its commits from the commits of others.
 *
 * An id decides nothing but whose turn it is. Two instances with one id, because one was paused while another took its id over,
 * are as safe as any others; an instance that sees that the id is not its own any more takes another one.
 */
import { defined } from '../base/options.ts';
import type { Environment } from '../base/env.ts';
import { NoFreeNodeIdError } from '../base/errors.ts';
import { newId } from '../base/ids.ts';
import type { AutoNode } from '../format/block0.ts';

/** How many ids there are: 0 to 255. */
export const nodeIdCount = 256;
/** Instances that take no turns have one of so many numbers, from {@link nodeIdCount} on. */
const ephemeralIdCount = 2 ** 32;
/** After so long without a sign of the instance, an id that was taken is free again, in milliseconds. */
export const staleAfterMs = 1_800_000;
/** An instance that looks at every turn gives a sign as often as that, in milliseconds: it is a write of Block 0. */
export const renewedAfterMs = 600_000;

/** Who shares write authority, as Block 0 says it. */
export interface NodeList {
  readonly nodes: readonly number[];
  readonly autoNodes?: readonly AutoNode[];
}

/** Only the id of a node. */
export interface NodeId {
  readonly id: number;
}

/** Returns the instances that have taken an id themselves and are listed under it. Entries of ids that are not listed do not count. */
function takersOf({ nodes, autoNodes = [] }: NodeList): readonly AutoNode[] {
  return autoNodes.filter(({ nodeId }) => nodes.includes(nodeId));
}

/** Whether the instance of an entry counts as gone. A time far in the future is no sign of life, like one long ago. */
function isStale({ seenMs }: AutoNode, nowMs: number): boolean {
  return Math.abs(nowMs - seenMs) > staleAfterMs;
}

/** Returns the lists of a Block 0 in which only these nodes are registered. */
function listed(nodes: readonly number[], takers: readonly AutoNode[]): NodeList {
  const sorted = nodes.toSorted((a, b) => a - b);
  const autoNodes = takers.filter(({ nodeId }) => sorted.includes(nodeId)).toSorted((a, b) => a.nodeId - b.nodeId);
  return autoNodes.length === 0 ? { nodes: sorted } : { nodes: sorted, autoNodes };
}

export class NodeIdentity implements NodeId {
  readonly #isAuto: boolean;
  /** Tells this instance from others that take the same id. */
  readonly #instance: string;
  #id: number;

  constructor(given: number | 'auto', environment: Environment) {
    this.#isAuto = given === 'auto';
    this.#id = given === 'auto' ? 0 : given;
    this.#instance = this.#isAuto ? newId(environment, 8) : '';
  }

  /** The id that the instance uses at the moment. */
  get id(): number {
    return this.#id;
  }

  /** Whether Block 0 lists this instance under its id, and no other that has taken the id itself. */
  isListed(present: NodeList): boolean {
    if (!present.nodes.includes(this.#id)) return false;
    const taker = takersOf(present).find(({ nodeId }) => nodeId === this.#id);
    return this.#isAuto ? taker?.instance === this.#instance : taker === undefined;
  }

  /** Whether it is time to give a sign again, so that nobody takes the id for free. */
  mustRenew(present: NodeList, nowMs: number): boolean {
    if (!this.#isAuto || !this.isListed(present)) return false;
    const own = takersOf(present).find(({ instance }) => instance === this.#instance);
    return own !== undefined && Math.abs(nowMs - own.seenMs) > renewedAfterMs;
  }

  /** Goes by a free id from now on. Throws `NoFreeNodeIdError` where there is none. */
  chooseFirst(present: NodeList, nowMs: number): void {
    if (!this.#isAuto) return;
    const free = this.#freeId(this.#without(present, nowMs));
    if (free === undefined) throw new NoFreeNodeIdError(nodeIdCount, staleAfterMs / 60_000);
    this.#id = free;
  }

  /**
   * Returns the list with this instance, and without the ones that count as gone. `remaining`: the nodes that stay in it, without this
   * one. From now on the instance uses the id that it has in the list: if the list is not written after all, the next attempt may choose
   * another one. If no id is free, the instance is not in the list.
   */
  entering(present: NodeList, remaining: readonly number[], nowMs: number): NodeList {
    const isListed = this.isListed(present);
    const others = this.#without({ ...present, nodes: remaining }, nowMs);
    if (!this.#isAuto) {
      const nodes = others.nodes.includes(this.#id) ? others.nodes : [...others.nodes, this.#id];
      return listed(
        nodes,
        takersOf(others).filter(({ nodeId }) => nodeId !== this.#id),
      );
    }
    const id = isListed ? this.#id : this.#freeId(others);
    if (id === undefined) return others;
    this.#id = id;
    const taker: AutoNode = { nodeId: id, instance: this.#instance, seenMs: Math.floor(nowMs) };
    return listed([...others.nodes.filter((other) => other !== id), id], [...takersOf(others), taker]);
  }

  /** The list without this instance. The very same one where it is not in it. */
  leaving(present: NodeList): NodeList {
    const isOwn = this.#isAuto
      ? (id: number) => takersOf(present).some(({ nodeId, instance }) => nodeId === id && instance === this.#instance)
      : (id: number) => id === this.#id && this.isListed(present);
    const nodes = present.nodes.filter((id) => !isOwn(id));
    return nodes.length === present.nodes.length ? present : listed(nodes, takersOf(present));
  }

  /** Returns the lists without the instances that may be taken for gone, and without this one. */
  #without(present: NodeList, nowMs: number): NodeList {
    const takers = takersOf(present);
    const gone = takers.filter((taker) => isStale(taker, nowMs) || (this.#isAuto && taker.instance === this.#instance));
    const nodes = present.nodes.filter((id) => !gone.some(({ nodeId }) => nodeId === id));
    return listed(nodes, takers);
  }

  /** Returns the present id, if nobody is listed under it, or else the lowest free one. */
  #freeId({ nodes }: NodeList): number | undefined {
    const taken = new Set(nodes);
    if (!taken.has(this.#id)) return this.#id;
    for (let id = 0; id < nodeIdCount; id++) if (!taken.has(id)) return id;
    return undefined;
  }
}

/** Returns a random id for an instance that takes no turns, and is in no list. */
export function ephemeralId(environment: Environment): number {
  return nodeIdCount + Math.floor(environment.random() * ephemeralIdCount);
}

/** Whether an id is of an instance that takes no turns, and is in no list. */
export function isEphemeralId(id: number): boolean {
  return id >= nodeIdCount;
}

/** A Block 0 with another list of nodes. */
export function withNodes<T extends NodeList>(block0: T, { nodes, autoNodes }: NodeList): T {
  const { autoNodes: _, ...rest } = block0;
  return { ...rest, nodes, ...defined({ autoNodes }) } as T;
}
