/** Which blocks gc deletes: those that no kept state reaches, at once, and none that any merge under way may yet need. */
import { describe, expect, it } from 'vitest';
import type { GcReport } from '../../../src/maintenance/gc/collector.ts';
import { commitName, parseBlockName } from '../../../src/format/object-names.ts';
import { Cluster, Gate, items, range } from './cluster.ts';
import type { ClusterNode } from './cluster.ts';

const count = 400;
const all = range(0, count);
const quick = { graceMs: 0, logRetentionMs: 0, loopGraceMs: 0 };

async function blockNames(cluster: Cluster): Promise<string[]> {
  return (await cluster.names()).filter((name) => parseBlockName(name) !== undefined);
}

async function expectRows(cluster: Cluster, { db }: ClusterNode, text: string): Promise<void> {
  await cluster.run(db.refresh());
  const rows = await cluster.run(db.query(items).execute());
  expect(rows.map((row) => row.text)).toEqual(all.map((id) => `${text} ${id}`));
  expect(await cluster.run(db.verify())).toMatchObject({ ok: true });
}

describe('blocks that a merge replaced', () => {
  it('are deleted at once, and exactly the reachable ones stay', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(count);
    const before = await blockNames(cluster);
    await cluster.run(cluster.put(node, all, 'second'));
    await cluster.run(node.db.checkpoint());
    const { superfluous } = await cluster.garbage();
    const orphans = superfluous.filter((name) => parseBlockName(name) !== undefined);
    expect(new Set(orphans)).toEqual(new Set(before.filter((name) => name.startsWith('data/'))));
    const sizes = await Promise.all(
      orphans.map(async (name) => (await cluster.store.list(`db/${name}`)).entries[0]?.sizeBytes ?? 0),
    );
    const report = await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    expect(report).toMatchObject({
      deletedCount: orphans.length,
      counts: { block: orphans.length, blob: 0, staged: 0, commit: 0, root: 0, history: 0 },
      freedBytes: sizes.reduce((sum, size) => sum + size, 0),
      failed: [],
      garbage: [],
    });
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectRows(cluster, node, 'second');
    await expectRows(cluster, await cluster.start(1), 'second');
  });

  it('go too where they are roots that Block 0 has no room for', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0, { blockSizeBytes: 524_288 });
    const put = async (text: string): Promise<string[]> => {
      await cluster.run(
        cluster.flush(node, (batch) => {
          for (const id of all) void batch.upsert(items, { id, text: text.repeat(50) });
        }),
      );
      await cluster.run(node.db.checkpoint());
      return cluster.namesIn('data');
    };
    const [first] = await put('first');
    expect(await put('second')).toHaveLength(2);
    await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    const left = await cluster.namesIn('data');
    expect(left).toHaveLength(1);
    expect(left).not.toContain(first);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    expect(await cluster.run((await cluster.start(1)).db.query(items).count())).toBe(count);
  });

  it('go too where tables and indexes become empty', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(count);
    await cluster.run(
      cluster.flush(node, (batch) => {
        for (const id of all) void batch.delete(items, id);
      }),
    );
    await cluster.collectAll(node);
    const { logFloor } = await cluster.block0();
    expect(await cluster.names()).toEqual(['block0', commitName(logFloor)]);
    expect(await cluster.run(node.db.query(items).count())).toBe(0);
  });

  it('stay while nothing is merged: Block 0 reaches them', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(count);
    await cluster.run(cluster.put(node, all, 'second'));
    const before = await cluster.names();
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0 }))).toMatchObject({ deletedCount: 0 });
    expect(await cluster.names()).toEqual(before);
    await expectRows(cluster, node, 'second');
  });
});

/** A merge by one node that is held up when its blocks are there and its Block 0 is not. */
async function mergeHeldUp(
  cluster: Cluster,
  node: ClusterNode,
): Promise<{ merged: Promise<void>; gate: Gate; blocks: string[] }> {
  const before = new Set(await blockNames(cluster));
  const gate = new Gate();
  node.driver.onPut(/^block0$/, gate.before);
  const merged = node.db.checkpoint();
  await cluster.run(gate.reached);
  return { merged, gate, blocks: (await blockNames(cluster)).filter((name) => !before.has(name)) };
}

