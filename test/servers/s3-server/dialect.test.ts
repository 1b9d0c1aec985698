import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  PutObjectCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import type { S3Dialect } from './dialect.ts';
import { Bucket, openServer, refusalOf } from './opened-server.ts';
import type { OpenedServer } from './opened-server.ts';

function speak(dialect: Partial<S3Dialect>): Promise<OpenedServer> {
  return openServer({ dialect });
}

const stale = '"0123456789abcdef0123456789abcdef"';

describe('conditions', () => {
  it('bareEtags: only an ETag without quotes matches', async () => {
    const { put, get } = await speak({ bareEtags: true });
    const etag = await put('a', 'first');
    expect(etag).toMatch(/^".*"$/);
    expect(await refusalOf(put('a', 'second', { IfMatch: etag }))).toBe('412 PreconditionFailed');
    expect(await refusalOf(put('a', 'second', { IfMatch: stale.slice(1, -1) }))).toBe('412 PreconditionFailed');
    await put('a', 'second', { IfMatch: etag.slice(1, -1) });
    expect(await get('a')).toBe('second');
    // Reads are as everywhere.
    expect(await refusalOf(get('a', { IfMatch: etag }))).toBe('412 PreconditionFailed');
  });

  it('missingIs412: an ETag does not match a missing object', async () => {
    const { put, keys } = await speak({ missingIs412: true });
    expect(await refusalOf(put('a', 'text', { IfMatch: stale }))).toBe('412 PreconditionFailed');
    expect(await keys()).toEqual([]);
  });

  it('ignoreIfNoneMatch: everyone creates', async () => {
    const { put, get } = await speak({ ignoreIfNoneMatch: true });
    await put('a', 'first', { IfNoneMatch: '*' });
    await put('a', 'second', { IfNoneMatch: '*' });
    expect(await get('a')).toBe('second');
    expect(await refusalOf(put('a', 'third', { IfMatch: stale }))).toBe('412 PreconditionFailed');
  });

  it('ignoreIfMatch: everyone replaces', async () => {
    const { put, get } = await speak({ ignoreIfMatch: true });
    await put('a', 'first', { IfMatch: stale });
    await put('a', 'second', { IfMatch: stale });
    expect(await get('a')).toBe('second');
    expect(await refusalOf(put('a', 'third', { IfNoneMatch: '*' }))).toBe('412 PreconditionFailed');
  });

  it('ignoreIfMatchOnMissing: an ETag matches a missing object', async () => {
    const { put, get } = await speak({ ignoreIfMatchOnMissing: true });
    await put('a', 'first', { IfMatch: stale });
    expect(await refusalOf(put('a', 'second', { IfMatch: stale }))).toBe('412 PreconditionFailed');
    expect(await get('a')).toBe('first');
  });

  it('checkThenWriteMs: races have several winners', async () => {
    const { put } = await speak({ checkThenWriteMs: 50 });
    const racers = Array.from({ length: 4 }, (_, index) => refusalOf(put('a', `${index}`, { IfNoneMatch: '*' })));
    const refusals = await Promise.all(racers);
    expect(refusals.filter((refusal) => refusal === 'none').length).toBeGreaterThan(1);
    expect(await refusalOf(put('a', 'late', { IfNoneMatch: '*' }))).toBe('412 PreconditionFailed');
  });
});

describe('permissions', () => {
  it('noListBucket: missing objects are not distinguished from forbidden ones', async () => {
    const { client, put, get, keys } = await speak({ noListBucket: true });
    await put('a', 'text');
    expect(await get('a')).toBe('text');
    expect(await refusalOf(get('b'))).toBe('403 AccessDenied');
    expect(await refusalOf(client.send(new HeadObjectCommand({ Bucket, Key: 'b' })))).toBe('403 Unknown');
    expect(await refusalOf(client.send(new HeadBucketCommand({ Bucket })))).toBe('403 Unknown');
    expect(await refusalOf(keys())).toBe('403 AccessDenied');
  });

  it('noDelete: nothing is deleted', async () => {
    const { client, put, keys } = await speak({ noDelete: true });
    await put('a');
    expect(await refusalOf(client.send(new DeleteObjectCommand({ Bucket, Key: 'a' })))).toBe('403 AccessDenied');
    const Objects = [{ Key: 'a' }, { Key: 'b' }];
    const { Deleted, Errors = [] } = await client.send(
      new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }),
    );
    expect(Deleted).toBeUndefined();
    expect(Errors.map(({ Key, Code }) => [Key, Code])).toEqual([
      ['a', 'AccessDenied'],
      ['b', 'AccessDenied'],
    ]);
    expect(await keys()).toEqual(['a']);
  });
});

/** What completing an upload of one part is refused with; asked twice. */
async function completeTwice(client: S3Client, IfNoneMatch?: string): Promise<string[]> {
  const target = { Bucket, Key: 'a' };
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(target));
  const part = { ...target, UploadId, PartNumber: 1 };
  const { ETag } = await client.send(new UploadPartCommand({ ...part, Body: 'part' }));
  const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] };
  const command = new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload, IfNoneMatch });
  return [await refusalOf(client.send(command)), await refusalOf(client.send(command))];
}

