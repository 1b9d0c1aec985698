/**
 * S3 over HTTP: makes the requests of the operations, signs and sends them, and reads the responses.
 *
 * Invariant: a request is sent once. If the store certainly refused it without effect, for the region it was signed for, its date, or
 * credentials that have expired, the error says that the next request will be right.
 */
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { newAbortController } from '../../base/abort.ts';
import type { Environment } from '../../base/env.ts';
import { defined } from '../../base/options.ts';
import { ResponseClock } from '../contract/store-clock.ts';
import { readText } from '../http/http-connection.ts';
import type { HttpConnection, HttpResponse } from '../http/http-connection.ts';
import { accessPointOf, bucketAddress } from './bucket-address.ts';
import type { AddressSettings, BucketAddress } from './bucket-address.ts';
import type { AwsCredentials, CredentialCache } from './credentials.ts';
import { encodeKey, signRequest, signUrl } from './request-signer.ts';
import type { Signatures } from './request-signer.ts';
import { responseError, S3ResponseError } from './response-error.ts';
import type { ResponseMetadata } from './response-error.ts';
import { maxResponseBytes } from './s3-api.ts';
import type {
  CompleteUploadInput,
  CopyObjectInput,
  DeleteObjectsOutput,
  EncryptionInput,
  GetObjectInput,
  GetObjectOutput,
  ListObjectsInput,
  ListObjectsOutput,
  ListUploadsInput,
  ListUploadsOutput,
  ObjectHead,
  ObjectProperties,
  PresignInput,
  PutObjectInput,
  S3Api,
  UploadPartCopyInput,
  UploadPartInput,
  UploadTarget,
  WriteCondition,
  WrittenObject,
} from './s3-api.ts';
import { secretsIn, withoutKnown } from '../http/secrets.ts';
import { buildXml, childrenOf, parseXml, textOf } from './xml.ts';
import type { XmlElement } from './xml.ts';

/** The bucket, the connection and the credentials of the operations. */
export interface HttpS3ApiSettings extends AddressSettings {
  readonly environment: Environment;
  /** The region; undefined to learn it from the store. */
  readonly region: string | undefined;
  readonly connection: HttpConnection;
  readonly credentials: CredentialCache;
  readonly signatures: Signatures;
}

/** The clock's difference from the store's, in milliseconds, from which requests are signed by the store's. */
const skewMs = 4 * 60_000;
/** The region to begin with where none is given: Amazon answers with the right one, and other stores have no regions. */
const firstRegion = 'us-east-1';

/** Codes of refusals that other credentials may end. */
const expiredCodes: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidAccessKeyId',
  'InvalidToken',
  'TokenRefreshRequired',
]);
const redirectStatuses: ReadonlySet<number> = new Set([301, 307, 400, 403]);

/** A request of an operation. */
interface Operation {
  readonly method: string;
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/** A successful response, and the secrets of its request. */
interface Success {
  readonly response: HttpResponse;
  readonly secrets: readonly string[];
}

/** The operations of S3 over HTTP. */
export class HttpS3Api implements S3Api {
  readonly #settings: HttpS3ApiSettings;
  readonly #isAmazon: boolean;
  #region: string;
  /** Whether the region is the one that was set, or the one that the store accepts. */
  #isRegionKnown: boolean;
  #address: BucketAddress;
  /** How far the store's clock is ahead of this machine's, in milliseconds, if the difference matters. */
  #offsetMs = 0;
  #server: string | undefined;
  readonly #clock: ResponseClock;

  constructor(settings: HttpS3ApiSettings) {
    this.#settings = settings;
    this.#clock = new ResponseClock(() => settings.environment.monotonicMs());
    this.#isAmazon = settings.endpoint === undefined;
    const region = accessPointOf(settings.bucket)?.region ?? settings.region;
    this.#isRegionKnown = region !== undefined || !this.#isAmazon;
    this.#region = region ?? firstRegion;
    this.#address = bucketAddress(settings, this.#region);
  }

