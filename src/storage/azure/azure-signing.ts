/** Signs download URLs: with the key of the account, or with a user delegation key, which the account gives for a token. */
import type { UserDelegationKey } from '@azure/storage-blob';
import { StorageError } from '../../base/errors.ts';
import { defined } from '../../base/options.ts';
import type { PresignOptions } from '../contract/driver.ts';
import type { OpenClient } from './azure-client.ts';
import type { CheckedAzureOptions } from './azure-options.ts';
import type { AzureRequests } from './azure-requests.ts';

/** Longest time for which a user delegation key is good, in milliseconds. */
const maxKeyMs = 7 * 86_400_000;

/** Signs download URLs for the blobs of a container. */
export class UrlSigner {
  readonly #requests: AzureRequests;
  readonly #options: CheckedAzureOptions;
  /** The delegation key, which signs URLs until it expires. */
  #key: { readonly key: UserDelegationKey; readonly untilMs: number } | undefined;

  constructor(requests: AzureRequests, options: CheckedAzureOptions) {
    this.#requests = requests;
    this.#options = options;
  }

  /** Returns a URL from which anyone can download the blob until it expires. Rejects with `StorageError`. */
  async sign(key: string, { expiresInSeconds, contentType, contentDisposition }: PresignOptions): Promise<string> {
    const { environment, container, endpoint, sasToken, account = '' } = this.#options;
    if (sasToken !== undefined) {
      const message = `A shared access signature cannot sign a download URL for ${key}. Pass an account key or a credential.`;
      throw new StorageError(key, 'none', message);
    }
    const open = await this.#requests.open();
    const { sdk } = open;
    const nowMs = open.timeMs() ?? environment.now();
    const expiresMs = nowMs + expiresInSeconds * 1000;
    const values = {
      containerName: container,
      blobName: key,
      permissions: sdk.BlobSASPermissions.parse('r'),
      expiresOn: new Date(expiresMs),
      ...(endpoint.startsWith('https:') ? { protocol: sdk.SASProtocol.Https } : {}),
      ...defined({ contentType, contentDisposition }),
    };
    const blob = open.container.getBlobClient(key);
    if (open.credential === undefined) return blob.generateSasUrl(values);
    const delegated = await this.#delegationKey(open, nowMs, expiresMs);
    return `${blob.url}?${sdk.generateBlobSASQueryParameters(values, delegated, account).toString()}`;
  }

  async #delegationKey(open: OpenClient, nowMs: number, expiresMs: number): Promise<UserDelegationKey> {
    const known = this.#key;
    if (known !== undefined && known.untilMs >= expiresMs) return known.key;
    const untilMs = nowMs + maxKeyMs;
    const name = { operation: 'Get User Delegation Key', key: '' };
    const key = await this.#requests.send(name, { attempts: 2 }, (_, abortSignal) =>
      open.service().getUserDelegationKey(new Date(nowMs), new Date(untilMs), { abortSignal }),
    );
    this.#key = { key, untilMs };
    return key;
  }
}
