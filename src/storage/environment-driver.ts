/** Makes the driver that the environment variables of the process name. */
import { InvalidOptionError } from '../base/errors.ts';
import { AzureBlobDriver } from './azure/azure-blob-driver.ts';
import type { StorageDriver } from './contract/driver.ts';
import { GoogleCloudStorageDriver } from './google/google-cloud-storage-driver.ts';
import { bucketDriver } from './s3/driver-from-env.ts';

/** The variables that name a bucket or container, and the driver for each. */
const drivers: Readonly<Record<string, (name: string) => StorageDriver>> = {
  STOREDB_BUCKET: (bucket) => bucketDriver(bucket),
  STOREDB_AZURE_CONTAINER: (container) => new AzureBlobDriver({ container }),
  STOREDB_GCS_BUCKET: (bucket) => new GoogleCloudStorageDriver({ bucket }),
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
