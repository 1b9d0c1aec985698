/** A bucket on the test server, and drivers for it. */
import { S3Client } from '@aws-sdk/client-s3';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { ObjectStoreDriver } from '../../../src/storage/s3/object-store-driver.ts';
import type { ObjectStoreDriverOptions } from '../../../src/storage/s3/object-store-options.ts';
import { startS3Server } from '../s3-server/server.ts';
import type { S3Server, S3ServerOptions } from '../s3-server/server.ts';

export const bucketName = 'data';

/** A server with a bucket. Credentials reach drivers as they do in applications, by the process's environment. */
export async function startStore(options: S3ServerOptions = {}): Promise<S3Server> {
  const server = await startS3Server({ buckets: [bucketName], ...options });
  process.env['AWS_ACCESS_KEY_ID'] = server.credentials.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = server.credentials.secretAccessKey;
  return server;
}

export function driverOf(server: S3Server, options: Partial<ObjectStoreDriverOptions> = {}): ObjectStoreDriver {
  return new ObjectStoreDriver({ bucket: bucketName, endpoint: server.endpoint, ...options });
}

/** A driver with a client of the caller's own, as the SDK makes it by default. */
export function ownClientDriver(server: S3Server, config: S3ClientConfig = {}): ObjectStoreDriver {
  const { endpoint, region, credentials } = server;
  const client = new S3Client({ endpoint, region, credentials, forcePathStyle: true, ...config });
  return new ObjectStoreDriver({ bucket: bucketName, client });
}
