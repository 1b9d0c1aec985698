/** What a writer does that other nodes come before, again and again: it waits a while, and in the end it gives up. */
import { ContentionError } from '../base/errors.ts';

/** Confirmed losses after which a flush fails with `ContentionError`. */
const maxLosses = 32;
/** The pause after a loss is random, up to so much; it doubles with each loss. In milliseconds. */
const firstPauseMs = 32;
const longestPauseMs = 1000;

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
    return Math.min(longestPauseMs, firstPauseMs * 2 ** (losses - 1)) * random;
  }
}
