/** The options of `db.gc()`, checked. */
import { InvalidOptionError } from '../../base/errors.ts';
import { withOwnSignal } from '../../base/signals.ts';
import { describeValue } from '../../base/describe-value.ts';

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

const known: readonly (keyof GcOptions)[] = [
  'dryRun',
  'graceMs',
  'logRetentionMs',
  'loopGraceMs',
  'trustClock',
  'signal',
];
const dayMs = 86_400_000;

function milliseconds(option: keyof GcOptions, value: unknown, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new InvalidOptionError(
    option,
    `Option ${option} is ${describeValue(value)}; it must be whole milliseconds >= 0.`,
  );
}

/** Throws `InvalidOptionError`. */
export function checkGcOptions(options: GcOptions): CheckedGcOptions {
  const { dryRun = false, trustClock = false, signal } = withOwnSignal('db.gc()', options, known);
  for (const [option, value] of Object.entries({ dryRun, trustClock })) {
    if (typeof value === 'boolean') continue;
    throw new InvalidOptionError(option, `Option ${option} is ${describeValue(value)}; it must be true or false.`);
  }
  return {
    dryRun,
    graceMs: milliseconds('graceMs', options.graceMs, dayMs),
    logRetentionMs: milliseconds('logRetentionMs', options.logRetentionMs, dayMs / 24),
    loopGraceMs: options.loopGraceMs === undefined ? undefined : milliseconds('loopGraceMs', options.loopGraceMs, 0),
    trustClock,
    signal,
  };
}
