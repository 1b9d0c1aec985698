/** A reader that follows the changes of a database in the background, and records everything that it gets. */
import type { ChangeFeed, Change } from '../../../src/instance/change-feed.ts';

export interface Told {
  readonly position: number;
  readonly changes: readonly Change[];
}

export class FeedReader {
  readonly told: Told[] = [];
  /** What the loop was rejected with. */
  error: unknown;
  hasEnded = false;
  readonly ended: Promise<void>;

  /** `work` is what is done after each commit before the next one is asked for. */
  constructor(feed: ChangeFeed, work: (told: Told) => Promise<unknown> = async () => undefined) {
    this.ended = this.#run(feed, work);
  }

  async #run(feed: ChangeFeed, work: (told: Told) => Promise<unknown>): Promise<void> {
    try {
      for await (const commit of feed) {
        const told = { position: commit.position, changes: await commit.toArray() };
        this.told.push(told);
        await work(told);
      }
    } catch (error) {
      this.error = error;
    }
    this.hasEnded = true;
  }

  get positions(): number[] {
    return this.told.map(({ position }) => position);
  }

  /** Ids of the rows that were told of, commit by commit. */
  get keys(): unknown[][] {
    return this.told.map(({ changes }) => changes.map(({ key }) => key));
  }
}
