/** A request as S3 understands it, and an answer. */
import { S3Error } from './s3-error.ts';
import { writeXml } from './xml.ts';
import type { XmlFields } from './xml.ts';

export type S3Operation =
  | 'AbortMultipartUpload'
  | 'CompleteMultipartUpload'
  | 'CopyObject'
  | 'CreateBucket'
  | 'CreateMultipartUpload'
  | 'DeleteBucket'
  | 'DeleteObject'
  | 'DeleteObjects'
  | 'GetObject'
  | 'HeadBucket'
  | 'HeadObject'
  | 'ListBuckets'
  | 'ListMultipartUploads'
  | 'ListObjectsV2'
  | 'ListParts'
  | 'PutObject'
  | 'UploadPart'
  | 'UploadPartCopy';

export interface S3Request {
  readonly method: string;
  /** Undefined where it is none that this server knows. */
  readonly operation: S3Operation | undefined;
  /** Empty where the request names none. */
  readonly bucket: string;
  /** Empty where the request names none. */
  readonly key: string;
  /** The decoded path, as one that is signed is computed from it. */
  readonly path: Buffer;
  /** Decoded names and values, in the order in which they came. */
  readonly parameters: readonly (readonly [string, string])[];
  /** The same, by name. */
  readonly query: Readonly<Record<string, string>>;
  /** By lower-case names, as they were sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as it was sent. */
  readonly body: Buffer;
}

export interface S3Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: Buffer;
  /** Length to announce for an answer that has no body. */
  readonly sizeBytes?: number;
}

export function xmlAnswer(root: string, fields: XmlFields, headers: S3Answer['headers'] = {}): S3Answer {
  return {
    status: 200,
    headers: { 'content-type': 'application/xml', ...headers },
    body: Buffer.from(writeXml(root, fields)),
  };
}

/** Bytes of something percent-encoded. */
function decodePercent(text: string): Buffer {
  if (/%(?![\da-fA-F]{2})/.test(text)) throw new S3Error('InvalidURI');
  return Buffer.concat(
    text.split(/(%[\da-fA-F]{2})/).map((part) => {
      return part.startsWith('%') ? Buffer.from(part.slice(1), 'hex') : Buffer.from(part, 'latin1');
    }),
  );
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new S3Error('InvalidURI');
  }
}

function parseParameters(text: string): (readonly [string, string])[] {
  return text
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=');
      const [name, value] = at === -1 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
      const decode = (part: string): string => decodeUtf8(decodePercent(part.replaceAll('+', ' ')));
      return [decode(name), decode(value)] as const;
    });
}

type Query = Readonly<Record<string, string>>;

function objectOperation(method: string, query: Query, isCopy: boolean): S3Operation | undefined {
  const has = (name: string): boolean => query[name] !== undefined;
  switch (method) {
    case 'GET':
      return has('uploadId') ? 'ListParts' : 'GetObject';
    case 'HEAD':
      return 'HeadObject';
    case 'PUT':
      if (isCopy) return has('uploadId') ? 'UploadPartCopy' : 'CopyObject';
      return has('uploadId') ? 'UploadPart' : 'PutObject';
    case 'DELETE':
      return has('uploadId') ? 'AbortMultipartUpload' : 'DeleteObject';
    case 'POST':
      if (has('uploads')) return 'CreateMultipartUpload';
      return has('uploadId') ? 'CompleteMultipartUpload' : undefined;
    default:
      return undefined;
  }
}

function bucketOperation(method: string, query: Query): S3Operation | undefined {
  switch (method) {
    case 'GET':
      if (query['list-type'] === '2') return 'ListObjectsV2';
      return query['uploads'] === undefined ? undefined : 'ListMultipartUploads';
    case 'HEAD':
      return 'HeadBucket';
    case 'PUT':
      return 'CreateBucket';
    case 'DELETE':
      return 'DeleteBucket';
    case 'POST':
      return query['delete'] === undefined ? undefined : 'DeleteObjects';
    default:
      return undefined;
  }
}

function findOperation(
  method: string,
  bucket: string,
  key: string,
  query: Query,
  isCopy: boolean,
): S3Operation | undefined {
  if (bucket === '') return method === 'GET' ? 'ListBuckets' : undefined;
  return key === '' ? bucketOperation(method, query) : objectOperation(method, query, isCopy);
}

