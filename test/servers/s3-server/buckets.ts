/** Making, finding and removing buckets: as much of it as tests need. */
import { Bucket } from './bucket.ts';
import type { S3Dialect } from './dialect.ts';
import type { Exchange } from './exchange.ts';
import { S3Error } from './s3-error.ts';
import { xmlAnswer } from './s3-message.ts';
import type { S3Answer } from './s3-message.ts';
import { isoTime } from './listing.ts';

/** All buckets of a server. */
export class Buckets {
  readonly #buckets = new Map<string, Bucket>();
  readonly #dialect: Readonly<S3Dialect>;

  constructor(dialect: Readonly<S3Dialect>) {
    this.#dialect = dialect;
  }

  get(name: string): Bucket {
    const bucket = this.#buckets.get(name);
    if (bucket === undefined) throw new S3Error('NoSuchBucket', { BucketName: name });
    return bucket;
  }

  create(name: string, nowMs: number): S3Answer {
    if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name)) throw new S3Error('InvalidBucketName', { BucketName: name });
    if (this.#buckets.has(name)) throw new S3Error('BucketAlreadyOwnedByYou', { BucketName: name });
    this.#buckets.set(name, new Bucket(name, nowMs, this.#dialect));
    return { status: 200, headers: { location: `/${name}` } };
  }

  delete({ bucket }: Exchange): S3Answer {
    if (bucket.size > 0) throw new S3Error('BucketNotEmpty', { BucketName: bucket.name });
    this.#buckets.delete(bucket.name);
    return { status: 204 };
  }

  head({ dialect }: Exchange, region: string): S3Answer {
    if (dialect.noListBucket) throw new S3Error('AccessDenied');
    return { status: 200, headers: { 'x-amz-bucket-region': region, 'content-type': 'application/xml' } };
  }

  list(): S3Answer {
    const buckets = [...this.#buckets.values()].map(({ name, createdMs }) => {
      return { Name: name, CreationDate: isoTime(createdMs) };
    });
    return xmlAnswer('ListAllMyBucketsResult', { Owner: { ID: 'owner' }, Buckets: { Bucket: buckets } });
  }
}
