/** Deadlines for calls that reach the store: after a time, or when the caller's signal says so, the call is given up. */
import { setMaxListeners } from 'node:events';
import type { Environment, Timer } from './env.ts';
import { DeadlineExceededError, StorageError } from './errors.ts';
import { newAbortController, ownSignal } from './signals.ts';
import { abortedError } from './until-aborted.ts';

/** So many deadlines may have the same signal, one after the other: listeners that were forgotten on it do not pile up. */
const mostUses = 64;
/** Spare signals are kept for so many calls at the same time. */
const mostSpares = 64;

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
    if (controller.signal.aborted || uses >= mostUses || this.#spares.length >= mostSpares) return;
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
