/**
 * The S3 client of `ObjectStoreDriver`. The SDK is loaded with the first request, so that applications on other drivers do not
 * pay for it. The client bounds responses, and removes secrets from errors and responses.
 */
import { pipeline, Readable, Transform } from 'node:stream';
import type * as s3Module from '@aws-sdk/client-s3';
import type { S3Client, S3ClientConfig } from '@aws-sdk/client-s3';
import { isError, isPlainObject } from '../../base/brands.ts';
import { fakedByMs } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { defined } from '../../base/options.ts';

/** The SDK's module of S3 commands. */
export type S3Module = typeof s3Module;

/** The endpoint of the bucket and the client to use. */
export interface ClientOptions {
  readonly environment: Environment;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly forcePathStyle: boolean | undefined;
  /** The client passed by the caller, which is used as it is and never destroyed. */
  readonly client: S3Client | undefined;
}

/** An open client, in two forms. */
export interface OpenClient {
  readonly s3: S3Module;
  readonly client: S3Client;
  /** The client for conditional puts: it sends every request exactly once. */
  readonly single: S3Client;
  /** Returns the header `Server` of the store, once it has responded. */
  server(): string | undefined;
  /** Returns the store's time, by the date of its last response. */
  timeMs(): number | undefined;
  /** Closes its sockets, unless they belong to the caller's client. */
  destroy(): void;
}

/** Most connections, and so most concurrent requests; others wait for a connection. */
const maxSockets = 64;
/** Most bytes of a response other than an object's content: a page of keys, all of them escaped, has 7 MB. */
const maxAnswerBytes = 32 * 1024 * 1024;
/** Time to connect, in milliseconds. */
const connectionTimeoutMs = 5000;

/** Returns the endpoint that the SDK itself takes from the environment, if any. Empty variables count as not set. */
export function environmentEndpoint(): string | undefined {
  return [process.env['AWS_ENDPOINT_URL_S3'], process.env['AWS_ENDPOINT_URL']].find((url) => (url ?? '') !== '');
}

function configOf({ endpoint, region, forcePathStyle }: ClientOptions): S3ClientConfig {
  const agent = { keepAlive: true, maxSockets };
  const isAmazon = endpoint === undefined && environmentEndpoint() === undefined;
  // Other stores have no regions or accept any; Amazon requires the right one.
  const fallbackRegion = isAmazon ? undefined : (process.env['AWS_REGION'] ?? 'us-east-1');
  const chosenRegion = region ?? fallbackRegion;
  // Default checksums break some stores; Amazon verifies them.
  const checksums = isAmazon ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
  return {
    maxAttempts: 1,
    requestChecksumCalculation: checksums,
    responseChecksumValidation: checksums,
    // Host names with the bucket need DNS entries; paths work nearly everywhere.
    forcePathStyle: forcePathStyle ?? !isAmazon,
    requestHandler: {
      connectionTimeout: connectionTimeoutMs,
      httpAgent: agent,
      httpsAgent: agent,
      // Requests are meant to wait for a connection: that needs no warning.
      socketAcquisitionWarningTimeout: 600_000,
    },
    ...defined({ endpoint, region: chosenRegion }),
  };
}

/** Derives a client with changed middleware that shares connections and credentials with another. */
function derivedClient(client: S3Client, change: (stack: S3Client['middlewareStack']) => void): S3Client {
  const middlewareStack = client.middlewareStack.clone();
  change(middlewareStack);
  return Object.create(client, { middlewareStack: { value: middlewareStack } }) as S3Client;
}

function noteAnswers(
  stack: S3Client['middlewareStack'],
  seen: (server: string | undefined, dateMs: number) => void,
): void {
  stack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { headers } = result.response as { headers?: Record<string, string> };
      const sent = (args.request as { headers?: Readonly<Record<string, unknown>> }).headers ?? {};
      const server = headers?.['server'];
      const safe = server === undefined ? undefined : withoutKnown(server, secretsIn(sent));
      seen(safe, Date.parse(headers?.['date'] ?? ''));
      return result;
    },
    // The last step before the connection: the steps before it turn the response into values or errors.
    { name: 'noteAnswers', step: 'deserialize', priority: 'low' },
  );
}

