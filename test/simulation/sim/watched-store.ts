/** The store that all nodes share: the driver in memory, with the oracle looking at every write and every deletion. */
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
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
} from '../../../src/storage/contract/driver.ts';
import { block0Name } from '../../../src/format/object-names.ts';
import type { Environment } from '../../../src/base/env.ts';
import { compareBytes } from '../../../src/base/bytes.ts';
import type { EnvelopeOracle } from './encryption.ts';
import type { Judge } from './judge.ts';
import type { Ledger } from './ledger.ts';
import type { Reachable } from './reachable.ts';
import type { StoredRows } from './stored-rows.ts';

export interface WatchedStoreOptions {
  readonly prefix: string;
  readonly ledger: Ledger;
  readonly reachable: Reachable;
  readonly storedRows: StoredRows;
  readonly judge: Judge;
  readonly environment: Environment;
  readonly envelopes: EnvelopeOracle;
  /** Kept up to date: what is in the store, for the oracle, by names without the prefix. */
  readonly objects: Map<string, Uint8Array>;
}

export class WatchedStore implements StorageDriver {
  readonly name = 'simulated';
  readonly certified = true;
  readonly #options: WatchedStoreOptions;
  readonly #memory: MemoryDriver;
  /** How many objects were written. */
  writes = 0;

  constructor(options: WatchedStoreOptions) {
    this.#options = options;
    this.#memory = new MemoryDriver({ environment: options.environment });
  }

  storeTimeMs(): number {
    return this.#options.environment.now();
  }

  #nameOf(key: string): string {
    const start = `${this.#options.prefix}/`;
    return key.startsWith(start) ? key.slice(start.length) : key;
  }

  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.#memory.get(key, options);
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    const { objects, ledger, reachable, storedRows, judge, envelopes } = this.#options;
    const name = this.#nameOf(key);
    const opening = body instanceof Uint8Array ? envelopes.contentOf(name, body) : undefined;
    // Before it is there: then everything about it happens at once.
    const opened = opening === undefined ? undefined : await opening.catch(() => undefined);
    const result = await this.#memory.put(key, body, options);
    if (result.status !== 'written') return result;
    this.writes++;
    const existed = objects.has(name);
    try {
      if (!(body instanceof Uint8Array)) throw new Error('a stream was put');
      if (opening !== undefined && opened === undefined) throw new Error('none of the keys opens it');
      const content = opened ?? body;
      // It may be rewritten, if nothing but its envelope changes.
      const before = objects.get(name);
      const isRewritten = opened !== undefined && before !== undefined && compareBytes(before, content) === 0;
      objects.set(name, new Uint8Array(content));
      if (!isRewritten) ledger.written(name, content, existed);
      if (name === block0Name && ledger.block0 !== undefined) {
        reachable.replaced(ledger.block0);
        storedRows.replaced(ledger.block0);
      }
    } catch (error) {
      judge.fail('encoding', `Object ${name} cannot be read: ${String(error)}`);
    }
    return result;
  }

  async delete(keys: readonly string[]): Promise<DeleteResult> {
    const { objects, reachable } = this.#options;
    for (const key of keys) {
      const name = this.#nameOf(key);
      if (!objects.has(name)) continue;
      reachable.deleted(name);
      objects.delete(name);
    }
    return this.#memory.delete(keys);
  }

  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.#memory.list(prefix, options);
  }
}
