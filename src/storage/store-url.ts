/** Drivers from URLs, for applications and the command line: `file:./data#prefix`, `s3://bucket/prefix` and others. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { InvalidOptionError } from '../base/errors.ts';
import { defined } from '../base/options.ts';
import { AzureBlobDriver } from './azure/azure-blob-driver.ts';
import type { StorageDriver } from './contract/driver.ts';
import { FileDriver } from './file/file-driver.ts';
import { GoogleCloudStorageDriver } from './google/google-cloud-storage-driver.ts';
import { MemoryDriver } from './memory-driver.ts';
import { bucketDriver } from './s3/driver-from-env.ts';

/** A store, and the prefix in it if the URL names one. */
export interface StoreOfUrl {
  /** The driver. Nothing has been requested yet. */
  readonly driver: StorageDriver;
  /** The prefix for `dbPrefix`; undefined if the URL names none. */
  readonly prefix: string | undefined;
}

/** A store with its name. */
export interface NamedStore extends StoreOfUrl {
  /** The URL without the prefix and the parameters, for messages. */
  readonly store: string;
  /** Different for different stores, such as two buckets of one name at different endpoints. */
  readonly storeId: string;
}

function refused(message: string): InvalidOptionError {
  return new InvalidOptionError('url', message);
}

function decoded(text: string): string | undefined {
  try {
    const prefix = decodeURIComponent(text);
    return prefix === '' ? undefined : prefix;
  } catch {
    throw refused(`The prefix ${text} has a % that is not followed by two digits: write %25 for a % itself.`);
  }
}

function withoutPrefix(url: string): { readonly store: string; readonly prefix: string | undefined } {
  const at = url.indexOf('#');
  if (at === -1) return { store: url, prefix: undefined };
  return { store: url.slice(0, at), prefix: decoded(url.slice(at + 1)) };
}

function folderOf(store: string): string {
  if (store.startsWith('file://')) {
    try {
      return fileURLToPath(store);
    } catch {
      throw refused(`${store} is not a path: write file:./folder, or file:///folder with three slashes.`);
    }
  }
  const folder = store.slice('file:'.length);
  if (folder === '') throw refused('file: names no folder: write for example file:./data.');
  return path.resolve(folder);
}

function inFolder(url: string): NamedStore {
  const { store, prefix } = withoutPrefix(url);
  const folder = folderOf(store);
  const shown = `file:${folder}`;
  return { store: shown, storeId: shown, driver: new FileDriver(folder), prefix };
}

function inMemory(url: string): NamedStore {
  const { store, prefix } = withoutPrefix(url);
  if (store !== 'memory:') throw refused(`${url} has more than a prefix: write memory: or memory:#prefix.`);
  return { store, storeId: store, driver: new MemoryDriver(), prefix };
}

/** A kind of store with buckets. */
interface BucketKind {
  /** The names of the parameters. */
  readonly parameters: readonly string[];
  /** The name for a bucket of this store. */
  readonly noun: string;
  /** Where credentials belong. */
  readonly credentials: string;
  readonly open: (name: string, parameter: (name: string) => string | undefined) => StorageDriver;
}

const bucketKinds: Readonly<Record<string, BucketKind>> = {
  's3:': {
    parameters: ['endpoint', 'region', 'forcePathStyle'],
    noun: 'bucket',
    credentials: 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY',
    open: (bucket, parameter) => {
      const style = parameter('forcePathStyle');
      const forcePathStyle = style === undefined ? undefined : style === '1' || style === 'true';
      return bucketDriver(
        bucket,
        defined({ endpoint: parameter('endpoint'), region: parameter('region'), forcePathStyle }),
      );
    },
  },
  'azure:': {
    parameters: ['account', 'endpoint'],
    noun: 'container',
    credentials: 'AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN',
    open: (container, parameter) =>
      new AzureBlobDriver({
        container,
        ...defined({ account: parameter('account'), endpoint: parameter('endpoint') }),
      }),
  },
  'gs:': {
    parameters: ['apiEndpoint'],
    noun: 'bucket',
    credentials: 'GOOGLE_APPLICATION_CREDENTIALS',
    open: (bucket, parameter) =>
      new GoogleCloudStorageDriver({ bucket, ...defined({ apiEndpoint: parameter('apiEndpoint') }) }),
  },
};

function inBucket(url: string, scheme: string, { parameters, noun, credentials, open }: BucketKind): NamedStore {
  const example = `${scheme}//${noun}/prefix`;
  if (!URL.canParse(url)) throw refused(`${url} is not a URL: write ${example}.`);
  const { hostname, pathname, searchParams, hash, username, password } = new URL(url);
  if (hostname === '') throw refused(`${url} names no ${noun}: write ${example}.`);
  if (username !== '' || password !== '') {
    throw refused(`Credentials do not belong in a URL: set ${credentials} instead.`);
  }
  const unknown = [...searchParams.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined) {
    throw refused(`The URL has an unknown parameter ${unknown}. The known ones are ${parameters.join(', ')}.`);
  }
  const prefix = decoded(pathname.replace(/^\//, '').replace(/\/$/, '') || hash.slice(1));
  const driver = open(hostname, (name) => searchParams.get(name) ?? undefined);
  const store = `${scheme}//${hostname}`;
  searchParams.sort();
  return { store, storeId: `${store}?${searchParams.toString()}`, driver, prefix };
}

const forms =
  'file:./data, file:/var/lib/data#prefix, s3://bucket/prefix, azure://container/prefix or gs://bucket/prefix';

/** Makes the driver for a URL, and names the store. Throws `InvalidOptionError`. */
export function namedStore(url: string): NamedStore {
  if (url.startsWith('file:')) return inFolder(url);
  if (url.startsWith('memory:')) return inMemory(url);
  const scheme = /^\w+:/.exec(url)?.[0] ?? '';
  const kind = Object.hasOwn(bucketKinds, scheme) ? bucketKinds[scheme] : undefined;
  if (kind !== undefined) return inBucket(url, scheme, kind);
  const hint = /^[./~]/.test(url) || !url.includes(':') ? ` For a folder write file:${url}.` : '';
  throw refused(`'${url}' is no URL of a database. Database URLs look like ${forms}.${hint}`);
}

/**
 * Makes the driver for a URL, and returns it with the prefix in the URL: `file:./data#prefix`, `s3://bucket/prefix?endpoint=…`,
 * `azure://container/prefix?account=…`, `gs://bucket/prefix` or `memory:`. The environment variables set what the URL leaves out.
 * Nothing is requested yet. Throws `InvalidOptionError` for other URLs and unknown parameters.
 */
export function storeFromUrl(url: string): StoreOfUrl {
  if (typeof url !== 'string') {
    throw refused(`storeFromUrl() takes a URL, for instance 's3://bucket/prefix'; it got ${typeof url}.`);
  }
  const { driver, prefix } = namedStore(url);
  return { driver, prefix };
}
