/**
 * How many writes of the background a `FileDriver` makes at the same time. A merge writes many blocks, and each is synced:
 * all of the runtime's threads would wait for the disk, and a commit, which somebody waits for, would wait behind them.
 * So beside other writes only a few of those are under way: a commit of one row takes 10 ms beside 16 of them, 3 ms
 * beside 3, and those 3 reach two thirds of what 16 do.
 */
import type { Environment } from '../../base/env.ts';

/** Writes of the background at the same time where there are no others. */
const wide = 16;
/** The same beside others. */
const narrow = 3;
/** For how long another write lets more of them be expected, in milliseconds. */
const expectedMs = 50;

export class WriteLanes {
  readonly #environment: Environment;
  readonly #waiting: (() => void)[] = [];
  /** Writes of the background that are under way. */
  #running = 0;
  #others = 0;
  #lastOtherMs = Number.NEGATIVE_INFINITY;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /**
   * Makes a write: at once, or when it is its turn, if it is one of the background. One whose signal is aborted while it
   * waits is made at once, too: it finds that out by itself.
   */
  write<T>(isBackground: boolean, write: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return isBackground ? this.#inTurn(write, signal) : this.#atOnce(write);
  }

  async #atOnce<T>(write: () => Promise<T>): Promise<T> {
    this.#others++;
    try {
      return await write();
    } finally {
      this.#others--;
      this.#lastOtherMs = this.#environment.monotonicMs();
    }
  }

  async #inTurn<T>(write: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    if (this.#running < this.#most) this.#running++;
    else if (signal?.aborted === true || !(await this.#admitted(signal))) return write();
    try {
      return await write();
    } finally {
      this.#running--;
      while (this.#waiting.length > 0 && this.#running < this.#most) {
        this.#running++;
        this.#waiting.shift()?.();
      }
    }
  }

  /** Waits for a place; false if the signal is aborted before there is one. */
  #admitted(signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const admit = (): void => {
        signal?.removeEventListener('abort', giveUp);
        resolve(true);
      };
      const giveUp = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(admit), 1);
        resolve(false);
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(admit);
    });
  }

  get #most(): number {
    const isExpected = this.#others > 0 || this.#environment.monotonicMs() - this.#lastOtherMs < expectedMs;
    return isExpected ? narrow : wide;
  }
}
