/** query.watch(): when results come, what they cost, how loops end, and what happens over stops, failures and migrations. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { LiveResults, LiveRows } from '../../../src/index.ts';
import { Types } from '../../../src/format/types.ts';
import { Cluster, Gate, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { requestLost } from '../protocol/scripted-driver.ts';

const second = 1000;
const hour = 3600 * second;
const quick = { graceMs: 0, logRetentionMs: 0, loopGraceMs: 0 };

let cluster: Cluster;
beforeEach(() => {
  cluster = new Cluster();
});

interface Item {
  readonly id: number;
  readonly text: string | null;
}

/** The results of a loop that always waits for the next one. */
class Seen {
  readonly results: LiveRows<Item>[] = [];
  error: unknown;
  readonly #stop: () => void;

  constructor(results: LiveResults<LiveRows<Item>>) {
    this.#stop = results.subscribe(
      (result) => this.results.push(result),
      (error) => {
        this.error = error;
      },
    );
  }

  get ids(): number[][] {
    return this.results.map(({ rows }) => rows.map(({ id }) => id));
  }

  stop(): void {
    this.#stop();
  }
}

async function watched(node: ClusterNode, group: number): Promise<Seen> {
  const seen = new Seen(node.db.query(items).where('group', '=', group).watch());
  await cluster.settle();
  return seen;
}

async function put(node: ClusterNode, id: number, group: number, text = 'new'): Promise<void> {
  await cluster.run(cluster.flush(node, (batch) => void batch.upsert(items, { id, group, text })));
  await cluster.settle();
}

