import { createHash } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { Readable } from 'node:stream';
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import type { ListObjectsV2CommandInput, S3Client } from '@aws-sdk/client-s3';
import { describe, expect, it } from 'vitest';
import { checksumOf } from './checksums.ts';
import { answerOf, Bucket, openServer, refusalOf } from './opened-server.ts';

describe('objects', () => {
  it('are put, read, listed and deleted', async () => {
    const { client, put, get, keys } = await openServer();
    expect(await put('a', 'text')).toBe(`"${createHash('md5').update('text').digest('hex')}"`);
    expect(await get('a')).toBe('text');
    expect(await keys()).toEqual(['a']);
    const deletion = new DeleteObjectCommand({ Bucket, Key: 'a' });
    expect((await client.send(deletion)).$metadata.httpStatusCode).toBe(204);
    expect((await client.send(deletion)).$metadata.httpStatusCode).toBe(204);
    expect(await refusalOf(get('a'))).toBe('404 NoSuchKey');
    expect(await keys()).toEqual([]);
  });

  it('keep their type, metadata and headers', async () => {
    const { client, server, put } = await openServer();
    const properties = {
      ContentType: 'image/png',
      CacheControl: 'no-cache',
      ContentDisposition: 'attachment',
      ContentEncoding: 'gzip',
      Metadata: { owner: 'me' },
    };
    await put('a', 'text', properties);
    const head = await client.send(new HeadObjectCommand({ Bucket, Key: 'a' }));
    expect(head).toMatchObject({ ...properties, ContentLength: 4, AcceptRanges: 'bytes' });
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
    expect(Contents[0]).toMatchObject({ Key: 'a', Size: 4, ETag: head.ETag, LastModified: head.LastModified });
    expect(head.LastModified?.getMilliseconds()).toBe(0);
    const stored = server.objects(Bucket).get('a');
    expect(stored).toMatchObject({ contentType: 'image/png', metadata: { owner: 'me' }, etag: head.ETag });
    expect(stored?.lastModifiedMs).toBe(head.LastModified?.getTime());
  });

  it('are encrypted as asked, and no MD5 shows where the key is the caller’s', async () => {
    const { client, server, put } = await openServer();
    const plain = await put('a', 'text');
    const sealing = { ServerSideEncryption: 'aws:kms', SSEKMSKeyId: 'key-1' } as const;
    const sealed = await client.send(new PutObjectCommand({ Bucket, Key: 'b', Body: 'text', ...sealing }));
    expect(sealed).toMatchObject(sealing);
    expect(sealed.ETag).not.toBe(plain);
    expect(await put('b', 'text', sealing)).not.toBe(sealed.ETag);
    expect(await client.send(new HeadObjectCommand({ Bucket, Key: 'a' }))).toMatchObject({
      ServerSideEncryption: 'AES256',
    });
    expect(server.objects(Bucket).get('b')?.encryption).toMatchObject({ algorithm: 'aws:kms', keyId: 'key-1' });
    expect(await refusalOf(put('a', 'x', { SSEKMSKeyId: 'key-1' }))).toBe('400 InvalidArgument');
    expect(await refusalOf(put('a', 'x', { ServerSideEncryption: 'ROT13' as 'AES256' }))).toBe('400 InvalidArgument');
  });

  it.each([
    ['bytes=1-2', '206 12', 'bytes 1-2/6'],
    ['bytes=4-', '206 45', 'bytes 4-5/6'],
    ['bytes=-2', '206 45', 'bytes 4-5/6'],
    ['bytes=-99', '206 012345', 'bytes 0-5/6'],
    ['bytes=5-99', '206 5', 'bytes 5-5/6'],
    ['bytes=6-', '416 InvalidRange', undefined],
    ['bytes=-0', '416 InvalidRange', undefined],
    ['bytes=3-1', '200 012345', undefined],
    ['bytes=0-1,3-4', '200 012345', undefined],
    ['lines=0-1', '200 012345', undefined],
  ])('are read in ranges: %s', async (Range, expected, contentRange) => {
    const { client, put } = await openServer();
    await put('a', '012345');
    const read = async (): Promise<string> => {
      const { Body, ContentRange, $metadata } = await client.send(new GetObjectCommand({ Bucket, Key: 'a', Range }));
      expect(ContentRange).toBe(contentRange);
      return `${$metadata.httpStatusCode} ${await Body?.transformToString()}`;
    };
    const answer = read();
    const refusal = await refusalOf(answer);
    expect(refusal === 'none' ? await answer : refusal).toBe(expected);
  });

  it('of no bytes have no range', async () => {
    const { put, get } = await openServer();
    await put('empty', '');
    expect(await get('empty')).toBe('');
    expect(await refusalOf(get('empty', { Range: 'bytes=0-0' }))).toBe('416 InvalidRange');
  });

  it('answer HEAD without a body, refusals too', async () => {
    const { client, server, put } = await openServer();
    await put('a', 'text');
    const head = (Key: string, Range?: string): Promise<unknown> =>
      client.send(new HeadObjectCommand({ Bucket, Key, Range }));
    expect(await head('a', 'bytes=1-2')).toMatchObject({ ContentLength: 2 });
    expect(await refusalOf(head('a', 'bytes=9-'))).toBe('416 Unknown');
    expect(await refusalOf(head('none'))).toBe('404 NotFound');
    expect(server.log.filter(({ method }) => method === 'HEAD').map(({ bytesOut }) => bytesOut)).toEqual([0, 0, 0]);
  });

  it('have keys of up to 1024 bytes', async () => {
    const { put, get } = await openServer();
    const longest = 'ü'.repeat(512);
    await put(longest, 'text');
    expect(await get(longest)).toBe('text');
    expect(await refusalOf(put(`${longest}x`))).toBe('400 KeyTooLongError');
  });

  it('have any keys', async () => {
    const { client, server, put, get } = await openServer();
    const odd = ['..', '.', '../x', './x', 'a//b', '/lead', 'trail/', 'a b', 'a+b', '%41', 'A', '%', 'ü', 'u\u0308'];
    odd.push('漢', '🦊', '\uffff', '\u0001\u001f', '\t\n\r', '\ufeffbom', `q'"<>&`, '?#', '\\', '*~()!', ':@=,$;');
    for (const key of odd) await put(key, `content of ${key}`);
    for (const key of odd) expect(await get(key)).toBe(`content of ${key}`);
    const sorted = odd.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect([...server.objects(Bucket).keys()]).toEqual(sorted);
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket, EncodingType: 'url' }));
    expect(Contents.map(({ Key = '' }) => decodeURIComponent(Key.replaceAll('+', '%20')))).toEqual(sorted);
    for (const Key of odd) await client.send(new DeleteObjectCommand({ Bucket, Key }));
    expect(server.objects(Bucket).size).toBe(0);
  });
});

