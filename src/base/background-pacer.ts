/**
 * A pacer for background work, which leaves most of the time to other work where there is other work. Yielding one turn of the event
 * loop is not enough: a caller that reads a little in every turn would then advance only that little per slice.
 */
import { loopActiveMs } from '#platform';
import { realEnvironment, sleep } from './env.ts';
import type { Environment } from './env.ts';
import { Pacer } from './pacer.ts';

/** How long the work rests, as a multiple of the time that it worked. It needs that much because it also causes work elsewhere: file I/O
 * and garbage collection. */
const restShare = 3;
/** Longest rest, in milliseconds: work that took much longer than a slice was mostly waiting. */
const maxRestMs = 16;
/** The first part of a rest, in milliseconds, which shows whether there is other work. */
const probeMs = 1;
/** In a process without other work the event loop is active for less than this share of the time. */
const idleShare = 0.4;

/** Returns how long the event loop has been active so far, in milliseconds; undefined where that is not known. */
export type ActiveTime = () => number | undefined;

export class BackgroundPacer extends Pacer {
  readonly #environment: Environment;
  readonly #activeMs: ActiveTime | undefined;

  /** `activeMs`: by default of the runtime's event loop, in the real environment. Without it all rests are long. */
  constructor(environment: Environment, activeMs: ActiveTime | undefined = defaultOf(environment)) {
    super(environment);
    this.#environment = environment;
    this.#activeMs = activeMs;
  }

  protected override async wait(workedMs: number): Promise<void> {
    const restMs = Math.min(restShare * workedMs, maxRestMs);
    const activeMs = this.#activeMs?.();
    if (activeMs === undefined || restMs <= probeMs) {
      await sleep(this.#environment, restMs);
      return;
    }
    const startedMs = this.#environment.monotonicMs();
    await sleep(this.#environment, probeMs);
    const restedMs = this.#environment.monotonicMs() - startedMs;
    const busyMs = (this.#activeMs?.() ?? Infinity) - activeMs;
    if (busyMs >= restedMs * idleShare && restedMs < restMs) await sleep(this.#environment, restMs - restedMs);
  }
}

function defaultOf(environment: Environment): ActiveTime | undefined {
  return environment === realEnvironment ? loopActiveMs : undefined;
}