  async getObject({ Key, Range, IfNoneMatch }: GetObjectInput, signal: AbortSignal): Promise<GetObjectOutput> {
    const checksum = this.#isAmazon && Range === undefined ? 'ENABLED' : undefined;
    const headers = defined({ range: Range, 'if-none-match': IfNoneMatch, 'x-amz-checksum-mode': checksum });
    const { response } = await this.#send({ method: 'GET', key: Key, headers }, signal);
    return {
      ...headOf(response),
      ContentRange: response.headers['content-range'],
      Body: checked(response),
    };
  }

  async headObject({ Key }: { readonly Key: string }, signal: AbortSignal): Promise<ObjectHead> {
    const { response } = await this.#send({ method: 'HEAD', key: Key }, signal);
    await drain(response);
    return headOf(response);
  }

  async putObject(input: PutObjectInput, signal: AbortSignal): Promise<WrittenObject> {
    const { Key, Body } = input;
    const headers = { ...propertyHeaders(input), ...conditionHeaders(input), ...this.#checksumHeaders(Body) };
    return this.#write({ method: 'PUT', key: Key, headers, body: Body }, signal);
  }

  async deleteObject({ Key }: { readonly Key: string }, signal: AbortSignal): Promise<void> {
    const { response } = await this.#send({ method: 'DELETE', key: Key }, signal);
    await drain(response);
  }

  async deleteObjects(keys: readonly string[], signal: AbortSignal): Promise<DeleteObjectsOutput> {
    const body = await buildXml({ Delete: { Object: keys.map((Key) => ({ Key })), Quiet: true } });
    const headers = { 'content-type': 'application/xml', ...this.#checksumHeaders(body), ...digestHeaders(body) };
    const operation: Operation = { method: 'POST', query: { delete: '' }, headers, body };
    const { element, secrets } = await this.#readXml(operation, signal, 'DeleteResult');
    const part = (error: XmlElement, name: string): string | undefined => {
      const text = textOf(error, name);
      return text === undefined || name === 'Key' ? text : withoutKnown(text, secrets);
    };
    return {
      Errors: childrenOf(element, 'Error').map((error) => ({
        Key: part(error, 'Key'),
        Code: part(error, 'Code'),
        Message: part(error, 'Message'),
      })),
    };
  }

  async listObjects(input: ListObjectsInput, signal: AbortSignal): Promise<ListObjectsOutput> {
    const query = defined({
      'list-type': '2',
      'encoding-type': 'url',
      prefix: input.Prefix,
      'max-keys': String(input.MaxKeys),
      'start-after': input.StartAfter,
      'continuation-token': input.ContinuationToken,
    });
    const { element } = await this.#readXml({ method: 'GET', query }, signal, 'ListBucketResult');
    return {
      Contents: childrenOf(element, 'Contents').map((object) => ({
        Key: textOf(object, 'Key'),
        Size: numberOf(textOf(object, 'Size')),
        LastModified: dateOf(textOf(object, 'LastModified')),
      })),
      EncodingType: textOf(element, 'EncodingType'),
      IsTruncated: textOf(element, 'IsTruncated')?.trim() === 'true',
      NextContinuationToken: textOf(element, 'NextContinuationToken'),
    };
  }

  async copyObject(input: CopyObjectInput, signal: AbortSignal): Promise<void> {
    const headers = { 'x-amz-copy-source': input.CopySource, ...encryptionHeaders(input) };
    await this.#readXml({ method: 'PUT', key: input.Key, headers }, signal, 'CopyObjectResult');
  }

  async createUpload(input: ObjectProperties, signal: AbortSignal): Promise<{ UploadId?: string | undefined }> {
    const operation = { method: 'POST', key: input.Key, query: { uploads: '' }, headers: propertyHeaders(input) };
    const { element } = await this.#readXml(operation, signal, 'InitiateMultipartUploadResult');
    return { UploadId: textOf(element, 'UploadId') };
  }

  async uploadPart(input: UploadPartInput, signal: AbortSignal): Promise<WrittenObject> {
    const { Key, UploadId, PartNumber, Body } = input;
    const query = { partNumber: String(PartNumber), uploadId: UploadId };
    return this.#write({ method: 'PUT', key: Key, query, body: Body }, signal);
  }

  async uploadPartCopy(input: UploadPartCopyInput, signal: AbortSignal): Promise<WrittenObject> {
    const { Key, UploadId, PartNumber, CopySource, CopySourceRange } = input;
    const query = { partNumber: String(PartNumber), uploadId: UploadId };
    const headers = { 'x-amz-copy-source': CopySource, 'x-amz-copy-source-range': CopySourceRange };
    const { element } = await this.#readXml({ method: 'PUT', key: Key, query, headers }, signal, 'CopyPartResult');
    return { ETag: textOf(element, 'ETag') };
  }

  async completeUpload(input: CompleteUploadInput, signal: AbortSignal): Promise<WrittenObject> {
    const { Key, UploadId, Parts } = input;
    const Part = Parts.map(({ PartNumber, ETag }) => ({ PartNumber, ETag }));
    const body = await buildXml({
      CompleteMultipartUpload: { Part },
    });
    const headers = { 'content-type': 'application/xml', ...conditionHeaders(input) };
    const operation = { method: 'POST', key: Key, query: { uploadId: UploadId }, headers, body };
    const { element } = await this.#readXml(operation, signal, 'CompleteMultipartUploadResult');
    return { ETag: textOf(element, 'ETag') };
  }

  async abortUpload({ Key, UploadId }: UploadTarget, signal: AbortSignal): Promise<void> {
    const { response } = await this.#send({ method: 'DELETE', key: Key, query: { uploadId: UploadId } }, signal);
    await drain(response);
  }

  async listUploads(input: ListUploadsInput, signal: AbortSignal): Promise<ListUploadsOutput> {
    const query = defined({
      uploads: '',
      prefix: input.Prefix,
      'key-marker': input.KeyMarker,
      'upload-id-marker': input.UploadIdMarker,
    });
    const { element } = await this.#readXml({ method: 'GET', query }, signal, 'ListMultipartUploadsResult');
    return {
      Uploads: childrenOf(element, 'Upload').map((upload) => ({
        Key: textOf(upload, 'Key'),
        UploadId: textOf(upload, 'UploadId'),
        Initiated: dateOf(textOf(upload, 'Initiated')),
      })),
      IsTruncated: textOf(element, 'IsTruncated')?.trim() === 'true',
      NextKeyMarker: textOf(element, 'NextKeyMarker'),
      NextUploadIdMarker: textOf(element, 'NextUploadIdMarker'),
    };
  }

  async presign(input: PresignInput, expiresInSeconds: number): Promise<string> {
    if (!this.#isRegionKnown) await this.#learnRegion();
    const { server, path, query } = this.#address;
    const credentials = await this.#settings.credentials.get();
    const parameters = defined({
      ...query,
      'response-content-type': input.ResponseContentType,
      'response-content-disposition': input.ResponseContentDisposition,
    });
    const request = { server, path: path + encodeKey(input.Key), query: parameters };
    return signUrl(this.#settings.signatures, request, this.#context(credentials), expiresInSeconds);
  }

  server(): string | undefined {
    return this.#server;
  }

  timeMs(): number | undefined {
    return this.#clock.timeMs;
  }

  close(): void {
    this.#settings.connection.close();
  }

  #context(credentials: AwsCredentials): Parameters<typeof signRequest>[2] {
    return { credentials, region: this.#region, atMs: this.#settings.environment.now() + this.#offsetMs };
  }

  /** Headers for a checksum that the store verifies. Other stores than Amazon's refuse some of them. */
  #checksumHeaders(body: Uint8Array): Readonly<Record<string, string>> {
    return this.#isAmazon ? crc32Headers(body) : {};
  }

  /** Sends a request to write bytes; resolves with the new ETag. */
  async #write(operation: Operation, signal: AbortSignal): Promise<WrittenObject> {
    const { response } = await this.#send(operation, signal);
    await drain(response);
    return { ETag: response.headers['etag'] };
  }

  /** Sends a request and reads its document. A store may fail after the status, and then the document is an error. */
  async #readXml(
    operation: Operation,
    signal: AbortSignal,
    root: string,
  ): Promise<{ readonly element: XmlElement; readonly secrets: readonly string[] }> {
    const { response, secrets } = await this.#send(operation, signal);
    const text = await readText(response.body, maxResponseBytes);
    const document = await parseXml(text);
    if (document?.root === root) return { element: document.element, secrets };
    if (document?.root === 'Error') throw await responseError({ ...response, status: 503 }, text, secrets);
    const message = `The response is not the document ${root} that belongs to the request`;
    throw new S3ResponseError('InvalidResponse', message, { httpStatusCode: 502 });
  }

  /** Asks the store for the region of the bucket, which a URL is signed for. */
  async #learnRegion(): Promise<void> {
    const { signal } = newAbortController();
    await this.#send({ method: 'HEAD' }, signal).then(
      ({ response }) => drain(response),
      // The region is learnt from refusals as well.
      () => undefined,
    );
  }

