/** Where an instance's blocks come from: its pool of memory, the cache of the user's own behind it, and the store. */
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { ExternalCache } from '../cache/external-cache.ts';
import type { SharedMemory } from '../cache/memory-shares.ts';
import { SplitPool } from '../cache/memory-pool.ts';
import type { CacheDriver } from '../storage/contract/cache-driver.ts';
import type { StorageDriver } from '../storage/contract/driver.ts';
import { BlockReader } from '../tree/block-source.ts';

export interface BlockMemoryOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly logger: Logger;
  readonly maxMemoryBytes: number;
  /** What the instance shares with others, if it does. */
  readonly memory: SharedMemory | undefined;
  readonly cacheBlockSize: number;
  readonly cacheDriver: CacheDriver | undefined;
}

export interface BlockMemory {
  readonly pool: SplitPool;
  readonly second: ExternalCache | undefined;
  readonly reader: BlockReader;
}

export function makeBlockMemory(options: BlockMemoryOptions): BlockMemory {
  const { environment, driver, prefix, logger, maxMemoryBytes: maxBytes, memory: shared, cacheDriver } = options;
  const pool = new SplitPool({ maxBytes, blockBytes: options.cacheBlockSize, shared });
  const second = cacheDriver && new ExternalCache({ driver: cacheDriver, environment, logger });
  return { pool, second, reader: new BlockReader(driver, prefix, pool.cache, { second, memory: pool }) };
}
