/**
 * A driver that only reads: what would write is refused here, whatever the store would allow. The calls that write refuse
 * by themselves, earlier and with their names; this is for those that somebody forgot.
 */
import { ReadOnlyError } from '../../base/errors.ts';
import type { DeleteResult, PutResult, StorageDriver } from '../contract/driver.ts';
import { WrappedDriver } from './wrapped-driver.ts';

export class ReadOnlyDriver extends WrappedDriver implements StorageDriver {
  constructor(driver: StorageDriver) {
    super(driver, ['presign']);
  }

  override put(key: string): Promise<PutResult> {
    return Promise.reject(new ReadOnlyError(`Writing ${key}`));
  }

  override delete(keys: readonly string[]): Promise<DeleteResult> {
    return Promise.reject(new ReadOnlyError(`Deleting ${keys[0] ?? 'nothing'}`));
  }
}
