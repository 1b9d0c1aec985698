/** How gc trims the log: merged slots that are older than the retention, by the clock of the store, and only under the floor. */
import { describe, expect, it } from 'vitest';
import { commitName } from '../../../src/format/object-names.ts';
import type { Batch } from '../../../src/index.ts';
import { answerLost, hangs, refused } from '../protocol/scripted-driver.ts';
import { Cluster, Gate, items, range } from './cluster.ts';
import type { ClusterNode } from './cluster.ts';

const minuteMs = 60_000;
const hourMs = 3_600_000;

let written = 0;

/** Each changes its row: one that is there as it is would not be committed. */
async function commits(cluster: Cluster, node: ClusterNode, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await cluster.run(cluster.put(node, [i], `row ${++written}`));
}

async function slots(cluster: Cluster): Promise<number[]> {
  return (await cluster.namesIn('committed')).map((name) => Number(name.split('/')[1]));
}

describe('the log', () => {
  it('is trimmed as far as it is merged, and no further', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await commits(cluster, node, 3);
    await cluster.run(node.db.checkpoint());
    await commits(cluster, node, 2);
    const report = await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    // Blocks and blobs are what the count is of.
    expect(report).toMatchObject({ deletedCount: 0, counts: { commit: 2 } });
    expect(await slots(cluster)).toEqual([3, 4, 5]);
    expect((await cluster.block0()).logFloor).toBe(3);
    expect(await cluster.run((await cluster.start(1)).db.query(items).count())).toBe(3);
  });

  it('is never trimmed past the merged slots, in any mixture of old and young ones', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await commits(cluster, node, 3);
    await cluster.run(node.db.checkpoint());
    await commits(cluster, node, 1);
    await cluster.advance(10 * minuteMs);
    await commits(cluster, node, 1);
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 5 * minuteMs }));
    expect(await slots(cluster)).toEqual([3, 4, 5]);
    expect(await cluster.block0()).toMatchObject({ logFloor: 3, appliedSeq: 3 });
  });

  it('keeps merged slots for an hour, by the clock of the store', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    // Were it asked, it would say that all of it is a year old, or from the future.
    for (const skewMs of [365 * 86_400_000, -365 * 86_400_000]) {
      node.environment.skewMs = skewMs;
      await commits(cluster, node, 2);
      await cluster.advance(hourMs / 2);
      await commits(cluster, node, 2);
      await cluster.run(node.db.checkpoint());
      const { appliedSeq, logFloor } = await cluster.block0();
      await cluster.run(node.db.gc({ loopGraceMs: 0 }));
      expect((await cluster.block0()).logFloor).toBe(logFloor);
      await cluster.advance(hourMs / 2);
      await cluster.run(node.db.gc({ loopGraceMs: 0 }));
      expect((await cluster.block0()).logFloor).toBe(appliedSeq - 2);
      expect(await slots(cluster)).toEqual([appliedSeq - 2, appliedSeq - 1, appliedSeq]);
      await cluster.advance(hourMs / 2);
      await cluster.run(node.db.gc({ loopGraceMs: 0 }));
      expect(await slots(cluster)).toEqual([appliedSeq]);
    }
  });

  it('keeps the slots after a young one: the floor is one number', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    cluster.clock.skewMs = 0;
    await commits(cluster, node, 1);
    // The clock of the store is set back: slot 2 is the youngest, and 3 looks old.
    await cluster.advance(10 * minuteMs);
    await commits(cluster, node, 1);
    cluster.clock.skewMs = -8 * minuteMs;
    await commits(cluster, node, 1);
    cluster.clock.skewMs = 0;
    await cluster.run(node.db.checkpoint());
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 5 * minuteMs }));
    expect(await slots(cluster)).toEqual([1, 2, 3]);
  });

  it('is not touched before the floor is stored', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await commits(cluster, node, 3);
    await cluster.run(node.db.checkpoint());
    await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    node.driver.takeLines();
    node.driver.onPut(/^block0$/, refused, Infinity);
    expect(await cluster.failure(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }))).toMatchObject({ code: 'STORAGE' });
    expect(await slots(cluster)).toEqual([1, 2, 3]);
    node.driver.heal();
    node.driver.takeLines();
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    // Stored, read back, and only then deleted.
    expect(node.driver.takeLines().slice(-4)).toEqual([
      'put block0 written',
      'get block0 unchanged',
      'delete 2',
      'list staged/',
    ]);
    expect(await slots(cluster)).toEqual([3]);
    await commits(cluster, node, 3);
    await cluster.run(node.db.checkpoint());
    await cluster.run(node.db.gc({ loopGraceMs: 0 }));
    node.driver.onPut(/^block0$/, answerLost);
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    expect(await slots(cluster)).toEqual([6]);
  });

  it('keeps the slot at the floor: a put that comes late is refused right before the first slot that counts', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const sleeper = await cluster.start(1);
    await commits(cluster, node, 2);
    await cluster.run(sleeper.db.refresh());
    await commits(cluster, node, 1);
    const gate = new Gate();
    sleeper.driver.onPut(/^committed\/3$/, gate.before);
    const flushed = cluster.put(sleeper, [100], 'late');
    await cluster.run(gate.reached);
    await cluster.run(node.db.checkpoint());
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    expect(await cluster.block0()).toMatchObject({ logFloor: 3, appliedSeq: 3 });
    const kept = await cluster.store.get(`db/${commitName(3)}`);
    sleeper.driver.takeLines();
    gate.open();
    await cluster.run(flushed);
    expect(sleeper.driver.takeLines()).toContain('put committed/3 lost');
    expect(await slots(cluster)).toEqual([3, 4]);
    expect(await cluster.store.get(`db/${commitName(3)}`)).toEqual(kept);
    await cluster.run(node.db.refresh());
    expect(await cluster.run(node.db.query(items).count())).toBe(3);
    // Another run finds nothing to do, and asks no more than a listing.
    await cluster.run(node.db.checkpoint());
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }))).toMatchObject({
      counts: { commit: 1 },
    });
    node.driver.takeLines();
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }))).toMatchObject({
      counts: { commit: 0 },
    });
    expect(node.driver.takeLines().slice(-2)).toEqual(['list committed/', 'list staged/']);
    expect(await slots(cluster)).toEqual([4]);
    expect(await cluster.run(node.db.verify({ deep: true }))).toMatchObject({ garbage: { objects: 0, bytes: 0 } });
  });

  it('loses commits that come under the floor with the next run', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await commits(cluster, node, 3);
    await cluster.run(node.db.checkpoint());
    const zombie = await cluster.store.get(`db/${commitName(2)}`);
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    if (zombie.status === 'found') await cluster.store.put(`db/${commitName(2)}`, zombie.bytes, { if: 'absent' });
    // However young it is.
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0 }))).toMatchObject({ counts: { commit: 1 } });
    expect(await cluster.names()).toEqual(['block0', commitName(3)]);
    expect(await cluster.run((await cluster.start(1)).db.query(items).count())).toBe(3);
  });

  it('is trimmed as usual around such a commit', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    await commits(cluster, node, 3);
    await cluster.run(node.db.checkpoint());
    const zombie = await cluster.store.get(`db/${commitName(2)}`);
    await cluster.run(node.db.gc({ loopGraceMs: 0, logRetentionMs: 0 }));
    await commits(cluster, node, 2);
    await cluster.run(node.db.checkpoint());
    await cluster.advance(2 * hourMs);
    if (zombie.status === 'found') await cluster.store.put(`db/${commitName(2)}`, zombie.bytes, { if: 'absent' });
    expect(await cluster.run(node.db.gc({ loopGraceMs: 0 }))).toMatchObject({ counts: { commit: 3 } });
    expect(await slots(cluster)).toEqual([5]);
  });
});

