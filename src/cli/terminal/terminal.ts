/**
 * The input and the outputs of the command line. Results go to the output and everything else to the messages, so that pipes get only
 * results. All text is printed without control characters: names and values come from the writers of the database.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import { realEnvironment } from '../../base/env.ts';
import { AbortedError, StoreDbError } from '../../base/errors.ts';
import { withoutControls, messageLines, messageText } from '../../base/messages.ts';
import { UsageError, ExitCode, OutputError } from './exit-code.ts';
import { jsonText } from './figures.ts';

const ascii = /^[\u0020-\u007e]*$/;
const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u;
const nothing = /^[\p{Mark}\p{Format}]*$/u;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

function widthOf(grapheme: string): number {
  if (nothing.test(grapheme)) return 0;
  return wide.test(grapheme) ? 2 : 1;
}

/** The length from which a text is not measured: no column is as wide, and measuring takes long. */
const longest = 1000;

/** Returns the columns that a text takes in a terminal: East Asian letters and emoji take two, marks none. */
export function displayWidth(text: string): number {
  if (text.length > longest || ascii.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += widthOf(segment);
  return width;
}

/** Cuts a text to a width in columns, with an ellipsis if it is longer. */
export function cutToWidth(text: string, width: number): string {
  if (ascii.test(text)) return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}\u2026`;
  let taken = '';
  let used = 0;
  for (const { segment } of segmenter.segment(text)) {
    const next = used + widthOf(segment);
    if (next > width) return `${withoutLast(taken, width - 1)}\u2026`;
    taken += segment;
    used = next;
  }
  return text;
}

/** Removes the graphemes at the end that exceed a width in columns. */
function withoutLast(text: string, width: number): string {
  let taken = '';
  let used = 0;
  for (const { segment } of segmenter.segment(text)) {
    used += widthOf(segment);
    if (used > width) break;
    taken += segment;
  }
  return taken;
}

type Output = Writable & Partial<Pick<WriteStream, 'isTTY' | 'hasColors' | 'columns'>>;

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

const escape = '\u001b';

export class Terminal {
  /** Stands for the ESC of styles until a line is written. It is random, so no text of a database contains it. */
  readonly #mark = `\u{10ffff}${realEnvironment.random().toString(36)}`;
  readonly input: Readable & Partial<Pick<ReadStream, 'isTTY'>>;
  readonly output: Output;
  readonly messages: Output;
  /** Whether results are printed as JSON. */
  json = false;

  /** Handles Ctrl-C in place of ending the command, if set: the shell stops only the running statement. */
  onInterrupt: (() => void) | undefined;

  readonly #closed = new AbortController();
  #failure: NodeJS.ErrnoException | undefined;
  #pager: Pager | undefined;

  constructor(input: Terminal['input'], output: Output, messages: Output) {
    this.input = input;
    this.output = output;
    this.messages = messages;
    output.on('error', (error: NodeJS.ErrnoException) => {
      this.#failure ??= error;
      this.#closed.abort();
    });
    // An error of the messages cannot be reported anywhere.
    messages.on('error', () => undefined);
  }

  /** Aborted when results cannot be written any more, or their reader has left. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** The error that prevented results from being written; undefined for none. A reader such as `head` that leaves is no error. */
  get failure(): Error | undefined {
    return this.#failure?.code === 'EPIPE' ? undefined : this.#failure;
  }

  /** Whether a pager is running. */
  get isPaged(): boolean {
    return this.#pager !== undefined;
  }

  get #sink(): Writable {
    return this.#pager?.input ?? this.output;
  }

  /**
   * Sends results to a pager until {@link endPager}. Returns a signal that is aborted when the user leaves the pager; undefined if there
   * is no pager.
   */
  async page(): Promise<AbortSignal | undefined> {
    if (this.output.isTTY !== true || this.input.isTTY !== true || this.json) return undefined;
    this.#pager = await startPager();
    if (this.#pager === undefined) return undefined;
    const left = new AbortController();
    void this.#pager.left.then(() => left.abort());
    return left.signal;
  }

  /** Waits until the user has left the pager. Throws `UsageError` if it could not be run. */
  async endPager(): Promise<void> {
    const pager = this.#pager;
    if (pager === undefined) return;
    pager.input.end();
    const status = await pager.left;
    this.#pager = undefined;
    if (status === 126 || status === 127) {
      throw new UsageError('The pager cannot be run: see STOREDB_PAGER and PAGER, or pass --no-pager.');
    }
  }

  /** Waits until all output is written, or has failed. */
  async flushed(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.output.write('', () => resolve());
    });
    // The stream emits an error after the callback of the write that failed.
    await new Promise(setImmediate);
  }

  /** Whether there is a user who can answer questions and see progress. */
  get isInteractive(): boolean {
    return this.input.isTTY === true && this.messages.isTTY === true;
  }

  get showsProgress(): boolean {
    return this.messages.isTTY === true && !this.json;
  }

  /** The width of the output in characters; undefined if it is no terminal, and nothing must be cut. */
  get columns(): number | undefined {
    return this.output.isTTY === true ? this.output.columns : undefined;
  }

  /** Writes a part of the results: without control characters for a terminal, else unchanged. */
  write(text: string): void {
    this.#sink.write(this.output.isTTY === true ? this.#lines(text) : text);
  }

  /** Writes a part of the results that is not text. The caller must not do this on a terminal. */
  writeBytes(bytes: Uint8Array): void {
    this.#sink.write(bytes);
  }

  /** Prints a line of the results. */
  print(line: string = ''): void {
    this.#sink.write(`${this.#line(line)}\n`);
  }

  /** Prints several lines of the results, which must be free of names and values with line ends. */
  printLines(text: string): void {
    this.#sink.write(`${this.#lines(text)}\n`);
  }

  /** Prints a result as a line of JSON. */
  printJson(value: unknown): void {
    this.print(jsonText(value));
  }

  /** Prints a line to the messages. */
  tell(line: string): void {
    this.messages.write(`${this.#line(line)}\n`);
  }

  /** Prints several lines to the messages. */
  tellLines(text: string): void {
    this.messages.write(`${this.#lines(text)}\n`);
  }

  /**
   * Asks a question, to be answered with yes or no. Resolves to whether the answer is yes: an empty line, Ctrl-C and the end of the
   * input are no. Rejects with `AbortError` if `signal` is aborted. Ask only if {@link isInteractive}.
   */
  async confirm(question: string, signal: AbortSignal): Promise<boolean> {
    const answer = await this.#ask(question, '(y/N)', signal);
    return answer !== undefined && /^\s*y(es)?\s*$/i.test(answer);
  }

  /** Asks for a name to be typed, where "yes" comes too easily. Resolves to whether it was, otherwise like {@link confirm}. */
  async confirmName(question: string, name: string, signal: AbortSignal): Promise<boolean> {
    const answer = await this.#ask(question, `Type its name, ${name}, to go on:`, signal);
    return answer?.trim() === name;
  }

  /** Resolves to the line that was typed; undefined if the input ended. */
  async #ask(question: string, hint: string, signal: AbortSignal): Promise<string | undefined> {
    signal.throwIfAborted();
    const lines = createInterface({ input: this.input, output: this.messages, terminal: true });
    try {
      return await new Promise<string | undefined>((resolve, reject) => {
        let isAnswered = false;
        lines.on('SIGINT', () => lines.close());
        lines.on('close', () => {
          // The cursor is behind the question.
          if (!isAnswered) this.messages.write('\n');
          resolve(undefined);
        });
        signal.addEventListener('abort', () => reject(new AbortedError('The question was aborted.')), { once: true });
        const text = `${this.styleMessage('green', '?')} ${this.styleMessage('bold', question)} ${hint} `;
        lines.question(this.#line(text), (answer) => {
          isAnswered = true;
          resolve(answer);
        });
      });
    } finally {
      lines.close();
    }
  }

  #line(text: string): string {
    return withoutControls(text).replaceAll(this.#mark, escape);
  }

  #lines(text: string): string {
    return text
      .split('\n')
      .map((line) => this.#line(line))
      .join('\n');
  }

  /** Styles a text if the output shows colours: not in a pipe, and not with `NO_COLOR`. */
  style(style: Style, text: string): string {
    return this.#styled(this.output, style, text);
  }

  styleMessage(style: Style, text: string): string {
    return this.#styled(this.messages, style, text);
  }

  #styled(output: Output, style: Style, text: string): string {
    // `hasColors` respects NO_COLOR, FORCE_COLOR and TERM.
    const colors = output.isTTY === true && output.hasColors?.() === true;
    return colors ? styleText(style, withoutControls(text)).replaceAll(escape, this.#mark) : text;
  }

  /** Waits while the output is full, so that a slow reader does not fill the memory. */
  async drained(): Promise<void> {
    const sink = this.#sink;
    if (!sink.writableNeedDrain || this.closed.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        sink.off('drain', done);
        sink.off('close', done);
        this.closed.removeEventListener('abort', done);
        resolve();
      };
      sink.once('drain', done);
      sink.once('close', done);
      this.closed.addEventListener('abort', done);
    });
  }
}

