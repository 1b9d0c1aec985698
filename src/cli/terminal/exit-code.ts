/** The exit statuses of the command line, and the errors of its arguments and its output. */
import { messageText } from '../../base/messages.ts';

/** The exit statuses, which docs/cli.md lists. */
export const ExitCode = {
  /** Success. */
  done: 0,
  /** The command worked, and found a problem: damage, an unsafe store, a bad line. */
  found: 1,
  /** The command line is wrong, or names something that does not exist. Nothing was done. */
  usage: 2,
  /** The database or its store failed. */
  failed: 3,
  /** Stopped by Ctrl-C or a signal: 128 and the number of SIGINT. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** An error of the user of the command line. Its message is shown without an error code, and contains no secrets. */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  /** `more`: lines below it. */
  constructor(message: string, more: readonly string[] = []) {
    super([message, ...more].map(messageText).join('\n'));
  }
}

/** The output cannot be written: a full disk, or a pipe that nobody reads. */
export class OutputError extends Error {
  override readonly name = 'OutputError';

  constructor(where: string, cause: Error) {
    super(`${where} cannot be written: ${cause.message}`, { cause });
  }
}
