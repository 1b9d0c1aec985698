/** Holds snapshots: renews their pins, and notices when one is lost. Also describes snapshots for `db.snapshots()`. */
import { Deadline } from '../../base/abort.ts';
import type { Environment, Timer } from '../../base/env.ts';
import { SnapshotExpiredError } from '../../base/errors.ts';
import { FailureLog } from '../../base/logger.ts';
import type { Logger } from '../../base/logger.ts';
import type { PinnedView } from '../../engine/engine.ts';
import type { Pins } from '../../engine/snapshot-pins.ts';
import type { StoredSnapshot } from '../../format/block0.ts';
import type { View } from '../../view/view.ts';

export interface HeldSnapshotOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly pins: Pins;
  readonly pin: StoredSnapshot;
  readonly view: View;
  readonly timeToLiveMs: number;
  readonly onEnd: (snapshot: HeldSnapshot) => void;
}

export class HeldSnapshot {
  readonly pin: StoredSnapshot;
  readonly view: View;
  readonly #options: HeldSnapshotOptions;
  readonly #failures: FailureLog;
  #timer: Timer | undefined;
  #renewing: Promise<void> | undefined;
  #ended: 'released' | 'expired' | undefined;

  constructor(options: HeldSnapshotOptions) {
    this.#options = options;
    this.#failures = new FailureLog(options.logger, options.environment);
    this.pin = options.pin;
    this.view = options.view;
    this.#schedule(options.timeToLiveMs / 3);
  }

  /** Throws `SnapshotExpiredError` unless the snapshot is held. */
  check(): void {
    if (this.#ended === undefined) return;
    const how = this.#ended === 'released' ? 'was released' : 'has expired: it was not renewed in time';
    throw new SnapshotExpiredError(`The snapshot of generation ${this.pin.generation} ${how}. Take a new one.`);
  }

  /** Ends the snapshot, because one of its blocks is gone. Its holder may not have noticed yet that its pin expired. */
  lost(): SnapshotExpiredError {
    this.#end('expired');
    return new SnapshotExpiredError(
      `The snapshot of generation ${this.pin.generation} has expired, and some of what it showed is gone. Take a new one.`,
    );
  }

  #schedule(delayMs: number): void {
    this.#timer = this.#options.environment.setTimer(
      () => {
        this.#renewing = this.#renew().finally(() => {
          this.#renewing = undefined;
        });
      },
      delayMs,
      { background: true },
    );
  }

  async #renew(): Promise<void> {
    const { environment, pins, timeToLiveMs } = this.#options;
    // If the store does not answer, there must be time left for another attempt.
    const deadline = new Deadline(environment, 'Renewing a snapshot', timeToLiveMs / 3);
    try {
      const isHeld = await pins.renew(this.pin.id, timeToLiveMs, deadline.signal);
      if (this.#ended !== undefined) return;
      this.#failures.worked('Renewing a snapshot');
      if (isHeld) this.#schedule(timeToLiveMs / 3);
      else this.#end('expired');
    } catch (error) {
      this.#failures.failed('Renewing a snapshot', error);
      if (this.#ended === undefined) this.#schedule(timeToLiveMs / 12);
    } finally {
      deadline.clear();
    }
  }

  #end(how: 'released' | 'expired'): void {
    this.#ended ??= how;
    this.#timer?.cancel();
    this.#options.onEnd(this);
  }

  /** Renews the pin no more, and leaves it to the caller. */
  async letGo(): Promise<void> {
    if (this.#ended !== undefined) return;
    this.#end('released');
    await this.#renewing;
  }

  /** Ends the snapshot: blocks that only it reaches may be collected. */
  async release(signal?: AbortSignal): Promise<void> {
    if (this.#ended !== undefined) return;
    this.#end('released');
    await this.#renewing;
    await this.#options.pins.release(this.pin.id, signal);
  }
}

/** The snapshots that an instance holds. They end with the instance. */
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

  /** Releases all snapshots. A snapshot that cannot be released now expires by itself. */
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

/** A snapshot as `db.snapshots()` lists it. */
export interface SnapshotInfo {
  /** Its id. */
  readonly id: string;
  /** The generation of the database that it shows. */
  readonly generation: number;
  /** Id of the node that took it. */
  readonly nodeId: number;
  /** When it was taken, by that node's clock. */
  readonly createdAt: Date;
  /** When it counts as abandoned unless it is renewed before. */
  readonly expiresAt: Date;
}

export function snapshotInfo({ id, generation, nodeId, createdMs, expiresMs }: StoredSnapshot): SnapshotInfo {
  return { id, generation, nodeId, createdAt: new Date(createdMs), expiresAt: new Date(expiresMs) };
}
