/** A run of gc: its report, its cost, and its end when it is given up or the store fails. */
import { describe, expect, it } from 'vitest';
import { parseBlockName } from '../../../src/format/object-names.ts';
import type { GcOptions } from '../../../src/index.ts';
import type { DeleteResult } from '../../../src/storage/contract/driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { caught } from '../protocol/nodes.ts';
import { hangs, refused } from '../protocol/scripted-driver.ts';
import type { Script } from '../protocol/scripted-driver.ts';
import { Cluster, Gate, items, prefix, range } from './cluster.ts';
import type { ClusterNode } from './cluster.ts';

const dayMs = 86_400_000;
const quick = { graceMs: 0, logRetentionMs: 0, loopGraceMs: 0 };
const count = 400;

/** A database with garbage of every kind. */
async function withGarbage(cluster: Cluster): Promise<ClusterNode> {
  const node = await cluster.withRows(count);
  await cluster.run(
    cluster.flush(node, (batch) => void batch.upsert(items, { id: 1, text: 'one', file: node.db.Blob('old') })),
  );
  const crashed = await cluster.start(9);
  await cluster.run(crashed.db.snapshot({ expiresAfterMs: 1000 }));
  const gate = new Gate();
  crashed.driver.onPut(/^committed\//, gate.before);
  const large = crashed.db.batch();
  for (const id of range(1000, 1100)) void large.insert(items, { id, text: 'x'.repeat(100_000) });
  void large.insert(items, { id: 2000, file: crashed.db.Blob('stray') });
  void large.flush();
  await cluster.run(gate.reached);
  crashed.environment.freeze();
  await cluster.run(cluster.flush(node, (batch) => void batch.update(items, { id: 2, file: node.db.Blob('brief') })));
  await cluster.run(cluster.flush(node, (batch) => void batch.upsert(items, { id: 2 })));
  await cluster.run(cluster.flush(node, (batch) => void batch.update(items, { id: 1, file: null })));
  await cluster.run(cluster.put(node, range(0, 50), 'second'));
  await cluster.run(node.db.checkpoint());
  await cluster.advance(600_000);
  return node;
}

async function expectCollected(cluster: Cluster, node: ClusterNode): Promise<void> {
  // What is left of a probe of the store's clock is kept for a day: somebody may be about to read it.
  await cluster.advance(dayMs);
  await cluster.collectAll(node);
  expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  expect(await cluster.run(node.db.query(items).count())).toBe(count);
  expect(await cluster.run(node.db.verify())).toMatchObject({ ok: true });
}

/** Deletions that leave some of their keys, and say so. */
function keeping({ store }: Cluster, kept: (key: string) => boolean): Script<DeleteResult> {
  return async (_pass, { keys = [] }) => {
    await store.delete(keys.filter((key) => !kept(key)));
    return { failed: keys.filter(kept).map((key) => ({ key, message: 'It is locked.' })) };
  };
}

describe('a dry run', () => {
  it('writes nothing, and reports the deletions of a run, and why', async () => {
    const cluster = new Cluster();
    const node = await withGarbage(cluster);
    const before = await cluster.names();
    const revision = (await cluster.block0()).revision;
    const from = node.db.stats().requests;
    const report = await cluster.run(node.db.gc({ dryRun: true, ...quick }));
    const { requests } = node.db.stats();
    const wrote = (['put', 'putLost', 'delete'] as const).map((kind) => requests[kind] - from[kind]);
    expect(wrote).toEqual([0, 0, 0]);
    expect(await cluster.names()).toEqual(before);
    expect((await cluster.block0()).revision).toBe(revision);
    expect(report).toMatchObject({ deletedCount: 0, condemnedBlobs: 1, expiredSnapshots: 0, failed: [] });
    const kinds = new Map(report.garbage.map(({ name, kind, reason }) => [name.split('/')[0], { kind, reason }]));
    expect(kinds).toEqual(
      new Map([
        ['data', { kind: 'block', reason: expect.stringMatching(/^no kept state reaches it/) as string }],
        ['indexes', { kind: 'block', reason: expect.stringMatching(/^no kept state reaches it/) as string }],
        ['staged', { kind: 'staged', reason: expect.stringMatching(/^only the commit in slot 3/) as string }],
        ['blobs', { kind: 'blob', reason: expect.stringMatching(/^its row is gone/) as string }],
        ['committed', { kind: 'commit', reason: expect.stringMatching(/^applied/) as string }],
      ]),
    );
    expect(report.freedBytes).toBe(report.garbage.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0));
    // What the abandoned snapshot keeps goes with the run that ends it, and that is no dry one.
    await cluster.replaceBlock0(({ snapshots }) => ({
      snapshots: snapshots.map((pin) => ({ ...pin, expiresMs: pin.expiresMs + 1e9 })),
    }));
    const real = await cluster.run(node.db.gc(quick));
    expect(real.counts).toEqual(report.counts);
    const left = await cluster.names();
    expect(before.filter((name) => !left.includes(name)).toSorted()).toEqual(
      report.garbage.map(({ name }) => name).toSorted(),
    );
  });

  it('keeps the same objects as a run', async () => {
    const cluster = new Cluster();
    const node = await withGarbage(cluster);
    await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    const report = await cluster.run(node.db.gc({ dryRun: true }));
    expect(report.garbage).toEqual([]);
    expect(report.condemnedBlobs).toBe(0);
  });
});

