/** The test server itself: what it answers to requests as Google documents them. */
import { onTestFinished, beforeEach, describe, expect, it } from 'vitest';
import { startGcsServer } from './server.ts';
import type { GcsServer } from './server.ts';

let server: GcsServer;
const base = '/storage/v1/b/test-bucket/o';
const upload = `/upload${base}`;

beforeEach(async () => {
  const started = await startGcsServer();
  server = started;
  onTestFinished(() => started.close());
});

/** Sends a request with the token. */
function send(
  method: string,
  path: string,
  body?: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
) {
  return fetch(`${server.endpoint}${path}`, {
    method,
    headers: { authorization: `Bearer ${server.token}`, ...headers },
    ...(body === undefined ? {} : { body }),
    redirect: 'manual',
  });
}

async function put(name: string, text: string, query = ''): Promise<string> {
  const answer = await send('POST', `${upload}?uploadType=media&name=${encodeURIComponent(name)}${query}`, text);
  const resource = (await answer.json()) as { generation?: string };
  return resource.generation ?? `refused with ${answer.status}`;
}

async function statusOf(answer: Promise<Response>): Promise<number> {
  return (await answer).status;
}

describe('conditions', () => {
  it('of uploads: on generation 0 and on others', async () => {
    const first = await put('a', 'one', '&ifGenerationMatch=0');
    expect(first).toMatch(/^\d{16}$/);
    expect(await put('a', 'two', '&ifGenerationMatch=0')).toBe('refused with 412');
    const second = await put('a', 'two', `&ifGenerationMatch=${first}`);
    expect(BigInt(second)).toBeGreaterThan(BigInt(first));
    expect(await put('a', 'three', `&ifGenerationMatch=${first}`)).toBe('refused with 412');
    expect(await put('b', 'x', `&ifGenerationMatch=${first}`)).toBe('refused with 412');
    expect(await put('a', 'x', `&ifGenerationNotMatch=${second}`)).toBe('refused with 412');
    expect(server.objects.get('a')?.bytes.toString()).toBe('two');
  });

  it('of reads, deletions and copies', async () => {
    const generation = await put('a', 'text');
    expect(await statusOf(send('GET', `${base}/a?alt=media&ifGenerationNotMatch=${generation}`))).toBe(304);
    expect(await statusOf(send('GET', `${base}/a?ifGenerationMatch=1`))).toBe(412);
    expect(await statusOf(send('DELETE', `${base}/a?ifGenerationMatch=1`))).toBe(412);
    const target = `${base}/a/rewriteTo/b/test-bucket/o/b`;
    expect(await statusOf(send('POST', `${target}?ifSourceGenerationMatch=1`))).toBe(412);
    expect(await statusOf(send('POST', `${target}?ifGenerationMatch=0`))).toBe(200);
    expect(await statusOf(send('POST', `${target}?ifGenerationMatch=0`))).toBe(412);
    expect(await statusOf(send('DELETE', `${base}/a?ifGenerationMatch=${generation}`))).toBe(204);
    expect(await statusOf(send('DELETE', `${base}/a`))).toBe(404);
  });

  it('that race have one winner', async () => {
    const all = await Promise.all(Array.from({ length: 12 }, (_, i) => put('race', `${i}`, '&ifGenerationMatch=0')));
    expect(all.filter((result) => !result.startsWith('refused'))).toHaveLength(1);
  });
});