/** Passes a body on, and fails if it is longer than any response may be. */
function bounded(body: Readable): Readable {
  let length = 0;
  const counter = new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      length += chunk.length;
      if (length <= maxAnswerBytes) done(null, chunk);
      else
        done(
          new Error(`The store's response is longer than ${maxAnswerBytes} bytes, the most that a response may have`),
        );
    },
  });
  // The reader of the counter hears of a failure.
  pipeline(body, counter, () => {});
  return counter;
}

/** Bounds all responses other than an object's content, because they are parsed as a whole in memory. */
function boundAnswers(stack: S3Client['middlewareStack']): void {
  stack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args);
        const response = result.response as { statusCode: number; headers?: Record<string, string>; body?: unknown };
        const isContent = commandName === 'GetObjectCommand' && response.statusCode < 300;
        const statedBytes = Number(response.headers?.['content-length'] ?? Number.NaN);
        if (!isContent && response.body instanceof Readable && !(statedBytes <= maxAnswerBytes)) {
          response.body = bounded(response.body);
        }
        return result;
      },
    { name: 'boundAnswers', step: 'deserialize', priority: 'low' },
  );
}

/** Headers that hold secrets. */
const secretHeaders = /authori[sz]ation|token|secret|cookie|credential|customer-key$/;

/**
 * Returns the secrets in the headers of a request. Of a signed request that is the signature: the rest of the header is not
 * secret.
 */
function secretsIn(headers: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (typeof value !== 'string' || !secretHeaders.test(name.toLowerCase())) return [];
    const signature = /Signature=(\w+)/.exec(value)?.[1];
    return [signature ?? value.replace(/^(?:Basic|Bearer) /i, '')];
  });
}

/**
 * Removes the secrets of a request from its response and its error: stores and gateways repeat the headers that they received, in
 * texts of any form.
 */
function hideSecrets(stack: S3Client['middlewareStack']): void {
  const sent = new WeakMap<object, string[]>();
  stack.add(
    (next, context) => async (args) => {
      try {
        const result = await next(args);
        const { Errors } = result.output as { Errors?: unknown };
        if (Errors !== undefined) hideIn(Errors, sent.get(context) ?? []);
        return result;
      } catch (error) {
        throw withoutKnownIn(error, sent.get(context) ?? []);
      }
    },
    { name: 'hideSecrets', step: 'initialize', priority: 'high' },
  );
  stack.add(
    (next, context) => (args) => {
      const { headers } = args.request as { headers?: Readonly<Record<string, unknown>> };
      sent.set(context, [...(sent.get(context) ?? []), ...secretsIn(headers ?? {})]);
      return next(args);
    },
    { name: 'noteSecrets', step: 'deserialize', priority: 'low' },
  );
}

/**
 * Replaces the retry middleware by one that does nothing. It keeps the name, because other middleware is placed relative to it.
 */
function replaceRetries(stack: S3Client['middlewareStack']): void {
  stack.add((next) => (args) => next(args), {
    name: 'retryMiddleware',
    step: 'finalizeRequest',
    priority: 'high',
    override: true,
  });
}

/** Signs requests by the real clock, even if the SDK sees a fake one: stores refuse requests that are signed for another time. */
function signByRealClock({ config }: S3Client): void {
  let offsetMs = config.systemClockOffset;
  Object.defineProperty(config, 'systemClockOffset', {
    get: () => offsetMs + fakedByMs(),
    set: (value: number) => {
      offsetMs = value - fakedByMs();
    },
  });
}

/** Loads the SDK and makes a client, or uses the caller's. */
export async function openClient(options: ClientOptions): Promise<OpenClient> {
  const s3 = await import('@aws-sdk/client-s3');
  const { client: given } = options;
  const base = given ?? new s3.S3Client(configOf(options));
  if (given === undefined) signByRealClock(base);
  const opened: { server?: string; date?: { readonly storeMs: number; readonly atMs: number } } = {};
  const client = derivedClient(base, (stack) => {
    boundAnswers(stack);
    hideSecrets(stack);
    noteAnswers(stack, (server, dateMs) => {
      if (server !== undefined) opened.server = server;
      if (Number.isFinite(dateMs)) opened.date = { storeMs: dateMs, atMs: options.environment.monotonicMs() };
    });
  });
  return {
    s3,
    client,
    // A retried conditional put would meet its own success and report a lost race, so its caller decides what to do next
    // (docs/protocol.md, "Commit").
    single: derivedClient(client, replaceRetries),
    server: () => opened.server,
    timeMs: () => {
      const { date } = opened;
      return date === undefined ? undefined : date.storeMs + options.environment.monotonicMs() - date.atMs;
    },
    destroy: () => {
      if (given === undefined) base.destroy();
    },
  };
}