describe('payloads', () => {
  it.each(['CRC32', 'CRC32C', 'SHA1', 'SHA256'] as const)('are verified against their %s', async (algorithm) => {
    const { client, altered, put, get } = await openServer();
    await put('a', 'text', { ChecksumAlgorithm: algorithm });
    const read = await client.send(new GetObjectCommand({ Bucket, Key: 'a', ChecksumMode: 'ENABLED' }));
    expect(read[`Checksum${algorithm}`]).toBeDefined();
    const lying = altered('before', ({ headers }) => {
      const name = `x-amz-checksum-${algorithm.toLowerCase()}`;
      const value = Buffer.from(headers[name] ?? '', 'base64').toReversed();
      headers[name] = Buffer.from(value).toString('base64');
    });
    const lie = new PutObjectCommand({ Bucket, Key: 'a', Body: 'other', ChecksumAlgorithm: algorithm });
    expect(await refusalOf(lying.send(lie))).toBe('400 BadDigest');
    expect(await get('a')).toBe('text');
  });

  it('have one checksum, as announced', async () => {
    const { altered } = await openServer();
    const put = new PutObjectCommand({ Bucket, Key: 'a', Body: 'text' });
    const forgetful = altered('before', ({ headers }) => delete headers['x-amz-checksum-crc32']);
    expect(await refusalOf(forgetful.send(put))).toBe('400 InvalidRequest');
    const doubtful = altered('before', ({ headers }) => {
      headers['x-amz-checksum-sha256'] = createHash('sha256').update('text').digest('base64');
    });
    expect(await refusalOf(doubtful.send(put))).toBe('400 InvalidRequest');
    const short = altered('before', ({ headers }) => {
      headers['x-amz-checksum-crc32'] = 'AAAA';
    });
    expect(await refusalOf(short.send(put))).toBe('400 InvalidRequest');
    const unknown = altered('before', ({ headers }) => {
      delete headers['x-amz-checksum-crc32'];
      headers['x-amz-checksum-crc64nvme'] = 'AAAAAAAAAAA=';
    });
    expect(await refusalOf(unknown.send(put))).toBe('501 NotImplemented');
  });

  it('are verified against their MD5', async () => {
    const { put } = await openServer();
    await put('a', 'text', { ContentMD5: createHash('md5').update('text').digest('base64') });
    const other = createHash('md5').update('other').digest('base64');
    expect(await refusalOf(put('a', 'text', { ContentMD5: other }))).toBe('400 BadDigest');
    expect(await refusalOf(put('a', 'text', { ContentMD5: 'abc' }))).toBe('400 InvalidDigest');
  });

  it('are verified against the hash that is signed', async () => {
    const { altered } = await openServer();
    const lying = altered('after', (request) => {
      request.body = 'evil';
    });
    const lie = new PutObjectCommand({ Bucket, Key: 'a', Body: 'good', ChecksumAlgorithm: 'CRC32' });
    expect(await refusalOf(lying.send(lie))).toBe('400 XAmzContentSHA256Mismatch');
  });

  it('may be streamed in chunks, with a checksum behind them', async () => {
    const { server, put, get } = await openServer();
    const chunks = [Buffer.alloc(9000, 'a'), Buffer.alloc(8192, 'b'), Buffer.from('c')];
    const text = Buffer.concat(chunks).toString();
    await put('a', Readable.from(chunks), { ContentLength: text.length, ContentEncoding: 'gzip' });
    expect(await get('a')).toBe(text);
    expect(server.log[0]?.headers['x-amz-content-sha256']).toBe('STREAMING-UNSIGNED-PAYLOAD-TRAILER');
    expect(server.log[0]?.bytesIn).toBeGreaterThan(text.length);
    expect(server.objects(Bucket).get('a')).toMatchObject({
      headers: { 'content-encoding': 'gzip' },
      checksum: { algorithm: 'crc32' },
    });
  });

  it('in chunks below 8 KiB are refused', async () => {
    const { put } = await openServer();
    const chunks = Readable.from([Buffer.alloc(8191), Buffer.alloc(1)]);
    expect(await refusalOf(put('a', chunks, { ContentLength: 8192 }))).toBe('403 InvalidChunkSizeError');
  });

  it('whose streamed checksum is wrong are refused', async () => {
    const { altered } = await openServer();
    // Takes the chunks apart and puts others into the same frame.
    const lying = altered('after', (request) => {
      const text = 'B'.repeat(16);
      request.body = Readable.from([`10\r\n${text}\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n`]);
    });
    const lie = new PutObjectCommand({ Bucket, Key: 'a', Body: Readable.from(['A'.repeat(16)]), ContentLength: 16 });
    expect(await refusalOf(lying.send(lie))).toBe('400 BadDigest');
  });

  it('with another trailer than was announced are refused', async () => {
    const { altered } = await openServer();
    const right = `x-amz-checksum-crc32:${checksumOf('crc32', Buffer.from('A'.repeat(16)))}`;
    const odd = [right, `${right}\r\n`, right.replace('crc32', 'sha1'), right.replace(/:.*/, ''), '', '\r\n'];
    for (const trailer of odd.map((text, index) => (index < 2 ? text : `${text}\r\n\r\n`))) {
      const lying = altered('after', (request) => {
        request.body = Readable.from([`10\r\n${'A'.repeat(16)}\r\n0\r\n${trailer}`]);
      });
      const lie = new PutObjectCommand({ Bucket, Key: 'a', Body: Readable.from(['A'.repeat(16)]), ContentLength: 16 });
      expect(await refusalOf(lying.send(lie))).toBe('400 MalformedTrailerError');
    }
  });

  it('of less than they announced are refused', async () => {
    const { altered } = await openServer();
    const lying = altered('after', (request) => {
      request.body = Readable.from(['1\r\nB\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n']);
    });
    const lie = new PutObjectCommand({ Bucket, Key: 'a', Body: Readable.from(['A'.repeat(16)]), ContentLength: 16 });
    expect(await refusalOf(lying.send(lie))).toBe('400 IncompleteBody');
  });

  it('whose length is not known are refused', async () => {
    const { server, altered } = await openServer();
    const endless = altered('before', (request) => {
      delete request.headers['content-length'];
      request.body = Readable.from(['text']);
    });
    const streamed = new PutObjectCommand({ Bucket, Key: 'a', Body: 'text' });
    expect(await refusalOf(endless.send(streamed))).toBe('501 NotImplemented');
    expect(server.log[0]?.headers['transfer-encoding']).toBe('chunked');
  });

  it('that the client gives up in the middle of are no requests', async () => {
    const { server, keys } = await openServer();
    await new Promise<void>((resolve) => {
      const target = { port: new URL(server.endpoint).port, method: 'PUT', path: `/${Bucket}/a` };
      const request = httpRequest({ ...target, headers: { 'content-length': 100 } });
      request.on('error', () => resolve());
      request.write('half', () => setImmediate(() => request.destroy(new Error('given up'))));
    });
    expect(await keys()).toEqual([]);
    expect(server.log.map(({ operation }) => operation)).toEqual(['ListObjectsV2']);
  });
});

