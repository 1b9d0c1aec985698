/** Where rows go that an import leaves out since they are bad. */
import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import type { WriteStream } from 'node:fs';
import { defined } from '../../base/defined.ts';
import { OutputError } from '../terminal/exit-code.ts';
import { jsonText } from '../terminal/json-text.ts';
import type { LineError } from './line-error.ts';

export class Rejects implements AsyncDisposable {
  readonly #file: string | undefined;
  #stream: WriteStream | undefined;
  #count = 0;

  /** Undefined: they are counted only. */
  constructor(file: string | undefined) {
    this.#file = file;
  }

  get count(): number {
    return this.#count;
  }

  /** Writes a line for a bad row. `row`: as the file has it. Throws `OutputError`. */
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
