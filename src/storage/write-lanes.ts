/**
 * How many writes of the background a `FileDriver` makes at the same time. A merge writes many blocks, and each is synced:
 * all of the runtime's threads would wait for the disk, and a commit, which somebody waits for, would wait behind them.
 * So beside other writes only a few of those are under way: a commit of one row takes 10 ms beside 16 of them, 3 ms
 * beside 3, and those 3 reach two thirds of what 16 do.
 */
import type { Environment } from '../base/env.ts';

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

  /** Makes a write: at once, or when it is its turn, if it is one of the background. */
  write<T>(isBackground: boolean, write: () => Promise<T>): Promise<T> {
    return isBackground ? this.#inTurn(write) : this.#atOnce(write);
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

  async #inTurn<T>(write: () => Promise<T>): Promise<T> {
    if (this.#running < this.#most) this.#running++;
    else await this.#admitted();
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

  #admitted(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  get #most(): number {
    const isExpected = this.#others > 0 || this.#environment.monotonicMs() - this.#lastOtherMs < expectedMs;
    return isExpected ? narrow : wide;
  }
}