describe('listings', () => {
  type List = (more?: Partial<ListObjectsV2CommandInput>) => Promise<unknown>;

  async function fill(): Promise<{ readonly client: S3Client; readonly list: List }> {
    const { client, put } = await openServer();
    for (const key of ['b', 'a/2', 'a/1', '\uffff', '\u{10000}', 'ü']) await put(key);
    const list: List = async (more = {}) => {
      const page = await client.send(new ListObjectsV2Command({ Bucket, ...more }));
      return [page.Contents?.map(({ Key }) => Key) ?? [], page.IsTruncated, page.KeyCount];
    };
    return { client, list };
  }

  it('are in the order of UTF-8 bytes', async () => {
    const { list } = await fill();
    expect(await list()).toEqual([['a/1', 'a/2', 'b', 'ü', '\uffff', '\u{10000}'], false, 6]);
    expect(await list({ Prefix: 'a/' })).toEqual([['a/1', 'a/2'], false, 2]);
    expect(await list({ StartAfter: 'a/2', MaxKeys: 2 })).toEqual([['b', 'ü'], true, 2]);
    expect(await list({ StartAfter: 'a/11', MaxKeys: 1 })).toEqual([['a/2'], true, 1]);
    expect(await list({ StartAfter: '\uffff' })).toEqual([['\u{10000}'], false, 1]);
    expect(await list({ MaxKeys: 0 })).toEqual([[], false, 0]);
    expect(await refusalOf(list({ MaxKeys: -1 }))).toBe('400 InvalidArgument');
  });

  it('put keys together up to a delimiter', async () => {
    const { client } = await fill();
    const list = async (more: Partial<ListObjectsV2CommandInput>): Promise<unknown> => {
      const page = await client.send(new ListObjectsV2Command({ Bucket, Delimiter: '/', ...more }));
      const prefixes = page.CommonPrefixes?.map(({ Prefix }) => Prefix) ?? [];
      return [prefixes, page.Contents?.map(({ Key }) => Key) ?? [], page.NextContinuationToken, page.KeyCount];
    };
    expect(await list({})).toEqual([['a/'], ['b', 'ü', '\uffff', '\u{10000}'], undefined, 5]);
    expect(await list({ Prefix: 'a/' })).toEqual([[], ['a/1', 'a/2'], undefined, 2]);
    expect(await list({ Prefix: 'a' })).toEqual([['a/'], [], undefined, 1]);
    const ContinuationToken = ((await list({ MaxKeys: 1 })) as unknown[])[2] as string;
    expect(await list({ ContinuationToken, MaxKeys: 9 })).toEqual([
      [],
      ['b', 'ü', '\uffff', '\u{10000}'],
      undefined,
      4,
    ]);
  });

  it('continue where they ended', async () => {
    const { client, list } = await fill();
    const first = await client.send(new ListObjectsV2Command({ Bucket, MaxKeys: 4 }));
    expect(first.IsTruncated).toBe(true);
    const next = { ContinuationToken: first.NextContinuationToken, StartAfter: 'zzz' };
    expect(await list(next)).toEqual([['\uffff', '\u{10000}'], false, 2]);
    expect(await refusalOf(list({ ContinuationToken: 'YWJj' }))).toBe('400 InvalidArgument');
  });

  it('have a thousand keys at most', async () => {
    const { client } = await openServer();
    expect((await client.send(new ListObjectsV2Command({ Bucket, MaxKeys: 5000 }))).MaxKeys).toBe(1000);
    expect((await client.send(new ListObjectsV2Command({ Bucket }))).MaxKeys).toBe(1000);
  });

  it('encode keys as forms do, but for slashes', async () => {
    const { client, put } = await openServer();
    await put("a b/c+d%'(~)ü");
    const options = { Prefix: 'a b', StartAfter: '+', EncodingType: 'url' } as const;
    const page = await client.send(new ListObjectsV2Command({ Bucket, ...options }));
    expect(page.Contents?.[0]?.Key).toBe('a+b/c%2Bd%25%27%28%7E%29%C3%BC');
    expect([page.Prefix, page.StartAfter, page.EncodingType]).toEqual(['a+b', '%2B', 'url']);
  });

  it('with unknown parameters are refused', async () => {
    const { client } = await openServer();
    expect(await refusalOf(client.send(new ListObjectsCommand({ Bucket })))).toBe('501 NotImplemented');
  });
});