describe('the options of gc()', () => {
  const wrong: readonly (readonly [string, object])[] = [
    ['graceMs', { graceMs: -1 }],
    ['graceMs', { graceMs: 1.5 }],
    ['logRetentionMs', { logRetentionMs: '1h' }],
    ['logRetentionMs', { logRetentionMs: Number.NaN }],
    ['dryRun', { dryRun: 'yes' }],
    ['dryrun', { dryrun: true }],
  ];
  it.each(wrong)('are checked: %s', async (option, options) => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    node.driver.takeLines();
    expect(await cluster.failure(node.db.gc(options as GcOptions))).toMatchObject({ code: 'INVALID_OPTION', option });
    expect(node.driver.takeLines()).toEqual([]);
  });
});

describe('the cost of gc', () => {
  it('on a clean database is a look at Block 0 and a list of each folder', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(20);
    await cluster.collectAll(node);
    node.driver.takeLines();
    await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    expect(node.driver.takeLines()).toEqual([
      'get block0 unchanged',
      'get block0 unchanged',
      ...['data/', 'indexes/', 'roots/', 'history/', 'probe/', 'blobs/', 'committed/', 'staged/'].map(
        (name) => `list ${name}`,
      ),
    ]);
  });

  it('does not grow with the rows: it reads inner nodes, and no leaves', async () => {
    const cluster = new Cluster();
    await cluster.withRows(2000);
    const node = await cluster.start(1);
    const blocks = (await cluster.names()).filter((name) => parseBlockName(name) !== undefined);
    const inner: string[] = [];
    for (const name of blocks) {
      const found = await cluster.store.get(`${prefix}/${name}`);
      if (found.status === 'found' && found.bytes[4] === 3) inner.push(name);
    }
    node.driver.takeLines();
    await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    const reads = node.driver.takeLines().filter((line) => /^get (data|indexes)/.test(line));
    expect(inner.length).toBeGreaterThan(10);
    expect(reads).toHaveLength(inner.length);
    expect(reads.length).toBeLessThan(blocks.length / 5);
  });

  it('is one deletion for every thousand objects, and one list for as many', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await cluster.run(node.db.checkpoint());
    const stray = range(0, 2500).map((i) => `db/data/items/000000000000-${i.toString(16).padStart(16, '0')}`);
    for (const key of stray) await cluster.store.put(key, new Uint8Array(3), { if: 'any' });
    node.driver.takeLines();
    const report = await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    expect(report).toMatchObject({ deletedCount: 2500, freedBytes: 7500 });
    const lines = node.driver.takeLines();
    expect(lines.filter((line) => line.startsWith('delete'))).toEqual(['delete 1000', 'delete 1000', 'delete 500']);
    expect(lines.filter((line) => line === 'list data/')).toHaveLength(3);
    expect(await cluster.names()).toEqual(['block0']);
  });

  it('leaves probes of the store to their owners, for a day', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(20);
    await cluster.store.put('db/probe/0123', new Uint8Array(1), { if: 'any' });
    await cluster.advance(dayMs - 1000);
    await cluster.run(node.db.gc(quick));
    expect(await cluster.namesIn('probe')).toEqual(['probe/0123']);
    await cluster.advance(2000);
    expect(await cluster.run(node.db.gc(quick))).toMatchObject({ deletedCount: 0, counts: { probe: 1 } });
    expect(await cluster.namesIn('probe')).toEqual([]);
  });

  it('leaves unknown objects alone', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(20);
    const foreign = ['data/readme.txt', 'data/items/notes', 'blobs/picture.png', 'staged/x', 'committed/1', 'other/y'];
    for (const name of foreign) await cluster.store.put(`db/${name}`, new Uint8Array(1), { if: 'any' });
    await cluster.store.put('dbx/data/items/000000000000-0000000000000000', new Uint8Array(1), { if: 'any' });
    await cluster.collectAll(node);
    expect((await cluster.garbage()).superfluous.toSorted()).toEqual(foreign.toSorted());
    expect(await cluster.store.get('dbx/data/items/000000000000-0000000000000000')).toMatchObject({ status: 'found' });
  });
});

