/** Errors of the test server, in the words of the JSON API. */

/** The reason and the text of an error by its status. */
const known: Readonly<Record<number, readonly [reason: string, message: string]>> = {
  304: ['notModified', 'Not Modified'],
  400: ['invalid', 'Invalid argument.'],
  401: ['required', 'Anonymous caller does not have storage access.'],
  403: ['forbidden', 'The caller does not have the permission.'],
  404: ['notFound', 'Not Found'],
  409: ['conflict', 'The request conflicts with another one.'],
  410: ['gone', 'The session is gone.'],
  411: ['lengthRequired', 'A length is required.'],
  412: ['conditionNotMet', 'At least one of the pre-conditions you specified did not hold.'],
  416: ['requestedRangeNotSatisfiable', 'The requested range cannot be satisfied.'],
  429: [
    'rateLimitExceeded',
    'The object exceeded the rate limit for object mutation operations (create, update, and delete).',
  ],
  500: ['backendError', 'We encountered an internal error. Please try again.'],
  501: ['notImplemented', 'The test server does not know this.'],
  503: ['backendError', 'Backend error'],
};

/** An answer to send: it is thrown where a request is refused. */
export class GcsError extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, message?: string) {
    const [reason, text] = known[status] ?? ['unknown', 'Unknown'];
    super(message ?? text);
    this.status = status;
    this.reason = reason;
  }

  /** The document of the JSON API. */
  get json(): string {
    const { status: code, message, reason } = this;
    return JSON.stringify({ error: { code, message, errors: [{ message, domain: 'global', reason }] } });
  }
}
