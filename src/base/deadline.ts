/** Deadlines for calls that reach the store: after a time, or when the caller's signal says so, the call is given up. */
import { setMaxListeners } from 'node:events';
import type { Environment, Timer } from './env.ts';
import { DeadlineExceededError } from './errors.ts';
import { abortedError } from './until-aborted.ts';

export class Deadline {
  /** Aborted with the error to reject with: `DeadlineExceededError` or `AbortedError`. */
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #timer: Timer;
  readonly #outer: AbortSignal | undefined;
  readonly #onAbort: () => void;

  /** `what` names the call in the error, for instance `flush()`. Release it with {@link clear}. */
  constructor(environment: Environment, what: string, timeoutMs: number, outer?: AbortSignal) {
    const controller = this.#controller;
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
    // One signal may end any number of calls: no leak that anyone need be warned of.
    setMaxListeners(0, outer);
    if (outer.aborted) this.#onAbort();
    else outer.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** Throws the reason if the time is up. */
  check(): void {
    if (this.signal.aborted) throw this.signal.reason as Error;
  }

  /** Gives the call up for another reason. */
  giveUp(reason: Error): void {
    this.#controller.abort(reason);
  }

  clear(): void {
    this.#timer.cancel();
    this.#outer?.removeEventListener('abort', this.#onAbort);
  }
}
