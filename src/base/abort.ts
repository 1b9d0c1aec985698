/**
 * Signals that end calls. The engine makes its own of the runtime's class, whatever stands under the global names: jsdom puts
 * signals there that Node.js does not take for such. Those that callers give may be of any realm or library.
 */
import { setMaxListeners } from 'node:events';
import * as util from 'node:util';
import type { Environment, Timer } from './env.ts';
import { AbortedError, StorageError, StoreDbError, DeadlineExceededError } from './errors.ts';

/** Whether it is one of the runtime's own, which its functions take. */
function isOwn(signal: AbortSignal): boolean {
  try {
    // One signal may end any number of calls: no leak that anyone need be warned of.
    setMaxListeners(0, signal);
    return true;
  } catch {
    return false;
  }
}

function runtimeController(): typeof AbortController {
  if (isOwn(new AbortController().signal)) return AbortController;
  return util.transferableAbortController().constructor as typeof AbortController;
}

const OwnController = runtimeController();
const OwnSignal = new OwnController().signal.constructor as typeof AbortSignal;

export function newAbortController(): AbortController {
  return new OwnController();
}

/** Own signals that follow those of others; of these nothing is kept that is not needed any more. */
const followers = new WeakMap<AbortSignal, AbortSignal>();

function follow(signal: AbortSignal): AbortSignal {
  const known = followers.get(signal);
  if (known !== undefined) return known;
  const controller = newAbortController();
  const end = (): void => controller.abort(signal.reason);
  if (signal.aborted) end();
  else signal.addEventListener('abort', end, { once: true });
  followers.set(signal, controller.signal);
  return controller.signal;
}

/** The signal itself where it is one of the runtime's own, and else one that follows it. Any number may listen to it. */
export function ownSignal(signal: AbortSignal): AbortSignal {
  return isOwn(signal) ? signal : follow(signal);
}

/** Aborted as soon as one of them is. */
export function anySignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const given = signals.filter((signal) => signal !== undefined).map(ownSignal);
  const either = OwnSignal.any(given);
  setMaxListeners(0, either);
  return either;
}

/** What is amiss with a value that is no signal; undefined for one, of whatever class. */
export function flawOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? 'a string' : String(value);
  const { aborted, addEventListener, removeEventListener, signal } = value as Partial<AbortSignal> & {
    signal?: unknown;
  };
  if (
    typeof aborted === 'boolean' &&
    typeof addEventListener === 'function' &&
    typeof removeEventListener === 'function'
  ) {
    return undefined;
  }
  return typeof signal === 'object' ? 'an AbortController, whose `signal` was meant' : 'an object';
}

// Giving up on work that goes on: what several callers share, or what must not be cut short, such as a merge.

/** What a call rejects with that its signal has ended; `what` names it. */
export function abortedError(what: string, cause: unknown): AbortedError {
  return new AbortedError(`${what} was given up because its signal was aborted`, { cause });
}

/**
 * Makes an `AbortedError` of the error that a call ends with once its signal is aborted: the reason itself, which may be anything,
 * or a request that was given up. An error that says more stays as it is. `what` names the call.
 */
export async function namingAborts<T>(
  what: string,
  signal: AbortSignal | undefined,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw signal === undefined ? error : namedAbort(what, signal, error);
  }
}

/** The error to throw instead of one that was caught, for the same reason as {@link namingAborts}. */
export function namedAbort(what: string, signal: AbortSignal, error: unknown): unknown {
  if (!signal.aborted) return error;
  const saysMore = error instanceof StoreDbError && !(error instanceof StorageError) && error !== signal.reason;
  return saysMore ? error : abortedError(what, signal.reason);
}

/** The outcome of `work`, or the signal's reason as soon as it is aborted. */
export async function untilAborted<T>(work: Promise<T>, outer: AbortSignal | undefined): Promise<T> {
  if (outer === undefined) return work;
  const signal = ownSignal(outer);
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort as () => void);
  }
}

// Deadlines for calls that reach the store: after a time, or when the caller's signal says so, the call is given up.

/** So many deadlines may have the same signal, one after the other: listeners that were forgotten on it do not pile up. */
const maxUses = 64;
/** Spare signals are kept for so many calls at the same time. */
const maxSpares = 64;

/**
 * Signals of deadlines that were met, for those to come. Node.js makes each signal with a hidden class of its own, which
 * lies among the old objects from the beginning, and it and what hangs on it are freed only when the whole heap is
 * collected. A scan that made one for every block that it reads would hold megabytes of them.
 */
export class SignalPool {
  readonly #spares: AbortController[] = [];
  readonly #uses = new WeakMap<AbortController, number>();

  take(): AbortController {
    return this.#spares.pop() ?? newAbortController();
  }

  /** To be called once nothing is under way any more that has the signal. */
  giveBack(controller: AbortController): void {
    const uses = (this.#uses.get(controller) ?? 0) + 1;
    if (controller.signal.aborted || uses >= maxUses || this.#spares.length >= maxSpares) return;
    this.#uses.set(controller, uses);
    this.#spares.push(controller);
  }
}

export class Deadline {
  /** Aborted with the error to reject with: `DeadlineExceededError` or `AbortedError`. */
  readonly signal: AbortSignal;
  readonly #controller: AbortController;
  #pool: SignalPool | undefined;
  readonly #timer: Timer;
  readonly #outer: AbortSignal | undefined;
  readonly #onAbort: () => void;

  /**
   * `what` names the call in the error, for instance `flush()`. Release it with {@link clear}. `pool`: where its signal
   * is from, for calls that are made by the thousand.
   */
  constructor(environment: Environment, what: string, timeoutMs: number, given?: AbortSignal, pool?: SignalPool) {
    const outer = given && ownSignal(given);
    const controller = pool?.take() ?? newAbortController();
    this.#controller = controller;
    this.#pool = pool;
    this.signal = controller.signal;
    this.#outer = outer;
    this.#onAbort = () => {
      controller.abort(abortedError(what, outer?.reason));
    };
    this.#timer = environment.setTimer(() => {
      controller.abort(
        new DeadlineExceededError(`${what} did not finish within ${timeoutMs} ms: is the store reachable?`),
      );
    }, timeoutMs);
    if (outer === undefined) return;
    if (outer.aborted) this.#onAbort();
    else outer.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Throws the reason if the time is up. */
  check(): void {
    if (this.signal.aborted) throw this.signal.reason as Error;
  }

  /** The call has ended. */
  clear(): void {
    this.#timer.cancel();
    this.#outer?.removeEventListener('abort', this.#onAbort);
    this.#pool?.giveBack(this.#controller);
    this.#pool = undefined;
  }
}

/** Runs a call that reaches the store within so many milliseconds. With `pool`, nothing may listen to its signal afterwards. */
export async function withinDeadline<T>(
  environment: Environment,
  what: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  call: (deadline: Deadline) => Promise<T>,
  pool?: SignalPool,
): Promise<T> {
  const deadline = new Deadline(environment, what, timeoutMs, signal, pool);
  // Catching up has many requests under way at once, and each listens: no leak that anyone need be warned of.
  setMaxListeners(0, deadline.signal);
  try {
    return await call(deadline);
  } catch (error) {
    // A request failed because the call was given up: why it was says more.
    if (error instanceof StorageError) deadline.check();
    throw error;
  } finally {
    deadline.clear();
  }
}
