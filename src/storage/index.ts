/** What `store-db/lib/storage` exports: the contract of a driver, and the drivers that come with StoreDb. */
export type { CacheDriver } from './cache-driver.ts';
export { DiskCacheDriver, type DiskCacheDriverOptions } from './disk-cache.ts';
export type {
  CopyResult,
  DeleteResult,
  FoundObject,
  GetOptions,
  GetResult,
  ListEntry,
  ListOptions,
  ListPage,
  ObjectCopyOptions,
  DownloadHeaders,
  PresignOptions,
  PutBody,
  PutCondition,
  PutOptions,
  PutResult,
  RemoveUploadsOptions,
  RequestOptions,
  StorageDriver,
} from './driver.ts';
export { FileDriver, type FileDriverOptions } from './file.ts';
export { ObjectStoreDriver } from './object-store.ts';
export type { ObjectStoreDriverOptions, ServerSideEncryption } from './object-store-options.ts';
export { MemoryDriver, type MemoryDriverOptions } from './memory.ts';
export { ObservedDriver, type ObservedDriverOptions, type ObservedRequest, type RequestCounts } from './observed.ts';
export { StorageError, type RequestOutcome } from '../base/errors.ts';
