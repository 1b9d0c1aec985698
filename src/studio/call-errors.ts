/** Errors of calls as the page shows them: the status of the answer, a code and a message. */
import { isError, messageOf } from '../base/brands.ts';
import { withoutSecrets } from '../base/messages.ts';
import { StoreDbError } from '../index.ts';
import type { CallError } from './messages.ts';

/** The codes of errors that have a status of their own. All others are faults of the server: 500. */
const statuses: ReadonlyMap<string, number> = new Map([
  ['INVALID_OPTION', 400],
  ['INVALID_QUERY', 400],
  ['INVALID_OPERATOR', 400],
  ['INVALID_SCHEMA', 400],
  ['ENCODE', 400],
  ['BOOKMARK', 400],
  ['NOT_SUPPORTED', 400],
  ['READ_ONLY', 403],
  ['SCHEMA_NOT_FOUND', 404],
  ['ROW_NOT_FOUND', 404],
  ['BLOB_NOT_FOUND', 404],
  ['DUPLICATE_KEY', 409],
  ['UNIQUE_INDEX', 409],
  ['TRANSACTION_CONFLICT', 409],
  ['CHANGES_EXPIRED', 410],
  ['SNAPSHOT_EXPIRED', 410],
  ['BUDGET_EXCEEDED', 422],
  ['MEMORY_BUDGET', 422],
  ['ABORTED', 499],
  ['NOT_STARTED', 503],
  ['STORAGE', 502],
  ['DEADLINE_EXCEEDED', 504],
]);

/** Returns what the page shows of an error. */
export function shownError(error: unknown): CallError {
  const code = error instanceof StoreDbError ? error.code : 'INTERNAL';
  return { code, message: withoutSecrets(isError(error) ? messageOf(error) : String(error)) };
}

/** Returns the status of the answer for an error. */
export function statusOf(error: unknown): number {
  return statuses.get(shownError(error).code) ?? 500;
}
