/** Errors of requests that failed, in the words of all drivers: the request, the status and the code, the store's text, and advice. */
import { StorageError } from '../../base/errors.ts';
import type { RequestOutcome, StorageFailure } from '../../base/errors.ts';
import { withoutEnding } from '../../base/messages.ts';
import { defined } from '../../base/options.ts';

/** Longest text of a store, or of a credential, in a message. */
export const maxSaid = 1000;

/** A request that failed, and the facts of its failure. */
export interface RequestFailure {
  /** The operation by the name that the store has for it. */
  readonly operation: string;
  readonly key: string;
  /** The bucket or container, which the message names if the request is not about a key. */
  readonly store: string;
  /** The status and the code, if they are known. */
  readonly codes: readonly (string | number | undefined)[];
  /** The text of the store without secrets; empty if it says nothing. */
  readonly said: string;
  /** Advice for the caller; empty if there is none. */
  readonly advice: string;
  readonly outcome: RequestOutcome;
  readonly reason: StorageFailure | undefined;
  readonly cause: unknown;
}

/** Ends a text with one full stop. */
export function sentence(text: string): string {
  return `${withoutEnding(text, '.')}.`;
}

/** Makes the error: `GetObject of key failed (403 AccessDenied): Access Denied. Grant the permission.` */
export function requestError(failure: RequestFailure): StorageError {
  const { operation, key, store, codes, said, advice, outcome, reason, cause } = failure;
  const what = codes.filter((part) => part !== undefined).join(' ');
  const text = said === '' ? '.' : `: ${sentence(said.slice(0, maxSaid))}`;
  const message = `${operation} of ${key || store} failed (${what})${text} ${advice}`;
  return new StorageError(key, outcome, message.trim(), { cause, ...defined({ reason }) });
}
