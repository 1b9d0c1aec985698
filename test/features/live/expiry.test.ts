/** Watched queries on a table whose rows expire: rows go when their time has come, without a commit and without requests. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import type { LiveRows, LiveValue, Query, StoreDbOptions } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { Gate } from '../gc/cluster.ts';
import { ScriptedDriver } from '../protocol/scripted-driver.ts';

const second = 1000;
const sessions = {
  name: 'sessions',
  version: 1,
  fields: { id: { typeId: Types.int32 }, user: { typeId: Types.varchar }, seen: { typeId: Types.timestamp } },
  primaryKey: 'id',
  indexes: ['seen', 'user'],
  expireAfter: { field: 'seen', seconds: 60 },
} as const;

interface Session {
  readonly id: number;
  readonly user: string | null;
  readonly seen: Date | null;
}

let clock: VirtualEnvironment;
let store: MemoryDriver;

interface Node {
  readonly db: Database;
  readonly environment: VirtualEnvironment;
  readonly driver: ScriptedDriver;
}

async function open(nodeId: number, options: Partial<StoreDbOptions> = {}): Promise<Node> {
  const environment = clock.fork({ seed: `node ${nodeId}` });
  const driver = new ScriptedDriver(store, 'db');
  const given = { dbPrefix: 'db', nodeId, logLevel: 'silent', blockSizeBytes: 512, ...options } as const;
  const connected = environment.connect(driver);
  const db = createDatabase({ writeForwardInterval: 2000, driver: connected, ...given }, environment);
  db.registerSchema(sessions);
  await clock.run(db.start());
  return { db, environment, driver };
}

/** Lets everything happen that can without time passing. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await clock.advance(0);
}

/** Rows that expire so many seconds from now; null: never. */
async function put({ db }: Node, rows: readonly (readonly [id: number, lives: number | null])[]): Promise<void> {
  const batch = db.batch();
  for (const [id, lives] of rows) {
    const seen = lives === null ? null : new Date(clock.now() + (lives - 60) * second);
    void batch.upsert(sessions, { id, user: ['ann', 'bob', 'cid'][id % 3], seen });
  }
  await clock.run(batch.flush());
  await settle();
}

/** The results of a loop. */
class Seen<T extends { readonly position: number }> {
  readonly results: T[] = [];
  /** The time of each. */
  readonly times: number[] = [];

  constructor(loop: { subscribe: (callback: (result: T) => void) => () => void }) {
    loop.subscribe((result) => {
      this.results.push(result);
      this.times.push(clock.now());
    });
  }

  get last(): T {
    return this.results.at(-1) as T;
  }
}

function ids(rows: readonly object[]): number[] {
  return rows.map((row) => (row as Session).id);
}

beforeEach(() => {
  clock = new VirtualEnvironment({ seed: 'store' });
  store = new MemoryDriver({ environment: clock });
});

const quiet = { writeForwardInterval: 600_000 };

describe('a watched query on a table whose rows expire', () => {
  it('drops rows at their times, without a commit and without requests', async () => {
    const node = await open(1, quiet);
    await put(node, [
      [1, 10],
      [2, 20],
      [3, 20.5],
      [4, null],
      [5, 1000],
    ]);
    const begunMs = clock.now();
    const all = node.db.query(sessions);
    const rows = new Seen(all.watch());
    const count = new Seen(all.watchCount());
    const few = new Seen(all.where('id', '<', 3).select('user').watch());
    const later = new Seen(all.offset(1).limit(1).watch());
    const groups = new Seen(all.groupBy('user').watch({ n: 'count' }));
    await settle();
    const { position } = node.db;
    const { requests } = node.db.stats();
    await clock.advance(30 * second);
    expect(rows.results.map((result) => ids(result.rows))).toEqual([
      [1, 2, 3, 4, 5],
      [2, 3, 4, 5],
      [3, 4, 5],
      [4, 5],
    ]);
    expect(rows.times.map((ms) => (ms - begunMs) / second)).toEqual([0, 10, 20, 20.5]);
    expect(rows.results[1]).toMatchObject({ added: [], changed: [], removed: [{ id: 1 }], position });
    // Rows that stay are the same objects.
    expect(rows.last.rows[0]).toBe(rows.results[0]?.rows[3]);
    expect(count.results.map(({ value }) => value)).toEqual([5, 4, 3, 2]);
    expect(few.results.map((result) => result.rows.length)).toEqual([2, 1, 0]);
    expect(later.results.map((result) => ids(result.rows))).toEqual([[2], [3], [4], [5]]);
    expect(groups.last.rows).toEqual([
      { user: 'bob', n: 1 },
      { user: 'cid', n: 1 },
    ]);
    expect(node.db.position).toBe(position);
    expect(node.db.stats().requests).toEqual(requests);
  });

  it('is not run again for rows that it does not show', async () => {
    const node = await open(1, quiet);
    await put(
      node,
      Array.from({ length: 60 }, (_, id) => [id, id < 30 ? 10 + id : null]),
    );
    let runs = 0;
    node.db.registerFunction('counted', (row) => {
      runs++;
      return (row['id'] as number) >= 30;
    });
    const seen = new Seen(node.db.query('sessions').where('counted', '=', true).limit(3).watch());
    await settle();
    const before = runs;
    expect(before).toBeGreaterThan(0);
    await clock.advance(60 * second);
    expect(ids(seen.last.rows)).toEqual([30, 31, 32]);
    expect(runs).toBe(before);
  });

  it('takes rows that expire at once, or one after the other, in few results', async () => {
    const node = await open(1, quiet);
    await put(
      node,
      Array.from({ length: 3000 }, (_, id) => [id, id < 2000 ? 10 : 20 + id / 1000]),
    );
    const count = new Seen(node.db.query(sessions).watchCount());
    await clock.advance(30 * second);
    expect(count.last.value).toBe(0);
    expect(count.results[1]?.value).toBe(1000);
    // A tenth of a second lies between two looks.
    expect(count.results.length).toBeLessThan(15);
  });

  it('is run again if rows expire while it is being run', async () => {
    const node = await open(1, quiet);
    await put(
      node,
      Array.from({ length: 200 }, (_, id) => [id, id === 7 ? 10 : null]),
    );
    await clock.run(node.db.checkpoint());
    const cold = await open(2, { ...quiet, role: 'replica' });
    const gate = new Gate();
    cold.driver.onGet(/^data/, gate.before);
    const seen = new Seen(cold.db.query(sessions).where('id', 'BETWEEN', [5, 8]).watch());
    await clock.run(gate.reached);
    await clock.advance(11 * second);
    gate.open();
    await settle();
    expect(ids(seen.last.rows)).toEqual([5, 6, 8]);
  });

  it('follows a clock that is set forward and back, within a minute', async () => {
    const node = await open(1, quiet);
    await put(node, [[1, 1000]]);
    const count = new Seen(node.db.query(sessions).watchCount());
    await settle();
    for (const skewMs of [2000 * second, 0]) {
      node.environment.skewMs = skewMs;
      await clock.advance(61 * second);
    }
    expect(count.results.map(({ value }) => value)).toEqual([1, 0, 1]);
  });

  it('begins again with each start, and sees rows that a newer commit makes expire earlier', async () => {
    const node = await open(1, quiet);
    await put(node, [[1, 100]]);
    const count = new Seen(node.db.query(sessions).watchCount());
    await settle();
    await clock.run(node.db.stop());
    await clock.advance(60 * second);
    await clock.run(node.db.start());
    await put(node, [[2, 10]]);
    await clock.advance(15 * second);
    await put(node, [[1, 10]]);
    await clock.advance(15 * second);
    expect(count.results.map(({ value }) => value)).toEqual([1, 2, 1, 0]);
  });
});