describe('deleting many', () => {
  function deletion(keys: readonly string[], Quiet = false): DeleteObjectsCommand {
    return new DeleteObjectsCommand({ Bucket, Delete: { Objects: keys.map((Key) => ({ Key })), Quiet } });
  }

  it('answers for each key', async () => {
    const { client, put, keys } = await openServer();
    const odd = ['a', 'b<>&\'"', 'c\r\nd', 'e f', 'keep'];
    for (const key of odd) await put(key);
    const { Deleted, Errors } = await client.send(deletion([...odd.slice(0, 4), 'never']));
    expect(Deleted?.map(({ Key }) => Key)).toEqual([...odd.slice(0, 4), 'never']);
    expect(Errors).toBeUndefined();
    expect(await keys()).toEqual(['keep']);
    expect((await client.send(deletion(['keep'], true))).Deleted).toBeUndefined();
    expect(await keys()).toEqual([]);
  });

  it('takes a thousand keys, and none that XML cannot say', async () => {
    const { client, put } = await openServer();
    await put('control\u0001');
    const names = Array.from({ length: 1000 }, (_, index) => `key-${index}`);
    expect(await refusalOf(client.send(deletion(names)))).toBe('none');
    for (const odd of [[...names, 'one more'], [], [''], ['control\u0001']]) {
      expect(await refusalOf(client.send(deletion(odd)))).toBe('400 MalformedXML');
    }
  });

  it('needs a checksum', async () => {
    const { altered } = await openServer();
    const bare = altered('before', ({ headers }) => {
      delete headers['x-amz-checksum-crc32'];
      delete headers['x-amz-sdk-checksum-algorithm'];
    });
    expect(await refusalOf(bare.send(deletion(['a'])))).toBe('400 InvalidRequest');
    const withMd5 = altered('before', ({ headers, body }) => {
      delete headers['x-amz-checksum-crc32'];
      delete headers['x-amz-sdk-checksum-algorithm'];
      headers['content-md5'] = createHash('md5')
        .update(body as string)
        .digest('base64');
    });
    expect(await refusalOf(withMd5.send(deletion(['a'])))).toBe('none');
  });
});

