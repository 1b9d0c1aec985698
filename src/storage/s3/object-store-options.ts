/** The options of `ObjectStoreDriver`, checked when it is constructed. */
import type { PutObjectCommandInput, S3Client } from '@aws-sdk/client-s3';
import { realEnvironment, type Environment } from '../../base/env.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';

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

const bucketPattern = /^[A-Za-z0-9._-]+$/;

function isUrl(endpoint: string): boolean {
  return URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol);
}

/** Requests are signed, and would not carry credentials of a URL. They are not shown here either. */
function refuseCredentials(what: string, path: string, endpoint: unknown): void {
  const { username, password } = new URL(endpoint as string);
  if (username === '' && password === '') return;
  const instead = 'set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give a client';
  throw new InvalidOptionError(
    path,
    `Option \`${path}\` of ${what} holds credentials, which are not used: ${instead}.`,
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
  look: (what, path, value) => {
    const given = value as ServerSideEncryption;
    if (given.algorithm === 'AES256') plainEncryption.check(what, given, path);
    else keyEncryption.check(what, given, path);
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
