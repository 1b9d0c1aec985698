/** A driver as one process has it: what the store answers reaches the process only while it is alive and running. */
import type {
  CopyResult,
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  ObjectCopyOptions,
  PresignOptions,
  PutBody,
  PutOptions,
  PutResult,
  RemoveUploadsOptions,
  RequestOptions,
  StorageDriver,
} from '../storage/contract/driver.ts';

/** The process that a driver is connected to: a `VirtualEnvironment`. */
export interface ConnectedProcess {
  readonly isFrozen: boolean;
  deliver(happen: () => void): void;
}

export class ConnectedDriver implements StorageDriver {
  readonly name: string;
  readonly certified?: true;
  readonly storeTimeMs?: () => number | undefined;
  readonly describe?: () => Readonly<Record<string, string>>;
  readonly removeUploads?: (prefix: string, options: RemoveUploadsOptions) => Promise<number>;
  readonly presign?: (key: string, options: PresignOptions) => Promise<string>;
  readonly copy?: (from: string, to: string, options?: ObjectCopyOptions) => Promise<CopyResult>;
  readonly #driver: StorageDriver;
  readonly #process: ConnectedProcess;

  constructor(driver: StorageDriver, process: ConnectedProcess) {
    this.name = driver.name;
    this.#driver = driver;
    this.#process = process;
    if (driver.certified === true) this.certified = true;
    if (driver.storeTimeMs !== undefined) this.storeTimeMs = driver.storeTimeMs.bind(driver);
    if (driver.describe !== undefined) this.describe = driver.describe.bind(driver);
    const removeUploads = driver.removeUploads?.bind(driver);
    if (removeUploads !== undefined) {
      this.removeUploads = (prefix, options) => this.#send(() => removeUploads(prefix, options));
    }
    if (driver.presign !== undefined) this.presign = driver.presign.bind(driver);
    const copy = driver.copy?.bind(driver);
    if (copy !== undefined) this.copy = (from, to, options) => this.#send(() => copy(from, to, options));
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#send(() => this.#driver.get(key, options));
  }

  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.#send(() => this.#driver.put(key, body, options));
  }

  delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    return this.#send(() => this.#driver.delete(keys, options));
  }

  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#send(() => this.#driver.list(prefix, options));
  }

  async close(): Promise<void> {
    await this.#driver.close?.();
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