/** Queries that are held against a fresh run. */
const queries: readonly (readonly [string, (query: Query<Session>) => Query<object>])[] = [
  ['all rows', (query) => query],
  ['the first rows by time', (query) => query.orderBy('seen').limit(3).select('id')],
  ['the last rows of a user', (query) => query.where('user', '=', 'bob').orderBy('seen', 'desc').limit(2)],
  ['rows that are skipped', (query) => query.orderBy('user').offset(2).limit(3)],
  ['some keys', (query) => query.where('id', 'IN', [1, 4, 7])],
];

async function history(seed: number, role: 'writer' | 'replica'): Promise<number> {
  const random = new SeededRandom(`expiry ${seed}`);
  const below = (count: number): number => Math.floor(random.next() * count);
  const writers = [await open(1), await open(2)] as const;
  const watching = role === 'writer' ? writers[0] : await open(3, { role });
  const all = (): Query<Session> => watching.db.query(sessions);
  const loops = queries.map(([name, build]) => ({
    name,
    build,
    seen: new Seen<LiveRows<object>>(build(all()).watch()),
  }));
  const count = new Seen<LiveValue<number>>(all().where('user', '!=', 'cid').watchCount());
  const sum = new Seen(all().watchAggregate({ n: 'count', first: { min: 'seen' }, last: { max: 'id' } }));
  const groups = new Seen(all().groupBy('user').watch({ n: 'count' }));
  for (let step = 0; step < 25; step++) {
    const what = below(20);
    const writer = writers[below(2)] as Node;
    if (what === 0) await clock.run(writer.db.checkpoint());
    else if (what === 1) watching.environment.skewMs = below(60) * second;
    else if (what < 12) {
      const rows = Array.from({ length: 1 + below(4) }, () => {
        return [below(12), below(8) === 0 ? null : below(90) + below(10) / 10] as const;
      });
      await put(writer, rows);
    } else if (what === 12) {
      const batch = writer.db.batch();
      void batch.delete(sessions, below(12));
      await clock.run(batch.flush());
    } else await clock.advance(below(20) * second);
    // Others' commits show after an interval, and a clock that was set after a minute.
    await clock.advance(what === 1 ? 61 * second : 2.2 * second);
    await settle();
    for (const { name, build, seen } of loops) {
      expect(seen.last.rows, `${name}, step ${step}`).toEqual(await clock.run(build(all()).execute()));
    }
    expect(count.last.value).toBe(await clock.run(all().where('user', '!=', 'cid').count()));
    expect(sum.last.value).toEqual(
      await clock.run(all().aggregate({ n: 'count', first: { min: 'seen' }, last: { max: 'id' } })),
    );
    expect(groups.last.rows).toEqual(await clock.run(all().groupBy('user').aggregate({ n: 'count' })));
  }
  for (const { db } of new Set([watching, ...writers])) await clock.run(db.stop());
  return loops.reduce((results, { seen }) => results + seen.results.length, 0);
}

describe('a watched query in a random history of rows that expire', () => {
  it.each([
    [1, 'writer'],
    [2, 'writer'],
    [3, 'replica'],
  ] as const)('gives what a fresh run gives (seed %i, on a %s)', async (seed, role) => {
    expect(await history(seed, role)).toBeGreaterThan(30);
  });
});
