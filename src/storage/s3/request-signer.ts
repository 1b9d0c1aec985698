/** Signs requests and URLs with the library aws4 (AWS Signature Version 4). */
import { createHash } from 'node:crypto';
import type * as aws4 from 'aws4';
import type { AwsCredentials } from './credentials.ts';

/** The library's function that signs. */
export type Signatures = Pick<typeof aws4, 'sign'>;

/** Loads the library. */
export async function loadSignatures(): Promise<Signatures> {
  // A CommonJS module: some loaders show only its default export.
  const library = (await import('aws4')) as Signatures & { readonly default?: Signatures };
  return library.default ?? library;
}

/** A request to sign. */
export interface UnsignedRequest {
  readonly method: string;
  readonly server: URL;
  /** The encoded path. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
}

/** A request with its signature in the headers, or a URL with it in the query. */
export interface SignedRequest {
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** When, where and by whom a request is signed. */
export interface SigningContext {
  readonly credentials: AwsCredentials;
  readonly region: string;
  readonly atMs: number;
}

/** The hash of an empty body. */
const emptyHash = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** Encodes a text as in a query or a path, with every character that RFC 3986 reserves. */
export function encodeText(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** Encodes a key as the path of a URL. */
export function encodeKey(key: string): string {
  return key.split('/').map(encodeText).join('/');
}

function pathWithQuery(path: string, query: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(query).map(([name, value]) => `${encodeText(name)}=${encodeText(value)}`);
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

/** Returns a time in the form of the header `X-Amz-Date`. */
function amzDate(ms: number): string {
  return new Date(ms).toISOString().replace(/[:-]|\.\d{3}/g, '');
}

function keysOf({ credentials: { accessKeyId, secretAccessKey, sessionToken } }: SigningContext): aws4.Credentials {
  return { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
}

/** Signs a request. The date, the session token and the hash of the body become headers. */
export function signRequest(
  { sign }: Signatures,
  { method, server, path, query, headers, body }: UnsignedRequest,
  context: SigningContext,
): SignedRequest {
  const request = {
    service: 's3',
    region: context.region,
    method,
    path: pathWithQuery(path, query),
    headers: {
      ...headers,
      host: server.host,
      'x-amz-date': amzDate(context.atMs),
      'x-amz-content-sha256': body === undefined ? emptyHash : createHash('sha256').update(body).digest('hex'),
    },
    // Proxies may change it.
    extraHeadersToIgnore: { 'cache-control': true },
  };
  const signed = sign(request, keysOf(context));
  return { path: signed.path as string, headers: signed.headers as Readonly<Record<string, string>> };
}

/** Signs a URL that reads an object. */
export function signUrl(
  { sign }: Signatures,
  { server, path, query }: Pick<UnsignedRequest, 'server' | 'path' | 'query'>,
  context: SigningContext,
  expiresInSeconds: number,
): string {
  const parameters = { ...query, 'X-Amz-Expires': String(expiresInSeconds), 'X-Amz-Date': amzDate(context.atMs) };
  const signed = sign(
    {
      service: 's3',
      region: context.region,
      method: 'GET',
      signQuery: true,
      path: pathWithQuery(path, parameters),
      headers: { host: server.host },
    },
    keysOf(context),
  );
  return `${server.origin}${signed.path as string}`;
}
