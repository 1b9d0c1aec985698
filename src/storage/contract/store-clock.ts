/**
 * The clock for times that an instance stores for others to read: its own clock, unless the store's clock is known and differs.
 * Times never decide which rows there are, only the stated time of a state and the age at which something may be deleted.
 */
import type { Environment } from '../../base/env.ts';
import type { Logger } from '../../base/logger.ts';
import type { StorageDriver } from './driver.ts';

/**
 * Largest difference at which clocks count as equal, in milliseconds: the store reports whole seconds, and its responses take
 * time.
 */
const sameMs = 5000;
/** Difference above which a warning is logged, in milliseconds. */
export const wrongMs = 300_000;

/** Describes how far one clock is ahead of another or behind it. */
export function leadText(leadMs: number): string {
  const seconds = Math.round(Math.abs(leadMs) / 1000);
  const [count, unit] =
    seconds < 7200
      ? [seconds / 60, 'minutes']
      : seconds < 172_800
        ? [seconds / 3600, 'hours']
        : [seconds / 86_400, 'days'];
  return `${Math.round(count)} ${unit} ${leadMs > 0 ? 'ahead of' : 'behind'}`;
}

/** The clock of a store, by the dates of its responses. */
export class ResponseClock {
  readonly #monotonicMs: () => number;
  /** The date of the last response, and the monotonic time at which it arrived. */
  #date: { readonly storeMs: number; readonly atMs: number } | undefined;

  constructor(monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
  }

  /** Notes the header `Date` of a response that has just arrived. Returns its time; undefined for a header that names none. */
  note(date: string | undefined): number | undefined {
    const storeMs = Date.parse(date ?? '');
    if (!Number.isFinite(storeMs)) return undefined;
    this.#date = { storeMs, atMs: this.#monotonicMs() };
    return storeMs;
  }

  /** The store's time in milliseconds since 1970; undefined before the first response with a date. */
  get timeMs(): number | undefined {
    return this.#date === undefined ? undefined : this.#date.storeMs + this.#monotonicMs() - this.#date.atMs;
  }
}

/** Reads the store's clock through the driver, or else the clock of the process. */
export class StoreClock {
  readonly #driver: StorageDriver;
  readonly #environment: Environment;
  readonly #logger: Logger;
  #hasWarned = false;

  constructor(driver: StorageDriver, environment: Environment, logger: Logger) {
    this.#driver = driver;
    this.#environment = environment;
    this.#logger = logger;
  }

  /** Whether the time of the store is known. */
  get isOfStore(): boolean {
    return this.#driver.storeTimeMs?.() !== undefined;
  }

  /** How far the clock of this machine is ahead of the store's, in milliseconds; undefined where the store's is not known. */
  leadMs(): number | undefined {
    const store = this.#driver.storeTimeMs?.();
    return store === undefined ? undefined : this.#environment.now() - store;
  }

  /** Returns the time in milliseconds since 1970. */
  now(): number {
    const own = this.#environment.now();
    const store = this.#driver.storeTimeMs?.();
    if (store === undefined || Math.abs(store - own) <= sameMs) return own;
    if (Math.abs(store - own) > wrongMs && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#logger.warn(
        `The clock of this machine is ${leadText(own - store)} the store's. The store's time is used; set the clock right.`,
        { ownMs: own, storeMs: store },
      );
    }
    return store;
  }
}
