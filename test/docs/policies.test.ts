/**
 * The policies of docs/object-stores.md, against the requests that StoreDb really makes: everything that it does must be
 * allowed, and nothing may be granted that it does not need.
 */
import { readFile } from 'node:fs/promises';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { ObjectStoreDriver } from 'store-db/lib/storage';
import { beforeAll, describe, expect, it } from 'vitest';
import { startS3Server } from '../s3-server/server.ts';
import type { S3Request } from '../s3-server/s3-message.ts';
import { concerns, isAllowed } from './iam-policy.ts';
import type { Access, Policy } from './iam-policy.ts';

const page = await readFile(new URL('../../docs/object-stores.md', import.meta.url), 'utf8');
const bucket = 'my-bucket';
const dbPrefix = 'my-app';
const bucketArn = `arn:aws:s3:::${bucket}`;
/** More than what is sent in one request. */
const blobBytes = 12 * 1024 * 1024;

/** The policy below a heading. */
function policyOf(heading: string): Policy {
  const section = page.split(`\n${heading}\n`)[1] ?? '';
  const json = /^```json\n(.*?)^```/ms.exec(section)?.[1];
  if (json === undefined) throw new Error(`There is no policy below ${heading}`);
  return JSON.parse(json) as Policy;
}

const writers = policyOf('### Writers');
const replicas = policyOf('### Replicas');
const collection = policyOf('### Garbage collection');
const encryption = policyOf('### With a key in KMS');
const guard = policyOf('## A bucket policy that guards the database');

const files = defineSchema({
  name: 'files',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    kind: { typeId: Types.varchar },
    text: { typeId: Types.varchar },
    content: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['kind'],
});

/** The actions that a request needs, as Amazon documents them. */
const actions: Readonly<Record<string, readonly string[]>> = {
  GetObject: ['s3:GetObject'],
  HeadObject: ['s3:GetObject'],
  PutObject: ['s3:PutObject'],
  CreateMultipartUpload: ['s3:PutObject'],
  UploadPart: ['s3:PutObject'],
  CompleteMultipartUpload: ['s3:PutObject'],
  AbortMultipartUpload: ['s3:AbortMultipartUpload'],
  DeleteObject: ['s3:DeleteObject'],
};
/** Those of which an object comes into being, and the only ones that take a condition. */
const creations = new Set(['PutObject', 'CompleteMultipartUpload']);

function contextOf({ operation, headers }: S3Request): Record<string, string> {
  if (operation === undefined || !(actions[operation] ?? []).includes('s3:PutObject')) return {};
  const isCreation = creations.has(operation);
  return {
    's3:ObjectCreationOperation': String(isCreation),
    ...(isCreation && headers['if-match'] !== undefined ? { 's3:if-match': headers['if-match'] } : {}),
    ...(isCreation && headers['if-none-match'] !== undefined ? { 's3:if-none-match': headers['if-none-match'] } : {}),
  };
}

/** What a request has to be allowed. */
function accessesOf(request: S3Request): Access[] {
  const { operation, key, query, headers, body } = request;
  const object = (name: string): string => `${bucketArn}/${name}`;
  const listing = (prefix: string): Access => {
    return { action: 's3:ListBucket', resource: bucketArn, context: { 's3:prefix': prefix } };
  };
  if (operation === 'ListObjectsV2') return [listing(query['prefix'] ?? '')];
  if (operation === 'DeleteObjects') {
    return Array.from(body.toString().matchAll(/<Key>(.*?)<\/Key>/g), ([, name = '']) => {
      return { action: 's3:DeleteObject', resource: object(name), context: {} };
    });
  }
  const needed = actions[operation ?? ''];
  if (needed === undefined) throw new Error(`Nobody knows what ${operation ?? 'this'} needs`);
  const context = contextOf(request);
  return [
    ...needed.map((action) => ({ action, resource: object(key), context })),
    // A replacement on a condition tells something of what is there.
    ...(headers['if-match'] === undefined ? [] : [{ action: 's3:GetObject', resource: object(key), context: {} }]),
    // The answer to a read of what is not there: the key stands for the prefix.
    ...(operation === 'GetObject' || operation === 'HeadObject' ? [listing(key)] : []),
  ];
}

async function put(db: Database, id: number, content: Parameters<Database['Blob']>[0]): Promise<void> {
  const batch = db.batch();
  await batch.insert(files, { id, kind: 'blob', content: db.Blob(content) });
  await batch.flush();
}

