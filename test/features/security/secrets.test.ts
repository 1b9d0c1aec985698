/**
 * Credentials are in nothing that people log: errors with all that can be enumerated in them, log lines, what hooks are told,
 * and drivers and databases that are printed. The store here is as indiscreet as one can be.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withoutSecrets } from '../../../src/base/messages.ts';
import { EncodeError, formatStoreReport, StoreDb, StoreDbError, Types } from '../../../src/index.ts';
import type { Logger, StoreReport } from '../../../src/index.ts';
import { MemoryDriver, ObjectStoreDriver, ObservedDriver } from '../../../src/storage/index.ts';
import { shown, shownWhole } from './shown.ts';

const secretKey = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const sessionToken = 'IQoJb3JpZ2luX2VjEXAMPLE+/TOKENmuchLongerThanThat0123456789==';

let server: Server;
let endpoint: string;
let answer: (request: IncomingMessage, response: ServerResponse) => void;
/** Signatures of the requests that came. */
let signatures: string[] = [];

beforeAll(async () => {
  process.env['AWS_ACCESS_KEY_ID'] = 'AKIAIOSFODNN7EXAMPLE';
  process.env['AWS_SECRET_ACCESS_KEY'] = secretKey;
  process.env['AWS_SESSION_TOKEN'] = sessionToken;
  server = createServer((request, response) => {
    request.resume();
    const signature = /Signature=([0-9a-f]{64})/.exec(request.headers.authorization ?? '')?.[1];
    if (signature !== undefined) signatures.push(signature);
    answer(request, response);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

function headersOf({ headers }: IncomingMessage): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${String(value)}`)
    .join('\n');
}

const xml = (body: string): string => `<?xml version="1.0"?><Error>${body}</Error>`;

const indiscretions: Readonly<Record<string, typeof answer>> = {
  'elements of its own': (request, response) => {
    const { authorization = '' } = request.headers;
    response.writeHead(403, { 'content-type': 'application/xml' });
    response.end(
      xml(
        `<Code>ExpiredToken</Code><Message>The provided token has expired.</Message><Token-0>${sessionToken}</Token-0>` +
          `<StringToSign>${authorization}</StringToSign><SignatureProvided>${authorization}</SignatureProvided>`,
      ),
    );
  },
  'its message': (request, response) => {
    response.writeHead(400, { 'content-type': 'application/xml' });
    response.end(xml(`<Code>InvalidRequest</Code><Message>What is this?\n${headersOf(request)}</Message>`));
  },
  'a sentence of its message': (_, response) => {
    response.writeHead(403, { 'content-type': 'application/xml' });
    response.end(xml(`<Code>ExpiredToken</Code><Message>The token ${sessionToken} has expired.</Message>`));
  },
  'a sentence that says it otherwise': (_, response) => {
    response.writeHead(400, { 'content-type': 'application/xml' });
    const ways = [
      encodeURIComponent(sessionToken),
      sessionToken.slice(0, 24),
      sessionToken.slice(20),
      sessionToken.toLowerCase(),
    ];
    const marked = sessionToken.replaceAll('+', '&#43;').replaceAll('/', '&#x2F;');
    response.end(xml(`<Code>InvalidToken</Code><Message>Not ${ways.join(', nor ')}, nor ${marked}</Message>`));
  },
  'its code and its name': (_, response) => {
    response.writeHead(403, { 'content-type': 'application/xml', server: `gateway ${sessionToken}` });
    response.end(xml(`<Code>Bad-${sessionToken}</Code><Message>No.</Message><Resource>/${sessionToken}</Resource>`));
  },
  'what it did not delete': (request, response) => {
    const failure = `<Error><Key>a</Key><Code>Denied</Code><Message>${sessionToken}</Message></Error>`;
    response.writeHead(request.method === 'POST' ? 200 : 403, { 'content-type': 'application/xml' });
    response.end(request.method === 'POST' ? `<DeleteResult>${failure}</DeleteResult>` : xml(failure));
  },
  'a page of a gateway': (request, response) => {
    response.writeHead(502, { 'content-type': 'text/html' });
    response.end(`<html><body><pre>${headersOf(request)}</pre></body></html>`);
  },
  'an answer that is none': (request, response) => {
    response.writeHead(200, { 'content-type': 'application/xml', 'x-echo': headersOf(request).replaceAll('\n', ' ') });
    response.end(headersOf(request));
  },
  'headers, and then silence': (request, response) => {
    response.writeHead(500, { 'x-echo': headersOf(request).replaceAll('\n', ' '), 'content-length': '100' });
    response.write('<Error>');
    setTimeout(() => response.destroy(), 5);
  },
};

function expectNoSecrets(text: string): void {
  for (const secret of [secretKey, sessionToken, ...signatures]) expect(text).not.toContain(secret);
  // Nor parts of the token, in whatever way.
  const plain = text.toLowerCase();
  for (const part of [sessionToken.slice(0, 16), sessionToken.slice(-20, -4)])
    expect(plain).not.toContain(part.toLowerCase());
}

describe('an indiscreet store that repeats its requests', () => {
  it.each(Object.keys(indiscretions))('in %s does not get secrets into errors', async (kind) => {
    answer = indiscretions[kind] as typeof answer;
    signatures = [];
    const heard: unknown[] = [];
    const bucket = new ObjectStoreDriver({ bucket: 'bucket', endpoint });
    const driver = new ObservedDriver(bucket, { onRequest: (request) => heard.push(request) });
    const failures = await Promise.all([
      driver.get('key').catch((error: unknown) => error),
      driver.put('key', Buffer.from('x'), { if: 'absent' }).catch((error: unknown) => error),
      driver.list('prefix').catch((error: unknown) => error),
      driver.delete(['a', 'b']).catch((error: unknown) => error),
    ]);
    expect(failures.some((failure) => failure instanceof StoreDbError)).toBe(true);
    expect(signatures.length).toBeGreaterThan(3);
    expectNoSecrets(shown(failures));
    expectNoSecrets(shown(heard));
    // Also where hidden properties are shown.
    expectNoSecrets(shownWhole(failures));
    for (const value of [driver, bucket, bucket.describe()]) {
      expectNoSecrets(inspect(value, { depth: 9, showHidden: true }));
    }
    await driver.close();
  });

  const refusals = [
    'elements of its own',
    'a sentence of its message',
    'its code and its name',
    'what it did not delete',
  ];
  it.each(refusals)('in %s does not get them into the report of doctor()', async (kind) => {
    answer = indiscretions[kind] as typeof answer;
    const driver = new ObjectStoreDriver({ bucket: 'bucket', endpoint });
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logLevel: 'silent' });
    const report = await db.doctor({ signal: AbortSignal.timeout(20_000) }).catch((error: unknown) => error);
    expectNoSecrets(shown(report));
    if (!(report instanceof Error)) expectNoSecrets(formatStoreReport(report as StoreReport));
    await driver.close();
  });

  it('does not get them into log lines or the inspected form of a database', async () => {
    answer = indiscretions['its message'] as typeof answer;
    const lines: unknown[] = [];
    const line = (...words: unknown[]): unknown => lines.push(words);
    const logger: Logger = { debug: line, info: line, warn: line, error: line };
    const driver = new ObjectStoreDriver({ bucket: 'bucket', endpoint });
    const onRequest = (): never => {
      throw new Error(`Authorization: AWS4-HMAC-SHA256 Credential=x, Signature=${signatures[0]}`);
    };
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logger, logLevel: 'debug', onRequest });
    const failure: unknown = await db.start().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StoreDbError);
    await db.stop();
    expect(lines.length).toBeGreaterThan(0);
    expectNoSecrets(shown(failure));
    const messages = lines.map((words) => String((words as unknown[])[0]));
    expectNoSecrets(messages.join('\n'));
    expectNoSecrets(inspect(db, { depth: 9, showHidden: true }));
    await driver.close();
  });
});

describe('credentials where they do not belong', () => {
  const bucket = 'bucket';
  it.each([
    ['an endpoint', { bucket, endpoint: `http://user:${secretKey}@127.0.0.1` }],
    ['an endpoint that is no URL', { bucket, endpoint: `http://user:${secretKey}@127.0.0.1:999999` }],
    ['an endpoint of another protocol', { bucket, endpoint: `ftp://${encodeURIComponent(secretKey)}@127.0.0.1` }],
    ['the name of a bucket', { bucket: `s3://AKIAIOSFODNN7EXAMPLE:${secretKey}@bucket/prefix` }],
    ['options of another library', { bucket, secretAccessKey: secretKey }],
    ['a client that is none', { bucket, client: { credentials: { secretAccessKey: secretKey } } }],
  ])('are refused without being shown: %s', (_, options) => {
    const make = (): unknown => new ObjectStoreDriver(options as never);
    let refused: unknown;
    try {
      make();
    } catch (error) {
      refused = error;
    }
    expect(refused).toMatchObject({ code: 'INVALID_OPTION' });
    expectNoSecrets(shown(refused));
    expect(shown(refused)).not.toContain(encodeURIComponent(secretKey));
  });

  it("are left out of a driver's description of its endpoint", () => {
    const driver = new ObjectStoreDriver({ bucket, endpoint: 'http://127.0.0.1/gateway?key=hush#hush' });
    expect(driver.describe()).toMatchObject({ endpoint: 'http://127.0.0.1/gateway' });
  });

  it('are taken out of any text', () => {
    for (const [text, safe] of [
      ['s3://AKIA:a/b+c@bucket/x', 's3://…@bucket/x'],
      ['https://token@host', 'https://…@host'],
      ['https://host/a@b', 'https://host/a@b'],
      ['GET /k?X-Amz-Credential=AK%2F2026&X-Amz-Signature=00ff&x=1', 'GET /k?X-Amz-Credential=…&X-Amz-Signature=…&x=1'],
      ['{"x-amz-security-token":"abc","a":1}', '{"x-amz-security-token":"…","a":1}'],
      ['Authorization: Bearer abcdefgh.ijkl', 'Authorization: Bearer …'],
      ['Authorization: SharedKey account:c2lnbmF0dXJl+/=', 'Authorization: SharedKey …'],
      [
        'https://a.blob.core.windows.net/c/b?sv=2026&sp=r&sig=ab%2Bc%3D&x=1',
        'https://a.blob.core.windows.net/c/b?sv=2026&sp=r&sig=…&x=1',
      ],
      ['<Url>/b?sv=1&amp;sig=abc%3D</Url>', '<Url>/b?sv=1&amp;sig=…</Url>'],
      ['AccountName=a;AccountKey=Zm9v+/==;EndpointSuffix=b', 'AccountName=a;AccountKey=…;EndpointSuffix=b'],
      ['BlobEndpoint=b;SharedAccessSignature=sv=2026&sig=abc%3D;', 'BlobEndpoint=b;SharedAccessSignature=…&sig=…;'],
      ['/k?X-Goog-Credential=a%40b&X-Goog-Signature=00ff&x=1', '/k?X-Goog-Credential=…&X-Goog-Signature=…&x=1'],
      [
        'https://storage.googleapis.com/upload?name=a&upload_id=AbC-d&x=1',
        'https://storage.googleapis.com/upload?name=a&upload_id=…&x=1',
      ],
      ['{"access_token":"ya29.a0Af","expires_in":3599}', '{"access_token":"…","expires_in":3599}'],
      [
        'grant_type=client_credentials&client_secret=hush~hush&scope=a',
        'grant_type=client_credentials&client_secret=…&scope=a',
      ],
    ] as const) {
      expect(withoutSecrets(text)).toBe(safe);
    }
  });
});

describe('a value that was refused', () => {
  it('is there for who asks, and not for who logs', async () => {
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
    const fields = { id: { typeId: Types.int32 }, secret: { typeId: Types.json } };
    db.registerSchema({ name: 'people', version: 1, fields, primaryKey: 'id' });
    await db.start();
    const secret = { password: 'hunter2', self: [undefined] };
    const error: unknown = await db
      .batch()
      .insert('people', { id: 1, secret })
      .then(
        () => undefined,
        (cause: unknown) => cause,
      );
    expect(error).toBeInstanceOf(EncodeError);
    expect((error as EncodeError).value).toBe(secret);
    expect(shown(error)).not.toContain('hunter2');
    expect(Object.keys(error as object)).not.toContain('value');
    await db.stop();
  });
});
