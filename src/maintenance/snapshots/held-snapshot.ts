/** A snapshot as its holder has it: renews its pin while it is held, and finds out when it was lost. */
import { Deadline } from '../../base/deadline.ts';
import type { Environment, Timer } from '../../base/env.ts';
import { SnapshotExpiredError } from '../../base/errors.ts';
import { FailureLog } from '../../base/failure-log.ts';
import type { Logger } from '../../base/logger.ts';
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

  /** A block that the snapshot shows is gone, so the snapshot is, whatever its holder believed. */
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
    // A store that does not answer must not cost the time in which another attempt would do.
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

  /** Ends it: what only it showed may be collected. */
  async release(signal?: AbortSignal): Promise<void> {
    if (this.#ended !== undefined) return;
    this.#end('released');
    await this.#renewing;
    await this.#options.pins.release(this.pin.id, signal);
  }
}
