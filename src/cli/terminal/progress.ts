/** A progress bar for long work. It is shown only in a terminal. */
import { realEnvironment } from '../../base/env.ts';
import type { Timer } from '../../base/env.ts';
import { formatCount, formatDuration } from './figures.ts';
import { cutToWidth, displayWidth } from './terminal.ts';
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

/** The time between two drawings. The bar shows the passing of time while nothing else moves. */
const redrawMs = 100;
const widestBar = 40;
const removedLine = '\r\u001b[2K';

export class Progress implements Disposable {
  readonly #terminal: Terminal;
  readonly #what: string;
  readonly #unit: string;
  readonly #format: (value: number) => string;
  readonly #startedAt = realEnvironment.monotonicMs();
  #total: number | undefined;
  #done = 0;
  /** Undefined if the bar is not shown. */
  #timer: Timer | undefined;

  constructor(terminal: Terminal, { what, total, unit = '', hidden = false, format = formatCount }: ProgressOptions) {
    this.#terminal = terminal;
    this.#what = printable(what);
    this.#unit = unit;
    this.#format = format;
    this.#total = total;
    if (!hidden && terminal.showsProgress) this.#draw();
  }

  set(done: number, total?: number): void {
    this.#done = done;
    if (total !== undefined) this.#total = total;
  }

  /** Writes lines to the same terminal. The bar is removed before them, and shown again within a moment. */
  behind(write: () => void): void {
    if (this.#timer !== undefined) this.#terminal.messages.write(removedLine);
    write();
  }

  [Symbol.dispose](): void {
    if (this.#timer === undefined) return;
    this.#timer.cancel();
    this.#timer = undefined;
    this.#terminal.messages.write(removedLine);
  }

  #draw(): void {
    this.#terminal.messages.write(`${removedLine}${this.#line()}`);
    this.#timer = realEnvironment.setTimer(() => this.#draw(), redrawMs, { background: true });
  }

  #line(): string {
    const width = Math.max(10, (this.#terminal.messages.columns ?? 80) - 1);
    const spentMs = realEnvironment.monotonicMs() - this.#startedAt;
    const [done, total] = [this.#done, this.#total];
    if (total === undefined) {
      return cutToWidth(`${this.#what} | ${this.#format(done)} ${this.#unit} | ${formatDuration(spentMs)}`, width);
    }
    const part = total === 0 ? 0 : Math.min(1, done / total);
    const left = part === 0 ? '?' : formatDuration((spentMs / part) * (1 - part));
    const counted = `${Math.floor(part * 100)}% | ${this.#format(done)} of ${this.#format(total)}`;
    const texts = [this.#what, `${counted} | ${formatDuration(spentMs)}, ${left} to go`] as const;
    const room = Math.min(widestBar, width - displayWidth(texts.join('  ')));
    // Below four characters a bar says nothing.
    if (room < 4) return cutToWidth(texts.join(' '), width);
    const full = Math.round(part * room);
    return [texts[0], '\u2588'.repeat(full) + '\u2591'.repeat(room - full), texts[1]].join(' ');
  }
}
