/**
 * Maps errors of the SDK to outcomes of the protocol. The outcome is `none` only if the request certainly had no effect. A
 * request that timed out, was cut off or met a failing server may have been carried out, or may still be, and is `unknown`.
 */
import { messageOf } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import type { RequestOutcome, StorageFailure } from '../../base/errors.ts';
import { withoutEnding, withoutSecrets } from '../../base/messages.ts';
import { MissingPackageError } from '../contract/optional-package.ts';
import { maxSaid, requestError } from '../http/request-error.ts';

/** The request that failed. */
export interface FailedRequest {
  /** The operation by its name in Azure's documentation, for instance `Put Blob`. */
  readonly operation: string;
  readonly container: string;
  readonly key: string;
}

interface SdkError {
  readonly name?: unknown;
  readonly code?: unknown;
  readonly message?: unknown;
  readonly statusCode?: unknown;
  readonly details?: {
    readonly errorCode?: unknown;
    readonly requestId?: unknown;
    readonly message?: unknown;
    readonly authenticationErrorDetail?: unknown;
    readonly AuthenticationErrorDetail?: unknown;
  };
  readonly request?: { readonly headers?: { get(name: string): string | undefined } };
  readonly response?: { readonly headers?: { get(name: string): string | undefined } };
  /** The system call that failed. */
  readonly syscall?: unknown;
  /** The errors of the addresses of the host that were tried. */
  readonly errors?: unknown;
}

/** A token could not be had: the request was not sent. It holds only the message of the credential's error, which may hold secrets. */
export class TokenError extends Error {
  constructor(cause: unknown) {
    // The reason is on another line than the first one.
    const said = withoutSecrets(messageOf(cause)).replace(/\s+/g, ' ');
    super(`The credential gave no token: ${said.slice(0, maxSaid)}`);
    this.name = 'TokenError';
  }
}

/** Codes of failures to resolve the host or to connect. */
const unreachable = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']);
/** Codes of connections that fail while a server restarts. ENOTFOUND is not among them: an unknown host does not come back. */
const awayCodes = new Set('ECONNREFUSED ECONNRESET EPIPE EHOSTUNREACH ENETUNREACH EAI_AGAIN ETIMEDOUT'.split(' '));
const awayStatuses = new Set([500, 502, 503, 504]);
/** Statuses of requests that the store refused without effect. Status 408 is not among them: the body may still arrive. */
const refusals = new Set([301, 307, 400, 401, 403, 404, 405, 409, 411, 412, 413, 416, 501]);

/** The header with the date that a request is signed with. */
export const dateHeader = 'x-ms-date';
/** The clock's difference from the store's, in milliseconds, from which requests are signed by the store's. */
export const skewMs: number = 4 * 60_000;

/** Returns the HTTP status of an error from the SDK; undefined if there was no response. */
export function statusOf(error: unknown): number | undefined {
  const status = (error as SdkError | undefined)?.statusCode;
  return typeof status === 'number' ? status : undefined;
}

/** Returns the store's or the system's code of an error, for instance `BlobNotFound`. */
export function codeOf(error: unknown): string {
  const { name, code, details, response } = (error ?? {}) as SdkError;
  // The header is there also in responses without a body, such as those to HEAD.
  for (const found of [response?.headers?.get('x-ms-error-code'), details?.errorCode, code, name]) {
    if (typeof found === 'string' && found !== '') return found;
  }
  return 'Unknown';
}

/** Whether a request was refused, without effect, and its date is far from the date of the store. */
export function isMisdated(error: unknown): boolean {
  const { request, response } = (error ?? {}) as SdkError;
  const sentMs = Date.parse(request?.headers?.get(dateHeader) ?? '');
  const storeMs = Date.parse(response?.headers?.get('date') ?? '');
  return statusOf(error) === 403 && Math.abs(sentMs - storeMs) >= skewMs;
}

/** Whether the request was certainly never sent. */
function isNeverSent(error: unknown): boolean {
  if (error instanceof TokenError || error instanceof MissingPackageError) return true;
  const { syscall, errors } = (error ?? {}) as SdkError;
  if (Array.isArray(errors)) return errors.length > 0 && errors.every(isNeverSent);
  return unreachable.has(codeOf(error)) && (syscall === 'connect' || syscall === 'getaddrinfo');
}

function outcomeOf(error: unknown): RequestOutcome {
  const status = statusOf(error);
  if (status === undefined) return isNeverSent(error) ? 'none' : 'unknown';
  return refusals.has(status) ? 'none' : 'unknown';
}

/** Whether every address of a host was tried, and all failed with a code of an outage. */
function allAway(error: unknown): boolean {
  const { errors } = (error ?? {}) as SdkError;
  return Array.isArray(errors) && errors.length > 0 && errors.every((each) => awayCodes.has(codeOf(each)));
}

