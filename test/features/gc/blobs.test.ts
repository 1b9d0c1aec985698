/** Which blobs gc deletes: those whose row is gone, and uploads that no commit ever named, after a grace and in two steps. */
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { StorageError } from '../../../src/base/errors.ts';
import { blobName } from '../../../src/format/object-names.ts';
import type { Batch } from '../../../src/index.ts';
import { caught } from '../protocol/nodes.ts';
import { answerLost, before } from '../protocol/scripted-driver.ts';
import { Cluster, Gate, items } from './cluster.ts';
import type { ClusterNode } from './cluster.ts';

const dayMs = 86_400_000;

/** Stores a blob with its row, and gives its reference. */
async function store(cluster: Cluster, node: ClusterNode, id: number, data: string): Promise<string> {
  await cluster.run(cluster.flush(node, (batch) => void batch.upsert(items, { id, file: node.db.Blob(data) })));
  return referenceOf(cluster, node, id);
}

async function referenceOf(cluster: Cluster, { db }: ClusterNode, id: number): Promise<string> {
  return (await cluster.run(db.get(items, id)))?.file as string;
}

/** What the two system tables list. */
async function listed(cluster: Cluster, { db }: ClusterNode): Promise<readonly (readonly unknown[])[]> {
  await cluster.run(db.refresh());
  const ids = async (table: string): Promise<unknown[]> => (await db.query(table).execute()).map(({ id }) => id);
  return cluster.run(Promise.all([ids('_blobs'), ids('_deleted_blobs')]));
}

async function gc(cluster: Cluster, { db }: ClusterNode, graceMs?: number): Promise<readonly [number, number]> {
  await cluster.run(db.checkpoint());
  const { counts, condemnedBlobs } = await cluster.run(db.gc(graceMs === undefined ? {} : { graceMs }));
  return [counts.blob, condemnedBlobs];
}

