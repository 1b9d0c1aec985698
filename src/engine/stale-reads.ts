/**
 * Queries on an old view: they wait for a newer one, for as long as the option `maxStaleWaitMs` says, and then use the old one. Only
 * freshness suffers: a view is always a state that the database was in.
 */
import { sleep } from '../base/env.ts';
import type { Environment } from '../base/env.ts';
import { BackpressureError, DeadlineExceededError, StorageError } from '../base/errors.ts';
import { newAbortController } from '../base/abort.ts';
import type { Logger } from '../base/logger.ts';
import type { Engine } from './engine.ts';

export interface StaleReadsOptions {
  readonly environment: Environment;
  readonly logger: Logger;
  readonly engine: Pick<Engine, 'withDeadline' | 'freshen' | 'viewAgeMs'>;
  /** Undefined: as long as it takes. */
  readonly maxWaitMs: number | undefined;
}

/** Whether a view could not be freshened for now; anything else is wrong with the database itself. */
function isPassing(error: unknown): boolean {
  return error instanceof StorageError || error instanceof DeadlineExceededError || error instanceof BackpressureError;
}

export class StaleReads {
  readonly #options: StaleReadsOptions;
  /** The refresh under way, and whether a query has waited for it as long as it may. */
  #freshening: Promise<void> | undefined;
  #isWaitedFor = false;
  #hasWarned = false;

  constructor(options: StaleReadsOptions) {
    this.#options = options;
  }

  /** Resolves once the view is fresh, or was waited for. */
  async freshen(): Promise<void> {
    const { engine, environment, maxWaitMs } = this.#options;
    if (maxWaitMs === undefined) {
      await engine.withDeadline('A query', undefined, ({ signal }) => engine.freshen(signal));
      return;
    }
    const freshening = this.#begun();
    // The store does not answer: one query in a minute finds out again, and the others need not wait for that.
    if (this.#isWaitedFor) return;
    const waiting = newAbortController();
    const waited = sleep(environment, maxWaitMs, waiting.signal).then(
      () => true,
      () => false,
    );
    const isLate = await Promise.race([freshening.then(() => false), waited]);
    waiting.abort(new Error('the view is fresh'));
    if (!isLate) return;
    this.#isWaitedFor = this.#freshening !== undefined;
    this.#warn('does not answer');
  }

  #begun(): Promise<void> {
    if (this.#freshening !== undefined) return this.#freshening;
    const { engine } = this.#options;
    const freshening = engine
      .withDeadline('A query', undefined, ({ signal }) => engine.freshen(signal))
      .then(
        () => void (this.#hasWarned = false),
        (error: unknown) => {
          if (!isPassing(error)) throw error;
          this.#warn(`fails: ${(error as Error).message}`);
        },
      )
      .finally(() => {
        this.#freshening = undefined;
        this.#isWaitedFor = false;
      });
    // A caller that waits no more does not hear how it ended.
    freshening.catch(() => undefined);
    this.#freshening = freshening;
    return freshening;
  }

  #warn(what: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { logger, engine } = this.#options;
    const viewAgeMs = Math.round(engine.viewAgeMs);
    logger.warn(`Queries show an old state, since the store ${what}`, { viewAgeMs });
  }
}
