/**
 * The client of `AzureBlobDriver`. The SDK is loaded with the first request, so that applications on other drivers do not need
 * it. The SDK signs and reads; the requests themselves go through StoreDb's connection, which bounds responses and follows the
 * proxies of the environment.
 */
import type * as sdkModule from '@azure/storage-blob';
import type { ContainerClient, StoragePipelineOptions, StorageSharedKeyCredential } from '@azure/storage-blob';
import { isBytes } from '../../base/brands.ts';
import { packageError } from '../contract/optional-package.ts';
import { ResponseClock } from '../contract/store-clock.ts';
import { HttpConnection, readText } from '../http/http-connection.ts';
import type { HttpResponse } from '../http/http-connection.ts';
import { secretsIn, secretsInUrl, withoutKnown } from '../http/secrets.ts';
import { dateHeader, skewMs, TokenError } from './azure-errors.ts';
import type { AzureTokenCredential, CheckedAzureOptions } from './azure-options.ts';

/** The SDK's module. */
export type AzureModule = typeof sdkModule;

/** The SDK's interface for the code that sends requests. */
type HttpClient = NonNullable<StoragePipelineOptions['httpClient']>;
type SdkRequest = Parameters<HttpClient['sendRequest']>[0];
type SdkResponse = Awaited<ReturnType<HttpClient['sendRequest']>>;

/** An open client. */
export interface OpenClient {
  readonly sdk: AzureModule;
  readonly container: ContainerClient;
  /** Returns the client of the account, for keys that sign download URLs. */
  readonly service: () => sdkModule.BlobServiceClient;
  /** The credential that gives tokens; undefined with a key or a shared access signature. */
  readonly credential: AzureTokenCredential | undefined;
  /** Returns the header `Server` of the store, once it has responded. */
  readonly server: () => string | undefined;
  /** Returns the store's time, by the date of its last response. */
  readonly timeMs: () => number | undefined;
  /** Closes its connections. */
  readonly close: () => void;
}

/** Most bytes of a response other than an object's content. */
const maxAnswerBytes = 32 * 1024 * 1024;
/** The scope of tokens for all storage accounts. */
export const storageScope = 'https://storage.azure.com/.default';

async function loadSdk(): Promise<AzureModule> {
  try {
    return await import('@azure/storage-blob');
  } catch (error) {
    throw packageError('@azure/storage-blob', 'AzureBlobDriver', error);
  }
}

async function defaultCredential(): Promise<AzureTokenCredential> {
  try {
    const { DefaultAzureCredential } = await import('@azure/identity');
    return new DefaultAzureCredential();
  } catch (error) {
    throw packageError('@azure/identity', 'AzureBlobDriver without a key, a signature and a credential', error);
  }
}

/** Returns the credential with errors that say that no request was sent. */
function namingFailures(credential: AzureTokenCredential): AzureTokenCredential {
  return {
    getToken: async (...call) => {
      try {
        return await credential.getToken(...call);
      } catch (error) {
        throw new TokenError(error);
      }
    },
  };
}

/** Loads the SDK and makes a client. Nothing is requested yet. */
export async function openClient(options: CheckedAzureOptions): Promise<OpenClient> {
  const { container, endpoint, account = '', accountKey, sasToken, environment } = options;
  const sdk = await loadSdk();
  const isSecret = accountKey !== undefined || sasToken !== undefined;
  const credential = isSecret ? undefined : namingFailures(options.credential ?? (await defaultCredential()));
  const connection = new HttpConnection({ environment });
  const key = accountKey === undefined ? undefined : new sdk.StorageSharedKeyCredential(account, accountKey);
  const transport = new Transport(connection, () => environment.monotonicMs(), key);
  const pipeline = sdk.newPipeline(
    key ?? credential,
    // A retried conditional put would meet its own success and report a lost race, so its caller decides what to do next.
    { retryOptions: { maxTries: 1 }, httpClient: transport, userAgentOptions: { userAgentPrefix: 'store-db' } },
  );
  const query = sasToken === undefined ? '' : `?${sasToken}`;
  return {
    sdk,
    container: new sdk.ContainerClient(`${endpoint}/${container}${query}`, pipeline),
    service: () => new sdk.BlobServiceClient(`${endpoint}${query}`, pipeline),
    credential,
    server: () => transport.server,
    timeMs: () => transport.timeMs,
    close: () => connection.close(),
  };
}

