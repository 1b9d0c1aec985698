/**
 * The rotation of write authority as one node sees it: the nodes that share it, and the nodes whose turns pass unused. Time is cut into
 * turns of `writeForwardInterval`, and in each turn one node has write authority. Clocks only decide which node tries: two nodes that
 * both think it is their turn cost a lost race, never a commit.
 *
 * A node that is gone
 * would let commits wait for a whole interval whenever its turn comes, so the next node takes its turns too. Nodes may
 * see this differently; where two of them try, Block 0 decides.
 */
import type { NodeId } from '../block0/node-identity.ts';
import type { Block0 } from '../format/block0.ts';

/** No node. */
const none: ReadonlySet<number> = new Set();

/** The number of the turn that a time lies in. */
function turnAt(nowMs: number, intervalMs: number): number {
  return Math.floor(nowMs / intervalMs);
}

/** Ids in the order in which they take turns, each once. */
function sortedIds(nodes: readonly number[]): number[] {
  return [...new Set(nodes)].toSorted((a, b) => a - b);
}

/** Returns the node that has a turn: the one whose turn it is, or the next one that is not skipped. If all are skipped, none is. */
function ownerOf(turn: number, sorted: readonly number[], skipped: ReadonlySet<number>): number {
  const first = ((turn % sorted.length) + sorted.length) % sorted.length;
  for (let i = 0; i < sorted.length; i++) {
    const id = sorted[(first + i) % sorted.length] as number;
    if (!skipped.has(id)) return id;
  }
  return sorted[first] as number;
}

/**
 * Id of the node that has authority at a time. `nodes` need not be sorted; it is not empty. The turns of `skipped` ones go
 * to the node after them.
 */
export function authorityAt(
  nowMs: number,
  intervalMs: number,
  nodes: readonly number[],
  skipped: ReadonlySet<number> = none,
): number {
  return ownerOf(turnAt(nowMs, intervalMs), sortedIds(nodes), skipped);
}

/** Milliseconds until the next turn begins. */
export function untilNextTurn(nowMs: number, intervalMs: number): number {
  const into = ((nowMs % intervalMs) + intervalMs) % intervalMs;
  return intervalMs - into;
}

/** Milliseconds until the first turn of `nodeId`, one of `nodes`, that begins later than `waitMs` from now. */
export function untilOwnTurn(
  nowMs: number,
  waitMs: number,
  intervalMs: number,
  nodeId: number,
  nodes: readonly number[],
  skipped: ReadonlySet<number> = none,
): number {
  const sorted = sortedIds(nodes);
  const nextMs = waitMs + untilNextTurn(nowMs + waitMs, intervalMs);
  // The beginning of a turn: half an interval more makes up for rounding.
  const turn = turnAt(nowMs + nextMs + intervalMs / 2, intervalMs);
  let turnsLeft = 0;
  while (turnsLeft < sorted.length && ownerOf(turn + turnsLeft, sorted, skipped) !== nodeId) turnsLeft++;
  return nextMs + turnsLeft * intervalMs;
}

/** A turn that began while commits waited. */
interface WatchedTurn {
  readonly turn: number;
  /** The node whose turn it was, and the node that should take it because the owner lets its turns pass. */
  readonly owner: number;
  readonly taker: number;
  /** The last of those commits. */
  readonly tail: number;
}

/** Turns in a row that pass unused, of any nodes, until others than the one whose turn it is merge as well. */
const turnsUntilRescue = 2;
/** Turns in a row that a node lets pass unused until others count it out: then Block 0 lists it no more. */
const turnsUntilDropped = 3;

export class MergeRotation {
  readonly #intervalMs: number;
  readonly #node: NodeId;
  /** Turns in a row that passed unused, by the id of the node that had them. */
  readonly #unused = new Map<number, number>();
  #skipped: ReadonlySet<number> = new Set();
  #watched: WatchedTurn | undefined;
  /** Turns in a row in which nobody merged, though commits waited; it stays while others than their takers do it. */
  #missed = 0;
  /** The nodes that share authority, as they were last asked for; undefined while nobody has asked. */
  sharing: readonly number[] | undefined;
  /** Whether this node was not among them: it waits for no turn to merge until somebody uses it. */
  isExcluded = false;