describe('requests', () => {
  it('for unknown operations are refused', async () => {
    const { client, altered, put, keys } = await openServer();
    await put('a');
    const tagged = new PutObjectCommand({ Bucket, Key: 'b', Body: 'x', Tagging: 'a=b' });
    expect(await refusalOf(client.send(tagged))).toBe('501 NotImplemented');
    const deletion = new DeleteObjectCommand({ Bucket, Key: 'a', IfMatch: '"abc"' });
    expect(await refusalOf(client.send(deletion))).toBe('501 NotImplemented');
    const uploading = altered('before', ({ headers }) => {
      headers['if-none-match'] = '*';
    });
    const upload = new CreateMultipartUploadCommand({ Bucket, Key: 'a' });
    expect(await refusalOf(uploading.send(upload))).toBe('501 NotImplemented');
    expect(await keys()).toEqual(['a']);
  });

  it('whose path is no UTF-8 are refused', async () => {
    const { server } = await openServer();
    for (const path of ['%zz', '%ff', 'a?prefix=%c3']) {
      expect(await answerOf(fetch(`${server.endpoint}/${Bucket}/${path}`))).toBe('400 InvalidURI');
    }
    expect(server.log.map(({ status, code }) => `${status} ${code}`)).toEqual(Array(3).fill('400 InvalidURI'));
  });
});

