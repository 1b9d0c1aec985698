/**
 * The end of the log, as an instance sees it that has rivals: it reads slot after slot, confirms each of them while it reads the next one,
 * and decides when to put (docs/protocol.md, "Many writers").
 */
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import type { LoggedCommit } from '../view/view.ts';
import type { LogFollower } from './log-follower.ts';
import { freeTooLong } from './rivals.ts';
import type { Rivals, SlotRace } from './rivals.ts';

/** After so many commits in a row the instance is far behind, and reads several slots at the same time. */
const farBehind = 3;

export interface LogEndOptions {
  readonly environment: Environment;
  readonly follower: LogFollower;
  readonly rivals: Rivals;
  /** Catches up with everything that was committed before the call. */
  readonly catchUp: () => Promise<void>;
}

export class LogEnd {
  readonly #options: LogEndOptions;

  constructor(options: LogEndOptions) {
    this.#options = options;
  }

  /**
   * Resolves when the instance should put a commit, at once if it has no rivals; or when `isOver` returns true.
   */
  async awaitTurn(race: SlotRace, isOver: () => boolean): Promise<void> {
    const { environment, rivals, follower } = this.#options;
    if (rivals.isOverdue(race)) return;
    let found: LoggedCommit | undefined;
    for (let taken = 0, free = 0; rivals.areThere && !isOver(); ) {
      found = await this.#lookOn(found);
      if (found !== undefined) {
        free = 0;
        rivals.noteTaken();
        race.noteTaken();
        if (++taken < farBehind) continue;
        await this.#confirm(found);
        found = undefined;
        await follower.peek();
        taken = 0;
      } else {
        race.noteEnd(follower.view.tail + 1);
        if (++free >= freeTooLong || (race.isFirst && taken === 0)) {
          rivals.noteFree();
          race.noteFree();
        }
      }
      if (rivals.isOwnTurn(race, free)) return;
      const pauseMs = rivals.pauseMs(race);
      if (pauseMs > 0) await sleep(environment, pauseMs);
    }
    if (found !== undefined) await this.#confirm(found);
  }

  /** Reads the next slot, while a read of Block 0 confirms the commit found before. Returns the commit in the slot, if any. */
  async #lookOn(before: LoggedCommit | undefined): Promise<LoggedCommit | undefined> {
    const { follower } = this.#options;
    const slot = Math.max(follower.view.tail, before?.slot ?? 0) + 1;
    // Both are waited for, even if one fails: no request goes on after the caller has its answer.
    const [read, confirmed] = await Promise.allSettled([follower.readSlot(slot), before && this.#confirm(before)]);
    if (confirmed.status === 'rejected') throw confirmed.reason;
    if (read.status === 'rejected') throw read.reason;
    return read.value && { slot, commit: read.value };
  }

  async #confirm(found: LoggedCommit): Promise<void> {
    const { follower, catchUp } = this.#options;
    if (found.slot <= follower.view.tail) return;
    await follower.confirm([found]);
    // A refresh finds out why it does not follow the view.
    if (follower.view.tail < found.slot) await catchUp();
  }
}
