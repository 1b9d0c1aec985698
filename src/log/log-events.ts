/** Events by which the parts of an engine tell each other what happens. The comment of each says which part emits it and which listen. */
import type { LoggedCommit, View } from '../view/view.ts';

/** Events of one engine, from its beginning to its end. */
export class LogEvents {
  /**
   * The view has moved over commits: those after its old tail, in order and without a gap, as far as they were read and confirmed.
   * The view may have gone past them already, over slots that were not read. Told by the follower; heard by feeds of changes and by
   * transactions.
   */
  readonly committed: Emitter<readonly LoggedCommit[]> = new Emitter();
  /**
   * The instance shows another view. Emitted by the follower, after {@link committed}; heard by the daemons that work in the
   * background.
   */
  readonly moved: Emitter<View> = new Emitter();
  /**
   * Somebody has looked at the log, or at Block 0: the view has moved on, or was found to be the newest. Emitted by each kind of work that looks,
   * once that has ended: a flush, a merge, catching up. Heard by the turns, which decide again when the next turn is.
   */
  readonly looked: Emitter<View> = new Emitter();
  /** The database was replaced by another one. Emitted where failures are reported (FailureReports); heard by the turns, which stop. */
  readonly replaced: Emitter<void> = new Emitter();
}

/** Tells several listeners of the same kind of event. */
export class Emitter<T> {
  readonly #listeners = new Set<(event: T) => void>();

  /** Tells `listener` of every event from now on, until the returned function is called. It must not throw. */
  on(listener: (event: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells all listeners, in the order in which they came. */
  emit(event: T): void {
    for (const listener of this.#listeners) listener(event);
  }
}
