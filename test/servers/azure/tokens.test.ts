/** Access tokens: a credential of the caller's, the default credential of the SDK, and download URLs that a token lets one sign. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { createServer, request } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { inspect, promisify } from 'node:util';
import {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  generateAccountSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StorageError } from '../../../src/index.ts';
import { AzureBlobDriver } from '../../../src/storage/azure/azure-blob-driver.ts';
import { certificate, key as certificateKey } from '../s3/secure-front.ts';
import { AzuriteInstance, emulatorAccount, emulatorKey } from './azurite-instance.ts';

const container = 'tokens';
const scope = 'https://storage.azure.com/.default';
const tenant = 'ab1f708d-50f6-404c-a006-d71b2ac7a606';

let folder = '';
let certificateFile = '';
let azurite: AzuriteInstance;

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
}

/** Sends a request with trust in the certificate of the tests. */
async function send(method: string, url: URL, headers: OutgoingHttpHeaders = {}): Promise<Answer> {
  const outgoing = request(url, { method, headers, ca: certificate }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) };
}

async function textOf(stream: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-tokens-'));
  certificateFile = path.join(folder, 'cert.pem');
  const keyFile = path.join(folder, 'key.pem');
  writeFileSync(certificateFile, certificate);
  writeFileSync(keyFile, certificateKey);
  process.env['AWS_CA_BUNDLE'] = certificateFile;
  azurite = await AzuriteInstance.start({ tls: { cert: certificateFile, key: keyFile } });
  const rights = {
    expiresOn: new Date(Date.now() + 600_000),
    permissions: AccountSASPermissions.parse('c'),
    services: AccountSASServices.parse('b').toString(),
    resourceTypes: AccountSASResourceTypes.parse('c').toString(),
  };
  const key = new StorageSharedKeyCredential(emulatorAccount, emulatorKey);
  const signature = generateAccountSASQueryParameters(rights, key).toString();
  const url = new URL(`${azurite.endpoint}/${container}?restype=container&${signature}`);
  expect(await send('PUT', url, { 'content-length': 0 })).toMatchObject({ status: 201 });
});

