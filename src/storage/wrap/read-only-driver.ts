/**
 * A driver that only reads: what would write is refused here, whatever the store would allow. The calls that write refuse
 * by themselves, earlier and with their names; this is for those that somebody forgot.
 */
import { ReadOnlyError } from '../../base/errors.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PresignOptions,
  PutResult,
  StorageDriver,
} from '../contract/driver.ts';

export class ReadOnlyDriver implements StorageDriver {
  readonly name: string;
  readonly presign?: (key: string, options: PresignOptions) => Promise<string>;
  readonly #driver: StorageDriver;

  constructor(driver: StorageDriver) {
    this.name = driver.name;
    this.#driver = driver;
    if (driver.presign !== undefined) this.presign = driver.presign.bind(driver);
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#driver.get(key, options);
  }

  put(key: string): Promise<PutResult> {
    return Promise.reject(new ReadOnlyError(`Writing ${key}`));
  }

  delete(keys: readonly string[]): Promise<DeleteResult> {
    return Promise.reject(new ReadOnlyError(`Deleting ${keys[0] ?? 'nothing'}`));
  }

  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#driver.list(prefix, options);
  }

  async close(): Promise<void> {
    await this.#driver.close?.();
  }
}