describe('the results of a watched query', () => {
  it('come at once, and again with each change, with the differences', async () => {
    const node = await cluster.withRows(20);
    const seen = await watched(node, 3);
    await put(node, 23, 3, 'x');
    await put(node, 13, 3, 'y');
    await put(node, 3, 4);
    const [first, added, changed, moved] = seen.results;
    expect(seen.ids).toEqual([
      [3, 13],
      [3, 13, 23],
      [3, 13, 23],
      [13, 23],
    ]);
    expect(first?.added).toEqual(first?.rows);
    expect(added).toMatchObject({ added: [{ id: 23, text: 'x' }], changed: [], removed: [] });
    expect(changed).toMatchObject({ added: [], changed: [{ id: 13, text: 'y' }], removed: [] });
    expect(moved).toMatchObject({ added: [], changed: [], removed: [{ id: 3, text: 'first 3' }] });
    expect(moved?.position).toBe(node.db.position);
    // Rows that did not change are the same objects.
    expect(moved?.rows[1]).toBe(added?.rows[2]);
    expect(changed?.rows[0]).toBe(first?.rows[0]);
  });

  it('do not come for commits that leave them as they are, which cost no read', async () => {
    const node = await cluster.withRows(200);
    const seen = await watched(node, 3);
    const limited = new Seen(node.db.query(items).where('group', '=', 5).orderBy('id').limit(3).watch());
    const counted: number[] = [];
    const stop = node.db
      .query(items)
      .where('group', '=', 7)
      .watchCount()
      .subscribe(({ value }) => counted.push(value));
    await cluster.settle();
    await put(node, 1000, 4);
    await put(node, 1003, 3);
    // Beyond the last of the three rows.
    await put(node, 1005, 5);
    // A row of the group that the loop shows, written as it was.
    await put(node, 3, 3, 'first 3');
    expect(seen.ids.map(({ length }) => length)).toEqual([20, 21]);
    expect(limited.ids).toEqual([[5, 15, 25]]);
    expect(counted).toEqual([20]);
    stop();
    node.driver.takeLines();
    const { get } = node.db.stats().requests;
    await cluster.run(cluster.flush(node, (batch) => void batch.upsert(items, { id: 1004, group: 4, text: 'z' })));
    await cluster.settle();
    expect(node.db.stats().requests.get - get).toBe(0);
    seen.stop();
    limited.stop();
  });

  it('are not looked for after a commit of a row beyond the limit', async () => {
    const node = await cluster.withRows(100);
    let calls = 0;
    node.db.registerFunction('counted', () => {
      calls++;
      return true;
    });
    const isCounted = node.db.query(items).where('counted' as 'id', '=', true as never);
    const seen = new Seen(isCounted.orderBy('id').limit(3).watch());
    await cluster.settle();
    calls = 0;
    await put(node, 1000, 1);
    // For the row of the commit.
    expect(calls).toBe(1);
    await put(node, -1, 1);
    expect(seen.ids).toEqual([
      [0, 1, 2],
      [-1, 0, 1],
    ]);
    calls = 0;
    await cluster.run(node.db.checkpoint());
    await cluster.settle();
    expect([calls, seen.ids.length]).toEqual([0, 2]);
    seen.stop();
  });

  it('take a changed row over in place: one look at it for each query, and one object for all of them', async () => {
    const node = await cluster.withRows(400);
    let calls = 0;
    node.db.registerFunction('counted', () => {
      calls++;
      return true;
    });
    const isCounted = node.db
      .query(items)
      .where('group', '=', 3)
      .where('counted' as 'id', '=', true as never);
    const [all, newest] = [isCounted, isCounted.orderBy('id', 'desc').limit(5)];
    const watches = range(0, 20).map((i) => new Seen((i % 2 === 0 ? all : newest).watch()));
    const others = range(0, 20).map(() => new Seen(node.db.query(items).where('group', '=', 4).watch()));
    await cluster.settle();
    calls = 0;
    node.driver.takeLines();
    await put(node, 393, 3, 'changed');
    expect(calls).toBe(20);
    expect(node.driver.takeLines().filter((line) => /data|indexes/.test(line))).toEqual([]);
    const shown = watches.map(({ results }) => results.at(-1)?.changed);
    expect(shown[0]).toMatchObject([{ id: 393, text: 'changed' }]);
    expect(new Set(shown.map((changed) => changed?.[0])).size).toBe(1);
    expect(others.every(({ results }) => results.length === 1)).toBe(true);
    // It leaves the last five, so that another row comes in: these queries are run again, and the others are not.
    calls = 0;
    await put(node, 393, 4, 'gone');
    expect(watches.map(({ results }) => results.at(-1)?.removed.length)).toEqual(Array.from({ length: 20 }, () => 1));
    expect(watches[1]?.ids.at(-1)).toEqual([383, 373, 363, 353, 343]);
    expect(others[0]?.ids.at(-1)).toContain(393);
    for (const seen of [...watches, ...others]) seen.stop();
  });

  it('have the commits that come while the query runs', async () => {
    await cluster.withRows(400);
    const node = await cluster.start(1);
    const gate = new Gate();
    node.driver.onGet(/^(data|indexes)/, gate.before);
    const seen = new Seen(node.db.query(items).where('group', '=', 3).where('id', '<', 20).watch());
    await cluster.run(gate.reached);
    await cluster.run(cluster.flush(node, (batch) => void batch.upsert(items, { id: 4, group: 3, text: 'late' })));
    gate.open();
    await cluster.settle();
    expect(seen.ids.at(-1)).toEqual([3, 4, 13]);
    seen.stop();
  });

  it('have the commits that were merged and collected before the instance looked', async () => {
    const node = await cluster.withRows(20);
    const replica = await cluster.start(2, { role: 'replica', polling: 'interval', writeForwardInterval: 60 * second });
    const seen = await watched(replica, 3);
    for (const id of [103, 203]) {
      await put(node, id, 3);
      await cluster.run(node.db.checkpoint());
    }
    await cluster.run(node.db.gc(quick));
    await cluster.advance(61 * second);
    expect(seen.ids).toEqual([
      [3, 13],
      [3, 13, 103, 203],
    ]);
    seen.stop();
  });

  it('are those of the newest state for a loop that takes long', async () => {
    const node = await cluster.withRows(10);
    const loop = node.db.query(items).where('group', '=', 3).watch()[Symbol.asyncIterator]();
    const next = async (): Promise<LiveRows<object>> => (await cluster.run(loop.next())).value as LiveRows<object>;
    expect((await next()).rows).toHaveLength(1);
    for (const id of range(0, 5)) await put(node, 100 + id, 3);
    const { rows, added, position } = await next();
    expect([rows.length, added.length, position]).toEqual([6, 5, node.db.position]);
    await put(node, 100, 4);
    await put(node, 100, 3, 'new');
    await put(node, 105, 3);
    // The row that left came back as it was.
    expect(await next()).toMatchObject({ added: [{ id: 105 }], changed: [], removed: [] });
    await loop.return?.();
    expect(await cluster.run(loop.next())).toEqual({ done: true, value: undefined });
  });

  it.each(['interval', 'adaptive', 'onDemand'] as const)(
    'show the commits of others within the interval, with polling %s',
    async (polling) => {
      const writeForwardInterval = 2 * second;
      const node = await cluster.withRows(10);
      const other = await cluster.start(1, { polling, writeForwardInterval });
      const replica = await cluster.start(2, { role: 'replica', polling, writeForwardInterval });
      // Nobody has asked for long.
      await cluster.advance(hour);
      const both = [await watched(other, 3), await watched(replica, 3)];
      await cluster.advance(hour);
      await put(node, 103, 3);
      await cluster.advance(writeForwardInterval + second);
      for (const seen of both) expect(seen.ids).toEqual([[3], [3, 103]]);
      for (const seen of both) seen.stop();
    },
  );

  it('go on after a stop and a start, with what changed meanwhile', async () => {
    const node = await cluster.withRows(10);
    const other = await cluster.start(1);
    const seen = await watched(node, 3);
    await cluster.run(node.db.stop());
    await put(other, 103, 3);
    expect(seen.ids).toEqual([[3]]);
    await cluster.run(node.db.start());
    await cluster.settle();
    expect(seen.ids).toEqual([[3], [3, 103]]);
    await cluster.run(node.db.stop());
    await cluster.run(node.db.start());
    await cluster.settle();
    expect(seen.ids).toHaveLength(2);
    seen.stop();
  });

  it('survive a store that fails for a while', async () => {
    const node = await cluster.withRows(400);
    const replica = await cluster.start(2, { role: 'replica', polling: 'interval', writeForwardInterval: second });
    // It is run again: what comes into the place of a row that it skips is not known.
    const seen = new Seen(replica.db.query(items).where('group', '=', 3).offset(1).watch());
    await cluster.settle();
    replica.driver.onGet(/^(data|indexes)/, requestLost, 40);
    await put(node, 1003, 3);
    await cluster.run(node.db.checkpoint());
    await cluster.advance(300 * second);
    expect(replica.db.stats().requests.getErrors).toBe(40);
    expect(seen.error).toBeUndefined();
    expect(seen.ids.at(-1)).toContain(1003);
    seen.stop();
  });

  it('are those of the new version once a table is migrated', async () => {
    const node = await cluster.withRows(30);
    const seen = await watched(node, 3);
    const fields = { ...items.fields, note: { typeId: Types.varchar } } as const;
    node.db.registerSchema({ ...items, version: 2, fields });
    await cluster.run(node.db.setTargetSchemaVersion('items', 2));
    await cluster.advance(hour);
    await put(node, 103, 3, 'after');
    expect(seen.error).toBeUndefined();
    expect(seen.results.at(-1)?.rows).toEqual(await cluster.run(node.db.query(items).where('group', '=', 3).execute()));
    expect(seen.results.at(-1)?.rows.at(-1)).toMatchObject({ id: 103, text: 'after', note: null });
    seen.stop();
  });

  it('end with the reason once the version that the instance uses is retired, though no row is committed', async () => {
    const often = { polling: 'interval', writeForwardInterval: second } as const;
    const node = await cluster.start(0, often);
    await cluster.run(cluster.put(node, range(0, 30), 'first'));
    await cluster.run(node.db.checkpoint());
    const seen = await watched(node, 3);
    const newer = cluster.make(1, often);
    const fields = { ...items.fields, note: { typeId: Types.varchar } } as const;
    newer.db.registerSchema({ ...items, version: 2, fields });
    await cluster.run(newer.db.start());
    await cluster.run(newer.db.setTargetSchemaVersion('items', 2));
    await cluster.advance(100 * second);
    expect(seen.error).toBeUndefined();
    await cluster.run(newer.db.finishMigration('items', { force: true }));
    await cluster.advance(100 * second);
    expect(seen.error).toMatchObject({ code: 'INVALID_SCHEMA' });
  });

  it('count in the memory of the instance while they are watched', async () => {
    const node = await cluster.withRows(100);
    const heldBytes = (): number => node.db.stats().memory?.scratchBytes ?? -1;
    expect(heldBytes()).toBe(0);
    const seen = new Seen(node.db.query(items).watch());
    await cluster.settle();
    const first = heldBytes();
    expect(first).toBeGreaterThan(100 * 100);
    await cluster.run(cluster.put(node, range(100, 200), 'more'));
    await cluster.settle();
    expect(heldBytes()).toBeGreaterThan(1.5 * first);
    await cluster.run(node.db.stop());
    await cluster.run(node.db.start());
    await cluster.settle();
    expect(heldBytes()).toBeGreaterThan(1.5 * first);
    seen.stop();
    await cluster.settle();
    expect(heldBytes()).toBe(0);
  });

  it('end with an error if the memory of the instance has no room for their rows', async () => {
    const node = await cluster.start(0, { maxMemoryBytes: 1024 * 1024 });
    for (const from of range(0, 8)) {
      await cluster.run(cluster.put(node, range(from * 300, from * 300 + 300), 'x'.repeat(300)));
      await cluster.run(node.db.checkpoint());
    }
    const [one, other] = [new Seen(node.db.query(items).watch()), new Seen(node.db.query(items).watch())];
    await cluster.settle();
    expect([one.results.length, other.results.length]).not.toEqual([1, 1]);
    const failure = one.error ?? other.error;
    expect(failure).toMatchObject({
      code: 'MEMORY_BUDGET',
      message: expect.stringMatching(/maxMemoryBytes/) as string,
    });
    one.stop();
    other.stop();
    await cluster.settle();
    expect(node.db.stats().memory?.scratchBytes).toBe(0);
  });

  it('stay whole while rows that they show are deleted and collected', async () => {
    const node = await cluster.withRows(300);
    const replica = await cluster.start(2, { role: 'replica', polling: 'interval', writeForwardInterval: second });
    const seen = await watched(replica, 3);
    for (const id of range(0, 30)) {
      await cluster.run(cluster.flush(node, (batch) => void batch.delete(items, id * 10 + 3)));
      await cluster.run(node.db.checkpoint());
      await cluster.run(node.db.gc(quick));
      await cluster.advance(2 * second);
    }
    expect(seen.error).toBeUndefined();
    expect(seen.ids.at(-1)).toEqual([]);
    seen.stop();
  });
});

