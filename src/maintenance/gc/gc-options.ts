/** Checks the options of `db.gc()`, and runs it on a schedule. */
import type { Environment, Timer } from '../../base/env.ts';
import { FailureLog } from '../../base/logger.ts';
import type { Logger } from '../../base/logger.ts';
import { kinds, OptionTable } from '../../base/options.ts';

/** Options of `db.gc()`. */
export interface GcOptions {
  /** Deletes nothing and writes nothing, and reports the deletions that a run would make, and why. Default false. */
  readonly dryRun?: boolean;
  /**
   * How long a blob that no row has ever referred to is left alone, in milliseconds: its upload may be under way. Default
   * 86,400,000 (a day).
   */
  readonly graceMs?: number;
  /**
   * How old a merged commit must be to leave the log, in milliseconds. Instances that were asleep for longer read
   * more to catch up. Default 3,600,000 (an hour).
   */
  readonly logRetentionMs?: number;
  /**
   * How long to wait for loops of other instances, in milliseconds. The run leaves alone every state that was in force at any time
   * since the call began. So `for await` loops that read such a state can end, or pin it, as they do after ten seconds. If nothing
   * was merged since the last run, the run does not wait. Loops of this instance need no wait: they pin the states that they read
   * before anything is deleted. Default: 0 if no other nodes take turns in the database, and this instance knows of no write by an
   * ephemeral instance, otherwise twice the `writeForwardInterval` and 20 seconds, but a minute at most. Runs by option `gcInterval` always wait for twice the `writeForwardInterval` and 20 seconds.
   */
  readonly loopGraceMs?: number;
  /**
   * Whether to trust the clock. Snapshots and history expire by the time, and commits and uploads are deleted by their age. If the
   * time is more than a day after the last write of the database, and the store has no clock but this machine's, the clock may be
   * wrong. Then nothing expires or is deleted by age until the clock has shown that time for a day, except with `logRetentionMs: 0` and
   * `graceMs: 0`. Default false.
   */
  readonly trustClock?: boolean;
  /** Gives the call up. Objects deleted until then stay deleted; the next run continues. */
  readonly signal?: AbortSignal;
}

/** The options with every default filled in. */
export interface CheckedGcOptions {
  readonly dryRun: boolean;
  readonly graceMs: number;
  readonly logRetentionMs: number;
  /** Undefined: the wait depends on whether other nodes take turns. */
  readonly loopGraceMs: number | undefined;
  readonly trustClock: boolean;
  readonly signal: AbortSignal | undefined;
}

const dayMs = 86_400_000;

const gcOptions = new OptionTable<GcOptions>({
  dryRun: kinds.flag,
  graceMs: kinds.milliseconds(0),
  logRetentionMs: kinds.milliseconds(0),
  loopGraceMs: kinds.milliseconds(0),
  trustClock: kinds.flag,
  signal: kinds.signal,
});

/** Checks the options of `db.gc()`. Throws `InvalidOptionError`. */
export function checkGcOptions(options: GcOptions): CheckedGcOptions {
  const given = gcOptions.check('db.gc()', options);
  return {
    dryRun: given.dryRun ?? false,
    graceMs: given.graceMs ?? dayMs,
    logRetentionMs: given.logRetentionMs ?? dayMs / 24,
    loopGraceMs: given.loopGraceMs,
    trustClock: given.trustClock ?? false,
    signal: given.signal,
  };
}

export interface GcScheduleOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly intervalMs: number;
  /** Whether there can be anything to collect. */
  readonly isDue: () => boolean;
  readonly collect: () => Promise<unknown>;
}

/** Collects garbage at intervals. */
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

  /** Sets the timer, with a random part so that nodes collect at different times: the second node finds little or nothing to do. */
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
