/**
 * Abort signals and deadlines of calls. The engine creates its signals with the runtime's own class, even if the global names
 * hold another one: jsdom replaces them with signals that Node.js does not accept. Signals that callers pass may be of any realm
 * or library. A caller can also stop waiting for work that goes on, because several callers share it or because it must not be
 * cut short, such as a merge.
 */
import { allowListeners, OwnAbortController, OwnAbortSignal } from '#platform';
import type { Environment, Timer } from './env.ts';
import { AbortedError, StorageError, StoreDbError, DeadlineExceededError } from './errors.ts';

/** Whether a signal is of the runtime's own class, which the runtime's functions require. */
function isOwn(signal: AbortSignal): boolean {
  try {
    // One signal may end any number of calls: many listeners are not a leak, and need no warning.
    allowListeners(signal);
    return true;
  } catch {
    return false;
  }
}

export function newAbortController(): AbortController {
  return new OwnAbortController();
}

/** For each foreign signal, the own signal that follows it. An entry goes when the foreign signal is collected. */
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

/**
 * Returns the signal itself if it is of the runtime's own class, else one that follows it. It can have any number of listeners.
 */
export function ownSignal(signal: AbortSignal): AbortSignal {
  return isOwn(signal) ? signal : follow(signal);
}

/** Returns a signal that is aborted as soon as one of the given signals is. */
export function anySignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const given = signals.filter((signal) => signal !== undefined).map(ownSignal);
  const either = OwnAbortSignal.any(given);
  allowListeners(either);
  return either;
}

/** Describes a value that is not a signal, for a message; undefined for a signal of any class. */
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

/** Makes the error for a call that its signal has ended. `callName` names the call in errors. */
export function abortedError(callName: string, cause: unknown): AbortedError {
  return new AbortedError(`${callName} was given up because its signal was aborted`, { cause });
}

/**
 * Runs a call. If it rejects after its signal was aborted, with the signal's reason or because a request was given up, it rejects
 * with an `AbortedError` instead. More specific errors stay as they are. `callName` names the call in errors.
 */
export async function namingAborts<T>(
  callName: string,
  signal: AbortSignal | undefined,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw signal === undefined ? error : namedAbort(callName, signal, error);
  }
}

/** Returns the error to throw in place of a caught one, by the rule of {@link namingAborts}. */
export function namedAbort(callName: string, signal: AbortSignal, error: unknown): unknown {
  if (!signal.aborted) return error;
  const saysMore = error instanceof StoreDbError && !(error instanceof StorageError) && error !== signal.reason;
  return saysMore ? error : abortedError(callName, signal.reason);
}

/** Waits for `work`. Rejects with the signal's reason as soon as the signal is aborted. */
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

/** How many deadlines may use a signal, one after the other. The limit keeps forgotten listeners from piling up on it. */
const maxUses = 64;
/** Most spare signals kept: enough for this many calls at the same time. */
const maxSpares = 64;

/**
 * Reuses the signals of deadlines that were met. Node.js gives each signal a hidden class, allocated in the old generation, which
 * is freed with everything it references only by a collection of the whole heap. A scan that made a signal for every block would
 * hold megabytes of them.
 */
export class SignalPool {
  readonly #spares: AbortController[] = [];
  readonly #uses = new WeakMap<AbortController, number>();

  take(): AbortController {
    return this.#spares.pop() ?? newAbortController();
  }

  /** Returns a signal to the pool. Call it only when nothing that uses the signal is still running. */
  giveBack(controller: AbortController): void {
    const uses = (this.#uses.get(controller) ?? 0) + 1;
    if (controller.signal.aborted || uses >= maxUses || this.#spares.length >= maxSpares) return;
    this.#uses.set(controller, uses);
    this.#spares.push(controller);
  }
}

/** Ends a call that reaches the store, after a time or when the caller's signal is aborted. */
export class Deadline {
  /** Aborted with the error to reject with: `DeadlineExceededError` or `AbortedError`. */
  readonly signal: AbortSignal;
  readonly #controller: AbortController;
  #pool: SignalPool | undefined;
  readonly #timer: Timer;
  readonly #outer: AbortSignal | undefined;
  readonly #onAbort: () => void;

  /**
   * `callName` names the call in errors in the error, for instance `flush()`. Release it with {@link clear}. `pool` provides the signal, for
   * calls that are made by the thousand.
   */
  constructor(environment: Environment, callName: string, timeoutMs: number, given?: AbortSignal, pool?: SignalPool) {
    const outer = given && ownSignal(given);
    const controller = pool?.take() ?? newAbortController();
    this.#controller = controller;
    this.#pool = pool;
    this.signal = controller.signal;
    this.#outer = outer;
    this.#onAbort = () => {
      controller.abort(abortedError(callName, outer?.reason));
    };
    this.#timer = environment.setTimer(() => {
      controller.abort(
        new DeadlineExceededError(`${callName} did not finish within ${timeoutMs} ms: is the store reachable?`),
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

  /** Releases the timer, the listener and the pooled signal. Call it when the call has ended. */
  clear(): void {
    this.#timer.cancel();
    this.#outer?.removeEventListener('abort', this.#onAbort);
    this.#pool?.giveBack(this.#controller);
    this.#pool = undefined;
  }
}

/**
 * Runs a call that reaches the store, and gives it up after `timeoutMs`. With `pool`, nothing may listen to its signal
 * afterwards.
 */
export async function withinDeadline<T>(
  environment: Environment,
  callName: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  call: (deadline: Deadline) => Promise<T>,
  pool?: SignalPool,
): Promise<T> {
  const deadline = new Deadline(environment, callName, timeoutMs, signal, pool);
  // Catching up runs many requests at once, and each adds a listener: that is not a leak, and needs no warning.
  allowListeners(deadline.signal);
  try {
    return await call(deadline);
  } catch (error) {
    // The request may have failed because the call was given up. The reason for that says more.
    if (error instanceof StorageError) deadline.check();
    throw error;
  } finally {
    deadline.clear();
  }
}
