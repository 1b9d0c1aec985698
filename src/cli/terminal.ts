/** Where the command line writes: results to the output, everything else beside it, so that pipes get results alone. */
import { styleText } from 'node:util';
import type { ReadStream, WriteStream } from 'node:tty';
import type { Readable, Writable } from 'node:stream';

type Output = Writable & Partial<Pick<WriteStream, 'isTTY' | 'hasColors' | 'columns'>>;

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan';

export class Terminal {
  readonly input: Readable & Partial<Pick<ReadStream, 'isTTY'>>;
  readonly output: Output;
  readonly messages: Output;
  /** Whether results are wanted as JSON. */
  json = false;

  constructor(input: Terminal['input'], output: Output, messages: Output) {
    this.input = input;
    this.output = output;
    this.messages = messages;
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

  /** A part of the results. */
  write(text: string): void {
    this.output.write(text);
  }

  /** A line of the results. */
  print(line: string = ''): void {
    this.output.write(`${line}\n`);
  }

  /** The whole result for machines, on a line of its own. */
  printJson(value: unknown): void {
    this.print(JSON.stringify(value, (_, part: unknown) => (typeof part === 'bigint' ? String(part) : part)));
  }

  /** A line for people that is no result. */
  tell(line: string): void {
    this.messages.write(`${line}\n`);
  }

  /** Colours only what can show them: neither pipes nor where `NO_COLOR` is set. */
  style(style: Style, text: string): string {
    return this.#colors(this.output) ? styleText(style, text) : text;
  }

  styleMessage(style: Style, text: string): string {
    return this.#colors(this.messages) ? styleText(style, text) : text;
  }

  #colors(output: Output): boolean {
    // Knows of NO_COLOR, FORCE_COLOR and TERM itself.
    return output.isTTY === true && output.hasColors?.() === true;
  }

  /** Waits while the output is full, so that a slow reader does not fill the memory. */
  async drained(): Promise<void> {
    if (!this.output.writableNeedDrain) return;
    const { output } = this;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        output.off('drain', done);
        output.off('close', done);
        resolve();
      };
      output.once('drain', done);
      output.once('close', done);
    });
  }
}
