/**
 * Follows the log: holds the newest view and moves it forward, over confirmed slots only.
 *
 * A slot is confirmed when it was read (or won) and a read of Block 0 that started after that shows a floor below it.
 * So a refresh reads the next slots first and Block 0 afterwards. Invariants: the view's Block 0 and tail never go
 * back; the commits in it are consecutive.
 */
import { invariant } from '../base/invariant.ts';
import { untilAborted } from '../base/until-aborted.ts';
import type { Block0Register, VersionedBlock0 } from '../root/block0-register.ts';
import { View } from '../table/view.ts';
import type { LoggedCommit, ViewContext } from '../table/view.ts';
import type { CommitLog } from '../log/commit-log.ts';

/** Most slots that are read at the same time while catching up. */
const maxReadAhead = 16;

export class Follower {
  readonly #register: Block0Register;
  readonly #log: CommitLog;
  readonly #context: ViewContext;
  #view: View | undefined;
  #running: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  /** How often the tail moved over slots that were not read, because Block 0 had applied them already. */
  jumps = 0;

  constructor(register: Block0Register, log: CommitLog, context: ViewContext) {
    this.#register = register;
    this.#log = log;
    this.#context = context;
  }

  /** The newest view. */
  get view(): View {
    invariant(this.#view !== undefined, 'A view was used before the database was opened');
    return this.#view;
  }

  /** Begins with a Block 0 that was just read, and reads on from there. */
  async open(opened: VersionedBlock0, signal?: AbortSignal): Promise<void> {
    this.#view = View.ofBlock0(this.#context, opened.block0);
    const { slots, missing } = await this.#readSlots(signal);
    // A lone missing slot needs no second look: the view is Block 0's.
    if (slots.length === 0) return;
    if (await this.#confirm(slots, missing, signal)) await this.#catchUp(signal);
  }

  /**
   * Catches up with everything that was committed anywhere before the call. Calls that come while one is under way
   * share the next one, which starts after them.
   */
  refresh(signal?: AbortSignal): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#catchUp(signal).finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    this.#queued ??= this.#running
      .catch(() => undefined)
      .then(() => {
        this.#queued = undefined;
        return this.refresh();
      });
    return untilAborted(this.#queued, signal);
  }

  async #catchUp(signal?: AbortSignal): Promise<void> {
    for (;;) {
      const { slots, missing } = await this.#readSlots(signal);
      if (!(await this.#confirm(slots, missing, signal))) return;
    }
  }

  /** Confirms slots by Block 0. True if it has moved past `missing`, so that there may be more to read. */
  async #confirm(slots: readonly LoggedCommit[], missing: number, signal?: AbortSignal): Promise<boolean> {
    const versioned = await this.#register.refresh(signal);
    this.advance(versioned, slots);
    return versioned.block0.appliedSeq >= missing;
  }

  /** Reads the slots after the tail until one is missing. */
  async #readSlots(signal?: AbortSignal): Promise<{ slots: LoggedCommit[]; missing: number }> {
    const slots: LoggedCommit[] = [];
    let next = this.view.tail + 1;
    for (let ahead = 1; ; ahead = Math.min(ahead * 2, maxReadAhead)) {
      const window = Array.from({ length: ahead }, (_, i) => next + i);
      // All of them are waited for, also when one fails: nothing goes on behind the back of who called.
      const reads = await Promise.allSettled(window.map((slot) => this.#log.read(slot, signal)));
      for (const read of reads) {
        if (read.status === 'rejected') throw read.reason;
        if (read.value === undefined) return { slots, missing: next };
        slots.push({ seq: next++, commit: read.value });
      }
    }
  }

  /**
   * Moves the view to a Block 0 and over commits whose slots were read or won before that Block 0 was asked for. Those
   * at or under its floor decide nothing and are left out.
   */
  advance(versioned: VersionedBlock0, slots: readonly LoggedCommit[]): void {
    const { block0 } = versioned;
    let view = this.view;
    if (block0.generation > view.block0.generation || block0.appliedSeq > view.block0.appliedSeq) {
      if (block0.appliedSeq > view.tail) this.jumps++;
      view = view.rebased(block0);
    } else if (block0.revision > view.block0.revision) view = view.withBookkeeping(block0);
    for (const logged of slots) {
      if (logged.seq > block0.logFloor && logged.seq === view.tail + 1) view = view.withCommit(logged);
    }
    this.#view = view;
  }
}
