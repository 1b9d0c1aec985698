/** The options and the result of `query.page()`. */
import { InvalidQueryError } from '../base/errors.ts';
import { kinds, OptionTable } from '../base/options.ts';

/** Options of `query.page()`. */
export interface PageOptions {
  /** How many rows a page has: an integer of at least 1. */
  readonly size: number;
  /** The `next` of the page before. Default: none, for the first page. */
  readonly after?: string | undefined;
  /** Gives the query up: it rejects with `AbortedError`. */
  readonly signal?: AbortSignal;
}

export const pageOptions: OptionTable<PageOptions> = new OptionTable({
  size: kinds.required(kinds.whole(1)),
  after: kinds.text('the `next` of another page', () => true),
  signal: kinds.signal,
});

/** A page of rows, as `query.page()` returns it. */
export interface Page<R> {
  /** The rows, as fresh plain objects. */
  readonly rows: R[];
  /**
   * The bookmark of the last row, for `page({ size, after })`: opaque text that is safe in a URL. Undefined if there were
   * no more rows. It holds the values by which the query is ordered, for anyone to read; of a search, a score
   * and a primary key.
   */
  readonly next: string | undefined;
}

/** Throws `InvalidQueryError` for a query that has a limit or an offset: it has no pages. */
export function refuseLimits({ limit, offset }: { readonly limit: number | undefined; readonly offset: number }): void {
  if (limit === undefined && offset === 0) return;
  throw new InvalidQueryError('page() takes the place of limit() and offset(): use { size } and { after } instead.');
}
