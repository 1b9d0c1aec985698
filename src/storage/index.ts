/** The exports of `store-db/lib/storage`: the contract of a driver, and the drivers that come with StoreDb. */
export type { CacheDriver } from './contract/driver.ts';
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
} from './contract/driver.ts';
export { FileDriver, type FileDriverOptions } from './file/file-driver.ts';
export { StaticFolderDriver } from './file/static-folder-driver.ts';
export { AzureBlobDriver } from './azure/azure-blob-driver.ts';
export type { AzureBlobDriverOptions, AzureTokenCredential } from './azure/azure-options.ts';
export { GoogleCloudStorageDriver } from './google/google-cloud-storage-driver.ts';
export type { GoogleCloudStorageDriverOptions, GoogleCredentials } from './google/google-options.ts';
export { ObjectStoreDriver } from './s3/object-store-driver.ts';
export type { ObjectStoreDriverOptions, ServerSideEncryption } from './s3/object-store-options.ts';
export { MemoryDriver, type MemoryDriverOptions } from './memory-driver.ts';
export {
  ObservedDriver,
  type ObservedDriverOptions,
  type ObservedRequest,
  type RequestCounts,
} from './wrap/observed-driver.ts';
export { StorageError, type RequestOutcome } from '../base/errors.ts';
export { storeFromUrl, type StoreOfUrl } from './store-url.ts';
