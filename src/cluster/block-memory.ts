/** Where an instance's blocks come from: its pool of memory, the cache of the user's own behind it, and the store. */
import type { Environment } from '../base/env.ts';
import type { Logger } from '../base/logger.ts';
import { SecondCache } from '../memory/second-cache.ts';
import { SplitPool } from '../memory/split-pool.ts';
import type { CacheDriver } from '../storage/cache-driver.ts';
import type { StorageDriver } from '../storage/driver.ts';
import { BlockReader } from '../tree/block-source.ts';

export interface BlockMemoryOptions {
  readonly environment: Environment;
  readonly driver: StorageDriver;
  readonly prefix: string;
  readonly logger: Logger;
  readonly maxMemoryBytes: number;
  readonly cacheBlockSize: number;
  readonly cacheDriver: CacheDriver | undefined;
}

export interface BlockMemory {
  readonly pool: SplitPool;
  readonly second: SecondCache | undefined;
  readonly reader: BlockReader;
}

/** `committedBytes`: what the committed cache takes at the moment. */
export function makeBlockMemory(options: BlockMemoryOptions, committedBytes: () => number): BlockMemory {
  const { environment, driver, prefix, logger, maxMemoryBytes, cacheBlockSize, cacheDriver } = options;
  const pool = new SplitPool({ maxBytes: maxMemoryBytes, blockBytes: cacheBlockSize, committedBytes });
  const second = cacheDriver && new SecondCache({ driver: cacheDriver, environment, logger });
  return { pool, second, reader: new BlockReader(driver, prefix, pool.cache, { second, memory: pool }) };
}