describe('buckets', () => {
  it('are made, found, listed and removed', async () => {
    const { client, server, put } = await openServer({ buckets: [Bucket, 'other'] });
    await client.send(new CreateBucketCommand({ Bucket: 'third' }));
    const { Buckets = [] } = await client.send(new ListBucketsCommand({}));
    expect(Buckets.map(({ Name }) => Name)).toEqual([Bucket, 'other', 'third']);
    const again = new CreateBucketCommand({ Bucket: 'third' });
    expect(await refusalOf(client.send(again))).toBe('409 BucketAlreadyOwnedByYou');
    const odd = new CreateBucketCommand({ Bucket: 'Up_per' });
    expect(await refusalOf(client.send(odd))).toBe('400 InvalidBucketName');
    await put('a');
    expect(await refusalOf(client.send(new DeleteBucketCommand({ Bucket })))).toBe('409 BucketNotEmpty');
    await client.send(new DeleteBucketCommand({ Bucket: 'third' }));
    expect(await refusalOf(client.send(new HeadBucketCommand({ Bucket: 'third' })))).toBe('404 NotFound');
    expect((await client.send(new HeadBucketCommand({ Bucket }))).BucketRegion).toBe(server.region);
  });

  it('that are not there are no place for anything', async () => {
    const { client } = await openServer({ buckets: [] });
    for (const command of [
      new GetObjectCommand({ Bucket, Key: 'a' }),
      new PutObjectCommand({ Bucket, Key: 'a', Body: 'x' }),
      new DeleteObjectCommand({ Bucket, Key: 'a' }),
      new ListObjectsV2Command({ Bucket }),
    ]) {
      expect(await refusalOf(client.send(command as GetObjectCommand))).toBe('404 NoSuchBucket');
    }
  });
});
