/** The store that all nodes share: the driver in memory, with the oracle looking at every write. */
import { MemoryDriver } from '../../src/storage/memory.ts';
import type {
  DeleteResult,
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  StorageDriver,
} from '../../src/storage/driver.ts';
import type { Environment } from '../../src/base/env.ts';
import type { Judge } from './judge.ts';
import type { Ledger } from './ledger.ts';

export class WatchedStore implements StorageDriver {
  readonly name = 'simulated';
  readonly certified = true;
  readonly #memory: MemoryDriver;
  readonly #prefix: string;
  readonly #ledger: Ledger;
  readonly #judge: Judge;
  readonly #names = new Set<string>();

  constructor(prefix: string, ledger: Ledger, judge: Judge, environment: Environment) {
    this.#memory = new MemoryDriver({ environment });
    this.#prefix = `${prefix}/`;
    this.#ledger = ledger;
    this.#judge = judge;
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#memory.get(key, options);
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const result = await this.#memory.put(key, body, options);
    if (result.status !== 'written') return result;
    const name = key.startsWith(this.#prefix) ? key.slice(this.#prefix.length) : key;
    const existed = this.#names.has(name);
    this.#names.add(name);
    try {
      if (!(body instanceof Uint8Array)) throw new Error('a stream was put');
      this.#ledger.written(name, body, existed);
    } catch (error) {
      this.#judge.fail('encoding', `Object ${name} cannot be read: ${String(error)}`);
    }
    return result;
  }

  async delete(keys: readonly string[]): Promise<DeleteResult> {
    for (const key of keys) this.#names.delete(key.slice(this.#prefix.length));
    return this.#memory.delete(keys);
  }

  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#memory.list(prefix, options);
  }
}
