/**
 * The policies of docs/object-stores.md, against the requests that StoreDb really makes: everything that it does must be
 * allowed, and nothing may be granted that it does not need.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import {
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  PutObjectCommand,
} from '@aws-sdk/client-s3';
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database } from 'store-db';
import { ObjectStoreDriver } from 'store-db/lib/storage';
import { beforeAll, describe, expect, it } from 'vitest';
import { accessesOf, listing, objectActions } from '../../servers/s3-server/authorization.ts';
import type { Access } from '../../servers/s3-server/authorization.ts';
import { startS3Server } from '../../servers/s3-server/server.ts';
import type { S3Server } from '../../servers/s3-server/server.ts';
import type { S3Request } from '../../servers/s3-server/s3-message.ts';
import { concerns, isAllowed, pagePolicies } from './iam-policy.ts';
import type { Policy } from './iam-policy.ts';

const bucket = 'my-bucket';
const dbPrefix = 'my-app';
const bucketArn = `arn:aws:s3:::${bucket}`;
/** More than what is sent in one request. */
const blobBytes = 12 * 1024 * 1024;

const { writers, replicas, collection, encryption, guard } = await pagePolicies();

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

/** Enforces policies for all requests that come, until others are. */
function enforce(server: S3Server, policies: readonly Policy[]): void {
  server.allows = (access) => isAllowed(policies, access);
}

/** What a request needs, with what it needs to be told that something is not there. */
function neededFor(request: S3Request): Access[] {
  const isRead = request.operation === 'GetObject' || request.operation === 'HeadObject';
  return [...accessesOf(request), ...(isRead ? [listing(bucket, request.key)] : [])];
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

interface Used {
  readonly requests: S3Request[];
  readonly ofReplica: S3Request[];
  readonly ofCollection: S3Request[];
  readonly ofRewrite: S3Request[];
  /** What was collected, and what was said meanwhile. */
  readonly collected: {
    readonly counts: Readonly<Record<string, number>>;
    readonly warnings: readonly string[];
    readonly refused: { readonly failed: readonly string[]; readonly warnings: readonly string[] };
  };
}

/** Makes garbage of every kind, and collects it. */
async function collect(server: S3Server): Promise<Used['collected']> {
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  const logger = { debug: () => undefined, info: () => undefined, warn, error: warn };
  const driver = new ObjectStoreDriver({ bucket, client: server.client() });
  const db = StoreDb({ dbPrefix, nodeId: 0, driver, logger, logLevel: 'warn', history: '1s' });
  db.registerSchema(files);
  await db.start();
  const snapshot = await db.snapshot();
  for (const id of [1, 10_001]) {
    const batch = db.batch();
    await batch.delete(files, id);
    await batch.flush();
    await db.checkpoint();
  }
  // Writers may not remove its root.
  enforce(server, [writers, guard]);
  await snapshot.release();
  const { failed } = await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
  const refused = { failed: failed.map(({ name }) => name), warnings: warnings.splice(0) };
  enforce(server, [writers, collection, guard]);
  // What a killed process leaves behind.
  const key = `${dbPrefix}/blobs/00000000-0000-4000-8000-000000000000`;
  await server.client().send(new CreateMultipartUploadCommand({ Bucket: bucket, Key: key }));
  const counts: Record<string, number> = {};
  for (let run = 0; run < 3; run++) {
    // Times of objects have whole seconds.
    await wait(1100);
    const batch = db.batch();
    await batch.upsert(files, { id: 5, text: `run ${run}` });
    await batch.flush();
    await db.checkpoint();
    const report = await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
    expect(report.failed).toEqual([]);
    for (const [kind, count] of Object.entries(report.counts)) counts[kind] = (counts[kind] ?? 0) + count;
  }
  expect(server.uploads(bucket)).toEqual([]);
  await db.stop();
  return { counts, warnings, refused };
}

/** Encrypts all that is there. */
async function rewriteAll(server: S3Server): Promise<void> {
  const driver = new ObjectStoreDriver({ bucket, client: server.client() });
  const keys = { first: randomBytes(32) };
  const protection = { keys, current: 'first', acceptUnencrypted: true };
  const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel: 'silent', encryption: protection });
  await db.start();
  const report = await db.rewrite();
  expect(report).toMatchObject({ failed: [], unencrypted: 0 });
  expect(report.rewritten).toBeGreaterThan(5);
  await db.stop();
}

