/** db.changes() of some tables, and with the rows before the changes: they are those of the state right before each commit. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Types } from '../../../src/format/types.ts';
import type { Change, ChangesOptions } from '../../../src/instance/change-feed.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Cluster, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { FeedReader } from './feed-reader.ts';
import { Random } from '../../properties/model/random.ts';

const quick = { graceMs: 0, logRetentionMs: 0, loopGraceMs: 0 };

const others = {
  name: 'others',
  version: 1,
  fields: { id: { typeId: Types.int32 }, n: { typeId: Types.int32 } },
  primaryKey: 'id',
} as const;

let cluster: Cluster;

beforeEach(() => {
  cluster = new Cluster();
});

async function start(nodeId: number, options?: Partial<StoreDbOptions>): Promise<ClusterNode> {
  const node = await cluster.start(nodeId, options);
  node.db.registerSchema(others);
  return node;
}

/** What was committed after a position, until now. */
async function follow({ db }: ClusterNode, options: ChangesOptions): Promise<FeedReader> {
  const controller = new AbortController();
  const reader = new FeedReader(db.changes({ ...options, signal: controller.signal }));
  await cluster.advance(10);
  controller.abort();
  await cluster.run(reader.ended);
  if ((reader.error as { code?: string }).code === 'ABORTED') reader.error = undefined;
  return reader;
}

/** The rows of the tables, by what is told of them. */
class Oracle {
  readonly #rows = new Map<string, unknown>();
  checked = 0;