/** A running pager. */
interface Pager {
  readonly input: Writable;
  /** Resolves to the exit status once the user has left it. */
  readonly left: Promise<number>;
}

/** Makes `less` exit if the text fits on one screen, show colours, and leave the text on the screen. */
const environment = { LESS: 'FRX', LV: '-c', ...process.env };

/** Returns the command line of the pager; undefined for no pager. A variable holds a command for the shell, as for git. */
function pagerWords(): readonly string[] | undefined {
  const named = process.env['STOREDB_PAGER'] ?? process.env['PAGER'];
  if (named === undefined) return ['less'];
  const command = named.trim();
  return command === '' || command === 'cat' ? undefined : ['sh', '-c', command];
}

/** Starts a pager on the terminal of this process. Resolves to undefined if there is none. */
async function startPager(): Promise<Pager | undefined> {
  const [command, ...words] = pagerWords() ?? [];
  if (command === undefined) return undefined;
  let child: ChildProcess;
  try {
    child = spawn(command, words, { stdio: ['pipe', 'inherit', 'inherit'], env: environment });
    await once(child, 'spawn');
  } catch {
    return undefined;
  }
  // When the user leaves the pager, the rest of the output fails with EPIPE, which is no error.
  child.stdin?.on('error', () => undefined);
  const left = once(child, 'close').then(([status]) => (typeof status === 'number' ? status : 1));
  return { input: child.stdin as Writable, left };
}

