/**
 * What the SDK's errors mean for the protocol. Only what certainly had no effect is `none`; a request that timed out, was
 * cut off or met a failing server may have been carried out, or may yet be, and is `unknown`.
 */
import { isError, messageOf } from '../../base/brands.ts';
import { defined } from '../../base/options.ts';
import { StorageError } from '../../base/errors.ts';
import { withoutSecrets } from '../../base/messages.ts';
import type { RequestOutcome, StorageFailure } from '../../base/errors.ts';

/** The request that failed. */
export interface FailedRequest {
  /** The call in the store's own words, for instance `PutObject`. */
  readonly operation: string;
  readonly bucket: string;
  readonly key: string;
}

interface SdkError {
  readonly name?: unknown;
  readonly Code?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  /** The system call that failed. */
  readonly syscall?: unknown;
  /** What became of each address of a host that was tried. */
  readonly errors?: unknown;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly clockSkewCorrected?: boolean };
}

/** Codes of the connection itself, or of what comes before it. */
const unreachable = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);
/** Codes of connections that fail where a store is started again. Not that there is no such host: that stays so. */
const awayCodes = new Set('ECONNREFUSED ECONNRESET EPIPE EHOSTUNREACH ENETUNREACH EAI_AGAIN ETIMEDOUT'.split(' '));
const awayStatuses = new Set([500, 502, 503, 504]);
/** What the SDK throws before it has anything to send. */
const unprepared = new Set(['CredentialsProviderError', 'TokenProviderError', 'NoAuthScheme']);
const throttlingCodes = new Set(['SlowDown', 'TooManyRequests', 'RequestLimitExceeded', 'ThrottlingException']);
/** 400 for these says that the body did not arrive in time or in full; it may arrive yet. */
const interruptedCodes = new Set(['RequestTimeout', 'IncompleteBody']);
/** Statuses that say that the request was refused as such. */
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

/** The HTTP status of an error from the SDK; undefined if there was no answer. */
export function statusOf(error: unknown): number | undefined {
  return (error as SdkError | undefined)?.$metadata?.httpStatusCode;
}

/** The store's or the system's code of an error. */
export function codeOf(error: unknown): string {
  const { name, Code, code } = (error ?? {}) as SdkError;
  for (const found of [Code, code, name]) if (typeof found === 'string') return found;
  return 'Unknown';
}

/** Whether the clock was found to be wrong, and the client now allows for that. The request had no effect. */
export function isSkewCorrected(error: unknown): boolean {
  if ((error as SdkError | undefined)?.$metadata?.clockSkewCorrected === true) return true;
  // The SDK does not say so where it is back from what it allowed for: the clock was set right.
  return codeOf(error) === 'RequestTimeTooSkewed';
}

/**
 * Whether no request left this process. A connection that was made can end with the same codes: a firewall or a router
 * that gives up on it is heard of when sending or receiving fails, and by then the store may have the request.
 */
function isNeverSent(error: unknown): boolean {
  const { syscall, errors } = (error ?? {}) as SdkError;
  if (Array.isArray(errors)) return errors.length > 0 && errors.every(isNeverSent);
  return unreachable.has(codeOf(error)) && (syscall === 'connect' || syscall === 'getaddrinfo');
}

function outcomeOf(error: unknown): RequestOutcome {
  const [code, status] = [codeOf(error), statusOf(error)];
  if (status === undefined) {
    const isMissingRegion = isError(error) && /region is missing/i.test(error.message);
    return isNeverSent(error) || unprepared.has(code) || isMissingRegion ? 'none' : 'unknown';
  }
  return refusals.has(status) && !interruptedCodes.has(code) ? 'none' : 'unknown';
}

/** Whether every address of a host was tried, and none of them is there. */
function allAway(error: unknown): boolean {
  const { errors } = (error ?? {}) as SdkError;
  return Array.isArray(errors) && errors.length > 0 && errors.every((each) => awayCodes.has(codeOf(each)));
}