  take(changes: readonly Change[]): void {
    for (const { table, key, row, before } of changes) {
      const id = `${table} ${String(key)}`;
      expect([id, before]).toEqual([id, this.#rows.get(id) ?? null]);
      this.checked++;
      if (row === undefined) this.#rows.delete(id);
      else this.#rows.set(id, row);
    }
  }

  /** Learns of changes without a look at what they say about before. */
  learn(changes: readonly Change[]): void {
    for (const { table, key, row } of changes) {
      if (row === undefined) this.#rows.delete(`${table} ${String(key)}`);
      else this.#rows.set(`${table} ${String(key)}`, row);
    }
  }

  takeAll(reader: FeedReader): void {
    expect(reader.error).toBeUndefined();
    for (const { changes } of reader.told) this.take(changes);
  }
}

function textOf(row: Record<string, unknown> | null | undefined): unknown {
  return row === null || row === undefined ? row : row['text'];
}

/** The texts before and after each change. */
function texts(reader: FeedReader): unknown[] {
  return reader.told.flatMap(({ changes }) =>
    changes.map(({ key, before, row }) => [key, textOf(before), textOf(row)]),
  );
}

describe('the row before a change', () => {
  it('is null for a new row, and the old row for another one, also of a deleted row and one that is inserted again', async () => {
    const node = await start(0);
    const reader = new FeedReader(node.db.changes({ before: true }));
    const write = (fill: Parameters<Cluster['flush']>[1]): Promise<void> => cluster.run(cluster.flush(node, fill));
    await write((batch) => void batch.insert(items, { id: 1, text: 'a' }));
    await write((batch) => void batch.update(items, { id: 1, text: 'b' }));
    await write((batch) => void batch.delete(items, 1));
    await write((batch) => void batch.insert(items, { id: 1, text: 'c' }));
    await write((batch) => {
      void batch.delete(items, 1);
      void batch.insert(items, { id: 1, text: 'd' });
    });
    await cluster.advance(0);
    expect(texts(reader)).toEqual([
      [1, null, 'a'],
      [1, 'a', 'b'],
      [1, 'b', undefined],
      [1, null, 'c'],
      [1, 'c', 'd'],
    ]);
    expect(reader.told[1]?.changes[0]?.before).toEqual({ id: 1, text: 'a', group: null, file: null });
  });

  it('is left out unless it is asked for', async () => {
    const node = await start(0);
    const reader = new FeedReader(node.db.changes());
    await cluster.run(cluster.put(node, [1], 'a'));
    await cluster.advance(0);
    expect(Object.keys(reader.told[0]?.changes[0] ?? {})).toEqual(['table', 'version', 'operation', 'key', 'row']);
  });

  it('is that of the flush before, where several flushes share a commit', async () => {
    const node = await start(0);
    const reader = new FeedReader(node.db.changes({ before: true }));
    await cluster.run(Promise.all([1, 2, 3].map((n) => cluster.put(node, [5], `flush ${n}`))));
    await cluster.advance(0);
    expect(reader.told.length).toBeLessThan(3);
    expect(texts(reader)).toEqual([
      [5, null, 'flush 1 5'],
      [5, 'flush 1 5', 'flush 2 5'],
      [5, 'flush 2 5', 'flush 3 5'],
    ]);
  });

  it('is a reference where it has a blob, and its bytes are there until it is collected', async () => {
    const node = await start(0);
    const reader = new FeedReader(node.db.changes({ before: true, tables: [items] }));
    const blob = node.db.Blob('some bytes');
    await cluster.run(cluster.flush(node, (batch) => void batch.insert(items, { id: 1, file: blob })));
    await cluster.run(cluster.flush(node, (batch) => void batch.update(items, { id: 1, file: null })));
    await cluster.advance(0);
    const [first, second] = reader.told.flatMap((told) => told.changes);
    expect(first?.before).toBeNull();
    expect(second?.before?.['file']).toEqual(first?.row?.['file']);
    expect(typeof first?.row?.['file']).toBe('string');
  });

  it('costs no request where the rows are in memory, and one for each block that is not', async () => {
    const writer = await cluster.withRows(200);
    const node = await start(1);
    const reader = new FeedReader(node.db.changes({ before: true, tables: ['items'] }));
    node.driver.takeLines();
    const round = async (text: string): Promise<string[]> => {
      await cluster.run(cluster.put(writer, range(0, 5), text));
      await cluster.run(node.db.refresh());
      await cluster.advance(0);
      return node.driver.takeLines().filter((line) => line.includes('data/'));
    };
    const cold = await round('next');
    expect(cold.length).toBeGreaterThan(0);
    expect(cold.length).toBeLessThan(5);
    expect(await round('third')).toEqual([]);
    expect(await round('fourth')).toEqual([]);
    expect(texts(reader).slice(0, 2)).toEqual([
      [0, 'first 0', 'next 0'],
      [1, 'first 1', 'next 1'],
    ]);
    expect(reader.told).toHaveLength(3);
  });
});

describe('the tables of a feed', () => {
  it('are those that it gives, whose commits alone read rows', async () => {
    const writer = await cluster.withRows(200);
    writer.db.registerSchema(others);
    const node = await start(1);
    const feed = node.db.changes({ tables: ['others', others], before: true });
    const reader = new FeedReader(feed);
    node.driver.takeLines();
    await cluster.run(cluster.put(writer, [3], 'not told'));
    await cluster.run(cluster.flush(writer, (batch) => void batch.insert(others, { id: 7, n: 1 })));
    await cluster.run(
      cluster.flush(writer, (batch) => {
        void batch.update(others, { id: 7, n: 2 });
        void batch.upsert(items, { id: 9, text: 'not told either' });
      }),
    );
    await cluster.run(node.db.refresh());
    await cluster.advance(0);
    expect(reader.told.map(({ position, changes }) => [position, changes.map(({ before }) => before)])).toEqual([
      [3, [null]],
      [4, [{ id: 7, n: 1 }]],
    ]);
    expect(node.driver.takeLines().filter((line) => line.includes('data/'))).toEqual([]);
  });

  it('must be known, by registration or as they are stored', async () => {
    const { db } = await start(0);
    const wrong = (tables: unknown): unknown => db.changes({ tables: tables as string[] });
    for (const tables of [[], 'items', [7], {}, [{}]]) {
      expect(() => wrong(tables)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
    }
    expect(() => wrong(['item'])).toThrow(/has table 'item', which is not known; did you mean `items`\?/);
    expect(() => wrong(['_blobs'])).toThrow(expect.objectContaining({ option: 'tables' }));
    expect(() => wrong([])).toThrow('is an empty array; it must be an array with the name');
    const stored = cluster.make(1);
    await cluster.run(cluster.put({ db, environment: stored.environment, driver: stored.driver }, [1], 'row'));
    expect(() => wrong(['items', others])).not.toThrow();
  });

  it('move the position of the feed on past the commits of others, once the loop has asked for more', async () => {
    const node = await start(0);
    const feed = node.db.changes({ tables: [others] });
    const seen: number[] = [];
    const reader = new FeedReader(feed, async ({ position }) => {
      seen.push(feed.position);
      expect(feed.position).toBeLessThan(position);
    });
    await cluster.run(cluster.put(node, [1], 'row'));
    await cluster.run(cluster.put(node, [2], 'row'));
    await cluster.advance(0);
    expect(feed.position).toBe(2);
    await cluster.run(cluster.flush(node, (batch) => void batch.insert(others, { id: 1 })));
    await cluster.run(cluster.put(node, [3], 'row'));
    await cluster.advance(0);
    expect(reader.positions).toEqual([3]);
    expect([seen, feed.position]).toEqual([[2], 4]);
  });
});

describe('a loop that is behind', () => {
  /** A loop that takes the first commit at once, and the others when it is told to. */
  async function slow(
    options: ChangesOptions = {},
  ): Promise<{ node: ClusterNode; next: () => Promise<void>; oracle: Oracle }> {
    const node = await start(0);
    await cluster.run(cluster.put(node, range(0, 40), 'first'));
    const oracle = new Oracle();
    const loop = node.db.changes({ after: 0, before: true, ...options })[Symbol.asyncIterator]();
    const next = async (): Promise<void> => {
      const { value } = await cluster.run(loop.next());
      oracle.take(await cluster.run(value?.toArray() ?? Promise.reject(new Error('it has ended'))));
    };
    await next();
    return { node, next, oracle };
  }

  it('gets the rows of its place while others merge and collect', async () => {
    const { node, next, oracle } = await slow();
    for (const n of range(0, 12)) {
      await cluster.run(
        cluster.flush(node, (batch) => {
          for (const id of range(n, n + 20)) void batch.upsert(items, { id, text: `text ${n}` });
          void batch.delete(items, n);
        }),
      );
      await cluster.run(node.db.checkpoint());
      await cluster.run(node.db.gc({ ...quick, logRetentionMs: 86_400_000 }));
    }
    for (const _ of range(0, 12)) await next();
    expect(oracle.checked).toBe(40 + 12 * 20);
    expect(node.db.stats().log?.pendingCommits).toBe(0);
  });

  it('lets the states go that it does not need any more', async () => {
    const { node, next } = await slow();
    for (const n of [1, 2, 3]) {
      await cluster.run(cluster.put(node, [n], 'next'));
      await cluster.run(node.db.checkpoint());
    }
    await cluster.advance(6000);
    expect(await cluster.run(node.db.snapshots())).toHaveLength(1);
    for (const _ of [1, 2, 3]) await next();
    const waiting = next();
    // Longer than until a state is held that a loop reads.
    await cluster.advance(20_000);
    expect(await cluster.run(node.db.snapshots())).toEqual([]);
    await cluster.run(cluster.put(node, [9], 'last'));
    await cluster.run(waiting);
  });

  /** Starts a node with nine commits, of which the last state is merged. */
  async function merged(options: Partial<StoreDbOptions>): Promise<ClusterNode> {
    cluster = new Cluster();
    const node = await start(0, options);
    for (const n of range(0, 9)) {
      await cluster.run(cluster.put(node, range(n, n + 20), `text ${n}`));
      if (n % 3 === 2) await cluster.run(node.db.checkpoint());
    }
    return node;
  }

  it('begins at an earlier state of the history', async () => {
    const node = await merged({ history: '7d' });
    for (const after of range(0, 10)) {
      const oracle = new Oracle();
      const plain = await follow(node, { after: 0 });
      for (const { position, changes } of plain.told) if (position <= after) oracle.learn(changes);
      const reader = await follow(node, { after, before: true });
      oracle.takeAll(reader);
      expect(reader.positions).toEqual(range(after + 1, 10));
    }
  });

  it('is refused where no earlier state is kept', async () => {
    const node = await merged({});
    for (const after of range(0, 9)) {
      const { error } = await follow(node, { after, before: true });
      expect(error).toMatchObject({ code: 'CHANGES_EXPIRED', position: after, floor: 9 });
      expect((error as Error).message).toMatch(/rows before the changes after position .*option history/);
    }
    expect((await follow(node, { after: 9, before: true })).error).toBeUndefined();
  });

  it('begins at the state of a snapshot that somebody holds', async () => {
    const node = await start(0);
    await cluster.run(cluster.put(node, range(0, 20), 'first'));
    const snapshot = await cluster.run(node.db.snapshot());
    const { position } = node.db;
    await cluster.run(cluster.put(node, range(0, 20), 'second'));
    await cluster.run(cluster.put(node, range(0, 20), 'third'));
    await cluster.run(node.db.checkpoint());
    const reader = await follow(node, { after: position + 1, before: true });
    expect(texts(reader)).toEqual(range(0, 20).map((id) => [id, `second ${id}`, `third ${id}`]));
    await cluster.run(snapshot.release());
  });
});

describe('a table that is migrated', () => {
  const old = {
    name: 'notes',
    version: 1,
    fields: { id: { typeId: Types.int32 }, n: { typeId: Types.int32 } },
    primaryKey: 'id',
  } as const;
  const next = {
    ...old,
    version: 2,
    fields: { ...old.fields, more: { typeId: Types.varchar, default: 'none' } },
  } as const;

  it('has rows before in the version of the reader as soon as commits hold it, and in the older one otherwise', async () => {
    const often = { writeForwardInterval: 5000 };
    const first = await cluster.start(0, often);
    const second = await cluster.start(1, often);
    first.db.registerSchema(old);
    second.db.registerSchema(next);
    const readers = [first, second].map(({ db }) => new FeedReader(db.changes({ before: true, tables: ['notes'] })));
    const put = (node: ClusterNode, row: object): Promise<void> =>
      cluster.run(cluster.flush(node, (batch) => void batch.upsert('notes', row)));
    const told = async (): Promise<unknown[]> => {
      for (const { db } of [first, second]) await cluster.run(db.refresh());
      await cluster.advance(10);
      return readers.map((reader) => {
        expect(reader.error).toBeUndefined();
        return reader.told.flatMap(({ changes }) => changes.map(({ version, before }) => [version, before])).at(-1);
      });
    };
    await put(first, { id: 1, n: 1 });
    await put(first, { id: 1, n: 2 });
    expect(await told()).toEqual([
      [1, { id: 1, n: 1 }],
      [1, { id: 1, n: 1 }],
    ]);
    await put(second, { id: 1, n: 3, more: 'much' });
    expect(await told()).toEqual([
      [1, { id: 1, n: 2 }],
      [2, { id: 1, n: 2, more: 'none' }],
    ]);
    await put(first, { id: 1, n: 4 });
    expect(await told()).toEqual([
      [1, { id: 1, n: 3 }],
      [1, { id: 1, n: 3 }],
    ]);
    await put(second, { id: 1, n: 5, more: 'some' });
    expect((await told())[1]).toEqual([2, { id: 1, n: 4, more: 'much' }]);
    await cluster.run(second.db.checkpoint());
    await put(second, { id: 1, n: 6, more: 'last' });
    expect((await told())[1]).toEqual([2, { id: 1, n: 5, more: 'some' }]);
    await cluster.run(second.db.setTargetSchemaVersion('notes', 2));
    const becomes = async (state: string): Promise<void> => {
      for (let turn = 0; turn < 40; turn++) {
        const status = await cluster.run(second.db.migrationStatus('notes'));
        if (status.state === state) return;
        await cluster.advance(5000);
      }
      throw new Error(`The migration has not become ${state}`);
    };
    await becomes('switched');
    await cluster.run(second.db.finishMigration('notes', { force: true }));
    await becomes('none');
    await put(second, { id: 1, n: 7, more: 'alone' });
    expect(await told()).toEqual([
      [2, { id: 1, n: 6, more: 'last' }],
      [2, { id: 1, n: 6, more: 'last' }],
    ]);
  });
});

describe.each([1, 2, 3, 4])('any history, seed %i', (seed) => {
  it('shows each row as it was before each commit', async () => {
    const random = new Random(seed);
    const nodes = [await start(0), await start(1), await start(2, { role: 'replica' })];
    const loops = nodes.map((node) => ({
      oracle: new Oracle(),
      loop: node.db.changes({ after: 0, before: true })[Symbol.asyncIterator](),
      asked: undefined as Promise<void> | undefined,
    }));
    const look = (): void => {
      for (const one of loops) {
        if (one.asked !== undefined || random.below(3) === 0) continue;
        one.asked = (async () => {
          const { value } = await one.loop.next();
          one.oracle.take((await value?.toArray()) ?? []);
          one.asked = undefined;
        })();
      }
    };
    let commits = 0;
    for (let step = 0; step < 60; step++) {
      const node = nodes[random.below(2)] as ClusterNode;
      const flushes = range(0, 1 + random.below(3)).map((n) =>
        cluster.flush(node, (batch) => {
          for (const id of range(0, 1 + random.below(6)).map(() => random.below(30))) {
            if (random.below(4) === 0) void batch.delete(items, id);
            else void batch.upsert(items, { id, text: `${step} ${n}` });
          }
          if (random.below(4) === 0) void batch.upsert(others, { id: random.below(5), n: step });
        }),
      );
      await cluster.run(Promise.all(flushes));
      commits = node.db.position;
      if (random.below(6) === 0) await cluster.run((nodes[random.below(2)] as ClusterNode).db.checkpoint());
      if (random.below(10) === 0) await cluster.run(node.db.gc({ loopGraceMs: 0 }));
      look();
      await cluster.advance(random.below(3) * 1000);
    }
    for (const [i, one] of loops.entries()) {
      const { db } = nodes[i] as ClusterNode;
      await cluster.run(db.refresh());
      for (let turn = 0; turn < 200; turn++) {
        look();
        await cluster.advance(10);
      }
      expect(one.oracle.checked).toBe(loops[0]?.oracle.checked);
    }
    expect(commits).toBeGreaterThan(20);
    expect(loops[0]?.oracle.checked).toBeGreaterThan(100);
  });
});
