/**
 * Signs requests and URLs with AWS Signature Version 4. A signature covers a canonical form of the request: its method, path,
 * parameters, headers and the hash of its body, each in an order and an encoding that the store makes again from the request that it
 * gets.
 */
import { createHash, createHmac } from 'node:crypto';
import { defined } from '../../base/options.ts';
import type { AwsCredentials } from './credentials.ts';

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

const algorithm = 'AWS4-HMAC-SHA256';
/** Headers that are not signed, because proxies may change them. */
const unsigned: ReadonlySet<string> = new Set(['cache-control', 'range']);
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

/** Encodes a path as the store does to check a signature: in the rest of a path, a URL leaves characters that a signature encodes. */
function canonicalPath(path: string): string {
  return path
    .split('/')
    .map((part) => encodeText(decodeURIComponent(part.replaceAll('+', ' '))))
    .join('/');
}

function canonicalQuery(query: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(query).map(([name, value]) => [encodeText(name), encodeText(value)] as const);
  // The names differ.
  pairs.sort(([one], [other]) => (one < other ? -1 : 1));
  return pairs.map(([name, value]) => `${name}=${value}`).join('&');
}

function hashOf(data: string | Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

function hmac(key: string | Uint8Array, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

const dayLength = 8;

/** Names the day, the region and the service that a signature is good for. */
function scopeOf(date: string, { region }: SigningContext): string {
  return `${date.slice(0, dayLength)}/${region}/s3/aws4_request`;
}

/** The canonical headers of a request, as a store sorts them, and the names of these headers. */
function canonicalHeaders(headers: Readonly<Record<string, string>>): readonly [headers: string, names: string] {
  const names = Object.keys(headers)
    .filter((name) => !unsigned.has(name))
    .toSorted();
  const lines = names.map((name) => `${name}:${(headers[name] as string).trim().replace(/\s+/g, ' ')}\n`);
  return [lines.join(''), names.join(';')];
}

/** Signs requests and URLs, and keeps the last signing key. */
export class RequestSigner {
  /** The key that signs, and the secret, the day and the region that it is made of. */
  #key: { readonly of: string; readonly bytes: Uint8Array } | undefined;

  /** Signs a request. The names of its headers are in lower case. The date, the session token and the hash of the body become headers. */
  sign({ method, server, path, query, headers, body }: UnsignedRequest, context: SigningContext): SignedRequest {
    const date = amzDate(context.atMs);
    const bodyHash = body === undefined ? emptyHash : hashOf(body);
    const all = {
      ...headers,
      host: server.host,
      'x-amz-date': date,
      'x-amz-content-sha256': bodyHash,
      ...defined({ 'x-amz-security-token': context.credentials.sessionToken }),
    };
    const [lines, names] = canonicalHeaders(all);
    const canonical = [method, canonicalPath(path), canonicalQuery(query), lines, names, bodyHash].join('\n');
    const scope = scopeOf(date, context);
    const authorization = [
      `${algorithm} Credential=${context.credentials.accessKeyId}/${scope}`,
      `SignedHeaders=${names}`,
      `Signature=${this.#signature(canonical, date, scope, context)}`,
    ].join(', ');
    return { path: pathWithQuery(path, query), headers: { ...all, authorization } };
  }

  /** Returns a signed URL that reads an object. */
  signUrl(
    { server, path, query }: Pick<UnsignedRequest, 'server' | 'path' | 'query'>,
    context: SigningContext,
    expiresInSeconds: number,
  ): string {
    const date = amzDate(context.atMs);
    const scope = scopeOf(date, context);
    const parameters = {
      ...query,
      'X-Amz-Expires': String(expiresInSeconds),
      'X-Amz-Date': date,
      ...defined({ 'X-Amz-Security-Token': context.credentials.sessionToken }),
      'X-Amz-Algorithm': algorithm,
      'X-Amz-Credential': `${context.credentials.accessKeyId}/${scope}`,
      'X-Amz-SignedHeaders': 'host',
    };
    const [lines, names] = canonicalHeaders({ host: server.host });
    const canonical = ['GET', canonicalPath(path), canonicalQuery(parameters), lines, names, 'UNSIGNED-PAYLOAD'];
    const signature = this.#signature(canonical.join('\n'), date, scope, context);
    return `${server.origin}${pathWithQuery(path, { ...parameters, 'X-Amz-Signature': signature })}`;
  }

  #signature(canonical: string, date: string, scope: string, context: SigningContext): string {
    const text = [algorithm, date, scope, hashOf(canonical)].join('\n');
    return hmac(this.#signingKey(scope, context), text).toString('hex');
  }

  /** Returns the key for a day and a region. */
  #signingKey(scope: string, { credentials, region }: SigningContext): Uint8Array {
    const of = `${scope} ${credentials.secretAccessKey}`;
    if (this.#key?.of !== of) {
      const day = scope.slice(0, dayLength);
      const parts = [day, region, 's3', 'aws4_request'];
      this.#key = {
        of,
        bytes: parts.reduce<string | Uint8Array>(hmac, `AWS4${credentials.secretAccessKey}`) as Buffer,
      };
    }
    return this.#key.bytes;
  }
}
