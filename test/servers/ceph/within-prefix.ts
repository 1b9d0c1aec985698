/** A part of a store, as if it were one of its own: so that every test can begin with an empty one. */
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PresignOptions,
  PutBody,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from '../../../src/storage/contract/driver.ts';

export class WithinPrefix implements StorageDriver {
  readonly name: string;
  /** Trying the store out for every database would take most of the time, and is a test of its own. */
  readonly certified = true;
  readonly #driver: StorageDriver;
  readonly #prefix: string;

  /** `prefix` ends with `/`. */
  constructor(driver: StorageDriver, prefix: string) {
    this.name = driver.name;
    this.#driver = driver;
    this.#prefix = prefix;
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#driver.get(this.#prefix + key, options);
  }

  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.#driver.put(this.#prefix + key, body, options);
  }

  async delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    const outer = keys.map((key) => this.#prefix + key);
    const { failed, ...result } = await this.#driver.delete(outer, options);
    return { ...result, failed: failed.map(({ key, message }) => ({ key: this.#inner(key), message })) };
  }

  async list(prefix: string, { after, ...options }: ListOptions = {}): Promise<ListPage> {
    const from = after === undefined ? {} : { after: this.#prefix + after };
    const { entries, more } = await this.#driver.list(this.#prefix + prefix, { ...options, ...from });
    const inner = entries.map(({ key, sizeBytes, lastModifiedMs }) => {
      return { key: this.#inner(key), sizeBytes, lastModifiedMs };
    });
    return { more, entries: inner };
  }

  async presign(key: string, options: PresignOptions): Promise<string> {
    if (this.#driver.presign === undefined) throw new Error(`${this.name} makes no URLs.`);
    return this.#driver.presign(this.#prefix + key, options);
  }

  async close(): Promise<void> {
    await this.#driver.close?.();
  }

  #inner(key: string): string {
    return key.slice(this.#prefix.length);
  }
}
