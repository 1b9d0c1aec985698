/** What a snapshot shows: everything that was committed before it was taken, and nothing else, for as long as it is held. */
import { describe, expect, it } from 'vitest';
import type { StoredSnapshot } from '../../../src/format/block0.ts';
import { rootId } from '../../../src/format/object-names.ts';
import type { Database } from '../../../src/index.ts';
import type { Snapshot } from '../../../src/api/snapshot.ts';
import { answerLost, requestLost } from '../protocol/scripted-driver.ts';
import { Cluster, Gate, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';

/** Texts by id, as a database or a snapshot has them, read in every way that there is. */
async function textsOf(state: Database | Snapshot): Promise<Record<number, string | null>> {
  const rows = await state.query(items).execute();
  expect(await state.query(items).count()).toBe(rows.length);
  const streamed: unknown[] = [];
  for await (const row of state.query(items)) streamed.push(row);
  expect(streamed).toEqual(rows);
  for (const row of rows.slice(0, 3)) expect(await state.get(items, row.id)).toEqual(row);
  for (const group of [0, 3]) {
    const found = await state.query(items).where('group', '=', group).execute();
    expect(found).toEqual(rows.filter((row) => row.group === group));
  }
  return Object.fromEntries(rows.map(({ id, text }) => [id, text]));
}

function texts(ids: readonly number[], text: string): Record<number, string> {
  return Object.fromEntries(ids.map((id) => [id, `${text} ${id}`]));
}

/** Rewrites every row and collects what that leaves, by another node. */
async function replaceAll(cluster: Cluster, node: ClusterNode, count: number, text = 'later'): Promise<void> {
  await cluster.run(cluster.put(node, range(0, count), text));
  await cluster.run(node.db.checkpoint());
  await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
}

describe('a snapshot', () => {
  it('shows all earlier commits of any node, merged or not, and nothing after', async () => {
    const cluster = new Cluster();
    const first = await cluster.withRows(30);
    const second = await cluster.start(1);
    // Commits that nobody has merged; the second is one that the holder has not heard of.
    await cluster.run(cluster.put(first, [30], 'tail'));
    await cluster.run(cluster.put(second, [31], 'tail'));
    const snapshot = await cluster.run(first.db.snapshot());
    const expected = { ...texts(range(0, 30), 'first'), ...texts([30, 31], 'tail') };
    expect(await cluster.run(textsOf(snapshot))).toEqual(expected);
    await cluster.run(cluster.put(first, [0, 32], 'after'));
    await cluster.run(cluster.flush(second, (batch) => void batch.delete(items, 1)));
    expect(await cluster.run(textsOf(snapshot))).toEqual(expected);
    expect(await cluster.run(snapshot.get(items, 32))).toBeUndefined();
    await cluster.run(second.db.checkpoint());
    expect(await cluster.run(textsOf(snapshot))).toEqual(expected);
    expect(Object.keys(await cluster.run(textsOf(second.db)))).toHaveLength(32);
  });

  it('keeps its blocks through merges, gc by others and their restarts', async () => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(400);
    // It has none of the blocks in memory: what it shows comes from the store.
    const holder = await cluster.start(1);
    const snapshot = await cluster.run(holder.db.snapshot());
    const pinned = await cluster.names();
    for (const text of ['second', 'third', 'fourth']) {
      await replaceAll(cluster, writer, 400, text);
      await cluster.run(writer.db.stop());
      await cluster.run(writer.db.start());
      expect((await cluster.garbage()).missing).toEqual([]);
    }
    const names = await cluster.names();
    expect(names).toEqual(expect.arrayContaining(pinned.filter((name) => /^(data|indexes)\//.test(name))));
    expect(await cluster.run(textsOf(snapshot))).toEqual(texts(range(0, 400), 'first'));
    expect(await cluster.run(textsOf(holder.db))).toEqual(texts(range(0, 400), 'first'));
    await cluster.run(holder.db.refresh());
    expect(await cluster.run(textsOf(holder.db))).toEqual(texts(range(0, 400), 'fourth'));
    expect(await cluster.run(textsOf(snapshot))).toEqual(texts(range(0, 400), 'first'));
  });

  it('can be taken of a database in which nothing was ever merged', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const empty = await cluster.run(node.db.snapshot());
    expect(empty.generation).toBe(0);
    await cluster.run(cluster.put(node, range(0, 50), 'first'));
    const second = await cluster.run(node.db.snapshot());
    expect(second.generation).toBe(1);
    expect(await cluster.run(empty.query(items).count())).toBe(0);
    await replaceAll(cluster, node, 50);
    expect(await cluster.run(empty.query(items).execute())).toEqual([]);
    expect(await cluster.run(empty.get(items, 1))).toBeUndefined();
    expect(await cluster.run(textsOf(second))).toEqual(texts(range(0, 50), 'first'));
  });

  it('of one state may be taken many times; each lets go of its own', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(200);
    const reader = await cluster.start(1);
    const [one, two] = await cluster.run(Promise.all([reader.db.snapshot(), reader.db.snapshot()]));
    expect(one.generation).toBe(two.generation);
    expect(one.id).not.toBe(two.id);
    await cluster.run(one.release());
    await replaceAll(cluster, node, 200);
    expect(await cluster.run(textsOf(two))).toEqual(texts(range(0, 200), 'first'));
  });

  it('reads blobs of rows that were deleted since, until it is released', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const holder = await cluster.start(1);
    await cluster.run(
      cluster.flush(node, (batch) => {
        void batch.insert(items, { id: 1, file: node.db.Blob('deleted') });
        void batch.insert(items, { id: 2, file: node.db.Blob('replaced') });
      }),
    );
    const snapshot = await cluster.run(holder.db.snapshot());
    await cluster.run(
      cluster.flush(node, (batch) => {
        void batch.delete(items, 1);
        void batch.update(items, { id: 2, file: node.db.Blob('new') });
      }),
    );
    await cluster.collectAll(node);
    const files = (await cluster.run(snapshot.query(items).execute())).map(({ file }) => file as string);
    expect(await cluster.run(Promise.all(files.map((file) => snapshot.getBlob(file).getString())))).toEqual([
      'deleted',
      'replaced',
    ]);
    expect(await cluster.run(snapshot.getBlob(files[0] as string).size())).toBe(7);
    // Of no use to anybody else.
    expect(await cluster.failure(node.db.getBlob(files[0] as string).getString())).toMatchObject({
      code: 'BLOB_NOT_FOUND',
    });
    expect(await cluster.namesIn('blobs')).toHaveLength(3);
    await cluster.run(snapshot.release());
    await cluster.collectAll(node);
    expect(await cluster.namesIn('blobs')).toHaveLength(1);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('lets everything go once it is released, and releasing it twice is nothing', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(200);
    const snapshot = await cluster.run(node.db.snapshot());
    await replaceAll(cluster, node, 200);
    const kept = await cluster.namesIn('data');
    const blob = snapshot.getBlob('00000000-0000-4000-8000-000000000000');
    const query = snapshot.query(items);
    await cluster.run(snapshot.release());
    const revision = (await cluster.block0()).revision;
    await cluster.run(snapshot.release());
    await cluster.run(snapshot[Symbol.asyncDispose]());
    expect((await cluster.block0()).revision).toBe(revision);
    expect((await cluster.block0()).snapshots).toEqual([]);
    expect(await cluster.namesIn('roots')).toEqual([]);
    const { deletedCount } = await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    expect(deletedCount).toBeGreaterThan(kept.length / 3);
    expect(await cluster.garbage()).toMatchObject({ superfluous: [] });
    for (const call of [
      () => query.execute(),
      () => snapshot.query(items).count(),
      () => snapshot.query(items).first(),
      () => snapshot.query(items).where('group', '=', 1).explain(),
      () => snapshot.query(items)[Symbol.asyncIterator]().next(),
      () => snapshot.get(items, 1),
      () => blob.size(),
      () => blob.getBuffer(),
      () => snapshot.getBlob(blob.reference).getString(),
    ]) {
      expect(await cluster.failure(call()), call.toString()).toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    }
  });

  it('is released at the end of a block', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(1);
    const snapshot = await cluster.run(node.db.snapshot());
    await cluster.run(snapshot[Symbol.asyncDispose]());
    expect(await cluster.run(node.db.snapshots())).toEqual([]);
  });
});

