/**
 * The other instances that want the next slot of the log: about how many there are, and so how often this one puts its commit, and
 * how often it lets others go first. Only the store decides which commit wins (docs/protocol.md, "Many writers").
 */
import type { Environment } from '../base/env.ts';
import { ContentionError } from '../base/errors.ts';

/** So many instances should put a commit at the same slot. With fewer, slots stay free; with more, more puts are lost. */
const putsPerSlot = 2;
/** A lost slot multiplies the number of instances by this, and adds a half. */
const afterLoss = 1.5;
/** A slot that nobody takes multiplies it by this. */
const afterFree = 0.5;
/** Without news, half of the instances are assumed to be gone after so many milliseconds. */
const halfLifeMs = 1000;
/** Instances that have waited for longer than the last winner all put, unless there seem to be so many of them. */
const manyOverdue = 8;
/** The highest estimate of the instances that have waited for as long. */
const maxTied = 512;
/** The highest estimate. */
const maxCount = 1024;
/**
 * If a slot is free in so many reads in a row, there are fewer rivals than it seemed: a winner needs two requests, one after the other.
 * Then instances that have waited for less long put as well.
 */
export const freeTooLong = 3;
/** After a commit that has waited, others count as waiting for so many milliseconds. */
const contendedMs = 2000;
/** With fewer instances before it, an instance looks at the log all the time. */
const minPauseSlots = 8;
/** The longest pause of an instance with many before it, in milliseconds. */
const maxPauseMs = 2000;
/** The longest time between two commits that counts for the pace of the log, in milliseconds. */
const maxSlotMs = 200;
/** Each further read lets so many times as many instances put. */
const wideningFactor = 4;

/** Returns an estimate of the number of instances after a lost slot. */
function grown(count: number, most: number): number {
  return Math.min(most, count * afterLoss + 0.5);
}

/** Returns it after a slot that nobody has taken. */
function shrunk(count: number): number {
  return Math.max(1, count * afterFree);
}

/** A commit that has won a slot. */
interface Winner {
  readonly slot: number;
  /** The first slot that it wanted. */
  readonly since: number;
  /** When this instance heard of it, by the monotonic clock. */
  readonly notedMs: number;
  /** Until then others that have waited like it count as waiting still, by the monotonic clock. */
  readonly untilMs: number;
}

export class Rivals {
  readonly #environment: Environment;
  /** About how many instances want the next slot, this one included, at {@link #notedMs}. */
  #count = 1;
  #notedMs = 0;
  /** The last slot that is known to be taken, and the first slot that its commit wanted; undefined before there is news. */
  #winner: Winner | undefined;
  /** About how long it takes until a slot is taken, in milliseconds. */
  #slotMs = 0;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /**
   * Whether others want the next slot: this instance has lost a slot and has not seen since that nobody else wants the next one, or the
   * last winner has waited for its slot.
   */
  get areThere(): boolean {
    return this.#count > 1 || this.#isContended;
  }

  get #isContended(): boolean {
    const winner = this.#winner;
    return winner !== undefined && winner.since < winner.slot && this.#environment.monotonicMs() < winner.untilMs;
  }

  get #present(): number {
    const agoMs = this.#environment.monotonicMs() - this.#notedMs;
    return Math.max(1, this.#count * 0.5 ** (agoMs / halfLifeMs));
  }

  #note(count: number): void {
    this.#count = count;
    this.#notedMs = this.#environment.monotonicMs();
  }

  /** Notes that a put has lost its slot. */
  noteLoss(): void {
    this.#note(grown(this.#present, maxCount));
  }

  /** Notes that another instance has taken a slot: the rivals are still there. */
  noteTaken(): void {
    this.#note(this.#count);
  }

  /** Notes that nobody has taken the next slot for a while. */
  noteFree(): void {
    this.#note(shrunk(this.#present));
    if (this.#winner !== undefined) this.#winner = { ...this.#winner, untilMs: -Infinity };
  }

  /** Notes that a commit has won a slot. `since`: the first slot that it wanted; `atMs`: the time, by the writer's clock. */
  noteWinner(slot: number, since: number, atMs: number): void {
    if (slot < (this.#winner?.slot ?? 0)) return;
    const environment = this.#environment;
    const nowMs = environment.monotonicMs();
    const before = this.#winner;
    if (before !== undefined && slot > before.slot) {
      this.#slotMs = Math.min(maxSlotMs, (this.#slotMs + (nowMs - before.notedMs) / (slot - before.slot)) / 2);
    }
    const agoMs = Math.abs(environment.now() - atMs);
    this.#winner = { slot, since, notedMs: nowMs, untilMs: nowMs + contendedMs - agoMs };
  }

  /** How long an instance should not look at the log, in milliseconds: half of the time that the instances before it will take. */
  pauseMs({ since }: SlotRace): number {
    const winner = this.#winner;
    if (winner === undefined || since === undefined) return 0;
    const before = since - winner.since - putsPerSlot - minPauseSlots;
    return Math.min(maxPauseMs, Math.max(0, (before * this.#slotMs) / 2));
  }

  /** Whether the flushes of a race have waited for longer than the last winner, and should put at the next slot without a look at it. */
  isOverdue({ since, count }: SlotRace): boolean {
    const winner = this.#winner;
    if (winner === undefined || since === undefined || since >= winner.since) return false;
    return count < manyOverdue || this.#isChosen(count);
  }

  /**
   * Whether an instance should put a commit at the next slot, which it has found free in `free` reads. Commits win slots about in the
   * order in which they began to wait: the last winner tells how long the others have waited. Among the instances that have waited for
   * as long, it is random. Of all the others, about one puts as well: the ones before it may be late.
   */
  isOwnTurn(race: SlotRace, free: number): boolean {
    const { since } = race;
    const winner = this.#winner;
    const more = wideningFactor ** Math.max(0, free - freeTooLong + 1);
    if (winner !== undefined && since !== undefined && since > winner.since + putsPerSlot * more) {
      return this.#isChosen(putsPerSlot * (winner.slot - winner.since + 1));
    }
    return this.isOverdue(race) || this.#isChosen(race.count);
  }

  #isChosen(count: number): boolean {
    return this.#environment.random() * count < putsPerSlot;
  }
}

/** Confirmed losses in a row after which the flushes of a group fail with `ContentionError`. */
const maxLosses = 32;

/** The attempts of a group of flushes to win a slot, any slot. */
export class SlotRace {
  /** The first slot that the group has found free; undefined while it has not read the end of the log. */
  #since: number | undefined;
  /** About how many instances that have waited for as long want the next slot, this one included. */
  count = 1;
  #losses = 0;

  get since(): number | undefined {
    return this.#since;
  }

  /** Notes that a slot is free: the end of the log. */
  noteEnd(slot: number): void {
    this.#since ??= slot;
  }

  /** Notes that another instance has taken a slot, and waits no more. */
  noteTaken(): void {
    this.count = Math.max(1, this.#losses / 2, this.count - 1);
  }

  /** Whether no slot was lost yet. */
  get isFirst(): boolean {
    return this.#losses === 0;
  }

  /** Notes that nobody has taken the next slot for a while. */
  noteFree(): void {
    this.count = shrunk(this.count);
  }

  /** Counts a lost slot. Throws `ContentionError` if it was the last one that the group may lose. */
  noteLoss(): void {
    this.count = grown(this.count, maxTied);
    const losses = ++this.#losses;
    if (losses >= maxLosses) {
      throw new ContentionError(`Other writers won ${losses} slots in a row. The flush was not applied: try it again.`);
    }
  }
}