  /** Sends a request; resolves if the store did what was asked, with the body not read yet. */
  async #send(operation: Operation, signal: AbortSignal): Promise<Success> {
    const credentials = await this.#settings.credentials.get(signal);
    const signedRegion = this.#region;
    const { response, secrets } = await this.#sendOnce(operation, credentials, signal);
    this.#note(response, secrets);
    if (response.status >= 200 && response.status < 300) {
      this.#isRegionKnown = true;
      return { response, secrets };
    }
    const text = await readText(response.body, maxResponseBytes);
    const error = await responseError(response, text, secrets);
    if (this.#followRegion(response, error, signedRegion)) throw marked(error, { corrected: 'region' });
    if (expiredCodes.has(error.name) && this.#settings.credentials.refused(credentials)) {
      throw marked(error, { corrected: 'credentials' });
    }
    throw error.name === 'RequestTimeTooSkewed' ? marked(error, { clockSkewCorrected: true }) : error;
  }

  async #sendOnce(operation: Operation, credentials: AwsCredentials, signal: AbortSignal): Promise<Success> {
    const { connection, signatures } = this.#settings;
    const { server, path, query } = this.#address;
    const { method, key, body } = operation;
    const signed = signRequest(
      signatures,
      {
        method,
        server,
        path: key === undefined ? withoutLastSlash(path) : path + encodeKey(key),
        query: { ...query, ...operation.query },
        headers: operation.headers ?? {},
        body,
      },
      this.#context(credentials),
    );
    // Requests that write have a length, also without a body.
    const needsLength = body === undefined && (method === 'PUT' || method === 'POST');
    const headers = needsLength ? { ...signed.headers, 'content-length': '0' } : signed.headers;
    const response = await connection.send({ method, url: server, path: signed.path, headers, body, signal });
    return { response, secrets: secretsIn(signed.headers) };
  }

  /** Notes the server and its clock from the head of a response. */
  #note({ headers }: HttpResponse, secrets: readonly string[]): void {
    const { server, date, age } = headers;
    if (server !== undefined) this.#server = withoutKnown(server, secrets);
    // A cache repeats old dates.
    const storeMs = age === undefined ? this.#clock.note(date) : undefined;
    if (storeMs === undefined) return;
    const offsetMs = storeMs - this.#settings.environment.now();
    if (Math.abs(offsetMs - this.#offsetMs) >= skewMs) this.#offsetMs = Math.abs(offsetMs) < skewMs ? 0 : offsetMs;
  }

  /** Takes the region over that a refusal names. Returns whether it is another one than the request was signed for. */
  #followRegion({ status, headers }: HttpResponse, error: S3ResponseError, signedRegion: string): boolean {
    if (!redirectStatuses.has(status)) return false;
    const { Region } = error as { Region?: unknown };
    const region = headers['x-amz-bucket-region'] ?? Region;
    if (typeof region !== 'string' || !/^[\w-]+$/.test(region)) return false;
    this.#isRegionKnown = true;
    if (region !== this.#region) {
      this.#region = region;
      this.#address = bucketAddress(this.#settings, region);
    }
    return region !== signedRegion;
  }
}

