/** Logging: the user's logger or the console, below a level that is filtered here. */
import { messageText } from './message-text.ts';

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
