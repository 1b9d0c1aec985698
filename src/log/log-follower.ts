/**
 * Follows the log: holds the newest view and moves it forward, over confirmed slots only.
 *
 * A slot is confirmed when it was read (or won) and a read of Block 0 that started after that shows a floor below it.
 * So a refresh reads the next slots first and Block 0 afterwards. Invariants: the view's Block 0 and tail never go
 * back; the commits in it are consecutive, and each names the one before it: a commit that does not follow is never shown. The
 * view holds no more commits than there is room for: later ones are read once the earlier ones are merged.
 */
import { untilAborted } from '../base/abort.ts';
import type { Environment } from '../base/env.ts';
import { CorruptionError, invariant } from '../base/errors.ts';
import type { VersionedBlock0 } from '../block0/block0-reader.ts';
import type { Block0Register } from '../block0/block0-register.ts';
import { follows } from '../format/commit.ts';
import type { Commit } from '../format/commit.ts';
import { commitName } from '../format/object-names.ts';
import { View } from '../view/view.ts';
import type { LoggedCommit, ViewContext } from '../view/view.ts';
import type { CommitLog } from './commit-log.ts';
import type { EngineEvents } from './engine-events.ts';
import { usuallyPending } from './pending-room.ts';
import type { PendingRoom } from './pending-room.ts';

/** Most slots that are read at the same time while catching up. */
const maxReadAhead = 16;
/** The number of commits that are read one by one before slots are read ahead: mostly there are few, and each read costs. */
const readOneByOne = 4;
/** So many shapes of tables are made without a pause. */
const shapesAtOnce = 64;
/** Block 0 is read after so many commits, and then after twice as many each time: it may have applied all that is still to be read. */
const firstRound = 8;

/** Returns how many slots to read at the same time, once `found` commits were found. */
function sparingly(_count: number, found: number): number {
  return found < readOneByOne ? 1 : found >> 1;
}

/**
 * Slots that were read. `missing`: the slot that ended the reading, since it is empty or holds `stray`; undefined where more
 * are to be read.
 */
interface ReadSlots {
  readonly slots: readonly LoggedCommit[];
  readonly missing: number | undefined;
  /** A slot after the missing one that does hold a commit. */
  readonly behind?: number | undefined;
  /** A commit that does not follow the one before it. */
  readonly stray?: LoggedCommit | undefined;
}

const waysOn =
  'Nothing is shown or written until somebody decides: db.verify() tells what there is, and db.repair({ log }) goes on with or ' +
  "without what comes behind it (open with polling 'onDemand' for that, or use the command store-db repair).";

/** Bytes that a commit takes in memory. */
export function sizeOf({ members }: Commit): number {
  let bytes = 0;
  for (const { changes } of members) for (const { node } of changes) bytes += node.sizeBytes;
  return bytes;
}

/** A round of so few slots is not worth its time: the round before it reads them too. */
const fewSlots = 2;

/**
 * Returns how many slots to read next, where `found` slots were read before: twice as many each time, but not far beyond the number of
 * commits that merges usually wait for.
 */
function generously(count: number, found: number): number {
  if (found > usuallyPending) return found;
  const usual = usuallyPending + 1 - found;
  return usual <= count * 2 + fewSlots ? usual : count * 2;
}

export class LogFollower {
  readonly #environment: Environment;
  readonly #register: Block0Register;
  readonly #log: CommitLog;
  readonly #context: ViewContext;
  readonly #room: PendingRoom;
  readonly #events: EngineEvents;
  #view: View | undefined;
  #running: Promise<boolean> | undefined;
  #queued: Promise<boolean> | undefined;
  /** Damage of the log behind the tail, until the view has moved past it. */
  #damage: { readonly slot: number; readonly error: CorruptionError } | undefined;
  /** How often the tail moved over slots that were not read, because Block 0 had applied them already. */
  jumps = 0;

  constructor(
    environment: Environment,
    register: Block0Register,
    log: CommitLog,
    context: ViewContext,
    room: PendingRoom,
    events: EngineEvents,
  ) {
    this.#environment = environment;
    this.#register = register;
    this.#log = log;
    this.#context = context;
    this.#room = room;
    this.#events = events;
  }

  /** The newest view. */
  get view(): View {
    invariant(this.#view !== undefined, 'A view was used before the database was opened');
    return this.#view;
  }

  #show(view: View): void {
    this.#view = view;
    this.#room.take(view);
  }

  /** Begins with a Block 0 that was just read. The commits after it are read by {@link readOn}. */
  open(opened: VersionedBlock0): void {
    this.#show(View.ofBlock0(this.#context, opened.block0));
  }

