/** A driver for one process of a test: answers of the store reach the process only while it is alive and not paused. */
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../storage/contract/driver.ts';
import { WrappedDriver, optionalMembersBut } from '../storage/wrap/wrapped-driver.ts';

/** The process that a driver is connected to: a `VirtualEnvironment`. */
export interface ConnectedProcess {
  readonly isFrozen: boolean;
  deliver(happen: () => void): void;
}

export class ConnectedDriver extends WrappedDriver implements StorageDriver {
  readonly #driver: StorageDriver;
  readonly #process: ConnectedProcess;

  constructor(driver: StorageDriver, process: ConnectedProcess) {
    super(driver, optionalMembersBut('identity'));
    this.#driver = driver;
    this.#process = process;
    const { removeUploads } = this;
    if (removeUploads !== undefined) {
      this.removeUploads = (prefix, options) => this.#send(() => removeUploads(prefix, options));
    }
    const { copy } = this;
    if (copy !== undefined) this.copy = (from, to, options) => this.#send(() => copy(from, to, options));
    const { forget } = this;
    if (forget !== undefined) this.forget = (prefix, options) => this.#send(() => forget(prefix, options));
  }

  override get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#send(() => this.#driver.get(key, options));
  }

  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.#send(() => this.#driver.put(key, body, options));
  }

  override delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    return this.#send(() => this.#driver.delete(keys, options));
  }

  override list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#send(() => this.#driver.list(prefix, options));
  }

  #send<T>(request: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#process.isFrozen) return;
      const rejectWith = reject as (error: unknown) => void;
      request().then(
        (result) => this.#process.deliver(() => resolve(result)),
        (error: unknown) => this.#process.deliver(() => rejectWith(error)),
      );
    });
  }
}
