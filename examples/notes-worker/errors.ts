/** What a client is told when something fails. */
import {
  BackpressureError,
  BookmarkError,
  CommitOutcomeUnknownError,
  ContentionError,
  DeadlineExceededError,
  DuplicateKeyError,
  EncodeError,
  StorageError,
  StoreDbError,
  TransactionConflictError,
} from 'store-db';

/** A failure that the client can mend, with the status to reply with. */
export class RequestError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const statuses = [
  [EncodeError, 400],
  [BookmarkError, 400],
  [DuplicateKeyError, 409],
  // The bucket is slow or busy, or other requests were faster.
  [StorageError, 503],
  [DeadlineExceededError, 503],
  [ContentionError, 503],
  [BackpressureError, 503],
  [TransactionConflictError, 503],
  [CommitOutcomeUnknownError, 503],
] as const;

function statusOf(error: unknown): number {
  if (error instanceof RequestError) return error.status;
  return statuses.find(([errorClass]) => error instanceof errorClass)?.[1] ?? 500;
}

export function errorResponse(error: unknown): Response {
  const status = statusOf(error);
  const { code, message } =
    error instanceof StoreDbError || error instanceof RequestError ? error : { code: 'INTERNAL', message: '' };
  if (status < 500) return Response.json({ code, message }, { status });
  // The message of the store names the bucket and its objects: it is for the log of the Worker.
  console.error(error);
  if (status === 503) {
    const advice = 'The data cannot be reached or changed right now. Try again later.';
    return Response.json({ code, message: advice }, { status, headers: { 'retry-after': '2' } });
  }
  return Response.json({ code: 'INTERNAL', message: 'Something went wrong here.' }, { status });
}
