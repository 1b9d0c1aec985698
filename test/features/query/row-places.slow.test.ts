/** Leaves of an index remember where rows are: they must never show another row, and the memory counts. */
import { describe, expect, it } from 'vitest';
import { ByteWriter } from '../../../src/base/bytes.ts';
import { CachedNode } from '../../../src/cache/cached-node.ts';
import { Types } from '../../../src/format/types.ts';
import type { Query } from '../../../src/query/query.ts';
import { Tree } from '../../../src/tree/tree.ts';
import { TestTable } from './test-table.ts';
import type { Row, TestTableOptions } from './test-table.ts';

const schema = {
  name: 'players',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    score: { typeId: Types.uint32 },
    team: { typeId: Types.uint8 },
    name: { typeId: Types.varchar },
  },
  primaryKey: 'id',
  indexes: ['score', 'team'],
} as const;

const count = 2000;

function player(id: number, score = (id * 7919) % 10_007, name = `player ${id}`): Row {
  return { id, score, team: id % 40, name };
}

function byId(a: Row, b: Row): number {
  return (a['id'] as number) - (b['id'] as number);
}

class Players {
  readonly table: TestTable;
  readonly rows = new Map<number, Row>();

  constructor(options?: TestTableOptions) {
    this.table = new TestTable(schema, options);
  }

  async write(rows: readonly Row[], deleted: readonly number[] = []): Promise<void> {
    for (const row of rows) this.rows.set(row['id'] as number, row);
    for (const id of deleted) this.rows.delete(id);
    await this.table.commit(rows, deleted);
  }

  /** Asks by both indexes, twice, so that rows are found by what the first time has left behind. */
  async check(): Promise<void> {
    const all = [...this.rows.values()];
    const byScore = all.toSorted((a, b) => (a['score'] as number) - (b['score'] as number));
    for (let times = 0; times < 2; times++) {
      for (const least of [0, 3000, 7000]) {
        const expected = byScore.filter((row) => (row['score'] as number) >= least).slice(0, 150);
        const found = this.table.query().where('score', '>=', least).orderBy('score').limit(150);
        expect(await found.execute()).toStrictEqual(expected);
      }
      const last = this.table.query().where('score', '<', 5000).orderBy('score', 'desc').limit(100);
      const before = byScore.filter((row) => (row['score'] as number) < 5000);
      expect(await last.execute()).toStrictEqual(before.toReversed().slice(0, 100));
      for (let team = 0; team < 8; team++) {
        const members = all.filter((row) => row['team'] === team).toSorted(byId);
        const ofTeam = this.table.query().where('team', '=', team).orderBy('id');
        expect(await ofTeam.execute()).toStrictEqual(members);
      }
    }
  }
}

function ids(from: number, to: number, step = 1): number[] {
  return Array.from({ length: Math.ceil((to - from) / step) }, (_, i) => from + i * step);
}