function reasonOf(error: unknown): StorageFailure | undefined {
  const [code, status] = [codeOf(error), statusOf(error)];
  if (status === 401 || status === 403) return 'forbidden';
  if (status === 429 || (status === 503 && code === 'ServerBusy')) return 'throttled';
  const isAway = status === undefined ? awayCodes.has(code) : awayStatuses.has(status);
  return isAway || allAway(error) ? 'unavailable' : undefined;
}

/** Returns the reason why the store does not know the caller. It is only tested, since it may hold the signature of the request. */
function authenticationDetail({ details }: SdkError): string {
  const detail = details?.authenticationErrorDetail ?? details?.AuthenticationErrorDetail;
  return typeof detail === 'string' ? detail : '';
}

const wrongTime = /date header|not yet valid|expired|signature not valid in|lifetime validation/i;

function accessAdvice(code: string, text: string, error: SdkError, { operation }: FailedRequest): string {
  const isUnknown = code === 'AuthenticationFailed' || code === 'InvalidAuthenticationInfo';
  if (isUnknown && wrongTime.test(`${text} ${authenticationDetail(error)}`)) {
    return "The signature or the access token has expired, or this machine's clock differs too much from the store's: set it.";
  }
  if (isUnknown || /failed to authenticate/i.test(text))
    return 'The store does not accept the credentials: check the account and its key or signature, or the credential.';
  if (code === 'AuthorizationPermissionMismatch') {
    return 'Grant the role Storage Blob Data Contributor on the container; the roles Owner and Contributor do not include it.';
  }
  if (code === 'KeyBasedAuthenticationNotPermitted') return 'The account allows no keys: pass a `credential`.';
  return `Allow ${operation}: the shared access signature or the network rules of the account do not.`;
}

function advice(request: FailedRequest, error: unknown, text: string): string {
  const [code, status] = [codeOf(error), statusOf(error)];
  if (code === 'ContainerNotFound') {
    return `There is no container ${request.container}: create it, or check its name and the account.`;
  }
  if (status === 401 || status === 403) return accessAdvice(code, text, error as SdkError, request);
  if (code.startsWith('Lease')) return 'The blob has a lease of another program: end the lease.';
  if (code.startsWith('BlobImmutable'))
    return 'An immutability policy or a legal hold keeps the blob: use a container without one.';
  if (code === 'InvalidHeaderValue' && /API version|x-ms-version/i.test(text)) {
    return 'The server is older than the SDK: start Azurite with --skipApiVersionCheck.';
  }
  if (reasonOf(error) === 'throttled') return 'The store asks to go slower.';
  if (unreachable.has(code)) return 'The store cannot be reached: check the account, the endpoint and the network.';
  return '';
}

/** Returns the first line of the store's message without secrets and without a full stop; the other lines are ids and times. */
function saidBy(error: unknown): string {
  const { details, message } = error as SdkError;
  const text = typeof details?.message === 'string' ? details.message : message;
  if (typeof text !== 'string') return '';
  const [line = ''] = text.trim().split('\n', 1);
  return withoutEnding(withoutSecrets(line).slice(0, maxSaid), '.');
}

/** The cause of a `StorageError`: what the store answered, without the request, its headers and its URL, which hold secrets. */
export class AzureResponseError extends Error {
  readonly code: string;
  readonly statusCode: number | undefined;
  readonly requestId: string | undefined;

  constructor(code: string, message: string, statusCode: number | undefined, requestId: string | undefined) {
    super(message);
    this.name = 'AzureResponseError';
    this.code = code;
    this.statusCode = statusCode;
    this.requestId = requestId;
  }
}

function causeOf(error: unknown, said: string): unknown {
  if (statusOf(error) === undefined && !('request' in (error as object))) return error;
  const { details, response } = error as SdkError;
  const id = response?.headers?.get('x-ms-request-id') ?? details?.requestId;
  return new AzureResponseError(codeOf(error), said, statusOf(error), typeof id === 'string' ? id : undefined);
}

/** Converts an error of the SDK or of the connection to a `StorageError`. */
export function toStorageError(request: FailedRequest, error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  const said = saidBy(error);
  return requestError({
    ...request,
    store: request.container,
    codes: [statusOf(error), codeOf(error)],
    said: said === codeOf(error) ? '' : said,
    advice: advice(request, error, said),
    outcome: outcomeOf(error),
    reason: reasonOf(error),
    cause: typeof error === 'object' && error !== null ? causeOf(error, said) : error,
  });
}

/** Makes the error for an SDK that could not be loaded or could not make a client: nothing was requested. */
export function notLoaded(container: string, error: unknown): StorageError {
  const text = withoutEnding(withoutSecrets(messageOf(error)).slice(0, maxSaid), '.');
  const message = `The client for container ${container} could not be made: ${text}. Nothing was requested.`;
  return new StorageError(container, 'none', message, { cause: error });
}
