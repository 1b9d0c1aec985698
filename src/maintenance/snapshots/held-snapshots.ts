/** The snapshots that an instance holds: they end with it. */
import type { Environment } from '../../base/env.ts';
import type { Logger } from '../../base/logger.ts';
import type { PinnedView } from '../../engine/engine.ts';
import type { Pins } from '../../engine/snapshot-pins.ts';
import { HeldSnapshot } from './held-snapshot.ts';

export class HeldSnapshots {
  readonly #environment: Environment;
  readonly #logger: Logger;
  readonly #held = new Set<HeldSnapshot>();

  constructor(environment: Environment, logger: Logger) {
    this.#environment = environment;
    this.#logger = logger;
  }

  /** Renews a pin until the snapshot is released. */
  hold(pins: Pins, { pin, view }: PinnedView, timeToLiveMs: number): HeldSnapshot {
    const held = new HeldSnapshot({
      environment: this.#environment,
      logger: this.#logger,
      pins,
      pin,
      view,
      timeToLiveMs,
      onEnd: () => this.#held.delete(held),
    });
    this.#held.add(held);
    return held;
  }

  /** Releases all. One that cannot be released now expires by itself. */
  async release(): Promise<void> {
    const releases = Array.from(this.#held, async (held) => {
      try {
        await held.release();
      } catch (error) {
        const { message } = error as Error;
        this.#logger.warn(`A snapshot could not be released and will expire: ${message}`, { error });
      }
    });
    await Promise.all(releases);
  }
}
