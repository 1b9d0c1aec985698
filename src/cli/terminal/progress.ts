/** A progress bar for long work. It is shown only in a terminal. */
import { Presets, SingleBar } from 'cli-progress';
import { formatCount } from './figures.ts';
import type { Terminal } from './terminal.ts';
import { printable } from './text-table.ts';

export interface ProgressOptions {
  readonly what: string;
  /** 0: not known yet. Undefined: never known, and only the count is shown. */
  readonly total: number | undefined;
  /** The unit of the count, if the total is never known. */
  readonly unit?: string;
  /** Whether to hide the bar: the reader of the output may write to the same terminal. Default false. */
  readonly hidden?: boolean;
  /** Formats a number. Default: as a count. */
  readonly format?: (value: number) => string;
}

export class Progress implements Disposable {
  readonly #terminal: Terminal;
  readonly #bar: SingleBar | undefined;

  constructor(
    terminal: Terminal,
    { what: named, total, unit = '', hidden = false, format = formatCount }: ProgressOptions,
  ) {
    this.#terminal = terminal;
    if (hidden || !terminal.showsProgress) return;
    // The bar would replace names in braces.
    const what = printable(named).replaceAll(/[{}]/g, '');
    this.#bar = new SingleBar(
      {
        stream: terminal.messages,
        format:
          total === undefined
            ? `${what} | {value} ${unit} | {duration_formatted}`
            : `${what} {bar} {percentage}% | {value} of {total} | {duration_formatted}, {eta_formatted} to go`,
        formatValue: (value, _, type) => {
          return type === 'value' || type === 'total' ? format(value) : String(value);
        },
        hideCursor: true,
        clearOnComplete: true,
        stopOnComplete: false,
        fps: 10,
        etaBuffer: 100,
      },
      Presets.shades_classic,
    );
    this.#bar.start(total ?? 0, 0);
  }

  set(done: number, total?: number): void {
    if (total !== undefined) this.#bar?.setTotal(total);
    this.#bar?.update(done);
  }

  /** Writes lines to the same terminal. The bar is removed before them, and shown again by the next {@link set}. */
  behind(write: () => void): void {
    if (this.#bar !== undefined) this.#terminal.messages.write('\r\u001b[2K');
    write();
  }

  [Symbol.dispose](): void {
    this.#bar?.stop();
  }
}
