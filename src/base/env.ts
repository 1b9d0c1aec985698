/**
 * The environment: the only file that touches the runtime's own clock, timers, randomness and ids.
 *
 * All other code in `src/` takes an {@link Environment}, so that a simulator can run the whole engine on a virtual clock and
 * replay it from a seed. Safety never depends on clocks (docs/protocol.md): they only decide which instance tries something.
 *
 * Also the pauses of the engine: {@link sleep}, and {@link backOff} between attempts.
 */
import { afterIo, fillRandom, monotonicMs, startTimer } from '#platform';

/**
 * The runtime's own functions, read once when the module loads. Tests of applications replace them with fake timers, which stand
 * still until the test advances them: a request that waits for one would never end.
 */
const { now } = Date;
const { random } = Math;

/** A pending timer, as returned by {@link Environment.setTimer}. */
export interface Timer {
  /** Stops the timer; a no-op once it has fired. */
  cancel(): void;
}

/** Options of `Environment.setTimer()`. */
export interface TimerOptions {
  /** A background timer does not keep the process alive. Default false. */
  readonly background?: boolean;
}

/** Clock, timers and randomness, which the database uses for everything. */
export interface Environment {
  /** Wall clock, milliseconds since 1970. May jump in either direction. */
  now(): number;
  /** Monotonic clock in milliseconds with a fraction, for deadlines and durations. */
  monotonicMs(): number;
  /** Calls `callback` once, `delayMs` milliseconds from now. */
  setTimer(callback: () => void, delayMs: number, options?: TimerOptions): Timer;
  /** Returns `length` cryptographically random bytes. */
  randomBytes(length: number): Uint8Array;
  /** Returns a random number in [0, 1), for jitter and sampling; never for ids. */
  random(): number;
  /** Resolves once pending I/O callbacks had a chance to run. Long work calls it so as not to block the event loop. */
  yieldToEventLoop(): Promise<void>;
}

/** Longest request for random bytes that the pool serves. */
const pooledBytes = 64;
const poolBytes = 4096;

/** Returns a source of random bytes that draws them from a pool, because a system call for every id would cost too much. */
function pooledRandomBytes(): (length: number) => Uint8Array {
  /** The bytes from `at` on are random and not used yet. */
  const pool = new Uint8Array(poolBytes);
  let at = poolBytes;
  return (length) => {
    if (length > pooledBytes) return fillRandom(new Uint8Array(length));
    if (at + length > poolBytes) {
      fillRandom(pool);
      at = 0;
    }
    const start = at;
    at += length;
    const bytes = pool.slice(start, at);
    pool.fill(0, start, at);
    return bytes;
  };
}

class RealEnvironment implements Environment {
  /** A property, not a method with private fields: environments may be derived from this one with `Object.create()`. */
  readonly randomBytes: (length: number) => Uint8Array = pooledRandomBytes();

  now(): number {
    return now();
  }
  monotonicMs(): number {
    return monotonicMs();
  }
  setTimer(callback: () => void, delayMs: number, options?: TimerOptions): Timer {
    return { cancel: startTimer(callback, delayMs, options?.background === true) };
  }
  random(): number {
    return random();
  }
  yieldToEventLoop(): Promise<void> {
    return new Promise(afterIo);
  }
}

/** The runtime's own clock, timers and randomness. */
export const realEnvironment: Environment = new RealEnvironment();

/**
 * Returns how far a fake clock under the global name `Date` is behind the runtime's clock, in milliseconds; about 0 without a
 * fake.
 */
export function fakedByMs(): number {
  return now() - Date.now();
}

/** Resolves after `delayMs` milliseconds, or rejects with the signal's reason as soon as it is aborted. */
export function sleep(environment: Environment, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    const onAbort = (): void => {
      timer.cancel();
      reject(signal?.reason as Error);
    };
    const timer = environment.setTimer(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, delayMs);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** How long to pause: each pause is twice as long as the one before. */
export interface Backoff {
  /** The pause after the first attempt, in milliseconds, before jitter. */
  readonly firstMs: number;
  /** The longest pause, in milliseconds, before jitter. */
  readonly maxMs: number;
  /**
   * `full`: from 0 up to the pause, to spread competing instances. `around`: from half the pause to one and a half times the
   * pause, for failures that take some time to pass.
   */
  readonly jitter: 'full' | 'around';
}

/** Returns the pause after an attempt, counted from 1, in milliseconds. `share` is random, from 0 to 1. */
export function pauseMs({ firstMs, maxMs, jitter }: Backoff, attempt: number, share: number): number {
  return Math.min(maxMs, firstMs * 2 ** (attempt - 1)) * (jitter === 'full' ? share : 0.5 + share);
}

/** Pauses after an attempt, counted from 1. Rejects with the signal's reason as soon as it is aborted. */
export function backOff(
  environment: Environment,
  backoff: Backoff,
  attempt: number,
  signal?: AbortSignal,
): Promise<void> {
  return sleep(environment, pauseMs(backoff, attempt, environment.random()), signal);
}
