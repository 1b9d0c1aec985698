/** Runs command lines in this process, as the command does in its own. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import { runProgram } from '../../../src/cli/program.ts';
import { Terminal } from '../../../src/cli/terminal/terminal.ts';

export interface Ran {
  readonly status: number;
  readonly output: string;
  readonly messages: string;
}

class Gathered extends Writable {
  readonly #pieces: Buffer[] = [];
  readonly #onText: ((text: string) => void) | undefined;

  constructor(onText?: (text: string) => void) {
    super();
    this.#onText = onText;
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: () => void): void {
    this.#pieces.push(chunk);
    this.#onText?.(this.text);
    done();
  }

  get text(): string {
    return Buffer.concat(this.#pieces).toString('utf8');
  }
}

export interface RunOptions {
  readonly input?: string | Readable;
  readonly signal?: AbortSignal;
  /**
   * What the output is: a terminal, one in which somebody sits who can be asked, the same with messages in it as well, which are a part
   * of the output then, or none. Default: none.
   */
  readonly tty?: 'output' | 'both' | 'screen';
  /** Called with all of the output whenever there is more. */
  readonly onOutput?: (text: string) => void;
}

/** Runs one command line; words are not split. */
export async function run(words: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { input = '', signal, tty, onOutput } = options;
  const output = new Gathered(onOutput);
  const messages = tty === 'screen' ? output : new Gathered();
  const source = typeof input === 'string' ? Readable.from([Buffer.from(input)], { objectMode: false }) : input;
  const typed = source.pipe(new PassThrough());
  if (tty !== undefined) Object.assign(output, { isTTY: true, columns: 90, hasColors: () => true });
  if (tty === 'both' || tty === 'screen') Object.assign(typed, { isTTY: true });
  const terminal = new Terminal(typed, output, messages);
  const never = new AbortController().signal;
  const status = await runProgram(words, terminal, signal ?? never, '0.0.0');
  return { status, output: output.text, messages: tty === 'screen' ? '' : messages.text };
}

/** The lines of a result that is JSON. */
export function jsonLines(text: string): unknown[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);
}

/** A folder that goes when the test is over. */
export class TestFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(folder: string) {
    this.path = folder;
  }

  static async make(): Promise<TestFolder> {
    return new TestFolder(await mkdtemp(path.join(tmpdir(), 'store-db-cli-')));
  }

  file(name: string): string {
    return path.join(this.path, name);
  }

  /** URL of a database in the folder. */
  url(prefix?: string): string {
    const folder = `file:${this.file('db')}`;
    return prefix === undefined ? folder : `${folder}#${prefix}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}
