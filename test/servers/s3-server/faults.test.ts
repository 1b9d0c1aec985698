import { describe, expect, it } from 'vitest';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { Bucket, openServer, refusalOf } from './opened-server.ts';
import type { Fault } from './server.ts';
import { startS3Server } from './server.ts';

describe('intercepted requests', () => {
  it.each<[string, Fault, string, boolean]>([
    ['refused', { status: 500, code: 'InternalError' }, '500 InternalError', false],
    ['refused after they were handled', { status: 503, code: 'SlowDown', after: true }, '503 SlowDown', true],
    ['cut before they are handled', 'reset', 'no answer TimeoutError', false],
    ['cut instead of answered', 'reset-after', 'no answer TimeoutError', true],
  ])('are %s', async (_, fault, refusal, isWritten) => {
    const { server, put, get } = await openServer();
    server.intercept = ({ operation, key }) => (operation === 'PutObject' && key === 'a' ? fault : undefined);
    expect(await refusalOf(put('a', 'text'))).toBe(refusal);
    expect(server.objects(Bucket).has('a')).toBe(isWritten);
    await put('b', 'text');
    expect(await get('b')).toBe('text');
    const { status } = server.log[0] ?? {};
    expect(status).toBe(typeof fault === 'string' ? undefined : Number.parseInt(refusal, 10));
  });

  it('are cut in the middle of the answer', async () => {
    const { server, put, get } = await openServer();
    await put('a', '0123456789');
    server.intercept = () => 'reset-during';
    expect(await refusalOf(get('a'))).toMatch(/^no answer/);
    expect(server.log.at(-1)).toMatchObject({ status: 200, bytesOut: 5 });
    expect(await refusalOf(put('b', 'text'))).toMatch(/^no answer/);
    expect(server.objects(Bucket).has('b')).toBe(true);
  });

  it('come later, also where the client no longer waits', async () => {
    const { server, client, get } = await openServer();
    const given = new AbortController();
    server.intercept = ({ method }) => {
      if (method !== 'PUT') return undefined;
      given.abort();
      return { delayMs: 500 };
    };
    const put = client.send(new PutObjectCommand({ Bucket, Key: 'a', Body: 'text' }), { abortSignal: given.signal });
    expect(await refusalOf(put)).toBe('no answer AbortError');
    expect(await refusalOf(get('a'))).toBe('404 NoSuchKey');
    await expect.poll(() => server.objects(Bucket).has('a'), { timeout: 10_000 }).toBe(true);
  });

  it('are held back until a promise settles', async () => {
    const { server, put } = await openServer();
    let open: (fault: undefined) => void = () => undefined;
    server.intercept = () =>
      new Promise((resolve) => {
        open = resolve;
      });
    const written = put('a', 'text');
    await expect.poll(() => server.log.length).toBe(1);
    expect(server.objects(Bucket).size).toBe(0);
    open(undefined);
    await written;
    expect(server.objects(Bucket).size).toBe(1);
  });

  it('may say when to come back', async () => {
    const { server } = await openServer();
    server.intercept = () => ({ status: 503, code: 'SlowDown', headers: { 'retry-after': '7' } });
    const response = await fetch(server.endpoint);
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '7']);
  });
});

describe('a server', () => {
  it('starts again at the same place, with the same objects', async () => {
    const { server, put, get } = await openServer();
    await put('a', 'text');
    const { endpoint } = server;
    await server.close();
    expect(await refusalOf(get('a'))).toMatch(/^no answer/);
    await server.restart();
    expect(server.endpoint).toBe(endpoint);
    expect(await get('a')).toBe('text');
  });

  it('loses requests under way when it stops', async () => {
    const { server, put, get } = await openServer();
    let open: (fault: undefined) => void = () => undefined;
    server.intercept = () =>
      new Promise((resolve) => {
        open = resolve;
      });
    const refusal = refusalOf(put('a', 'text'));
    await expect.poll(() => server.log.length).toBe(1);
    await server.restart();
    server.intercept = undefined;
    open(undefined);
    expect(await refusal).toMatch(/^no answer/);
    expect(await refusalOf(get('a'))).toBe('404 NoSuchKey');
  });

  it('lists its requests', async () => {
    const { server, put, get } = await openServer();
    await put('a b', 'text', { IfNoneMatch: '*' });
    await get('a b', { Range: 'bytes=0-1' });
    await refusalOf(get('c'));
    expect(server.log.map(({ operation, key, status, code }) => [operation, key, status, code])).toEqual([
      ['PutObject', 'a b', 200, undefined],
      ['GetObject', 'a b', 206, undefined],
      ['GetObject', 'c', 404, 'NoSuchKey'],
    ]);
    expect(server.log[0]).toMatchObject({ method: 'PUT', bucket: Bucket, bytesIn: 4, bytesOut: 0 });
    expect(server.log[0]?.headers).toMatchObject({ 'if-none-match': '*' });
    expect(server.log[1]).toMatchObject({ query: { 'x-id': 'GetObject' }, bytesIn: 0, bytesOut: 2 });
    server.clearLog();
    expect(server.log).toEqual([]);
  });

  it('has buckets, credentials and a region of one’s choice', async () => {
    const credentials = { accessKeyId: 'mine', secretAccessKey: 'hidden' };
    const server = await startS3Server({ buckets: ['one', 'two'], credentials, region: 'eu-north-1' });
    await server.client().send(new PutObjectCommand({ Bucket: 'two', Key: 'a', Body: 'text' }));
    expect([server.objects('one').size, server.objects('two').size]).toEqual([0, 1]);
    expect(server.log[0]?.headers['authorization']).toContain('mine/');
    await server.close();
    await server.close();
  });
});
