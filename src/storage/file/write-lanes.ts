/** The order of writes: those of background work let others go first. */
import type { Environment } from '../../base/env.ts';

/** Concurrent background writes when there are no other writes. */
const wide = 16;
/** Concurrent background writes during other writes. */
const narrow = 3;
/** How long after another write more of them are expected, in milliseconds. */
const expectedMs = 50;

/**
 * Limits the concurrent background writes of a `FileDriver`. A merge writes many blocks, and each is synced: without a limit all
 * of the runtime's threads would wait for the disk, and a commit, which a caller waits for, would queue behind them. So during
 * other writes only a few background writes run: a commit of one row takes 10 ms next to 16 of them, 3 ms next to 3, and 3 have
 * two thirds of the throughput of 16.
 */
export class WriteLanes {
  readonly #environment: Environment;
  readonly #waiting: (() => void)[] = [];
  /** Background writes that are running. */
  #running = 0;
  #others = 0;
  #lastOtherMs = Number.NEGATIVE_INFINITY;

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /**
   * Runs a write: at once, or in its turn if it is a background write. If its signal is aborted while it waits, it runs at once,
   * and detects the abort itself.
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

  /** Waits for a place; resolves with false if the signal is aborted before there is one. */
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
