/** Reports failures of background work, which will be tried again: in the log, and to the parts that must end. */
import type { Environment } from '../base/env.ts';
import { CorruptionError } from '../base/errors.ts';
import { FailureLog } from '../base/logger.ts';
import type { Logger } from '../base/logger.ts';
import type { Block0Register } from '../block0/block0-register.ts';
import type { EngineEvents } from '../log/engine-events.ts';

export class FailureReports {
  readonly #log: FailureLog;
  readonly #logger: Logger;
  readonly #register: Block0Register;
  readonly #events: EngineEvents;
  readonly #stopping: AbortSignal;

  /** `stopping` is aborted when the engine is closed. */
  constructor(
    environment: Environment,
    logger: Logger,
    register: Block0Register,
    events: EngineEvents,
    stopping: AbortSignal,
  ) {
    this.#log = new FailureLog(logger, environment);
    this.#logger = logger;
    this.#register = register;
    this.#events = events;
    this.#stopping = stopping;
  }

  /** Reports that some work failed. `work` names it. Work that `stop()` has ended is not tried again, and not reported. */
  report(work: string, error: unknown): void {
    if (this.#stopping.aborted) return;
    // A database that was replaced stays so until it is opened again.
    if (this.#register.isReplaced) {
      this.#events.replaced.emit();
      this.#logger.error((error as Error).message, { error });
    } else this.#log.failed(work, error, error instanceof CorruptionError ? 'error' : 'warn');
  }

  /** Notes that the work succeeded, which ends the reports of its failure. */
  worked(work: string): void {
    this.#log.worked(work);
  }
}