/** Sends the SDK's requests, each once. */
class Transport implements HttpClient {
  readonly #connection: HttpConnection;
  readonly #clock: ResponseClock;
  readonly #key: StorageSharedKeyCredential | undefined;
  /** The header `Server` of the last response. */
  server: string | undefined;

  constructor(connection: HttpConnection, monotonicMs: () => number, key: StorageSharedKeyCredential | undefined) {
    this.#connection = connection;
    this.#clock = new ResponseClock(monotonicMs);
    this.#key = key;
  }

  /** The store's time, once it has responded. */
  get timeMs(): number | undefined {
    return this.#clock.timeMs;
  }

  async sendRequest(request: SdkRequest): Promise<SdkResponse> {
    const { url, method } = request;
    if (this.#key !== undefined && this.timeMs !== undefined) await signAt(request, this.#key, this.timeMs);
    const body = bytesOf(request.body);
    const headers = Object.fromEntries(request.headers.headersArray().map(({ name, value }) => [name, value]));
    // The connection states the length of a body.
    if (body !== undefined) delete headers['content-length'];
    const response = await this.#connection.send({
      method,
      url: new URL(url),
      headers,
      body,
      signal: request.abortSignal as AbortSignal | undefined,
    });
    const secrets = [...secretsIn(headers), ...secretsInUrl(url)];
    this.#note(response, secrets);
    return answer(request, response, secrets);
  }

  #note({ headers }: HttpResponse, secrets: readonly string[]): void {
    const { server, date } = headers;
    if (server !== undefined) this.server = withoutKnown(server, secrets);
    this.#clock.note(date);
  }
}

/**
 * Signs a request again, with the date of the store, if the clock of this machine is far from it: the SDK signs by that clock alone,
 * and the store refuses a date that is a quarter of an hour off.
 */
async function signAt(request: SdkRequest, key: StorageSharedKeyCredential, storeMs: number): Promise<void> {
  const { url, method, headers } = request;
  const body: unknown = request.body;
  const signedMs = Date.parse(headers.get(dateHeader) ?? '');
  if (!(Math.abs(signedMs - storeMs) >= skewMs)) return;
  const date = new Date(storeMs).toUTCString();
  // The SDK's code states a date of its own before it signs.
  const dated = Object.assign(Object.create(headers) as typeof headers, {
    set: (name: string, value: string | number) => headers.set(name, name.toLowerCase() === dateHeader ? date : value),
  });
  const unsent = { request, status: 0, headers } as SdkResponse;
  const signing = key.create({ sendRequest: () => Promise.resolve(unsent) }, {} as Parameters<typeof key.create>[1]);
  await signing.sendRequest({ url, method, body, headers: dated } as SdkRequest);
}

function bytesOf(body: unknown): Uint8Array | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string') return body === '' ? undefined : Buffer.from(body);
  if (isBytes(body)) return body;
  throw new TypeError('The SDK sends a body that is neither text nor bytes.');
}

/**
 * Makes the response that the SDK reads: with a stream if it asked for one, else with a text, which it parses as a whole. A response
 * with an error has none of the secrets of its request: the SDK puts texts of it into its errors.
 */
async function answer(request: SdkRequest, response: HttpResponse, secrets: readonly string[]): Promise<SdkResponse> {
  const { status, headers, body } = response;
  const isError = status >= 400;
  const safe = (text: string): string => (isError ? withoutKnown(text, secrets) : text);
  const json = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, safe(String(value))]));
  const compatible = { toJson: () => json } as unknown as SdkResponse['headers'];
  const statuses = request.streamResponseStatusCodes;
  const isContent = statuses?.has(Number.POSITIVE_INFINITY) === true || statuses?.has(status) === true;
  if (isContent)
    return { request, status, headers: compatible, readableStreamBody: body as unknown as NodeJS.ReadableStream };
  return { request, status, headers: compatible, bodyAsText: safe(await readText(body, maxAnswerBytes)) };
}
