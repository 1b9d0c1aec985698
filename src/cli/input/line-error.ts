/** What is wrong with a file that is read, and where. */
import { StoreDbError } from '../../base/errors.ts';
import { messageText } from '../../base/message-text.ts';

/** A row may be as large, and no more. */
export const maxLineBytes: number = 256 * 1024 * 1024;

/** What cannot be read as a row, with the line on which it ends. */
export class LineError extends Error {
  override readonly name = 'LineError';
  /** Counted from 1; 0 where it is the file as a whole. */
  readonly line: number;
  /** Counted from 1 in UTF-16 units; undefined where the whole line is meant. */
  readonly column: number | undefined;

  constructor(line: number, message: string, column?: number) {
    super(messageText(message));
    this.line = line;
    this.column = column;
  }
}

/** Where a problem is, as people read it: `cities.csv, line 3, column 7`. */
export function describePosition(file: string, { line, column }: Pick<LineError, 'line' | 'column'>): string {
  const parts = [file, ...(line === 0 ? [] : [`line ${line}`]), ...(column === undefined ? [] : [`column ${column}`])];
  return parts.join(', ');
}

/** That a value does not fit its field is the problem of its line. */
export function asLineError(error: unknown, line: number): unknown {
  return error instanceof StoreDbError && error.code === 'ENCODE' ? new LineError(line, error.message) : error;
}