  constructor(intervalMs: number, node: NodeId) {
    this.#intervalMs = intervalMs;
    this.#node = node;
  }

  /**
   * Notes the state at the beginning of a turn: whether commits up to `tail` wait to be merged, and whether the commits that
   * waited at the beginning of an earlier turn still wait.
   */
  note(nowMs: number, block0: Block0, tail: number, isDue: boolean, sharing: readonly number[]): void {
    const turn = turnAt(nowMs, this.#intervalMs);
    const { nodeId: writer } = block0.writer;
    // A node that writes Block 0 is alive.
    if (this.#unused.delete(writer)) this.#changed();
    const watched = this.#watched;
    if (watched !== undefined && watched.turn !== turn) {
      this.#watched = undefined;
      // Clocks may go back: then nothing was learnt.
      if (turn > watched.turn) this.#judge(watched, block0.appliedSeq < watched.tail, writer);
    }
    if (!isDue || this.#watched !== undefined) return;
    const owner = authorityAt(nowMs, this.#intervalMs, sharing);
    this.#watched = { turn, owner, taker: this.authority(nowMs, sharing), tail };
  }

  /** A turn has ended. */
  #judge({ owner, taker }: WatchedTurn, stillWaiting: boolean, writer: number): void {
    if (stillWaiting) this.#missed++;
    else if (writer === taker || writer === owner) this.#missed = 0;
    const idle = new Set<number>();
    if (stillWaiting) idle.add(taker);
    if (stillWaiting || (taker !== owner && writer !== owner)) idle.add(owner);
    idle.delete(this.#node.id);
    for (const id of idle) this.#unused.set(id, (this.#unused.get(id) ?? 0) + 1);
    this.#changed();
  }

  #changed(): void {
    this.#skipped = new Set(this.#unused.keys());
  }

  /** Returns the node that has write authority. */
  authority(nowMs: number, sharing: readonly number[]): number {
    return authorityAt(nowMs, this.#intervalMs, sharing, this.#skipped);
  }

  /**
   * Whether this node should merge now: because it has authority, or to help out. Where many nodes died at once, commits would wait
   * in each of their turns until all of them are known to be gone. So after two turns that passed unused, other nodes merge too,
   * evenly spaced in the circle: two in all, four after the next unused turn, then eight.
   */
  isOwn(nowMs: number, sharing: readonly number[]): boolean {
    if (this.authority(nowMs, sharing) === this.#node.id) return true;
    if (this.#missed < turnsUntilRescue) return false;
    const sorted = sortedIds(sharing);
    const place = sorted.indexOf(this.#node.id);
    if (place < 0) return false;
    const first = turnAt(nowMs, this.#intervalMs) % sorted.length;
    const distance = (place - first + sorted.length) % sorted.length;
    return distance % Math.ceil(sorted.length / 2 ** (this.#missed - turnsUntilRescue + 1)) === 0;
  }

  /** The nodes that share authority, as far as this node knows without asking. */
  presumed({ nodes }: Block0): number[] {
    return [...(this.sharing ?? nodes), this.#node.id];
  }

  /** Whether other nodes share authority, as far as this node knows without asking. */
  hasOthers(block0: Block0): boolean {
    const { id } = this.#node;
    return (this.sharing ?? block0.nodes).some((other) => other !== id);
  }

  /** Whether it is this node's turn to merge, as far as it knows without asking. */
  isOwnTurn(nowMs: number, block0: Block0): boolean {
    return !this.isExcluded && this.isOwn(nowMs, this.presumed(block0));
  }

  /** Milliseconds until the first turn of this node, one of `sharing`, that begins later than `waitMs` from now. */
  untilOwn(nowMs: number, waitMs: number, sharing: readonly number[]): number {
    return untilOwnTurn(nowMs, waitMs, this.#intervalMs, this.#node.id, sharing, this.#skipped);
  }

  /** The registered nodes that stay registered once this node merges: those not known to be gone. */
  members(registered: readonly number[]): number[] {
    return registered.filter((id) => (this.#unused.get(id) ?? 0) < turnsUntilDropped);
  }
}
