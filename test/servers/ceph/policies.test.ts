/** The policies of docs/object-stores.md, as Ceph enforces them for a user who owns nothing. */
import { setTimeout as wait } from 'node:timers/promises';
import {
  CreateBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  PutBucketPolicyCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database, StoreDbOptions } from 'store-db';
import { ObjectStoreDriver } from 'store-db/lib/storage';
import { beforeAll, describe, expect, it } from 'vitest';
import { pagePolicies } from '../../repo/docs/iam-policy.ts';
import type { Policy } from '../../repo/docs/iam-policy.ts';
import { bucketUnderTest } from './bucket.ts';
import type { CephStore } from './ceph-instance.ts';

// The names that the page gives.
const Bucket = 'my-bucket';
const dbPrefix = 'my-app';
/** More than what is sent in one request. */
const blobBytes = 12 * 1024 * 1024;

const { writers, replicas, collection, guard } = await pagePolicies();

const files = defineSchema({
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, content: { typeId: Types.blob } },
  primaryKey: 'id',
  indexes: ['text'],
});

function clientOf({ endpoint, region, accessKeyId, secretAccessKey }: CephStore): S3Client {
  return new S3Client({ endpoint, region, credentials: { accessKeyId, secretAccessKey }, forcePathStyle: true });
}

let owner: S3Client;
let guest: S3Client;

beforeAll(async () => {
  const { guest: store } = bucketUnderTest();
  owner = clientOf(bucketUnderTest());
  guest = clientOf(store);
  await owner.send(new CreateBucketCommand({ Bucket }));
});

/** Has the guest be allowed what some policies say, and nothing else. */
async function allow(...policies: readonly Policy[]): Promise<void> {
  const Principal = { AWS: ['arn:aws:iam:::user/guest'] };
  const statements = policies.flatMap(({ Statement }) => Statement).map((one) => Object.assign({ Principal }, one));
  const Policy = JSON.stringify({ Version: '2012-10-17', Statement: statements });
  await owner.send(new PutBucketPolicyCommand({ Bucket, Policy }));
}

async function open(options: Partial<StoreDbOptions> = {}): Promise<Database> {
  const driver = new ObjectStoreDriver({ bucket: Bucket, client: guest });
  const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel: 'silent', ...options });
  db.registerSchema(files);
  await db.start();
  return db;
}

function outcome(sent: Promise<unknown>): Promise<string> {
  return sent.then(
    () => 'done',
    (error: unknown) => (error as Error).name,
  );
}

/** What the guest may do with an object, by bare requests. */
async function rightsOn(Key: string): Promise<Record<'read' | 'create' | 'remove', string>> {
  const read = await outcome(guest.send(new GetObjectCommand({ Bucket, Key })));
  const create = await outcome(guest.send(new PutObjectCommand({ Bucket, Key, Body: 'x', IfNoneMatch: '*' })));
  return { read, create, remove: await outcome(guest.send(new DeleteObjectCommand({ Bucket, Key }))) };
}

describe('the policies of docs/object-stores.md on Ceph', () => {
  it('let nobody in who is not named', async () => {
    expect(await rightsOn(`${dbPrefix}/data/x`)).toEqual({
      read: 'AccessDenied',
      create: 'AccessDenied',
      remove: 'AccessDenied',
    });
    await expect(open()).rejects.toMatchObject({ code: 'STORAGE' });
  });

  it('let writers write and read, and remove nothing but probes', async () => {
    await allow(writers);
    const db = await open();
    const batch = db.batch();
    await batch.insert(files, { id: 1, text: 'one', content: db.Blob('small') });
    await batch.insert(files, { id: 2, text: 'two', content: db.Blob(Buffer.alloc(blobBytes)) });
    for (let id = 100; id < 3000; id++) await batch.insert(files, { id, text: `text ${id}` });
    await batch.flush();
    await db.checkpoint();
    const row = await db.get(files, 2);
    expect(await db.getBlob(row?.content ?? '').getBuffer(5, 10)).toEqual(Buffer.alloc(5));
    expect((await db.verify({ deep: true })).ok).toBe(true);
    expect((await db.doctor()).safe).toBe(true);
    const more = db.batch();
    for (let id = 100; id < 3000; id++) await more.delete(files, id);
    await more.flush();
    await db.checkpoint();
    const { failed } = await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
    expect(failed.length).toBeGreaterThan(0);
    await db.stop();
    const forbidden = { read: 'NoSuchKey', create: 'done', remove: 'AccessDenied' };
    expect(await rightsOn(`${dbPrefix}/data/other`)).toEqual(forbidden);
    expect(await rightsOn(`${dbPrefix}/probe/other`)).toEqual({ ...forbidden, remove: 'done' });
    const denied = { read: 'AccessDenied', create: 'AccessDenied', remove: 'AccessDenied' };
    expect(await rightsOn('another-app/block0')).toEqual(denied);
  });

  it('let replicas read, and nothing else', async () => {
    await allow(replicas);
    const db = await open({ role: 'replica' });
    expect(await db.query(files).where('text', '=', 'two').count()).toBe(1);
    const row = await db.get(files, 2);
    expect(await db.getBlob(row?.content ?? '').getBuffer(0, 3)).toEqual(Buffer.alloc(3));
    await db.stop();
    const right = { read: 'NoSuchKey', create: 'AccessDenied', remove: 'AccessDenied' };
    expect(await rightsOn(`${dbPrefix}/data/another`)).toEqual(right);
    const writer = await open();
    const batch = writer.batch();
    await batch.insert(files, { id: 3, text: 'three' });
    await expect(batch.flush()).rejects.toMatchObject({ code: 'STORAGE' });
    await writer.stop();
  });

  it('let garbage go by the policy for collection, and Block 0 stay', async () => {
    await allow(writers, collection);
    const db = await open();
    // Times of objects have whole seconds.
    await wait(1100);
    const { failed, counts } = await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
    expect(failed).toEqual([]);
    expect(counts.block).toBeGreaterThan(0);
    expect((await db.verify({ deep: true })).ok).toBe(true);
    await db.stop();
    const Key = `${dbPrefix}/block0`;
    expect(await outcome(guest.send(new DeleteObjectCommand({ Bucket, Key })))).toBe('AccessDenied');
  });

  it('leave no way to write Block 0 with the guard, whose conditions Ceph does not know', async () => {
    await allow(writers, guard);
    const db = await open();
    const batch = db.batch();
    await batch.upsert(files, { id: 1, text: 'uno' });
    await batch.flush();
    await expect(db.checkpoint()).rejects.toMatchObject({ code: 'STORAGE' });
    await db.stop();
    await allow(writers);
    const again = await open();
    expect((await again.get(files, 1))?.text).toBe('uno');
    await again.stop();
  });
});
