/** What a writer does that other nodes come before, again and again: it waits a while, and in the end it gives up. */
import { pauseMs } from '../base/backoff.ts';
import type { Backoff } from '../base/backoff.ts';
import { ContentionError } from '../base/errors.ts';

/** Confirmed losses after which a flush fails with `ContentionError`. */
const maxLosses = 32;
const afterLoss: Backoff = { firstMs: 32, longestMs: 1000, jitter: 'full' };

/** One flush's attempts to win a slot, whichever. */
export class SlotRace {
  #losses = 0;

  /**
   * A slot was lost. Returns for how many milliseconds to wait, or throws `ContentionError`. `random` is from 0 to 1. The
   * more writers there are, the longer they must wait for few of them to want the same slot.
   */
  lost(random: number): number {
    const losses = ++this.#losses;
    if (losses >= maxLosses) {
      throw new ContentionError(`Other writers won ${losses} slots in a row. The flush was not applied: try it again.`);
    }
    return pauseMs(afterLoss, losses, random);
  }
}
