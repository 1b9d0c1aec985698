import { createHash } from 'node:crypto';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import type { CompletedPart, CompleteMultipartUploadCommandInput, S3Client } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { describe, expect, it } from 'vitest';
import { Bucket, openServer, refusalOf } from './opened-server.ts';

const Key = 'large';
const first = Buffer.alloc(5 * 1024 * 1024, 'a');
const rest = Buffer.from('rest');

interface Begun {
  readonly uploadId: string;
  readonly part: (number: number, body: Buffer) => Promise<CompletedPart>;
  readonly complete: (
    parts: readonly CompletedPart[],
    more?: Partial<CompleteMultipartUploadCommandInput>,
  ) => Promise<string>;
}

async function begin(client: S3Client): Promise<Begun> {
  const { UploadId = '' } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key }));
  const target = { Bucket, Key, UploadId };
  return {
    uploadId: UploadId,
    part: async (PartNumber, Body) => {
      const { ETag } = await client.send(new UploadPartCommand({ ...target, PartNumber, Body }));
      return { PartNumber, ETag };
    },
    complete: async (parts, more = {}) => {
      const MultipartUpload = { Parts: [...parts] };
      const { ETag } = await client.send(new CompleteMultipartUploadCommand({ ...target, MultipartUpload, ...more }));
      return ETag as string;
    },
  };
}

function md5(bytes: Uint8Array): Buffer {
  return createHash('md5').update(bytes).digest();
}

