/** The permissions that a request needs, as Amazon documents them. */
import type { S3Request } from './s3-message.ts';

/** What somebody wants to do. */
export interface Access {
  readonly action: string;
  /** ARN of the object or bucket. */
  readonly resource: string;
  /** Condition keys that the request has. */
  readonly context: Readonly<Record<string, string>>;
}

/** The actions that a request needs on its object. */
export const objectActions: Readonly<Record<string, readonly string[]>> = {
  GetObject: ['s3:GetObject'],
  HeadObject: ['s3:GetObject'],
  PutObject: ['s3:PutObject'],
  CopyObject: ['s3:PutObject'],
  CreateMultipartUpload: ['s3:PutObject'],
  UploadPart: ['s3:PutObject'],
  UploadPartCopy: ['s3:PutObject'],
  CompleteMultipartUpload: ['s3:PutObject'],
  AbortMultipartUpload: ['s3:AbortMultipartUpload'],
  DeleteObject: ['s3:DeleteObject'],
};
/** Those of which an object comes into being, and the only ones that take a condition. */
const creations = new Set(['PutObject', 'CopyObject', 'CompleteMultipartUpload']);

function contextOf({ operation, headers }: S3Request): Record<string, string> {
  if (operation === undefined || !(objectActions[operation] ?? []).includes('s3:PutObject')) return {};
  const isCreation = creations.has(operation);
  return {
    's3:ObjectCreationOperation': String(isCreation),
    ...(isCreation && headers['if-match'] !== undefined ? { 's3:if-match': headers['if-match'] } : {}),
    ...(isCreation && headers['if-none-match'] !== undefined ? { 's3:if-none-match': headers['if-none-match'] } : {}),
  };
}

const arn = 'arn:aws:s3:::';

export function deletion(bucket: string, key: string): Access {
  return { action: 's3:DeleteObject', resource: `${arn}${bucket}/${key}`, context: {} };
}

/** To be told that something is not there: the key stands for the prefix. */
export function listing(bucket: string, prefix: string): Access {
  return { action: 's3:ListBucket', resource: `${arn}${bucket}`, context: { 's3:prefix': prefix } };
}

/** What a request has to be allowed before it is carried out; of several deletions, each is looked at by itself. */
export function accessesOf(request: S3Request): Access[] {
  const { operation, bucket, key, query, headers } = request;
  if (operation === 'ListObjectsV2') return [listing(bucket, query['prefix'] ?? '')];
  if (operation === 'ListMultipartUploads') {
    // It has no key for the prefix.
    return [{ action: 's3:ListBucketMultipartUploads', resource: `${arn}${bucket}`, context: {} }];
  }
  if (operation === 'DeleteObjects') {
    return Array.from(request.body.toString().matchAll(/<Key>(.*?)<\/Key>/g), ([, name = '']) =>
      deletion(bucket, name),
    );
  }
  const needed = objectActions[operation ?? ''];
  if (needed === undefined) throw new Error(`Nobody knows what ${operation ?? 'this'} needs`);
  const context = contextOf(request);
  const resource = `${arn}${bucket}/${key}`;
  const source = headers['x-amz-copy-source'];
  return [
    ...needed.map((action) => ({ action, resource, context })),
    // A replacement on a condition tells something of what is there.
    ...(headers['if-match'] === undefined ? [] : [{ action: 's3:GetObject', resource, context: {} }]),
    ...(source === undefined
      ? []
      : [{ action: 's3:GetObject', resource: `${arn}${decodeURIComponent(source).replace(/^\//, '')}`, context: {} }]),
  ];
}
