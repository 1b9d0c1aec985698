/**
 * Maps errors of stores and connections to outcomes of the protocol. The outcome is `none` only if the request certainly had no effect. A
 * request that timed out, was cut off or met a failing server may have been carried out, or may still be, and is `unknown`.
 */
import { isError, messageOf } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import { withoutSecrets } from '../../base/messages.ts';
import type { RequestOutcome, StorageFailure } from '../../base/errors.ts';
import { isAway, isNeverSent } from '../http/connection-errors.ts';
import { maxSaid, requestError, sentence } from '../http/request-error.ts';
import { CredentialsProviderError } from './credentials.ts';

/** The request that failed. */
export interface FailedRequest {
  /** The operation by its S3 name, for instance `PutObject`. */
  readonly operation: string;
  readonly bucket: string;
  readonly key: string;
}

interface RequestError {
  readonly name?: unknown;
  readonly Code?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly $metadata?: {
    readonly httpStatusCode?: number;
    readonly clockSkewCorrected?: boolean;
    readonly corrected?: 'region' | 'credentials';
  };
}

/** Codes of failures to resolve the host or to connect, for advice. */
const unreachable = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']);
/** Codes of certificates that this process does not trust. */
const untrusted = /^(?:CERT_|UNABLE_TO_|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED|ERR_TLS_CERT|HOSTNAME_MISMATCH)/;
const awayStatuses = new Set([500, 502, 503, 504]);
/** Names of errors that come before a request is sent. */
const unprepared = new Set(['CredentialsProviderError', 'TokenProviderError', 'NoAuthScheme', 'MissingPackageError']);
const throttlingCodes = new Set(['SlowDown', 'TooManyRequests', 'RequestLimitExceeded', 'ThrottlingException']);
/** Codes of status 400 for a body that did not arrive in time or in full; it may still arrive. */
const interruptedCodes = new Set(['RequestTimeout', 'IncompleteBody']);
/** Statuses of requests that the store refused without effect. */
const refusals = new Set([301, 307, 400, 401, 403, 404, 405, 411, 416, 501]);

const permissions: Readonly<Record<string, string>> = {
  GetObject: 's3:GetObject on the objects and s3:ListBucket on the bucket (without it, a missing key is answered 403)',
  HeadObject: 's3:GetObject on the objects and s3:ListBucket on the bucket (without it, a missing key is answered 403)',
  PutObject: 's3:PutObject on the objects (and s3:GetObject, which conditional writes need as well)',
  DeleteObject: 's3:DeleteObject on the objects',
  DeleteObjects: 's3:DeleteObject on the objects',
  ListObjectsV2: 's3:ListBucket on the bucket',
  CopyObject: 's3:GetObject and s3:PutObject on the objects',
  CreateMultipartUpload: 's3:PutObject on the objects',
  UploadPart: 's3:PutObject on the objects',
  UploadPartCopy: 's3:GetObject and s3:PutObject on the objects',
  CompleteMultipartUpload: 's3:PutObject on the objects',
  AbortMultipartUpload: 's3:AbortMultipartUpload on the objects',
};

/** Returns the HTTP status of a store's error; undefined if there was no response. */
export function statusOf(error: unknown): number | undefined {
  return (error as RequestError | undefined)?.$metadata?.httpStatusCode;
}

/** Returns the store's or the system's code of an error. */
export function codeOf(error: unknown): string {
  const { name, Code, code } = (error ?? {}) as RequestError;
  for (const found of [Code, code, name]) if (typeof found === 'string') return found;
  return 'Unknown';
}

/** Whether a request failed, without effect, because the clock is wrong, and the client has corrected for that. */
function isSkewCorrected(error: unknown): boolean {
  if ((error as RequestError | undefined)?.$metadata?.clockSkewCorrected === true) return true;
  // The AWS SDK does not report the correction if it went back to none, because the clock was set right meanwhile.
  return codeOf(error) === 'RequestTimeTooSkewed';
}

/** Returns the flaw for which a request failed without effect, if the next request will not have it. */
export function correctionOf(error: unknown): 'date' | 'region' | 'credentials' | undefined {
  if (isSkewCorrected(error)) return 'date';
  return (error as RequestError | undefined)?.$metadata?.corrected;
}

function outcomeOf(error: unknown): RequestOutcome {
  const [code, status] = [codeOf(error), statusOf(error)];
  if (status === undefined) {
    const isMissingRegion = isError(error) && /region is missing/i.test(error.message);
    const isPrepared = !unprepared.has(code) && !untrusted.test(code) && !isMissingRegion;
    return isNeverSent(error) || !isPrepared ? 'none' : 'unknown';
  }
  return refusals.has(status) && !interruptedCodes.has(code) ? 'none' : 'unknown';
}