async function* broken(): AsyncGenerator<Uint8Array, void> {
  yield Buffer.alloc(blobBytes);
  throw new Error('This stream breaks off');
}

/** Everything that this release does with a store, from the first start on. */
async function useEverything(): Promise<{ requests: S3Request[]; ofReplica: S3Request[] }> {
  const server = await startS3Server({ buckets: [bucket] });
  const requests: S3Request[] = [];
  server.intercept = (request) => void requests.push(request);
  const open = (nodeId: number): Database => {
    const driver = new ObjectStoreDriver({ bucket, client: server.client() });
    const db = StoreDb({ dbPrefix, nodeId, driver, logLevel: 'silent' });
    db.registerSchema(files);
    return db;
  };
  const [first, second] = [open(0), open(1)];
  await first.start();
  await second.start();
  await put(first, 1, 'small');
  await put(second, 2, Buffer.alloc(blobBytes));
  await expect(put(first, 3, broken())).rejects.toMatchObject({ code: 'STORAGE' });
  const many = first.batch();
  for (let id = 1000; id < 9000; id++) await many.insert(files, { id, kind: `kind ${id}` });
  await many.flush();
  await first.checkpoint();
  await second.refresh();
  // Too large for one commit.
  const large = second.batch();
  for (let id = 10_000; id < 10_100; id++) await large.insert(files, { id, text: 'x'.repeat(100_000) });
  await large.flush();
  await second.checkpoint();
  await first.refresh();
  const row = await first.get(files, 2);
  expect(await first.getBlob(row?.content ?? '').getBuffer(5, 10)).toEqual(Buffer.alloc(5));
  expect(await (await fetch(await first.getBlob(row?.content ?? '').getDownloadUrl())).arrayBuffer()).toHaveProperty(
    'byteLength',
    blobBytes,
  );
  expect((await first.verify()).ok).toBe(true);
  expect((await first.doctor()).safe).toBe(true);
  await first.stop();
  await second.stop();
  const own = requests.length;
  await useReplica(new ObjectStoreDriver({ bucket, client: server.client() }));
  await server.close();
  return { requests: requests.slice(0, own), ofReplica: requests.slice(own) };
}

/** Everything that a replica does. */
async function useReplica(driver: ObjectStoreDriver): Promise<void> {
  const db = StoreDb({ dbPrefix, nodeId: 0, driver, role: 'replica', logLevel: 'silent' });
  db.registerSchema(files);
  await db.start();
  await db.refresh();
  expect(await db.query(files).where('kind', '=', 'kind 1000').count()).toBe(1);
  const row = await db.get(files, 2);
  expect(await db.getBlob(row?.content ?? '').getBuffer(0, 3)).toEqual(Buffer.alloc(3));
  for await (const commit of db.changes({ after: 0 })) {
    await commit.toArray();
    if (commit.position === db.position) break;
    await db.resolveCommit({ commitId: commit.commitId, slot: commit.position });
  }
  expect((await db.verify({ deep: true })).ok).toBe(true);
  const batch = db.batch();
  await batch.insert(files, { id: 77, content: db.Blob('never uploaded') });
  await expect(batch.flush()).rejects.toMatchObject({ code: 'READ_ONLY' });
  await expect(db.checkpoint()).rejects.toMatchObject({ code: 'READ_ONLY' });
  await db.stop();
}