describe('blocks of a merge under way', () => {
  it('stay, however often others collect, and Block 0 reaches them when it ends', async () => {
    const cluster = new Cluster();
    const merging = await cluster.withRows(count);
    const other = await cluster.start(1);
    await cluster.run(cluster.put(merging, all, 'second'));
    const { merged, gate, blocks } = await mergeHeldUp(cluster, merging);
    expect(blocks.length).toBeGreaterThan(30);
    for (let i = 0; i < 2; i++) {
      await cluster.run(other.db.gc(quick));
      expect(await cluster.names()).toEqual(expect.arrayContaining(blocks));
    }
    // However long it takes: no clock is asked.
    await cluster.advance(30 * 86_400_000);
    await cluster.run(other.db.gc(quick));
    gate.open();
    await cluster.run(merged);
    expect(merging.db.stats().merges).toMatchObject({ merges: 2, lostMerges: 0 });
    expect((await cluster.garbage()).missing).toEqual([]);
    await expectRows(cluster, other, 'second');
  });

  it('go once it can no longer win, and not before', async () => {
    const cluster = new Cluster();
    const losing = await cluster.withRows(count);
    const winning = await cluster.start(1);
    await cluster.run(cluster.put(losing, all, 'second'));
    const { merged, gate, blocks } = await mergeHeldUp(cluster, losing);
    await cluster.run(winning.db.gc(quick));
    expect(await cluster.names()).toEqual(expect.arrayContaining(blocks));
    await cluster.run(winning.db.checkpoint());
    await cluster.run(winning.db.gc(quick));
    const left = new Set(await cluster.names());
    expect(blocks.filter((name) => left.has(name))).toEqual([]);
    gate.open();
    await cluster.run(merged);
    expect(losing.db.stats().merges).toMatchObject({ merges: 1, lostMerges: 1 });
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectRows(cluster, losing, 'second');
  });

  it('that crashed go when the generation has passed them', async () => {
    const cluster = new Cluster();
    const crashing = await cluster.withRows(count);
    const other = await cluster.start(1);
    await cluster.run(cluster.put(crashing, all, 'second'));
    const { blocks } = await mergeHeldUp(cluster, crashing);
    crashing.environment.freeze();
    expect(blocks.every((name) => parseBlockName(name)?.birth === 2)).toBe(true);
    await cluster.run(other.db.gc(quick));
    expect(await cluster.names()).toEqual(expect.arrayContaining(blocks));
    await cluster.run(other.db.checkpoint());
    const report = await cluster.run(other.db.gc(quick));
    expect(report.counts.block).toBeGreaterThanOrEqual(blocks.length);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectRows(cluster, other, 'second');
  });
});

describe('a node whose view is outdated by a merge and gc', () => {
  it('merges newer commits: its own merge has only lost', async () => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(count);
    // It has no blocks in memory, so that its merge reads them.
    const slow = await cluster.start(1);
    await cluster.run(cluster.put(writer, all, 'second'));
    const gate = new Gate();
    slow.driver.onGet(/^data\//, gate.before);
    const merged = slow.db.checkpoint();
    await cluster.run(gate.reached);
    await cluster.run(writer.db.checkpoint());
    await cluster.run(writer.db.gc(quick));
    gate.open();
    await cluster.run(merged);
    expect(slow.db.stats().merges).toMatchObject({ merges: 0, lostMerges: 1 });
    await expectRows(cluster, slow, 'second');
  });

  it.each([
    ['alone', []],
    ['behind another one', [500]],
  ])('flushes on the newer state: %s', async (_, before) => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(count);
    const slow = await cluster.start(1);
    const gates = [new Gate(), new Gate()];
    // Once before it was refreshed, and once after. Equal rows would not be written again, and no block would go.
    const texts = ['second', 'third'];
    for (const gate of gates) slow.driver.onGet(/^data\//, gate.before);
    const flushes = before.map((id) => cluster.put(slow, [id], 'second'));
    const update = slow.db.batch();
    void update.update(items, { id: 150, text: 'updated' });
    flushes.push(update.flush());
    for (const [i, { reached, open }] of gates.entries()) {
      await cluster.run(reached);
      await cluster.run(cluster.put(writer, range(0, count), texts[i] as string));
      await cluster.run(writer.db.checkpoint());
      await cluster.run(writer.db.gc(quick));
      open();
    }
    await cluster.run(Promise.all(flushes));
    await cluster.run(writer.db.refresh());
    expect(await cluster.run(writer.db.query(items).count())).toBe(count + before.length);
    expect((await cluster.run(writer.db.get(items, 150)))?.text).toBe('updated');
    expect((await cluster.run(writer.db.get(items, 151)))?.text).toBe('third 151');
  });

  it('says that a block is lost where nobody has collected it', async () => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(count);
    await cluster.run(cluster.put(writer, [300], 'second'));
    const node = await cluster.start(1);
    for (const name of await cluster.namesIn('data')) await cluster.remove(name);
    const batch = node.db.batch();
    void batch.update(items, { id: 150, text: 'updated' });
    expect(await cluster.failure(batch.flush())).toMatchObject({ code: 'CORRUPTION' });
    expect(await cluster.failure(node.db.checkpoint())).toMatchObject({ code: 'CORRUPTION' });
  });

  it('queries the newer state if it has returned nothing yet', async () => {
    const cluster = new Cluster();
    const writer = await cluster.withRows(count);
    const slow = await cluster.start(1);
    await cluster.run(cluster.put(writer, all, 'second'));
    await cluster.run(writer.db.checkpoint());
    await cluster.run(writer.db.gc(quick));
    const rows = await cluster.run(slow.db.query(items).execute());
    expect(rows.map((row) => row.text)).toEqual(all.map((id) => `second ${id}`));
  });
});

