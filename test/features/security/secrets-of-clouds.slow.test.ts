/**
 * The keys, signatures and tokens of the drivers for Azure and Google are in nothing that people log, although the store repeats
 * what it was sent: in errors, in what hooks are told, in log lines, and in drivers that are printed.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StoreDb, StoreDbError } from '../../../src/index.ts';
import type { Logger } from '../../../src/index.ts';
import { AzureBlobDriver, GoogleCloudStorageDriver, ObservedDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { shown, shownWhole } from './shown.ts';

const accountKey = Buffer.from('the key of an account, which is as secret as can be').toString('base64');
const signature = Buffer.from('a shared access signature of 32 b').toString('base64').replaceAll('A', '+');
const sasToken = `sv=2026-02-06&sr=c&sp=rwdl&sig=${encodeURIComponent(signature)}&se=2126-01-01`;
const accessToken = 'ya29.a0AfH6SMB-EXAMPLE_TOKENmuchLongerThanThat0123456789';

let server: Server;
let endpoint: string;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
/** Signatures of the requests that came. */
let signatures: string[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume();
    const signed = /^SharedKey \w+:(\S+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (signed !== undefined) signatures.push(signed);
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

function requestText({ method, url, headers }: IncomingMessage): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${String(value)}`);
  return [`${method} ${url}`, ...lines].join('\n');
}

/** What the request held in secret, in a sentence. */
function secretOf({ url = '', headers }: IncomingMessage): string {
  const { authorization = '' } = headers;
  return new URL(url, 'http://store').searchParams.get('sig') ?? authorization.replace(/^\w+ (?:\w+:)?/, '');
}

const xml = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Errors in the form of both stores, since one server is asked for either. */
function refuse(response: ServerResponse, status: number, code: string, said: string, isGoogle: boolean): void {
  response.writeHead(status, {
    'content-type': isGoogle ? 'application/json' : 'application/xml',
    ...(isGoogle ? {} : { 'x-ms-error-code': code.replaceAll('\n', ' ') }),
  });
  response.end(
    isGoogle
      ? JSON.stringify({ error: { code: status, message: said, errors: [{ reason: code, message: said }] } })
      : `<?xml version="1.0"?><Error><Code>${xml(code)}</Code><Message>${xml(said)}</Message>` +
          `<AuthenticationErrorDetail>${xml(said)}</AuthenticationErrorDetail></Error>`,
  );
}

function isGoogleRequest({ url = '' }: IncomingMessage): boolean {
  return url.includes('/storage/v1');
}

const indiscretions: Readonly<Record<string, typeof answer>> = {
  'its message': (request, response) => {
    refuse(response, 403, 'AuthenticationFailed', `What is this?\n${requestText(request)}`, isGoogleRequest(request));
  },
  'one line of its message': (request, response) => {
    const said = requestText(request).replaceAll('\n', ' ');
    refuse(response, 400, 'InvalidInput', said, isGoogleRequest(request));
  },
  'a sentence, in other ways': (request, response) => {
    const secret = secretOf(request);
    const said = [secret, encodeURIComponent(secret), secret.slice(0, 24), secret.slice(14), secret.toLowerCase()];
    refuse(response, 403, 'AuthorizationFailure', `Not ${said.join(', nor ')}`, isGoogleRequest(request));
  },
  'its code': (request, response) => {
    refuse(response, 403, `Bad-${secretOf(request)}`, 'No.', isGoogleRequest(request));
  },
  'a page of a gateway': (request, response) => {
    response.writeHead(502, { 'content-type': 'text/html', server: `gateway of ${secretOf(request)}` });
    response.end(`<html><body><pre>${requestText(request)}</pre></body></html>`);
  },
  'a text that is no answer': (request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'x-echo': requestText(request).replaceAll('\n', ' ') });
    response.end(requestText(request));
  },
  'headers, and then silence': (request, response) => {
    response.writeHead(500, { 'x-echo': requestText(request).replaceAll('\n', ' '), 'content-length': '1000' });
    response.write(requestText(request));
    setTimeout(() => response.destroy(), 5);
  },
};

const account = 'myaccount';
const drivers: Readonly<Record<string, () => StorageDriver>> = {
  'Azure, with a key': () => new AzureBlobDriver({ container: 'data', account, endpoint: `${endpoint}/a`, accountKey }),
  'Azure, with a signature': () => new AzureBlobDriver({ container: 'data', endpoint: `${endpoint}/a`, sasToken }),
  'Azure, with a connection string': () =>
    new AzureBlobDriver({
      container: 'data',
      connectionString: `BlobEndpoint=${endpoint}/a;SharedAccessSignature=${sasToken}`,
    }),
  Google: () =>
    new GoogleCloudStorageDriver({
      bucket: 'bucket',
      apiEndpoint: endpoint,
      credentials: () => Promise.resolve(accessToken),
    }),
};

function expectNoSecrets(text: string): void {
  const secrets = [accountKey, signature, encodeURIComponent(signature), accessToken, ...signatures];
  for (const secret of secrets) expect(text).not.toContain(secret);
  const plain = text.toLowerCase();
  for (const part of [signature.slice(0, 20), accessToken.slice(0, 20), accessToken.slice(-20)])
    expect(plain).not.toContain(part.toLowerCase());
}

describe.each(Object.keys(drivers))('a store that repeats the requests of %s', (name) => {
  const open = drivers[name] as () => StorageDriver;

  it.each(Object.keys(indiscretions))('in %s does not get secrets into errors and hooks', async (kind) => {
    answer = indiscretions[kind] as typeof answer;
    signatures = [];
    const heard: unknown[] = [];
    const inner = open();
    const driver = new ObservedDriver(inner, { onRequest: (request) => heard.push(request) });
    const failures = await Promise.all([
      driver.get('key').catch((error: unknown) => error),
      driver.put('key', Buffer.from('x'), { if: 'absent' }).catch((error: unknown) => error),
      driver.list('prefix').catch((error: unknown) => error),
      driver.delete(['a', 'b']).catch((error: unknown) => error),
      inner.copy?.('a', 'b').catch((error: unknown) => error),
    ]);
    expect(failures.some((failure) => failure instanceof StoreDbError)).toBe(true);
    expectNoSecrets(shown(failures));
    expectNoSecrets(shownWhole(failures));
    expectNoSecrets(shown(heard));
    for (const value of [driver, inner, inner.describe?.(), inner.identity]) expectNoSecrets(shownWhole(value));
    await driver.close();
  });

  it('does not get them into log lines or the printed form of a database', async () => {
    answer = indiscretions['its message'] as typeof answer;
    signatures = [];
    const lines: string[] = [];
    const line = (...words: unknown[]): unknown => lines.push(shown(words));
    const logger: Logger = { debug: line, info: line, warn: line, error: line };
    const driver = open();
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logger, logLevel: 'debug' });
    const failure: unknown = await db.start().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StoreDbError);
    await db.stop();
    expectNoSecrets(shown(failure));
    expectNoSecrets(lines.join('\n'));
    expectNoSecrets(shownWhole(db));
    await driver.close?.();
  });
});

it('the errors of a credential are told without what they hold', async () => {
  const credential = {
    getToken: () => {
      const error = new Error(`invalid_client: client_secret=${accessToken} is wrong`);
      return Promise.reject(Object.assign(error, { request: { body: `client_secret=${accessToken}` } }));
    },
  };
  const driver = new AzureBlobDriver({ container: 'data', account, credential });
  const failure: unknown = await driver.get('key').catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: 'STORAGE',
    outcome: 'none',
    message: expect.stringContaining('invalid_client: client_secret=… is wrong') as unknown,
  });
  expectNoSecrets(shown(failure));
  expectNoSecrets(shownWhole(failure));
  await driver.close();
});
