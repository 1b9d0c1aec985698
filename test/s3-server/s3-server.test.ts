import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import type { S3Client } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startS3Server } from './server.ts';
import type { S3Server } from './server.ts';

const Bucket = 'test-bucket';
let server: S3Server;
let client: S3Client;

beforeEach(async () => {
  server = await startS3Server();
  client = server.client({ maxAttempts: 1 });
});

afterEach(() => server.close());

async function readText(Key: string): Promise<string | undefined> {
  const { Body } = await client.send(new GetObjectCommand({ Bucket, Key }));
  return Body?.transformToString();
}

describe('objects', () => {
  it('are put, read, listed and deleted', async () => {
    await client.send(new PutObjectCommand({ Bucket, Key: 'a', Body: 'text' }));
    expect(await readText('a')).toBe('text');
    const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket }));
    expect(Contents.map(({ Key, Size }) => [Key, Size])).toEqual([['a', 4]]);
    await client.send(new DeleteObjectCommand({ Bucket, Key: 'a' }));
    await expect(readText('a')).rejects.toMatchObject({ name: 'NoSuchKey' });
  });

  it('are put on conditions', async () => {
    const first = await client.send(new PutObjectCommand({ Bucket, Key: 'a', Body: '1', IfNoneMatch: '*' }));
    const again = new PutObjectCommand({ Bucket, Key: 'a', Body: '2', IfNoneMatch: '*' });
    await expect(client.send(again)).rejects.toMatchObject({ name: 'PreconditionFailed' });
    await client.send(new PutObjectCommand({ Bucket, Key: 'a', Body: '3', IfMatch: first.ETag }));
    const stale = new PutObjectCommand({ Bucket, Key: 'a', Body: '4', IfMatch: first.ETag });
    await expect(client.send(stale)).rejects.toMatchObject({ name: 'PreconditionFailed' });
    expect(await readText('a')).toBe('3');
  });
});
