/** Errors that a store has answered, from the status, the headers and the XML of its response. */
import { withoutKnown } from '../http/secrets.ts';
import type { HttpResponse } from '../http/http-connection.ts';
import { parseXml, textOf } from './xml.ts';

/** Facts of a response that decide about the outcome of its request. Named as in the errors of the AWS SDK. */
export interface ResponseMetadata {
  readonly httpStatusCode: number;
  readonly requestId?: string;
  /** Whether the request was refused for its date, and the next one will have the date of the store. */
  readonly clockSkewCorrected?: boolean;
  /** The flaw for which the store refused the request without effect, if the next request will not have it. */
  readonly corrected?: 'region' | 'credentials';
}

/** An error that a store answered. Its name is the store's code for it, for instance `NoSuchKey`. */
export class S3ResponseError extends Error {
  readonly Code: string;
  readonly $metadata: ResponseMetadata;

  constructor(code: string, message: string, metadata: ResponseMetadata) {
    super(message);
    this.name = code;
    this.Code = code;
    this.$metadata = metadata;
  }
}

/** The parts of an error's document that are kept, to tell where and why a request failed. */
const keptParts = ['Key', 'BucketName', 'Bucket', 'Region', 'Condition', 'Resource', 'RequestId', 'HostId'];

/** Codes of responses that have no document, such as those to HEAD. */
const codesByStatus: Readonly<Record<number, string>> = {
  304: 'NotModified',
  404: 'NotFound',
  412: 'PreconditionFailed',
  416: 'InvalidRange',
};

/** Makes the error of a key without an object. Nobody needs the rest of its document. */
function missingKey(headers: HttpResponse['headers'], secrets: readonly string[]): S3ResponseError {
  const requestId = headers['x-amz-request-id'];
  return new S3ResponseError('NoSuchKey', '', {
    httpStatusCode: 404,
    ...(requestId !== undefined && { requestId: withoutKnown(requestId, secrets) }),
  });
}

/**
 * Makes the error of a response. `text` is its body; the secrets of the request are removed, because stores and gateways repeat the
 * headers that they received.
 */
export async function responseError(
  { status, headers }: Pick<HttpResponse, 'status' | 'headers'>,
  text: string,
  secrets: readonly string[],
): Promise<S3ResponseError> {
  // The answer that a slot of the log is free: a new process would load the parser for it, which takes longer than a request.
  if (status === 404 && text.includes('<Code>NoSuchKey</Code>')) return missingKey(headers, secrets);
  const document = await parseXml(text);
  // Some stores wrap the error.
  const nested = document?.element['Error'];
  const isNested = typeof nested === 'object' && !Array.isArray(nested);
  const element = isNested ? (nested as NonNullable<typeof document>['element']) : document?.element;
  const part = (name: string): string | undefined => {
    const value = element === undefined ? undefined : textOf(element, name);
    return value === undefined ? undefined : withoutKnown(value, secrets);
  };
  const code = part('Code') ?? codesByStatus[status] ?? 'UnknownError';
  const requestId = part('RequestId') ?? headers['x-amz-request-id'];
  const error = new S3ResponseError(code, part('Message') ?? '', {
    httpStatusCode: status,
    ...(requestId === undefined ? {} : { requestId: withoutKnown(requestId, secrets) }),
  });
  for (const name of keptParts) {
    const value = part(name);
    if (value !== undefined) Object.assign(error, { [name]: value });
  }
  return error;
}
