/** Pins the state that a long loop reads, and lets go of it when the loop has ended. */
import type { Logger } from '../base/logger.ts';
import type { StateKeeper } from '../table/query-host.ts';
import type { HeldSnapshot } from './held-snapshot.ts';

export class PinningKeeper implements StateKeeper {
  readonly isPast: () => boolean;
  readonly #pin: () => Promise<HeldSnapshot>;
  readonly #logger: Logger;
  #held: Promise<HeldSnapshot> | undefined;
  #ended = false;

  readonly #inBackground: (work: Promise<unknown>) => void;

  /** `inBackground` takes work that nobody waits for, but that must end before the database has. */
  constructor(
    isPast: () => boolean,
    pin: () => Promise<HeldSnapshot>,
    logger: Logger,
    inBackground: (work: Promise<unknown>) => void,
  ) {
    this.isPast = isPast;
    this.#pin = pin;
    this.#logger = logger;
    this.#inBackground = inBackground;
  }

  async hold(): Promise<void> {
    if (this.#ended) return;
    this.#held = this.#pin();
    // Garbage was collected past the state, or this node may not write: the loop may still come to its end.
    await this.#held.catch((error: unknown) => {
      this.#logger.debug(`A long query could not hold on to its state: ${(error as Error).message}`);
    });
  }

  release(): void {
    this.#ended = true;
    if (this.#held !== undefined) this.#inBackground(this.#letGo(this.#held));
  }

  async #letGo(held: Promise<HeldSnapshot>): Promise<void> {
    try {
      await (await held).release();
    } catch (error) {
      this.#logger.debug(`The state of a long query will be let go when it expires: ${(error as Error).message}`);
    }
  }
}
