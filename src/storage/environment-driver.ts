/** Makes the driver that the environment variables of the process name. */
import { InvalidOptionError } from '../base/errors.ts';
import { Later } from '../base/later.ts';
import { azureIdentity, checkAzureOptions } from './azure/azure-options.ts';
import type { StorageDriver } from './contract/driver.ts';
import { checkGoogleOptions, googleIdentity } from './google/google-options.ts';
import { bucketDriver } from './s3/driver-from-env.ts';
import { LaterDriver } from './wrap/later-driver.ts';

const usingAzure = new Later('the driver for Azure Blob Storage', () => import('./azure/azure-blob-driver.ts'), {
  onlyOnUse: true,
});
const usingGoogle = new Later(
  'the driver for Google Cloud Storage',
  () => import('./google/google-cloud-storage-driver.ts'),
  { onlyOnUse: true },
);

/** Makes the driver for a container; its options are checked at once. */
function containerDriver(container: string): StorageDriver {
  const options = { container };
  const about = { name: 'azure-blob', identity: azureIdentity(checkAzureOptions(options)) };
  return new LaterDriver(about, async () => new (await usingAzure.get()).AzureBlobDriver(options));
}

/** Makes the driver for a bucket of Google; its options are checked at once. */
function googleDriver(bucket: string): StorageDriver {
  const options = { bucket };
  const about = { name: 'google-cloud-storage', identity: googleIdentity(checkGoogleOptions(options)) };
  return new LaterDriver(about, async () => new (await usingGoogle.get()).GoogleCloudStorageDriver(options));
}

/** The variables that name a bucket or container, and the driver for each. */
const drivers: Readonly<Record<string, (name: string) => StorageDriver>> = {
  STOREDB_BUCKET: (bucket) => bucketDriver(bucket),
  STOREDB_AZURE_CONTAINER: containerDriver,
  STOREDB_GCS_BUCKET: googleDriver,
};

/**
 * Makes a driver for the bucket in `STOREDB_BUCKET` or `STOREDB_GCS_BUCKET`, or the container in `STOREDB_AZURE_CONTAINER`; undefined
 * if none is set. Throws `InvalidOptionError` if several are.
 */
export function environmentDriver(): StorageDriver | undefined {
  const set = Object.keys(drivers).filter((variable) => (process.env[variable] ?? '') !== '');
  const [variable, ...others] = set;
  if (variable === undefined) return undefined;
  if (others.length > 0) {
    const message = `${set.join(' and ')} are ${set.length === 2 ? 'both' : 'all'} set, so it is not clear where the data should be: keep one of them.`;
    throw new InvalidOptionError('driver', message);
  }
  return drivers[variable]?.(process.env[variable] ?? '');
}