describe('db.snapshots()', () => {
  it('lists the snapshots of all nodes, on every node', async () => {
    const cluster = new Cluster();
    const first = await cluster.withRows(5);
    const second = await cluster.start(7);
    expect(await cluster.run(second.db.snapshots())).toEqual([]);
    const takenMs = first.environment.now();
    const one = await cluster.run(first.db.snapshot({ expiresAfterMs: 60_000 }));
    await cluster.advance(1000);
    await cluster.run(cluster.put(first, [5], 'next'));
    const two = await cluster.run(second.db.snapshot());
    const expected = [
      {
        id: one.id,
        generation: 1,
        nodeId: 0,
        createdAt: new Date(takenMs),
        expiresAt: new Date(takenMs + 60_000),
      },
      {
        id: two.id,
        generation: 2,
        nodeId: 7,
        createdAt: two.createdAt,
        expiresAt: new Date(two.createdAt.getTime() + 3_600_000),
      },
    ];
    expect(one.createdAt).toEqual(new Date(takenMs));
    expect(await cluster.run(first.db.snapshots())).toEqual(expected);
    expect(await cluster.run(second.db.snapshots())).toEqual(expected);
    await cluster.run(one.release());
    expect(await cluster.run(second.db.snapshots())).toEqual(expected.slice(1));
  });
});

