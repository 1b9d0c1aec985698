/** Takes secrets that are known out of texts, and out of all that an error shows. */

import { isError, isPlainObject } from '../../base/brands.ts';

/** Shorter parts of a secret say nothing of it, and would be found by chance. */
const leastLength = 12;
/** What secrets are made of, also as it stands in URLs and in markup. */
const words = /(?:[\w+/~.-]|%[0-9a-f]{2}|&#?\w{2,6};)+/gi;

function decoded(word: string): string {
  const text = word.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  return text.replace(/&#(?:x([0-9a-f]{2})|(\d{2,3}));/gi, (_, hex: string | undefined, digits: string | undefined) =>
    String.fromCharCode(hex === undefined ? Number(digits) : Number.parseInt(hex, 16)),
  );
}

/** A text without the secrets, and without parts of them, however they are written. */
export function withoutKnown(text: string, secrets: readonly string[]): string {
  let safe = text;
  for (const secret of secrets) {
    if (secret.length < leastLength) continue;
    if (safe.includes(secret)) safe = safe.replaceAll(secret, '\u2026');
  }
  return safe.replace(words, (word) => {
    if (word.length < leastLength) return word;
    const plain = decoded(word);
    const one = plain.toLowerCase();
    const isSecret = secrets.some((secret) => {
      const other = secret.toLowerCase();
      return secret.length >= leastLength && (one.includes(other) || other.includes(one));
    });
    return isSecret ? '\u2026' : word;
  });
}

/** Deeper, there is nothing that anybody prints. */
const maxDepth = 8;

/** Puts another value in the place of a property, also of one that is there for good and can only be written. */
function replace(holder: object, name: string, value: unknown): void {
  const property = Object.getOwnPropertyDescriptor(holder, name);
  try {
    if (property?.writable === true) (holder as Record<string, unknown>)[name] = value;
    else {
      const enumerable = property?.enumerable === true;
      Object.defineProperty(holder, name, { value, configurable: true, writable: true, enumerable });
    }
  } catch {
    // It cannot be changed, so that it is not of this request: nothing gets into what is frozen.
  }
}

/** Empties what was received: the SDK hangs it onto errors for good, with the socket and all that went through it. */
function letGo(response: unknown): void {
  if (typeof response !== 'object' || response === null) return;
  replace(response, 'headers', {});
  replace(response, 'body', undefined);
}

/**
 * Takes secrets out of every text that an error or an answer holds, also hidden ones. What was received as it is, with the
 * connection and its headers, is let go of.
 */
export function hideIn(value: unknown, secrets: readonly string[], seen: Set<unknown> = new Set(), depth = 0): void {
  if (typeof value !== 'object' || value === null || seen.has(value) || depth > maxDepth) return;
  // Not a socket, a stream or a client, which others go on using.
  if (!isError(value) && !Array.isArray(value) && !isPlainObject(value)) return;
  seen.add(value);
  for (const name of Object.getOwnPropertyNames(value)) {
    if (name === '$response') {
      letGo((value as { $response?: unknown }).$response);
      continue;
    }
    // The stack of an error may be a getter; other getters are left alone.
    const held: unknown =
      name === 'stack' ? (value as Error).stack : Object.getOwnPropertyDescriptor(value, name)?.value;
    if (typeof held === 'string') {
      const safe = withoutKnown(held, secrets);
      if (safe !== held) replace(value, name, safe);
    } else hideIn(held, secrets, seen, depth + 1);
  }
}

/** An error without the secrets: itself, or a copy where it holds an answer that cannot be taken off it. */
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
