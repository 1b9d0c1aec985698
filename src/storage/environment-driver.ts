/** Makes the driver that the environment variables of the process name. */
import { InvalidOptionError } from '../base/errors.ts';
import { AzureBlobDriver } from './azure/azure-blob-driver.ts';
import type { StorageDriver } from './contract/driver.ts';
import { driverFromProcess } from './s3/driver-from-env.ts';

/**
 * Makes a driver for the bucket in `STOREDB_BUCKET` or the container in `STOREDB_AZURE_CONTAINER`; undefined if neither is set.
 * Throws `InvalidOptionError` if both are.
 */
export function environmentDriver(): StorageDriver | undefined {
  const container = process.env['STOREDB_AZURE_CONTAINER'] ?? '';
  if (container === '') return driverFromProcess();
  if ((process.env['STOREDB_BUCKET'] ?? '') !== '') {
    const message =
      'STOREDB_BUCKET and STOREDB_AZURE_CONTAINER are both set, so it is not clear where the data should be: unset one.';
    throw new InvalidOptionError('driver', message);
  }
  return new AzureBlobDriver({ container });
}
