/** Logging to the user's logger or the console, filtered by level. */
import { messageOf } from './brands.ts';
import type { Environment } from './env.ts';
import { messageText } from './messages.ts';

/** Levels of log lines, least first; `silent` logs nothing. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** The receiver of log lines. `details` is a flat object for machines. Errors that a logger throws are ignored. */
export interface Logger {
  /** Logs details that help to find a fault. */
  debug(message: string, details?: object): void;
  /** Logs normal, rare events. */
  info(message: string, details?: object): void;
  /** Logs events that somebody should look at. */
  warn(message: string, details?: object): void;
  /** Logs failures. */
  error(message: string, details?: object): void;
}

export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

/** Returns a logger that passes on lines at `level` or above. A logger that throws never disturbs the database. */
export function filteredLogger(target: Logger, level: LogLevel): Logger {
  const threshold = logLevels.indexOf(level);
  const at = (line: Exclude<LogLevel, 'silent'>) => {
    if (logLevels.indexOf(line) < threshold) return (): void => undefined;
    return (message: string, details?: object): void => {
      try {
        const text = messageText(message);
        if (details === undefined) target[line](text);
        else target[line](text, details);
      } catch {
        // There is nowhere to report it to.
      }
    };
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** Writes to the console, as `store-db: message`. */
export const consoleLogger: Logger = {
  debug: (message, details) => writeLine('debug', message, details),
  info: (message, details) => writeLine('info', message, details),
  warn: (message, details) => writeLine('warn', message, details),
  error: (message, details) => writeLine('error', message, details),
};

function writeLine(level: 'debug' | 'info' | 'warn' | 'error', message: string, details?: object): void {
  const line = `store-db: ${message}`;
  if (details === undefined) console[level](line);
  else console[level](line, details);
}

/** Failures until the second line; each further line comes after ten times as many. */
const firstCount = 10;

interface Failing {
  readonly sinceMs: number;
  /** The level and the code of the error. A failure of another kind is logged at once. */
  readonly kind: string;
  count: number;
  nextCount: number;
}

/**
 * Logs repeated failures: with one line when they begin, one at ever larger counts while they go on, and one when the work
 * succeeds again. A store that is unreachable for a night must not fill the log with the same line.
 */
export class FailureLog {
  readonly #logger: Logger;
  readonly #environment: Pick<Environment, 'monotonicMs'>;
  readonly #failing = new Map<string, Failing>();

  constructor(logger: Logger, environment: Pick<Environment, 'monotonicMs'>) {
    this.#logger = logger;
    this.#environment = environment;
  }

  /** Notes that some work failed and will be tried again. */
  failed(work: string, error: unknown, level: 'warn' | 'error' = 'warn'): void {
    const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
    const kind = `${level} ${String(code ?? name)}`;
    const known = this.#failing.get(work);
    const message = messageOf(error);
    if (known === undefined || known.kind !== kind) {
      const sinceMs = known?.sinceMs ?? this.#environment.monotonicMs();
      const count = (known?.count ?? 0) + 1;
      this.#failing.set(work, { sinceMs, kind, count, nextCount: Math.max(firstCount, known?.nextCount ?? 0) });
      this.#logger[level](`${work} failed and will be tried again: ${message}`, { error });
      return;
    }
    if (++known.count < known.nextCount) return;
    known.nextCount *= 10;
    const failures = known.count;
    this.#logger[level](`${work} has failed ${failures} times in ${this.#spanOf(known)}: ${message}`, {
      error,
      failures,
    });
  }

  /** Notes that some work succeeded. */
  worked(work: string): void {
    const known = this.#failing.get(work);
    if (known === undefined) return;
    this.#failing.delete(work);
    const failures = known.count;
    const times = failures === 1 ? 'a failure' : `${failures} failures`;
    this.#logger.info(`${work} works again, after ${times} in ${this.#spanOf(known)}`, { failures });
  }

  #spanOf({ sinceMs }: Failing): string {
    const seconds = Math.round((this.#environment.monotonicMs() - sinceMs) / 1000);
    return seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
  }
}
