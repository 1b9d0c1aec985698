/**
 * Maps responses of Cloud Storage to outcomes of the protocol. The outcome is `none` only if the request certainly had no effect. A
 * request that timed out, was cut off or met a failing server may have been carried out, or may still be, and is `unknown`.
 */
import { isPlainObject, messageOf } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import type { RequestOutcome, StorageFailure } from '../../base/errors.ts';
import { withoutSecrets } from '../../base/messages.ts';
import { codeOf, isAway, isNeverSent } from '../http/connection-errors.ts';
import { maxSaid, requestError } from '../http/request-error.ts';
import { withoutKnown } from '../http/secrets.ts';

/** The request that failed. */
export interface FailedRequest {
  /** The method by its name in the JSON API, for instance `objects.get`. */
  readonly operation: string;
  readonly bucket: string;
  readonly key: string;
  /** Whether the request only reads, so that it has no effect. */
  readonly isRead: boolean;
}

/** A response that reports an error. */
export class GoogleResponseError extends Error {
  readonly status: number;
  /** The reason in the words of the API, for instance `rateLimitExceeded`. */
  readonly reason: string | undefined;
  /** Whether the response has the form of an error of Cloud Storage. */
  readonly isOfStore: boolean;

  constructor(status: number, reason: string | undefined, message: string, isOfStore: boolean) {
    super(message);
    this.name = 'GoogleResponseError';
    this.status = status;
    this.reason = reason;
    this.isOfStore = isOfStore;
  }
}

/** Reads a response that reports an error. `secret` is the access token that the request held; a gateway may repeat it. */
export function readError(
  status: number,
  headers: Readonly<Record<string, string | undefined>>,
  text: string,
  secret: string | undefined,
): GoogleResponseError {
  const [reason, said, isJson] = readErrorText(secret === undefined ? text : withoutKnown(text, [secret]));
  const safe = withoutSecrets(said);
  // Downloads report errors as plain text.
  const isOfStore = isJson || text.startsWith('No such object: ') || headers['x-guploader-uploadid'] !== undefined;
  return new GoogleResponseError(status, reason, safe.slice(0, maxSaid), isOfStore);
}

function readErrorText(text: string): [reason: string | undefined, message: string, isJson: boolean] {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return [undefined, text.startsWith('<') ? '' : text.trim(), false];
  }
  const error = isPlainObject(body) ? body['error'] : undefined;
  if (!isPlainObject(error)) return [undefined, '', false];
  const first: unknown = Array.isArray(error['errors']) ? error['errors'][0] : undefined;
  const { reason, message } = isPlainObject(first) ? first : {};
  const said = error['message'] ?? message;
  return [
    typeof reason === 'string' ? reason : undefined,
    typeof said === 'string' ? said : '',
    typeof error['code'] === 'number' || Array.isArray(error['errors']),
  ];
}

/** Whether an error says that there is no bucket. */
function isBucketMissing({ status, message }: GoogleResponseError): boolean {
  return status === 404 && /bucket\b.*\bdoes not exist|no such bucket/i.test(message);
}

/** Whether an error is the store's answer that there is no object. A 404 may also come from a server that is no object store. */
export function isMissingObject(error: unknown): boolean {
  return error instanceof GoogleResponseError && error.status === 404 && error.isOfStore && !isBucketMissing(error);
}

/** Statuses of requests that the store refused without effect. */
const refusals = new Set([301, 302, 307, 400, 401, 403, 404, 405, 411, 412, 413, 416, 501]);
const awayStatuses = new Set([408, 500, 502, 503, 504]);
const throttlingReasons = new Set(['rateLimitExceeded', 'userRateLimitExceeded', 'quotaExceeded']);

const permissions: Readonly<Record<string, string>> = {
  'objects.get': 'storage.objects.get and storage.objects.list (without it, a missing object is answered 403)',
  'objects.insert': 'storage.objects.create, and storage.objects.delete to replace objects',
  'objects.delete': 'storage.objects.delete',
  'objects.list': 'storage.objects.list',
  'objects.rewrite': 'storage.objects.get, storage.objects.create and storage.objects.delete',
};

function outcomeOf({ isRead }: FailedRequest, error: unknown): RequestOutcome {
  if (isRead) return 'none';
  const isRefused = error instanceof GoogleResponseError ? refusals.has(error.status) : isNeverSent(error);
  return isRefused ? 'none' : 'unknown';
}

function reasonOf(error: unknown): StorageFailure | undefined {
  if (!(error instanceof GoogleResponseError)) return isAway(error) ? 'unavailable' : undefined;
  const { status, reason = '' } = error;
  if (status === 429 || throttlingReasons.has(reason)) return 'throttled';
  if (status === 401 || status === 403) return 'forbidden';
  return awayStatuses.has(status) ? 'unavailable' : undefined;
}

function advice({ operation, bucket }: FailedRequest, error: unknown, reason: StorageFailure | undefined): string {
  if (reason === 'throttled') return 'The store asks to go slower.';
  if (!(error instanceof GoogleResponseError)) {
    return isNeverSent(error) ? 'The store cannot be reached: check the endpoint and the network.' : '';
  }
  if (isBucketMissing(error)) return `There is no bucket ${bucket}: create it, or check its name and the endpoint.`;
  if (error.status === 404 && !error.isOfStore) return 'The server is not Cloud Storage: check the endpoint.';
  if (error.status === 401) return 'The store does not accept the access token: check the credentials.';
  if (error.status === 403) {
    const needed = permissions[operation] ?? 'the permission for it';
    return `Grant ${needed}: the role Storage Object User (roles/storage.objectUser) has it.`;
  }
  return error.status === 409 ? 'Another write of this object was under way. Look again.' : '';
}

/** Converts an error response, or an error of the connection, to a `StorageError`. */
export function toStorageError(request: FailedRequest, error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  const isResponse = error instanceof GoogleResponseError;
  const reason = reasonOf(error);
  return requestError({
    ...request,
    store: request.bucket,
    codes: isResponse ? [error.status, error.reason] : [codeOf(error)],
    said: withoutSecrets(messageOf(error)),
    advice: advice(request, error, reason),
    outcome: outcomeOf(request, error),
    reason,
    cause: error,
  });
}
