/** From a request to its answer: its sender, its contents, and its operation. */
import { randomBytes } from 'node:crypto';
import { accessesOf, deletion, listing } from './authorization.ts';
import type { Access } from './authorization.ts';
import type { Buckets } from './buckets.ts';
import type { S3Dialect } from './dialect.ts';
import { copyObject, copyPart } from './copies.ts';
import type { Exchange, Handler } from './exchange.ts';
import { listObjects } from './listing.ts';
import { abortUpload, completeUpload, createUpload, listParts, listUploads, uploadPart } from './multipart.ts';
import { deleteObject, deleteObjects, getObject, headObject, putObject } from './objects.ts';
import { readPayload, refuseChecksums } from './payload.ts';
import { S3Error } from './s3-error.ts';
import type { ErrorDetails } from './s3-error.ts';
import { checkKnown } from './s3-message.ts';
import type { S3Answer, S3Operation, S3Request } from './s3-message.ts';
import { verifySignature } from './signature.ts';
import type { S3Credentials } from './signature.ts';
import { writeXml } from './xml.ts';

/** What a request is dispatched with. */
export interface House {
  readonly buckets: Buckets;
  readonly credentials: S3Credentials;
  readonly region: string;
  readonly dialect: Readonly<S3Dialect>;
  /** Milliseconds since 1970 by the server's clock. */
  readonly now: () => number;
  /** Whether policies allow something. Default: everything. */
  readonly allows?: ((access: Access) => boolean) | undefined;
  /** Whether anybody may read an object without a signature. Default: nobody. */
  readonly isPublic?: ((bucket: string, key: string) => boolean) | undefined;
}

/** An answer, and the code of the error that it is, if it is one. */
export interface Outcome {
  readonly answer: S3Answer;
  readonly code: string | undefined;
}

const handlers: Readonly<Partial<Record<S3Operation, Handler>>> = {
  AbortMultipartUpload: abortUpload,
  CompleteMultipartUpload: completeUpload,
  CopyObject: copyObject,
  CreateMultipartUpload: createUpload,
  DeleteObject: deleteObject,
  DeleteObjects: deleteObjects,
  GetObject: getObject,
  HeadObject: headObject,
  ListMultipartUploads: listUploads,
  ListObjectsV2: listObjects,
  ListParts: listParts,
  PutObject: putObject,
  UploadPart: uploadPart,
  UploadPartCopy: copyPart,
};

/** Whether a request without a signature reads an object that a bucket policy makes public. */
function isPublicRead(request: S3Request, { isPublic }: House): boolean {
  const { operation, headers, query, bucket, key } = request;
  if (headers['authorization'] !== undefined || query['X-Amz-Signature'] !== undefined) return false;
  return (operation === 'GetObject' || operation === 'HeadObject') && isPublic?.(bucket, key) === true;
}

async function perform(request: S3Request, house: House): Promise<S3Answer> {
  const { buckets, region, dialect, now } = house;
  const payloadHash = isPublicRead(request, house)
    ? 'UNSIGNED-PAYLOAD'
    : verifySignature(request, { ...house, nowMs: now() });
  const operation = checkKnown(request);
  if (request.method !== 'GET' && request.method !== 'HEAD') refuseChecksums(request, dialect);
  const payload = readPayload(request, payloadHash);
  if (operation === 'ListBuckets') return buckets.list();
  if (operation === 'CreateBucket') return buckets.create(request.bucket, now());
  const { allows = () => true } = house;
  const mayDelete = (key: string): boolean => allows(deletion(request.bucket, key));
  const exchange: Exchange = { request, payload, bucket: buckets.get(request.bucket), dialect, now, mayDelete };
  if (operation === 'DeleteBucket') return buckets.delete(exchange);
  if (operation === 'HeadBucket') return buckets.head(exchange, region);
  // Of several deletions each is allowed or not.
  const isAllowed = house.allows === undefined || operation === 'DeleteObjects' || accessesOf(request).every(allows);
  if (!isAllowed) throw new S3Error('AccessDenied');
  try {
    return await (handlers[operation] as Handler)(exchange);
  } catch (error) {
    // Only who may list is told that there is nothing.
    const isMissing = error instanceof S3Error && error.code === 'NoSuchKey';
    if (isMissing && !allows(listing(request.bucket, request.key))) throw new S3Error('AccessDenied');
    throw error;
  }
}

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message?: string;
  readonly details?: ErrorDetails;
  readonly headers?: S3Answer['headers'];
}

/** The answer that refuses a request. */
export function refuse({ bucket, key }: S3Request, { status, code, message, details, headers }: Refusal): Outcome {
  const requestId = randomBytes(8).toString('hex').toUpperCase();
  const Resource = `/${bucket}${key === '' ? '' : `/${key}`}`;
  const fields = { Code: code, Message: message ?? code, ...details, Resource, RequestId: requestId };
  return {
    code,
    answer: {
      status,
      headers: { 'content-type': 'application/xml', 'x-amz-request-id': requestId, ...headers },
      body: Buffer.from(writeXml('Error', fields)),
    },
  };
}

/** Refuses a request for the reason that was thrown. What is no reason of S3's is a fault of this server. */
export function refuseFor(request: S3Request, thrown: unknown): Outcome {
  if (thrown instanceof S3Error) return refuse(request, thrown);
  const details = { Stack: thrown instanceof Error ? thrown.stack : String(thrown) };
  return refuse(request, { status: 500, code: 'InternalError', message: 'The test server failed.', details });
}

export async function dispatch(request: S3Request, house: House): Promise<Outcome> {
  try {
    return { answer: await perform(request, house), code: undefined };
  } catch (error) {
    return refuseFor(request, error);
  }
}