const listParameters = ['prefix', 'encoding-type'];
const parametersOf: Readonly<Partial<Record<S3Operation, readonly string[]>>> = {
  AbortMultipartUpload: ['uploadId'],
  CompleteMultipartUpload: ['uploadId'],
  CreateMultipartUpload: ['uploads'],
  DeleteObjects: ['delete'],
  ListMultipartUploads: ['uploads', 'key-marker', 'upload-id-marker', 'max-uploads', ...listParameters],
  ListObjectsV2: [
    'list-type',
    'delimiter',
    'start-after',
    'continuation-token',
    'max-keys',
    'fetch-owner',
    ...listParameters,
  ],
  ListParts: ['uploadId', 'part-number-marker', 'max-parts'],
  UploadPart: ['uploadId', 'partNumber'],
  UploadPartCopy: ['uploadId', 'partNumber'],
};

/** Headers that ask for what this server does not do. To ignore them would make a test pass for the wrong reason. */
const unknownHeaders =
  /^(if-(un)?modified-since|x-amz-(copy-source-if.*|acl|grant-.*|tagging|object-lock-.*|storage-class|website-.*|mfa|write-offset-bytes|bypass-.*|expected-bucket-owner|.*-customer-.*))$/;

/** Operations that take conditions: on any other, a caller would believe to be safe and not be. */
const conditional = new Set<S3Operation>(['CompleteMultipartUpload', 'GetObject', 'HeadObject', 'PutObject']);

/** Refuses whatever would otherwise be silently ignored. */
export function checkKnown(request: S3Request): S3Operation {
  const { operation, headers, query } = request;
  if (operation === undefined) throw new S3Error('NotImplemented');
  const known = parametersOf[operation] ?? [];
  const oddParameter = Object.keys(query).find((name) => {
    return !known.includes(name) && !/^(x-id$|x-amz-|response-)/i.test(name);
  });
  if (oddParameter !== undefined) throw new S3Error('NotImplemented', { Parameter: oddParameter });
  const oddHeader = Object.keys(headers).find((name) => {
    return unknownHeaders.test(name) || (/^if-(none-)?match$/.test(name) && !conditional.has(operation));
  });
  if (oddHeader !== undefined) throw new S3Error('NotImplemented', { Header: oddHeader });
  return operation;
}

export interface RawRequest {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** Bucket and key of what is to be copied, as the header names it. */
export function parseCopySource(request: S3Request): { readonly bucket: string; readonly key: string } {
  const path = decodeUtf8(decodePercent(request.headers['x-amz-copy-source'] ?? '')).replace(/^\//, '');
  const at = path.indexOf('/');
  return { bucket: path.slice(0, at), key: path.slice(at + 1) };
}

/** Amazon's host names for a bucket. */
const bucketInHost = /^([^.]+)\.s3\.[\w-]+\.amazonaws\.com$/;

/** Takes a request apart. Keys are bytes after the bucket's slash, and nothing in them is normalized. */
export function parseRequest({ method, target, headers, body }: RawRequest): S3Request {
  const queryAt = target.indexOf('?');
  const path = decodePercent(queryAt === -1 ? target : target.slice(0, queryAt));
  const parameters = parseParameters(queryAt === -1 ? '' : target.slice(queryAt + 1));
  const query: Query = Object.fromEntries(parameters);
  const inHost = bucketInHost.exec(headers['host'] ?? '')?.[1];
  const keyAt = inHost === undefined ? path.indexOf('/', 1) : 0;
  const bucket = inHost ?? decodeUtf8(path.subarray(1, keyAt === -1 ? path.length : keyAt));
  const key = keyAt === -1 ? '' : decodeUtf8(path.subarray(keyAt + 1));
  const operation = findOperation(method, bucket, key, query, headers['x-amz-copy-source'] !== undefined);
  return { method, operation, bucket, key, path, parameters, query, headers, body };
}

/** A header, or the parameter that stands for it in a presigned URL. */
export function headerOf(request: S3Request, name: string): string | undefined {
  const sent = request.headers[name];
  if (sent !== undefined || request.query['X-Amz-Signature'] === undefined || !name.startsWith('x-amz-')) return sent;
  return request.parameters.find(([parameter]) => parameter.toLowerCase() === name)?.[1];
}