describe('a node that slept while the log was trimmed', () => {
  it('catches up, and writes on', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const sleeper = await cluster.start(1);
    await commits(cluster, node, 3);
    await cluster.run(sleeper.db.refresh());
    await commits(cluster, node, 20);
    await cluster.collectAll(node);
    await commits(cluster, node, 2);
    expect(await slots(cluster)).toEqual([23, 24, 25]);
    expect(await cluster.run(sleeper.db.query(items).count())).toBe(3);
    await cluster.run(sleeper.db.refresh());
    expect(await cluster.run(sleeper.db.query(items).count())).toBe(20);
    await cluster.run(cluster.put(sleeper, [100], 'own'));
    expect(await slots(cluster)).toEqual([23, 24, 25, 26]);
  });

  it('writes on at once: its first put is at a slot that is long gone', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const sleeper = await cluster.start(1);
    await commits(cluster, node, 20);
    await cluster.collectAll(node);
    const batch = sleeper.db.batch();
    void batch.insert(items, { id: 3, text: 'there already' });
    expect(await cluster.failure(batch.flush())).toMatchObject({ code: 'DUPLICATE_KEY' });
    const late = await cluster.start(2);
    await commits(cluster, node, 20);
    await cluster.collectAll(node);
    await cluster.run(cluster.put(late, [100], 'own'));
    await cluster.run(node.db.refresh());
    expect(await cluster.run(node.db.query(items).count())).toBe(21);
    await cluster.collectAll(node);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('is not waited for: a slow refresh across a trimming is right', async () => {
    const cluster = new Cluster();
    const node = await cluster.start(0);
    const sleeper = await cluster.start(1);
    await commits(cluster, node, 12);
    const gate = new Gate();
    sleeper.driver.onGet(/^committed\/5$/, gate.before);
    const refreshed = sleeper.db.refresh();
    await cluster.run(gate.reached);
    await cluster.collectAll(node);
    gate.open();
    await cluster.run(refreshed);
    expect(await cluster.run(sleeper.db.query(items).count())).toBe(12);
    expect(sleeper.db.stats().log).toMatchObject({ tail: 12, appliedSeq: 12 });
  });
});

