/** `db.load()`: all rows of a source in one commit, whatever their order and number, or none of them. */
import { describe, expect, it } from 'vitest';
import type { CommitOutcomeUnknownError } from '../../../src/base/errors.ts';
import { Types } from '../../../src/format/types.ts';
import { Cluster, Gate, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';

const mebibyte = 1024 * 1024;

const people = {
  name: 'people',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    email: { typeId: Types.varchar },
    city: { typeId: Types.varchar, default: 'Rome' },
  },
  primaryKey: 'id',
  indexes: [{ fields: ['email'], unique: true }, 'city'],
} as const;

interface Person {
  readonly id: number;
  readonly email: string | null;
}

/** Numbers from 0 to before `count`, in no order. */
function shuffled(count: number): number[] {
  return range(0, count).map((i) => (i * 7919) % count);
}

function rowOf(id: number): { id: number; text: string; group: number } {
  return { id, text: `loaded ${id}`, group: id % 10 };
}

/** A node with little memory, so that rows are sorted in many runs. */
async function small(cluster: Cluster, nodeId: number): Promise<ClusterNode> {
  const node = cluster.make(nodeId, { maxMemoryBytes: mebibyte });
  node.db.registerSchema(people);
  await cluster.run(node.db.start());
  return node;
}

async function* later<T>(rows: readonly T[]): AsyncGenerator<T, void, undefined> {
  for (const row of rows) yield await Promise.resolve(row);
}

async function countOf(cluster: Cluster, { db }: ClusterNode, table: string): Promise<number> {
  await cluster.run(db.refresh());
  return cluster.run(db.query(table).count());
}

async function expectSound(cluster: Cluster, node: ClusterNode): Promise<void> {
  await cluster.run(node.db.checkpoint());
  expect(await cluster.run(node.db.verify({ deep: true }))).toMatchObject({ ok: true });
}

