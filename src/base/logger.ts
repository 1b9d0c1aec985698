/** Logging: the user's logger or the console, below a level that is filtered here. */
import { messageOf } from './brands.ts';
import type { Environment } from './env.ts';
import { messageText } from './messages.ts';

/** Levels of log lines, least first; `silent` logs nothing. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Where log lines go. `details` is a flat object for machines. What a logger throws is ignored. */
export interface Logger {
  /** What is of use to find a fault. */
  debug(message: string, details?: object): void;
  /** What is normal and rare. */
  info(message: string, details?: object): void;
  /** What should be looked at. */
  warn(message: string, details?: object): void;
  /** What failed. */
  error(message: string, details?: object): void;
}

export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

/** Passes on what is at `level` or above. A logger that throws never disturbs the database. */
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

// Tells of what fails again and again: with a line when it begins, one at ever larger counts while it goes on, and one when it is
// well again. A store that is away for a night must not fill the log with what everybody knows.

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

  /** Notes that the thing was done without a failure. */
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
