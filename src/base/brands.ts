/**
 * Which kind a value is, by what the engine made of it and not by where its constructor stands. A program has several
 * realms: contexts of `node:vm`, and the environments in which jest and vitest run tests. Each has a `Date`, a `Uint8Array`
 * and an `Object` of its own, and `instanceof` knows those of one realm only: under jest not even a `Buffer` is a `Uint8Array`.
 * And whatever stands under a global name can be replaced at any time.
 */
import { types } from 'node:util';

export function isDate(value: unknown): value is Date {
  return typeof value === 'object' && types.isDate(value);
}

/** Whether it is a `Uint8Array`, and so maybe a `Buffer`. */
export function isBytes(value: unknown): value is Uint8Array {
  return types.isUint8Array(value);
}

/** Whether it is an error of any kind; a `DOMException` counts, which is none to the engine. */
export function isError(value: unknown): value is Error {
  if (types.isNativeError(value)) return true;
  if (typeof value !== 'object' || value === null) return false;
  const { name, message } = value as { name?: unknown; message?: unknown };
  return typeof name === 'string' && typeof message === 'string';
}

/** What went wrong, in words, whatever was thrown. */
export function messageOf(error: unknown): string {
  return isError(error) ? error.message : String(error);
}

/** The realm's own, even if somebody has put another one in its place. */
const OwnPromise = (async () => undefined)().constructor as PromiseConstructor;

/** Whether the engine's own code has yet to give the value. It costs next to nothing; for what users give there is {@link isThenable}. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return value instanceof OwnPromise;
}

/** Whether it is a promise of any kind. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  return typeof (value as { then?: unknown }).then === 'function';
}

/** Whether it is an object as `{}` and `JSON.parse()` make them: no instance of a class. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  // The Object.prototype of another realm: the end of the chain, with what only that has of its own.
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf');
}
