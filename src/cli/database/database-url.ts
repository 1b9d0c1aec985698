/** Where a database is, as one URL: `file:./data`, `s3://bucket/prefix`. */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defined } from '../../base/defined.ts';
import type { StorageDriver } from '../../storage/contract/driver.ts';
import { bucketDriver } from '../../storage/s3/driver-from-env.ts';
import { FileDriver } from '../../storage/file/file-driver.ts';
import { UsageError } from '../terminal/exit-code.ts';

/** A store, and the prefix in it, where the URL names one. */
export interface Location {
  /** The URL without the prefix, to be shown. */
  readonly store: string;
  /** Tells stores apart: also two buckets of one name at different endpoints. */
  readonly storeId: string;
  readonly driver: StorageDriver;
  readonly prefix: string | undefined;
}

const forms = 'file:./data, file:/var/lib/data#prefix or s3://bucket/prefix';

function decoded(text: string): string | undefined {
  try {
    const prefix = decodeURIComponent(text);
    return prefix === '' ? undefined : prefix;
  } catch {
    throw new UsageError(`The prefix ${text} has a % that is not followed by two digits: a % itself is written %25.`);
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
      throw new UsageError(`${store} is no path: write file:./folder, or file:///folder with three slashes.`);
    }
  }
  const folder = store.slice('file:'.length);
  if (folder === '') throw new UsageError('file: names no folder: write file:./data, for instance.');
  return path.resolve(folder);
}

function inFolder(url: string): Location {
  const { store, prefix } = withoutPrefix(url);
  const folder = folderOf(store);
  const shown = `file:${folder}`;
  return { store: shown, storeId: shown, driver: new FileDriver(folder), prefix };
}

const parameters = ['endpoint', 'region', 'forcePathStyle'];

function inBucket(url: string): Location {
  if (!URL.canParse(url)) throw new UsageError(`${url} is no URL: write s3://bucket/prefix.`);
  const { hostname, pathname, searchParams, hash, username, password } = new URL(url);
  if (hostname === '') throw new UsageError(`${url} names no bucket: write s3://bucket/prefix.`);
  if (username !== '' || password !== '') {
    throw new UsageError(
      'Credentials do not belong into a URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.',
    );
  }
  const unknown = [...searchParams.keys()].find((name) => !parameters.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`The URL has a parameter ${unknown}. Those that there are: ${parameters.join(', ')}.`);
  }
  const prefix = decoded(pathname.replace(/^\//, '').replace(/\/$/, '') || hash.slice(1));
  const endpoint = searchParams.get('endpoint') ?? undefined;
  const region = searchParams.get('region') ?? undefined;
  const style = searchParams.get('forcePathStyle') ?? undefined;
  const driver = bucketDriver(hostname, {
    ...defined({ endpoint, region }),
    ...(style !== undefined && { forcePathStyle: style === '1' || style === 'true' }),
  });
  const store = `s3://${hostname}`;
  searchParams.sort();
  return { store, storeId: `${store}?${searchParams.toString()}`, driver, prefix };
}

/** Throws `UsageError`; nothing is read or connected to. */
export function locate(url: string): Location {
  if (url.startsWith('file:')) return inFolder(url);
  if (url.startsWith('s3:')) return inBucket(url);
  const hint = /^[./~]/.test(url) || !url.includes(':') ? ` For a folder write file:${url}.` : '';
  throw new UsageError(`'${url}' is no URL of a database. Those look like ${forms}.${hint}`);
}
