/** A cache for blocks in the Cache Storage of a browser, for the option `cache` of `openReader()`. */
import { InvalidOptionError } from '../base/errors.ts';
import { kinds, OptionTable } from '../base/options.ts';
import type { CacheDriver } from '../storage/contract/driver.ts';

/** Options of `browserCache()`. */
export interface BrowserCacheOptions {
  /** Name of the cache in the Cache Storage of the origin. Default `store-db`. */
  readonly name?: string;
  /** Most blocks that stay, the oldest leave first: 1 or more. A block has some ten kilobytes. Default 2,000. */
  readonly maxBlocks?: number;
}

const cacheOptions = new OptionTable<BrowserCacheOptions>({ name: kinds.named, maxBlocks: kinds.whole(1) });

/** The parts of the Cache Storage that are used: workers and pages have it, where the page came over HTTPS. */
interface BlockCache {
  match(url: string): Promise<{ arrayBuffer(): Promise<ArrayBuffer> } | undefined>;
  put(url: string, response: unknown): Promise<void>;
  delete(url: string): Promise<boolean>;
  keys(): Promise<readonly { readonly url: string }[]>;
}

/** Blocks that are put before their number is looked at again. */
const putsBetweenLooks = 64;
/** The entries of Cache Storage have URLs. Nothing is requested from this one. */
const baseUrl = 'https://store-db.invalid/';

class CacheStorageDriver implements CacheDriver {
  readonly #open: () => Promise<BlockCache>;
  readonly #maxBlocks: number;
  #opened: Promise<BlockCache> | undefined;
  #puts = 0;

  constructor(open: () => Promise<BlockCache>, maxBlocks: number) {
    this.#open = open;
    this.#maxBlocks = maxBlocks;
  }

  #cache(): Promise<BlockCache> {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const found = await (await this.#cache()).match(urlOf(key));
    return found && new Uint8Array(await found.arrayBuffer());
  }

  async set(key: string, bytes: Uint8Array): Promise<void> {
    const cache = await this.#cache();
    await cache.put(urlOf(key), new Response(bytes as Uint8Array<ArrayBuffer>));
    if (this.#puts++ % putsBetweenLooks === 0) await this.#removeOldest(cache);
  }

  /** Entries are listed in the order in which they were put. */
  async #removeOldest(cache: BlockCache): Promise<void> {
    const keys = await cache.keys();
    for (const { url } of keys.slice(0, Math.max(0, keys.length - this.#maxBlocks))) await cache.delete(url);
  }

  async delete(key: string): Promise<void> {
    await (await this.#cache()).delete(urlOf(key));
  }
}

function urlOf(key: string): string {
  return baseUrl + key.split('/').map(encodeURIComponent).join('/');
}

/**
 * Returns a cache that keeps blocks when the page is closed, in the Cache Storage of the browser: `openReader(url, { cache: browserCache() })`.
 * Readers of several bundles may share it, and check what they read from it. Throws `InvalidOptionError`, also where there is no Cache Storage:
 * browsers have it for pages from `https:` and from `localhost`.
 */
export function browserCache(options: BrowserCacheOptions = {}): CacheDriver {
  const { name = 'store-db', maxBlocks = 2000 } = cacheOptions.check('browserCache()', options);
  const { caches } = globalThis as { readonly caches?: { open(name: string): Promise<BlockCache> } };
  if (caches !== undefined) return new CacheStorageDriver(() => caches.open(name), maxBlocks);
  throw new InvalidOptionError(
    'cache',
    'There is no Cache Storage here: browsers have it for pages from https: and localhost. Leave the option `cache` out, or give ' +
      'it an object with get(), set() and delete().',
  );
}
