/** Opens the operations of a bucket: over HTTP, or through the caller's client. Loads what that needs. */
import type { Environment } from '../../base/env.ts';
import { Later } from '../../base/later.ts';
import { defined } from '../../base/options.ts';
import { HttpConnection } from '../http/http-connection.ts';
import type { Certificates } from '../http/http-connection.ts';
import { CredentialCache } from './credentials.ts';
import type { AwsCredentials, CredentialProvider } from './credentials.ts';
import { defaultCredentials } from './default-credentials.ts';
import { HttpS3Api } from './http-s3-api.ts';
import { loadSignatures } from './request-signer.ts';
import type { S3Api } from './s3-api.ts';

/**
 * An `S3Client` of `@aws-sdk/client-s3`. The type does not name the package, because only applications that use such a client have
 * it.
 */
export interface SdkClient {
  /** Sends a command. */
  send(...call: never[]): unknown;
  /** The steps that every request goes through. */
  readonly middlewareStack: object;
  /** The settings of the client. */
  readonly config: object;
}

/** The bucket, and how to reach it. */
export interface BucketSettings {
  readonly environment: Environment;
  readonly bucket: string;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly forcePathStyle: boolean | undefined;
  readonly credentials: AwsCredentials | CredentialProvider | undefined;
  readonly ca: Certificates | undefined;
  /** The client of the caller, which is used as it is and never destroyed. */
  readonly client: SdkClient | undefined;
}

const usingSdk = new Later('the use of a client of the AWS SDK', () => import('./sdk-s3-api.ts'), { onlyOnUse: true });

/** Returns the first of some variables of the environment that is set. Empty variables count as not set. */
function variable(...names: readonly string[]): string | undefined {
  return names.map((name) => process.env[name]).find((value) => (value ?? '') !== '');
}

/** Returns the endpoint in the variables that AWS tools read, if any. */
export function environmentEndpoint(): string | undefined {
  return variable('AWS_ENDPOINT_URL_S3', 'AWS_ENDPOINT_URL');
}

/** Opens the operations of a bucket. Nothing is requested yet. */
export async function openS3Api(settings: BucketSettings): Promise<S3Api> {
  const { environment, bucket, client, ca, credentials } = settings;
  if (client !== undefined) {
    const { SdkS3Api } = await usingSdk.get();
    return SdkS3Api.open(client, bucket, environment);
  }
  const signatures = await loadSignatures();
  const connection = new HttpConnection({ environment, ca });
  const region = settings.region ?? variable('AWS_REGION', 'AWS_DEFAULT_REGION');
  const provider = credentials ?? defaultCredentials({ environment, http: connection, ...defined({ region }) });
  return new HttpS3Api({
    environment,
    bucket,
    endpoint: settings.endpoint ?? environmentEndpoint(),
    region,
    forcePathStyle: settings.forcePathStyle,
    connection,
    credentials: new CredentialCache(typeof provider === 'function' ? provider : async () => provider, environment),
    signatures,
  });
}
