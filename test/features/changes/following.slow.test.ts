/** db.changes() among other nodes: its cost, the memory that it holds, and that it delivers everything under any failure. */
import { beforeEach, describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import type { CorruptionError } from '../../../src/base/errors.ts';
import type { Polling } from '../../../src/coordination/polling-pace.ts';
import { createDatabase } from '../../../src/api/database.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { Cluster, Gate, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { FeedReader } from './feed-reader.ts';

const second = 1000;
const hour = 3600 * second;
const quick = { graceMs: 0, logRetentionMs: 0, loopGraceMs: 0 };
const often = { writeForwardInterval: 5 * second };
const never = { mergePolicy: { minCommits: 2000, maxWaitMs: 86_400_000 } };

let cluster: Cluster;

beforeEach(() => {
  cluster = new Cluster();
});

async function commit(node: ClusterNode, ids: readonly number[], text = 'row'): Promise<void> {
  for (const id of ids) await cluster.run(cluster.put(node, [id], text));
}

/** More than a commit holds itself. */
function large({ db }: ClusterNode): Promise<void> {
  const batch = db.batch();
  for (const id of range(1000, 1100)) void batch.insert(items, { id, text: `${id}`.repeat(25_000) });
  return batch.flush();
}

describe('the cost of following', () => {
  it('is nothing for commits of the instance itself', async () => {
    const node = await cluster.start(0);
    const reader = new FeedReader(node.db.changes());
    await commit(node, range(1, 31));
    await cluster.advance(0);
    expect(reader.keys).toEqual(range(1, 31).map((id) => [id]));
    const lines = node.driver.takeLines();
    expect(lines).toHaveLength(60);
    expect(new Set(lines.map((line) => line.replace(/\d+/, 'n')))).toEqual(
      new Set(['put committed/n written', 'get blockn unchanged']),
    );
  });

  it.each([
    ['interval', 1440, 1440],
    ['adaptive', 1440, 1460],
    ['onDemand', 1440, 1440],
  ] as const)('is two reads an interval while nothing happens, polling %s', async (polling, least, most) => {
    await cluster.withRows(1);
    const node = await cluster.start(1, { polling, role: 'replica', ...often });
    const readers = [new FeedReader(node.db.changes()), new FeedReader(node.db.changes())];
    await cluster.advance(hour);
    const lines = node.driver.takeLines();
    expect(lines.length).toBeGreaterThanOrEqual(least);
    expect(lines.length).toBeLessThanOrEqual(most);
    expect(new Set(lines)).toEqual(new Set(['get committed/2 missing', 'get block0 unchanged']));
    expect(readers.every(({ hasEnded }) => !hasEnded)).toBe(true);
  });

  it.each(['interval', 'adaptive', 'onDemand'] as Polling[])(
    'shows others’ commits within an interval, polling %s',
    async (polling) => {
      const writer = await cluster.withRows(1);
      const node = await cluster.start(1, { polling, role: 'replica', ...often });
      const reader = new FeedReader(node.db.changes());
      for (const id of range(10, 30)) {
        await cluster.advance(47 * second);
        await commit(writer, [id]);
        await cluster.advance(5.1 * second);
        expect(reader.keys.at(-1)).toEqual([id]);
      }
      expect(reader.told).toHaveLength(20);
    },
  );

  it('is no second read of commits that were merged before the reader came to them', async () => {
    const writer = await cluster.withRows(1);
    const node = await cluster.start(1, { role: 'replica' });
    const reader = new FeedReader(node.db.changes());
    await commit(writer, [1, 2, 3]);
    await cluster.run(writer.db.checkpoint());
    await cluster.run(node.db.refresh());
    await cluster.advance(0);
    expect(reader.keys).toEqual([[1], [2], [3]]);
    expect(node.driver.takeLines()).toEqual([
      'get committed/2 found',
      'get committed/3 found',
      'get committed/4 found',
      'get committed/5 missing',
      'get block0 found',
    ]);
  });

  it('is one read a commit of the past, and one of Block 0 for up to sixteen', async () => {
    const node = await cluster.start(0, never);
    await commit(node, range(1, 101));
    await cluster.run(node.db.checkpoint());
    node.driver.takeLines();
    const reader = new FeedReader(node.db.changes({ after: 0 }));
    await cluster.advance(0);
    expect(reader.keys).toEqual(range(1, 101).map((id) => [id]));
    const lines = node.driver.takeLines();
    expect(lines.filter((line) => line.startsWith('get committed'))).toHaveLength(100);
    // Windows of 4, 8, 16, 16, 16, 16, 16 and 8.
    expect(lines.filter((line) => line === 'get block0 unchanged')).toHaveLength(8);
    expect(lines).toHaveLength(108);
  });

  it('is nothing while its reader is busy: it holds nothing back, and rereads commits merged meanwhile', async () => {
    const node = await cluster.start(0, never);
    const gate = new Gate();
    const reader = new FeedReader(node.db.changes(), () => gate.opened);
    await commit(node, range(1, 41));
    await cluster.run(node.db.checkpoint());
    node.driver.takeLines();
    await cluster.advance(60 * second);
    expect(reader.positions).toEqual([1]);
    expect(node.driver.takeLines()).toEqual([]);
    expect(node.environment.timerCount).toBe(1);
    gate.open();
    await cluster.advance(0);
    expect(reader.keys).toEqual(range(1, 41).map((id) => [id]));
    expect(node.driver.takeLines().filter((line) => line.startsWith('get committed'))).toHaveLength(39);
  });

  it('is smaller windows where commits are large', async () => {
    const node = await cluster.start(0, never);
    for (const id of range(1, 21)) await commit(node, [id], 'x'.repeat(600_000));
    await cluster.run(node.db.checkpoint());
    node.driver.takeLines();
    let underWay = 0;
    let most = 0;
    node.driver.onGet(
      /^committed/,
      async (pass) => {
        most = Math.max(most, ++underWay);
        const result = await pass();
        await cluster.clock.yieldToEventLoop();
        underWay--;
        return result;
      },
      Infinity,
    );
    const reader = new FeedReader(node.db.changes({ after: 0 }));
    await cluster.advance(0);
    expect(reader.positions).toEqual(range(1, 21));
    expect(most).toBe(4);
    // Windows of 4, and then of 1 or 2.
    expect(node.driver.takeLines().filter((line) => line.startsWith('get block0')).length).toBeGreaterThan(10);
  });
});

describe('the memory of a loop that is far behind', () => {
  const size = 600_000;

  it('counts in the budget: the commits that were read together, until the loop has done with them', async () => {
    const node = await cluster.start(0, never);
    for (const id of range(1, 5)) await commit(node, [id], 'x'.repeat(size));
    await cluster.run(node.db.checkpoint());
    const held = (): number => Math.floor((node.db.stats().memory?.scratchBytes ?? 0) / size);
    const loop = node.db.changes({ after: 0 })[Symbol.asyncIterator]();
    for (const id of range(1, 5)) {
      expect((await cluster.run(loop.next())).value?.position).toBe(id);
      expect(held()).toBe(4);
    }
    const waiting = loop.next();
    await cluster.advance(0);
    expect(held()).toBe(0);
    await loop.return?.();
    await waiting;
    const controller = new AbortController();
    for (const end of [(): void => controller.abort(), (other: AsyncIterator<unknown>) => other.return?.()]) {
      const { signal } = controller;
      const other = node.db.changes({ after: 0, ...(!signal.aborted && { signal }) })[Symbol.asyncIterator]();
      await cluster.run(other.next());
      expect(held()).toBe(4);
      await end(other);
      expect(held()).toBe(0);
    }
  });

  it('is that of fewer commits where there is no room, down to one', async () => {
    const node = await cluster.start(0, { ...never, maxMemoryBytes: 2_000_000 });
    for (const id of range(1, 9)) await commit(node, [id], 'x'.repeat(size));
    await cluster.run(node.db.checkpoint());
    let most = 0;
    const reader = new FeedReader(node.db.changes({ after: 0 }), async () => {
      most = Math.max(most, node.db.stats().memory?.scratchBytes ?? 0);
      return undefined;
    });
    await cluster.advance(0);
    expect(reader.error).toBe(undefined);
    expect(reader.positions).toEqual(range(1, 9));
    expect(most).toBeLessThan(1_500_000);
  });
});

describe('a commit too large for one object', () => {
  it('is delivered row by row, from memory to the end of the log, before and after the merge', async () => {
    const writer = await cluster.start(0);
    const replica = await cluster.start(1, { role: 'replica' });
    const early = new FeedReader(writer.db.changes());
    const late = new FeedReader(replica.db.changes({ after: 0 }));
    await cluster.run(large(writer));
    await cluster.run(writer.db.checkpoint());
    await cluster.run(replica.db.refresh());
    await cluster.advance(0);
    for (const { told } of [early, late]) {
      expect(told).toHaveLength(1);
      expect(told[0]?.changes.map(({ key }) => key)).toEqual(range(1000, 1100));
      for (const { key, row } of told[0]?.changes ?? []) expect(row?.['text']).toBe(String(key).repeat(25_000));
    }
  });

  it('is not held in memory: its rows are read as they are asked for', async () => {
    const writer = await cluster.start(0);
    await cluster.run(large(writer));
    await cluster.run(writer.db.checkpoint());
    const replica = await cluster.start(1, { role: 'replica' });
    const loop = replica.db.changes({ after: 0 })[Symbol.asyncIterator]();
    const { value } = await cluster.run(loop.next());
    expect(replica.driver.takeLines().filter((line) => line.includes('staged'))).toEqual([]);
    const rows = value?.[Symbol.asyncIterator]();
    await cluster.run(Promise.resolve(rows?.next()));
    expect(replica.driver.takeLines().filter((line) => line.includes('staged')).length).toBeLessThan(4);
  });

  it('is gone with the log, also in the middle of it, and the error says so', async () => {
    const writer = await cluster.start(0);
    const replica = await cluster.start(1, { role: 'replica' });
    const feed = replica.db.changes()[Symbol.asyncIterator]();
    await cluster.run(large(writer));
    await cluster.run(writer.db.checkpoint());
    await cluster.run(replica.db.refresh());
    const { value } = await cluster.run(feed.next());
    const rows = value?.[Symbol.asyncIterator]();
    await cluster.run(Promise.resolve(rows?.next()));
    await cluster.advance(10);
    // Within the retention all is there.
    await cluster.run(writer.db.gc({ loopGraceMs: 0 }));
    await cluster.run(Promise.resolve(rows?.next()));
    await cluster.run(writer.db.gc(quick));
    const rest = async (): Promise<void> => {
      while ((await rows?.next())?.done === false);
    };
    expect(await cluster.failure(rest())).toMatchObject({ code: 'CHANGES_EXPIRED', position: 0, floor: 1 });
    // What comes later is told.
    await commit(writer, [5]);
    await cluster.run(replica.db.refresh());
    expect((await cluster.run(feed.next())).value?.position).toBe(2);
  });

  it('whose rows are missing while the log has it is damaged', async () => {
    const writer = await cluster.start(0);
    await cluster.run(large(writer));
    await cluster.run(writer.db.checkpoint());
    for (const name of await cluster.namesIn('staged')) await cluster.remove(name);
    const replica = await cluster.start(1, { role: 'replica' });
    const reader = new FeedReader(replica.db.changes({ after: 0 }));
    await cluster.advance(0);
    expect(reader.error).toMatchObject({ code: 'CORRUPTION' });
    expect((reader.error as CorruptionError).key).toMatch(/^staged\//);
  });
});

describe('following among failures', () => {
  const ids = range(0, 40);

  /** Nodes that write, merge and collect over a bad network, and one that follows them. */
  async function follow(seed: number, polling: Polling): Promise<void> {
    const environment = new VirtualEnvironment({ seed });
    const store = new MemoryDriver({ environment });
    const network = new FaultyDriver(store, { seed, environment, faults: { latencyMs: [5, 400] } });
    const make = (nodeId: number, role: 'writer' | 'replica') => {
      const process = environment.fork();
      const options = { dbPrefix: 'db', nodeId, role, polling, logLevel: 'silent', ...often } as const;
      const db = createDatabase({ ...options, driver: process.connect(network) }, process);
      db.registerSchema(items);
      return { db, process };
    };
    const writers = [make(0, 'writer'), make(1, 'writer')];
    for (const { db } of writers) await environment.run(db.start());
    const follower = make(2, seed % 2 === 0 ? 'replica' : 'writer');
    await environment.run(follower.db.start());
    network.faults = { latencyMs: [5, 400], lostAnswer: 0.02, throttled: 0.05, refused: 0.02, slow: 0.01 };
    const table = new Map<unknown, unknown>();
    let sum = 0;
    const reader = new FeedReader(follower.db.changes({ after: 0 }), async ({ changes }) => {
      for (const { key, row, operation } of changes) {
        if (operation === 'delete') table.delete(key);
        else table.set(key, row?.['text']);
      }
      sum += changes.length;
      // Sometimes it is slow.
      if (sum % 7 === 0) await sleep(follower.process, 20 * second);
    });
    let n = 0;
    for (const round of range(0, 60)) {
      const { db } = writers[round % 2] as (typeof writers)[number];
      const batch = db.batch();
      const some = [...ids].filter(() => environment.random() < 0.1);
      for (const id of some) {
        if (environment.random() < 0.3) void batch.delete(items, id);
        else void batch.upsert(items, { id, text: `${n++}` });
      }
      await environment.run(batch.flush().catch(() => undefined));
      await environment.advance(environment.random() * 8 * second);
      if (round % 13 === 5) await environment.run(db.gc({ loopGraceMs: 0, graceMs: 0 }).catch(() => undefined));
      if (round % 17 === 3) follower.process.pause(90 * second);
    }
    network.faults = {};
    await environment.advance(1200 * second);
    const { db } = follower;
    await environment.run(db.refresh());
    await environment.advance(100 * second);
    expect(reader.error).toBeUndefined();
    // Empty flushes commit nothing, so that every slot is told.
    expect(reader.positions).toEqual(range(1, db.position + 1));
    const rows = await environment.run(db.query(items).execute());
    expect(new Map([...table].toSorted(([a], [b]) => Number(a) - Number(b)))).toEqual(
      new Map(rows.map(({ id, text }) => [id, text])),
    );
    for (const node of [...writers, follower]) await environment.run(node.db.stop());
    expect(follower.process.timerCount).toBe(0);
  }

  it.each(range(1, 10))('delivers every commit once and in order: seed %i', async (seed) => {
    await follow(seed, (['interval', 'adaptive', 'onDemand'] as const)[seed % 3] as Polling);
  });
});
