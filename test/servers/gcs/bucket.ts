/** A bucket on the test server, and drivers for it. */
import type { KeyObject } from 'node:crypto';
import { sign } from 'node:crypto';
import { GoogleCloudStorageDriver } from '../../../src/storage/google/google-cloud-storage-driver.ts';
import type { GoogleCloudStorageDriverOptions, GoogleCredentials } from '../../../src/storage/google/google-options.ts';
import type { GcsServer } from '../gcs-server/server.ts';

/** Credentials that the server accepts, as a `GoogleAuth` has them. */
export function credentialsOf({ token, email, privateKey }: GcsServer, key: KeyObject = privateKey): GoogleCredentials {
  return {
    getAccessToken: () => Promise.resolve(token),
    getCredentials: () => Promise.resolve({ client_email: email }),
    sign: (text) => Promise.resolve(sign('RSA-SHA256', Buffer.from(text), key).toString('base64')),
  };
}

export function driverOf(
  server: GcsServer,
  options: Partial<GoogleCloudStorageDriverOptions> = {},
): GoogleCloudStorageDriver {
  const { bucket, endpoint } = server;
  return new GoogleCloudStorageDriver({
    bucket: bucket.name,
    apiEndpoint: endpoint,
    credentials: credentialsOf(server),
    ...options,
  });
}
