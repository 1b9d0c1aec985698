/**
 * Checksums of the content of objects: MD5, which the store computes of every object that is not composed of others. Uploads send it,
 * so that the store refuses other bytes, and downloads compare it.
 */
import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { StorageError } from '../../base/errors.ts';
import type { HttpResponse } from '../http/http-connection.ts';

/** Returns a new MD5 digest; undefined if the runtime has none, as in FIPS mode. */
export function newMd5(): Hash | undefined {
  try {
    return createHash('md5');
  } catch {
    return undefined;
  }
}

/** Returns the metadata with the checksum of an object to upload; empty if the runtime has no MD5. */
export function md5Metadata(bytes: Uint8Array): { readonly md5Hash?: string } {
  const digest = newMd5()?.update(bytes);
  return digest === undefined ? {} : { md5Hash: digest.digest('base64') };
}

/** Throws `StorageError` if a whole object in a response does not have the checksum that the store has sent with it. */
export function checkContent(key: string, { headers }: Pick<HttpResponse, 'headers'>, bytes: Uint8Array): void {
  // The checksum is of the whole object, as it is stored.
  const stored = headers['x-goog-stored-content-encoding'] ?? 'identity';
  if (headers['content-range'] !== undefined || stored !== 'identity') return;
  const expected = /(?:^|,) ?md5=([\w+/=]+)/.exec(headers['x-goog-hash'] ?? '')?.[1];
  const digest = expected === undefined ? undefined : newMd5();
  if (digest === undefined || digest.update(bytes).digest('base64') === expected) return;
  throw new StorageError(key, 'none', `The response for ${key} has other bytes than its checksum says. Read it again.`);
}
