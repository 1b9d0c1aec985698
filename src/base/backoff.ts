/** Pauses between attempts, for work that competes with others or that fails for a while. */
import { sleep } from './env.ts';
import type { Environment } from './env.ts';

/** How long to pause: each pause is twice as long as the one before. */
export interface Backoff {
  /** The pause after the first attempt, in milliseconds, before jitter. */
  readonly firstMs: number;
  /** The longest pause, in milliseconds, before jitter. */
  readonly maxMs: number;
  /**
   * `full`: from 0 up to the pause, to spread competing instances. `around`: from half the pause to one and a half times the
   * pause, for failures that take some time to pass.
   */
  readonly jitter: 'full' | 'around';
}

/** Returns the pause after an attempt, counted from 1, in milliseconds. `random` is from 0 to 1. */
export function pauseMs({ firstMs, maxMs, jitter }: Backoff, attempt: number, random: number): number {
  return Math.min(maxMs, firstMs * 2 ** (attempt - 1)) * (jitter === 'full' ? random : 0.5 + random);
}

/** Pauses after an attempt, counted from 1. Rejects with the signal's reason as soon as it is aborted. */
export function backOff(
  environment: Environment,
  backoff: Backoff,
  attempt: number,
  signal?: AbortSignal,
): Promise<void> {
  return sleep(environment, pauseMs(backoff, attempt, environment.random()), signal);
}