describe('db.load()', () => {
  it.each([
    ['in order', (count: number) => range(0, count)],
    ['in no order', shuffled],
    ['backwards', (count: number) => range(0, count).toReversed()],
  ])('loads rows that come %s', async (_, idsOf) => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const count = 12_007;
    const told: number[] = [];
    const onProgress = ({ rows }: { rows: number }): void => void told.push(rows);
    const report = await cluster.run(node.db.load(items, idsOf(count).map(rowOf), { onProgress }));
    expect(report).toEqual({ rows: count });
    expect(told.length).toBeGreaterThan(3);
    expect(told.at(-1)).toBe(count);
    for (const each of [node, other]) {
      expect(await countOf(cluster, each, 'items')).toBe(count);
      expect(await cluster.run(each.db.get(items, 4711))).toEqual({ ...rowOf(4711), file: null });
      expect(await cluster.run(each.db.query(items).where('group', '=', 3).count())).toBe(1201);
    }
    await expectSound(cluster, node);
    expect(await countOf(cluster, other, 'items')).toBe(count);
    expect(await cluster.run(other.db.query(items).where('group', '=', 3).count())).toBe(1201);
  });

  it('takes async iterables, and a source without rows', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    expect(await cluster.run(node.db.load(items, later(shuffled(500).map(rowOf))))).toEqual({ rows: 500 });
    expect(await cluster.run(node.db.load(items, later([])))).toEqual({ rows: 0 });
    expect(await cluster.run(node.db.load(items, new Set([rowOf(900)])))).toEqual({ rows: 1 });
    expect(await countOf(cluster, node, 'items')).toBe(501);
  });

  it('stages rows that come in order as they come, some eight mebibytes in an object', async () => {
    const cluster = new Cluster();
    const node = cluster.make(0, { blockSizeBytes: 65_536 });
    await cluster.run(node.db.start());
    node.driver.takeLines();
    const wide = (id: number): ReturnType<typeof rowOf> => ({ ...rowOf(id), text: `${id}`.repeat(1000) });
    await cluster.run(node.db.load(items, range(1000, 9000).map(wide)));
    const committed = node.driver.takeLines().findIndex((line) => line.startsWith('put committed/1'));
    expect(committed).toBeGreaterThan(0);
    expect(committed).toBeLessThan(16);
    expect((await cluster.namesIn('staged')).length).toBe(4);
  });

  it('takes arrays of rows, among rows and without any, and asks for the next array only when all its rows are read', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const ids = shuffled(9001);
    let open = 0;
    const reused: { id: number; text: string; group: number }[] = [];
    async function* arrays(): AsyncGenerator<typeof reused, void, undefined> {
      for (let from = 0; from < 9000; from += 3000) {
        expect(open).toBe(0);
        reused.length = 0;
        for (const id of ids.slice(from, from + 3000)) {
          reused.push({
            get id(): number {
              open--;
              return id;
            },
            text: `loaded ${id}`,
            group: id % 10,
          });
        }
        open = reused.length;
        yield await Promise.resolve(reused);
        yield [];
      }
    }
    const told: number[] = [];
    const onProgress = ({ rows }: { rows: number }): void => void told.push(rows);
    expect(await cluster.run(node.db.load(items, arrays(), { onProgress }))).toEqual({ rows: 9000 });
    expect(told.at(-1)).toBe(9000);
    const last = [[rowOf(ids[9000] as number), rowOf(20_001)], rowOf(20_002), [], [rowOf(20_003)]];
    expect(await cluster.run(node.db.load(items, last))).toEqual({ rows: 4 });
    expect(await countOf(cluster, node, 'items')).toBe(9004);
    await expectSound(cluster, node);
    await expect(cluster.run(node.db.load(items, [[[rowOf(1)]]] as never))).rejects.toMatchObject({ code: 'ENCODE' });
  });

  it('is one commit in the feed of changes, and conflicts with a transaction that has read the table', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const feed = other.db.changes({ after: 0 });
    let attempts = 0;
    const counted = other.db.transaction(async (tx) => {
      const count = await tx.query(items).count();
      if (++attempts === 1) await node.db.load(items, shuffled(3000).map(rowOf));
      await tx.insert(items, { id: 10_000, text: `${count} rows`, group: 1 });
    });
    await cluster.run(counted);
    expect(attempts).toBe(2);
    expect(await cluster.run(node.db.refresh().then(() => node.db.get(items, 10_000)))).toMatchObject({
      text: '3000 rows',
    });
    const { value } = await cluster.run(feed[Symbol.asyncIterator]().next());
    const keys: unknown[] = [];
    const read = async (): Promise<void> => {
      for await (const { key, operation } of value ?? []) keys.push(operation === 'upsert' ? key : undefined);
    };
    await cluster.run(read());
    expect(keys).toEqual(range(0, 3000));
  });

  it('gives defaults, and refuses rows that do not fit, as batches do', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    await cluster.run(node.db.load(people, [{ id: 1, email: 'a' }]));
    expect(await cluster.run(node.db.get(people, 1))).toEqual({ id: 1, email: 'a', city: 'Rome' });
    const wrong = [...range(10, 6000).map((id) => ({ id })), { id: 'x' }] as unknown as Person[];
    expect(await cluster.failure(node.db.load(people, wrong))).toMatchObject({ code: 'ENCODE', field: 'id' });
    expect(await cluster.failure(node.db.load(people, 7 as never))).toMatchObject({ code: 'INVALID_OPTION' });
    expect(await countOf(cluster, node, 'people')).toBe(1);
    expect(await cluster.namesIn('staged')).toEqual([]);
  });

  it('adds to a table with rows, merged and not', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const odd = range(0, 4000).map((i) => 2 * i + 1);
    await cluster.run(node.db.load(items, odd.map(rowOf)));
    await cluster.run(node.db.checkpoint());
    await cluster.run(cluster.put(node, [8000, 8002], 'put'));
    const even = shuffled(4000).map((i) => 2 * i);
    expect(await cluster.run(node.db.load(items, even.map(rowOf)))).toEqual({ rows: 4000 });
    expect(await countOf(cluster, node, 'items')).toBe(8002);
    await expectSound(cluster, node);
  });

  it.each([
    ['twice in the source', shuffled(9000).concat(4711), 4711],
    ['twice in a row', [1, 2, 2, 3], 2],
    ['in the table, merged', shuffled(9000).map((id) => id + 100), 105],
    ['in the table, not merged', [200_000, ...range(300_000, 300_500)], 200_000],
    ['in the table, one of a few', [50, 105, 200], 105],
  ])('refuses a key that is there %s', async (place, ids, found) => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const there = found === 105 ? range(105, 106).concat(range(20_000, 24_000)) : [];
    await cluster.run(node.db.load(items, there.map(rowOf)));
    await cluster.run(node.db.checkpoint());
    if (found === 200_000) await cluster.run(cluster.put(node, [found], 'put'));
    const before = await countOf(cluster, node, 'items');
    const error = await cluster.failure(node.db.load(items, ids.map(rowOf)));
    expect(error).toMatchObject({ code: 'DUPLICATE_KEY', table: 'items', primaryKey: found });
    const isRepeated = place.startsWith('twice');
    expect((error as Error).message).toBe(
      isRepeated
        ? `The load has two rows with primary key ${found} of table 'items'. Nothing was written.`
        : `Table 'items' has a row with primary key ${found} already. Nothing was written.`,
    );
    expect(await countOf(cluster, node, 'items')).toBe(before);
    await cluster.collectAll(node);
    expect((await cluster.namesIn('staged')).length).toBeLessThan(2);
  });

  it('refuses values of a unique index that two rows have', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const person = (id: number): Person => ({ id, email: id % 5 === 0 ? null : `${id}@x` });
    await cluster.run(node.db.load(people, shuffled(6000).map(person)));
    await cluster.run(node.db.checkpoint());
    const more = shuffled(6000).map((id) => person(id + 6000));
    const own = [...more, { id: 20_000, email: '7001@x' }];
    const keys = { primaryKey: 20_000, otherKey: 7001 };
    const both = { code: 'UNIQUE_INDEX', table: 'people', index: 'email', value: '7001@x', ...keys };
    expect(await cluster.failure(node.db.load(people, own))).toMatchObject(both);
    const stored = [...more, { id: 20_000, email: '17@x' }];
    const other = { value: '17@x', primaryKey: 20_000, otherKey: 17 };
    expect(await cluster.failure(node.db.load(people, stored))).toMatchObject({ code: 'UNIQUE_INDEX', ...other });
    expect(await cluster.run(node.db.load(people, more))).toEqual({ rows: 6000 });
    expect(await cluster.run(node.db.query(people).where('email', '=', '7001@x').execute())).toHaveLength(1);
    await expectSound(cluster, node);
  });
});

