/** The options of `AzureBlobDriver`, checked when it is constructed, and the environment variables that stand in for them. */
import { realEnvironment, type Environment } from '../../base/env.ts';
import { InvalidOptionError } from '../../base/errors.ts';
import { withoutEnding } from '../../base/messages.ts';
import { kinds, OptionTable } from '../../base/options.ts';
import type { OptionKind } from '../../base/options.ts';
import { accountOfUrl, parseConnectionString } from './connection-string.ts';
import type { AzureAccount } from './connection-string.ts';

/** A credential that provides access tokens, for instance one of `@azure/identity`. */
export interface AzureTokenCredential {
  /** Returns a token for the scopes; null if there is none. */
  getToken(scopes: string | string[]): Promise<{ readonly token: string; readonly expiresOnTimestamp: number } | null>;
}

/** Options of `AzureBlobDriver`. */
export interface AzureBlobDriverOptions {
  /** Name of the container. It must exist. */
  readonly container: string;
  /**
   * Connection string of the storage account. It excludes the other options of the account. Default: the variable
   * `AZURE_STORAGE_CONNECTION_STRING`, if none of these options is passed.
   */
  readonly connectionString?: string;
  /** Name of the storage account. Default: the variable `AZURE_STORAGE_ACCOUNT`. */
  readonly account?: string;
  /** URL of the account's blob service. Default: `https://ACCOUNT.blob.core.windows.net`. */
  readonly endpoint?: string;
  /** Key of the account. Default: the variable `AZURE_STORAGE_KEY`. */
  readonly accountKey?: string;
  /**
   * Shared access signature for the container or the account. Download URLs cannot be signed with it. Default: the variable
   * `AZURE_STORAGE_SAS_TOKEN`.
   */
  readonly sasToken?: string;
  /**
   * Credential that provides access tokens. Default, without a key and a shared access signature: `DefaultAzureCredential` of the
   * package `@azure/identity`, which you install.
   */
  readonly credential?: AzureTokenCredential;
  /**
   * Whether objects get the header `Cache-Control`, so that caches before the store keep what never changes, and ask about Block 0
   * every time. Default true.
   */
  readonly cacheHeaders?: boolean;
  /** Clock, timers and randomness. Default: the runtime's own. */
  readonly environment?: Environment;
}

/** The options, with the defaults that the driver itself sets. */
export interface CheckedAzureOptions extends AzureAccount {
  readonly container: string;
  readonly credential: AzureTokenCredential | undefined;
  readonly cacheHeaders: boolean;
  readonly environment: Environment;
}

const callName = 'new AzureBlobDriver()';
const containerPattern = /^(?=.{3,63}$)[a-z0-9]+(?:-[a-z0-9]+)*$/;
const accountPattern = /^[a-z0-9]{3,24}$/;

/** A kind whose values do not get into messages. */
function secret(allowed: string, test: (value: string) => boolean): OptionKind {
  const hidden = (value: unknown): string => (typeof value === 'string' ? 'a text of another form' : typeof value);
  return { ...kinds.text(allowed, test), describe: hidden };
}

function isUrl(endpoint: string): boolean {
  return URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol);
}

/** Refuses secrets in a URL, because they would get into messages. The error does not show them. */
function refuseSecrets(name: string, path: string, endpoint: unknown): void {
  const { username, password, search } = new URL(endpoint as string);
  if (username + password + search === '') return;
  const instead = 'pass a shared access signature as the option `sasToken`';
  throw new InvalidOptionError(
    path,
    `Option \`${path}\` of ${name} holds more than the URL of the account: ${instead}.`,
  );
}

