/** A driver whose code is loaded with its first request. */
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
  RequestOptions,
  StorageDriver,
} from '../contract/driver.ts';

/** The driver that is loaded. It has no uploads to remove, and nothing to forget. */
export type LoadedDriver = Required<Omit<StorageDriver, 'removeUploads' | 'forget' | 'certified' | 'bundlesOnly'>>;

/** Passes requests on to a driver, which it makes with the first of them. */
export class LaterDriver implements StorageDriver {
  readonly name: string;
  readonly identity: string;
  readonly #make: () => Promise<LoadedDriver>;
  #making: Promise<LoadedDriver> | undefined;
  #made: LoadedDriver | undefined;

  constructor({ name, identity }: Pick<LoadedDriver, 'name' | 'identity'>, make: () => Promise<LoadedDriver>) {
    this.name = name;
    this.identity = identity;
    this.#make = make;
  }

  async get(key: string, options?: GetOptions): Promise<GetResult> {
    return (await this.#driver()).get(key, options);
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return (await this.#driver()).put(key, body, options);
  }

  async delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    return (await this.#driver()).delete(keys, options);
  }

  async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return (await this.#driver()).list(prefix, options);
  }

  async presign(key: string, options: PresignOptions): Promise<string> {
    return (await this.#driver()).presign(key, options);
  }

  async copy(from: string, to: string, options?: ObjectCopyOptions): Promise<CopyResult> {
    return (await this.#driver()).copy(from, to, options);
  }

  storeTimeMs(): number | undefined {
    return this.#made?.storeTimeMs();
  }

  describe(): Readonly<Record<string, string>> {
    return this.#made?.describe() ?? {};
  }

  async close(): Promise<void> {
    await (await this.#making)?.close();
  }

  async #driver(): Promise<LoadedDriver> {
    if (this.#made !== undefined) return this.#made;
    this.#making ??= this.#make().catch((error: unknown) => {
      // The next request tries again.
      this.#making = undefined;
      throw error;
    });
    this.#made = await this.#making;
    return this.#made;
  }
}
