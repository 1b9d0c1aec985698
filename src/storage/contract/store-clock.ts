/**
 * The time that a node goes by where others read what it writes: its own, unless the store's is known and says otherwise. Times
 * decide nothing about which rows there are, but when a state is said to have begun, and when something is old enough to go.
 */
import type { Environment } from '../../base/env.ts';
import type { Logger } from '../../base/logger.ts';
import type { StorageDriver } from './driver.ts';

/** Clocks that differ by less agree: the store tells seconds, and its answers were on the way. In milliseconds. */
const sameMs = 5000;
/** A clock that is wrong by more is worth a word. */
export const wrongMs = 300_000;

/** How far one clock is ahead of another, for people. */
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

  /** Whether the store tells its own time with its answers. */
  get isOfStore(): boolean {
    return this.#driver.storeTimeMs?.() !== undefined;
  }

  /** Milliseconds since 1970. */
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