afterAll(async () => {
  await azurite.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** A token with the claims that Azurite looks at, good for some time from now. It does not check signatures. */
function tokenFor(seconds: number, claims: object = {}): string {
  const now = Math.floor(Date.now() / 1000);
  const payload = {
    aud: 'https://storage.azure.com',
    iss: `https://sts.windows.net/${tenant}/`,
    iat: now - 7200,
    nbf: now - 7200,
    exp: now + seconds,
    oid: '11059fcc-5514-4800-b5f8-49808b9cfab6',
    tid: tenant,
    ...claims,
  };
  const parts = [{ alg: 'RS256', typ: 'JWT' }, payload].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  return `${parts.join('.')}.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg`;
}

/** A driver with a credential that gives one token after the other; the last one again and again. */
function driverWith(...tokens: string[]) {
  const asked: unknown[] = [];
  const credential = {
    getToken: (scopes: string | string[]) => {
      asked.push(scopes);
      const token = (tokens.length > 1 ? tokens.shift() : tokens[0]) ?? '';
      // Long enough that the SDK does not get another token meanwhile.
      return Promise.resolve({ token, expiresOnTimestamp: Date.now() + 3_600_000 });
    },
  };
  const driver = new AzureBlobDriver({ container, account: emulatorAccount, endpoint: azurite.endpoint, credential });
  return { driver, asked };
}

async function failureOf(driver: AzureBlobDriver): Promise<StorageError> {
  const error: unknown = await driver.put('key', Buffer.from('x'), { if: 'any' }).catch((cause: unknown) => cause);
  await driver.close();
  if (!(error instanceof StorageError)) throw new Error('It did not fail with a StorageError', { cause: error });
  return error;
}

describe('a credential', () => {
  it('gives the tokens of all requests, for the scope of storage accounts', async () => {
    const { driver, asked } = driverWith(tokenFor(3600));
    const bytes = Buffer.from('kept');
    expect(await driver.put('a/b', bytes, { if: 'absent' })).toMatchObject({ status: 'written' });
    expect(await driver.get('a/b')).toMatchObject({ status: 'found', sizeBytes: 4 });
    expect(await driver.copy('a/b', 'a/c')).toMatchObject({ status: 'copied' });
    expect((await driver.list('a/')).entries.map(({ key }) => key)).toEqual(['a/b', 'a/c']);
    expect((await driver.delete(['a/b', 'a/c'])).failed).toEqual([]);
    // The SDK keeps a token until it expires. Another one is for the source of the copy.
    expect(asked.flat()).toEqual([scope, scope]);
    expect(driver.describe()).toMatchObject({ authorization: 'token' });
    await driver.close();
  });

  it('signs download URLs, with a key that the account gives for the token', async () => {
    const { driver } = driverWith(tokenFor(3600));
    const bytes = Buffer.from('a picture');
    await driver.put('ä/b c', bytes, { if: 'any' });
    const url = new URL(await driver.presign('ä/b c', { expiresInSeconds: 60, contentType: 'image/png' }));
    // Of the user who has the token, and not of the account.
    expect(url.searchParams.get('sktid')).toBe(tenant);
    expect(url.searchParams.get('sp')).toBe('r');
    expect(url.searchParams.get('spr')).toBe('https');
    const response = await send('GET', url);
    expect(response).toMatchObject({ status: 200, text: 'a picture', headers: { 'content-type': 'image/png' } });
    const other = new URL(url);
    other.pathname += '-other';
    expect((await send('GET', other)).status).toBe(403);
    await driver.close();
  });
});

describe('a token that the store refuses', () => {
  const time = "The signature or the access token has expired, or this machine's clock differs too much";
  const other = 'The store does not accept the credentials';
  it.each([
    ['has expired', tokenFor(-60), time],
    ['is not good yet', tokenFor(7200, { nbf: Math.floor(Date.now() / 1000) + 3600 }), time],
    ['is for another service', tokenFor(3600, { aud: 'https://vault.azure.net' }), other],
    ['is none', 'not-a-token-at-all', other],
  ])('because it %s is told, and not shown', async (_, token, advice) => {
    const { driver } = driverWith(token);
    const error = await failureOf(driver);
    expect(error).toMatchObject({ outcome: 'none', reason: 'forbidden' });
    expect(error.message).toContain(advice);
    expect(inspect(error, { depth: 20, showHidden: true })).not.toContain(token);
  });

  it('is followed by another one once the credential gives one', async () => {
    const { driver } = driverWith(tokenFor(-60), tokenFor(3600));
    await expect(driver.get('key')).rejects.toMatchObject({ reason: 'forbidden' });
    await driver.close();
    expect(await driver.get('key')).toMatchObject({ status: 'missing' });
    await driver.close();
  });
});

describe('the default credential', () => {
  const clientSecret = 'hush~hush.as-secret-as-can-be-0123456789';
  let authority: Server;
  let origin = '';
  /** Bodies of the requests for tokens. */
  let asked: URLSearchParams[] = [];

  beforeEach(async () => {
    asked = [];
    authority = createServer({ key: certificateKey, cert: certificate }, (incoming, response) => {
      const answer = (status: number, body: object): void => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      };
      if (incoming.url === '/adfs/.well-known/openid-configuration') {
        answer(200, {
          issuer: `${origin}/adfs`,
          authorization_endpoint: `${origin}/adfs/oauth2/authorize`,
          token_endpoint: `${origin}/adfs/oauth2/token`,
          jwks_uri: `${origin}/adfs/discovery/keys`,
        });
        return;
      }
      const giveToken = async (): Promise<void> => {
        const text = await textOf(incoming);
        const body = new URLSearchParams(text);
        asked.push(body);
        if (body.get('client_secret') === clientSecret) {
          answer(200, { token_type: 'Bearer', expires_in: 3599, access_token: tokenFor(3600) });
        } else {
          answer(401, { error: 'invalid_client', error_description: `AADSTS7000215: Invalid client secret: ${text}` });
        }
      };
      void giveToken();
    });
    authority.listen(0, '127.0.0.1');
    await once(authority, 'listening');
    origin = `https://localhost:${(authority.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    authority.closeAllConnections();
    authority.close();
  });

  async function run(secret: string): Promise<Record<string, unknown>> {
    const program = fileURLToPath(new URL('default-credential-program.ts', import.meta.url));
    const env = {
      ...process.env,
      NODE_EXTRA_CA_CERTS: certificateFile,
      // The SDK asks no public server about an authority of this kind.
      AZURE_TENANT_ID: 'adfs',
      AZURE_CLIENT_ID: 'f997392c-e15a-4ad8-af9e-cd6966caba7f',
      AZURE_CLIENT_SECRET: secret,
      AZURE_AUTHORITY_HOST: origin,
    };
    const args = ['--no-warnings', '--import', 'tsx', program, container, emulatorAccount, azurite.endpoint];
    const { stdout } = await promisify(execFile)(process.execPath, args, { env });
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  it('is the client that the variables of the process name', async () => {
    expect(await run(clientSecret)).toEqual({ status: 'found' });
    expect(asked.map((body) => body.get('scope'))).toEqual([expect.stringContaining(scope)]);
  });

  it('says why it gets no token, and does not show the secret', async () => {
    const wrong = `${clientSecret}-but-wrong`;
    const { message, outcome, isOurs, shown } = await run(wrong);
    expect({ outcome, isOurs }).toEqual({ outcome: 'none', isOurs: true });
    expect(message).toContain('The credential gave no token');
    expect(message).toContain('AADSTS7000215');
    expect(shown).not.toContain(wrong);
    expect(shown).not.toContain(encodeURIComponent(wrong));
  });
});
