/**
 * Tells of what fails again and again: with a line when it begins, one at ever larger counts while it goes on, and one when it is
 * well again. A store that is away for a night must not fill the log with what everybody knows.
 */
import { messageOf } from './brands.ts';
import type { Environment } from './env.ts';
import type { Logger } from './logger.ts';

/** After so many failures there is another line, and after ten times as many. */
const firstCount = 10;

interface Failing {
  readonly sinceMs: number;
  /** A failure of another kind is news. */
  readonly kind: string;
  count: number;
  nextCount: number;
}

export class FailureLog {
  readonly #logger: Logger;
  readonly #environment: Pick<Environment, 'monotonicMs'>;
  readonly #failing = new Map<string, Failing>();

  constructor(logger: Logger, environment: Pick<Environment, 'monotonicMs'>) {
    this.#logger = logger;
    this.#environment = environment;
  }

  /** Something failed, and will be tried again. */
  failed(what: string, error: unknown, level: 'warn' | 'error' = 'warn'): void {
    const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
    const kind = `${level} ${String(code ?? name)}`;
    const known = this.#failing.get(what);
    const message = messageOf(error);
    if (known === undefined || known.kind !== kind) {
      const sinceMs = known?.sinceMs ?? this.#environment.monotonicMs();
      const count = (known?.count ?? 0) + 1;
      this.#failing.set(what, { sinceMs, kind, count, nextCount: Math.max(firstCount, known?.nextCount ?? 0) });
      this.#logger[level](`${what} failed and will be tried again: ${message}`, { error });
      return;
    }
    if (++known.count < known.nextCount) return;
    known.nextCount *= 10;
    const failures = known.count;
    this.#logger[level](`${what} has failed ${failures} times in ${this.#spanOf(known)}: ${message}`, {
      error,
      failures,
    });
  }

  /** The same thing was done without a failure. */
  worked(what: string): void {
    const known = this.#failing.get(what);
    if (known === undefined) return;
    this.#failing.delete(what);
    const failures = known.count;
    const times = failures === 1 ? 'a failure' : `${failures} failures`;
    this.#logger.info(`${what} works again, after ${times} in ${this.#spanOf(known)}`, { failures });
  }

  #spanOf({ sinceMs }: Failing): string {
    const seconds = Math.round((this.#environment.monotonicMs() - sinceMs) / 1000);
    return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  }
}
