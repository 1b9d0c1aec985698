/** How the command line tells what went wrong: in words, or as JSON, and by its exit status. */
import { AbortedError, StoreDbError } from '../../base/errors.ts';
import { messageLines, messageText } from '../../base/message-text.ts';
import { ExitCode, OutputError, UsageError } from './exit-code.ts';
import { jsonText } from './json-text.ts';
import type { Terminal } from './terminal.ts';

const usageCodes: ReadonlySet<string> = new Set([
  'INVALID_OPTION',
  'INVALID_QUERY',
  'INVALID_OPERATOR',
  'INVALID_SCHEMA',
  'SCHEMA_NOT_FOUND',
]);

/** Whether an error says that something was given up. */
export function isAbort(error: unknown): boolean {
  return error instanceof AbortedError || (error as Error).name === 'AbortError';
}

function codeOf(error: unknown): string {
  if (error instanceof StoreDbError) return error.code;
  if (error instanceof UsageError) return 'USAGE';
  return error instanceof OutputError ? 'OUTPUT' : 'UNEXPECTED';
}

/** Tells an error, in words or for machines, and returns the exit status that goes with it. */
export function reportError(terminal: Terminal, error: unknown): ExitCode {
  const code = codeOf(error);
  const message = (code === 'USAGE' ? messageLines : messageText)((error as Error).message);
  if (terminal.json) {
    const { position } = error as { readonly position?: unknown };
    terminal.tell(jsonText({ error: { code, message, ...(typeof position === 'number' && { position }) } }));
  } else
    terminal.tellLines(`${terminal.styleMessage('red', 'error')}: ${message}${code === 'USAGE' ? '' : ` [${code}]`}`);
  // An error that nobody foresaw is a fault of ours: where it came from helps to find it.
  if (code === 'UNEXPECTED') terminal.tellLines(messageLines((error as Error).stack ?? message));
  return code === 'USAGE' || usageCodes.has(code) ? ExitCode.usage : ExitCode.failed;
}