/** Shortest part of a secret that is removed: shorter parts reveal nothing, and match by chance. */
const minLength = 12;
/** Matches words of the characters of secrets, also escaped as in URLs and in markup. */
const words = /(?:[\w+/~.-]|%[0-9a-f]{2}|&#?\w{2,6};)+/gi;

function decoded(word: string): string {
  const text = word.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  return text.replace(/&#(?:x([0-9a-f]{2})|(\d{2,3}));/gi, (_, hex: string | undefined, digits: string | undefined) =>
    String.fromCharCode(hex === undefined ? Number(digits) : Number.parseInt(hex, 16)),
  );
}

/** Removes secrets and parts of secrets from a text, however they are escaped. */
function withoutKnown(text: string, secrets: readonly string[]): string {
  let safe = text;
  for (const secret of secrets) {
    if (secret.length < minLength) continue;
    if (safe.includes(secret)) safe = safe.replaceAll(secret, '\u2026');
  }
  return safe.replace(words, (word) => {
    if (word.length < minLength) return word;
    const plain = decoded(word);
    const one = plain.toLowerCase();
    const isSecret = secrets.some((secret) => {
      const other = secret.toLowerCase();
      return secret.length >= minLength && (one.includes(other) || other.includes(one));
    });
    return isSecret ? '\u2026' : word;
  });
}

/** Deepest level that is searched: nobody prints deeper ones. */
const maxDepth = 8;

/** Replaces the value of a property, also of one that cannot be redefined but can be written. */
function replace(holder: object, name: string, value: unknown): void {
  const property = Object.getOwnPropertyDescriptor(holder, name);
  try {
    if (property?.writable === true) (holder as Record<string, unknown>)[name] = value;
    else {
      const enumerable = property?.enumerable === true;
      Object.defineProperty(holder, name, { value, configurable: true, writable: true, enumerable });
    }
  } catch {
    // The property cannot be changed. So it does not hold text of this request: nothing can be added to a frozen object.
  }
}

/**
 * Empties a received response: the SDK attaches it to errors permanently, with the socket and all bytes that passed through it.
 */
function letGo(response: unknown): void {
  if (typeof response !== 'object' || response === null) return;
  replace(response, 'headers', {});
  replace(response, 'body', undefined);
}

/**
 * Removes secrets from every text that an error or a response holds, hidden properties included. The raw response, with its
 * connection and headers, is emptied.
 */
function hideIn(value: unknown, secrets: readonly string[], seen: Set<unknown> = new Set(), depth = 0): void {
  if (typeof value !== 'object' || value === null || seen.has(value) || depth > maxDepth) return;
  // Skips sockets, streams and clients, which are still in use elsewhere.
  if (!isError(value) && !Array.isArray(value) && !isPlainObject(value)) return;
  seen.add(value);
  for (const name of Object.getOwnPropertyNames(value)) {
    if (name === '$response') {
      letGo((value as { $response?: unknown }).$response);
      continue;
    }
    // The stack of an error may be a getter; other getters are skipped.
    const held: unknown =
      name === 'stack' ? (value as Error).stack : Object.getOwnPropertyDescriptor(value, name)?.value;
    if (typeof held === 'string') {
      const safe = withoutKnown(held, secrets);
      if (safe !== held) replace(value, name, safe);
    } else hideIn(held, secrets, seen, depth + 1);
  }
}

/** Returns an error without the secrets: the error itself, or a copy if it holds a response text that cannot be removed. */
function withoutKnownIn(error: unknown, secrets: readonly string[]): unknown {
  let shown = error;
  if (isError(error) && Object.hasOwn(error, '$responseBodyText')) {
    const {
      $responseBodyText: _,
      $response: __,
      ...properties
    } = Object.getOwnPropertyDescriptors(error) as PropertyDescriptorMap;
    const copy = new Error(error.message);
    Object.setPrototypeOf(copy, Object.getPrototypeOf(error) as object);
    shown = Object.defineProperties(copy, properties);
  }
  hideIn(shown, secrets);
  return shown;
}