describe('objects that the store does not delete', () => {
  it('are tried three times, and then reported and left to the next run', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(count);
    await cluster.run(cluster.put(node, range(0, count), 'second'));
    await cluster.run(node.db.checkpoint());
    const { superfluous } = await cluster.garbage();
    const stuck = superfluous.slice(0, 2);
    node.driver.onDelete(
      /^data\//,
      keeping(cluster, (key) => stuck.includes(key.slice(prefix.length + 1))),
      Infinity,
    );
    node.driver.takeLines();
    const report = await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    expect(node.driver.takeLines().filter((line) => line.startsWith('delete'))).toEqual([
      `delete ${superfluous.length}`,
      'delete 2',
      'delete 2',
      // The probe of the store's clock.
      'delete 1',
    ]);
    expect(report.failed.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(
      stuck.toSorted().map((name) => ({ name, message: 'It is locked.' })),
    );
    expect(report.deletedCount).toBe(superfluous.length - 2);
    node.driver.heal();
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0 }))).toMatchObject({ deletedCount: 2, failed: [] });
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('at first, but then, are not reported', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(count);
    await cluster.run(cluster.put(node, range(0, count), 'second'));
    await cluster.run(node.db.checkpoint());
    node.driver.onDelete(
      /^data\//,
      keeping(cluster, () => true),
      2,
    );
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0 }))).toMatchObject({ failed: [] });
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });
});