/** Marks the error of a request that was refused for a flaw that the next one will not have. */
function marked(error: S3ResponseError, mark: Partial<ResponseMetadata>): S3ResponseError {
  return Object.assign(error, { $metadata: { ...error.$metadata, ...mark } });
}

function withoutLastSlash(path: string): string {
  return path === '/' ? path : path.slice(0, -1);
}

/** Reads the rest of a response that has no content of interest. */
async function drain({ body }: HttpResponse): Promise<void> {
  await readText(body, maxResponseBytes);
}

function numberOf(text: string | undefined): number | undefined {
  const number = Number(text ?? Number.NaN);
  return Number.isFinite(number) ? number : undefined;
}

function dateOf(text: string | undefined): Date | undefined {
  const date = new Date(text ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : date;
}

const metadataPrefix = 'x-amz-meta-';

function headOf({ headers }: HttpResponse): ObjectHead {
  const metadata = Object.entries(headers).filter(([name]) => name.startsWith(metadataPrefix));
  return {
    ETag: headers['etag'],
    ContentLength: numberOf(headers['content-length']),
    LastModified: dateOf(headers['last-modified']),
    Metadata: Object.fromEntries(metadata.map(([name, value]) => [name.slice(metadataPrefix.length), value ?? ''])),
  };
}

function encryptionHeaders({ ServerSideEncryption, SSEKMSKeyId }: EncryptionInput): Readonly<Record<string, string>> {
  return defined({
    'x-amz-server-side-encryption': ServerSideEncryption,
    'x-amz-server-side-encryption-aws-kms-key-id': SSEKMSKeyId,
  });
}

function propertyHeaders(input: ObjectProperties): Readonly<Record<string, string>> {
  const metadata = Object.entries(input.Metadata ?? {}).map(([name, value]) => [metadataPrefix + name, value]);
  return {
    ...defined({ 'content-type': input.ContentType, 'cache-control': input.CacheControl }),
    ...encryptionHeaders(input),
    ...(Object.fromEntries(metadata) as Record<string, string>),
  };
}

function conditionHeaders({ IfMatch, IfNoneMatch }: WriteCondition): Readonly<Record<string, string>> {
  return defined({ 'if-match': IfMatch, 'if-none-match': IfNoneMatch });
}

/** Returns a CRC-32 in the form of the header. */
function base64Of(crc: number): string {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, crc);
  return Buffer.from(bytes).toString('base64');
}