describe('missing abilities of stores', () => {
  it('noConditionalMultipart: every upload is completed', async () => {
    const { client, server, put, get } = await speak({ noConditionalMultipart: true });
    await put('a', 'whole');
    expect(await completeTwice(client, '*')).toEqual(['none', 'none']);
    expect(await get('a')).toBe('part');
    expect(await refusalOf(put('a', 'whole', { IfNoneMatch: '*' }))).toBe('412 PreconditionFailed');
    server.dialect.noConditionalMultipart = false;
    expect((await completeTwice(client, '*'))[0]).toBe('412 PreconditionFailed');
  });

  it('forgetsCompleted: an upload is completed once', async () => {
    const { client } = await speak({ forgetsCompleted: true });
    expect(await completeTwice(client)).toEqual(['none', '404 NoSuchUpload']);
  });

  it.each([400, 501] as const)('noChecksums: writes with checksums are refused with %d', async (status) => {
    const { server, put, get } = await speak({ noChecksums: status });
    const expected = status === 400 ? '400 InvalidArgument' : '501 NotImplemented';
    expect(await refusalOf(put('a'))).toBe(expected);
    const plain = server.client({ requestChecksumCalculation: 'WHEN_REQUIRED' });
    await plain.send(new PutObjectCommand({ Bucket, Key: 'a', Body: 'text' }));
    expect(await get('a')).toBe('text');
    const asked = new PutObjectCommand({ Bucket, Key: 'a', Body: 'text', ChecksumAlgorithm: 'SHA256' });
    expect(await refusalOf(plain.send(asked))).toBe(expected);
    const deletion = new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: 'a' }] } });
    expect(await refusalOf(plain.send(deletion))).toBe(expected);
    expect(await get('a')).toBe('text');
  });

  it('noDeleteObjects: keys are deleted one by one', async () => {
    const { client, put, keys } = await speak({ noDeleteObjects: true });
    await put('a');
    const deletion = new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: 'a' }] } });
    expect(await refusalOf(client.send(deletion))).toBe('501 NotImplemented');
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'a' }));
    expect(await keys()).toEqual([]);
  });

  it.each([
    [429, '429 TooManyRequests'],
    [503, '503 SlowDown'],
  ] as const)('tooManyPerKey: a key is written once in a while, else %d', async (status, expected) => {
    let passedMs = 0;
    const { put, get } = await openServer({
      dialect: { tooManyPerKey: { intervalMs: 1000, status } },
      clock: () => Date.now() + passedMs,
    });
    await put('a', 'first');
    expect(await refusalOf(put('a', 'second'))).toBe(expected);
    await put('b', 'other');
    expect(await get('a')).toBe('first');
    passedMs = 1001;
    await put('a', 'second');
    expect(await get('a')).toBe('second');
  });
});

describe('time', () => {
  it('staleReadsMs: reads show the past', async () => {
    let passedMs = 0;
    const { client, put, get, keys } = await openServer({
      dialect: { staleReadsMs: 1000 },
      clock: () => Math.floor(Date.now() / 100_000) * 100_000 + passedMs,
    });
    await put('a', 'first');
    expect(await refusalOf(get('a'))).toBe('404 NoSuchKey');
    expect(await keys()).toEqual(['a']);
    passedMs = 1001;
    const second = await put('a', 'second');
    expect(await get('a', { IfNoneMatch: second })).toBe('first');
    passedMs = 2002;
    expect(await get('a')).toBe('second');
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'a' }));
    expect(await get('a')).toBe('second');
    // Writes know better.
    await put('a', 'third', { IfNoneMatch: '*' });
    passedMs = 4004;
    expect(await get('a')).toBe('third');
  });

  it('staleListsMs: listings show the past', async () => {
    let passedMs = 0;
    const { client, put, get, keys } = await openServer({
      dialect: { staleListsMs: 1000 },
      clock: () => Math.floor(Date.now() / 100_000) * 100_000 + passedMs,
    });
    await put('b', 'text');
    expect(await get('b')).toBe('text');
    expect(await keys()).toEqual([]);
    passedMs = 1001;
    expect(await keys()).toEqual(['b']);
    await put('a', 'text');
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'b' }));
    expect(await keys()).toEqual(['b']);
    passedMs = 2002;
    expect(await keys()).toEqual(['a']);
  });

  it('clockSkewMs: the server has a time of its own', async () => {
    const { client, put } = await speak({ clockSkewMs: 600_000 });
    await put('a');
    const { LastModified } = await client.send(new HeadObjectCommand({ Bucket, Key: 'a' }));
    expect((LastModified?.getTime() ?? 0) - Date.now()).toBeGreaterThan(590_000);
    const response = await fetch(`${(await speak({ clockSkewMs: -600_000 })).server.endpoint}/${Bucket}`);
    expect(Date.now() - Date.parse(response.headers.get('date') ?? '')).toBeGreaterThan(590_000);
  });
});
