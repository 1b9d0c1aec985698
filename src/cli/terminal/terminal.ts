/**
 * Where the command line writes: results to the output, everything else beside it, so that pipes get results alone. All text
 * passes here, and none of it does anything to a terminal: names and values come from the writers of the database.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import type { ReadStream, WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import { realEnvironment } from '../../base/env.ts';
import { AbortedError, StoreDbError } from '../../base/errors.ts';
import { withoutControls, messageLines, messageText } from '../../base/messages.ts';
import { UsageError, ExitCode, OutputError } from './exit-code.ts';
import { jsonText } from './figures.ts';

// How many columns of a terminal text takes: letters of East Asian scripts and emoji take two, marks none.

const ascii = /^[\u0020-\u007e]*$/;
const wide =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Emoji_Presentation}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u;
const nothing = /^[\p{Mark}\p{Format}]*$/u;
const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });

function widthOf(grapheme: string): number {
  if (nothing.test(grapheme)) return 0;
  return wide.test(grapheme) ? 2 : 1;
}

/** No column is so wide, and it takes long to find out. */
const longest = 1000;

export function displayWidth(text: string): number {
  if (text.length > longest || ascii.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) width += widthOf(segment);
  return width;
}

/** As much of a text as fits into so many columns, with an ellipsis where something is left out. */
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

/** Without the graphemes at the end that reach beyond so many columns. */
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
  /** Stands for the ESC of styles until a line is written. Nobody can have put it into a database. */
  readonly #mark = `\u{10ffff}${realEnvironment.random().toString(36)}`;
  readonly input: Readable & Partial<Pick<ReadStream, 'isTTY'>>;
  readonly output: Output;
  readonly messages: Output;
  /** Whether results are wanted as JSON. */
  json = false;

  /** Takes Ctrl-C in place of the command as a whole, while there is one: the shell stops only what it runs. */
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
    // There is nobody left to tell.
    messages.on('error', () => undefined);
  }

  /** Aborted when nobody takes results any more: their reader has left, or they cannot be written. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Why results could not be written; undefined if they were. A reader such as `head` that has seen enough is no failure. */
  get failure(): Error | undefined {
    return this.#failure?.code === 'EPIPE' ? undefined : this.#failure;
  }

  /** Whether a pager has the terminal. */
  get isPaged(): boolean {
    return this.#pager !== undefined;
  }

  get #sink(): Writable {
    return this.#pager?.input ?? this.output;
  }

  /**
   * Results go to a pager from now on, until {@link endPager}. Returns a signal that is aborted when its reader has left it;
   * undefined where there is no pager.
   */
  async page(): Promise<AbortSignal | undefined> {
    if (this.output.isTTY !== true || this.input.isTTY !== true || this.json) return undefined;
    this.#pager = await startPager();
    if (this.#pager === undefined) return undefined;
    const left = new AbortController();
    void this.#pager.left.then(() => left.abort());
    return left.signal;
  }

  /** Waits until the reader has left the pager. Throws `UsageError` if it could not be run. */
  async endPager(): Promise<void> {
    const pager = this.#pager;
    if (pager === undefined) return;
    pager.input.end();
    const status = await pager.left;
    this.#pager = undefined;
    if (status === 126 || status === 127) {
      throw new UsageError('The pager cannot be run: see STOREDB_PAGER and PAGER, or say --no-pager.');
    }
  }

  /** Waits until what was written is written, or has failed. */
  async flushed(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.output.write('', () => resolve());
    });
    // An error is told after the write that met it.
    await new Promise(setImmediate);
  }

  /** Whether somebody sits before it who can be asked and shown progress. */
  get isInteractive(): boolean {
    return this.input.isTTY === true && this.messages.isTTY === true;
  }

  get showsProgress(): boolean {
    return this.messages.isTTY === true && !this.json;
  }

  /** Characters in a line of the output; undefined where it is no terminal, and nothing need be cut. */
  get columns(): number | undefined {
    return this.output.isTTY === true ? this.output.columns : undefined;
  }

  /** A part of the results, in lines: as it is, or for a terminal in characters that do nothing to it. */
  write(text: string): void {
    this.#sink.write(this.output.isTTY === true ? this.#lines(text) : text);
  }

  /** A part of the results that is no text. No terminal should get it. */
  writeBytes(bytes: Uint8Array): void {
    this.#sink.write(bytes);
  }

  /** A line of the results. */
  print(line: string = ''): void {
    this.#sink.write(`${this.#line(line)}\n`);
  }

  /** Results of several lines that nobody else may begin. */
  printLines(text: string): void {
    this.#sink.write(`${this.#lines(text)}\n`);
  }

  /** The whole result for machines, on a line of its own. */
  printJson(value: unknown): void {
    this.print(jsonText(value));
  }

  /** A line for people that is no result. */
  tell(line: string): void {
    this.messages.write(`${this.#line(line)}\n`);
  }

  /** Several such lines. */
  tellLines(text: string): void {
    this.messages.write(`${this.#lines(text)}\n`);
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

  /** Colours only what can show them: neither pipes nor where `NO_COLOR` is set. */
  style(style: Style, text: string): string {
    return this.#styled(this.output, style, text);
  }

  styleMessage(style: Style, text: string): string {
    return this.#styled(this.messages, style, text);
  }

  #styled(output: Output, style: Style, text: string): string {
    // Knows of NO_COLOR, FORCE_COLOR and TERM itself.
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

// Shows what is longer than a screen as the user likes to read: in `less`, or the program that a variable names.

interface Pager {
  readonly input: Writable;
  /** Resolves to the exit status once the reader has left it. */
  readonly left: Promise<number>;
}

/** Ends by itself where all fits on the screen, shows colours, and leaves the text where it was. */
const environment = { LESS: 'FRX', LV: '-c', ...process.env };

/** The words that start the pager; undefined where none is wanted. A variable holds a command for the shell, as with git. */
function pagerWords(): readonly string[] | undefined {
  const named = process.env['STOREDB_PAGER'] ?? process.env['PAGER'];
  if (named === undefined) return ['less'];
  const command = named.trim();
  return command === '' || command === 'cat' ? undefined : ['sh', '-c', command];
}

/** Starts a pager on this process's terminal; undefined where there is none. */
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
  // Who has seen enough leaves it, and the rest is written to nobody.
  child.stdin?.on('error', () => undefined);
  const left = once(child, 'close').then(([status]) => (typeof status === 'number' ? status : 1));
  return { input: child.stdin as Writable, left };
}

// How the command line tells what went wrong: in words, or as JSON, and by its exit status.

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