describe('an upload in parts', () => {
  it('becomes an object when it is completed', async () => {
    const { client, server, keys } = await openServer();
    const created = await client.send(
      new CreateMultipartUploadCommand({ Bucket, Key, ContentType: 'image/png', Metadata: { a: 'b' } }),
    );
    await client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId: created.UploadId }));
    const { part, complete } = await begin(client);
    // Parts come in any order, and a part may come twice.
    const parts = [await part(7, rest), await part(1, rest), await part(1, first)];
    expect(await keys()).toEqual([]);
    const etag = await complete([parts[2] as CompletedPart, parts[0] as CompletedPart]);
    const sums = Buffer.concat([md5(first), md5(rest)]);
    expect(etag).toBe(`"${md5(sums).toString('hex')}-2"`);
    const { bytes, contentType } = server.objects(Bucket).get(Key) ?? {};
    expect(bytes?.equals(Buffer.concat([first, rest]))).toBe(true);
    expect(contentType).toBe('binary/octet-stream');
    const Range = `bytes=${first.length - 1}-${first.length}`;
    const { Body } = await client.send(new GetObjectCommand({ Bucket, Key, Range }));
    expect(await Body?.transformToString()).toBe('ar');
    expect(server.uploads(Bucket)).toEqual([]);
  });

  it('has the properties that it was begun with', async () => {
    const { client } = await openServer();
    const properties = { ContentType: 'image/png', Metadata: { a: 'b' }, ServerSideEncryption: 'aws:kms' } as const;
    const target = { Bucket, Key };
    const { UploadId } = await client.send(new CreateMultipartUploadCommand({ ...target, ...properties }));
    const { ETag } = await client.send(new UploadPartCommand({ ...target, UploadId, PartNumber: 1, Body: rest }));
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag }] };
    await client.send(new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload }));
    expect(await client.send(new HeadObjectCommand(target))).toMatchObject(properties);
  });

  it('dates from when it was begun', async () => {
    let lateMs = 0;
    const { client, server } = await openServer({ clock: () => Date.now() + lateMs });
    const { part, complete } = await begin(client);
    lateMs = 60_000;
    await complete([await part(1, rest)]);
    expect(server.objects(Bucket).get(Key)?.lastModifiedMs).toBeLessThan(Date.now() + 30_000);
  });

  it('has parts of 5 MiB and more, but for the last', async () => {
    const { client, server } = await openServer();
    const { part, complete } = await begin(client);
    const small = await part(1, first.subarray(1));
    const last = await part(2, rest);
    expect(await refusalOf(complete([small, last]))).toBe('400 EntityTooSmall');
    expect(server.objects(Bucket).size).toBe(0);
    expect(server.uploads(Bucket)).toHaveLength(1);
    await complete([small]);
    expect(server.objects(Bucket).get(Key)?.bytes).toHaveLength(first.length - 1);
  });

  it('needs the parts that were uploaded, in order', async () => {
    const { client } = await openServer();
    const { part, complete } = await begin(client);
    const parts = [await part(1, first), await part(2, rest)] as const;
    expect(await refusalOf(complete([parts[1], parts[0]]))).toBe('400 InvalidPartOrder');
    expect(await refusalOf(complete([parts[0], parts[0]]))).toBe('400 InvalidPartOrder');
    expect(await refusalOf(complete([{ ...parts[0], ETag: parts[1].ETag }]))).toBe('400 InvalidPart');
    expect(await refusalOf(complete([{ ...parts[0], PartNumber: 3 }]))).toBe('400 InvalidPart');
    expect(await refusalOf(complete([]))).toBe('400 MalformedXML');
    expect(await refusalOf(part(0, rest))).toBe('400 InvalidArgument');
    expect(await refusalOf(part(10_001, rest))).toBe('400 InvalidArgument');
  });

  it('is completed on conditions, and stays open where they do not hold', async () => {
    const { client, server, put, get } = await openServer();
    const { part, complete } = await begin(client);
    const parts = [await part(1, rest)];
    expect(await refusalOf(complete(parts, { IfMatch: '"abc"' }))).toBe('404 NoSuchKey');
    const etag = await put(Key, 'before');
    expect(await refusalOf(complete(parts, { IfNoneMatch: '*' }))).toBe('412 PreconditionFailed');
    expect(await refusalOf(complete(parts, { IfMatch: '"abc"' }))).toBe('412 PreconditionFailed');
    expect(await get(Key)).toBe('before');
    expect(server.uploads(Bucket)).toHaveLength(1);
    await complete(parts, { IfMatch: etag });
    expect(await get(Key)).toBe('rest');
  });

  it('has to begin again after a conflict', async () => {
    const { client, server } = await openServer();
    const { part, complete } = await begin(client);
    const parts = [await part(1, rest)];
    server.intercept = () => ({ status: 409, code: 'ConditionalRequestConflict' });
    expect(await refusalOf(complete(parts, { IfNoneMatch: '*' }))).toBe('409 ConditionalRequestConflict');
    server.intercept = undefined;
    expect(await refusalOf(complete(parts, { IfNoneMatch: '*' }))).toBe('404 NoSuchUpload');
  });

  it('that was completed is answered so again, after any later changes', async () => {
    const { client, put, get } = await openServer();
    const { part, complete } = await begin(client);
    const parts = [await part(1, rest)];
    const etag = await complete(parts, { IfNoneMatch: '*' });
    await put(Key, 'since');
    expect(await complete(parts, { IfNoneMatch: '*' })).toBe(etag);
    expect(await get(Key)).toBe('since');
    expect(await refusalOf(part(2, rest))).toBe('404 NoSuchUpload');
  });

  it('can be aborted once', async () => {
    const { client, server } = await openServer();
    const { part, complete, uploadId } = await begin(client);
    const parts = [await part(1, rest)];
    const abort = new AbortMultipartUploadCommand({ Bucket, Key, UploadId: uploadId });
    expect((await client.send(abort)).$metadata.httpStatusCode).toBe(204);
    expect(server.uploads(Bucket)).toEqual([]);
    expect(await refusalOf(client.send(abort))).toBe('404 NoSuchUpload');
    expect(await refusalOf(part(1, rest))).toBe('404 NoSuchUpload');
    expect(await refusalOf(complete(parts))).toBe('404 NoSuchUpload');
    const other = await begin(client);
    const elsewhere = { Bucket, Key: 'elsewhere', UploadId: other.uploadId };
    expect(await refusalOf(client.send(new AbortMultipartUploadCommand(elsewhere)))).toBe('404 NoSuchUpload');
  });

  it('may have a checksum, which then every part must have', async () => {
    const { client } = await openServer();
    const target = { Bucket, Key };
    const create = new CreateMultipartUploadCommand({ ...target, ChecksumAlgorithm: 'SHA256' });
    const { UploadId } = await client.send(create);
    const part = { ...target, UploadId, PartNumber: 1, Body: rest };
    const other = new UploadPartCommand({ ...part, ChecksumAlgorithm: 'CRC32' });
    expect(await refusalOf(client.send(other))).toBe('400 InvalidRequest');
    const uploaded = await client.send(new UploadPartCommand({ ...part, ChecksumAlgorithm: 'SHA256' }));
    const { ETag, ChecksumSHA256 = '' } = uploaded;
    const complete = (Part: CompletedPart): CompleteMultipartUploadCommand =>
      new CompleteMultipartUploadCommand({ ...target, UploadId, MultipartUpload: { Parts: [Part] } });
    expect(await refusalOf(client.send(complete({ PartNumber: 1, ETag })))).toBe('400 InvalidRequest');
    const wrong = { PartNumber: 1, ETag, ChecksumSHA256: 'AAAA' };
    expect(await refusalOf(client.send(complete(wrong)))).toBe('400 InvalidPart');
    const { ChecksumSHA256: whole } = await client.send(complete({ PartNumber: 1, ETag, ChecksumSHA256 }));
    const sum = createHash('sha256').update(Buffer.from(ChecksumSHA256, 'base64')).digest('base64');
    expect(whole).toBe(`${sum}-1`);
  });

  it('works as the SDK does it', async () => {
    const { client, server } = await openServer();
    const Body = Buffer.concat([first, first, rest]);
    await new Upload({ client, params: { Bucket, Key, Body, IfNoneMatch: '*' } }).done();
    expect(server.objects(Bucket).get(Key)?.bytes.equals(Body)).toBe(true);
    const operations = server.log.map(({ operation }) => operation);
    expect([operations.at(0), operations.at(-1)]).toEqual(['CreateMultipartUpload', 'CompleteMultipartUpload']);
    expect(operations.slice(1, -1)).toEqual(['UploadPart', 'UploadPart', 'UploadPart']);
  });
});