  /** Reads the commits after the Block 0 that the view began with a moment ago. False if there was no room for all of them. */
  readOn(signal?: AbortSignal): Promise<boolean> {
    return this.#running === undefined ? this.#alone(this.#readOn(signal)) : this.refresh(signal);
  }

  async #readOn(signal: AbortSignal | undefined): Promise<boolean> {
    // The caller that opens a database waits for this, and commits that are read now are known to be pending: slots are read ahead at once.
    const read = await this.#readSlots(generously, Infinity, signal);
    // If the first slot is missing, there is nothing to confirm: the view shows what Block 0 does.
    if (read.slots.length === 0 && read.stray === undefined) return true;
    return (await this.#confirm(read, signal)) ? this.#catchUp(signal) : true;
  }

  /**
   * Catches up with everything that was committed anywhere before the call, or as far as there is room: then it resolves
   * to false. Calls that come while a refresh is under way share the next refresh, which starts after they were made.
   */
  refresh(signal?: AbortSignal): Promise<boolean> {
    if (this.#running === undefined) return this.#alone(this.#catchUp(signal));
    this.#queued ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#queued = undefined;
        return this.refresh();
      });
    return untilAborted(this.#queued, signal);
  }

  /** Notes the work that is under way: calls that come meanwhile wait for it. */
  #alone(running: Promise<boolean>): Promise<boolean> {
    this.#running = running.finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /**
   * Looks at the next slot, and catches up if there is a commit in it; false if there is none. That is half the price of
   * a refresh, but false does not prove that nothing is new: the slot may have been trimmed.
   */
  async peek(): Promise<boolean> {
    const read = await this.#readSlots(sparingly, firstRound);
    if (read.slots.length === 0 && read.stray === undefined) return false;
    if (await this.#confirm(read)) await this.#catchUp();
    return true;
  }

  async #catchUp(signal?: AbortSignal): Promise<boolean> {
    for (let most = firstRound; ; most *= 2) {
      if (!(await this.#confirm(await this.#readSlots(sparingly, most, signal), signal))) return true;
      // Asked only now: merges of others in the meantime have made room.
      if (this.#room.bytesFor(this.view) === 0) return false;
    }
  }

  /**
   * Confirms slots by Block 0. True if there may be more to read: it has moved past `missing`, or that is not known, or the
   * stray follows the view after all: the slot before it was trimmed and then put again by a writer that came too late.
   */
  async #confirm({ slots, missing, behind, stray }: ReadSlots, signal?: AbortSignal): Promise<boolean> {
    // The missing slot may have been put while the slots were read. Then there is more to read.
    const isGone =
      missing !== undefined && behind !== undefined && (await this.#log.read(missing, signal)) === undefined;
    const versioned = await this.#register.refresh(signal);
    this.advance(versioned, slots);
    this.#lookForDamage(isGone ? missing : undefined, behind, stray);
    // This look may have read fewer slots than the one that found the damage.
    if (missing === this.#damage?.slot) this.throwIfDamaged();
    const isNext = stray !== undefined && this.view.tail === stray.slot - 1;
    return missing === undefined || behind !== undefined || isNext || versioned.block0.appliedSeq >= missing;
  }

  /**
   * Throws `CorruptionError` where the log has a hole that Block 0 does not explain. The writer of a commit had confirmed the slot
   * before it, and a confirmed slot may be removed only once the floor has been raised over it.
   */
  #lookForDamage(gone: number | undefined, behind: number | undefined, stray: LoggedCommit | undefined): void {
    const { view } = this;
    const { tail, tailId } = view;
    if (gone !== undefined && behind !== undefined && tail < gone) {
      const what = `The commit is missing from the log, and later ones are there (slot ${behind}): it was acknowledged and is lost`;
      this.#damaged(gone, `${what}. ${waysOn}`);
    }
    if (stray !== undefined && tail === stray.slot - 1 && !view.isFollowedBy(stray.commit)) {
      const what =
        `The commit follows commit ${stray.commit.previousId} in slot ${tail}, and there is commit ${tailId} now: what it ` +
        'was written on is lost';
      this.#damaged(stray.slot, `${what}. ${waysOn}`);
    }
  }

  #damaged(slot: number, message: string): never {
    const error = new CorruptionError(commitName(slot), message);
    this.#damage = { slot, error };
    throw error;
  }

  /**
   * Throws `CorruptionError` while the log behind the view is known to be damaged: a commit that is put behind the damage would
   * be lost.
   */
  throwIfDamaged(): void {
    if (this.#damage === undefined) return;
    if (this.view.tail < this.#damage.slot) throw this.#damage.error;
    this.#damage = undefined;
  }

  /** Shows the commits with which a repair of the log goes on. Whether each follows the one before it is not checked. */
  accept(versioned: VersionedBlock0, slots: readonly LoggedCommit[]): void {
    let view = View.ofBlock0(this.#context, versioned.block0);
    for (const logged of slots) view = view.withCommit(logged);
    this.#show(view);
    this.#events.viewChanged.emit(view);
  }

  /**
   * Reads the slots after the tail until one is missing, `most` were found, or there is no more room. `nextCount` returns how
   * many to read at the same time, from the count before and the number of commits found in all.
   */
  async #readSlots(
    nextCount: (count: number, found: number) => number,
    most: number,
    signal?: AbortSignal,
  ): Promise<ReadSlots> {
    const slots: LoggedCommit[] = [];
    let next = this.view.tail + 1;
    let room = this.#room.bytesFor(this.view);
    let largest = 1;
    let { tailId } = this.view;
    for (
      let wanted = 1;
      slots.length < most && room > 0;
      wanted = Math.min(nextCount(wanted, slots.length), maxReadAhead)
    ) {
      const count = Math.min(wanted, most - slots.length, Math.max(1, Math.floor(room / largest)));
      const window = Array.from({ length: count }, (_, i) => next + i);
      // All reads are waited for, even if one fails: no request goes on after the caller has its answer.
      const reads = await Promise.allSettled(window.map((slot) => this.readSlot(slot, signal)));
      for (const [i, read] of reads.entries()) {
        if (read.status === 'rejected') throw read.reason;
        if (read.value === undefined) {
          const later = reads.findIndex(
            (other, at) => at > i && other.status === 'fulfilled' && other.value !== undefined,
          );
          return { slots, missing: next, behind: later < 0 ? undefined : next + later - i };
        }
        const logged = { slot: next, commit: read.value };
        if (!follows(read.value, tailId)) return { slots, missing: next, stray: logged };
        slots.push(logged);
        next++;
        tailId = read.value.commitId;
        const sizeBytes = sizeOf(read.value);
        largest = Math.max(largest, sizeBytes);
        room -= sizeBytes;
      }
    }
    return { slots, missing: undefined };
  }

  /**
   * Reads a slot, and makes the table shapes that showing a commit of many tables needs: they take longest, are made once, and can be made with
   * pauses here, whereas a view takes in a commit in one step.
   */
  async readSlot(slot: number, signal?: AbortSignal): Promise<Commit | undefined> {
    const commit = await this.#log.read(slot, signal);
    const members = commit?.members ?? [];
    // For a small commit no shapes are made in advance.
    if (members.reduce((sum, { changes }) => sum + changes.length, 0) <= shapesAtOnce) return commit;
    let made = 0;
    for (const { changes } of members) {
      for (const { schema } of changes) {
        this.#context.shape(schema);
        if (++made % shapesAtOnce === 0) await this.#environment.yieldToEventLoop();
      }
    }
    return commit;
  }

  /** Reads Block 0, and moves the view over commits that were read before. */
  async confirm(slots: readonly LoggedCommit[], signal?: AbortSignal): Promise<void> {
    this.advance(await this.#register.refresh(signal), slots);
  }

  /**
   * Moves the view to a Block 0 and over commits whose slots were read or won before that Block 0 was asked for. Slots
   * at or under its floor decide nothing and are left out.
   */
  advance(versioned: VersionedBlock0, slots: readonly LoggedCommit[]): void {
    const { block0 } = versioned;
    let view = this.view;
    if (block0.generation > view.block0.generation || block0.appliedSeq > view.block0.appliedSeq) {
      if (block0.appliedSeq > view.tail) this.jumps++;
      view = view.rebased(block0);
    } else if (block0.revision > view.block0.revision) view = view.withBookkeeping(block0);
    const { tail } = this.view;
    const news: LoggedCommit[] = [];
    for (const logged of slots) {
      if (logged.slot <= block0.logFloor) continue;
      if (logged.slot === view.tail + 1 && view.isFollowedBy(logged.commit)) view = view.withCommit(logged);
      // Listeners receive a commit even if Block 0 has applied it already.
      if (logged.slot === tail + 1 + news.length) news.push(logged);
    }
    const hasMoved = view !== this.view;
    if (!hasMoved) return;
    this.#show(view);
    this.#events.committed.emit(news);
    this.#events.viewChanged.emit(view);
  }
}