describe('uploads', () => {
  it('of several parts: metadata and content, with a checksum', async () => {
    const parts = (md5Hash: string): string =>
      [
        '--b\r\nContent-Type: application/json\r\n',
        JSON.stringify({ name: 'm', contentType: 'text/plain', md5Hash, metadata: { k: 'v' } }),
        '--b\r\nContent-Type: text/plain\r\n',
        'text\r\nof lines',
        '--b--\r\n',
      ].join('\r\n');
    const headers = { 'content-type': 'multipart/related; boundary=b' };
    const path = `${upload}?uploadType=multipart`;
    expect(await statusOf(send('POST', path, parts('AAAAAAAAAAAAAAAAAAAAAA=='), headers))).toBe(400);
    const right = parts('eyxIkXtljIRnUaPVjjNMRg==');
    const answer = await send('POST', path, right, headers);
    const said = answer.status === 200 ? '' : await answer.text();
    expect(said).toMatch(/^$|MD5/);
    expect(await statusOf(send('POST', path, right.replace(/"md5Hash":"[^"]*",/, ''), headers))).toBe(200);
    expect(server.objects.get('m')?.bytes.toString()).toBe('text\r\nof lines');
    expect(server.objects.get('m')?.metadata).toEqual({ k: 'v' });
  });

  it('in sessions: chunks, questions, overlaps, the end, and what comes after it', async () => {
    const opened = await send('POST', `${upload}?uploadType=resumable&name=r&ifGenerationMatch=0`, '{}');
    const path = (opened.headers.get('location') ?? '').replace(server.endpoint, '');
    const chunk = Buffer.alloc(256 * 1024 + 5, 'x');
    const session = (range: string, body?: Uint8Array<ArrayBuffer>): Promise<Response> =>
      fetch(`${server.endpoint}${path}`, {
        method: 'PUT',
        headers: { 'content-range': range },
        ...(body === undefined ? {} : { body }),
      });
    expect((await session('bytes */*')).headers.get('range')).toBeNull();
    const kept = await session(`bytes 0-${chunk.length - 1}/*`, chunk);
    // Only whole multiples of 256 KiB are kept.
    expect([kept.status, kept.headers.get('range')]).toEqual([308, 'bytes=0-262143']);
    expect((await session(`bytes 300000-300004/300005`, chunk.subarray(0, 5))).status).toBe(503);
    expect((await session('bytes 0-1/5', chunk)).status).toBe(400);
    const done = await session(`bytes 262140-262148/262149`, Buffer.from('????12345'));
    expect(done.status).toBe(200);
    expect(server.objects.get('r')?.bytes.subarray(-9).toString()).toBe('xxxx12345');
    expect((await session('bytes */262149')).status).toBe(200);
    const ended = await fetch(`${server.endpoint}${path}`, { method: 'DELETE' });
    expect(ended.status).toBe(499);
    expect((await session('bytes */*')).status).toBe(410);
    expect(await statusOf(send('POST', `${upload}?uploadType=resumable&name=r&ifGenerationMatch=0`, '{}'))).toBe(412);
  });
});

describe('reads', () => {
  it('of ranges, with the generation in a header, and 404 as text', async () => {
    const generation = await put('a', '0123456789');
    const answer = await send('GET', `${base}/a?alt=media`, undefined, { range: 'bytes=2-4' });
    expect([answer.status, await answer.text()]).toEqual([206, '234']);
    expect(answer.headers.get('content-range')).toBe('bytes 2-4/10');
    expect(answer.headers.get('x-goog-generation')).toBe(generation);
    expect(await statusOf(send('GET', `${base}/a?alt=media`, undefined, { range: 'bytes=10-11' }))).toBe(416);
    const missing = await send('GET', `${base}/b?alt=media`);
    expect([missing.status, await missing.text()]).toEqual([404, 'No such object: test-bucket/b']);
  });

  it('of listings: from an offset, page by page, with the fields that are asked for', async () => {
    for (const name of ['a', 'b/\u{ff5e}', 'b/\u{1f600}', 'c']) await put(name, name);
    const list = async (query: string): Promise<{ items?: { name: string }[]; nextPageToken?: string }> =>
      (await send('GET', `${base}?${query}`)).json() as Promise<{ items?: { name: string }[]; nextPageToken?: string }>;
    expect((await list('startOffset=b')).items?.map(({ name }) => name)).toEqual(['b/\u{ff5e}', 'b/\u{1f600}', 'c']);
    const page = await list('maxResults=3&fields=items(name),nextPageToken');
    expect(page.items).toHaveLength(3);
    expect(Object.keys(page.items?.[0] ?? {})).toEqual(['name']);
    expect((await list(`pageToken=${page.nextPageToken}`)).items?.map(({ name }) => name)).toEqual(['c']);
    expect(await list('prefix=none')).not.toHaveProperty('items');
  });
});

describe('refusals', () => {
  it('of requests without the token, of other buckets, names and parameters', async () => {
    expect(await statusOf(fetch(`${server.endpoint}${base}`))).toBe(401);
    expect(await statusOf(send('GET', '/storage/v1/b/other/o'))).toBe(404);
    expect(await statusOf(send('GET', `${base}?delimiter=/`))).toBe(501);
    expect(await statusOf(send('PATCH', `${base}/a`))).toBe(501);
    expect(await put('..', 'x')).toBe('refused with 400');
    expect(await put('a\nb', 'x')).toBe('refused with 400');
    expect(await statusOf(send('GET', '/test-bucket/a?X-Goog-Algorithm=GOOG4-RSA-SHA256'))).toBe(403);
  });

  it('on demand, before and after a request was handled', async () => {
    server.intercept = () => ({ status: 503 });
    expect(await put('a', 'x')).toBe('refused with 503');
    expect(server.objects.size).toBe(0);
    server.intercept = () => ({ status: 503, after: true });
    expect(await put('a', 'x')).toBe('refused with 503');
    expect(server.objects.size).toBe(1);
    server.intercept = () => 'reset-after';
    await expect(put('b', 'x')).rejects.toThrow('fetch failed');
    expect(server.objects.size).toBe(2);
    expect(server.log.map(({ status }) => status)).toEqual([503, 503, undefined]);
  });

  it('of writes of one object that follow each other too fast', async () => {
    server.dialect.writeIntervalMs = 60_000;
    await put('a', 'x');
    expect(await put('a', 'y')).toBe('refused with 429');
    expect(await put('b', 'y')).toMatch(/^\d+$/);
  });
});
