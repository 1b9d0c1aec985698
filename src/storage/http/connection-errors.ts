/** Errors of connections: whether a request was sent at all, and whether the server may soon be back. */
import { isError } from '../../base/brands.ts';

interface SystemError {
  readonly code?: unknown;
  /** The system call that failed. */
  readonly syscall?: unknown;
  /** The errors of the addresses of the host that were tried. */
  readonly errors?: unknown;
}

/** Codes of connections that fail while a server restarts. ENOTFOUND is not among them: an unknown host does not come back. */
const awayCodes: ReadonlySet<unknown> = new Set(
  'ECONNREFUSED ECONNRESET EPIPE EHOSTUNREACH ENETUNREACH EAI_AGAIN ETIMEDOUT'.split(' '),
);
const unreachableCodes: ReadonlySet<unknown> = new Set(
  'ECONNREFUSED ENOTFOUND EAI_AGAIN EHOSTUNREACH ENETUNREACH ETIMEDOUT'.split(' '),
);

/** Returns the errors of each address of a host, or the error itself. */
function each(error: unknown): readonly SystemError[] {
  const { errors } = (error ?? {}) as SystemError;
  return Array.isArray(errors) && errors.length > 0 ? (errors as SystemError[]) : [error ?? {}];
}

/**
 * Whether a request was certainly never sent. An established connection can end with the same codes: if a firewall or a router drops
 * it, sending or receiving fails, and by then the server may have the request.
 */
export function isNeverSent(error: unknown): boolean {
  return each(error).every(
    ({ code, syscall }) => unreachableCodes.has(code) && (syscall === 'connect' || syscall === 'getaddrinfo'),
  );
}

/** Whether an error is of a connection to a server that may soon be back. */
export function isAway(error: unknown): boolean {
  return each(error).every(({ code }) => awayCodes.has(code));
}

/** Returns the system's code of an error, or its name. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as SystemError;
  if (typeof code === 'string') return code;
  return isError(error) ? error.name : 'Unknown';
}
