/** The options of `ObjectStoreDriver`, checked when it is constructed. */
import type { PutObjectCommandInput, S3Client } from '@aws-sdk/client-s3';
import { realEnvironment, type Environment } from '../../base/env.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';

/** Server-side encryption of the store. */
export type ServerSideEncryption =
  | { readonly algorithm: 'AES256' }
  | { readonly algorithm: 'aws:kms'; readonly keyId?: string };

/** Options of `ObjectStoreDriver`. */
export interface ObjectStoreDriverOptions {
  /** Name of the bucket. It must exist. */
  readonly bucket: string;
  /**
   * URL of the store, for instance `http://127.0.0.1:9000`. Default: the endpoint in the AWS SDK's environment variables, else
   * Amazon S3.
   */
  readonly endpoint?: string;
  /**
   * Region of the bucket. Default: the region that the AWS SDK finds; with an `endpoint`, `us-east-1` if there is no
   * `AWS_REGION`.
   */
  readonly region?: string;
  /** Whether the URL has the bucket in the path and not in the host. Default: true with an `endpoint`, else false. */
  readonly forcePathStyle?: boolean;
  /**
   * An S3 client of your own, for instance with other credentials or a proxy. The driver never destroys it, and ignores
   * `endpoint`, `region` and `forcePathStyle`: they are settings of the client. Conditional writes do not use its retries.
   */
  readonly client?: S3Client;
  /** Encryption requested with every write. Default: none, so that the bucket's own setting applies. */
  readonly encryption?: ServerSideEncryption;
  /** Clock, timers and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

/** The options, with the defaults that the driver itself sets. */
export interface CheckedDriverOptions {
  readonly bucket: string;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly forcePathStyle: boolean | undefined;
  readonly client: S3Client | undefined;
  readonly encryption: Pick<PutObjectCommandInput, 'ServerSideEncryption' | 'SSEKMSKeyId'>;
  readonly environment: Environment;
}

const bucketPattern = /^[A-Za-z0-9._-]+$/;

function isUrl(endpoint: string): boolean {
  return URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol);
}

/** Refuses credentials in a URL, because signed requests do not use them. The error does not show them. */
function refuseCredentials(callName: string, path: string, endpoint: unknown): void {
  const { username, password } = new URL(endpoint as string);
  if (username === '' && password === '') return;
  const instead = 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give a client';
  throw new InvalidOptionError(
    path,
    `Option \`${path}\` of ${callName} holds credentials, which are not used: ${instead}.`,
  );
}

const plainEncryption = new OptionTable<{ readonly algorithm: 'AES256' }>({
  algorithm: kinds.required(kinds.choice('AES256', 'aws:kms')),
});

const keyEncryption = new OptionTable<{ readonly algorithm: 'aws:kms'; readonly keyId?: string }>({
  algorithm: kinds.required(kinds.choice('AES256', 'aws:kms')),
  keyId: kinds.text('the id or ARN of a KMS key', (id) => id !== ''),
});

const encryption: OptionKind = {
  ...kinds.options(keyEncryption),
  look: (callName, path, value) => {
    const given = value as ServerSideEncryption;
    if (given.algorithm === 'AES256') plainEncryption.check(callName, given, path);
    else keyEncryption.check(callName, given, path);
  },
};

const driverOptions = new OptionTable<ObjectStoreDriverOptions>({
  bucket: kinds.required(
    kinds.text(
      "the name of a general purpose bucket, for instance 'my-app-data' (directory buckets, --x-s3, list keys in no order)",
      (name) => (name.startsWith('arn:') || bucketPattern.test(name)) && !name.endsWith('--x-s3'),
    ),
  ),
  endpoint: {
    ...kinds.text("an http or https URL, for instance 'http://127.0.0.1:9000'", isUrl),
    look: refuseCredentials,
  },
  region: kinds.text('a region name', (region) => region !== ''),
  forcePathStyle: kinds.flag,
  client: kinds.methods('an S3Client of @aws-sdk/client-s3', 'send'),
  encryption,
  environment: kinds.environment,
});

/** Checks the options of the driver; throws `InvalidOptionError`. */
export function checkDriverOptions(options: ObjectStoreDriverOptions): CheckedDriverOptions {
  const given = driverOptions.check('new ObjectStoreDriver()', options);
  return {
    bucket: given.bucket,
    endpoint: given.endpoint,
    region: given.region,
    forcePathStyle: given.forcePathStyle,
    client: given.client,
    encryption: encryptionHeaders(given.encryption),
    environment: given.environment ?? realEnvironment,
  };
}

function encryptionHeaders(given: ServerSideEncryption | undefined): CheckedDriverOptions['encryption'] {
  if (given === undefined) return {};
  if (given.algorithm === 'AES256') return { ServerSideEncryption: 'AES256' };
  const { keyId } = given;
  return { ServerSideEncryption: 'aws:kms', ...(keyId === undefined ? {} : { SSEKMSKeyId: keyId }) };
}
