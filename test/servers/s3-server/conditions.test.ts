import { GetObjectCommand, HeadObjectCommand } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import { Bucket, openServer, refusalOf } from './opened-server.ts';

const stale = '"0123456789abcdef0123456789abcdef"';

describe('a put', () => {
  it('on condition that there is nothing', async () => {
    const { put, get, server } = await openServer();
    await put('a', 'first', { IfNoneMatch: '*' });
    expect(await refusalOf(put('a', 'second', { IfNoneMatch: '*' }))).toBe('412 PreconditionFailed');
    expect(await get('a')).toBe('first');
    expect(server.log.map(({ status }) => status)).toEqual([200, 412, 200]);
  });

  it('on condition that nothing has changed', async () => {
    const { put, get } = await openServer();
    const first = await put('a', 'first');
    const second = await put('a', 'second', { IfMatch: first });
    expect(await refusalOf(put('a', 'third', { IfMatch: first }))).toBe('412 PreconditionFailed');
    expect(await get('a')).toBe('second');
    await put('a', 'third', { IfMatch: second.replaceAll('"', '') });
    expect(await get('a')).toBe('third');
  });

  it('on condition of an ETag fails where there is nothing', async () => {
    const { put, get } = await openServer();
    expect(await refusalOf(put('a', 'text', { IfMatch: stale }))).toBe('404 NoSuchKey');
    expect(await refusalOf(get('a'))).toBe('404 NoSuchKey');
  });

  it('takes no other conditions', async () => {
    const { put, get } = await openServer();
    const etag = await put('a', 'text');
    for (const odd of [
      { IfNoneMatch: stale },
      { IfMatch: '*' },
      { IfNoneMatch: '*', IfMatch: etag },
      { IfNoneMatch: '*', IfMatch: stale },
    ]) {
      expect(await refusalOf(put('a', 'other', odd))).toBe('501 NotImplemented');
    }
    expect(await get('a')).toBe('text');
  });

  it('is decided once its body is there, and races have one winner', async () => {
    const { server, put, get } = await openServer();
    // Nobody writes what is there already: its ETag would still hold.
    const racers = Array.from({ length: 16 }, (_, index) => `racer ${index} with `);
    // All have arrived before the first is handled.
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    server.intercept = ({ method }) => {
      if (method === 'PUT' && server.log.length % racers.length === 0) open();
      return method === 'PUT' ? gate : undefined;
    };
    const race = (IfNoneMatch?: string, IfMatch?: string): Promise<string[]> =>
      Promise.all(racers.map((body) => refusalOf(put('a', body + IfMatch, { IfNoneMatch, IfMatch }))));
    const created = await race('*');
    expect(created.filter((refusal) => refusal === 'none')).toHaveLength(1);
    expect(await get('a')).toBe(`${racers[created.indexOf('none')]}undefined`);
    const etag = server.objects(Bucket).get('a')?.etag;
    const updated = await race(undefined, etag);
    expect(updated.toSorted()).toEqual([...Array.from({ length: 15 }, () => '412 PreconditionFailed'), 'none']);
    expect(await get('a')).toBe(`${racers[updated.indexOf('none')]}${etag}`);
  });

  it('may conflict on demand', async () => {
    const { server, put, get } = await openServer();
    server.intercept = ({ method }) => {
      return method === 'PUT' ? { status: 409, code: 'ConditionalRequestConflict' } : undefined;
    };
    expect(await refusalOf(put('a', 'text', { IfNoneMatch: '*' }))).toBe('409 ConditionalRequestConflict');
    expect(await refusalOf(get('a'))).toBe('404 NoSuchKey');
  });
});

describe('a read', () => {
  it('on condition that something has changed', async () => {
    const { client, put, get } = await openServer();
    const etag = await put('a', 'text');
    for (const IfNoneMatch of [etag, etag.replaceAll('"', ''), `${stale}, ${etag}`, '*']) {
      expect(await refusalOf(get('a', { IfNoneMatch }))).toBe('304 Unknown');
      const head = new HeadObjectCommand({ Bucket, Key: 'a', IfNoneMatch });
      expect(await refusalOf(client.send(head))).toBe('304 Unknown');
    }
    expect(await get('a', { IfNoneMatch: stale })).toBe('text');
    // There is nothing that could be unchanged.
    expect(await refusalOf(get('none', { IfNoneMatch: etag }))).toBe('404 NoSuchKey');
  });

  it('that is not needed returns the ETag and no more', async () => {
    const { server, altered, put } = await openServer();
    const etag = await put('a', 'text');
    let headers: Record<string, string> = {};
    const client = altered('before', () => undefined);
    client.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        headers = (result.response as { headers: Record<string, string> }).headers;
        return result;
      },
      { step: 'deserialize', priority: 'low', name: 'watched' },
    );
    await refusalOf(client.send(new GetObjectCommand({ Bucket, Key: 'a', IfNoneMatch: etag })));
    expect(headers).toMatchObject({ etag });
    expect(headers['content-length']).toBeUndefined();
    expect(server.log.at(-1)).toMatchObject({ status: 304, bytesOut: 0 });
  });

  it('on condition that nothing has changed', async () => {
    const { put, get } = await openServer();
    const etag = await put('a', 'text');
    expect(await get('a', { IfMatch: etag, Range: 'bytes=1-' })).toBe('ext');
    expect(await refusalOf(get('a', { IfMatch: stale, Range: 'bytes=99-' }))).toBe('412 PreconditionFailed');
  });
});
