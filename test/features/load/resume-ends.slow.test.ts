/** How a load that can be resumed ends otherwise: another call takes it over, it does not fit, it is forgotten or given up, its rows are refused. */
import { describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { Cluster, Gate, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { refused, requestLost } from '../protocol/scripted-driver.ts';
import { expectLoaded, interrupted, partOf, parts, PartSource, shuffled, small } from './resumed-loads.ts';

const count = 6000;
const failBefore = 5000;
const dayMs = 86_400_000;

/** An interrupted load, and the node that it ran on. */
async function begun(ids = shuffled(count)): Promise<{ cluster: Cluster; node: ClusterNode; source: PartSource }> {
  const cluster = new Cluster();
  const node = await small(cluster, 0);
  return { cluster, node, source: await interrupted(cluster, node, ids, failBefore) };
}

/** Waits at the put of a commit. */
function heldCommit(node: ClusterNode, slot: number): Gate {
  const gate = new Gate();
  node.driver.onPut(new RegExp(`^committed/${slot}$`), gate.before);
  return gate;
}

async function stagedNames(cluster: Cluster): Promise<string[]> {
  return (await cluster.namesIn('staged')).toSorted();
}

describe('two calls with one name', () => {
  it('begin at once: the one that records the load first goes on, and the other is refused', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const [begins, records] = [new Gate(), heldCommit(node, 2)];
    other.driver.onPut(/^staged\//, begins.before);
    const late = other.db.load(parts, new PartSource(shuffled(count)).from, { resume: 'parts' });
    late.catch(() => undefined);
    await cluster.run(Promise.race([begins.reached, late]));
    const first = node.db.load(parts, new PartSource(shuffled(count)).from, { resume: 'parts' });
    await cluster.run(Promise.race([records.reached, first]));
    begins.open();
    const taken = { code: 'LOAD_RESUME', reason: 'taken', load: 'parts', table: 'parts' };
    expect(await cluster.failure(late)).toMatchObject(taken);
    expect(await cluster.run(other.db.snapshots())).toHaveLength(1);
    records.open();
    expect(await cluster.run(first)).toEqual({ rows: count });
    await expectLoaded(cluster, node, count);
  });

  it.each([
    ['while it records a run', 3],
    ['while it commits its rows', 4],
  ])('end the one that began first %s, and nothing of the other is lost', async (_, slot) => {
    const { cluster, node, source } = await begun();
    const other = await small(cluster, 1);
    const gate = heldCommit(node, slot);
    const first = node.db.load(parts, source.from, { resume: 'parts' });
    first.catch(() => undefined);
    await cluster.run(Promise.race([gate.reached, first]));
    const second = other.db.load(parts, source.from, { resume: 'parts' });
    expect(await cluster.run(second)).toEqual({ rows: count });
    gate.open();
    expect(await cluster.failure(first)).toMatchObject({ code: 'LOAD_RESUME', reason: 'taken' });
    await expectLoaded(cluster, other, count);
    await expectLoaded(cluster, node, count);
  });

  it('leave the runs alone that the other has recorded', async () => {
    const { cluster, node, source } = await begun();
    const other = await small(cluster, 1);
    const gate = heldCommit(node, 3);
    const first = node.db.load(parts, source.from, { resume: 'parts' });
    first.catch(() => undefined);
    await cluster.run(Promise.race([gate.reached, first]));
    source.failBefore = count - 1;
    await cluster.failure(other.db.load(parts, source.from, { resume: 'parts' }));
    const staged = await stagedNames(cluster);
    gate.open();
    expect(await cluster.failure(first)).toMatchObject({ code: 'LOAD_RESUME', reason: 'taken' });
    const kept = await stagedNames(cluster);
    expect(kept.length).toBeGreaterThan(0);
    expect(staged).toEqual(expect.arrayContaining(kept));
    source.failBefore = Number.POSITIVE_INFINITY;
    expect(await cluster.run(other.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    await expectLoaded(cluster, other, count);
  });
});

describe('a call that ends while its record is put', () => {
  it.each([
    ['by its signal', 1, false],
    ['by its signal, when it has taken the load over', 2, false],
    ['by a stop', 1, true],
  ])('%s has committed no rows for certain, and what may be recorded stays', async (_, record, stops) => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const source =
      record === 1 ? new PartSource(shuffled(count)) : await interrupted(cluster, node, shuffled(count), failBefore);
    source.failBefore = Number.POSITIVE_INFINITY;
    const gate = new Gate();
    node.driver.onPut(/^committed\//, gate.before);
    const controller = new AbortController();
    const load = node.db.load(parts, source.from, { resume: 'parts', signal: controller.signal });
    const failure = cluster.failure(load);
    await cluster.run(Promise.race([gate.reached, failure]));
    const stopped = stops ? node.db.stop() : controller.abort();
    expect(await failure).toMatchObject({ code: 'ABORTED' });
    gate.open();
    await cluster.run(Promise.resolve(stopped));
    const other = await small(cluster, 1);
    const [unfinished] = await cluster.run(other.db.unfinishedLoads());
    expect(unfinished?.rows).toBeGreaterThan(0);
    expect(await cluster.run(other.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun.at(-1)?.rows).toBe(unfinished?.rows);
    await expectLoaded(cluster, other, count);
  });

  it('because the store gives no answer says so, and what may be recorded stays', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const source = new PartSource(shuffled(count));
    node.driver.onPut(/^committed\//, async (pass, request) => {
      await pass();
      node.driver.onAll(refused);
      return requestLost(pass, request);
    });
    expect(await cluster.failure(node.db.load(parts, source.from, { resume: 'parts' }))).toMatchObject({
      code: 'STORAGE',
      message: expect.stringContaining('No rows were committed') as unknown,
    });
    const other = await small(cluster, 1);
    expect(await cluster.run(other.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun.at(-1)?.rows).toBeGreaterThan(0);
    await expectLoaded(cluster, other, count);
  });
});

describe('a load is not resumed', () => {
  it('into another table, nor with other fields, nor under a name that is too long', async () => {
    const { cluster, node } = await begun();
    const others = { name: 'others', version: 1, fields: { id: { typeId: Types.int32 } }, primaryKey: 'id' } as const;
    node.db.registerSchema(others);
    const wrongTable = await cluster.failure(node.db.load(others, [{ id: 1 }], { resume: 'parts' }));
    expect(wrongTable).toMatchObject({ code: 'LOAD_RESUME', reason: 'table', table: 'others' });
    expect(wrongTable.message).toContain("it is one into table 'parts'");
    const newer = cluster.make(1, { maxMemoryBytes: 1024 * 1024 });
    const fields = { ...parts.fields, size: { typeId: Types.int32, default: 1 } };
    newer.db.registerSchema({ ...parts, version: 2, fields });
    await cluster.run(newer.db.start());
    const wrongSchema = await cluster.failure(newer.db.load('parts', [partOf(1)], { resume: 'parts' }));
    expect(wrongSchema).toMatchObject({ code: 'LOAD_RESUME', reason: 'schema' });
    const long = node.db.load(parts, [partOf(1)], { resume: 'ü'.repeat(101) });
    expect(await cluster.failure(long)).toMatchObject({ code: 'INVALID_OPTION', option: 'resume' });
    expect(await cluster.run(node.db.unfinishedLoads())).toHaveLength(1);
  });

  it.each([
    ['in another order', shuffled(count).toReversed()],
    ['with another row in the middle', shuffled(count).map((id, i) => (i === 1000 ? 90_000 : id))],
    ['with another last row', shuffled(count).map((id, i) => (i === 2999 ? 90_000 : id))],
    ['with too few rows', shuffled(count).slice(0, 1000)],
  ])('from an iterable with other rows before the position: %s', async (_, ids) => {
    const { cluster, node, source } = await begun();
    const error = await cluster.failure(node.db.load(parts, ids.map(partOf), { resume: 'parts' }));
    expect(error).toMatchObject({ code: 'LOAD_RESUME', reason: 'source' });
    expect(await cluster.run(node.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    await expectLoaded(cluster, node, count);
  });

  it('from a function without a name', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const error = await cluster.failure(node.db.load(parts, () => [partOf(1)]));
    expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'source' });
    expect(error.message).toContain('only with option resume');
  });
});

describe('an unfinished load', () => {
  it('is kept from gc, however far the log has gone on', async () => {
    const { cluster, node, source } = await begun();
    const other = await small(cluster, 1);
    const staged = await stagedNames(cluster);
    for (const id of range(0, 140)) await cluster.run(cluster.put(other, [id], 'other'));
    await cluster.collectAll(other);
    await cluster.advance(6 * dayMs);
    await cluster.collectAll(other);
    expect(await stagedNames(cluster)).toEqual(staged);
    expect(await cluster.run(other.db.verify({ deep: true }))).toMatchObject({ ok: true, garbage: { objects: 0 } });
    expect(await cluster.run(other.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun.at(-1)?.rows).toBeGreaterThan(0);
    await expectLoaded(cluster, node, count);
    for (const id of range(0, 80)) await cluster.run(cluster.put(other, [id], 'later'));
    await cluster.run(other.db.checkpoint());
    await cluster.advance(dayMs);
    await cluster.collectAll(other);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
  });

  it('of a process that is killed before anything is recorded leaves a pin for some minutes only', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const stuck = async function* (): AsyncGenerator<ReturnType<typeof partOf>, void, undefined> {
      for (const id of range(0, 2500)) yield await Promise.resolve(partOf(id));
      await new Promise(() => {});
    };
    const loading = node.db.load(parts, stuck(), { resume: 'parts' });
    await cluster.settle();
    await cluster.advance(3_600_000);
    expect(await cluster.run(other.db.snapshots())).toHaveLength(1);
    expect(await cluster.run(other.db.unfinishedLoads())).toEqual([]);
    node.environment.freeze();
    await cluster.advance(3_600_000);
    await cluster.collectAll(other);
    expect(await cluster.run(other.db.snapshots())).toEqual([]);
    expect(loading).toBeInstanceOf(Promise);
  });

  it('is forgotten a week after somebody has worked on it: its rows go, and it begins again', async () => {
    const { cluster, node, source } = await begun();
    await cluster.advance(4 * dayMs);
    source.failBefore = failBefore + 1;
    await cluster.failure(node.db.load(parts, source.from, { resume: 'parts' }));
    source.failBefore = Number.POSITIVE_INFINITY;
    await cluster.advance(6 * dayMs);
    await cluster.collectAll(node);
    const [kept] = await cluster.run(node.db.unfinishedLoads());
    expect(kept?.expiresAt).toBeInstanceOf(Date);
    expect(kept?.takenAt.getTime()).toBe((kept?.startedAt.getTime() ?? 0) + 4 * dayMs);
    await cluster.advance(1.1 * dayMs);
    for (const id of range(0, 140)) await cluster.run(cluster.put(node, [id], 'other'));
    await cluster.collectAll(node);
    expect(await stagedNames(cluster)).toEqual([]);
    const [gone] = await cluster.run(node.db.unfinishedLoads());
    expect(gone).toMatchObject({ name: 'parts', expiresAt: undefined });
    expect(await cluster.run(node.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun.at(-1)).toEqual({ rows: 0, lastKey: undefined });
    await expectLoaded(cluster, node, count);
  });

  it('is given up by any instance, and a call that works on it ends', async () => {
    const { cluster, node, source } = await begun();
    const other = await small(cluster, 1);
    const replica = await cluster.start(2, { role: 'replica' });
    expect(await cluster.run(replica.db.unfinishedLoads())).toHaveLength(1);
    expect(await cluster.failure(replica.db.discardLoad(7 as never))).toMatchObject({ code: 'INVALID_OPTION' });
    expect(await cluster.failure(replica.db.discardLoad('parts'))).toMatchObject({ code: 'READ_ONLY' });
    expect(await cluster.run(other.db.discardLoad('another'))).toBe(false);
    const gate = heldCommit(node, 3);
    const working = node.db.load(parts, source.from, { resume: 'parts' });
    working.catch(() => undefined);
    await cluster.run(Promise.race([gate.reached, working]));
    expect(await cluster.run(other.db.discardLoad('parts'))).toBe(true);
    expect(await cluster.run(other.db.discardLoad('parts'))).toBe(false);
    gate.open();
    expect(await cluster.failure(working)).toMatchObject({ code: 'LOAD_RESUME', reason: 'taken' });
    expect(await stagedNames(cluster)).toEqual([]);
    expect(await cluster.run(other.db.unfinishedLoads())).toEqual([]);
    expect(await cluster.run(other.db.snapshots())).toEqual([]);
    expect(await cluster.run(other.db.query(parts).count())).toBe(0);
    expect(await cluster.run(other.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun.at(-1)?.rows).toBe(0);
    await expectLoaded(cluster, other, count);
  });

  it('whose stored rows are gone fails, and begins again with the next call', async () => {
    const { cluster, node, source } = await begun();
    for (const name of await stagedNames(cluster)) await cluster.remove(name);
    const error = await cluster.failure(node.db.load(parts, source.from, { resume: 'parts' }));
    expect(error).toMatchObject({ code: 'CONTENTION' });
    expect(await cluster.run(node.db.snapshots())).toEqual([]);
    expect(await cluster.run(node.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun.at(-1)?.rows).toBe(0);
    await expectLoaded(cluster, node, count);
  });

  it('is in no snapshot, feed or backup, and begins again where a backup is restored', async () => {
    const { cluster, node, source } = await begun();
    const snapshot = await cluster.run(node.db.snapshot());
    expect(await cluster.run(snapshot.query(parts).count())).toBe(0);
    await cluster.run(snapshot.release());
    const place = new MemoryDriver({ environment: cluster.clock });
    await cluster.run(node.db.clone({ driver: place, prefix: 'db' }));
    const clone = new Cluster(place);
    const copy = await small(clone, 0);
    expect(await clone.run(copy.db.unfinishedLoads())).toMatchObject([{ name: 'parts', expiresAt: undefined }]);
    expect(await clone.run(copy.db.verify({ deep: true }))).toMatchObject({ ok: true });
    expect(await clone.run(copy.db.load(parts, source.from, { resume: 'parts' }))).toEqual({ rows: count });
    expect(source.begun.at(-1)?.rows).toBe(0);
    await expectLoaded(clone, copy, count);
    expect(await cluster.run(node.db.unfinishedLoads())).toHaveLength(1);
  });
});

describe('the rows of a resumed load', () => {
  it('are refused where two of them, or one and a row of the table, agree in a unique index', async () => {
    const { cluster, node } = await begun();
    const rows = shuffled(count).map(partOf);
    const own = [...rows.slice(0, -1), { ...partOf(50_000), code: partOf(shuffled(count)[7] as number).code }];
    const error = await cluster.failure(node.db.load(parts, own, { resume: 'parts' }));
    expect(error).toMatchObject({ code: 'UNIQUE_INDEX', index: 'code', primaryKey: 50_000 });
    expect(await cluster.run(node.db.discardLoad('parts'))).toBe(true);
    await interrupted(cluster, node, shuffled(count), failBefore);
    await cluster.run(
      cluster.flush(node, (batch) => void batch.insert(parts, { ...partOf(70_000), code: partOf(17).code })),
    );
    const other = await cluster.failure(node.db.load(parts, rows, { resume: 'parts' }));
    expect(other).toMatchObject({ code: 'UNIQUE_INDEX', primaryKey: 17, otherKey: 70_000 });
    await cluster.run(cluster.flush(node, (batch) => void batch.delete(parts, 70_000)));
    expect(await cluster.run(node.db.load(parts, rows, { resume: 'parts' }))).toEqual({ rows: count });
    await expectLoaded(cluster, node, count);
  });

  it('are refused where a key comes twice, before and behind the interruption', async () => {
    const { cluster, node } = await begun();
    const rows = shuffled(count).map(partOf);
    const twice = [...rows, rows[5] as ReturnType<typeof partOf>];
    const error = await cluster.failure(node.db.load(parts, twice, { resume: 'parts' }));
    expect(error).toMatchObject({ code: 'DUPLICATE_KEY', primaryKey: rows[5]?.id });
    expect(await cluster.run(node.db.query(parts).count())).toBe(0);
  });
});
