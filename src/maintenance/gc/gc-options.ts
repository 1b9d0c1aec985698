/** The options of `db.gc()`, checked. */
import type { Environment, Timer } from '../../base/env.ts';
import { FailureLog } from '../../base/logger.ts';
import type { Logger } from '../../base/logger.ts';
import { kinds, OptionTable } from '../../base/options.ts';

/** Options of `db.gc()`. */
export interface GcOptions {
  /** Deletes nothing and writes nothing, and reports what would be deleted and why. Default false. */
  readonly dryRun?: boolean;
  /**
   * Blobs that no row has ever referred to are uploads under way, or were left behind by ones that failed. They are left
   * alone for so long, in milliseconds. Default 86,400,000 (a day).
   */
  readonly graceMs?: number;
  /**
   * How long commits stay in the log after they were merged, in milliseconds: instances that were asleep for longer read
   * more to catch up. Default 3,600,000 (an hour).
   */
  readonly logRetentionMs?: number;
  /**
   * For so long it waits for loops of other instances, in milliseconds: states that were in force at some time since the call began
   * are left alone by this run, so that `for await` loops that read them end, or hold on to them as they do after ten seconds.
   * Nothing is waited for where nothing was merged since the last run. Loops of this instance need no waiting: they hold on to what
   * they read before anything is deleted. Default: where other nodes take turns in the database, twice the `writeForwardInterval` and
   * 20 seconds, but a minute at most; else 0. Runs by option `gcInterval` always wait for twice the `writeForwardInterval` and 20 seconds.
   */
  readonly loopGraceMs?: number;
  /**
   * Snapshots and history end by the time, and commits and uploads go for their age. If the time is more than a day after the last
   * write of the database, and the store has no clock but this machine's, the clock may be wrong: then none of that happens before it
   * has said so for a day, but for what `logRetentionMs: 0` and `graceMs: 0` ask for. True: the clock is right. Default false.
   */
  readonly trustClock?: boolean;
  /** Gives the call up. What was deleted until then is gone; the next run goes on. */
  readonly signal?: AbortSignal;
}

/** The options with every default filled in. */
export interface CheckedGcOptions {
  readonly dryRun: boolean;
  readonly graceMs: number;
  readonly logRetentionMs: number;
  /** Undefined: it depends on who takes turns. */
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

/** Throws `InvalidOptionError`. */
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

// Collects garbage from time to time.

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

  /** Not at the same moment on every node: the second one finds less to do, or nothing. */
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
