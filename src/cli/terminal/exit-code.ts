import { messageText } from '../../base/messages.ts';

/** What the exit status of the command line says. docs/cli.md lists them. */
export const ExitCode = {
  /** Everything went as asked. */
  done: 0,
  /** The command worked, and what it looked for is there: damage, an unsafe store, a bad line. */
  found: 1,
  /** The command was not understood, or asks for something that there is not. Nothing was done. */
  usage: 2,
  /** The database or its store could not do it. */
  failed: 3,
  /** Stopped by Ctrl-C or a signal: 128 and the number of SIGINT. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** What the user of the command line got wrong. Its message is shown without anything around it, and without secrets. */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  /** `more`: lines below it. */
  constructor(message: string, more: readonly string[] = []) {
    super([message, ...more].map(messageText).join('\n'));
  }
}

/** Where results should go does not take them: a full disk, a pipe that nobody reads. */
export class OutputError extends Error {
  override readonly name = 'OutputError';

  constructor(where: string, cause: Error) {
    super(`${where} cannot be written: ${cause.message}`, { cause });
  }
}
