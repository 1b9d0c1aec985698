/** Collects garbage from time to time. */
import type { Environment, Timer } from '../../base/env.ts';
import { FailureLog } from '../../base/failure-log.ts';
import type { Logger } from '../../base/logger.ts';

export interface GcScheduleOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly intervalMs: number;
  /** Whether there can be anything to collect. */
  readonly isDue: () => boolean;
  readonly collect: () => Promise<unknown>;
}

export class GcSchedule {
  readonly #options: GcScheduleOptions;
  readonly #failures: FailureLog;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: GcScheduleOptions) {
    this.#options = options;
    this.#failures = new FailureLog(options.logger, options.environment);
    this.#wait();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** Not at the same moment on every node: whoever comes second finds less to do, or nothing. */
  #wait(): void {
    const { environment, intervalMs } = this.#options;
    const delayMs = intervalMs * (0.75 + environment.random() / 4);
    this.#timer = environment.setTimer(() => void this.#run(), delayMs, { background: true });
  }

  async #run(): Promise<void> {
    const { isDue, collect } = this.#options;
    try {
      if (isDue()) {
        await collect();
        this.#failures.worked('Collecting garbage');
      }
    } catch (error) {
      if (!this.#stopped) this.#failures.failed('Collecting garbage', error);
    }
    if (!this.#stopped) this.#wait();
  }
}