describe('a loop over a watched query', () => {
  it('ends with an error that says what was aborted', async () => {
    const node = await cluster.withRows(10);
    const controller = new AbortController();
    const seen = new Seen(node.db.query(items).watch({ signal: controller.signal }));
    await cluster.settle();
    controller.abort();
    await cluster.settle();
    expect(seen.error).toMatchObject({ code: 'ABORTED', message: expect.stringContaining('query.watch()') as string });
    await put(node, 100, 1);
    expect(seen.results).toHaveLength(1);
  });

  it('ends with the error of the query', async () => {
    const node = await cluster.withRows(10);
    node.db.registerFunction('broken', () => {
      throw new Error('broken on purpose');
    });
    const seen = new Seen(
      node.db
        .query(items)
        .where('broken' as 'id', '=', 1)
        .watch(),
    );
    await cluster.settle();
    expect(seen.error).toMatchObject({ code: 'FUNCTION' });
  });

  it('ends with the error that its callback throws, and others go on', async () => {
    const node = await cluster.withRows(10);
    const other = await watched(node, 3);
    const errors: unknown[] = [];
    const fault = new Error('from the callback');
    node.db
      .query(items)
      .watch()
      .subscribe(
        () => {
          throw fault;
        },
        (error) => errors.push(error),
      );
    await cluster.settle();
    expect(errors).toEqual([fault]);
    await put(node, 103, 3);
    expect(other.ids).toEqual([[3], [3, 103]]);
    other.stop();
  });

  it('leaves nothing behind: the instance looks at the store as seldom as before', async () => {
    const node = await cluster.withRows(10);
    const replica = await cluster.start(2, { role: 'replica', polling: 'onDemand', writeForwardInterval: second });
    const seen = await watched(replica, 3);
    await cluster.advance(10 * second);
    seen.stop();
    await cluster.settle();
    const { requests } = replica.db.stats();
    await cluster.advance(hour);
    expect(replica.db.stats().requests.get).toBe(requests.get);
    expect(replica.db.stats().requests.getUnchanged).toBe(requests.getUnchanged);
    await put(node, 103, 3);
    expect(seen.ids).toEqual([[3]]);
  });

  it('is refused where the database is not started, and for queries that are not of the database itself', async () => {
    const node = cluster.make(0);
    const early = new Seen(node.db.query(items).watch());
    await cluster.settle();
    expect(early.error).toMatchObject({ code: 'NOT_STARTED' });
    await cluster.run(node.db.start());
    const snapshot = await cluster.run(node.db.snapshot());
    expect(() => snapshot.query(items).watch()).toThrow(/takes queries of a database/);
    expect(() => node.db.query(items).overlay(node.db.batch()).watchCount()).toThrow(/query\.watchCount\(\)/);
    expect(() => node.db.query(items).watch({ signals: 1 } as never)).toThrow(/signals/);
    expect(() =>
      node.db
        .query(items)
        .watch()
        .subscribe(1 as never),
    ).toThrow(/callback/);
  });
});