describe('gc at the same time', () => {
  /** One run is held up at a request, and what happens meanwhile is up to the test. */
  async function heldUp(
    cluster: Cluster,
    { db, driver }: ClusterNode,
    hold: (gate: Gate) => void,
    meanwhile: () => Promise<unknown>,
  ): Promise<GcReport> {
    driver.heal();
    const gate = new Gate();
    hold(gate);
    const running = db.gc(quick);
    await cluster.run(gate.reached);
    await cluster.run(meanwhile());
    gate.open();
    return cluster.run(running);
  }

  it('by several nodes deletes each object once, and nothing else', async () => {
    const cluster = new Cluster();
    const nodes = [await cluster.withRows(count), await cluster.start(1), await cluster.start(2)];
    for (const text of ['second', 'third']) {
      await cluster.run(cluster.put(nodes[0] as ClusterNode, all, text));
      await cluster.run((nodes[0] as ClusterNode).db.checkpoint());
    }
    await cluster.run(Promise.all(nodes.map(({ db }) => db.gc(quick))));
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectRows(cluster, nodes[1] as ClusterNode, 'third');
  });

  it('by one node twice is right as well', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(count);
    await cluster.run(cluster.put(node, all, 'second'));
    await cluster.run(node.db.checkpoint());
    await cluster.run(Promise.all([node.db.gc(quick), node.db.gc(quick)]));
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it.each([
    ['reads what is kept', (node: ClusterNode) => (gate: Gate) => node.driver.onGet(/^data\//, gate.before)],
    ['lists what is stored', (node: ClusterNode) => (gate: Gate) => node.driver.onList(gate.before)],
    ['deletes', (node: ClusterNode) => (gate: Gate) => node.driver.onDelete(/^data\//, gate.before)],
  ])('goes on from a later state when another run has collected past it while it %s', async (_, hold) => {
    const cluster = new Cluster();
    const first = await cluster.withRows(count);
    await cluster.run(cluster.put(first, all, 'second'));
    await cluster.run(first.db.checkpoint());
    const second = await cluster.start(1);
    await heldUp(cluster, second, hold(second), async () => {
      await cluster.put(first, all, 'third');
      await first.db.checkpoint();
      await first.db.gc(quick);
    });
    await cluster.collectAll(second);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectRows(cluster, second, 'third');
  });

  it('is not stopped by a snapshot that is released while it reads its state', async () => {
    const cluster = new Cluster();
    const holder = await cluster.withRows(count);
    const collector = await cluster.start(1);
    const snapshot = await cluster.run(holder.db.snapshot());
    await cluster.run(cluster.put(holder, all, 'second'));
    await cluster.run(holder.db.checkpoint());
    const hold = (gate: Gate): void => collector.driver.onGet(/^roots\//, gate.before);
    await heldUp(cluster, collector, hold, () => snapshot.release());
    await cluster.run(collector.db.gc(quick));
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectRows(cluster, collector, 'second');
  });

  it('keeps the state of a snapshot that is taken while it runs', async () => {
    const cluster = new Cluster();
    const holder = await cluster.withRows(count);
    const collector = await cluster.start(1);
    await cluster.run(cluster.put(holder, all, 'second'));
    await cluster.run(holder.db.checkpoint());
    let generation = 0;
    const hold = (gate: Gate): void => collector.driver.onDelete(/^data\//, gate.before);
    await heldUp(cluster, collector, hold, async () => {
      const snapshot = await holder.db.snapshot();
      ({ generation } = snapshot);
      await cluster.put(holder, all, 'third');
      await holder.db.checkpoint();
    });
    expect((await cluster.block0()).snapshots).toMatchObject([{ generation }]);
    expect((await cluster.garbage()).missing).toEqual([]);
    await cluster.run(collector.db.gc(quick));
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });
});

describe('gc refuses, and deletes nothing,', () => {
  async function prepared(): Promise<{ cluster: Cluster; collector: ClusterNode }> {
    const cluster = new Cluster();
    const node = await cluster.withRows(count);
    await cluster.run(node.db.snapshot());
    await cluster.run(cluster.put(node, range(0, 200), 'second'));
    await cluster.run(node.db.checkpoint());
    await cluster.run(cluster.put(node, range(0, 100), 'third'));
    await cluster.run(node.db.checkpoint());
    // It has nothing in memory.
    return { cluster, collector: await cluster.start(1) };
  }

  async function expectRefusal(cluster: Cluster, { db }: ClusterNode, code = 'CORRUPTION'): Promise<void> {
    const before = await cluster.names();
    expect(await cluster.failure(db.gc(quick))).toMatchObject({ code });
    expect(await cluster.names()).toEqual(before);
  }

  /** An inner node that is an object: of the present state, or only of the one that the snapshot shows. */
  async function innerNode(cluster: Cluster, birth: (generation: number) => boolean): Promise<string> {
    for (const name of await blockNames(cluster)) {
      const found = await cluster.store.get(`db/${name}`);
      // Kind 3, in the block header.
      const isInner = found.status === 'found' && found.bytes[4] === 3;
      if (isInner && name.startsWith('data/') && birth(parseBlockName(name)?.birth as number)) return name;
    }
    throw new Error('there is no inner node');
  }

  it('if the root of a snapshot is missing', async () => {
    const { cluster, collector } = await prepared();
    await cluster.remove((await cluster.namesIn('roots'))[0] as string);
    await expectRefusal(cluster, collector);
  });

  it('if the root of a snapshot is damaged', async () => {
    const { cluster, collector } = await prepared();
    await cluster.damage((await cluster.namesIn('roots'))[0] as string);
    await expectRefusal(cluster, collector);
  });

  it.each([
    ['the present state', (birth: number) => birth === 3],
    ['a snapshot', (birth: number) => birth === 1],
  ])('if an inner node of %s is damaged or missing', async (_, birth) => {
    const { cluster, collector } = await prepared();
    const name = await innerNode(cluster, birth);
    await cluster.damage(name);
    await expectRefusal(cluster, collector);
    await cluster.remove(name);
    await expectRefusal(cluster, collector);
  });

  it('if Block 0 is damaged or gone', async () => {
    const { cluster, collector } = await prepared();
    await cluster.damage('block0');
    await expectRefusal(cluster, collector);
    await cluster.remove('block0');
    await expectRefusal(cluster, collector, 'DATABASE_REPLACED');
  });

  it('if the store cannot be read', async () => {
    const { cluster, collector } = await prepared();
    collector.driver.onGet(/^data\//, (_pass, { key }) => Promise.reject(new Error(`no ${key}`)), Infinity);
    const before = await cluster.names();
    await cluster.failure(collector.db.gc(quick));
    expect(await cluster.names()).toEqual(before);
    collector.driver.heal();
    await cluster.run(collector.db.gc(quick));
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('if a leaf is damaged it does not notice: it reads none', async () => {
    const { cluster, collector } = await prepared();
    const leaves = (await cluster.namesIn('data')).filter((name) => parseBlockName(name)?.birth === 3);
    for (const name of leaves) {
      const found = await cluster.store.get(`db/${name}`);
      if (found.status === 'found' && found.bytes[4] === 1) await cluster.damage(name);
    }
    await cluster.run(collector.db.gc(quick));
    expect((await cluster.run(collector.db.verify())).ok).toBe(false);
  });
});
