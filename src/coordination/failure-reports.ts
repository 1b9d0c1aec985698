/** Reports of what failed behind the calls, and will be tried again: in the log, and to the parts that must end. */
import type { Environment } from '../base/env.ts';
import { CorruptionError } from '../base/errors.ts';
import { FailureLog } from '../base/logger.ts';
import type { Logger } from '../base/logger.ts';
import type { Block0Register } from '../block0/block0-register.ts';
import type { LogEvents } from '../log/log-events.ts';

export class FailureReports {
  readonly #log: FailureLog;
  readonly #logger: Logger;
  readonly #register: Block0Register;
  readonly #events: LogEvents;

  constructor(environment: Environment, logger: Logger, register: Block0Register, events: LogEvents) {
    this.#log = new FailureLog(logger, environment);
    this.#logger = logger;
    this.#register = register;
    this.#events = events;
  }

  /** Says that something failed. `what` names it. */
  report(what: string, error: unknown): void {
    // What was replaced stays so until the database is opened again.
    if (this.#register.isReplaced) {
      this.#events.replaced.emit();
      this.#logger.error((error as Error).message, { error });
    } else this.#log.failed(what, error, error instanceof CorruptionError ? 'error' : 'warn');
  }

  /** Says that it was done without a failure: what had been reported may be well again. */
  worked(what: string): void {
    this.#log.worked(what);
  }
}
