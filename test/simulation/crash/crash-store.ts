/** Where the processes of the crash tests keep their database, in a form that can be handed to a process. */
import { AzureBlobDriver, FileDriver, ObjectStoreDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';

export interface CrashBucket {
  readonly bucket: string;
  readonly endpoint: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A container of Azure Blob Storage. */
export interface CrashContainer {
  readonly container: string;
  readonly endpoint: string;
  readonly account: string;
  readonly accountKey: string;
}

/** A store behind a network, where any request may fail and what was sent may land later. */
export type RemoteStore = CrashBucket | CrashContainer;

export type CrashStore = { readonly folder: string } | RemoteStore;

export function isRemote(store: CrashStore): store is RemoteStore {
  return 'endpoint' in store;
}

export function openStore(store: CrashStore): StorageDriver {
  if (!isRemote(store)) return new FileDriver(store.folder);
  if ('container' in store) return new AzureBlobDriver(store);
  const { bucket, endpoint, region, accessKeyId, secretAccessKey } = store;
  process.env['AWS_ACCESS_KEY_ID'] = accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey;
  return new ObjectStoreDriver({ bucket, endpoint, region });
}
