/**
 * Type checks that use the engine's internal type of a value instead of `instanceof`. A program can have several realms: contexts
 * of `node:vm`, and the environments in which jest and vitest run tests. Each realm has its own `Date`, `Uint8Array` and
 * `Object`, and `instanceof` recognizes only the classes of one realm: under jest not even a `Buffer` is a `Uint8Array`. Global
 * names can also be replaced at any time.
 */
import { isDate as isDateOfAnyRealm, isNativeError, isUint8Array } from '#platform';

export function isDate(value: unknown): value is Date {
  return typeof value === 'object' && isDateOfAnyRealm(value);
}

/** Whether a value is a `Uint8Array`, which includes `Buffer`. */
export function isBytes(value: unknown): value is Uint8Array {
  return isUint8Array(value);
}

/** Whether a value is an error of any kind. A `DOMException` counts, although it is no native error. */
export function isError(value: unknown): value is Error {
  if (isNativeError(value)) return true;
  if (typeof value !== 'object' || value === null) return false;
  const { name, message } = value as { name?: unknown; message?: unknown };
  return typeof name === 'string' && typeof message === 'string';
}

/** Returns the message of a thrown value of any kind. */
export function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/** The realm's own class, even if the global name was replaced. */
const OwnPromise = (async () => undefined)().constructor as PromiseConstructor;

/**
 * Whether a value of the engine's own code is a promise. It costs next to nothing. For values that users pass, use {@link
 * isThenable}.
 */
export function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof OwnPromise;
}

/**
 * Passes a value on at once, or the value of a promise once that resolves. So work that seldom has to wait makes no promise where it
 * need not. Loops over rows do the same by hand, without a function for each row.
 */
export function andThen<T, R>(value: T | Promise<T>, use: (value: T) => R | Promise<R>): R | Promise<R> {
  return isPromise(value) ? value.then(use) : use(value);
}

/** Whether a value is a promise of any kind. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  return typeof (value as { then?: unknown }).then === 'function';
}

/** Whether a value is an object as `{}` and `JSON.parse()` make them, not an instance of a class. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  // The `Object.prototype` of another realm ends the chain, and has an own property that no other prototype has.
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf');
}
