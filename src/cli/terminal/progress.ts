/** A bar for what takes long. Nothing is shown where nobody looks. */
import { Presets, SingleBar } from 'cli-progress';
import { formatCount } from './figures.ts';
import type { Terminal } from './terminal.ts';
import { printable } from './text-table.ts';

export interface ProgressOptions {
  readonly what: string;
  /** 0: not known yet. Undefined: it never is, and only what is done is shown. */
  readonly total: number | undefined;
  /** What is counted, where the total is never known. */
  readonly unit?: string;
  /** Not shown: what reads the output may write to the same terminal. Default false. */
  readonly hidden?: boolean;
  /** How a number is written. Default: as a count. */
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
    // The bar takes braces for places, and the rest as it is.
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

  /** Writes lines to the same terminal: the bar makes room for them, and is there again with the next {@link set}. */
  behind(write: () => void): void {
    if (this.#bar !== undefined) this.#terminal.messages.write('\r\u001b[2K');
    write();
  }

  [Symbol.dispose](): void {
    this.#bar?.stop();
  }
}
