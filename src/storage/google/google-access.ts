/**
 * Access tokens and signatures for Google Cloud. Loads `google-auth-library` with the first request that needs it: applications
 * that pass a function for tokens, or work with an emulator, need not install it.
 */
import { messageOf } from '../../base/brands.ts';
import { StorageError } from '../../base/errors.ts';
import { withoutEnding, withoutSecrets } from '../../base/messages.ts';
import { MissingPackageError, packageError } from '../contract/optional-package.ts';
import type { CheckedGoogleOptions, GoogleCredentials } from './google-options.ts';

const scope = 'https://www.googleapis.com/auth/cloud-platform';

/** The credentials of a driver. */
export class GoogleAccess {
  readonly #options: CheckedGoogleOptions;
  #loaded: Promise<GoogleCredentials> | undefined;

  constructor(options: CheckedGoogleOptions) {
    this.#options = options;
  }

  /** Returns an access token; undefined if requests have none. Rejects with `StorageError`: nothing was requested. */
  async token(): Promise<string | undefined> {
    const { bucket, credentials, endpoint } = this.#options;
    if (credentials === undefined && endpoint.protocol === 'http:') return undefined;
    let token: unknown;
    try {
      token = typeof credentials === 'function' ? await credentials() : await (await this.#auth()).getAccessToken();
    } catch (error) {
      throw noCredentials(bucket, `No access token for bucket ${bucket}`, error);
    }
    if (typeof token === 'string' && token !== '' && !/\s/.test(token)) return token;
    throw new StorageError(bucket, 'none', `The credentials for bucket ${bucket} returned no access token.`);
  }

  /** Returns the e-mail address of the service account that signs. Rejects with `StorageError`. */
  async email(): Promise<string> {
    const { bucket } = this.#options;
    let email: string | undefined;
    try {
      email = (await (await this.#auth()).getCredentials()).client_email;
    } catch (error) {
      throw noCredentials(bucket, `A link to bucket ${bucket} could not be signed`, error);
    }
    if (email !== undefined && email !== '') return email;
    throw new StorageError(
      bucket,
      'none',
      `A link to bucket ${bucket} could not be signed: the credentials are not of a service account. Use one, or impersonate one.`,
    );
  }

  /** Signs a text. Rejects with `StorageError`. */
  async sign(text: string): Promise<string> {
    const { bucket } = this.#options;
    try {
      return await (await this.#auth()).sign(text);
    } catch (error) {
      throw noCredentials(bucket, `A link to bucket ${bucket} could not be signed`, error);
    }
  }

  /** Returns the caller's credentials, or the application default credentials. */
  async #auth(): Promise<GoogleCredentials> {
    const { bucket, credentials } = this.#options;
    if (typeof credentials === 'object') return credentials;
    const loading = (this.#loaded ??= loadDefault(bucket));
    try {
      return await loading;
    } catch (error) {
      if (this.#loaded === loading) this.#loaded = undefined;
      throw error;
    }
  }
}

async function loadDefault(bucket: string): Promise<GoogleCredentials> {
  try {
    const { GoogleAuth } = await import('google-auth-library');
    return new GoogleAuth({ scopes: scope });
  } catch (error) {
    // Loaders may wrap the error.
    const causes = [error, (error as { cause?: unknown } | undefined)?.cause];
    const missing = causes
      .map((cause) => packageError('google-auth-library', `Finding the credentials for bucket ${bucket}`, cause))
      .find((cause) => cause instanceof MissingPackageError);
    if (missing === undefined) throw error;
    const message = `${missing.message}, or pass an access token with the option \`credentials\`.`;
    throw new StorageError(bucket, 'none', message, { cause: missing });
  }
}

/** Longest text of the library in a message. */
const maxSaid = 500;

function noCredentials(bucket: string, problem: string, error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  const said = withoutEnding(withoutSecrets(messageOf(error)).slice(0, maxSaid), '.');
  const remedy = 'Set GOOGLE_APPLICATION_CREDENTIALS, or run where a service account is attached.';
  // The library's error holds the whole request, with keys and tokens, so it is no cause.
  return new StorageError(bucket, 'none', `${problem}: ${said}. ${remedy}`, { cause: new Error(said) });
}
