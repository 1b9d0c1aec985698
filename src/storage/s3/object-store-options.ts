/** The options of `ObjectStoreDriver`, checked when it is constructed. */
import type { PutObjectCommandInput, S3Client } from '@aws-sdk/client-s3';
import { defined } from '../../base/defined.ts';
import { realEnvironment, type Environment } from '../../base/env.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { checkNames } from '../../base/known-names.ts';
import { describeValue } from '../../base/describe-value.ts';

/** How the store should encrypt what it keeps. */
export type ServerSideEncryption =
  | { readonly algorithm: 'AES256' }
  | { readonly algorithm: 'aws:kms'; readonly keyId?: string };

/** Options of `ObjectStoreDriver`. */
export interface ObjectStoreDriverOptions {
  /** Name of the bucket. It must exist. */
  readonly bucket: string;
  /** URL of the store, for instance `http://127.0.0.1:9000`. Default: Amazon S3, or what the AWS SDK's variables say. */
  readonly endpoint?: string;
  /** Region of the bucket. Default: what the AWS SDK finds; for another `endpoint` `us-east-1`. */
  readonly region?: string;
  /** Whether the bucket is named in the path and not in the host. Default: true with an `endpoint`, else false. */
  readonly forcePathStyle?: boolean;
  /**
   * An S3 client of your own, for instance with other credentials or a proxy. It is never destroyed by the driver, and
   * `endpoint`, `region` and `forcePathStyle` are its business then. Its retries are left out for conditional writes.
   */
  readonly client?: S3Client;
  /** Encryption asked for with every write. Default: none, so that the bucket's own setting holds. */
  readonly encryption?: ServerSideEncryption;
  /** Clock, timers and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

/** The options with every default filled in that the driver knows. */
export interface CheckedDriverOptions {
  readonly bucket: string;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly forcePathStyle: boolean | undefined;
  readonly client: S3Client | undefined;
  readonly encryption: Pick<PutObjectCommandInput, 'ServerSideEncryption' | 'SSEKMSKeyId'>;
  readonly environment: Environment;
}

const known = ['bucket', 'endpoint', 'region', 'forcePathStyle', 'client', 'encryption', 'environment'] as const;

function refuse(option: string, value: unknown, allowed: string): never {
  throw new InvalidOptionError(option, `Option ${option} is ${describeValue(value)}; it must be ${allowed}.`);
}

function checkBucket(bucket: unknown): string {
  const allowed = "the name of a bucket, for instance 'my-app-data'";
  if (typeof bucket !== 'string' || bucket === '') refuse('bucket', bucket, allowed);
  if (!bucket.startsWith('arn:') && !/^[A-Za-z0-9._-]+$/.test(bucket)) refuse('bucket', bucket, allowed);
  if (bucket.endsWith('--x-s3')) {
    refuse('bucket', bucket, 'a general purpose bucket: directory buckets list keys in no order');
  }
  return bucket;
}

function checkEndpoint(endpoint: unknown): string | undefined {
  if (endpoint === undefined) return undefined;
  const allowed = "an http or https URL, for instance 'http://127.0.0.1:9000'";
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) refuse('endpoint', endpoint, allowed);
  const { protocol, username, password } = new URL(endpoint);
  if (!/^https?:$/.test(protocol)) refuse('endpoint', endpoint, allowed);
  if (username !== '' || password !== '') {
    // Requests are signed, and would not carry them. They are not shown here either.
    const instead = 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give a client';
    throw new InvalidOptionError('endpoint', `Option endpoint holds credentials, which are not used: ${instead}.`);
  }
  return endpoint;
}

function checkEncryption(encryption: ServerSideEncryption | undefined): CheckedDriverOptions['encryption'] {
  if (encryption === undefined) return {};
  const { algorithm } = encryption as { algorithm?: unknown };
  if (algorithm === 'AES256') return { ServerSideEncryption: 'AES256' };
  if (encryption.algorithm !== 'aws:kms') refuse('encryption.algorithm', algorithm, "'AES256' or 'aws:kms'");
  const { keyId } = encryption;
  if (keyId !== undefined && (typeof keyId !== 'string' || keyId === '')) {
    refuse('encryption.keyId', keyId, 'the id or ARN of a KMS key');
  }
  return { ServerSideEncryption: 'aws:kms', ...defined({ SSEKMSKeyId: keyId }) };
}

/** Checks the options of the driver; throws `InvalidOptionError`. */
export function checkDriverOptions(options: unknown): CheckedDriverOptions {
  if (typeof options !== 'object' || options === null) {
    refuse('options', options, "an object such as { bucket: 'my-app-data' }");
  }
  checkNames('ObjectStoreDriver', options as ObjectStoreDriverOptions, known);
  const given = options as ObjectStoreDriverOptions;
  const { region, forcePathStyle, client } = given;
  if (region !== undefined && (typeof region !== 'string' || region === '')) refuse('region', region, 'a region name');
  if (forcePathStyle !== undefined && typeof forcePathStyle !== 'boolean') {
    refuse('forcePathStyle', forcePathStyle, 'true or false');
  }
  if (client !== undefined && typeof client?.send !== 'function') {
    refuse('client', client, 'an S3Client of @aws-sdk/client-s3');
  }
  return {
    bucket: checkBucket(given.bucket),
    endpoint: checkEndpoint(given.endpoint),
    region,
    forcePathStyle,
    client,
    encryption: checkEncryption(given.encryption),
    environment: given.environment ?? realEnvironment,
  };
}
