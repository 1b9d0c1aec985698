/** Removes the secrets of requests from the errors and responses of the AWS SDK. */
import { isError, isPlainObject } from '../../base/brands.ts';
import { withoutKnown } from '../http/secrets.ts';

/** Deepest level that is searched: nobody prints deeper ones. */
const maxDepth = 8;

/** Replaces the value of a property, also of one that cannot be redefined but can be written. */
function replace(holder: object, name: string, value: unknown): void {
  const property = Object.getOwnPropertyDescriptor(holder, name);
  try {
    if (property?.writable === true) (holder as Record<string, unknown>)[name] = value;
    else {
      const enumerable = property?.enumerable === true;
      Object.defineProperty(holder, name, { value, configurable: true, writable: true, enumerable });
    }
  } catch {
    // The property cannot be changed. So it does not hold text of this request: nothing can be added to a frozen object.
  }
}

/**
 * Empties a received response: the SDK attaches it to errors permanently, with the socket and all bytes that passed through it.
 */
function letGo(response: unknown): void {
  if (typeof response !== 'object' || response === null) return;
  replace(response, 'headers', {});
  replace(response, 'body', undefined);
}

/**
 * Removes secrets from every text that an error or a response holds, hidden properties included. The raw response, with its
 * connection and headers, is emptied.
 */
export function hideIn(value: unknown, secrets: readonly string[], seen: Set<unknown> = new Set(), depth = 0): void {
  if (typeof value !== 'object' || value === null || seen.has(value) || depth > maxDepth) return;
  // Skips sockets, streams and clients, which are still in use elsewhere.
  if (!isError(value) && !Array.isArray(value) && !isPlainObject(value)) return;
  seen.add(value);
  for (const name of Object.getOwnPropertyNames(value)) {
    if (name === '$response') {
      letGo((value as { $response?: unknown }).$response);
      continue;
    }
    // The stack of an error may be a getter; other getters are skipped.
    const held: unknown =
      name === 'stack' ? (value as Error).stack : Object.getOwnPropertyDescriptor(value, name)?.value;
    if (typeof held === 'string') {
      const safe = withoutKnown(held, secrets);
      if (safe !== held) replace(value, name, safe);
    } else hideIn(held, secrets, seen, depth + 1);
  }
}

/** Returns an error without the secrets: the error itself, or a copy if it holds a response text that cannot be removed. */
export function withoutKnownIn(error: unknown, secrets: readonly string[]): unknown {
  let shown = error;
  if (isError(error) && Object.hasOwn(error, '$responseBodyText')) {
    const {
      $responseBodyText: _,
      $response: __,
      ...properties
    } = Object.getOwnPropertyDescriptors(error) as PropertyDescriptorMap;
    const copy = new Error(error.message);
    Object.setPrototypeOf(copy, Object.getPrototypeOf(error) as object);
    shown = Object.defineProperties(copy, properties);
  }
  hideIn(shown, secrets);
  return shown;
}