describe('the policies of docs/object-stores.md', () => {
  let requests: S3Request[];
  let ofReplica: S3Request[];
  let accesses: Access[];

  beforeAll(async () => {
    ({ requests, ofReplica } = await useEverything());
    accesses = requests.flatMap(accessesOf);
  });

  it('are judged by all kinds of objects and of requests', () => {
    const places = new Set(requests.map(({ key }) => key.split('/')[1] ?? ''));
    expect([...places].toSorted()).toEqual(['', 'blobs', 'block0', 'committed', 'data', 'indexes', 'probe', 'staged']);
    const operations = new Set(requests.map(({ operation = '' }) => operation));
    expect([...operations]).toEqual(
      expect.arrayContaining(Object.keys(actions).filter((name) => !/Head|DeleteObject$/.test(name))),
    );
  });

  it('allow writers all that they do', () => {
    expect(accesses.filter((access) => !isAllowed([writers], access))).toEqual([]);
  });

  it('allow it under the guard as well', () => {
    const guarded = accesses.filter((access) => guard.Statement.some((statement) => concerns(statement, access)));
    expect(guarded).toEqual([]);
  });

  it('grant writers nothing that they do not need', () => {
    for (const statement of writers.Statement) {
      for (const Action of [statement.Action].flat()) {
        const isUsed = accesses.some((access) => concerns({ ...statement, Action }, access));
        expect([statement.Sid, Action, isUsed]).toEqual([statement.Sid, Action, true]);
      }
    }
    const outside = [`${bucketArn}/my-app-2/block0`, `${bucketArn}/block0`, 'arn:aws:s3:::other/my-app/block0'];
    for (const resource of outside) {
      for (const action of ['s3:GetObject', 's3:PutObject', 's3:DeleteObject']) {
        expect(isAllowed([writers, collection, replicas], { action, resource, context: {} })).toBe(false);
      }
    }
    const whole = { action: 's3:ListBucket', resource: bucketArn };
    expect(isAllowed([writers], { ...whole, context: {} })).toBe(false);
    expect(isAllowed([writers], { ...whole, context: { 's3:prefix': 'my-app-2/' } })).toBe(false);
  });

  it('allow replicas all that they do, which is to read', () => {
    expect(ofReplica.length).toBeGreaterThan(20);
    const needed = ofReplica.flatMap(accessesOf);
    expect(needed.filter((access) => !isAllowed([replicas], access))).toEqual([]);
    expect(new Set(ofReplica.map(({ method }) => method))).toEqual(new Set(['GET']));
  });

  it('allow replicas to read, and nothing else', () => {
    for (const access of accesses) {
      const isReading = access.action === 's3:GetObject' || access.action === 's3:ListBucket';
      expect([access, isAllowed([replicas], access)]).toEqual([access, isReading]);
    }
  });

  it('let garbage collection delete everything but Block 0, and writers nothing but probes', () => {
    const written = new Set(accesses.filter(({ action }) => action === 's3:PutObject').map(({ resource }) => resource));
    for (const resource of written) {
      const access = { action: 's3:DeleteObject', resource, context: {} };
      const isProbe = resource.includes('/probe/');
      expect([resource, isAllowed([writers], access)]).toEqual([resource, isProbe]);
      const mayGo = isAllowed([writers, collection], access);
      expect([resource, mayGo]).toEqual([resource, !resource.endsWith('/block0')]);
    }
  });

  it('have the guard refuse what has no condition', async () => {
    const block0 = `${bucketArn}/my-app/block0`;
    const refuses = (action: string, resource: string, context: Record<string, string> = {}): boolean => {
      return guard.Statement.some((statement) => concerns(statement, { action, resource, context }));
    };
    const creating = { 's3:ObjectCreationOperation': 'true' };
    expect(refuses('s3:PutObject', block0, creating)).toBe(true);
    expect(refuses('s3:PutObject', block0, { 's3:ObjectCreationOperation': 'false' })).toBe(true);
    expect(refuses('s3:DeleteObject', block0)).toBe(true);
    for (const place of ['blobs/a', 'committed/1', 'data/t/1', 'indexes/t/i/1', 'staged/a']) {
      const resource = `${bucketArn}/my-app/${place}`;
      expect(refuses('s3:PutObject', resource, creating)).toBe(true);
      expect(refuses('s3:PutObject', resource, { ...creating, 's3:if-match': '"etag"' })).toBe(true);
      expect(refuses('s3:PutObject', resource, { ...creating, 's3:if-none-match': '*' })).toBe(false);
      expect(refuses('s3:DeleteObject', resource)).toBe(false);
    }
    expect(refuses('s3:PutObject', `${bucketArn}/other/block0`, creating)).toBe(false);
  });

  it('recognise a request without a condition among those that are made', async () => {
    const server = await startS3Server({ buckets: [bucket] });
    const seen: S3Request[] = [];
    server.intercept = (request) => void seen.push(request);
    const input = { Bucket: bucket, Key: 'my-app/block0', Body: 'overwritten' };
    await server.client().send(new PutObjectCommand(input));
    await server.close();
    const [access] = seen.flatMap(accessesOf);
    expect(guard.Statement.some((statement) => concerns(statement, access as Access))).toBe(true);
  });

  it('name the key of KMS with what it is needed for', () => {
    expect(encryption.Statement.flatMap(({ Action }) => Action)).toEqual(['kms:GenerateDataKey', 'kms:Decrypt']);
  });
});
