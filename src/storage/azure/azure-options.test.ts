/** The options of the driver for Azure, the variables that stand in for them, and connection strings. No request is made. */
import { beforeEach, describe, expect, it } from 'vitest';
import { InvalidOptionError } from '../../base/errors.ts';
import { environmentDriver } from '../environment-driver.ts';
import { AzureBlobDriver } from './azure-blob-driver.ts';
import { checkAzureOptions } from './azure-options.ts';
import type { AzureBlobDriverOptions } from './azure-options.ts';
import { accountOfUrl, parseConnectionString } from './connection-string.ts';

const names = ['CONNECTION_STRING', 'ACCOUNT', 'KEY', 'SAS_TOKEN'].map((name) => `AZURE_STORAGE_${name}`);
const key = 'c2VjcmV0LWtleS1vZi10aGUtYWNjb3VudA==';
const otherKey = 'YW5vdGhlci1rZXktb2YtYW4tYWNjb3VudA==';
const sasToken = 'sv=2024-11-04&sp=rwdl&sig=secret-signature';
const container = 'data';

beforeEach(() => {
  // An empty variable counts as not set.
  for (const name of [...names, 'STOREDB_BUCKET', 'STOREDB_AZURE_CONTAINER']) process.env[name] = '';
});

function refusal(options: unknown): InvalidOptionError {
  try {
    const driver = new AzureBlobDriver(options as AzureBlobDriverOptions);
    throw new Error(`The options of ${driver.identity} were accepted.`);
  } catch (error) {
    if (error instanceof InvalidOptionError) return error;
    throw error;
  }
}

describe('options', () => {
  it.each<[string, unknown]>([
    ['options', undefined],
    ['container', { account: 'notes' }],
    ['container', { container: 'Data', account: 'notes' }],
    ['container', { container: 'a--b', account: 'notes' }],
    ['container', { container: 'ab', account: 'notes' }],
    ['container', { container: '$root', account: 'notes' }],
    ['account', { container, account: 'my-notes' }],
    ['account', { container }],
    ['account', { container, endpoint: 'https://store.example', accountKey: key }],
    ['endpoint', { container, endpoint: 'store' }],
    ['endpoint', { container, endpoint: `https://notes.blob.core.windows.net?${sasToken}` }],
    ['endpoint', { container, endpoint: 'http://notes.example/notes', credential: { getToken: async () => null } }],
    ['accountKey', { container, account: 'notes', accountKey: 'no key!' }],
    ['sasToken', { container, account: 'notes', sasToken: 'sv=2024-11-04' }],
    ['sasToken', { container, account: 'notes', accountKey: key, sasToken }],
    ['credential', { container, account: 'notes', credential: {} }],
    ['account', { container, account: 'notes', connectionString: `AccountName=notes;AccountKey=${key}` }],
    ['connectionString', { container, connectionString: 'notes' }],
    ['accountName', { container, accountName: 'notes' }],
  ])('that are wrong are refused: %s in %j', (option, options) => {
    const error = refusal(options);
    expect(error.option).toBe(option);
    expect(error.message).not.toContain('secret');
  });

  it('are those of the account', () => {
    const checked = checkAzureOptions({ container, account: 'notes', accountKey: key });
    expect(checked).toMatchObject({
      account: 'notes',
      endpoint: 'https://notes.blob.core.windows.net',
      accountKey: key,
      sasToken: undefined,
      credential: undefined,
    });
    expect(checkAzureOptions({ container, account: 'notes', sasToken: `?${sasToken}` }).sasToken).toBe(sasToken);
    expect(checkAzureOptions({ container, endpoint: 'https://notes.blob.core.windows.net/' })).toMatchObject({
      account: 'notes',
      endpoint: 'https://notes.blob.core.windows.net',
    });
  });

  it('describe the driver without secrets', () => {
    const driver = new AzureBlobDriver({ container, account: 'notes', accountKey: key });
    expect(driver.identity).toBe('https://notes.blob.core.windows.net data');
    expect(driver.describe()).toEqual({
      container,
      endpoint: 'https://notes.blob.core.windows.net',
      authorization: 'account key',
      deletion: 'one by one',
    });
    expect(driver.storeTimeMs()).toBeUndefined();
    const withToken = new AzureBlobDriver({ container, account: 'notes', sasToken });
    expect(withToken.describe()['authorization']).toBe('shared access signature');
    expect(JSON.stringify([driver, withToken, withToken.describe()])).not.toContain('secret');
    expect(new AzureBlobDriver({ container, account: 'notes' }).describe()['authorization']).toBe('token');
  });
});

