/**
 * Watches when commits come to be visible on every node, and when they are merged. It looks at what nodes have in memory, and
 * asks none of them for anything, so that it changes nothing.
 */
import type { LogFollower } from '../../../src/log/log-follower.ts';
import type { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

/** A distribution in three figures; all 0 where nothing was seen. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0);
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** What the observer needs of a node. */
export interface Observed {
  readonly nodeId: number;
  readonly isLive: boolean;
  readonly follower: LogFollower;
  /** Milliseconds until a query would refresh before it answers. */
  readonly untilStaleMs: number;
}

interface FlushedCommit {
  readonly slot: number;
  readonly author: number;
  readonly atMs: number;
  /** By node: when a query would have shown the commit at the latest, since it would have refreshed first. */
  readonly refreshedMs: ReadonlyMap<number, number>;
}

export class Observer {
  readonly #environment: VirtualEnvironment;
  readonly #nodes = new Map<number, Observed>();
  /** When each node first showed a slot, by slot and node. */
  readonly #shown = new Map<number, Map<number, number>>();
  readonly #tails = new Map<number, number>();
  readonly #ownSlots = new Map<number, number>();
  readonly #mergedMs = new Map<number, number>();
  readonly #flushed = new Map<number, FlushedCommit>();
  #appliedSeq = 0;
  #watching = false;
  /** Most commits, and most bytes of commits, that any node had pending. */
  mostPending = 0;
  mostPendingBytes = 0;

  constructor(environment: VirtualEnvironment) {
    this.#environment = environment;
  }

  get #nowMs(): number {
    return this.#environment.timeline.nowMs;
  }

  /** From now on what nodes see is noted. */
  watch(): void {
    this.#watching = true;
    this.mostPending = 0;
    this.mostPendingBytes = 0;
  }

  /** Looks at a node from now on, after every step of its view. */
  add(node: Observed): void {
    const { follower, nodeId } = node;
    this.#nodes.set(nodeId, node);
    this.#tails.set(nodeId, follower.view.tail);
    const advance = follower.advance.bind(follower);
    follower.advance = (versioned, slots) => {
      for (const { slot, commit } of slots) if (commit.nodeId === nodeId) this.#ownSlots.set(nodeId, slot);
      advance(versioned, slots);
      this.#note(node);
    };
  }

  #note({ nodeId, follower: { view } }: Observed): void {
    const { tail, block0, pendingBytes } = view;
    const before = this.#tails.get(nodeId) ?? 0;
    this.#tails.set(nodeId, tail);
    const { appliedSeq } = block0;
    const applied = this.#appliedSeq;
    this.#appliedSeq = Math.max(applied, appliedSeq);
    if (!this.#watching) return;
    for (let slot = applied + 1; slot <= appliedSeq; slot++) this.#mergedMs.set(slot, this.#nowMs);
    this.mostPending = Math.max(this.mostPending, tail - appliedSeq);
    this.mostPendingBytes = Math.max(this.mostPendingBytes, pendingBytes);
    for (let slot = before + 1; slot <= tail; slot++) {
      const shown = this.#shown.get(slot) ?? new Map<number, number>();
      this.#shown.set(slot, shown.set(nodeId, this.#nowMs));
    }
  }

  /** A flush of a node has just resolved. */
  flushed(author: number): void {
    const slot = this.#ownSlots.get(author);
    if (!this.#watching || slot === undefined || this.#flushed.has(slot)) return;
    const atMs = this.#nowMs;
    const refreshedMs = new Map<number, number>();
    for (const node of this.#nodes.values()) {
      if (!node.isLive || node.nodeId === author) continue;
      refreshedMs.set(node.nodeId, atMs + Math.max(0, node.untilStaleMs));
    }
    this.#flushed.set(slot, { slot, author, atMs, refreshedMs });
  }

  /** Milliseconds from when flushes resolved until a query on another node would show them; over all other nodes. */
  staleness(): Spread {
    const all: number[] = [];
    for (const { slot, atMs, refreshedMs } of this.#flushed.values()) {
      const shown = this.#shown.get(slot);
      for (const [nodeId, latestMs] of refreshedMs) {
        const shownMs = Math.min(shown?.get(nodeId) ?? Infinity, latestMs);
        // What is not shown by the end of the simulation is left out, like every other commit of the last moments.
        if (shownMs <= this.#nowMs) all.push(Math.max(0, shownMs - atMs));
      }
    }
    return spreadOf(all);
  }

  /** Milliseconds from when flushes resolved until they were merged. */
  merging(): Spread {
    const all: number[] = [];
    for (const { slot, atMs } of this.#flushed.values()) {
      const mergedMs = this.#mergedMs.get(slot);
      if (mergedMs !== undefined) all.push(Math.max(0, mergedMs - atMs));
    }
    return spreadOf(all);
  }

  /** Flushes that were noted and are not merged yet. */
  get unmerged(): number {
    return [...this.#flushed.keys()].filter((slot) => slot > this.#appliedSeq).length;
  }
}