describe('places of rows', () => {
  it.each([
    { inlineRoots: false },
    { inlineRoots: true },
    { blockSizeBytes: 512 },
    { blockSizeBytes: 1024, cacheBytes: 24 * 1024 },
    { blockSizeBytes: 64 * 1024, inlineRoots: true },
  ])('are right for the present rows after all writes: %o', async (options) => {
    const players = new Players(options);
    await players.write(ids(0, count).map((id) => player(id * 2)));
    await players.table.merge();
    await players.check();
    // Rows move to other places in their leaves, and to other leaves.
    await players.write(ids(0, 300).map((id) => player(id * 2 + 1)));
    await players.check();
    await players.table.merge();
    await players.check();
    await players.write([], ids(0, 1500, 2));
    await players.table.merge();
    await players.check();
    // Other rows in the places that are known, under the same entries.
    await players.write(ids(2000, 2400, 2).map((id) => player(id, undefined, `again ${id}`)));
    await players.check();
    await players.table.merge();
    await players.check();
  });

  it('are right for an older state too, while both are queried', async () => {
    const players = new Players();
    await players.write(ids(0, count).map((id) => player(id * 2)));
    await players.table.merge();
    await players.check();
    const { state } = players.table;
    const older = new Map(players.rows);
    await players.write(ids(0, 500).map((id) => player(id * 2 + 1, 20_000 + id)));
    await players.table.merge();
    const newer = players.table.state;
    const [first, second] = [new Players(), new Players()];
    Object.assign(first, { table: players.table, rows: older });
    Object.assign(second, { table: players.table, rows: players.rows });
    for (let i = 0; i < 3; i++) {
      players.table.state = state;
      await first.check();
      players.table.state = newer;
      await second.check();
    }
  });

  it('find the rows themselves, once enough of them were searched for', async () => {
    const players = new Players();
    await players.write(ids(0, count).map((id) => player(id)));
    await players.table.merge();
    const { tree } = players.table.state;
    const lookup = tree.lookup.bind(tree);
    let searches = 0;
    tree.lookup = (...args) => {
      searches++;
      return lookup(...args);
    };
    const ask = async (): Promise<unknown> =>
      players.table.query().where('score', '>=', 0).orderBy('score').limit(400).execute();
    const once = await ask();
    const first = searches;
    expect(first).toBeGreaterThanOrEqual(400);
    expect(await ask()).toStrictEqual(once);
    const second = searches - first;
    expect(second).toBeLessThan(first);
    // What is left are the first rows of each leaf: it did not remember those yet.
    expect(await ask()).toStrictEqual(once);
    expect(searches).toBe(first + second);
  });

  it('are not mixed up where a function begins a query on another state', async () => {
    const players = new Players({ blockSizeBytes: 8192 });
    await players.write(ids(0, count).map((id) => player(id * 2)));
    await players.table.merge();
    const older = players.table.state;
    // Rows move, and the leaves of the index that have low scores stay.
    await players.write(ids(0, 700).map((id) => player(id * 2 + 1, 1_000_000 + id)));
    await players.table.merge();
    const newer = players.table.state;
    const low = (): Query<Row> => players.table.query().where('score', '<', 900).orderBy('score');
    const expected = await low().execute();
    for (let times = 0; times < 2; times++) expect(await low().execute()).toStrictEqual(expected);
    const others: Promise<Row[]>[] = [];
    let calls = 0;
    players.table.register('begin', () => {
      if (++calls === 20) {
        players.table.state = older;
        others.push(low().execute(), low().execute());
        players.table.state = newer;
      }
      return true;
    });
    expect(await low().where('begin', '=', true).execute()).toStrictEqual(expected);
    for (const other of others) expect(await other).toStrictEqual(expected);
    expect(others).toHaveLength(2);
  });

  it('are kept by any lookup: all readers share a tree', async () => {
    const players = new Players();
    await players.write(ids(0, count).map((id) => player(id)));
    await players.table.merge();
    await players.check();
    const { tree, shape } = players.table.state;
    Object.freeze(tree);
    const [first, last] = [0, count - 1].map((id) => {
      const key = new ByteWriter();
      shape.writeKey(key, id);
      const way = { path: Infinity };
      return { way, hit: tree.lookup(key.finish(), undefined, way) };
    });
    expect(first?.way.path).toBe(0);
    expect(last?.way.path).toBeGreaterThan(0);
    for (const found of [first, last]) expect(found?.hit).toMatchObject({ source: tree.leafAt(found?.way.path ?? 0) });
  });

  it('leave out children that a path has no room for', () => {
    const leaves = [5, 65_535, 65_541].map((i) => [i, { level: 0, find: () => 0, rowBase: () => 0 }] as const);
    const source = { counters: { hits: 0 }, getCachedChild: (_: unknown, i: number) => new Map(leaves).get(i) };
    const pathTo = (child: number): number => {
      const root = { level: 1, childFor: () => child };
      const tree = new Tree(source as never, { level: 1 } as never, root as never);
      const way = { path: 0 };
      expect(tree.lookup(new Uint8Array(1), 1, way)).toMatchObject({ source: new Map(leaves).get(child) });
      const again = tree.leafAt(way.path);
      expect(again === new Map(leaves).get(child)).toBe(way.path !== Infinity);
      return way.path;
    };
    expect([pathTo(5), pathTo(65_535), pathTo(65_541)]).toStrictEqual([5, 65_535, Infinity]);
    const deep = new Tree(source as never, { level: 3 } as never);
    expect(deep.identity).toBe(undefined);
  });

  it('count as part of the leaf that remembers them', async () => {
    const players = new Players();
    await players.write(ids(0, count).map((id) => player(id)));
    await players.table.merge();
    const { state } = players.table;
    const index = state.treeOf(state.shape.indexes[0] as never);
    await players.check();
    let leaf = index?.getCachedRoot();
    while (leaf !== undefined && leaf.level > 0) leaf = index?.source.getCachedChild(leaf, 0);
    if (!(leaf instanceof CachedNode)) throw new Error('The leaf is not of the cache');
    const identity = state.tree.identity as object;
    expect(leaf.placesIn(identity).pathOf(identity, 0)).toBeDefined();
    // 6 bytes for the place of each row, and 4 for the head of each key where keys were searched for.
    const { memoryBytes, sizeBytes, count: entries } = leaf;
    expect([6, 10]).toContain((memoryBytes - sizeBytes) / entries);
  });
});
