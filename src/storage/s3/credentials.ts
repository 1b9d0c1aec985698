/**
 * The credentials that sign the requests to a store: {@link CredentialCache} asks a provider for them, once for all requests that
 * wait, and again before they expire. Also the check of the option `credentials`.
 */
import { untilAborted } from '../../base/abort.ts';
import { isDate, messageOf } from '../../base/brands.ts';
import type { Environment } from '../../base/env.ts';
import { messageText } from '../../base/messages.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';

/** Credentials for requests. The credentials of the AWS SDK's providers have this form too. */
export interface AwsCredentials {
  /** The id of the access key. */
  readonly accessKeyId: string;
  /** The secret of the access key. */
  readonly secretAccessKey: string;
  /** The session token. Only temporary credentials have one. */
  readonly sessionToken?: string | undefined;
  /** The time at which the credentials expire. Default: never. */
  readonly expiration?: Date | undefined;
}

/** Returns credentials. It is called again before they expire. The AWS SDK's providers have this form too. */
export type CredentialProvider = () => Promise<AwsCredentials>;

/** A provider returned no credentials. No request was sent to the store. */
export class CredentialsProviderError extends Error {
  /** Whether the source of the credentials could not be reached or was overloaded, so that a later attempt may succeed. */
  readonly isOutage: boolean;

  constructor(message: string, options: { readonly cause?: unknown; readonly isOutage?: boolean } = {}) {
    super(messageText(message), options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'CredentialsProviderError';
    this.isOutage = options.isOutage === true;
  }
}

/** Time before the expiration at which new credentials are asked for, in milliseconds. */
const refreshEarlyMs = 5 * 60_000;
/** Most random time that is added to it, in milliseconds: instances that started together do not ask together. */
const spreadMs = 60_000;
/** Longest time until a failed refresh is tried again, in milliseconds. */
const retryMs = 60_000;
/** Shortest time until a failed refresh is tried again, in milliseconds. */
const leastRetryMs = 1000;
/** Time for which credentials are used that were expired when they came, in milliseconds. */
const extensionMs = 10 * 60_000;
/** Time for which a provider is not asked again after it has returned the credentials that the store refused, in milliseconds. */
const sameAgainMs = 30_000;
/** Longest time that a provider may take, in milliseconds. */
const limitMs = 60_000;

/** Credentials and the times of the wall clock that decide how they are used. */
interface Held {
  readonly credentials: AwsCredentials;
  /** From this time on new ones are asked for while these are used. */
  refreshAtMs: number;
  /** From this time on requests wait for new ones. */
  readonly expiresAtMs: number;
}

/**
 * The credentials of a driver. Asks the provider once for all waiting requests. Asks again five minutes before the credentials
 * expire, and uses the old ones meanwhile, also if the provider fails; it is then asked again at least every minute.
 */
export class CredentialCache {
  readonly #provider: CredentialProvider;
  readonly #environment: Environment;
  #held: Held | undefined;
  #refresh: Promise<AwsCredentials> | undefined;
  /** The credentials that the store refused last, unless the provider has returned others since. */
  #refused: AwsCredentials | undefined;
  /** The monotonic time until which the provider is not asked for others than {@link #refused}. */
  #sameUntilMs = 0;

  constructor(provider: CredentialProvider, environment: Environment) {
    this.#provider = provider;
    this.#environment = environment;
  }

  /**
   * Returns credentials that have not expired. Rejects with `CredentialsProviderError` if the provider fails, and with the signal's
   * reason once the signal is aborted.
   */
  async get(signal?: AbortSignal): Promise<AwsCredentials> {
    const held = this.#held;
    const nowMs = this.#environment.now();
    if (held === undefined || nowMs >= held.expiresAtMs) return untilAborted(this.#refreshOnce(), signal);
    if (nowMs >= held.refreshAtMs) {
      // A failure is no concern of this request: its credentials are still good.
      this.#refreshOnce().catch(() => undefined);
    }
    return held.credentials;
  }

  /**
   * Call this after the store refused a request because its credentials are expired or unknown. Returns whether to send the request
   * once more: then the next {@link get} returns others, as far as is known. Returns false if the provider has only just returned the
   * refused credentials again.
   */
  refused(credentials: AwsCredentials): boolean {
    if (this.#held === undefined || !isSame(this.#held.credentials, credentials)) return true;
    const isKnown = this.#refused !== undefined && isSame(this.#refused, credentials);
    if (isKnown && this.#environment.monotonicMs() < this.#sameUntilMs) return false;
    this.#refused = credentials;
    this.#held = undefined;
    return true;
  }

  #refreshOnce(): Promise<AwsCredentials> {
    this.#refresh ??= this.#ask().finally(() => {
      this.#refresh = undefined;
    });
    return this.#refresh;
  }

