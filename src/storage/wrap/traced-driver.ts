/** A driver around another one that tells each request on the channel `store-db:request`, if anybody listens. */
import { requests } from '../../base/tracing.ts';
import type { TracedRequest } from '../../base/tracing.ts';
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
} from '../contract/driver.ts';
import { WrappedDriver } from './wrapped-driver.ts';

export class TracedDriver extends WrappedDriver implements StorageDriver {
  readonly #database: string;

  /** `database`: the prefix of the database that the requests are for. */
  constructor(inner: StorageDriver, database: string) {
    super(inner);
    this.#database = database;
    const { copy } = this;
    if (copy !== undefined) {
      this.copy = (from, to, options) => this.#tell('copy', to, () => copy(from, to, options));
    }
  }

  override get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#tell('get', key, () => super.get(key, options));
  }

  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.#tell('put', key, () => super.put(key, body, options));
  }

  override delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    return this.#tell('delete', keys[0] ?? '', () => super.delete(keys, options));
  }

  override list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#tell('list', prefix, () => super.list(prefix, options));
  }

  #tell<T>(kind: TracedRequest['kind'], key: string, send: () => Promise<T>): Promise<T> {
    return requests.run((startedMs) => ({ database: this.#database, startedMs, kind, key }), send);
  }
}