describe('taking a snapshot', () => {
  it.each([
    ['before its root is stored', /^roots\//],
    ['before its pin is', /^block0$/],
  ])('goes on with the next state if garbage is collected past the first: %s', async (_, key) => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(200);
    const holder = await cluster.start(1);
    const gate = new Gate();
    holder.driver.onPut(key, gate.before);
    const taken = holder.db.snapshot();
    await cluster.run(gate.reached);
    await replaceAll(cluster, writer, 200);
    gate.open();
    const snapshot = await cluster.run(taken);
    expect(snapshot.generation).toBe(2);
    expect((await cluster.block0()).snapshots.map(({ id }) => id)).toEqual([snapshot.id]);
    await replaceAll(cluster, writer, 200, 'last');
    expect(await cluster.run(textsOf(snapshot))).toEqual(texts(range(0, 200), 'later'));
    // The root that was stored for the first attempt is nobody's.
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('is not hindered by a gc of the very state that it is about to pin', async () => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(200);
    const holder = await cluster.start(1);
    const gate = new Gate();
    holder.driver.onPut(/^block0$/, gate.before);
    const taken = holder.db.snapshot();
    await cluster.run(gate.reached);
    expect(await cluster.run(writer.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }))).toMatchObject({
      counts: { root: 0 },
    });
    gate.open();
    const snapshot = await cluster.run(taken);
    expect(snapshot.generation).toBe(1);
    await replaceAll(cluster, writer, 200);
    expect(await cluster.run(textsOf(snapshot))).toEqual(texts(range(0, 200), 'first'));
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('does not cost a merge that is under way its work', async () => {
    const cluster = new Cluster();
    const merging = await cluster.withRows(200);
    const holder = await cluster.start(1);
    const pinning = new Gate();
    holder.driver.onPut(/^block0$/, pinning.before);
    const taken = holder.db.snapshot();
    await cluster.run(pinning.reached);
    await cluster.run(cluster.put(merging, range(0, 200), 'later'));
    const replacing = new Gate();
    merging.driver.onPut(/^block0$/, replacing.before);
    const merged = merging.db.checkpoint();
    await cluster.run(replacing.reached);
    // The pin comes first, and the merge finds another Block 0 than the one that it began with.
    pinning.open();
    const snapshot = await cluster.run(taken);
    const blocks = await cluster.namesIn('data');
    replacing.open();
    await cluster.run(merged);
    expect(merging.db.stats().merges).toMatchObject({ merges: 2, lostMerges: 0 });
    expect(await cluster.namesIn('data')).toEqual(blocks);
    expect((await cluster.block0()).snapshots).toMatchObject([{ id: snapshot.id, generation: 1 }]);
    await cluster.run(merging.db.gc({ loopGraceMs: 0 }));
    expect(await cluster.run(textsOf(snapshot))).toEqual(texts(range(0, 200), 'first'));
  });

  it('succeeds for two instances at once, although both replace Block 0 meanwhile', async () => {
    const cluster = new Cluster();
    const nodes = [await cluster.withRows(50), await cluster.start(1), await cluster.start(2)];
    await cluster.run(Promise.all(nodes.map((node, i) => cluster.put(node, [100 + i], 'tail'))));
    const taken = nodes.flatMap(({ db }) => [db.snapshot(), db.snapshot()]);
    const snapshots = await cluster.run(Promise.all(taken));
    expect(await cluster.run((nodes[0] as ClusterNode).db.snapshots())).toHaveLength(6);
    for (const snapshot of snapshots) {
      const expected = { ...texts(range(0, 50), 'first'), ...texts([100, 101, 102], 'tail') };
      expect(await cluster.run(textsOf(snapshot))).toEqual(expected);
    }
    await cluster.run(Promise.all(snapshots.map((snapshot) => snapshot.release())));
    expect((await cluster.block0()).snapshots).toEqual([]);
  });

  it('is refused where there are a thousand, and possible again when one is released', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(5);
    const own = await cluster.run(node.db.snapshot());
    const idOf = (i: number): string => rootId(1, i.toString(16).padStart(16, '0'));
    await cluster.run(
      cluster.replaceBlock0(({ snapshots }) => {
        const [first] = snapshots as [StoredSnapshot];
        const { generation, appliedSeq, nodeId, createdMs, expiresMs } = first;
        const others = range(1, 1000).map((i): StoredSnapshot => {
          return { id: idOf(i), generation, appliedSeq, nodeId, createdMs, expiresMs };
        });
        return { snapshots: [first, ...others] };
      }),
    );
    expect(await cluster.failure(node.db.snapshot())).toMatchObject({ code: 'CONTENTION' });
    expect((await cluster.block0()).snapshots).toHaveLength(1000);
    await cluster.run(own.release());
    const next = await cluster.run(node.db.snapshot());
    expect(await cluster.run(textsOf(next))).toEqual(texts(range(0, 5), 'first'));
  });

  it('whose answer is lost is not taken twice', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(5);
    node.driver.onPut(/^(roots|block0)/, answerLost, 2);
    const snapshot = await cluster.run(node.db.snapshot());
    expect((await cluster.block0()).snapshots).toMatchObject([{ id: snapshot.id }]);
    expect(await cluster.namesIn('roots')).toEqual([`roots/${snapshot.id}`]);
  });

  it('whose answer is lost is not taken twice, even if another node has replaced Block 0 since', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(5);
    node.driver.onPut(/^block0$/, async (pass, request) => {
      await answerLost(pass, request).catch(() => undefined);
      await cluster.replaceBlock0(() => ({}));
      return requestLost(pass, request);
    });
    const snapshot = await cluster.run(node.db.snapshot());
    expect((await cluster.block0()).snapshots).toMatchObject([{ id: snapshot.id }]);
  });

  it.each([0, 999, 1000.5, 2_592_000_001, '1000', Number.NaN])(
    'refuses to expire after %s ms',
    async (expiresAfterMs) => {
      const cluster = new Cluster();
      const node = await cluster.start(0);
      const options = { expiresAfterMs: expiresAfterMs as number };
      expect(await cluster.failure(node.db.snapshot(options))).toMatchObject({ code: 'INVALID_OPTION' });
    },
  );

  it('needs a database that is running', async () => {
    const cluster = new Cluster();
    const { db } = cluster.make(0);
    expect(await cluster.failure(db.snapshot())).toMatchObject({ code: 'NOT_STARTED' });
    expect(await cluster.failure(db.snapshots())).toMatchObject({ code: 'NOT_STARTED' });
    expect(await cluster.failure(db.gc({ loopGraceMs: 0 }))).toMatchObject({ code: 'NOT_STARTED' });
  });
});