  async #ask(): Promise<AwsCredentials> {
    try {
      const credentials = checked(await answerInTime(this.#environment, this.#provider));
      this.#hold(credentials);
      return credentials;
    } catch (error) {
      if (this.#held !== undefined) {
        this.#held.refreshAtMs = this.#nextTryMs(this.#environment.now(), this.#held.expiresAtMs);
      }
      if (error instanceof CredentialsProviderError) throw error;
      // Its class and its properties may look like the answer of a store, which never had a request.
      throw new CredentialsProviderError(`The provider of the credentials failed: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  #hold(credentials: AwsCredentials): void {
    const nowMs = this.#environment.now();
    const statedMs = credentials.expiration?.getTime() ?? Infinity;
    // Where expired credentials come, this clock is wrong, or their source is down and they are good for longer. The store decides.
    const expiresAtMs = statedMs > nowMs ? statedMs : nowMs + extensionMs;
    const earlyMs = refreshEarlyMs + spreadMs * this.#environment.random();
    const refreshAtMs = Math.max(expiresAtMs - earlyMs, this.#nextTryMs(nowMs, expiresAtMs));
    this.#held = { credentials, refreshAtMs, expiresAtMs };
    if (this.#refused === undefined) return;
    if (isSame(this.#refused, credentials)) this.#sameUntilMs = this.#environment.monotonicMs() + sameAgainMs;
    else this.#refused = undefined;
  }

  #nextTryMs(nowMs: number, expiresAtMs: number): number {
    return nowMs + Math.max(leastRetryMs, Math.min(retryMs, (expiresAtMs - nowMs) / 2));
  }
}

function isSame(a: AwsCredentials, b: AwsCredentials): boolean {
  const isSameKey = a.accessKeyId === b.accessKeyId && a.secretAccessKey === b.secretAccessKey;
  return isSameKey && a.sessionToken === b.sessionToken;
}

/** Calls a provider. Rejects if it takes too long, because requests wait for it. */
function answerInTime(environment: Environment, provider: CredentialProvider): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const late = `The provider of the credentials did not answer within ${limitMs / 1000} seconds`;
    const timer = environment.setTimer(() => reject(new CredentialsProviderError(late, { isOutage: true })), limitMs, {
      background: true,
    });
    const call = async (): Promise<unknown> => provider();
    call()
      .then(resolve, reject)
      .finally(() => timer.cancel());
  });
}

/** Checks the credentials that a provider has returned. */
function checked(given: unknown): AwsCredentials {
  const flaw = flawOf(given);
  if (flaw === undefined) return given as AwsCredentials;
  throw new CredentialsProviderError(
    `The provider of the credentials returned ${flaw}: it must return { accessKeyId, secretAccessKey }, and for temporary ` +
      'credentials also sessionToken and expiration, a Date.',
  );
}

function flawOf(given: unknown): string | undefined {
  if (typeof given !== 'object' || given === null) return describeHidden(given);
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = given as Record<string, unknown>;
  if (typeof accessKeyId !== 'string' || accessKeyId === '') return 'an object without accessKeyId';
  if (typeof secretAccessKey !== 'string' || secretAccessKey === '') return 'an object without secretAccessKey';
  if (sessionToken !== undefined && typeof sessionToken !== 'string') return 'a sessionToken that is no string';
  if (expiration !== undefined && !isTime(expiration)) return 'an expiration that is no valid Date';
  return undefined;
}

function isTime(value: unknown): boolean {
  return isDate(value) && !Number.isNaN(value.getTime());
}

/** Describes a value that may be a secret, by its type. */
function describeHidden(value: unknown): string {
  if (value === undefined || value === null) return String(value);
  if (value === '') return 'an empty string';
  if (typeof value === 'string') return value.trim() === value ? 'a string' : 'a string with white space at an end';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** A part of credentials. White space at an end is left from a file, and no store accepts it. */
function secretText(allowed: string): OptionKind {
  return {
    allowed,
    accepts: (value) => typeof value === 'string' && value !== '' && value.trim() === value,
    describe: describeHidden,
  };
}

const staticCredentials = new OptionTable<AwsCredentials>({
  accessKeyId: kinds.required(secretText('the id of an access key')),
  secretAccessKey: kinds.required(secretText('the secret of the access key')),
  sessionToken: secretText('the session token of temporary credentials'),
  expiration: { allowed: 'a valid Date', accepts: isTime, describe: describeHidden },
});

/** The kind of the option `credentials`: an object, or a function that returns one. Errors do not show the values. */
export const credentialsOption: OptionKind = {
  allowed:
    'an object with accessKeyId, secretAccessKey and perhaps sessionToken, or a function that returns a promise of one',
  accepts: (value) =>
    typeof value === 'function' || (typeof value === 'object' && value !== null && !Array.isArray(value)),
  describe: describeHidden,
  look: (callName, path, value) => {
    if (typeof value !== 'function') staticCredentials.check(callName, value as AwsCredentials, path);
  },
};
