/** The driver that the process's environment variables ask for. */
import { NotSupportedError } from '../base/errors.ts';
import type { StorageDriver } from './driver.ts';

/** The driver for `STOREDB_BUCKET`; undefined where it is not set. */
export function driverFromProcess(): StorageDriver | undefined {
  const bucket = process.env['STOREDB_BUCKET'];
  if (bucket === undefined || bucket === '') return undefined;
  throw new NotSupportedError(
    `STOREDB_BUCKET is set (${bucket}), but this release has no driver for object stores yet. Give a driver explicitly.`,
  );
}