/** Codes of library errors that are errors of the command line's user. */
const usageCodes: ReadonlySet<string> = new Set([
  'INVALID_OPTION',
  'INVALID_QUERY',
  'INVALID_OPERATOR',
  'INVALID_SCHEMA',
  'SCHEMA_NOT_FOUND',
]);

/** Whether an error says that an operation was aborted. */
export function isAbort(error: unknown): boolean {
  return error instanceof AbortedError || (error as Error).name === 'AbortError';
}

function codeOf(error: unknown): string {
  if (error instanceof StoreDbError) return error.code;
  if (error instanceof UsageError) return 'USAGE';
  return error instanceof OutputError ? 'OUTPUT' : 'UNEXPECTED';
}

/** Prints an error as text or JSON, and returns its exit status. */
export function reportError(terminal: Terminal, error: unknown): ExitCode {
  const code = codeOf(error);
  const message = (code === 'USAGE' ? messageLines : messageText)((error as Error).message);
  if (terminal.json) {
    const { position } = error as { readonly position?: unknown };
    terminal.tell(jsonText({ error: { code, message, ...(typeof position === 'number' && { position }) } }));
  } else
    terminal.tellLines(`${terminal.styleMessage('red', 'error')}: ${message}${code === 'USAGE' ? '' : ` [${code}]`}`);
  // An unexpected error is a bug in StoreDb: the stack helps to find it.
  if (code === 'UNEXPECTED') terminal.tellLines(messageLines((error as Error).stack ?? message));
  return code === 'USAGE' || usageCodes.has(code) ? ExitCode.usage : ExitCode.failed;
}
