/** Requests to the servers that hand out credentials: with a deadline each, a few attempts, and errors without secrets. */
import { newAbortController } from '../../base/abort.ts';
import { isError } from '../../base/brands.ts';
import { backOff } from '../../base/env.ts';
import type { Backoff, Environment } from '../../base/env.ts';
import { readText } from '../http/http-connection.ts';
import type { HttpRequest } from '../http/http-connection.ts';
import type { SourceContext } from './credential-source.ts';
import { CredentialsProviderError } from './credentials.ts';
import type { AwsCredentials } from './credentials.ts';

/** A server that hands out credentials. */
export interface CredentialServer {
  /** The name of the server, at the beginning of a sentence. */
  readonly name: string;
  /** Time for a whole request, in milliseconds. */
  readonly limitMs: number;
}

/** A response with its whole body. */
export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Most bytes of a response: credentials have some 2,000. */
const maxBytes = 64 * 1024;
/** Shortest secret that is removed: a shorter one is none, and matches by chance. */
const shortestSecret = 12;
/** Longest text of a server in a message. */
const maxSaid = 300;

/** Makes the error for a request without a usable answer: another attempt may succeed. */
function outage({ name }: CredentialServer, said: string, cause?: unknown): CredentialsProviderError {
  return new CredentialsProviderError(`${name} ${said}`, { isOutage: true, cause });
}

function codeOf(error: unknown): string {
  const { code, message } = (isError(error) ? error : {}) as { code?: unknown; message?: unknown };
  return typeof code === 'string' ? code : String(message ?? error);
}

/**
 * Sends a request, and reads its answer. Rejects with `CredentialsProviderError` if there is none in time. The answer is without
 * `secret`, which the request holds: a server may repeat it in its refusal, and refusals get into messages.
 */
export async function ask(
  context: SourceContext,
  server: CredentialServer,
  request: HttpRequest,
  secret = '',
): Promise<Answer> {
  const controller = newAbortController();
  const { environment, http } = context;
  const timer = environment.setTimer(() => controller.abort(new Error('The time is up')), server.limitMs);
  try {
    const { status, body } = await http.send({ ...request, signal: controller.signal });
    const text = await readText(body, maxBytes);
    return { status, text: secret.length < shortestSecret ? text : text.replaceAll(secret, '\u2026') };
  } catch (error) {
    if (controller.signal.aborted) throw outage(server, `did not answer within ${server.limitMs} ms`, error);
    throw outage(server, `could not be reached (${codeOf(error)})`, error);
  } finally {
    timer.cancel();
  }
}

const afterOutage: Backoff = { firstMs: 100, maxMs: 1000, jitter: 'around' };

/** Makes an attempt, and up to `most` while the server is not available. */
export async function inAttempts<T>(environment: Environment, most: number, attempt: () => Promise<T>): Promise<T> {
  for (let count = 1; ; count++) {
    try {
      return await attempt();
    } catch (error) {
      const mayPass = error instanceof CredentialsProviderError && error.isOutage;
      if (!mayPass || count >= most) throw error;
    }
    await backOff(environment, afterOutage, count);
  }
}

/** Makes the error for an answer that is no success. `code` and `said` are the server's own words, if it has any. */
export function refusal(
  server: CredentialServer,
  status: number,
  code?: string,
  said?: string,
): CredentialsProviderError {
  const what = code === undefined ? String(status) : `${status} ${code.slice(0, maxSaid)}`;
  const message = said === undefined ? '' : `: ${said.slice(0, maxSaid)}`;
  const isOutage = status >= 500 || status === 429;
  return new CredentialsProviderError(`${server.name} answered ${what}${message}`, { isOutage });
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Reads the answer of the metadata service of an instance or a container. Rejects with `CredentialsProviderError`. */
export function decodeCredentials(server: CredentialServer, { status, text }: Answer): AwsCredentials {
  const { Code, Message, AccessKeyId, SecretAccessKey, Token, Expiration } = parsed(text);
  const [code, said] = [textOf(Code), textOf(Message)];
  // A refusal of the instance's role has the status 200 too.
  const isRefused = status !== 200 || (code !== undefined && code !== 'Success');
  if (isRefused) throw refusal(server, status, code, said);
  return makeCredentials(server, AccessKeyId, SecretAccessKey, Token, Expiration);
}

/** Text that can be in a header. */
const plainText = /^[\x21-\x7e]+$/;

/** Makes credentials of the parts of an answer. Rejects with `CredentialsProviderError` if one of them is missing. */
export function makeCredentials(
  server: CredentialServer,
  accessKeyId: unknown,
  secretAccessKey: unknown,
  sessionToken: unknown,
  expires: unknown,
): AwsCredentials {
  const parts = [accessKeyId, secretAccessKey, sessionToken].map(textOf);
  const [id, secret, token] = parts;
  const isPlain = parts.every((part) => part === undefined || plainText.test(part));
  if (id === undefined || secret === undefined || !isPlain) {
    throw outage(server, 'answered with something other than credentials');
  }
  const expiresMs = Date.parse(String(expires));
  if (expires !== undefined && Number.isNaN(expiresMs))
    throw outage(server, 'answered with an expiration that is no time');
  return {
    accessKeyId: id,
    secretAccessKey: secret,
    sessionToken: token,
    ...(expires === undefined ? {} : { expiration: new Date(expiresMs) }),
  };
}
