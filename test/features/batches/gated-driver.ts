/** A driver whose puts a test holds back, refuses, or writes down in their order. */
import { StorageError } from '../../../src/index.ts';
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
} from '../../../src/storage/index.ts';

export class GatedDriver implements StorageDriver {
  readonly name = 'gated';
  readonly certified?: true;
  /** Puts that reach the gate fail without effect. */
  refuse = false;
  /** Resolves once a put waits at the gate. */
  held: Promise<void> = Promise.resolve();
  /** Keys of puts, in the order in which they were made. */
  readonly puts: string[] = [];
  readonly #inner: StorageDriver;
  #pattern: RegExp | undefined;
  #gate: Promise<void> = Promise.resolve();
  #arrived: () => void = () => undefined;

  constructor(inner: StorageDriver) {
    this.#inner = inner;
    if (inner.certified === true) this.certified = true;
  }

  /** Holds puts of matching keys until the returned function is called. */
  hold(pattern: RegExp): () => void {
    let open: () => void = () => undefined;
    this.#pattern = pattern;
    this.#gate = new Promise((resolve) => {
      open = resolve;
    });
    this.held = new Promise((resolve) => {
      this.#arrived = resolve;
    });
    return () => {
      if (!this.refuse) this.#pattern = undefined;
      open();
    };
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#inner.get(key, options);
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    if (this.#pattern?.test(key) === true) {
      this.#arrived();
      await this.#gate;
      if (this.refuse) throw new StorageError(key, 'none', 'Access was denied (403).');
    }
    const result = await this.#inner.put(key, body, options);
    this.puts.push(key);
    return result;
  }

  delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    return this.#inner.delete(keys, options);
  }

  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#inner.list(prefix, options);
  }
}
