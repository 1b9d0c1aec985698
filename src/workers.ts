/** The exports of `store-db/workers`: drivers for Cloudflare's Workers, and other runtimes without Node.js. */
export { R2Driver, type R2DriverOptions } from './storage/r2/r2-driver.ts';
export type {
  R2BucketBinding,
  R2EtagCondition,
  R2Headers,
  R2ObjectFacts,
  R2ObjectWithBody,
  R2Page,
  R2Part,
  R2Upload,
} from './storage/r2/r2-bucket.ts';
export { MemoryDriver, type MemoryDriverOptions } from './storage/memory-driver.ts';
