/**
 * The other instances that want the next slot of the log: about how many there are, and so how often this one puts its commit, and
 * how often it lets others go first. Only the store decides which commit wins (docs/protocol.md, "Many writers").
 */
import type { Environment } from '../base/env.ts';
import { ContentionError } from '../base/errors.ts';
import type { NodeId } from '../block0/node-identity.ts';

/** So many instances should put a commit at the same slot. With fewer, slots stay free; with more, more puts are lost. */
const putsPerSlot = 2;
/** A lost slot multiplies the number of instances by this, and adds a half. */
const afterLoss = 1.5;
/** A slot that nobody takes multiplies it by this. */
const afterFree = 0.5;
/** Without news, half of the instances are assumed to be gone after so many milliseconds. */
const halfLifeMs = 1000;
/** The highest estimate. */
const maxCount = 1024;
/** A node that has won none of so many slots does not count as waiting. */
const winnersKept = 256;
/** The place of a node that has won none of these slots. */
const unknownPlace = 0.5;

export class Rivals {
  readonly #environment: Environment;
  /** About how many instances want the next slot, this one included, at {@link #notedMs}. */
  #count = 1;
  #notedMs = 0;
  /** The last slot that each node has won. There are at most 256 nodes. */
  readonly #wonBy = new Map<NodeId['id'], number>();

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Whether this instance has lost a slot, and has not seen since that nobody else wants the next one. */
  get areThere(): boolean {
    return this.#count > 1;
  }

  get #present(): number {
    const agoMs = this.#environment.monotonicMs() - this.#notedMs;
    return Math.max(1, this.#count * 0.5 ** (agoMs / halfLifeMs));
  }

  #note(count: number): void {
    this.#count = Math.min(maxCount, count);
    this.#notedMs = this.#environment.monotonicMs();
  }

  /** Notes that a put has lost its slot. */
  noteLoss(): void {
    this.#note(this.#present * afterLoss + 0.5);
  }

  /** Notes that another instance has taken a slot: the rivals are still there. */
  noteTaken(): void {
    this.#note(this.#count);
  }

  /** Notes that nobody has taken the next slot for a while. */
  noteFree(): void {
    this.#note(Math.max(1, this.#present * afterFree));
  }

  /** Notes which node has won a slot. */
  noteWinner(slot: number, nodeId: number): void {
    this.#wonBy.set(nodeId, slot);
  }

  /**
   * Whether a node should put a commit at the next slot. Random, since nobody knows who wants it; the longer ago its last commit is,
   * compared with the commits of other nodes, the more often.
   */
  isOwnTurn(nodeId: number, slot: number): boolean {
    return this.#environment.random() * this.#placeInLine(nodeId, slot) * this.#present < putsPerSlot;
  }

  /**
   * The part of the nodes that have waited for longer, doubled: 1 on average, and almost 0 for the node that has waited for longest. A
   * node whose last commit is out of sight may be one of many such nodes.
   */
  #placeInLine(nodeId: number, slot: number): number {
    const own = this.#wonBy.get(nodeId);
    if (own === undefined || own < slot - winnersKept) return unknownPlace;
    let [nodes, before] = [1, 1];
    for (const [id, won] of this.#wonBy) {
      if (id === nodeId || won < slot - winnersKept) continue;
      nodes++;
      if (won < own) before++;
    }
    return nodes === 1 ? 1 : (2 * before) / (nodes + 1);
  }
}

/** Confirmed losses in a row after which the flushes of a group fail with `ContentionError`. */
const maxLosses = 32;

/** The attempts of a group of flushes to win a slot, any slot. */
export class SlotRace {
  #losses = 0;

  /** Whether no slot was lost yet. */
  get isFirst(): boolean {
    return this.#losses === 0;
  }

  /** Counts a lost slot. Throws `ContentionError` if it was the last one that the group may lose. */
  noteLoss(): void {
    const losses = ++this.#losses;
    if (losses >= maxLosses) {
      throw new ContentionError(`Other writers won ${losses} slots in a row. The flush was not applied: try it again.`);
    }
  }
}
