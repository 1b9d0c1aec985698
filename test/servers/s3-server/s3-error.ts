/** The refusal of a request: a status, a code and a message, in the words that S3 uses for them. */

interface Refusal {
  readonly status: number;
  readonly message: string;
}

const refusals = {
  AccessDenied: { status: 403, message: 'Access Denied' },
  AuthorizationHeaderMalformed: { status: 400, message: 'The authorization header is malformed.' },
  AuthorizationQueryParametersError: { status: 400, message: 'Error parsing the authorization query parameters.' },
  BadDigest: { status: 400, message: 'The Content-MD5 you specified did not match what we received.' },
  BucketAlreadyOwnedByYou: { status: 409, message: 'The bucket you tried to create already exists, and you own it.' },
  BucketNotEmpty: { status: 409, message: 'The bucket you tried to delete is not empty.' },
  ConditionalRequestConflict: { status: 409, message: 'A conflicting operation happened during this request.' },
  EntityTooSmall: { status: 400, message: 'A proposed part is smaller than the minimum allowed size.' },
  IncompleteBody: { status: 400, message: 'The request has fewer bytes than it announced.' },
  InternalError: { status: 500, message: 'We encountered an internal error. Please try again.' },
  InvalidAccessKeyId: { status: 403, message: 'The access key id you provided does not exist in our records.' },
  InvalidArgument: { status: 400, message: 'Invalid Argument' },
  InvalidBucketName: { status: 400, message: 'The specified bucket is not valid.' },
  InvalidChunkSizeError: { status: 403, message: 'Only the last chunk may have a size of less than 8192 bytes.' },
  InvalidDigest: { status: 400, message: 'The Content-MD5 you specified is not valid.' },
  InvalidPart: { status: 400, message: 'A specified part was not uploaded, or its ETag is another.' },
  InvalidPartOrder: { status: 400, message: 'The list of parts was not in ascending order.' },
  InvalidRange: { status: 416, message: 'The requested range is not satisfiable' },
  InvalidRequest: { status: 400, message: 'Invalid Request' },
  InvalidToken: { status: 400, message: 'The provided token is malformed or otherwise invalid.' },
  InvalidURI: { status: 400, message: 'The specified URI could not be parsed.' },
  KeyTooLongError: { status: 400, message: 'Your key is too long' },
  MalformedTrailerError: { status: 400, message: 'The trailing headers are not well-formed.' },
  MalformedXML: { status: 400, message: 'The XML you provided was not well-formed or did not validate.' },
  MethodNotAllowed: { status: 405, message: 'The specified method is not allowed against this resource.' },
  MissingContentLength: { status: 411, message: 'You must provide the Content-Length HTTP header.' },
  NoSuchBucket: { status: 404, message: 'The specified bucket does not exist' },
  NoSuchKey: { status: 404, message: 'The specified key does not exist.' },
  NoSuchUpload: { status: 404, message: 'The specified upload does not exist: it was completed or aborted.' },
  NotImplemented: { status: 501, message: 'A header or parameter asks for something that is not implemented.' },
  PreconditionFailed: { status: 412, message: 'At least one of the pre-conditions you specified did not hold' },
  RequestTimeTooSkewed: { status: 403, message: 'The time of the request and the current time differ too much.' },
  SignatureDoesNotMatch: { status: 403, message: 'The signature we calculated is not the one you provided.' },
  SlowDown: { status: 503, message: 'Please reduce your request rate.' },
  TooManyRequests: { status: 429, message: 'Please reduce your request rate for the same object.' },
  XAmzContentSHA256Mismatch: { status: 400, message: "The 'x-amz-content-sha256' header does not match the body." },
} satisfies Record<string, Refusal>;

type S3ErrorCode = keyof typeof refusals;

export type ErrorDetails = Readonly<Record<string, string | number | undefined>>;

export class S3Error extends Error {
  readonly code: S3ErrorCode;
  /** Further elements of the XML, for instance the condition that did not hold. */
  readonly details: ErrorDetails;
  status: number;

  constructor(code: S3ErrorCode, details: ErrorDetails = {}, message: string = refusals[code].message) {
    super(message);
    this.code = code;
    this.details = details;
    this.status = refusals[code].status;
  }

  /** The same with another status. */
  as(status: number): this {
    this.status = status;
    return this;
  }
}