function reasonOf(error: unknown): StorageFailure | undefined {
  if (error instanceof CredentialsProviderError) return error.isOutage ? 'unavailable' : undefined;
  const status = statusOf(error);
  if (status === 401 || status === 403) return 'forbidden';
  if (status === 429 || throttlingCodes.has(codeOf(error))) return 'throttled';
  // The signs of a gateway that restarts: its own status, the status of a proxy before it, and failing connections.
  const isUnavailable = status === undefined ? isAway(error) : awayStatuses.has(status);
  return isUnavailable ? 'unavailable' : undefined;
}

function advice({ operation, bucket }: FailedRequest, error: unknown): string {
  const [code, status] = [codeOf(error), statusOf(error)];
  if (code === 'NoSuchBucket') return `There is no bucket ${bucket}: create it, or check its name and the endpoint.`;
  if (code === 'SignatureDoesNotMatch' || code === 'InvalidAccessKeyId') {
    return 'The store does not accept the credentials: check the access key and its secret.';
  }
  if (code === 'RequestTimeTooSkewed') return "This machine's clock differs too much from the store's: set it.";
  if (status === 403 || status === 401) return `Grant ${permissions[operation] ?? 'the permission for it'}.`;
  if (status === 301 || status === 307 || code === 'AuthorizationHeaderMalformed') {
    return `The bucket ${bucket} is in another region: give its region (option region, or STOREDB_REGION).`;
  }
  if (status === 409) return 'Another write of this key was under way. Look again.';
  if (reasonOf(error) === 'throttled') return 'The store asks to go slower.';
  if (code === 'MissingPackageError') return '';
  if (unprepared.has(code)) {
    return 'Nothing was requested of the store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, give the option credentials, or use a role.';
  }
  if (isError(error) && /region is missing/i.test(error.message)) {
    return 'Give the region of the bucket: option region, STOREDB_REGION or AWS_REGION.';
  }
  if (untrusted.test(code)) {
    return "This process does not trust the store's certificate: give the certificate of its authority (option ca, or AWS_CA_BUNDLE).";
  }
  if (unreachable.has(code)) return 'The store cannot be reached: check the endpoint and the network.';
  return '';
}

/** Whether the store refused a write because another write of the key was under way. */
export function isConflict(error: unknown): boolean {
  return statusOf(error) === 409;
}

/** The properties of an error that may appear in a log: the kind and the place of the failure. */
const shownProperties: ReadonlySet<string> = new Set(
  'name message stack cause code Code errors $metadata $fault errno syscall address port hostname '
    .concat('Key BucketName Bucket Region Condition Resource RequestId HostId')
    .split(' '),
);

/**
 * Makes the details of an error non-enumerable. The AWS SDK attaches the whole response to its errors, with sockets, request headers
 * and all elements of the store's response: they include session tokens and the signed request. A program that looks for them
 * finds them, but logs do not enumerate them.
 */
function hideDetails(error: unknown): void {
  if (!isError(error)) return;
  for (const name of Object.keys(error)) {
    if (!shownProperties.has(name)) Object.defineProperty(error, name, { enumerable: false });
  }
  const { message, stack } = error;
  const safe = withoutSecrets(message);
  if (safe === message) return;
  // A gateway may repeat the credentials that it was sent.
  for (const [name, value] of Object.entries({ message: safe, stack: withoutSecrets(stack ?? '') })) {
    Object.defineProperty(error, name, { value, configurable: true, writable: true, enumerable: false });
  }
}

/** Converts an error of the store or of the connection to a `StorageError`. */
export function toStorageError(request: FailedRequest, error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  hideDetails(error);
  const { message: text } = error as RequestError;
  // A response without a message, such as Ceph's, in the words of the AWS SDK too.
  const saysNothing = typeof text !== 'string' || text === '' || text === 'UnknownError' || text === codeOf(error);
  return requestError({
    ...request,
    store: request.bucket,
    codes: [statusOf(error), codeOf(error)],
    said: saysNothing ? '' : text,
    advice: advice(request, error),
    outcome: outcomeOf(error),
    reason: reasonOf(error),
    cause: error,
  });
}

/** Makes the error for modules that could not be loaded: nothing was requested. */
export function notLoaded(bucket: string, error: unknown): StorageError {
  hideDetails(error);
  const text = messageOf(error);
  const isUnloaded =
    /dynamic require|cannot find (?:module|package)|require is not defined|failed to (?:load|resolve)/i;
  const remedy = isUnloaded.test(text)
    ? 'If the program is a bundle, see "Bundlers" in docs/object-stores.md.'
    : 'Nothing was requested.';
  const message = `The S3 client for bucket ${bucket} could not be made: ${sentence(withoutSecrets(text).slice(0, maxSaid))} ${remedy}`;
  return new StorageError(bucket, 'none', message, { cause: error });
}