/** Puts the object of a blob that no commit names, as a flush does that crashes before its commit. */
async function strayUpload(cluster: Cluster, node: ClusterNode): Promise<string> {
  const crashed = await cluster.start(9);
  const gate = new Gate();
  crashed.driver.onPut(/^committed\//, gate.before);
  void cluster.flush(crashed, (batch) => void batch.insert(items, { id: 900, file: node.db.Blob('stray') }));
  await cluster.run(gate.reached);
  crashed.environment.freeze();
  const known = new Set((await listed(cluster, node)).flat());
  const stray = (await cluster.namesIn('blobs')).find((name) => !known.has(name.slice('blobs/'.length)));
  return (stray as string).slice('blobs/'.length);
}

describe('a blob whose row is gone', () => {
  it('stays until the next run if a run was waiting for loops when it went', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const gone = await store(cluster, node, 1, 'gone');
    await cluster.run(node.db.checkpoint());
    const waiting = node.db.gc({ loopGraceMs: 30_000 });
    await cluster.run(cluster.flush(node, (batch) => void batch.delete(items, 1)));
    await cluster.run(node.db.checkpoint());
    expect((await cluster.run(waiting)).counts.blob).toBe(0);
    expect(await cluster.namesIn('blobs')).toContain(blobName(gone));
    expect(await gc(cluster, node)).toEqual([1, 0]);
    expect(await cluster.namesIn('blobs')).not.toContain(blobName(gone));
  });

  it.each([
    ['deleted', (batch: Batch) => void batch.delete(items, 1)],
    [
      'given another blob',
      (batch: Batch, node: ClusterNode) => void batch.update(items, { id: 1, file: node.db.Blob('new') }),
    ],
    ['given no blob', (batch: Batch) => void batch.update(items, { id: 1, file: null })],
    ['replaced', (batch: Batch) => void batch.upsert(items, { id: 1 })],
  ])('goes with the first gc after that is merged: %s', async (_, change) => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const gone = await store(cluster, node, 1, 'gone');
    const kept = await store(cluster, node, 2, 'kept');
    await cluster.run(cluster.flush(node, (batch) => change(batch, node)));
    // Not merged: the blocks that everybody reads still show it.
    await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    expect(await cluster.namesIn('blobs')).toContain(blobName(gone));
    expect((await listed(cluster, node))[1]).toEqual([gone]);
    expect(await gc(cluster, node)).toEqual([1, 0]);
    expect(await cluster.namesIn('blobs')).not.toContain(blobName(gone));
    expect((await listed(cluster, node))[1]).toEqual([]);
    expect(await cluster.run(node.db.getBlob(kept).getString())).toBe('kept');
    await cluster.collectAll(node);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    expect(await cluster.run(node.db.verify())).toMatchObject({ ok: true });
  });

  it('is counted and listed by a dry run', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const gone = await store(cluster, node, 1, 'gone');
    await cluster.run(cluster.flush(node, (batch) => void batch.delete(items, 1)));
    await cluster.run(node.db.checkpoint());
    await store(cluster, node, 2, 'in use');
    await cluster.run(node.db.checkpoint());
    await cluster.advance(10);
    const report = await cluster.run(node.db.gc({ loopGraceMs: 0, dryRun: true, graceMs: 0 }));
    expect(report.condemnedBlobs).toBe(0);
    expect(report.garbage.filter(({ kind }) => kind === 'blob')).toEqual([
      { kind: 'blob', name: blobName(gone), sizeBytes: 4, reason: expect.stringContaining('row is gone') as string },
    ]);
    expect((await listed(cluster, node))[1]).toEqual([gone]);
  });

  it('whose object an interrupted run has deleted is not listed forever', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const gone = await store(cluster, node, 1, 'gone');
    await cluster.run(cluster.flush(node, (batch) => void batch.delete(items, 1)));
    await cluster.run(node.db.checkpoint());
    await cluster.remove(blobName(gone));
    expect(await gc(cluster, node)).toEqual([0, 0]);
    expect((await listed(cluster, node))[1]).toEqual([]);
  });

  it('stays listed while the store will not delete it', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const gone = await store(cluster, node, 1, 'gone');
    await cluster.run(cluster.flush(node, (batch) => void batch.delete(items, 1)));
    await cluster.run(node.db.checkpoint());
    const failing = async (_pass: unknown, { keys }: { keys?: readonly string[] }) => {
      return { failed: (keys ?? []).map((key) => ({ key, message: 'locked' })) };
    };
    node.driver.onDelete(/^blobs\//, failing, Infinity);
    const report = await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    expect(report).toMatchObject({ counts: { blob: 0 }, failed: [{ name: blobName(gone), message: 'locked' }] });
    expect((await listed(cluster, node))[1]).toEqual([gone]);
    node.driver.heal();
    expect(await gc(cluster, node)).toEqual([1, 0]);
    expect((await listed(cluster, node))[1]).toEqual([]);
  });
});

describe('an upload that no commit ever named', () => {
  it('is condemned after the grace, and deleted by the run after that is merged', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await store(cluster, node, 1, 'kept');
    const stray = await strayUpload(cluster, node);
    expect(await gc(cluster, node)).toEqual([0, 0]);
    await cluster.advance(dayMs);
    expect(await gc(cluster, node)).toEqual([0, 0]);
    await cluster.advance(1);
    expect(await gc(cluster, node)).toEqual([0, 1]);
    expect((await listed(cluster, node))[1]).toEqual([stray]);
    expect(await cluster.namesIn('blobs')).toContain(blobName(stray));
    // The commit that condemns it must be in the state that is collected from.
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0 }))).toMatchObject({ counts: { blob: 0 }, condemnedBlobs: 0 });
    expect(await gc(cluster, node)).toEqual([1, 0]);
    expect((await listed(cluster, node))[1]).toEqual([]);
    await cluster.collectAll(node);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('is judged by the clock of the store, not by those of the nodes', async () => {
    const cluster = new Cluster();
    cluster.clock.skewMs = -90 * dayMs;
    const node = await cluster.start(0);
    await strayUpload(cluster, node);
    await cluster.advance(dayMs / 2);
    // To the node, the upload is three months old.
    expect(await gc(cluster, node)).toEqual([0, 0]);
    node.environment.skewMs = -1000 * dayMs;
    await cluster.advance(dayMs / 2 + 1);
    expect(await gc(cluster, node)).toEqual([0, 1]);
  });

  it('that a commit names before the condemnation has its slot is not condemned', async () => {
    const cluster = new Cluster();
    const collector = await cluster.start(0);
    const writer = await cluster.start(1);
    const committing = new Gate();
    writer.driver.onPut(/^committed\//, committing.before);
    const flushed = cluster.flush(writer, (batch) => void batch.insert(items, { id: 1, file: writer.db.Blob('late') }));
    await cluster.run(committing.reached);
    await cluster.advance(10);
    // Both are ready for the same slot, and the flush is first.
    const condemning = new Gate();
    collector.driver.onPut(/^committed\//, condemning.before);
    const collected = collector.db.gc({ loopGraceMs: 0, graceMs: 0 });
    await cluster.run(condemning.reached);
    committing.open();
    await cluster.run(flushed);
    condemning.open();
    await cluster.run(collected);
    await cluster.collectAll(collector);
    const [blobs, deleted] = await listed(cluster, writer);
    expect([blobs?.length, deleted]).toEqual([1, []]);
    expect(await cluster.run(writer.db.getBlob(blobs?.[0] as string).getString())).toBe('late');
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });
});

