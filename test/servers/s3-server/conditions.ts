/** Conditions of reads and writes, and their outcomes in the dialects. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Bucket, StoredObject } from './bucket.ts';
import type { Exchange } from './exchange.ts';
import { S3Error } from './s3-error.ts';
import type { S3Answer, S3Request } from './s3-message.ts';

interface WriteConditions {
  readonly ifMatch: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

function unquote(etag: string): string {
  return etag.replace(/^"(.*)"$/, '$1');
}

function failed(condition: string): S3Error {
  return new S3Error('PreconditionFailed', { Condition: condition });
}

/** The conditions of a write. Those that S3 documents no meaning for are refused. */
function writeConditions({ headers }: S3Request): WriteConditions {
  const ifMatch = headers['if-match'];
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch !== undefined && ifNoneMatch !== '*')
    throw new S3Error('NotImplemented', { Header: 'If-None-Match' });
  if (ifMatch === '*') throw new S3Error('NotImplemented', { Header: 'If-Match' });
  if (ifMatch !== undefined && ifNoneMatch !== undefined) throw new S3Error('NotImplemented', { Header: 'If-Match' });
  return { ifMatch, ifNoneMatch };
}

function checkWrite(conditions: WriteConditions, key: string, current: StoredObject | undefined, x: Exchange): void {
  const { dialect, request } = x;
  if (dialect.noConditionalMultipart && request.operation === 'CompleteMultipartUpload') return;
  const { ifMatch, ifNoneMatch } = conditions;
  if (ifNoneMatch !== undefined && !dialect.ignoreIfNoneMatch && current !== undefined) throw failed('If-None-Match');
  if (ifMatch === undefined || dialect.ignoreIfMatch) return;
  if (current === undefined) {
    if (dialect.ignoreIfMatchOnMissing) return;
    throw dialect.missingIs412 ? failed('If-Match') : new S3Error('NoSuchKey', { Key: key });
  }
  const expected = dialect.bareEtags ? ifMatch : unquote(ifMatch);
  if (expected !== unquote(current.etag)) throw failed('If-Match');
}

function checkRate(bucket: Bucket, key: string, x: Exchange): void {
  const limit = x.dialect.tooManyPerKey;
  if (limit === undefined) return;
  const nowMs = x.now();
  const last = bucket.lastWriteMs.get(key);
  if (last !== undefined && nowMs - last < limit.intervalMs) {
    throw new S3Error(limit.status === 429 ? 'TooManyRequests' : 'SlowDown');
  }
  bucket.lastWriteMs.set(key, nowMs);
}

/** Checks the conditions of a request and writes, in one step unless the dialect says otherwise. */
export async function writeObject(x: Exchange, makeObject: () => StoredObject): Promise<StoredObject> {
  const { bucket, request, dialect } = x;
  const { key } = request;
  const conditions = writeConditions(request);
  checkRate(bucket, key, x);
  checkWrite(conditions, key, bucket.get(key), x);
  if (dialect.checkThenWriteMs > 0) await sleep(dialect.checkThenWriteMs);
  const object = makeObject();
  bucket.put(key, object, x.now());
  return object;
}

function listsEtag(header: string, etag: string): boolean {
  const wanted = new Set(header.split(',').map((part) => unquote(part.trim().replace(/^W\//, ''))));
  return wanted.has('*') || wanted.has(unquote(etag));
}

/** The answer to a read whose condition says that the caller has the object already. */
export function checkRead({ headers }: S3Request, object: StoredObject): S3Answer | undefined {
  const ifMatch = headers['if-match'];
  const ifNoneMatch = headers['if-none-match'];
  if (ifMatch !== undefined && !listsEtag(ifMatch, object.etag)) throw failed('If-Match');
  if (ifNoneMatch === undefined || !listsEtag(ifNoneMatch, object.etag)) return undefined;
  return {
    status: 304,
    headers: { etag: object.etag, 'last-modified': new Date(object.lastModifiedMs).toUTCString() },
  };
}
