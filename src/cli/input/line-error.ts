/** Errors in the lines of a file, and the file of the rows that they reject. */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import type { WriteStream } from 'node:fs';
import { StoreDbError } from '../../base/errors.ts';
import { messageText } from '../../base/messages.ts';
import { defined } from '../../base/options.ts';
import { OutputError } from '../terminal/exit-code.ts';
import { jsonText } from '../terminal/figures.ts';

/** The maximum size of a row. */
export const maxLineBytes: number = 256 * 1024 * 1024;

/** An error in a row, with the line on which the row ends. */
export class LineError extends Error {
  override readonly name = 'LineError';
  /** Counted from 1; 0 for the file as a whole. */
  readonly line: number;
  /** Counted from 1 in UTF-16 units; undefined for the whole line. */
  readonly column: number | undefined;

  constructor(line: number, message: string, column?: number) {
    super(messageText(message));
    this.line = line;
    this.column = column;
  }
}

/** Describes the position of a problem: `cities.csv, line 3, column 7`. */
export function describePosition(file: string, { line, column }: Pick<LineError, 'line' | 'column'>): string {
  const parts = [file, ...(line === 0 ? [] : [`line ${line}`]), ...(column === undefined ? [] : [`column ${column}`])];
  return parts.join(', ');
}

/** Turns an `EncodeError` into a `LineError`. Returns other errors unchanged. */
export function asLineError(error: unknown, line: number): unknown {
  return error instanceof StoreDbError && error.code === 'ENCODE' ? new LineError(line, error.message) : error;
}

/** Counts the bad rows that an import leaves out, and writes them to a file. */
export class Rejects implements AsyncDisposable {
  readonly #file: string | undefined;
  #stream: WriteStream | undefined;
  #count = 0;

  /** Undefined: only counts. */
  constructor(file: string | undefined) {
    this.#file = file;
  }

  get count(): number {
    return this.#count;
  }

  /** Writes a line for a bad row. `row`: its text in the file. Throws `OutputError`. */
  async add(file: string, { line, column, message }: LineError, row: string): Promise<void> {
    this.#count++;
    if (this.#file === undefined) return;
    try {
      if (this.#stream === undefined) {
        this.#stream = createWriteStream(this.#file);
        await once(this.#stream, 'open');
      }
      const text = jsonText({ file, line, ...defined({ column }), message, row });
      if (!this.#stream.write(`${text}\n`)) await once(this.#stream, 'drain');
    } catch (error) {
      throw new OutputError(this.#file, error as Error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stream = this.#stream;
    if (stream === undefined || stream.errored !== null) return;
    stream.end();
    await once(stream, 'close');
  }
}