describe('a commit whose outcome is unknown when its slot is trimmed', () => {
  /** A flush at slot 3 whose node hears nothing any more from its put on. `lands`: whether the put arrives. */
  async function unknown(lands: boolean): Promise<{
    readonly cluster: Cluster;
    readonly node: ClusterNode;
    readonly other: ClusterNode;
    readonly batch: Batch;
  }> {
    const cluster = new Cluster();
    const other = await cluster.start(0);
    await commits(cluster, other, 2);
    const node = await cluster.start(1);
    const batch = node.db.batch();
    void batch.insert(items, { id: 50, text: 'unknown' });
    node.driver.onPut(/^committed\/3$/, lands ? answerLost : hangs);
    node.driver.onAll(hangs);
    expect(await cluster.failure(batch.flush())).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN', slot: 3 });
    return { cluster, node, other, batch };
  }

  async function mergedAndTrimmed(cluster: Cluster, other: ClusterNode, count: number): Promise<void> {
    for (const id of range(100, 100 + count)) await cluster.run(cluster.put(other, [id], 'other'));
    await cluster.collectAll(other);
    expect(await slots(cluster)).toHaveLength(1);
  }

  async function texts(cluster: Cluster, { db }: ClusterNode): Promise<(string | null)[]> {
    await cluster.run(db.refresh());
    const rows = await cluster.run(db.query(items).where('id', '=', 50).execute());
    return rows.map(({ text }) => text);
  }

  it('was applied: the list of applied commits says so, and flushing again applies nothing twice', async () => {
    const { cluster, node, other, batch } = await unknown(true);
    await mergedAndTrimmed(cluster, other, 5);
    node.driver.heal();
    await cluster.run(batch.flush());
    expect(batch.size).toBe(0);
    // The same bytes were put at the same slot again, where they decide nothing.
    const { logFloor } = await cluster.block0();
    expect(await slots(cluster)).toEqual([3, logFloor]);
    expect(await texts(cluster, other)).toEqual(['unknown']);
    await cluster.collectAll(other);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    expect(await texts(cluster, other)).toEqual(['unknown']);
  });

  it('was not: the list says so, and flushing again commits it', async () => {
    const { cluster, node, other, batch } = await unknown(false);
    await mergedAndTrimmed(cluster, other, 5);
    node.driver.heal();
    expect(await texts(cluster, other)).toEqual([]);
    await cluster.run(batch.flush());
    expect(await texts(cluster, other)).toEqual(['unknown']);
    await cluster.collectAll(other);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it.each([true, false])('stays unknown where the list does not reach back: applied %s', async (lands) => {
    const { cluster, node, other, batch } = await unknown(lands);
    await mergedAndTrimmed(cluster, other, 140);
    node.driver.heal();
    for (let i = 0; i < 2; i++) {
      expect(await cluster.failure(batch.flush())).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN', slot: 3 });
    }
    // At most once, whatever is tried.
    expect(await texts(cluster, other)).toEqual(lands ? ['unknown'] : []);
    batch.clear();
    await cluster.run(cluster.put(node, [51], 'next'));
  });
});