const driverOptions = new OptionTable<AzureBlobDriverOptions>({
  container: kinds.required(
    kinds.text("the name of a container, for instance 'my-app-data': 3 to 63 of a-z, 0-9 and single hyphens", (name) =>
      containerPattern.test(name),
    ),
  ),
  connectionString: secret("a connection string, as the portal shows it under 'Access keys'", (text) => text !== ''),
  account: kinds.text('the name of a storage account: 3 to 24 of a-z and 0-9', (name) => accountPattern.test(name)),
  endpoint: {
    ...kinds.text("an http or https URL, for instance 'https://myaccount.blob.core.windows.net'", isUrl),
    look: refuseSecrets,
  },
  accountKey: secret('the key of the account, in base64', (key) => /^[A-Za-z0-9+/]+={0,2}$/.test(key)),
  sasToken: secret("a shared access signature, for instance 'sv=…&sig=…'", (token) => /(?:^|[?&])sig=./.test(token)),
  credential: kinds.methods('a TokenCredential, such as new DefaultAzureCredential()', 'getToken'),
  cacheHeaders: kinds.flag,
  environment: kinds.environment,
});

function variable(name: string): string | undefined {
  const value = process.env[name];
  return value === '' ? undefined : value;
}

/** Returns the names of the options that are given. */
function given(options: AzureBlobDriverOptions, ...names: readonly (keyof AzureBlobDriverOptions)[]): string[] {
  return names.filter((name) => options[name] !== undefined);
}

/** Refuses options of which only one can apply. */
function refuseBoth(names: readonly string[]): void {
  const [first, second] = names;
  if (first === undefined || second === undefined) return;
  throw new InvalidOptionError(
    second,
    `Options \`${first}\` and \`${second}\` of ${callName} exclude each other: pass one.`,
  );
}

/** Checks the options of the driver, and reads the environment's variables for the options left out. Throws `InvalidOptionError`. */
export function checkAzureOptions(options: AzureBlobDriverOptions): CheckedAzureOptions {
  const checked = driverOptions.check(callName, options);
  const { container, connectionString, credential, cacheHeaders = true, environment = realEnvironment } = checked;
  const accountOptions = given(checked, 'account', 'endpoint', 'accountKey', 'sasToken', 'credential');
  if (connectionString !== undefined) refuseBoth(['connectionString', ...accountOptions]);
  refuseBoth(given(checked, 'accountKey', 'sasToken', 'credential'));
  const account = connectionString === undefined ? accountOf(checked, accountOptions) : undefined;
  const found = account ?? parseConnectionString(connectionString ?? '', `Option \`connectionString\` of ${callName}`);
  if (credential !== undefined && !found.endpoint.startsWith('https:')) {
    throw new InvalidOptionError(
      'endpoint',
      `Option \`endpoint\` of ${callName} is an http URL, and a credential sends its tokens over https only: use an https URL.`,
    );
  }
  return { ...found, container, credential, cacheHeaders, environment };
}

/** Returns the account that the options and the variables name. */
function accountOf(options: AzureBlobDriverOptions, accountOptions: readonly string[]): AzureAccount {
  const text = variable('AZURE_STORAGE_CONNECTION_STRING');
  if (accountOptions.length === 0 && text !== undefined) {
    return parseConnectionString(text, 'The variable AZURE_STORAGE_CONNECTION_STRING');
  }
  const isSecretGiven = given(options, 'accountKey', 'sasToken', 'credential').length > 0;
  const accountKey = options.accountKey ?? (isSecretGiven ? undefined : variable('AZURE_STORAGE_KEY'));
  const sasToken =
    options.sasToken ?? (isSecretGiven || accountKey !== undefined ? undefined : variable('AZURE_STORAGE_SAS_TOKEN'));
  const ofUrl = options.endpoint === undefined ? undefined : accountOfUrl(options.endpoint);
  const account = options.account ?? ofUrl ?? variable('AZURE_STORAGE_ACCOUNT');
  if (account === undefined && (options.endpoint === undefined || accountKey !== undefined)) {
    const names =
      'Pass the option `account` or `connectionString`, or set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING';
    throw new InvalidOptionError('account', `${callName} does not know the storage account. ${names}.`);
  }
  const endpoint = options.endpoint ?? `https://${account ?? ''}.blob.core.windows.net`;
  return {
    account,
    endpoint: withoutEnding(endpoint, '/'),
    accountKey,
    sasToken: sasToken?.replace(/^\?/, ''),
  };
}

/** Returns the identity of the driver for a container. */
export function azureIdentity({ endpoint, container }: CheckedAzureOptions): string {
  return `${endpoint} ${container}`;
}
