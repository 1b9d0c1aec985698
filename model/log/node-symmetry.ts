/**
 * Two nodes that do the same are interchangeable: of two states that differ only in which node is which, one is explored.
 * That halves the work. It is off when a trace is printed, since a node must keep its name there.
 */
import { Writer } from './follower-steps.ts';
import { Field, flushBytes, FlushField } from './log-state.ts';
import type { LogState } from './log-state.ts';
import type { LogScope } from './scope.ts';

/** For each flush the corresponding flush of the other node; undefined if the nodes do not do the same. */
export function counterparts({ nodes, flushes, feed }: LogScope): number[] | undefined {
  if (nodes !== 2 || feed === true) return undefined;
  const numbered = flushes.map((flush, index) => ({ ...flush, index }));
  const [a, b] = [0, 1].map((node) => numbered.filter((flush) => flush.node === node)) as [
    typeof numbered,
    typeof numbered,
  ];
  if (a.length !== b.length || a.some(({ operation }, i) => operation !== b[i]?.operation)) return undefined;
  const others: number[] = [];
  for (const [i, { index }] of a.entries()) {
    const other = (b[i] as { index: number }).index;
    others[index] = other;
    others[other] = index;
  }
  return others;
}

export class NodeSymmetry {
  readonly #layout: LogState;
  readonly #others: readonly number[];
  /** For each commit the one of the corresponding flushes. */
  readonly #commits: Uint8Array;
  readonly #swapped: Uint8Array;

  constructor(layout: LogState, others: readonly number[]) {
    this.#layout = layout;
    this.#others = others;
    this.#swapped = new Uint8Array(layout.next.length);
    this.#commits = new Uint8Array(256);
    for (let commit = 0; commit < 256; commit++) {
      let other = (commit >> layout.flushes) << layout.flushes;
      for (let f = 0; f < layout.flushes; f++) if ((commit >> f) & 1) other |= 1 << (others[f] as number);
      this.#commits[commit] = other;
    }
  }

  /** Replaces a state by the one in which the nodes have changed places, if that comes first. */
  normalise(state: Uint8Array): void {
    const swapped = this.#swapped;
    this.#swap(state);
    for (let i = 0; i < state.length; i++) {
      const difference = (swapped[i] as number) - (state[i] as number);
      if (difference > 0) return;
      if (difference < 0) break;
    }
    for (let i = 0; i < state.length; i++) state[i] = swapped[i] as number;
  }

  #swap(state: Uint8Array): void {
    const { flushes, flush0, node0, nodeBytes, slot0, slots, refreshed } = this.#layout;
    const to = this.#swapped;
    for (let i = 0; i < slot0; i++) to[i] = state[i] as number;
    this.#swapCommit(state, refreshed, refreshed);
    // The slots, and the record of the first commits.
    for (let i = slot0; i < slot0 + 2 * slots; i++) this.#swapCommit(state, i, i);
    this.#swapLoose(state);
    for (let f = 0; f < flushes; f++) {
      const from = flush0 + f * flushBytes;
      const other = flush0 + (this.#others[f] as number) * flushBytes;
      for (let i = 0; i < flushBytes; i++) to[other + i] = state[from + i] as number;
      this.#swapCommit(state, from + FlushField.commit, other + FlushField.commit);
    }
    this.#swapNode(state, node0, node0 + nodeBytes);
    this.#swapNode(state, node0 + nodeBytes, node0);
  }

  #swapCommit(state: Uint8Array, from: number, to: number): void {
    this.#swapped[to] = this.#commits[state[from] as number] as number;
  }

  /** Puts that are on their way are kept in order. */
  #swapLoose(state: Uint8Array): void {
    const { delayed0, delayedCount } = this.#layout;
    const to = this.#swapped;
    for (let i = 0; i < delayedCount; i++) {
      const at = delayed0 + 2 * i;
      const slot = state[at] as number;
      const commit = this.#commits[state[at + 1] as number] as number;
      let place = at;
      for (; place > delayed0; place -= 2) {
        const before = to[place - 2] as number;
        if (slot === 0 || before < slot || (before === slot && (to[place - 1] as number) <= commit)) break;
        to[place] = before;
        to[place + 1] = to[place - 1] as number;
      }
      to[place] = slot;
      to[place + 1] = commit;
    }
  }

  #swapNode(state: Uint8Array, from: number, to: number): void {
    const { nodeBytes } = this.#layout;
    for (let i = 0; i < nodeBytes; i++) this.#swapped[to + i] = state[from + i] as number;
    this.#swapCommit(state, from + Field.group, to + Field.group);
    this.#swapCommit(state, from + Field.commit, to + Field.commit);
    if (state[from + Field.writer] !== Writer.dead) this.#swapCommit(state, from + Field.seen, to + Field.seen);
    this.#swapCommit(state, from + Field.askedSeen, to + Field.askedSeen);
    if (state[from + Field.asking] !== 0) {
      this.#swapped[to + Field.asked] = this.#others[state[from + Field.asked] as number] as number;
    }
    for (let i = Field.read; i < nodeBytes; i++) this.#swapCommit(state, from + i, to + i);
  }
}