/**
 * A flush whose blobs are uploaded and whose commit waits, while a collector condemns them, and collects so often that
 * they are gone and nothing speaks of them any more.
 */
async function withCompetitor(
  cluster: Cluster,
  fill: (batch: Batch, node: ClusterNode) => void,
  runs: number,
): Promise<{ flush: Promise<void>; batch: Batch; writer: ClusterNode; collector: ClusterNode; first: string[] }> {
  const collector = await cluster.start(0);
  const writer = await cluster.start(1);
  const gate = new Gate();
  writer.driver.onPut(/^committed\//, gate.before);
  const batch = writer.db.batch();
  fill(batch, writer);
  const flush = batch.flush();
  // Whoever wants to know asks later.
  flush.catch(() => undefined);
  await cluster.run(gate.reached);
  const first = await cluster.namesIn('blobs');
  for (let run = 0; run < runs; run++) {
    // By the grace only: virtual time must not pass the deadline of the flush.
    await cluster.advance(2);
    await cluster.run(collector.db.gc({ loopGraceMs: 0, graceMs: 1 }));
    await cluster.run(collector.db.checkpoint());
  }
  gate.open();
  return { flush, batch, writer, collector, first };
}

describe('a flush whose upload is condemned before its commit', () => {
  it.each([
    ['is condemned', 1],
    ['is gone', 2],
    ['is gone, and all that was said of it', 3],
  ])('uploads bytes again under a new reference: the blob %s', async (_, runs) => {
    const cluster = new Cluster();
    const { flush, writer, collector, first } = await withCompetitor(
      cluster,
      (batch, { db }) => {
        void batch.insert(items, { id: 1, text: 'one', file: db.Blob('first bytes', { contentType: 'text/plain' }) });
        void batch.insert(items, { id: 2, text: 'two', file: db.Blob('more bytes') });
        void batch.insert(items, { id: 3, text: 'three' });
      },
      runs,
    );
    await cluster.run(flush);
    const references = [await referenceOf(cluster, writer, 1), await referenceOf(cluster, writer, 2)];
    expect(first).toHaveLength(2);
    for (const reference of references) expect(first).not.toContain(blobName(reference));
    await cluster.run(collector.db.refresh());
    for (const { db } of [writer, collector]) {
      const read = references.map((reference) => db.getBlob(reference).getString());
      expect(await cluster.run(Promise.all(read))).toEqual(['first bytes', 'more bytes']);
    }
    const types = await cluster.run(writer.db.query('_blobs').execute());
    expect(types.map(({ contentType }) => contentType)).toContain('text/plain');
    await cluster.collectAll(collector);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    expect((await cluster.namesIn('blobs')).toSorted()).toEqual(references.map(blobName).toSorted());
    expect((await listed(cluster, writer))[1]).toEqual([]);
    expect(await cluster.run(writer.db.verify())).toMatchObject({ ok: true });
  });

  it.each([
    ['is condemned', 1],
    ['is gone, and all that was said of it', 3],
  ])('fails and commits nothing where it was a stream: the blob %s', async (_, runs) => {
    const cluster = new Cluster();
    const { flush, batch, writer, collector } = await withCompetitor(
      cluster,
      (filled, { db }) => {
        void filled.insert(items, { id: 1, file: db.Blob('bytes') });
        void filled.insert(items, { id: 2, file: db.Blob(Readable.from(['streamed'])) });
      },
      runs,
    );
    expect(await cluster.failure(flush)).toMatchObject({ code: 'BATCH_STATE' });
    expect(batch.size).toBe(2);
    expect(await cluster.run(writer.db.query(items).count())).toBe(0);
    // It does not get better by itself, and is repaired as the message says.
    expect(await cluster.failure(batch.flush())).toMatchObject({ code: 'BATCH_STATE' });
    batch.clear();
    void batch.insert(items, { id: 2, file: writer.db.Blob(Readable.from(['again'])) });
    await cluster.run(batch.flush());
    const reference = await referenceOf(cluster, writer, 2);
    expect(await cluster.run(writer.db.getBlob(reference).getString())).toBe('again');
    await cluster.collectAll(collector);
    expect(await cluster.namesIn('blobs')).toEqual([blobName(reference)]);
  });

  it('is seen through by a batch that is flushed again after a failure', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await store(cluster, node, 1, 'in the way');
    const batch = node.db.batch();
    void batch.insert(items, { id: 1, file: node.db.Blob('second') });
    expect(await cluster.failure(batch.flush())).toMatchObject({ code: 'DUPLICATE_KEY' });
    expect(await cluster.namesIn('blobs')).toHaveLength(2);
    await cluster.collectAll(node);
    expect(await cluster.namesIn('blobs')).toHaveLength(1);
    await cluster.run(cluster.flush(node, (other) => void other.delete(items, 1)));
    await cluster.run(batch.flush());
    expect(await cluster.run(node.db.getBlob(await referenceOf(cluster, node, 1)).getString())).toBe('second');
    await cluster.collectAll(node);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('does not continue a failed upload of an earlier flush', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const batch = node.db.batch();
    void batch.insert(items, { id: 1, file: node.db.Blob('bytes') });
    const landed = async (pass: () => Promise<unknown>, { key }: { key: string }): Promise<never> => {
      await pass();
      throw new StorageError(key, 'unknown', 'There was no answer.');
    };
    node.driver.onPut(/^blobs\//, landed, 4);
    expect(await cluster.failure(batch.flush())).toMatchObject({ code: 'STORAGE' });
    const [left] = await cluster.namesIn('blobs');
    await cluster.advance(10);
    // Condemned: a deletion of that very object may be on its way.
    await cluster.run(node.db.gc({ loopGraceMs: 0, graceMs: 0 }));
    await cluster.run(batch.flush());
    expect(blobName(await referenceOf(cluster, node, 1))).not.toBe(left);
    await cluster.collectAll(node);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    expect(await cluster.run(node.db.getBlob(await referenceOf(cluster, node, 1)).getString())).toBe('bytes');
  });

  it('is made under a name that no run of gc can still be about to delete', async () => {
    const cluster = new Cluster();
    const [slow, quick, writer] = [await cluster.start(0), await cluster.start(1), await cluster.start(2)];
    const batch = writer.db.batch();
    void batch.insert(items, { id: 1, file: writer.db.Blob('bytes') });
    writer.driver.onPut(/^blobs\//, answerLost, Infinity);
    expect(await cluster.failure(batch.flush())).toMatchObject({ code: 'STORAGE' });
    writer.driver.heal();
    await cluster.advance(10);
    await cluster.run(quick.db.gc({ loopGraceMs: 0, graceMs: 0 }));
    await cluster.run(quick.db.checkpoint());
    // One run has decided, and is held up; the other one deletes, and says so.
    const deleting = new Gate();
    slow.driver.onDelete(/^blobs\//, deleting.before);
    const slowRun = slow.db.gc({ loopGraceMs: 0 });
    await cluster.run(deleting.reached);
    await cluster.run(quick.db.gc({ loopGraceMs: 0 }));
    await cluster.run(quick.db.checkpoint());
    expect(await cluster.namesIn('blobs')).toEqual([]);
    await cluster.run(batch.flush());
    deleting.open();
    await cluster.run(slowRun);
    expect(await cluster.run(writer.db.getBlob(await referenceOf(cluster, writer, 1)).getString())).toBe('bytes');
    await cluster.collectAll(quick);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('costs nothing where nobody came between: no request looks for the blob', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await store(cluster, node, 1, 'bytes');
    node.driver.takeLines();
    await store(cluster, node, 2, 'bytes');
    expect(node.driver.takeLines().map((line) => line.replace(/\/[0-9a-f-]{36}/, ''))).toEqual([
      'put blobs written',
      'put committed/2 written',
      'get block0 unchanged',
    ]);
  });
});

describe('flush and condemnation at the same slot', () => {
  it.each(['the flush', 'gc'])('agree on the outcome in either order: %s', async (first) => {
    const cluster = new Cluster();
    const collector = await cluster.start(0);
    const writer = await cluster.start(1);
    const gates = { 'the flush': new Gate(), gc: new Gate() };
    writer.driver.onPut(/^committed\/1$/, gates['the flush'].before);
    collector.driver.onPut(/^committed\/1$/, gates.gc.before);
    const flush = cluster.flush(writer, (batch) => {
      void batch.insert(items, { id: 1, file: writer.db.Blob('bytes') });
    });
    await cluster.run(gates['the flush'].reached);
    await cluster.advance(2);
    const run = collector.db.gc({ loopGraceMs: 0, graceMs: 1 });
    await cluster.run(gates.gc.reached);
    const ended = [flush, run.then(() => undefined)];
    const [winner, loser] = (first === 'gc' ? ended.toReversed() : ended) as [Promise<void>, Promise<void>];
    gates[first as 'gc'].open();
    await cluster.run(winner);
    gates['the flush'].open();
    gates.gc.open();
    await cluster.run(loser);
    const reference = await referenceOf(cluster, writer, 1);
    expect(await cluster.namesIn('blobs')).toHaveLength(first === 'gc' ? 2 : 1);
    for (let i = 0; i < 3; i++) {
      await cluster.collectAll(collector);
      expect(await cluster.run(writer.db.getBlob(reference).getString())).toBe('bytes');
    }
    expect(await cluster.namesIn('blobs')).toEqual([blobName(reference)]);
    expect((await listed(cluster, writer))[1]).toEqual([]);
  });

  it('agree too where they share a commit, gc before the flush', async () => {
    const cluster = new Cluster();
    // So few that gc reads no block at all.
    await cluster.withRows(40);
    const node = await cluster.start(1);
    // A flush that will be rejected keeps the next ones waiting, and the log as it is.
    const rejecting = new Gate();
    node.driver.onGet(/^data\//, rejecting.before);
    const rejected = node.db.batch();
    void rejected.insert(items, { id: 7 });
    const rejection = caught(rejected.flush());
    await rejecting.reached;
    const uploaded = new Gate();
    node.driver.onPut(
      /^blobs\//,
      before(() => uploaded.before(() => Promise.resolve())),
    );
    const flush = cluster.flush(node, (batch) => void batch.insert(items, { id: 900, file: node.db.Blob('bytes') }));
    await uploaded.reached;
    cluster.clock.skewMs = 10;
    const run = node.db.gc({ loopGraceMs: 0, graceMs: 0 });
    // No time passes meanwhile, so that nothing runs into its deadline.
    await cluster.settle();
    uploaded.open();
    await cluster.settle();
    rejecting.open();
    expect(await cluster.run(rejection)).toMatchObject({ code: 'DUPLICATE_KEY' });
    const [, { condemnedBlobs }] = await cluster.run(Promise.all([flush, run]));
    expect(condemnedBlobs).toBe(1);
    // Both in the one commit that came after the first.
    expect(await cluster.namesIn('committed')).toHaveLength(2);
    const reference = await referenceOf(cluster, node, 900);
    await cluster.collectAll(node);
    expect(await cluster.run(node.db.getBlob(reference).getString())).toBe('bytes');
    expect(await listed(cluster, node)).toEqual([[reference], []]);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });
});
