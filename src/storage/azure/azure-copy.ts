/** Copies blobs within a container on the store's side: with one request, or block by block. */
import { forEachOf } from '../../base/pacer.ts';
import { newId } from '../../base/ids.ts';
import type { Environment } from '../../base/env.ts';
import { defined } from '../../base/options.ts';
import { cacheControlOf } from '../../format/object-names.ts';
import type { ObjectCopyOptions } from '../contract/driver.ts';
import type { AttemptOptions, RequestTally } from '../contract/request-attempts.ts';
import { storageScope } from './azure-client.ts';
import type { OpenClient } from './azure-client.ts';
import { statusOf, TokenError } from './azure-errors.ts';
import type { AzureRequests } from './azure-requests.ts';
import { blockAttempts, blockId } from './azure-upload.ts';

/** Largest blob that one request copies, and size of the blocks of larger ones, in bytes. */
const copyBytes = 256 * 1024 * 1024;
const blocksAtOnce = 4;
/** How long a signature for the source is good, in milliseconds. */
const signatureMs = 3_600_000;

/** A copy to make. */
export interface BlobCopy {
  readonly requests: AzureRequests;
  readonly environment: Environment;
  readonly cacheHeaders: boolean;
  readonly from: string;
  readonly to: string;
  readonly options: ObjectCopyOptions;
  readonly tally: RequestTally;
}

/** Statuses of a store that cannot copy the blob, or cannot copy at all; reading and writing may still work. */
const refusals = new Set([400, 401, 403, 404, 405, 409, 411, 501]);

/** Whether the store refused a copy without effect. */
export function isCopyRefusal(error: unknown): boolean {
  return refusals.has(statusOf(error) ?? 0);
}

interface Source {
  readonly url: string;
  readonly sourceAuthorization?: { readonly scheme: 'Bearer'; readonly value: string };
}

/** Returns the source of a copy with the permission to read it, which Azure checks apart from the permission to write. */
async function sourceOf(
  { sdk, container, credential, timeMs }: OpenClient,
  key: string,
  nowMs: number,
): Promise<Source> {
  const blob = container.getBlobClient(key);
  if (credential !== undefined) {
    const access = await credential.getToken(storageScope);
    if (access === null) throw new TokenError('none for the scope of storage accounts');
    return { url: blob.url, sourceAuthorization: { scheme: 'Bearer', value: access.token } };
  }
  // The URL holds the shared access signature, if there is one.
  if (new URL(blob.url).searchParams.has('sig')) return { url: blob.url };
  const permissions = sdk.BlobSASPermissions.parse('r');
  return { url: await blob.generateSasUrl({ permissions, expiresOn: new Date((timeMs() ?? nowMs) + signatureMs) }) };
}

/** Copies a blob. Rejects with `StorageError`, or with an error for which {@link isCopyRefusal} is true. */
export async function copyBlob(copy: BlobCopy): Promise<void> {
  const { requests, environment, from, to, options, tally } = copy;
  const { sizeBytes = 0, signal } = options;
  if (sizeBytes > copyBytes) {
    await copyInBlocks(copy, sizeBytes);
    return;
  }
  const sending: AttemptOptions = { signal, sizeBytes, attempts: blockAttempts, tally, isAnswer: isCopyRefusal };
  await requests.send({ operation: 'Copy Blob From URL', key: to }, sending, async (open, abortSignal) => {
    const { url, ...source } = await sourceOf(open, from, environment.now());
    await open.container.getBlobClient(to).syncCopyFromURL(url, { ...source, abortSignal });
  });
}

async function copyInBlocks(copy: BlobCopy, sizeBytes: number): Promise<void> {
  const { requests, environment, from, to, options, tally } = copy;
  const { contentType, signal } = options;
  const mark = newId(environment, 16);
  const ids = Array.from({ length: Math.ceil(sizeBytes / copyBytes) }, (_, index) => blockId(mark, index));
  const sending: AttemptOptions = { signal, attempts: blockAttempts, tally, isAnswer: isCopyRefusal };
  await forEachOf([...ids.entries()], blocksAtOnce, async ([index, id]) => {
    const start = index * copyBytes;
    const count = Math.min(copyBytes, sizeBytes - start);
    await requests.send(
      { operation: 'Put Block From URL', key: to },
      { ...sending, sizeBytes: count },
      async (open, abortSignal) => {
        const { url, ...source } = await sourceOf(open, from, environment.now());
        const target = open.container.getBlockBlobClient(to);
        await target.stageBlockFromURL(id, url, start, count, { ...source, abortSignal });
      },
    );
  });
  const blobCacheControl = copy.cacheHeaders ? cacheControlOf(to) : undefined;
  const headers = { blobHTTPHeaders: defined({ blobContentType: contentType, blobCacheControl }) };
  await requests.send({ operation: 'Put Block List', key: to }, sending, ({ container }, abortSignal) =>
    container.getBlockBlobClient(to).commitBlockList(ids, { ...headers, abortSignal }),
  );
}
