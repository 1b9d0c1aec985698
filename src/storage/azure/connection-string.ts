/** Reads the connection string of a storage account, and the account's name in its URL. */
import { InvalidOptionError } from '../../base/errors.ts';
import { withoutEnding } from '../../base/messages.ts';

/** A storage account, and the secret that opens it, if it is a text. */
export interface AzureAccount {
  /** Name of the account; undefined if nothing needs it. */
  readonly account: string | undefined;
  /** URL of the blob service, without a slash at its end. */
  readonly endpoint: string;
  readonly accountKey: string | undefined;
  /** Without the question mark. */
  readonly sasToken: string | undefined;
}

/** The account of emulators: its name and key are public. */
const emulator: AzureAccount = {
  account: 'devstoreaccount1',
  endpoint: 'http://127.0.0.1:10000/devstoreaccount1',
  accountKey: 'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==',
  sasToken: undefined,
};

/**
 * Returns the account's name in the URL of a blob service; undefined if the URL does not hold one. Emulators have the name in the
 * path.
 */
export function accountOfUrl(endpoint: string): string | undefined {
  const { hostname, pathname } = new URL(endpoint);
  const inPath = pathname.split('/')[1];
  if (inPath !== undefined && inPath !== '') return inPath;
  return /^([a-z0-9]{3,24})(?:-[a-z0-9]+)?\.(?:[a-z0-9-]+\.)?blob\./.exec(hostname)?.[1];
}

/** Returns the settings of a connection string by their names in lower case; undefined if it has another form. */
function settingsOf(text: string): Map<string, string> | undefined {
  const settings = new Map<string, string>();
  for (const part of text.split(';')) {
    if (part.trim() === '') continue;
    const at = part.indexOf('=');
    if (at < 1) return undefined;
    settings.set(part.slice(0, at).trim().toLowerCase(), part.slice(at + 1).trim());
  }
  return settings;
}

/**
 * Reads a connection string. `source` begins the message of an error, which does not show the string. Throws
 * `InvalidOptionError`.
 */
export function parseConnectionString(text: string, source: string): AzureAccount {
  const refuse = (flaw: string): InvalidOptionError =>
    new InvalidOptionError(
      'connectionString',
      `${source} ${flaw}: copy it from the page 'Access keys' of the storage account in the portal.`,
    );
  const settings = settingsOf(text);
  if (settings === undefined) throw refuse('is not a list of settings, such as AccountName and AccountKey');
  if (settings.get('usedevelopmentstorage')?.toLowerCase() === 'true') return emulator;
  const account = settings.get('accountname');
  const accountKey = settings.get('accountkey');
  const sasToken = settings.get('sharedaccesssignature')?.replace(/^\?/, '');
  const protocol = settings.get('defaultendpointsprotocol') ?? 'https';
  const suffix = settings.get('endpointsuffix') ?? 'core.windows.net';
  const fromName = account === undefined ? undefined : `${protocol}://${account}.blob.${suffix}`;
  const endpoint = settings.get('blobendpoint') ?? fromName;
  if (endpoint === undefined) throw refuse('names neither an AccountName nor a BlobEndpoint');
  if (!URL.canParse(endpoint) || !/^https?:$/.test(new URL(endpoint).protocol)) {
    throw refuse('names an endpoint that is not an http or https URL');
  }
  if (accountKey === undefined && sasToken === undefined) {
    throw refuse('holds neither an AccountKey nor a SharedAccessSignature');
  }
  if (accountKey !== undefined && !/^[A-Za-z0-9+/]+={0,2}$/.test(accountKey))
    throw refuse('has an AccountKey that is not base64');
  if (sasToken !== undefined && !/(?:^|&)sig=./.test(sasToken))
    throw refuse('has a SharedAccessSignature without `sig`');
  const name = account ?? accountOfUrl(endpoint);
  if (accountKey !== undefined && name === undefined) throw refuse('has an AccountKey, but no AccountName');
  return {
    account: name,
    endpoint: withoutEnding(endpoint, '/'),
    accountKey,
    sasToken: accountKey === undefined ? sasToken : undefined,
  };
}
