/** What a client is told when something fails. */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import {
  AbortedError,
  BlobNotFoundError,
  CommitOutcomeUnknownError,
  ContentionError,
  DeadlineExceededError,
  DuplicateKeyError,
  EncodeError,
  InvalidQueryError,
  RowNotFoundError,
  StorageError,
} from 'store-db';

/** A failure that is the client's to mend, with the status to reply with. */
export class RequestError extends Error {
  readonly statusCode: number;
  readonly code: string;

  constructor(statusCode: number, code: string, message: string) {
    super(message);
    this.statusCode = statusCode;
    this.code = code;
  }
}

const statuses = [
  [EncodeError, 400],
  [InvalidQueryError, 400],
  [RowNotFoundError, 404],
  [BlobNotFoundError, 404],
  [DuplicateKeyError, 409],
  // The store is out of reach, slow or busy, or refuses us: nothing that another request would have done better.
  [StorageError, 503],
  [DeadlineExceededError, 503],
  [AbortedError, 503],
  [ContentionError, 503],
  [CommitOutcomeUnknownError, 503],
] as const;

/** A body that cannot be read to its end reaches us as the cause of the upload's failure. */
function causeOf(error: Error): Error {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof RequestError) return cause;
  }
  return error;
}

function statusOf(error: Error): number {
  const known = statuses.find(([errorClass]) => error instanceof errorClass)?.[1];
  // Fastify's own errors, and ours, know their status.
  return known ?? (error as Partial<FastifyError>).statusCode ?? 500;
}

export function replyWithError(thrown: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const error = causeOf(thrown);
  const status = statusOf(error);
  const { code = 'INTERNAL' } = error as Partial<FastifyError>;
  if (status < 500) {
    reply.code(status).send({ code, message: error.message });
    return;
  }
  // What the store said is for the log. It names buckets and keys, which are none of the client's business.
  request.log.error({ err: error }, 'request failed');
  if (status === 503) {
    const message = 'The data cannot be reached or changed right now. Try again later.';
    reply.code(503).header('retry-after', '5').send({ code, message });
  } else {
    reply.code(status).send({ code: 'INTERNAL', message: 'Something went wrong here.' });
  }
}