/** Holds the put of a load's commit until the gate is opened. */
async function heldLoad(cluster: Cluster, node: ClusterNode, work: Promise<unknown>): Promise<Gate> {
  const gate = new Gate();
  node.driver.onPut(/^committed\//, gate.before);
  work.catch(() => undefined);
  await cluster.run(Promise.race([gate.reached, work]));
  return gate;
}

describe('a load while others write', () => {
  it('loses its slot, and commits behind the others without staging its rows again', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const loading = node.db.load(items, shuffled(5000).map(rowOf));
    const gate = await heldLoad(cluster, node, loading);
    const staged = await cluster.namesIn('staged');
    for (const id of range(6000, 6010)) await cluster.run(cluster.put(other, [id], 'other'));
    await cluster.run(other.db.checkpoint());
    expect(await countOf(cluster, other, 'items')).toBe(10);
    gate.open();
    expect(await cluster.run(loading)).toEqual({ rows: 5000 });
    expect(await cluster.namesIn('staged')).toEqual(staged);
    for (const each of [node, other]) expect(await countOf(cluster, each, 'items')).toBe(5010);
    await expectSound(cluster, node);
  });

  it.each([
    ['merged', true],
    ['not merged', false],
  ])('refuses a key that another instance has committed meanwhile, %s', async (_, isMerged) => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    await cluster.run(cluster.put(other, range(10_000, 10_100), 'there'));
    await cluster.run(other.db.checkpoint());
    const loading = node.db.load(items, shuffled(5000).map(rowOf));
    const gate = await heldLoad(cluster, node, loading);
    await cluster.run(cluster.put(other, [4711], 'first'));
    if (isMerged) await cluster.run(other.db.checkpoint());
    gate.open();
    expect(await cluster.failure(loading)).toMatchObject({ code: 'DUPLICATE_KEY', primaryKey: 4711 });
    expect(await countOf(cluster, node, 'items')).toBe(101);
    expect(await cluster.run(node.db.get(items, 4711))).toMatchObject({ text: 'first 4711' });
    expect(await cluster.namesIn('staged')).toEqual([]);
  });

  it.each([
    ['merged', true],
    ['not merged', false],
  ])('refuses a unique value that another instance has committed meanwhile, %s', async (_, isMerged) => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const rows = shuffled(3000).map((id) => ({ id, email: `${id}@x` }));
    const loading = node.db.load(people, rows);
    const gate = await heldLoad(cluster, node, loading);
    await cluster.run(cluster.flush(other, (batch) => void batch.insert(people, { id: 9000, email: '1234@x' })));
    if (isMerged) await cluster.run(other.db.checkpoint());
    gate.open();
    const conflict = { value: '1234@x', primaryKey: 1234, otherKey: 9000 };
    expect(await cluster.failure(loading)).toMatchObject({ code: 'UNIQUE_INDEX', ...conflict });
    expect(await countOf(cluster, node, 'people')).toBe(1);
    // The other way round: the load came first.
    expect(
      await cluster.run(
        node.db.load(
          people,
          rows.filter(({ id }) => id !== 1234),
        ),
      ),
    ).toEqual({ rows: 2999 });
    const late = cluster.flush(other, (batch) => void batch.insert(people, { id: 9001, email: '77@x' }));
    expect(await cluster.failure(late)).toMatchObject({ code: 'UNIQUE_INDEX', otherKey: 77 });
    await expectSound(cluster, node);
  });

  it.each([
    ['its key', 'DUPLICATE_KEY'],
    ['its value', 'UNIQUE_INDEX'],
  ])('is refused where a row that was gone comes back with %s, and is merged', async (what, code) => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const byKey = what === 'its key';
    const write = async (change: (batch: ReturnType<typeof other.db.batch>) => Promise<unknown>): Promise<void> => {
      const batch = other.db.batch();
      await cluster.run(change(batch));
      await cluster.run(batch.flush());
    };
    for (const id of [1, 2, 3]) await write((batch) => batch.insert(people, { id, email: `${id}@example.org` }));
    await cluster.run(other.db.checkpoint());
    // The state that the load is checked on hides the row by a commit that is not merged.
    await write((batch) => (byKey ? batch.delete(people, 2) : batch.update(people, { id: 2, email: 'elsewhere' })));
    const row = { id: byKey ? 2 : 50, email: byKey ? 'loaded' : '2@example.org' };
    const loading = node.db.load(people, [row]);
    const gate = await heldLoad(cluster, node, loading);
    await write((batch) => {
      const email = '2@example.org';
      return byKey ? batch.insert(people, { id: 2, email }) : batch.update(people, { id: 2, email });
    });
    await cluster.run(other.db.checkpoint());
    gate.open();
    expect(await cluster.failure(loading)).toMatchObject({ code });
    expect(await countOf(cluster, node, 'people')).toBe(3);
    expect(await cluster.run(node.db.get(people, 2))).toMatchObject({ email: '2@example.org' });
    await expectSound(cluster, node);
  });

  it('is not refused by a unique index that is dropped while it waits', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const plain = { ...people, indexes: ['city'] } as const;
    await cluster.run(node.db.load(people, [{ id: 1, email: 'one' }]));
    await cluster.run(node.db.checkpoint());
    for (const { db } of [node, other]) await cluster.run(db.stop());
    const [again, rival] = [cluster.make(0), cluster.make(1)];
    for (const { db } of [again, rival]) {
      db.registerSchema(plain);
      await cluster.run(db.start());
    }
    const loading = again.db.load(plain, [{ id: 1000, email: 'same' }]);
    const gate = await heldLoad(cluster, again, loading);
    await cluster.run(rival.db.dropIndex('people', 'email'));
    await cluster.run(rival.db.load(plain, [{ id: 2, email: 'other' }]));
    const second = new Gate();
    again.driver.onPut(/^committed\//, second.before);
    gate.open();
    await cluster.run(Promise.race([second.reached, loading]));
    await cluster.run(rival.db.load(plain, [{ id: 3, email: 'same' }]));
    second.open();
    expect(await cluster.run(loading)).toEqual({ rows: 1 });
    await expectSound(cluster, again);
  });

  it('stages its rows again if the log has passed their names', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const loading = node.db.load(items, shuffled(3000).map(rowOf));
    const gate = await heldLoad(cluster, node, loading);
    const staged = await cluster.namesIn('staged');
    for (const id of range(6000, 6100)) await cluster.run(cluster.put(other, [id], 'other'));
    await cluster.collectAll(other);
    expect(await cluster.namesIn('staged')).toEqual(staged);
    gate.open();
    expect(await cluster.run(loading)).toEqual({ rows: 3000 });
    const again = await cluster.namesIn('staged');
    expect(again).toHaveLength(1);
    expect(again).not.toEqual(staged);
    for (const each of [node, other]) expect(await countOf(cluster, each, 'items')).toBe(3100);
    await expectSound(cluster, node);
    expect(await cluster.run(node.db.snapshots())).toEqual([]);
  });

  it('checks all of its rows again if blocks of the state that it has checked are collected', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    await cluster.run(cluster.put(other, range(0, 2000), 'first'));
    await cluster.run(other.db.checkpoint());
    const few = range(0, 100).map((id) => rowOf(10_000 + 10 * id));
    const loading = node.db.load(items, few);
    const gate = await heldLoad(cluster, node, loading);
    await cluster.run(cluster.put(other, range(0, 2000).concat(20_000), 'second'));
    await cluster.collectAll(other);
    gate.open();
    expect(await cluster.run(loading)).toEqual({ rows: 100 });
    expect(await countOf(cluster, other, 'items')).toBe(2101);
    await expectSound(cluster, node);
  });

  it('is one of two loads at once: both come in, or one is refused', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const [a, b] = [shuffled(3000), shuffled(3000).map((id) => id + 3000)];
    const both = Promise.all([node.db.load(items, a.map(rowOf)), other.db.load(items, b.map(rowOf))]);
    expect(await cluster.run(both)).toEqual([{ rows: 3000 }, { rows: 3000 }]);
    const again = [5999, 6000, 6001].map(rowOf);
    const more = Promise.allSettled([
      node.db.load(items, range(6000, 8000).map(rowOf)),
      other.db.load(items, again.slice(1)),
    ]);
    const results = await cluster.run(more);
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    await expectSound(cluster, node);
  });
});

