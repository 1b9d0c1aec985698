/** Lists a bucket, page by page. */
import { defined } from '../../base/defined.ts';
import { StorageError } from '../../base/errors.ts';
import type { ListEntry, ListOptions, ListPage } from '../contract/driver.ts';
import type { ObjectStoreRequests } from './object-store-requests.ts';

/** Pages without an entry that are skipped in one call: a store may say that more follow after none at all. */
const maxEmptyPages = 100;

function decodeKey(key: string, isEncoded: boolean): string {
  return isEncoded ? decodeURIComponent(key.replaceAll('+', ' ')) : key;
}

export async function listObjects(
  requests: ObjectStoreRequests,
  bucket: string,
  prefix: string,
  options: ListOptions & { readonly limit: number },
): Promise<ListPage> {
  const { after, limit, signal } = options;
  const request = { operation: 'ListObjectsV2', bucket, key: prefix };
  for (let token: string | undefined, empty = 0; ; empty++) {
    const input = {
      Bucket: bucket,
      Prefix: prefix,
      MaxKeys: limit,
      // XML has no way to write some characters that keys may have.
      EncodingType: 'url' as const,
      ...(after === undefined || token !== undefined ? {} : { StartAfter: after }),
      ...defined({ ContinuationToken: token }),
    };
    const page = await requests.send(request, { signal }, ({ s3, client }, inner) =>
      client.send(new s3.ListObjectsV2Command(input), { abortSignal: inner }),
    );
    const isEncoded = page.EncodingType === 'url';
    const entries = (page.Contents ?? []).map(
      ({ Key, Size, LastModified }): ListEntry => ({
        key: decodeKey(Key ?? '', isEncoded),
        sizeBytes: Size ?? 0,
        lastModifiedMs: LastModified?.getTime() ?? 0,
      }),
    );
    const more = page.IsTruncated === true;
    if (entries.length > 0 || !more) return { entries, more };
    token = page.NextContinuationToken;
    if (token === undefined || empty >= maxEmptyPages) {
      throw new StorageError(prefix, 'none', `The listing of ${prefix} goes on for ever without an entry.`);
    }
  }
}
