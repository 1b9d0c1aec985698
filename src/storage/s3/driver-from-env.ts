/** Makes a driver for a bucket, with the settings in the environment variables of the process. */
import { defined } from '../../base/options.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import type { StorageDriver } from '../contract/driver.ts';
import { ObjectStoreDriver } from './object-store-driver.ts';
import type { ObjectStoreDriverOptions } from './object-store-options.ts';

function variable(name: string): string | undefined {
  const value = process.env[name];
  return value === '' ? undefined : value;
}

function flag(name: string): boolean | undefined {
  const value = variable(name);
  if (value === undefined) return undefined;
  if (value === '1' || value === 'true') return true;
  if (value === '0' || value === 'false') return false;
  throw new InvalidOptionError(name, `The variable ${name} is '${value}'; it must be 1 or 0.`);
}

/** Makes a driver for a bucket. The variables set the options that `options` leaves out. */
export function bucketDriver(bucket: string, options: Omit<ObjectStoreDriverOptions, 'bucket'> = {}): StorageDriver {
  const endpoint = variable('STOREDB_ENDPOINT');
  const region = variable('STOREDB_REGION');
  const forcePathStyle = flag('STOREDB_FORCE_PATH_STYLE');
  return new ObjectStoreDriver({
    bucket,
    ...defined({ endpoint, region, forcePathStyle }),
    ...options,
  });
}