describe('a load that ends early', () => {
  it('is given up by its signal, and leaves nothing', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const controller = new AbortController();
    let closed = false;
    const endless = async function* (): AsyncGenerator<ReturnType<typeof rowOf>, void, undefined> {
      try {
        for (let id = 0; ; id++) {
          if (id === 8000) controller.abort();
          yield rowOf(id);
        }
      } finally {
        closed = true;
      }
    };
    const error = await cluster.failure(node.db.load(items, endless(), { signal: controller.signal }));
    expect(error).toMatchObject({ code: 'ABORTED' });
    await cluster.settle();
    expect(closed).toBe(true);
    expect(await countOf(cluster, node, 'items')).toBe(0);
    expect(await cluster.namesIn('staged')).toEqual([]);
  });

  it('rejects with the error of its source, and when the database is stopped', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const broken = async function* (): AsyncGenerator<ReturnType<typeof rowOf>, void, undefined> {
      for (const id of range(0, 7000)) yield await Promise.resolve(rowOf(id));
      throw new RangeError('the file ends here');
    };
    expect(await cluster.failure(node.db.load(items, broken()))).toMatchObject({ message: 'the file ends here' });
    expect(await cluster.namesIn('staged')).toEqual([]);
    const stuck = node.db.load(items, { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) });
    const failing = cluster.failure(stuck);
    await cluster.run(node.db.stop());
    expect(await failing).toMatchObject({ code: 'ABORTED' });
  });

  it('by its signal after its commit was put has an unknown outcome, and keeps its rows', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const controller = new AbortController();
    const { signal } = controller;
    const loading = node.db.load(items, shuffled(5000).map(rowOf), { signal });
    const gate = await heldLoad(cluster, node, loading);
    controller.abort();
    const error = await cluster.failure(loading);
    expect(error).toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
    gate.open();
    expect(await cluster.run(node.db.resolveCommit(error as CommitOutcomeUnknownError))).toBe(true);
    for (const each of [node, other]) expect(await countOf(cluster, each, 'items')).toBe(5000);
    await expectSound(cluster, other);
  });

  it('by a kill leaves rows that nobody sees, and that gc deletes once the log has gone on', async () => {
    const cluster = new Cluster();
    const [node, other] = [await small(cluster, 0), await small(cluster, 1)];
    const gate = await heldLoad(cluster, node, node.db.load(items, shuffled(5000).map(rowOf)));
    node.environment.freeze();
    expect((await cluster.namesIn('staged')).length).toBeGreaterThan(0);
    expect(await countOf(cluster, other, 'items')).toBe(0);
    for (const id of range(0, 70)) await cluster.run(cluster.put(other, [id], 'other'));
    await cluster.collectAll(other);
    // The log is still kept for the load.
    expect((await cluster.namesIn('staged')).length).toBeGreaterThan(0);
    await cluster.advance(3_600_000);
    await cluster.collectAll(other);
    expect(await cluster.namesIn('staged')).toEqual([]);
    expect(await cluster.garbage()).toEqual({ missing: [], superfluous: [] });
    expect(gate).toBeDefined();
    expect(await countOf(cluster, other, 'items')).toBe(70);
  });
});

