/** The input of an operation: the request, its payload, the bucket that it names, and the server's habits. */
import type { Bucket } from './bucket.ts';
import type { S3Dialect } from './dialect.ts';
import type { Payload } from './payload.ts';
import type { S3Answer, S3Request } from './s3-message.ts';

export interface Exchange {
  readonly request: S3Request;
  readonly payload: Payload;
  readonly bucket: Bucket;
  readonly dialect: Readonly<S3Dialect>;
  /** Milliseconds since 1970 by the server's clock. */
  readonly now: () => number;
  /** Whether policies allow to delete an object. */
  readonly mayDelete: (key: string) => boolean;
}

export type Handler = (exchange: Exchange) => S3Answer | Promise<S3Answer>;
