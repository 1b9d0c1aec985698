/** Errors that only queries raise, beside those of errors.ts. */
import { StoreDbError } from './errors.ts';

/** The bookmark given to `query.page()` is damaged, or of another query or version of the table. Begin again without it. */
export class BookmarkError extends StoreDbError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('BOOKMARK', message, options);
  }
}

/** A query needs more than the budget that it was given. */
export class BudgetExceededError extends StoreDbError {
  /** What there is not enough of. */
  readonly limit: 'requests' | 'bytes' | 'ms';
  /** What the query had used when it was given up: requests, bytes and milliseconds. */
  readonly used: { readonly requests: number; readonly bytes: number; readonly ms: number };
  constructor(limit: BudgetExceededError['limit'], used: BudgetExceededError['used'], message: string) {
    super('BUDGET_EXCEEDED', message);
    this.limit = limit;
    this.used = used;
  }
}
