/**
 * The S3 client behind `ObjectStoreDriver`: loaded when the first request is made, never before, so that applications
 * on other drivers do not pay for it.
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

/** Where the bucket is. */
export interface ClientOptions {
  readonly environment: Environment;
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
  readonly forcePathStyle: boolean | undefined;
  /** The caller's own client, which is used as it is and never destroyed. */
  readonly client: S3Client | undefined;
}

/** What requests are made with. */
export interface OpenClient {
  readonly s3: S3Module;
  readonly client: S3Client;
  /** The client for conditional puts, which sends every request exactly once. */
  readonly single: S3Client;
  /** What the store calls itself, once it has answered. */
  server(): string | undefined;
  /** The store's time, by the date of its last answer. */
  timeMs(): number | undefined;
  /** Closes its sockets, unless they are the caller's. */
  destroy(): void;
}

/** Most connections, and so most requests at a time; others wait for one. */
const maxSockets = 64;
/** Most bytes of an answer that is no object's content: a page of keys, each of them escaped, has 7 MB. */
const maxAnswerBytes = 32 * 1024 * 1024;
/** Time to connect, in milliseconds. */
const connectionTimeoutMs = 5000;

/** The endpoint that the SDK takes from the process's environment by itself, if any. Empty variables count as not set. */
export function environmentEndpoint(): string | undefined {
  return [process.env['AWS_ENDPOINT_URL_S3'], process.env['AWS_ENDPOINT_URL']].find((url) => (url ?? '') !== '');
}

function configOf({ endpoint, region, forcePathStyle }: ClientOptions): S3ClientConfig {
  const agent = { keepAlive: true, maxSockets };
  const isAmazon = endpoint === undefined && environmentEndpoint() === undefined;
  // Other stores name no region, or accept any; Amazon's must be known.
  const fallbackRegion = isAmazon ? undefined : (process.env['AWS_REGION'] ?? 'us-east-1');
  const chosenRegion = region ?? fallbackRegion;
  // Default checksums break some stores; Amazon checks them.
  const checksums = isAmazon ? 'WHEN_SUPPORTED' : 'WHEN_REQUIRED';
  return {
    maxAttempts: 1,
    requestChecksumCalculation: checksums,
    responseChecksumValidation: checksums,
    // Host names with the bucket in them need DNS; paths work nearly everywhere.
    forcePathStyle: forcePathStyle ?? !isAmazon,
    requestHandler: {
      connectionTimeout: connectionTimeoutMs,
      httpAgent: agent,
      httpsAgent: agent,
      // Waiting for a connection is what the bound is for, and no news.
      socketAcquisitionWarningTimeout: 600_000,
    },
    ...defined({ endpoint, region: chosenRegion }),
  };
}

/** A client of its own kind of requests, on the connections and credentials of another. */
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
    // The last step before the connection: what comes before it makes values, or errors, of the answer.
    { name: 'noteAnswers', step: 'deserialize', priority: 'low' },
  );
}

/** Passes a body on that ends in time, and fails for one that does not. */
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

/** Answers other than an object's content are parsed as a whole: none may take more memory than the longest there is. */
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

/** Headers that hold what nobody else may know. */
const secretHeaders = /authori[sz]ation|token|secret|cookie|credential|customer-key$/;

/** What a request says that must not be shown: of a signed one the signature, which says nothing else of its credentials. */
function secretsIn(headers: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (typeof value !== 'string' || !secretHeaders.test(name.toLowerCase())) return [];
    const signature = /Signature=(\w+)/.exec(value)?.[1];
    return [signature ?? value.replace(/^(?:Basic|Bearer) /i, '')];
  });
}

/**
 * Takes out of every answer and every error what the request itself held in secret: stores and gateways repeat what they were
 * sent, in texts of their own making.
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

/** In its very place, since others find theirs by it. */
function replaceRetries(stack: S3Client['middlewareStack']): void {
  stack.add((next) => (args) => next(args), {
    name: 'retryMiddleware',
    step: 'finalizeRequest',
    priority: 'high',
    override: true,
  });
}

/** Stores refuse what is signed for another time: it is signed by the real clock, also where the SDK sees a fake one. */
function signByRealClock({ config }: S3Client): void {
  let offsetMs = config.systemClockOffset;
  Object.defineProperty(config, 'systemClockOffset', {
    get: () => offsetMs + fakedByMs(),
    set: (value: number) => {
      offsetMs = value - fakedByMs();
    },
  });
}

/** Loads the SDK and makes a client, or takes the caller's. */
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
    // A repeated conditional put would meet its own success and report it as a lost race, so the caller of one decides
    // what to do next (docs/protocol.md, "Commit").
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

// Takes secrets that are known out of texts, and out of all that an error shows.

/** Shorter parts of a secret say nothing of it, and would be found by chance. */
const minLength = 12;
/** What secrets are made of, also as it stands in URLs and in markup. */
const words = /(?:[\w+/~.-]|%[0-9a-f]{2}|&#?\w{2,6};)+/gi;

function decoded(word: string): string {
  const text = word.replace(/%([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
  return text.replace(/&#(?:x([0-9a-f]{2})|(\d{2,3}));/gi, (_, hex: string | undefined, digits: string | undefined) =>
    String.fromCharCode(hex === undefined ? Number(digits) : Number.parseInt(hex, 16)),
  );
}

/** A text without the secrets, and without parts of them, however they are written. */
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

/** Deeper, there is nothing that anybody prints. */
const maxDepth = 8;

/** Puts another value in the place of a property, also of one that is there for good and can only be written. */
function replace(holder: object, name: string, value: unknown): void {
  const property = Object.getOwnPropertyDescriptor(holder, name);
  try {
    if (property?.writable === true) (holder as Record<string, unknown>)[name] = value;
    else {
      const enumerable = property?.enumerable === true;
      Object.defineProperty(holder, name, { value, configurable: true, writable: true, enumerable });
    }
  } catch {
    // It cannot be changed, so that it is not of this request: nothing gets into what is frozen.
  }
}

/** Empties what was received: the SDK hangs it onto errors for good, with the socket and all that went through it. */
function letGo(response: unknown): void {
  if (typeof response !== 'object' || response === null) return;
  replace(response, 'headers', {});
  replace(response, 'body', undefined);
}

/**
 * Takes secrets out of every text that an error or an answer holds, also hidden ones. What was received as it is, with the
 * connection and its headers, is let go of.
 */
function hideIn(value: unknown, secrets: readonly string[], seen: Set<unknown> = new Set(), depth = 0): void {
  if (typeof value !== 'object' || value === null || seen.has(value) || depth > maxDepth) return;
  // Not a socket, a stream or a client, which others go on using.
  if (!isError(value) && !Array.isArray(value) && !isPlainObject(value)) return;
  seen.add(value);
  for (const name of Object.getOwnPropertyNames(value)) {
    if (name === '$response') {
      letGo((value as { $response?: unknown }).$response);
      continue;
    }
    // The stack of an error may be a getter; other getters are left alone.
    const held: unknown =
      name === 'stack' ? (value as Error).stack : Object.getOwnPropertyDescriptor(value, name)?.value;
    if (typeof held === 'string') {
      const safe = withoutKnown(held, secrets);
      if (safe !== held) replace(value, name, safe);
    } else hideIn(held, secrets, seen, depth + 1);
  }
}

/** An error without the secrets: itself, or a copy where it holds an answer that cannot be taken off it. */
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