describe('a load is refused', () => {
  it('for blobs, triggers, replicas, tables that are not registered, and tables that are migrated', async () => {
    const cluster = new Cluster();
    const node = await small(cluster, 0);
    const blob = node.db.load(items, [{ id: 1, file: node.db.Blob('bytes') }]);
    expect(await cluster.failure(blob)).toMatchObject({ code: 'ENCODE', field: 'file' });
    expect(await cluster.failure(node.db.load('others', []))).toMatchObject({ code: 'SCHEMA_NOT_FOUND' });
    node.db.registerTrigger(people, 'insert', () => undefined);
    expect(await cluster.failure(node.db.load(people, []))).toMatchObject({ code: 'NOT_SUPPORTED' });
    const replica = await cluster.start(2, { role: 'replica' });
    expect(await cluster.failure(replica.db.load(items, []))).toMatchObject({ code: 'READ_ONLY' });
    await cluster.run(cluster.put(node, range(0, 10), 'first'));
    const newer = cluster.make(3);
    newer.db.registerSchema({ ...items, version: 2 });
    await cluster.run(newer.db.start());
    await cluster.run(newer.db.setTargetSchemaVersion(items, 2));
    for (const each of [node, newer]) {
      expect(await cluster.failure(each.db.load(items, [rowOf(100)]))).toMatchObject({ code: 'MIGRATION_ACTIVE' });
    }
    expect(await cluster.namesIn('staged')).toEqual([]);
  });
});
