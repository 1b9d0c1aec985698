/** The options of `ObjectStoreDriver`, checked when it is constructed. */
import { isBytes } from '../../base/brands.ts';
import { realEnvironment, type Environment } from '../../base/env.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';
import { accessPointOf } from './bucket-address.ts';
import { credentialsOption } from './credentials.ts';
import type { AwsCredentials, CredentialProvider } from './credentials.ts';
import type { BucketSettings, SdkClient } from './open-s3-api.ts';
import type { EncryptionInput } from './s3-api.ts';

/** Server-side encryption of the store. */
export type ServerSideEncryption =
  | { readonly algorithm: 'AES256' }
  | { readonly algorithm: 'aws:kms'; readonly keyId?: string };

/** Options of `ObjectStoreDriver`. */
export interface ObjectStoreDriverOptions {
  /** Name of the bucket. It must exist. */
  readonly bucket: string;
  /**
   * URL of the store, for instance `http://127.0.0.1:9000`. Default: `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL` of the
   * environment, else Amazon S3.
   */
  readonly endpoint?: string;
  /**
   * Region of the bucket. Default: `AWS_REGION` or `AWS_DEFAULT_REGION` of the environment, else `us-east-1`. If the bucket is in
   * another region, the driver learns it from the store's first response.
   */
  readonly region?: string;
  /** Whether the URL has the bucket in the path and not in the host. Default: true with an `endpoint`, else false. */
  readonly forcePathStyle?: boolean;
  /**
   * The keys to sign requests with, or a function that returns them, such as a provider of the AWS SDK. Default: the environment
   * variables of AWS, a web identity, the container's or the machine's role, or a profile.
   */
  readonly credentials?: AwsCredentials | CredentialProvider;
  /**
   * Certificates in PEM format of the authorities to trust, instead of the runtime's own. Default: the file that
   * `AWS_CA_BUNDLE` names, if it is set.
   */
  readonly ca?: string | Uint8Array | readonly (string | Uint8Array)[];
  /**
   * An `S3Client` of `@aws-sdk/client-s3`, which the application installs, for instance with middleware of its own. The driver
   * never destroys it, and ignores `endpoint`, `region` and `forcePathStyle`: they are settings of the client. Conditional writes
   * do not use its retries.
   */
  readonly client?: SdkClient;
  /**
   * Whether objects get the header `Cache-Control`, so that caches before the store keep what never changes, and ask about Block 0
   * every time. Default true.
   */
  readonly cacheHeaders?: boolean;
  /** Encryption requested with every write. Default: none, so that the bucket's own setting applies. */
  readonly encryption?: ServerSideEncryption;
  /** Clock, timers and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

/** The options, with the defaults that the driver itself sets. */
export interface CheckedDriverOptions extends BucketSettings {
  readonly encryption: EncryptionInput;
  readonly cacheHeaders: boolean;
}

const bucketPattern = /^[A-Za-z0-9._-]+$/;

function isUrl(endpoint: string): boolean {
  return URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol);
}

/** Refuses credentials in a URL, because signed requests do not use them. The error does not show them. */
function refuseCredentials(callName: string, path: string, endpoint: unknown): void {
  const { username, password } = new URL(endpoint as string);
  if (username === '' && password === '') return;
  const instead = 'give them as option credentials, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY';
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

function isCertificate(value: unknown): boolean {
  const text = isBytes(value) ? new TextDecoder().decode(value) : value;
  return typeof text === 'string' && text.includes('-----BEGIN CERTIFICATE-----');
}

const certificates: OptionKind = {
  allowed:
    "the text of certificates in PEM format, which begins with '-----BEGIN CERTIFICATE-----', or a list of such texts",
  accepts: (value) => (Array.isArray(value) ? value.length > 0 && value.every(isCertificate) : isCertificate(value)),
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
  credentials: credentialsOption,
  ca: certificates,
  client: kinds.methods('an S3Client of @aws-sdk/client-s3', 'send'),
  cacheHeaders: kinds.flag,
  encryption,
  environment: kinds.environment,
});

/** Checks the options of the driver; throws `InvalidOptionError`. */
export function checkDriverOptions(options: ObjectStoreDriverOptions): CheckedDriverOptions {
  const given = driverOptions.check('new ObjectStoreDriver()', options);
  if (given.client === undefined) accessPointOf(given.bucket);
  for (const name of ['credentials', 'ca'] as const) {
    if (given.client === undefined || given[name] === undefined) continue;
    const message = `Option \`${name}\` of new ObjectStoreDriver() is a setting of the \`client\`, which is also given: set it there.`;
    throw new InvalidOptionError(name, message);
  }
  return {
    bucket: given.bucket,
    endpoint: given.endpoint,
    region: given.region,
    forcePathStyle: given.forcePathStyle,
    client: given.client,
    credentials: given.credentials,
    ca: given.ca,
    encryption: encryptionHeaders(given.encryption),
    cacheHeaders: given.cacheHeaders ?? true,
    environment: given.environment ?? realEnvironment,
  };
}

function encryptionHeaders(given: ServerSideEncryption | undefined): CheckedDriverOptions['encryption'] {
  if (given === undefined) return {};
  if (given.algorithm === 'AES256') return { ServerSideEncryption: 'AES256' };
  const { keyId } = given;
  return { ServerSideEncryption: 'aws:kms', ...(keyId === undefined ? {} : { SSEKMSKeyId: keyId }) };
}
