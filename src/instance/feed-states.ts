/**
 * The states between the commits of a feed, for the rows before each change: the state before a commit is the one that its flushes
 * were validated on.
 *
 * Invariants:
 * - States follow each other commit by commit, from one that Block 0, the history or a snapshot has.
 * - A state that the reader of the feed may still read from is held, as the state of a long query is.
 */
import { ChangesExpiredError, invariant } from '../base/errors.ts';
import type { Engine } from '../engine/engine.ts';
import type { CommitMember } from '../format/commit.ts';
import type { StateKeeper } from '../query/planner/query-host.ts';
import { changesByTable, View } from '../view/view.ts';
import type { LoggedCommit } from '../view/view.ts';

export interface FeedStatesOptions {
  readonly engine: Engine;
  /** The view when the feed was asked for. */
  readonly shown: View;
  /** Whether the feed gives the changes of a table. */
  readonly gives: (table: string) => boolean;
  readonly keep: (view: View, feed: object) => StateKeeper | undefined;
}

export class FeedStates {
  readonly #options: FeedStatesOptions;
  readonly #feed: object;
  /** The state after the last commit that was taken. */
  #view: View | undefined;
  /** The state before it, while its rows may be read. */
  #before: View | undefined;
  /** By what they keep. */
  readonly #keepers = new Map<string, StateKeeper | undefined>();
  readonly #ignore: () => void;

  constructor(options: FeedStatesOptions, feed: object) {
    this.#options = options;
    this.#feed = feed;
    // A loop that nobody refers to any more is not kept by this.
    const self = new WeakRef(this);
    const ignore = options.engine.events.viewChanged.on((view) => {
      const states = self.deref();
      if (states === undefined) ignore();
      else states.#follow(view);
    });
    this.#ignore = ignore;
  }

  /**
   * Finds the state at a position, and returns the position from which the log must be read for it. Rejects with
   * `ChangesExpiredError` if no state is kept from which it follows.
   */
  async begin(position: number, signal: AbortSignal): Promise<number> {
    const { engine, shown } = this.#options;
    if (position > engine.view.tail) await engine.refresh(signal);
    // The feed refuses it.
    if (position > engine.view.tail) return position;
    const near = [engine.view, shown].find(({ block0, tail }) => block0.appliedSeq <= position && position <= tail);
    if (near !== undefined) {
      this.#view = upTo(near, position, engine);
      return position;
    }
    const kept = await engine.history.readAtPosition(position, signal);
    if (kept === undefined)
      throw new ChangesExpiredError(position, engine.view.block0.appliedSeq, { rowsBefore: true });
    this.#view = View.ofBlock0(engine.context, kept);
    this.#keep();
    await this.#keepers.get(keyOf(this.#view))?.hold();
    return kept.appliedSeq;
  }

  /** The reader has done with the commit that was taken last. */
  release(): void {
    this.#before = undefined;
    this.#keep();
  }

  /** Takes the next commit, and returns the state before it. Throws `ChangesExpiredError` where that is not kept. */
  take(logged: LoggedCommit): View {
    const { engine } = this.#options;
    const before = this.#view;
    invariant(before?.tail === logged.slot - 1, 'A feed has left out a commit');
    this.#before = before;
    if (engine.view.tail === logged.slot) this.#view = engine.view;
    else {
      const members = logged.commit.members.map((member) => this.#ownPart(member, before, logged.slot));
      this.#view = before.withCommit({ ...logged, commit: { ...logged.commit, members } });
      this.#follow(engine.view);
    }
    this.#keep();
    return before;
  }

  /** Resolves once the state before the commit that was taken last is held, if that is due. */
  async held(): Promise<void> {
    if (this.#before !== undefined) await this.#keepers.get(keyOf(this.#before))?.holdIfDue();
  }

  end(): void {
    this.#ignore();
    this.#view = undefined;
    this.release();
  }

  /** Returns the part of a flush that the feed gives. */
  #ownPart(member: CommitMember, before: View, slot: number): CommitMember {
    for (const [name, changes] of changesByTable(member)) {
      const active = before.table(name)?.shape.version;
      if (!this.#options.gives(name) || active === undefined || changes.of(active) !== undefined) continue;
      // The version was retired meanwhile: only a later Block 0 has the rows of the present one.
      throw new ChangesExpiredError(slot - 1, this.#options.engine.view.block0.appliedSeq, { rowsBefore: true });
    }
    return { ...member, changes: member.changes.filter(({ schema }) => this.#options.gives(schema.name)) };
  }

  /** Goes over to a newer Block 0 that has applied no later commit. */
  #follow(view: View): void {
    const mine = this.#view;
    const { block0, tail } = view;
    if (mine === undefined || block0.generation <= mine.block0.generation || block0.appliedSeq > mine.tail) return;
    this.#view = tail === mine.tail ? view : mine.rebased(block0);
    this.#keep();
  }

  /** Keeps the states that may be read from, and no others. */
  #keep(): void {
    const { engine, keep } = this.#options;
    const views: View[] = [];
    const before = this.#before;
    if (before !== undefined) views.push(before);
    const view = this.#view;
    // While the reader waits, the state of the instance itself is the one to read.
    if (view !== undefined && (before !== undefined || view.block0.generation < engine.view.block0.generation)) {
      views.push(view);
    }
    const wanted = new Map(views.map((one) => [keyOf(one), one]));
    for (const [key, keeper] of this.#keepers) {
      if (wanted.has(key)) continue;
      keeper?.release();
      this.#keepers.delete(key);
    }
    for (const [key, one] of wanted) if (!this.#keepers.has(key)) this.#keepers.set(key, keep(one, this.#feed));
  }
}

/** Returns one key for all views that are kept by the same pin. */
function keyOf({ block0, readsLog }: View): string {
  return `${block0.generation} ${readsLog}`;
}

/** Returns a view up to a position, which it shows. */
function upTo(view: View, position: number, { context }: Engine): View {
  if (view.tail === position) return view;
  let shorter = View.ofBlock0(context, view.block0);
  for (const logged of view.pending) if (logged.slot <= position) shorter = shorter.withCommit(logged);
  return shorter;
}