function crc32Headers(body: Uint8Array): Readonly<Record<string, string>> {
  return { 'x-amz-sdk-checksum-algorithm': 'CRC32', 'x-amz-checksum-crc32': base64Of(crc32(body)) };
}

/** Returns a checksum that every store accepts or ignores: MD5, and CRC-32 where the runtime has no MD5. */
function digestHeaders(body: Uint8Array): Readonly<Record<string, string>> {
  try {
    return { 'content-md5': createHash('md5').update(body).digest('base64') };
  } catch {
    return crc32Headers(body);
  }
}

/** Returns the content of a response, which fails at its end if it does not have the checksum that the store has sent. */
function checked({ headers, body }: HttpResponse): AsyncIterable<Uint8Array> {
  const expected = headers['x-amz-checksum-crc32'];
  // The checksum of an upload in parts is made of the checksums of the parts.
  const isWhole = expected !== undefined && !expected.includes('-') && headers['content-range'] === undefined;
  return isWhole && headers['x-amz-checksum-type'] !== 'COMPOSITE' ? verified(body, expected) : body;
}

async function* verified(
  body: AsyncIterable<Uint8Array>,
  expected: string,
): AsyncGenerator<Uint8Array, void, undefined> {
  let crc = 0;
  for await (const chunk of body) {
    crc = crc32(chunk, crc);
    yield chunk;
  }
  if (base64Of(crc) !== expected) throw new Error('The content of the response does not have its checksum');
}
