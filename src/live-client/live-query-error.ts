/** Why a live query has no newer data. */
import { StoreDbError } from '../base/errors.ts';

/**
 * The server has refused a live query, or has not answered it. The `code` is that of the server's answer, `LIVE_CONNECTION`, or
 * `LIVE_URL` for a path outside of a page.
 */
export class LiveQueryError extends StoreDbError {
  /** The status of the server's answer; undefined without an answer. */
  readonly status: number | undefined;
  /** For StoreDb itself. `status`: that of the answer; `cause`: the error behind this one. */
  constructor(code: string, message: string, status?: number, options?: { cause?: unknown }) {
    super(code, message, options);
    this.status = status;
  }
}

/** Whether asking again may help without a change of the request. */
export function mayMend(error: unknown): boolean {
  if (!(error instanceof LiveQueryError)) return true;
  if (error.status === undefined) return error.code !== 'LIVE_URL';
  return error.status >= 500 || [408, 425, 429].includes(error.status);
}