describe('a run that does not come to its end', () => {
  it('because the store fails in the middle: the next one goes on', async () => {
    const cluster = new Cluster();
    const node = await withGarbage(cluster);
    for (const folder of [/^data\//, /^blobs\//, /^committed\//, /^staged\//]) {
      node.driver.onDelete(folder, refused, Infinity);
      expect(await cluster.failure(node.db.gc(quick))).toMatchObject({ code: 'STORAGE' });
      expect((await cluster.garbage()).missing).toEqual([]);
      expect(await cluster.run(node.db.query(items).count())).toBe(count);
      node.driver.heal();
      // Each of them gets further than the one before.
      if (folder.source !== '^staged\\/') node.driver.onDelete(folder, (pass) => pass(), Infinity);
    }
    node.driver.heal();
    await expectCollected(cluster, node);
  });

  it.each([
    ['before it', /^block0$/],
    ['in the middle', /^data\//],
  ])('because its signal is aborted: %s', async (_, key) => {
    const cluster = new Cluster();
    await withGarbage(cluster);
    const node = await cluster.start(2);
    const controller = new AbortController();
    const gate = new Gate();
    node.driver.onGet(key, gate.before);
    const run = caught(node.db.gc({ ...quick, signal: controller.signal }));
    await cluster.run(gate.reached);
    controller.abort(new Error('enough'));
    expect(await cluster.run(run)).toMatchObject({ code: 'ABORTED', cause: { message: 'enough' } });
    const before = await cluster.names();
    gate.open();
    await cluster.settle();
    // It has stopped, and not only been forgotten.
    expect(await cluster.names()).toEqual(before);
    await expectCollected(cluster, node);
  });

  it('with a signal that was aborted before, asks nothing', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(5);
    node.driver.takeLines();
    expect(await cluster.failure(node.db.gc({ loopGraceMs: 0, signal: AbortSignal.abort() }))).toMatchObject({
      code: 'ABORTED',
    });
    expect(node.driver.takeLines()).toEqual([]);
  });

  it.each([
    ['reads', (node: ClusterNode, gate: Gate) => node.driver.onGet(/^data\//, gate.before)],
    ['lists', (node: ClusterNode, gate: Gate) => node.driver.onList(gate.before)],
    ['deletes', (node: ClusterNode, gate: Gate) => node.driver.onDelete(/^data\//, gate.before)],
    ['commits', (node: ClusterNode, gate: Gate) => node.driver.onPut(/^committed\//, gate.before)],
  ])('because the database is stopped while it %s', async (_, hold) => {
    const cluster = new Cluster();
    await withGarbage(cluster);
    const node = await cluster.start(2);
    const gate = new Gate();
    hold(node, gate);
    const ended = { is: false };
    const run = caught(node.db.gc(quick)).finally(() => {
      ended.is = true;
    });
    await cluster.run(gate.reached);
    const stopped = node.db.stop();
    gate.open();
    await cluster.run(stopped);
    // By then, and not some time later.
    expect(ended.is).toBe(true);
    expect(await cluster.run(run)).toMatchObject({
      code: expect.stringMatching(/NOT_STARTED|COMMIT_OUTCOME/) as string,
    });
    expect(node.environment.timerCount).toBe(0);
    const left = await cluster.names();
    await cluster.advance(60_000);
    expect(await cluster.names()).toEqual(left);
    await cluster.run(node.db.start());
    await expectCollected(cluster, node);
  });

  it('because nothing answers any more: stop() ends all the same', async () => {
    const cluster = new Cluster();
    await withGarbage(cluster);
    const node = await cluster.start(2);
    node.driver.onDelete(/^data\//, hangs, Infinity);
    const run = caught(node.db.gc(quick));
    await cluster.advance(1000);
    await cluster.run(node.db.stop());
    expect(await cluster.run(run)).toMatchObject({ code: 'NOT_STARTED' });
    expect(node.environment.timerCount).toBe(0);
  });

  it('because its process dies at any request: the next one makes up for it', async () => {
    const cluster = new Cluster();
    await withGarbage(cluster);
    let nodeId = 20;
    for (let requests = 1; ; requests++) {
      const node = await cluster.start(nodeId++);
      let left = requests;
      const die = <R>(pass: () => Promise<R>): Promise<R> => {
        if (left-- > 0) return pass();
        node.environment.freeze();
        return hangs();
      };
      node.driver.onAll(die);
      node.driver.onDelete(/^/, die, Infinity);
      const ended = { is: false };
      const run = node.db.gc(quick).finally(() => {
        ended.is = true;
      });
      run.catch(() => undefined);
      while (!ended.is && !node.environment.isFrozen) await cluster.advance(10);
      expect((await cluster.garbage()).missing).toEqual([]);
      if (ended.is) break;
      expect(requests).toBeLessThan(200);
    }
    await expectCollected(cluster, await cluster.start(3));
  });
});

describe('gc on a store that fails now and then', () => {
  it('deletes all it should in the end, and never more', async () => {
    for (let seed = 1; seed <= 15; seed++) {
      const cluster = new Cluster();
      await withGarbage(cluster);
      const faults = { lostAnswer: 0.1, lostRequest: 0.1, lookAgain: 0.1, partialDelete: 0.3, failedList: 0.1 };
      const faulty = new FaultyDriver(cluster.store, { seed, faults, environment: cluster.clock });
      const node = cluster.make(3, { driver: faulty });
      faulty.faults = {};
      await cluster.run(node.db.start());
      faulty.faults = faults;
      for (let i = 0; i < 4; i++) {
        // A run may well give up.
        await cluster.run(node.db.gc(quick).catch(() => undefined));
        await cluster.run(node.db.checkpoint().catch(() => undefined));
        expect((await cluster.garbage()).missing, `seed ${seed}`).toEqual([]);
      }
      faulty.faults = {};
      await expectCollected(cluster, node);
    }
  });
});

describe('gc with many snapshots', () => {
  it('reads their roots a few at a time, and warns of nothing', async () => {
    const cluster = new Cluster();
    const node = await cluster.withRows(20);
    for (let i = 0; i < 30; i++) await cluster.run(node.db.snapshot());
    const collector = await cluster.start(1);
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on('warning', onWarning);
    let reading = 0;
    let most = 0;
    collector.driver.onGet(
      /^roots\//,
      async (pass) => {
        most = Math.max(most, ++reading);
        await cluster.clock.yieldToEventLoop();
        reading--;
        return pass();
      },
      Infinity,
    );
    await cluster.run(collector.db.gc({ loopGraceMs: 0 }));
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(16);
  });
});