/** Everything that this release does with a store, from the first start on, under the policies for it. */
async function useEverything(): Promise<Used> {
  const server = await startS3Server({ buckets: [bucket] });
  const requests: S3Request[] = [];
  server.intercept = (request) => void requests.push(request);
  enforce(server, [writers, guard]);
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
  enforce(server, [replicas, guard]);
  await useReplica(new ObjectStoreDriver({ bucket, client: server.client() }));
  const read = requests.length;
  enforce(server, [writers, collection, guard]);
  const collected = await collect(server);
  const gone = requests.length;
  enforce(server, [writers, guard]);
  await rewriteAll(server);
  await server.close();
  return {
    requests: requests.slice(0, own),
    ofReplica: requests.slice(own, read),
    ofCollection: requests.slice(read, gone),
    ofRewrite: requests.slice(gone),
    collected,
  };
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
  let used: Used;
  let requests: S3Request[];
  let ofReplica: S3Request[];
  let accesses: Access[];

  beforeAll(async () => {
    used = await useEverything();
    ({ requests, ofReplica } = used);
    accesses = requests.flatMap(neededFor);
  }, 180_000);

  it('are judged by all kinds of objects and of requests', () => {
    const places = new Set(requests.map(({ key }) => key.split('/')[1] ?? ''));
    expect([...places].toSorted()).toEqual(['', 'blobs', 'block0', 'committed', 'data', 'indexes', 'probe', 'staged']);
    const operations = new Set(requests.map(({ operation = '' }) => operation));
    expect([...operations]).toEqual(
      expect.arrayContaining(Object.keys(objectActions).filter((name) => !/Head|Copy|DeleteObject$/.test(name))),
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
    const needed = ofReplica.flatMap(neededFor);
    expect(needed.filter((access) => !isAllowed([replicas], access))).toEqual([]);
    expect(new Set(ofReplica.map(({ method }) => method))).toEqual(new Set(['GET']));
  });

  it('allow replicas to read, and nothing else', () => {
    for (const access of accesses) {
      const isReading = access.action === 's3:GetObject' || access.action === 's3:ListBucket';
      expect([access, isAllowed([replicas], access)]).toEqual([access, isReading]);
    }
  });

  it('let garbage of every kind go, under the guard, with no word of failures', () => {
    const { counts, warnings } = used.collected;
    expect(warnings).toEqual([]);
    for (const kind of ['block', 'blob', 'staged', 'commit', 'root', 'history']) {
      expect([kind, counts[kind] ?? 0]).toEqual([kind, expect.toSatisfy((count: number) => count > 0)]);
    }
    const deleted = used.ofCollection.flatMap(accessesOf).filter(({ action }) => action === 's3:DeleteObject');
    const places = new Set(deleted.map(({ resource }) => resource.split('/')[2] ?? ''));
    const allowed = collection.Statement.flatMap(({ Resource }) => Resource).flatMap((arn) => arn.split('/')[2] ?? []);
    // Each grant is used, and probes are the writers'.
    expect([...places].toSorted()).toEqual([...new Set([...allowed, 'probe'])].toSorted());
    expect(used.ofCollection.map(({ operation }) => operation)).toContain('ListMultipartUploads');
  });

  it('have gc() report objects that a writer may not delete', () => {
    const { failed, warnings } = used.collected.refused;
    expect(failed.length).toBeGreaterThan(5);
    expect(warnings.filter((line) => line.startsWith('Garbage stays'))).toHaveLength(1);
    expect(warnings.join()).toContain('AccessDenied');
    expect(warnings.join()).toContain('Parts of uploads could not be looked for');
  });

  it('let rewrite() replace existing objects, under the guard', () => {
    const replaced = used.ofRewrite.filter(({ headers }) => headers['if-match'] !== undefined);
    const places = new Set(replaced.map(({ key }) => key.split('/')[1] ?? ''));
    expect([...places]).toEqual(expect.arrayContaining(['block0', 'blobs', 'data', 'indexes']));
  });

  it('are enforced by the server of these tests', async () => {
    const server = await startS3Server({ buckets: [bucket] });
    enforce(server, [writers, collection, guard]);
    const client = server.client();
    const outcome = (sent: Promise<unknown>): Promise<string> =>
      sent.then(
        () => 'done',
        (error: unknown) => (error as Error).name,
      );
    const Bucket = bucket;
    const block0 = { Bucket, Key: `${dbPrefix}/block0` };
    expect(await outcome(client.send(new PutObjectCommand({ ...block0, Body: 'x' })))).toBe('AccessDenied');
    expect(await outcome(client.send(new PutObjectCommand({ ...block0, Body: 'x', IfNoneMatch: '*' })))).toBe('done');
    expect(await outcome(client.send(new DeleteObjectCommand(block0)))).toBe('AccessDenied');
    expect(await outcome(client.send(new GetObjectCommand({ Bucket, Key: 'elsewhere' })))).toBe('AccessDenied');
    expect(await outcome(client.send(new GetObjectCommand({ Bucket, Key: `${dbPrefix}/data/x` })))).toBe('NoSuchKey');
    const Objects = [{ Key: block0.Key }, { Key: `${dbPrefix}/data/x` }];
    const { Deleted, Errors } = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
    expect([Deleted?.map(({ Key }) => Key), Errors?.map(({ Key }) => Key)]).toEqual([[Objects[1]?.Key], [block0.Key]]);
    await server.close();
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

  it('have the guard refuse requests without a condition', async () => {
    const block0 = `${bucketArn}/my-app/block0`;
    const refuses = (action: string, resource: string, context: Record<string, string> = {}): boolean => {
      return guard.Statement.some((statement) => concerns(statement, { action, resource, context }));
    };
    const creating = { 's3:ObjectCreationOperation': 'true' };
    expect(refuses('s3:PutObject', block0, creating)).toBe(true);
    expect(refuses('s3:PutObject', block0, { 's3:ObjectCreationOperation': 'false' })).toBe(true);
    expect(refuses('s3:DeleteObject', block0)).toBe(true);
    for (const place of ['blobs/a', 'committed/1', 'data/t/1', 'indexes/t/i/1', 'roots/a', 'staged/a']) {
      const resource = `${bucketArn}/my-app/${place}`;
      expect(refuses('s3:PutObject', resource, creating)).toBe(true);
      expect(refuses('s3:PutObject', resource, { ...creating, 's3:if-match': '"etag"' })).toBe(false);
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
    const [access] = seen.flatMap(neededFor);
    expect(guard.Statement.some((statement) => concerns(statement, access as Access))).toBe(true);
  });

  it('name the key of KMS with its purpose', () => {
    expect(encryption.Statement.flatMap(({ Action }) => Action)).toEqual(['kms:GenerateDataKey', 'kms:Decrypt']);
  });
});