describe('uploads that are open', () => {
  it('are listed by key, and then by age', async () => {
    const { client } = await openServer();
    const ids: string[] = [];
    for (const key of ['b', 'a', 'b', 'c d']) {
      const { UploadId = '' } = await client.send(new CreateMultipartUploadCommand({ Bucket, Key: key }));
      ids.push(UploadId);
    }
    const expected = [1, 0, 2, 3].map((index) => ids[index]);
    const seen: (string | undefined)[] = [];
    let markers = {};
    for (let more = true; more; ) {
      const page = await client.send(new ListMultipartUploadsCommand({ Bucket, MaxUploads: 1, ...markers }));
      seen.push(...(page.Uploads ?? []).map(({ UploadId }) => UploadId));
      markers = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
      more = page.IsTruncated === true;
    }
    expect(seen).toEqual(expected);
    const options = { Bucket, Prefix: 'c', EncodingType: 'url' } as const;
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand(options));
    expect(Uploads.map(({ Key: key }) => key)).toEqual(['c+d']);
  });

  it('list their parts', async () => {
    const { client } = await openServer();
    const { part, uploadId } = await begin(client);
    await part(3, rest);
    await part(1, first);
    const target = { Bucket, Key, UploadId: uploadId };
    const page = await client.send(new ListPartsCommand({ ...target, MaxParts: 1 }));
    expect(page.Parts?.map(({ PartNumber, Size }) => [PartNumber, Size])).toEqual([[1, first.length]]);
    expect(page.IsTruncated).toBe(true);
    const PartNumberMarker = page.NextPartNumberMarker;
    const next = await client.send(new ListPartsCommand({ ...target, PartNumberMarker }));
    expect(next.Parts?.map(({ PartNumber }) => PartNumber)).toEqual([3]);
    expect(next.IsTruncated).toBe(false);
  });
});
