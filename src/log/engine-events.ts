/** Events between the parts of an engine. The comment of each says which part emits it, and which parts listen. */
import type { LoggedCommit, View } from '../view/view.ts';

/** Events of one engine, from its beginning to its end. */
export class EngineEvents {
  /**
   * The view has moved over these commits: the ones after its old tail, in order and without a gap, as far as they were read and
   * confirmed. The view may have gone past them already, over slots that were not read. The follower emits it; feeds of changes and
   * transactions listen.
   */
  readonly committed: Emitter<readonly LoggedCommit[]> = new Emitter();
  /**
   * The instance shows another view. The follower emits it, after {@link committed}; the daemons that work in the background
   * listen.
   */
  readonly viewChanged: Emitter<View> = new Emitter();
  /**
   * The log or Block 0 was read: the view has moved on, or is known to be the newest. A flush, a merge and catching up emit it when
   * they end; the write-forward loop listens, and sets the time of the next turn again.
   */
  readonly looked: Emitter<View> = new Emitter();
  /** The database was replaced by another one. FailureReports emits it; the write-forward loop listens, and stops. */
  readonly replaced: Emitter<void> = new Emitter();
}

/** Passes events of one kind to its listeners. */
export class Emitter<T> {
  readonly #listeners = new Set<(event: T) => void>();

  /** Calls `listener` with every event from now on, until the returned function is called. The listener must not throw. */
  on(listener: (event: T) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls all listeners, in the order in which they were added. */
  emit(event: T): void {
    for (const listener of this.#listeners) listener(event);
  }
}
