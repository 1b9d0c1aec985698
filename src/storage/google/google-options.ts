/** The options of `GoogleCloudStorageDriver`, checked when it is constructed. */
import { realEnvironment, type Environment } from '../../base/env.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { kinds, OptionTable } from '../../base/options.ts';

/** Credentials for Google Cloud, such as a `GoogleAuth` of the package `google-auth-library`. */
export interface GoogleCredentials {
  /** Returns a valid access token. */
  getAccessToken(): Promise<string | null | undefined>;
  /** Returns the service account that signs, as `client_email`. */
  getCredentials(): Promise<{ readonly client_email?: string }>;
  /** Returns the signature of a text by the service account, RSA with SHA-256, in base64. */
  sign(text: string): Promise<string>;
}

/** Options of `GoogleCloudStorageDriver`. */
export interface GoogleCloudStorageDriverOptions {
  /** Name of the bucket. It must exist. */
  readonly bucket: string;
  /**
   * A function that returns an access token for a request, or a `GoogleAuth` of `google-auth-library`, which can sign download
   * links too. Default: the application default credentials, which `google-auth-library` finds (install it with
   * `npm install google-auth-library`).
   */
  readonly credentials?: GoogleCredentials | (() => Promise<string>);
  /**
   * URL of the service. Default: the URL or host in `STORAGE_EMULATOR_HOST`, else `https://storage.googleapis.com`. Default
   * credentials are only sent over HTTPS: an emulator needs none.
   */
  readonly apiEndpoint?: string;
  /**
   * Whether objects get the header `Cache-Control`, so that caches before the store keep what never changes, and ask about Block 0
   * every time. Default true.
   */
  readonly cacheHeaders?: boolean;
  /** Clock, timers and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

/** The options, with the defaults that the driver sets. */
export interface CheckedGoogleOptions {
  readonly bucket: string;
  readonly credentials: GoogleCloudStorageDriverOptions['credentials'];
  readonly endpoint: URL;
  readonly cacheHeaders: boolean;
  readonly environment: Environment;
}

const defaultEndpoint = 'https://storage.googleapis.com';
/** Letters, digits, dashes, underscores and dots; 3 to 222 characters, with a letter or digit at both ends. */
const bucketPattern = /^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$/;
const endpointForm = "an http or https URL without a path, for instance 'http://127.0.0.1:4443'";

function isEndpoint(endpoint: string): boolean {
  if (!URL.canParse(endpoint)) return false;
  const { protocol, pathname, search, hash, username, password } = new URL(endpoint);
  return /^https?:$/.test(protocol) && pathname === '/' && [search, hash, username, password].join('') === '';
}

const driverOptions = new OptionTable<GoogleCloudStorageDriverOptions>({
  bucket: kinds.required(
    kinds.text("the name of a bucket, for instance 'my-app-data'", (name) => bucketPattern.test(name)),
  ),
  credentials: {
    allowed: 'a function that returns an access token, or a GoogleAuth of google-auth-library',
    accepts: (value) =>
      typeof value === 'function' ||
      kinds.methods('a GoogleAuth', 'getAccessToken', 'getCredentials', 'sign').accepts(value),
  },
  apiEndpoint: {
    ...kinds.text(endpointForm, isEndpoint),
    // An endpoint may hold a password.
    describe: (value) => (typeof value === 'string' ? 'another text' : String(value)),
  },
  cacheHeaders: kinds.flag,
  environment: kinds.environment,
});

/** Returns the endpoint of an emulator, if the environment of the process names one. */
function emulator(): string | undefined {
  const host = process.env['STORAGE_EMULATOR_HOST'] ?? '';
  if (host === '') return undefined;
  const url = host.includes('://') ? host : `http://${host}`;
  if (isEndpoint(url)) return url;
  throw new InvalidOptionError(
    'STORAGE_EMULATOR_HOST',
    `The variable STORAGE_EMULATOR_HOST must be ${endpointForm}, or a host and port.`,
  );
}

/** Checks the options of the driver; throws `InvalidOptionError`. */
export function checkGoogleOptions(options: GoogleCloudStorageDriverOptions): CheckedGoogleOptions {
  const given = driverOptions.check('new GoogleCloudStorageDriver()', options);
  return {
    bucket: given.bucket,
    credentials: given.credentials,
    endpoint: new URL(given.apiEndpoint ?? emulator() ?? defaultEndpoint),
    cacheHeaders: given.cacheHeaders ?? true,
    environment: given.environment ?? realEnvironment,
  };
}

/** Returns the identity of the driver for a bucket. */
export function googleIdentity({ endpoint, bucket }: CheckedGoogleOptions): string {
  return `${endpoint.origin} ${bucket}`;
}