describe('the environment', () => {
  it('names the container of a database without a driver', () => {
    expect(environmentDriver()).toBeUndefined();
    process.env['STOREDB_AZURE_CONTAINER'] = '';
    expect(environmentDriver()).toBeUndefined();
    process.env['STOREDB_AZURE_CONTAINER'] = container;
    process.env['AZURE_STORAGE_ACCOUNT'] = 'notes';
    const driver = environmentDriver();
    expect([driver?.name, driver?.identity]).toEqual(['azure-blob', 'https://notes.blob.core.windows.net data']);
    process.env['STOREDB_BUCKET'] = 'bucket';
    expect(() => environmentDriver()).toThrow(/STOREDB_BUCKET and STOREDB_AZURE_CONTAINER are both set/);
    delete process.env['STOREDB_AZURE_CONTAINER'];
    expect(environmentDriver()?.name).toBe('object-store');
  });

  it('gives the account, its key or its signature', () => {
    process.env['AZURE_STORAGE_ACCOUNT'] = 'notes';
    expect(checkAzureOptions({ container })).toMatchObject({ account: 'notes', accountKey: undefined });
    process.env['AZURE_STORAGE_SAS_TOKEN'] = `?${sasToken}`;
    expect(checkAzureOptions({ container })).toMatchObject({ accountKey: undefined, sasToken });
    process.env['AZURE_STORAGE_KEY'] = key;
    expect(checkAzureOptions({ container })).toMatchObject({ accountKey: key, sasToken: undefined });
    const credential = { getToken: async () => null };
    expect(checkAzureOptions({ container, credential })).toMatchObject({ accountKey: undefined, sasToken: undefined });
    expect(checkAzureOptions({ container, accountKey: otherKey }).accountKey).toBe(otherKey);
    expect(checkAzureOptions({ container, sasToken })).toMatchObject({ accountKey: undefined, sasToken });
  });

  it('gives a connection string, unless an option of the account is passed', () => {
    process.env['AZURE_STORAGE_CONNECTION_STRING'] = `AccountName=notes;AccountKey=${key}`;
    expect(checkAzureOptions({ container })).toMatchObject({ account: 'notes', accountKey: key });
    const options = { container, account: 'other', accountKey: otherKey };
    expect(checkAzureOptions(options)).toMatchObject({ account: 'other', accountKey: otherKey });
    process.env['AZURE_STORAGE_CONNECTION_STRING'] = 'nothing';
    expect(refusal({ container }).message).toMatch(/^The variable AZURE_STORAGE_CONNECTION_STRING is not a list/);
  });
});

describe('a connection string', () => {
  const parse = (text: string) => parseConnectionString(text, 'It');

  it('names the account and its key', () => {
    const text = `DefaultEndpointsProtocol=https;AccountName=notes;AccountKey=${key};EndpointSuffix=core.windows.net`;
    const account = { account: 'notes', accountKey: key, sasToken: undefined };
    expect(parse(text)).toEqual({ ...account, endpoint: 'https://notes.blob.core.windows.net' });
    const china = `AccountName=notes;AccountKey=${key};EndpointSuffix=core.chinacloudapi.cn;`;
    expect(parse(china).endpoint).toBe('https://notes.blob.core.chinacloudapi.cn');
    const own = `AccountName=notes;AccountKey=${key};BlobEndpoint=http://127.0.0.1:10000/notes/`;
    expect(parse(own)).toEqual({ ...account, endpoint: 'http://127.0.0.1:10000/notes' });
  });

  it('names an endpoint and a signature', () => {
    const text = `BlobEndpoint=https://notes.blob.core.windows.net/;SharedAccessSignature=${sasToken}`;
    expect(parse(text)).toEqual({
      account: 'notes',
      endpoint: 'https://notes.blob.core.windows.net',
      accountKey: undefined,
      sasToken,
    });
  });

  it('is the emulator', () => {
    expect(parse('UseDevelopmentStorage=true')).toMatchObject({
      account: 'devstoreaccount1',
      endpoint: 'http://127.0.0.1:10000/devstoreaccount1',
    });
  });

  it.each([
    ['secret', 'is not a list of settings, such as AccountName and AccountKey'],
    ['=secret', 'is not a list of settings, such as AccountName and AccountKey'],
    ['', 'names neither an AccountName nor a BlobEndpoint'],
    ['AccountKey=c2VjcmV0', 'names neither an AccountName nor a BlobEndpoint'],
    ['AccountName=notes', 'holds neither an AccountKey nor a SharedAccessSignature'],
    ['AccountName=notes;AccountKey=secret!', 'has an AccountKey that is not base64'],
    ['AccountName=notes;SharedAccessSignature=secret', 'has a SharedAccessSignature without `sig`'],
    ['BlobEndpoint=ftp://secret;AccountKey=c2VjcmV0', 'names an endpoint that is not an http or https URL'],
    ['BlobEndpoint=https://store.example;AccountKey=c2VjcmV0', 'has an AccountKey, but no AccountName'],
  ])('of another form is refused: %s', (text, flaw) => {
    expect(() => parse(text)).toThrow(`It ${flaw}: copy it from the page 'Access keys'`);
    expect(() => parse(text)).not.toThrow(/secret/);
  });
});

it('the account is in the URL', () => {
  expect(accountOfUrl('https://notes.blob.core.windows.net')).toBe('notes');
  expect(accountOfUrl('https://notes.z12.blob.storage.azure.net')).toBe('notes');
  expect(accountOfUrl('https://notes-secondary.blob.core.windows.net')).toBe('notes');
  expect(accountOfUrl('http://127.0.0.1:10000/devstoreaccount1')).toBe('devstoreaccount1');
  expect(accountOfUrl('https://store.example')).toBeUndefined();
});
