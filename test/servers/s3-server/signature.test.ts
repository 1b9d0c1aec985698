import { request as httpRequest } from 'node:http';
import { GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { describe, expect, it } from 'vitest';
import { answerOf, Bucket, openServer, refusalOf } from './opened-server.ts';

const get = new GetObjectCommand({ Bucket, Key: 'a' });

/** Without what `fetch` would tidy up in a path. */
async function readRaw(url: string): Promise<number | undefined> {
  const { hostname, port } = new URL(url);
  const path = url.slice(url.indexOf('/', 'http://'.length));
  return new Promise((resolve, reject) => {
    const request = httpRequest({ hostname, port, path }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on('error', reject);
    request.end();
  });
}

describe('a signed request', () => {
  it('is read without one where a policy makes it public, and not written', async () => {
    const { server, put } = await openServer();
    await put('public/a', 'text');
    await put('b');
    server.isPublic = (_, key) => key.startsWith('public/');
    const url = (key: string): string => `${server.endpoint}/${Bucket}/${key}`;
    expect(await answerOf(fetch(url('public/a')))).toBe('200 text');
    expect(await answerOf(fetch(url('b')))).toBe('403 AccessDenied');
    expect(await answerOf(fetch(url('public/a'), { method: 'PUT', body: 'other' }))).toBe('403 AccessDenied');
    expect(await answerOf(fetch(url('public/a'), { headers: { authorization: 'AWS4-HMAC-SHA256 x' } }))).toMatch(
      /^40[03]/,
    );
    const preflight = { method: 'OPTIONS', headers: { origin: 'https://page.example' } };
    expect((await fetch(url('public/a'), preflight)).status).toBe(403);
    server.allowedOrigin = 'https://page.example';
    expect((await fetch(url('public/a'), preflight)).headers.get('access-control-allow-origin')).toBe(
      'https://page.example',
    );
  });

  it('is refused without a signature', async () => {
    const { server } = await openServer();
    expect(await answerOf(fetch(`${server.endpoint}/${Bucket}/a`))).toBe('403 AccessDenied');
  });

  it('is refused with another key or secret', async () => {
    const { server } = await openServer();
    const { accessKeyId, secretAccessKey } = server.credentials;
    const stranger = server.client({ credentials: { accessKeyId: 'stranger', secretAccessKey } });
    expect(await refusalOf(stranger.send(get))).toBe('403 InvalidAccessKeyId');
    const forger = server.client({ credentials: { accessKeyId, secretAccessKey: 'guessed' } });
    expect(await refusalOf(forger.send(get))).toBe('403 SignatureDoesNotMatch');
    const temporary = server.client({ credentials: { accessKeyId, secretAccessKey, sessionToken: 'token' } });
    expect(await refusalOf(temporary.send(get))).toBe('400 InvalidToken');
  });

  it('is refused in another region', async () => {
    const { server, client, put } = await openServer({ region: 'eu-north-1' });
    await put('a');
    expect(await refusalOf(client.send(get))).toBe('none');
    const lost = server.client({ region: 'us-east-1' });
    expect(await refusalOf(lost.send(get))).toBe('400 AuthorizationHeaderMalformed');
  });

  it.each<
    [string, (request: { headers: Record<string, string>; query: Record<string, string>; path: string }) => void]
  >([
    ['path', (request) => (request.path = `/${Bucket}/b`)],
    ['query', ({ query }) => (query['response-content-type'] = 'text/html')],
    ['host', ({ headers }) => (headers['host'] = 'elsewhere')],
    ['condition', ({ headers }) => (headers['if-match'] = '"abc"')],
    ['payload hash', ({ headers }) => (headers['x-amz-content-sha256'] = 'UNSIGNED-PAYLOAD')],
  ])('is refused with another %s', async (_, change) => {
    const { altered, put } = await openServer();
    const etag = await put('a');
    await put('b');
    const read = new GetObjectCommand({ Bucket, Key: 'a', IfMatch: etag });
    expect(await refusalOf(altered('after', () => undefined).send(read))).toBe('none');
    expect(await refusalOf(altered('after', change).send(read))).toBe('403 SignatureDoesNotMatch');
  });

  it('is refused with headers that are not signed', async () => {
    const { altered } = await openServer();
    const sneaking = altered('after', ({ headers }) => {
      headers['x-amz-server-side-encryption'] = 'aws:kms';
    });
    const put = new PutObjectCommand({ Bucket, Key: 'a', Body: 'x' });
    expect(await refusalOf(sneaking.send(put))).toBe('403 AccessDenied');
  });

  it('is refused without a hash of the payload', async () => {
    const { altered } = await openServer();
    const hashless = altered('after', ({ headers }) => delete headers['x-amz-content-sha256']);
    expect(await refusalOf(hashless.send(get))).toBe('400 InvalidRequest');
  });

  it('is refused where clocks differ by more than a quarter of an hour', async () => {
    const { server, put, get: read } = await openServer();
    await put('a', 'text');
    for (const [skewMs, expected] of [
      [16 * 60_000, 'RequestTimeTooSkewed'],
      [-16 * 60_000, 'RequestTimeTooSkewed'],
      [14 * 60_000, undefined],
    ] as const) {
      server.dialect.clockSkewMs = skewMs;
      // A client of its own each time: the SDK learns the skew from the answer, and is right the next time.
      const client = server.client({ maxAttempts: 1 });
      await refusalOf(client.send(get));
      expect(server.log.at(-1)?.code).toBe(expected);
      expect(await refusalOf(client.send(get))).toBe('none');
    }
    server.dialect.clockSkewMs = 0;
    expect(await read('a')).toBe('text');
  });

  it('is signed by its bytes, for any bytes', async () => {
    const { client, put, get: read } = await openServer();
    const odd = 'a+b %2B/../ü=&?#"~*';
    await put(odd, 'text');
    expect(await read(odd, { ResponseContentType: 'text/x; y="ü +"' })).toBe('text');
    const list = new ListObjectsV2Command({ Bucket, Prefix: odd, StartAfter: 'a+', MaxKeys: 5 });
    expect((await client.send(list)).KeyCount).toBe(1);
  });
});

describe('a presigned URL', () => {
  it('is read by anyone, byte for byte', async () => {
    const { client, server, put } = await openServer();
    await put('a', 'text', { ContentType: 'image/png' });
    const url = await getSignedUrl(client, get, { expiresIn: 60 });
    const response = await fetch(url, { headers: { range: 'bytes=1-2' } });
    expect([response.status, await response.text()]).toEqual([206, 'ex']);
    expect(response.headers.get('content-type')).toBe('image/png');
    expect(await answerOf(fetch(url.replace('/a?', '/b?')))).toBe('403 SignatureDoesNotMatch');
    expect(await answerOf(fetch(url, { method: 'DELETE' }))).toBe('403 SignatureDoesNotMatch');
    expect(await answerOf(fetch(url.replace(/(Signature=)./, '$1!')))).toBe('403 SignatureDoesNotMatch');
    expect(await answerOf(fetch(url.replace('test-key', 'other')))).toBe('403 InvalidAccessKeyId');
    expect(await answerOf(fetch(url.replace('Expires=60', 'Expires=61')))).toBe('403 SignatureDoesNotMatch');
    expect(await answerOf(fetch(url, { headers: { authorization: 'AWS4-HMAC-SHA256 x' } }))).toBe(
      '400 InvalidArgument',
    );
    expect(server.objects(Bucket).size).toBe(1);
  });

  it('of a key with dots works where nothing normalizes it', async () => {
    const { client, put } = await openServer();
    await put('x/../y//z', 'text');
    const url = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key: 'x/../y//z' }));
    expect(await readRaw(url)).toBe(200);
  });

  it('may name the download', async () => {
    const { client, put } = await openServer();
    await put('a', 'text');
    const named = new GetObjectCommand({ Bucket, Key: 'a', ResponseContentDisposition: 'attachment; filename="b"' });
    const url = await getSignedUrl(client, named);
    // Spaces may be written either way, and the checksum was asked for in the URL as well.
    for (const either of [url, url.replace('%20', '+')]) {
      const { headers } = await fetch(either);
      expect(headers.get('content-disposition')).toBe('attachment; filename="b"');
      expect(headers.get('x-amz-checksum-type')).toBe('FULL_OBJECT');
    }
    expect(url).toContain('%20');
  });

  it('may be one to put to', async () => {
    const { server } = await openServer();
    // The SDK would sign the checksum of an empty body.
    const client = server.client({ requestChecksumCalculation: 'WHEN_REQUIRED' });
    const put = new PutObjectCommand({ Bucket, Key: 'a', IfNoneMatch: '*', ServerSideEncryption: 'aws:kms' });
    const url = await getSignedUrl(client, put);
    const headers = { 'if-none-match': '*', 'x-amz-server-side-encryption': 'aws:kms' };
    const upload = { method: 'PUT', body: 'text', headers };
    expect(await answerOf(fetch(url, upload))).toBe('200 ');
    expect(await answerOf(fetch(url, upload))).toBe('412 PreconditionFailed');
    for (const name of Object.keys(headers)) {
      const fewer = { ...upload, headers: { ...headers, [name]: '' } };
      expect(await answerOf(fetch(url, fewer))).toBe('403 SignatureDoesNotMatch');
    }
    const { bytes, encryption } = server.objects(Bucket).get('a') ?? {};
    expect([bytes?.toString(), encryption?.algorithm]).toEqual(['text', 'aws:kms']);
  });

  it('expires', async () => {
    let passedMs = 0;
    const { client, put } = await openServer({ clock: () => Date.now() + passedMs });
    await put('a', 'text');
    const url = await getSignedUrl(client, get, { expiresIn: 60 });
    passedMs = 58_000;
    expect(await answerOf(fetch(url))).toBe('200 text');
    passedMs = 61_000;
    const expired = await fetch(url);
    expect(expired.status).toBe(403);
    expect(await expired.text()).toMatch(/<Code>AccessDenied<\/Code><Message>Request has expired<\/Message>/);
    passedMs = -16 * 60_000;
    expect(await (await fetch(url)).text()).toContain('Request is not yet valid');
  });

  it('lasts a week at most', async () => {
    const { client, put } = await openServer();
    await put('a', 'text');
    const url = await getSignedUrl(client, get, { expiresIn: 604_800 });
    expect(await answerOf(fetch(url))).toBe('200 text');
    for (const odd of ['604801', '-1', 'soon']) {
      const longer = url.replace('Expires=604800', `Expires=${odd}`);
      expect(await answerOf(fetch(longer))).toBe('400 AuthorizationQueryParametersError');
    }
  });
});
