/**
 * The commits by which the view moves on while a transaction runs. The view itself forgets a commit once it is merged;
 * whoever validates what was read must see it all the same.
 */
import type { LogEvents } from '../log/log-events.ts';
import { sizeOf } from '../log/log-follower.ts';
import type { LoggedCommit } from '../view/view.ts';

/**
 * Commits of more bytes are not held on to. They are shared by all transactions that wait for them, so this is what all
 * of them take together.
 */
const maxBytes = 16 * 1024 * 1024;

export class CommitWatch {
  /** Ascending by slot. */
  #commits: LoggedCommit[] = [];
  #sizeBytes = 0;
  /** Ends the watch. */
  readonly stop: () => void;

  constructor(events: LogEvents) {
    this.stop = events.committed.on((news) => news.forEach((logged) => this.#note(logged)));
  }

  #note(logged: LoggedCommit): void {
    this.#sizeBytes += sizeOf(logged.commit);
    if (this.#sizeBytes <= maxBytes) this.#commits.push(logged);
    else this.#commits = [];
  }

  /** The commits of the slots after `after`, up to `tail`; undefined if not all of them are known. */
  between(after: number, tail: number): LoggedCommit[] | undefined {
    const commits = this.#commits.filter(({ seq }) => seq > after && seq <= tail);
    return commits.length === tail - after ? commits : undefined;
  }
}
