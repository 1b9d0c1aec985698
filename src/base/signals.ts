/**
 * Signals that end calls. The engine makes its own of the runtime's class, whatever stands under the global names: jsdom puts
 * signals there that Node.js does not take for such. Those that callers give may be of any realm or library.
 */
import { setMaxListeners } from 'node:events';
import * as util from 'node:util';

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
