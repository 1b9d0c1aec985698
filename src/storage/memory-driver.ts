/**
 * A store in the memory of the process, for tests, examples and caches. Nothing outlives the process.
 *
 * `put` copies the bytes, so the caller may reuse its buffer. `get` returns a view of the stored bytes, which callers must not
 * write to: another copy would cost more than everything else that this driver does.
 */
import { isBytes } from '../base/brands.ts';
import type {
  CopyResult,
  DeleteResult,
  GetOptions,
  GetResult,
  ListEntry,
  ListOptions,
  ListPage,
  PutBody,
  PutOptions,
  PutResult,
  RequestOptions,
  StorageDriver,
} from './contract/driver.ts';
import { realEnvironment, type Environment } from '../base/env.ts';
import { toHex, compareStrings } from '../base/bytes.ts';
import { kinds, OptionTable } from '../base/options.ts';
import { checkKey, checkList, checkNotAborted, clipRange, wholeBody } from './contract/requests.ts';

interface StoredObject {
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly lastModifiedMs: number;
}

/** Options of `MemoryDriver`. */
export interface MemoryDriverOptions {
  /** Clock and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

const driverOptions = new OptionTable<MemoryDriverOptions>({ environment: kinds.environment });

/** Keeps every object in memory. Instances share nothing; several databases may share one instance. */
export class MemoryDriver implements StorageDriver {
  readonly name = 'memory';
  readonly certified = true;
  /** Set only with an injected clock: instances read the runtime's clock themselves. */
  readonly storeTimeMs?: () => number;
  readonly #environment: Environment;
  readonly #objects = new Map<string, StoredObject>();
  /** Every key, in the order of its UTF-8 bytes. */
  #keys: string[] = [];
  /** Makes ETags unique across instances too, so that no ETag of one instance matches in another. */
  readonly #etagPrefix: string;
  #writes = 0;

  /** Makes an empty store. Throws `InvalidOptionError`. */
  constructor(options: MemoryDriverOptions = {}) {
    const { environment } = driverOptions.check('new MemoryDriver()', options);
    this.#environment = environment ?? realEnvironment;
    if (environment !== undefined) this.storeTimeMs = () => this.#environment.now();
    this.#etagPrefix = toHex(this.#environment.randomBytes(6));
  }

  async get(key: string, options?: GetOptions): Promise<GetResult> {
    checkKey(key);
    checkNotAborted(key, options?.signal);
    const object = this.#objects.get(key);
    if (object === undefined) return { status: 'missing' };
    if (options?.ifNoneMatch === object.etag) return { status: 'unchanged' };
    const sizeBytes = object.bytes.length;
    const { start, end } = clipRange(key, options?.range, sizeBytes);
    const { etag, lastModifiedMs } = object;
    return { status: 'found', bytes: object.bytes.subarray(start, end), etag, sizeBytes, lastModifiedMs };
  }

  async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    checkKey(key);
    checkNotAborted(key, options.signal);
    const bytes = isBytes(body) ? new Uint8Array(body) : await wholeBody(key, body, options.signal);
    // No await from here on: checking the condition and replacing the object are one atomic step.
    checkNotAborted(key, options.signal);
    const current = this.#objects.get(key);
    const condition = options.if;
    if (condition === 'absent' && current !== undefined) return { status: 'lost' };
    if (typeof condition === 'object' && current?.etag !== condition.etag) return { status: 'lost' };
    if (current === undefined) this.#insertKey(key);
    const etag = this.#newEtag();
    this.#objects.set(key, { bytes, etag, lastModifiedMs: this.#environment.now() });
    return { status: 'written', etag };
  }

  async delete(keys: readonly string[], options?: RequestOptions): Promise<DeleteResult> {
    for (const key of keys) checkKey(key);
    checkNotAborted(keys[0] ?? '', options?.signal);
    let removed = 0;
    for (const key of keys) if (this.#objects.delete(key)) removed++;
    if (removed > 8) this.#keys = this.#keys.filter((key) => this.#objects.has(key));
    else if (removed > 0) for (const key of keys) this.#removeKey(key);
    return { failed: [] };
  }

  async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    const limit = checkList(prefix, options);
    checkNotAborted(prefix, options?.signal);
    const after = options?.after;
    const entries: ListEntry[] = [];
    let at = this.#indexOf(prefix);
    if (after !== undefined && compareStrings(after, prefix) >= 0) {
      at = this.#indexOf(after);
      if (this.#keys[at] === after) at++;
    }
    for (; at < this.#keys.length && entries.length < limit; at++) {
      const key = this.#keys[at] as string;
      if (!key.startsWith(prefix)) break;
      const object = this.#objects.get(key) as StoredObject;
      entries.push({ key, sizeBytes: object.bytes.length, lastModifiedMs: object.lastModifiedMs });
    }
    const more = this.#keys[at]?.startsWith(prefix) === true;
    return { entries, more };
  }

  async copy(from: string, to: string, options?: RequestOptions): Promise<CopyResult> {
    checkKey(from);
    checkKey(to);
    checkNotAborted(to, options?.signal);
    const object = this.#objects.get(from);
    if (object === undefined) return { status: 'refused' };
    if (!this.#objects.has(to)) this.#insertKey(to);
    // The bytes are never written, so two objects may share them.
    this.#objects.set(to, { bytes: object.bytes, etag: this.#newEtag(), lastModifiedMs: this.#environment.now() });
    return { status: 'copied' };
  }

  #newEtag(): string {
    return `${this.#etagPrefix}-${++this.#writes}`;
  }

  /** Returns the position of `key` among the keys, or the position at which to insert it. */
  #indexOf(key: string): number {
    let low = 0;
    let high = this.#keys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareStrings(this.#keys[middle] as string, key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #insertKey(key: string): void {
    this.#keys.splice(this.#indexOf(key), 0, key);
  }

  #removeKey(key: string): void {
    const at = this.#indexOf(key);
    if (this.#keys[at] === key && !this.#objects.has(key)) this.#keys.splice(at, 1);
  }
}
