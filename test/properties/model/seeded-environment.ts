/** The runtime's timers, a wall clock that stands still, and randomness from a seed. */
import { realEnvironment } from '../../../src/base/env.ts';
import type { Environment } from '../../../src/base/env.ts';
import { Random } from './random.ts';

/**
 * With the wall clock standing still no turn of write authority comes by itself. `hurry`: how much sooner timers fire
 * than they were asked to, so that pauses between attempts take no time.
 */
export function seededClockless(seed: number, hurry = 1): Environment {
  const random = new Random(seed ^ 0x5eed);
  return {
    now: () => 1_700_000_000_001,
    // Time that stands still, too, makes no view stale.
    monotonicMs: () => 0,
    setTimer: (callback, delayMs, options) => realEnvironment.setTimer(callback, delayMs / hurry, options),
    randomBytes: (length) => random.bytes(length),
    random: () => random.fraction(),
    yieldToEventLoop: () => realEnvironment.yieldToEventLoop(),
  };
}
