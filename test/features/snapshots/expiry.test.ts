/** How a snapshot ends without being released: its holder crashes, sleeps, stops, or cannot reach the store. */
import { describe, expect, it } from 'vitest';
import { rootName } from '../../../src/format/object-names.ts';
import type { Snapshot } from '../../../src/api/snapshot.ts';
import { Cluster, Gate, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { caught } from '../protocol/nodes.ts';
import { hangs, refused } from '../protocol/scripted-driver.ts';

const minuteMs = 60_000;
const timeToLiveMs = 20 * minuteMs;
/** By how much the clocks of nodes may differ before a snapshot is ended too early. */
const marginMs = 5 * minuteMs;
const count = 200;

/** A snapshot of rows that the other node has replaced meanwhile, and that its holder has to read from the store. */
async function heldByAnother(cluster: Cluster): Promise<{
  readonly collector: ClusterNode;
  readonly holder: ClusterNode;
  readonly snapshot: Snapshot;
}> {
  const collector = await cluster.withRows(count);
  const holder = await cluster.start(1);
  const snapshot = await cluster.run(holder.db.snapshot({ expiresAfterMs: timeToLiveMs }));
  await replaceAll(cluster, collector);
  return { collector, holder, snapshot };
}

async function replaceAll(cluster: Cluster, node: ClusterNode): Promise<void> {
  await cluster.run(cluster.put(node, range(0, count), 'later'));
  await cluster.run(node.db.checkpoint());
}

/** Expects that every row is as it was when the snapshot was taken. */
async function expectRows(cluster: Cluster, snapshot: Snapshot): Promise<void> {
  const rows = await cluster.run(snapshot.query(items).execute());
  expect(rows.map(({ text }) => text)).toEqual(range(0, count).map((id) => `first ${id}`));
}

async function expectExpired(cluster: Cluster, snapshot: Snapshot): Promise<void> {
  for (const call of [
    () => snapshot.query(items).execute(),
    () => snapshot.query(items).where('group', '=', 1).count(),
    () => snapshot.get(items, 1),
    () => snapshot.getBlob('00000000-0000-4000-8000-000000000000').size(),
  ]) {
    expect(await cluster.failure(call()), call.toString()).toMatchObject({
      code: 'SNAPSHOT_EXPIRED',
      message: expect.stringContaining('Take a new one') as string,
    });
  }
}

describe('a snapshot that is held', () => {
  it('is renewed, and outlives its time to live three times over', async () => {
    const cluster = new Cluster();
    const { collector, snapshot, holder } = await heldByAnother(cluster);
    for (let i = 0; i < 8; i++) {
      await cluster.advance(timeToLiveMs / 2);
      expect(await cluster.run(collector.db.gc({ loopGraceMs: 0 }))).toMatchObject({ expiredSnapshots: 0 });
      const [pin] = (await cluster.block0()).snapshots;
      // Never so close to its end that one renewal that fails would matter.
      expect(pin?.expiresMs).toBeGreaterThan(holder.environment.now() + timeToLiveMs / 2);
    }
    expect((await cluster.garbage()).missing).toEqual([]);
    await expectRows(cluster, snapshot);
  });

  it('is renewed again where that failed for a while', async () => {
    const cluster = new Cluster();
    const { collector, holder, snapshot } = await heldByAnother(cluster);
    holder.driver.onPut(/^block0$/, refused, Infinity);
    await cluster.advance(timeToLiveMs * 0.8);
    const before = (await cluster.block0()).snapshots[0]?.expiresMs;
    holder.driver.heal();
    await cluster.advance(timeToLiveMs * 0.2);
    expect((await cluster.block0()).snapshots[0]?.expiresMs).toBeGreaterThan((before as number) + timeToLiveMs / 2);
    await cluster.advance(timeToLiveMs * 2);
    expect(await cluster.run(collector.db.gc({ loopGraceMs: 0 }))).toMatchObject({ expiredSnapshots: 0 });
    await expectRows(cluster, snapshot);
  });

  it('is renewed in time where one request for that gets no answer', async () => {
    const cluster = new Cluster();
    const holder = await cluster.withRows(count);
    const shortMs = 3000;
    await cluster.run(holder.db.snapshot({ expiresAfterMs: shortMs }));
    const taken = (await cluster.block0()).snapshots[0]?.expiresMs as number;
    holder.driver.onPut(/^block0$/, hangs);
    await cluster.advance(shortMs);
    // By then the store would still be waited for.
    expect((await cluster.block0()).snapshots[0]?.expiresMs).toBeGreaterThan(taken + shortMs / 3);
  });
});

describe('a snapshot that somebody else ends', () => {
  it('has expired for its holder, and blocks that only it showed are garbage', async () => {
    const cluster = new Cluster();
    const { collector, snapshot } = await heldByAnother(cluster);
    expect(await cluster.run(collector.db.releaseSnapshot('0-none'))).toBe(false);
    await expectRows(cluster, snapshot);
    expect(await cluster.run(collector.db.releaseSnapshot(snapshot.id))).toBe(true);
    expect(await cluster.run(collector.db.releaseSnapshot(snapshot.id))).toBe(false);
    expect(await cluster.run(collector.db.snapshots())).toEqual([]);
    await cluster.collectAll(collector);
    await cluster.advance(timeToLiveMs);
    await expectExpired(cluster, snapshot);
    expect((await cluster.garbage()).missing).toEqual([]);
  });
});

describe('a snapshot whose holder crashed', () => {
  it('stays until its time is over and clocks may differ, and is ended by the gc after that', async () => {
    const cluster = new Cluster();
    const { collector, holder, snapshot } = await heldByAnother(cluster);
    const expiresAtMs = ((await cluster.block0()).snapshots[0]?.expiresMs as number) + marginMs;
    holder.environment.freeze();
    await cluster.advance(expiresAtMs - collector.environment.now() - 1);
    expect(await cluster.run(collector.db.gc({ loopGraceMs: 0 }))).toMatchObject({
      expiredSnapshots: 0,
      deletedCount: 0,
    });
    expect(await cluster.run(collector.db.snapshots())).toMatchObject([{ id: snapshot.id }]);
    await cluster.advance(1);
    // What only looks ends nothing.
    expect(await cluster.run(collector.db.gc({ dryRun: true }))).toMatchObject({ expiredSnapshots: 0 });
    const report = await cluster.run(collector.db.gc({ loopGraceMs: 0 }));
    expect(report).toMatchObject({ expiredSnapshots: 1, counts: { root: 1 } });
    expect(report.deletedCount).toBeGreaterThan(10);
    expect(await cluster.run(collector.db.snapshots())).toEqual([]);
    expect(await cluster.garbage()).toMatchObject({ missing: [], superfluous: [] });
  });

  it('is not ended by an instance that does not collect', async () => {
    const cluster = new Cluster();
    const { collector, holder } = await heldByAnother(cluster);
    holder.environment.freeze();
    await cluster.advance(timeToLiveMs * 3);
    await replaceAll(cluster, collector);
    expect(await cluster.run(collector.db.snapshots())).toHaveLength(1);
  });
});

describe('a holder that was paused past the end of its snapshot', () => {
  it('learns it, whether or not the blocks are in memory', async () => {
    const cluster = new Cluster();
    const { collector, holder, snapshot } = await heldByAnother(cluster);
    await expectRows(cluster, snapshot);
    holder.environment.pause(timeToLiveMs * 2);
    await cluster.advance(timeToLiveMs * 2 - 1);
    expect(await cluster.run(collector.db.gc({ loopGraceMs: 0 }))).toMatchObject({ expiredSnapshots: 1 });
    // It wakes, and its renewal finds no pin.
    await cluster.advance(1000);
    await expectExpired(cluster, snapshot);
    await cluster.run(snapshot.release());
    expect(holder.environment.timerCount).toBe(1);
  });

  it('gets an error and never wrong rows before it has learnt it', async () => {
    const cluster = new Cluster();
    const { collector, holder, snapshot } = await heldByAnother(cluster);
    await cluster.replaceBlock0(() => ({ snapshots: [] }));
    await cluster.run(collector.db.gc({ loopGraceMs: 0 }));
    const found = snapshot.query(items).where('id', '>', 50).execute();
    expect(await cluster.failure(found)).toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    await expectExpired(cluster, snapshot);
    // It is not renewed any more: what is left is the timer of the write-forward loop.
    expect(holder.environment.timerCount).toBe(1);
  });

  it('gets the first rows right and then an error in the middle of a stream', async () => {
    const cluster = new Cluster();
    const { collector, snapshot } = await heldByAnother(cluster);
    const seen: (string | null)[] = [];
    let next = 0;
    const loop = async (): Promise<void> => {
      for await (const row of snapshot.query(items)) {
        expect(row.id).toBe(next++);
        seen.push(row.text);
        if (next !== 20) continue;
        await cluster.replaceBlock0(() => ({ snapshots: [] }));
        await collector.db.gc({ loopGraceMs: 0 });
      }
    };
    expect(await cluster.failure(loop())).toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    expect(seen.length).toBeGreaterThanOrEqual(20);
    expect(seen.length).toBeLessThan(count);
    expect(seen).toEqual(range(0, seen.length).map((id) => `first ${id}`));
    await expectExpired(cluster, snapshot);
  });

  it('learns it too if only the bytes of a blob are gone', async () => {
    const cluster = new Cluster();
    const writer = await cluster.start(0);
    const holder = await cluster.start(1);
    await cluster.run(
      cluster.flush(writer, (batch) => void batch.insert(items, { id: 1, file: writer.db.Blob('bytes') })),
    );
    const snapshot = await cluster.run(holder.db.snapshot());
    const file = (await cluster.run(snapshot.get(items, 1)))?.file as string;
    const blob = snapshot.getBlob(file);
    expect(await cluster.run(blob.getString())).toBe('bytes');
    await cluster.run(cluster.flush(writer, (batch) => void batch.delete(items, 1)));
    await cluster.replaceBlock0(() => ({ snapshots: [] }));
    await cluster.collectAll(writer);
    expect(await cluster.failure(blob.getString())).toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    const streamed = async (): Promise<void> => {
      for await (const piece of snapshot.getBlob(file).stream()) expect(piece).toBeUndefined();
    };
    expect(await cluster.failure(streamed())).toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    await expectExpired(cluster, snapshot);
  });
});

describe('a release that fails', () => {
  it('is an error, ends the snapshot for its holder, and leaves the rest to its expiry', async () => {
    const cluster = new Cluster();
    const { collector, holder, snapshot } = await heldByAnother(cluster);
    holder.driver.onPut(/^block0$/, refused, Infinity);
    expect(await cluster.failure(snapshot.release())).toMatchObject({ code: 'STORAGE' });
    holder.driver.heal();
    await expectExpired(cluster, snapshot);
    await cluster.advance(timeToLiveMs - minuteMs);
    expect(await cluster.run(collector.db.gc({ loopGraceMs: 0 }))).toMatchObject({ expiredSnapshots: 0 });
    await cluster.advance(marginMs + minuteMs);
    expect(await cluster.run(collector.db.gc({ loopGraceMs: 0 }))).toMatchObject({ expiredSnapshots: 1 });
    expect(await cluster.garbage()).toMatchObject({ superfluous: [] });
  });

  it('of the stored root alone is made good by gc', async () => {
    const cluster = new Cluster();
    const { collector, holder, snapshot } = await heldByAnother(cluster);
    holder.driver.onDelete(/^roots\//, () => Promise.reject(new Error('no')));
    await cluster.run(snapshot.release());
    expect(await cluster.namesIn('roots')).toEqual([rootName(snapshot.id)]);
    expect(await cluster.run(collector.db.gc({ loopGraceMs: 0 }))).toMatchObject({ counts: { root: 1 } });
    expect(await cluster.garbage()).toMatchObject({ superfluous: [] });
  });
});

describe('stop()', () => {
  it('releases the held snapshots, and leaves no timer', async () => {
    const cluster = new Cluster();
    const { collector, holder, snapshot } = await heldByAnother(cluster);
    await cluster.run(holder.db.snapshot());
    await cluster.run(holder.db.stop());
    expect(holder.environment.timerCount).toBe(0);
    expect(await cluster.run(collector.db.snapshots())).toEqual([]);
    expect(await cluster.failure(snapshot.get(items, 1))).toMatchObject({ code: 'NOT_STARTED' });
    await cluster.run(holder.db.start());
    await expectExpired(cluster, snapshot);
    await cluster.run(collector.db.gc({ loopGraceMs: 0 }));
    expect(await cluster.garbage()).toMatchObject({ superfluous: [] });
  });

  it('ends with the store out of reach, and held snapshots expire', async () => {
    const cluster = new Cluster();
    const { collector, holder } = await heldByAnother(cluster);
    holder.driver.onAll(hangs);
    await cluster.run(holder.db.stop());
    expect(holder.environment.timerCount).toBe(0);
    expect(await cluster.run(collector.db.snapshots())).toHaveLength(1);
    await cluster.advance(timeToLiveMs + marginMs);
    expect(await cluster.run(collector.db.gc({ loopGraceMs: 0 }))).toMatchObject({ expiredSnapshots: 1 });
  });

  it.each([
    ['its root', /^roots\//],
    ['its pin', /^block0$/],
  ])('while a snapshot is taken leaves neither pin nor timer: %s is under way', async (_, key) => {
    const cluster = new Cluster();
    const collector = await cluster.withRows(count);
    const holder = await cluster.start(1);
    const gate = new Gate();
    holder.driver.onPut(key, gate.before);
    const taken = caught(holder.db.snapshot());
    await cluster.run(gate.reached);
    const ended = { is: false };
    const stopped = holder.db.stop().finally(() => {
      ended.is = true;
    });
    await cluster.settle();
    expect(ended.is).toBe(false);
    gate.open();
    await cluster.run(stopped);
    // By then, and not some time later.
    expect((await cluster.block0()).snapshots).toEqual([]);
    expect(holder.environment.timerCount).toBe(0);
    expect(await taken).toMatchObject({ code: 'NOT_STARTED' });
    expect(await cluster.run(collector.db.snapshots())).toEqual([]);
    await replaceAll(cluster, collector);
    await cluster.run(collector.db.gc({ loopGraceMs: 0 }));
    expect(await cluster.garbage()).toMatchObject({ superfluous: [] });
  });
});
