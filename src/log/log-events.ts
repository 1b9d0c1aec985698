/** What the parts of an engine tell each other while it runs. Each event says who tells it, and who listens. */
import { Emitter } from '../base/emitter.ts';
import type { LoggedCommit, View } from '../view/view.ts';

/** Events of one engine, from its beginning to its end. */
export class LogEvents {
  /**
   * The view has moved over commits: those after its old tail, in order and without a gap, as far as they were read and confirmed.
   * The view may have gone past them already, over slots that were not read. Told by the follower; heard by feeds of changes and by
   * transactions.
   */
  readonly committed: Emitter<readonly LoggedCommit[]> = new Emitter();
  /** There is another view. Told by the follower, after {@link committed}; heard by the daemons that work in the background. */
  readonly moved: Emitter<View> = new Emitter();
  /**
   * Somebody has looked at the log, or at Block 0: the view has moved on, or was found to be the newest. Told by whatever looks,
   * once it has ended: a flush, a merge, catching up. Heard by the turns, which decide anew when the next one is.
   */
  readonly looked: Emitter<View> = new Emitter();
  /** The database was replaced by another one. Told by the reports of failures; heard by the turns, which end. */
  readonly replaced: Emitter<void> = new Emitter();
}
