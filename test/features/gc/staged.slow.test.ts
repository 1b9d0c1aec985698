/** Staged runs of commits too large for one object: gc deletes them when the only commit that may name them is merged. */
import { describe, expect, it } from 'vitest';
import { Cluster, Gate, items, range } from './cluster.ts';
import type { ClusterNode } from './cluster.ts';

const quick = { graceMs: 0, logRetentionMs: 0, loopGraceMs: 0 };
const ids = range(1000, 1100);

/** More than a commit holds itself. */
function large({ db }: ClusterNode): Promise<void> {
  const batch = db.batch();
  for (const id of ids) void batch.insert(items, { id, group: id % 10, text: `${id}`.repeat(25_000) });
  return batch.flush();
}

async function expectLarge(cluster: Cluster, { db }: ClusterNode): Promise<void> {
  await cluster.run(db.refresh());
  const rows = await cluster.run(db.query(items).where('id', '>=', 1000).execute());
  expect(rows.map(({ id }) => id)).toEqual(ids);
  expect(rows.every(({ id, text }) => text === `${id}`.repeat(25_000))).toBe(true);
}

describe('staged runs', () => {
  it('of a commit that nobody has merged stay, and go once it is', async () => {
    const cluster = new Cluster();
    // It merges out of turn what is staged: another node would not.
    const writer = await cluster.start(0);
    writer.driver.onPut(/^block0$/, () => new Promise(() => {}), Infinity);
    const collector = await cluster.start(1);
    await cluster.run(large(writer));
    const runs = await cluster.namesIn('staged');
    expect(runs.length).toBeGreaterThan(0);
    await cluster.run(collector.db.gc(quick));
    expect(await cluster.namesIn('staged')).toEqual(runs);
    await expectLarge(cluster, collector);
    await cluster.run(collector.db.checkpoint());
    expect(await cluster.run(collector.db.gc(quick))).toMatchObject({ counts: { staged: runs.length } });
    expect(await cluster.garbage()).toMatchObject({ missing: [] });
    expect(await cluster.namesIn('staged')).toEqual([]);
    await expectLarge(cluster, collector);
    expect(await cluster.run(collector.db.verify())).toMatchObject({ ok: true });
  });

  it('stay as long as the log may be read for their commit', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await cluster.run(large(node));
    await cluster.run(node.db.checkpoint());
    const runs = await cluster.namesIn('staged');
    expect(runs.length).toBeGreaterThan(0);
    // An hour, unless something else is said.
    for (const waitMs of [0, 3_500_000]) {
      await cluster.advance(waitMs);
      await cluster.run(node.db.gc({ loopGraceMs: 0 }));
      expect(await cluster.namesIn('staged')).toEqual(runs);
      expect((await cluster.run(node.db.verify({ deep: true }))).garbage).toEqual({ objects: 0, bytes: 0 });
    }
    await cluster.advance(200_000);
    const preview = await cluster.run(node.db.gc({ dryRun: true }));
    expect(preview.counts).toMatchObject({ commit: 0, staged: runs.length });
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0 }))).toMatchObject({
      counts: { commit: 0, staged: runs.length },
    });
    expect(await cluster.namesIn('staged')).toEqual([]);
    await expectLarge(cluster, node);
  });

  it('of a batch that crashed before its commit stay until its slot is merged', async () => {
    const cluster = new Cluster();
    const collector = await cluster.withRows(10);
    const crashing = await cluster.start(1);
    const gate = new Gate();
    crashing.driver.onPut(/^committed\//, gate.before);
    void large(crashing);
    await cluster.run(gate.reached);
    crashing.environment.freeze();
    const runs = await cluster.namesIn('staged');
    expect(runs.length).toBeGreaterThan(0);
    // Whoever it is may still be about to put the commit that names them.
    await cluster.advance(365 * 86_400_000);
    await cluster.run(collector.db.gc(quick));
    expect(await cluster.namesIn('staged')).toEqual(runs);
    await cluster.run(cluster.put(collector, [1], 'the same slot'));
    await cluster.run(collector.db.gc(quick));
    expect(await cluster.namesIn('staged')).toEqual(runs);
    await cluster.run(collector.db.checkpoint());
    expect(await cluster.run(collector.db.gc(quick))).toMatchObject({ counts: { staged: runs.length } });
    await cluster.collectAll(collector);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('of a flush that lost its slot are staged again for the next one', async () => {
    const cluster = new Cluster();
    const collector = await cluster.withRows(10);
    const writer = await cluster.start(1);
    const gate = new Gate();
    writer.driver.onPut(/^committed\//, gate.before);
    const flushed = large(writer);
    await cluster.run(gate.reached);
    const lost = await cluster.namesIn('staged');
    await cluster.run(cluster.put(collector, [1], 'second'));
    await cluster.run(collector.db.checkpoint());
    await cluster.run(collector.db.gc(quick));
    expect(await cluster.namesIn('staged')).toEqual([]);
    gate.open();
    await cluster.run(flushed);
    for (const node of [writer, collector]) await expectLarge(cluster, node);
    expect(await cluster.namesIn('staged')).not.toEqual(expect.arrayContaining(lost));
    await cluster.collectAll(collector);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectLarge(cluster, writer);
  });

  it('that are gone when a node still reads them make it look again, and never an error', async () => {
    const cluster = new Cluster();
    const writer = await cluster.start(0);
    writer.driver.onPut(/^block0$/, () => new Promise(() => {}), Infinity);
    const reader = await cluster.start(1);
    const collector = await cluster.start(2);
    await cluster.run(large(writer));
    await cluster.run(reader.db.refresh());
    await cluster.run(collector.db.checkpoint());
    await cluster.run(collector.db.gc(quick));
    expect(await cluster.namesIn('staged')).toEqual([]);
    // Its view ends at a commit whose rows lie in the runs.
    expect(reader.db.stats().log?.appliedSeq).toBe(0);
    const [first] = await cluster.run(
      reader.db
        .query(items)
        .where('id', '=', ids[0] as number)
        .execute(),
    );
    expect(first?.text).toHaveLength(100_000);
    expect(await cluster.run(reader.db.get(items, ids[5] as number))).toMatchObject({ id: ids[5] });
    await expectLarge(cluster, reader);
  });

  it.each([
    ['a loop', 'a merge goes past it', 0],
    ['a loop', 'ten seconds have passed', 11_000],
  ])('that %s reads stay once %s, until it has ended', async (_loop, _when, waitMs) => {
    const cluster = new Cluster();
    const writer = await cluster.start(0);
    writer.driver.onPut(/^block0$/, () => new Promise(() => {}), Infinity);
    const reader = await cluster.start(1, { maxMemoryBytes: 1024 * 1024 });
    const collector = await cluster.start(2);
    await cluster.run(large(writer));
    await cluster.run(reader.db.refresh());
    const runs = await cluster.namesIn('staged');
    const iterator = reader.db.query(items)[Symbol.asyncIterator]();
    const seen: number[] = [];
    const read = async (upTo: number): Promise<void> => {
      while (seen.length < upTo) {
        const next = await cluster.run(iterator.next());
        if (next.done === true) return;
        expect(next.value.text).toBe(`${next.value.id}`.repeat(25_000));
        seen.push(next.value.id);
      }
    };
    await read(5);
    await cluster.advance(waitMs);
    await read(6);
    await cluster.run(collector.db.checkpoint());
    if (waitMs === 0) await cluster.run(reader.db.refresh());
    await read(10);
    const preview = await cluster.run(collector.db.gc({ ...quick, dryRun: true }));
    await cluster.run(collector.db.gc(quick));
    expect([await cluster.namesIn('staged'), preview.counts.staged]).toEqual([runs, 0]);
    await read(ids.length + 1);
    expect(seen).toEqual(ids);
    await cluster.settle();
    expect((await cluster.run(collector.db.gc(quick))).counts.staged).toBe(runs.length);
    await cluster.collectAll(collector);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('that were trimmed before a loop could hold on to them end it, and with no wrong row', async () => {
    const cluster = new Cluster();
    // The state itself is kept by the history.
    const history = '1d';
    const writer = await cluster.start(0, { history });
    writer.driver.onPut(/^block0$/, () => new Promise(() => {}), Infinity);
    const reader = await cluster.start(1, { history, maxMemoryBytes: 1024 * 1024 });
    const collector = await cluster.start(2, { history });
    await cluster.run(large(writer));
    await cluster.run(reader.db.refresh());
    const iterator = reader.db.query(items)[Symbol.asyncIterator]();
    const first = await cluster.run(iterator.next());
    expect(first.value).toMatchObject({ id: ids[0] });
    await cluster.run(collector.db.checkpoint());
    await cluster.run(collector.db.gc(quick));
    await cluster.run(reader.db.refresh());
    reader.driver.takeLines();
    const rest = async (): Promise<void> => {
      for (;;) if ((await iterator.next()).done === true) return;
    };
    expect((await cluster.failure(rest())).code).toBe('SNAPSHOT_EXPIRED');
    // It has pinned nothing.
    expect(reader.driver.takeLines().filter((line) => /put/i.test(line))).toEqual([]);
  });

  it('that are gone when a node merges them cost it its merge, and no more', async () => {
    const cluster = new Cluster();
    const writer = await cluster.start(0);
    writer.driver.onPut(/^block0$/, () => new Promise(() => {}), Infinity);
    const slow = await cluster.start(1);
    const collector = await cluster.start(2);
    await cluster.run(large(writer));
    const gate = new Gate();
    slow.driver.onGet(/^staged\//, gate.before);
    const merged = slow.db.checkpoint();
    await cluster.run(gate.reached);
    await cluster.run(collector.db.checkpoint());
    await cluster.run(collector.db.gc(quick));
    gate.open();
    await cluster.run(merged);
    expect(slow.db.stats().merges).toMatchObject({ lostMerges: 1 });
    await expectLarge(cluster, slow);
  });

  it('of a commit whose put comes when its slot is trimmed: the flush is made again, and nothing is lost', async () => {
    const cluster = new Cluster();
    const collector = await cluster.withRows(10);
    const sleeper = await cluster.start(1);
    const gate = new Gate();
    sleeper.driver.onPut(/^committed\//, gate.before);
    const flushed = large(sleeper);
    await cluster.run(gate.reached);
    await cluster.run(cluster.put(collector, [1], 'second'));
    await cluster.run(cluster.put(collector, [1], 'third'));
    await cluster.collectAll(collector);
    expect(await cluster.namesIn('committed')).toHaveLength(1);
    gate.open();
    await cluster.run(flushed);
    await expectLarge(cluster, collector);
    // The commit that won the dead slot is there, and decides nothing.
    expect((await cluster.namesIn('committed')).length).toBeGreaterThan(1);
    await cluster.collectAll(collector);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    await expectLarge(cluster, sleeper);
  });
});