function reasonOf(error: unknown): StorageFailure | undefined {
  const status = statusOf(error);
  if (status === 401 || status === 403) return 'forbidden';
  if (status === 429 || throttlingCodes.has(codeOf(error))) return 'throttled';
  // A gateway that is started again: what it says of itself, what stands before it says, and what becomes of connections.
  const isAway = status === undefined ? awayCodes.has(codeOf(error)) : awayStatuses.has(status);
  return isAway || allAway(error) ? 'unavailable' : undefined;
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
  if (unprepared.has(code))
    return 'No credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role.';
  if (isError(error) && /region is missing/i.test(error.message)) {
    return 'Give the region of the bucket: option region, STOREDB_REGION or AWS_REGION.';
  }
  if (unreachable.has(code)) return 'The store cannot be reached: check the endpoint and the network.';
  return '';
}

/** Whether the store was busy with another write of the key, and did not take this one up. */
export function isConflict(error: unknown): boolean {
  return statusOf(error) === 409;
}

/** What of an error may appear in a log: what happened, and where. */
const shownProperties: ReadonlySet<string> = new Set(
  'name message stack cause code Code errors $metadata $fault errno syscall address port hostname '
    .concat('Key BucketName Bucket Region Condition Resource RequestId HostId')
    .split(' '),
);

/**
 * The SDK hangs the whole response onto its errors, sockets and the request's headers included, and every element of what the
 * store answered: session tokens are among them, and what was signed. A program that looks for it finds it; no log enumerates it.
 */
function hideDetails(error: unknown): void {
  if (!isError(error)) return;
  for (const name of Object.keys(error)) {
    if (!shownProperties.has(name)) Object.defineProperty(error, name, { enumerable: false });
  }
  const { message, stack } = error;
  const safe = withoutSecrets(message);
  if (safe === message) return;
  // A gateway that repeats what it was sent.
  for (const [name, value] of Object.entries({ message: safe, stack: withoutSecrets(stack ?? '') })) {
    Object.defineProperty(error, name, { value, configurable: true, writable: true, enumerable: false });
  }
}

/** As much of what a store says as belongs into a message. */
const maxSaid = 1000;

/** With one full stop at its end. */
function sentence(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === '.') end--;
  return `${text.slice(0, end)}.`;
}

/** An error of the SDK, or of the connection, as drivers report it. */
export function toStorageError(request: FailedRequest, error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  hideDetails(error);
  const status = statusOf(error);
  const what = [status, codeOf(error)].filter((part) => part !== undefined).join(' ');
  const { message: text } = error as SdkError;
  // The SDK's word for an answer without a text of its own, as Ceph's are.
  const saysNothing = typeof text !== 'string' || text === '' || text === 'UnknownError' || text === codeOf(error);
  const said = saysNothing ? '.' : `: ${sentence(text.slice(0, maxSaid))}`;
  const message = `${request.operation} of ${request.key || request.bucket} failed (${what})${said} ${advice(request, error)}`;
  const reason = reasonOf(error);
  return new StorageError(request.key, outcomeOf(error), message.trim(), {
    cause: error,
    ...defined({ reason }),
  });
}

/** The error where the SDK could not be loaded, or made no client: nothing was requested. */
export function notLoaded(bucket: string, error: unknown): StorageError {
  hideDetails(error);
  const text = messageOf(error);
  const isUnloaded =
    /dynamic require|cannot find (?:module|package)|require is not defined|failed to (?:load|resolve)/i;
  const remedy = isUnloaded.test(text)
    ? 'If the program is a bundle, leave @aws-sdk/* out of it, or see "Bundlers" in docs/object-stores.md.'
    : 'Nothing was requested.';
  const message = `The S3 client for bucket ${bucket} could not be made: ${sentence(withoutSecrets(text).slice(0, maxSaid))} ${remedy}`;
  return new StorageError(bucket, 'none', message, { cause: error });
}
