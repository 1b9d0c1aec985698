/** Expired rows are deleted by any of several instances, never early by a wrong clock, and at no cost while there are none. */
import { describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const minute = 60_000;
const afterMs = 10 * minute;
const lasting = {
  name: 'sessions',
  version: 1,
  fields: { id: { typeId: Types.int32 }, seen: { typeId: Types.timestamp }, photo: { typeId: Types.blob } },
  primaryKey: 'id',
  indexes: ['seen'],
} as const;
const sessions = { ...lasting, expireAfter: { field: 'seen', seconds: afterMs / 1000 } } as const;

/** One store, whose clock is right, and instances on it. */
class Cluster {
  readonly clock = new VirtualEnvironment({ seed: 'store' });
  readonly store = new MemoryDriver({ environment: this.clock });

  async open(nodeId: number, options: Partial<StoreDbOptions> = {}, schema: object = sessions): Promise<Node> {
    const environment = this.clock.fork({ seed: `node ${nodeId}` });
    const driver = environment.connect(this.store);
    const given = { dbPrefix: 'db', nodeId, logLevel: 'silent', driver, blockSizeBytes: 1024, ...options } as const;
    const db = createDatabase({ writeForwardInterval: 5000, ...given }, environment);
    db.registerSchema(schema as typeof sessions);
    await this.clock.run(db.start());
    return { db, environment };
  }
}

interface Node {
  readonly db: Database;
  readonly environment: VirtualEnvironment;
}

describe('an idle instance with a table whose rows expire', () => {
  it.each(['adaptive', 'interval', 'onDemand'] as const)(
    'makes no more requests than one without, with polling %s',
    async (polling) => {
      const requests: unknown[] = [];
      for (const schema of [lasting, sessions]) {
        const cluster = new Cluster();
        const { db } = await cluster.open(1, { polling }, schema);
        const batch = db.batch();
        const soon = cluster.clock.now() + 24 * 60 * minute;
        for (let id = 0; id < 500; id++) void batch.insert(lasting, { id, seen: new Date(soon + id) });
        await cluster.clock.run(batch.flush());
        await cluster.clock.run(db.checkpoint());
        await cluster.clock.advance(12 * 60 * minute);
        // The schema is longer.
        requests.push({ ...db.stats().requests, bytesWritten: 0 });
        await cluster.clock.run(db.stop());
      }
      expect(requests[1]).toEqual(requests[0]);
    },
  );
});

/**
 * Random writes by instances with wrong clocks, held against the right clock: returns how many rows were deleted since they had expired,
 * and how early the earliest was, in milliseconds; negative if none was.
 */
async function history(seed: number, skewsMs: readonly number[]): Promise<{ deleted: number; earliestMs: number }> {
  const cluster = new Cluster();
  const { clock } = cluster;
  const random = new SeededRandom(`deletion ${seed}`);
  const below = (count: number): number => Math.floor(random.next() * count);
  const nodes: [Node, ...Node[]] = [await cluster.open(1)];
  for (let nodeId = 2; nodeId <= skewsMs.length; nodeId++) nodes.push(await cluster.open(nodeId));
  for (const [i, skewMs] of skewsMs.entries()) (nodes[i] as Node).environment.skewMs = skewMs;
  /** The times of the rows as of each commit. */
  const rows = new Map<number, number | undefined>();
  const result = { deleted: 0, earliestMs: Number.NEGATIVE_INFINITY };
  let position = 0;
  const observer = await cluster.open(99, { role: 'replica' });
  const follow = async (): Promise<void> => {
    await clock.run(observer.db.refresh());
    if (observer.db.position <= position) return;
    for await (const commit of observer.db.changes({ after: position })) {
      for (const change of await clock.run(commit.toArray())) {
        if (change.table !== 'sessions') continue;
        const id = change.key as number;
        if ('expired' in change) {
          result.deleted++;
          const endMs = (rows.get(id) ?? Number.POSITIVE_INFINITY) + afterMs;
          result.earliestMs = Math.max(result.earliestMs, endMs - clock.now());
        }
        rows.set(id, (change.row?.['seen'] as Date | undefined)?.getTime());
      }
      position = commit.position;
      if (position >= observer.db.position) break;
    }
  };
  for (let step = 0; step < 60; step++) {
    const { db } = nodes[below(nodes.length)] as Node;
    const batch = db.batch();
    for (let left = below(4); left > 0; left--) {
      // From rows that have expired already to some that expire in a quarter of an hour.
      void batch.upsert(sessions, { id: below(40), seen: new Date(clock.now() + (below(30) - 15) * minute) });
    }
    if (below(5) === 0) void batch.delete(sessions, below(40));
    await clock.run(batch.flush());
    for (let left = below(4); left >= 0; left--) {
      await follow();
      await clock.advance(below(90) * 1000);
    }
    await follow();
  }
  // Each row goes in the end.
  await clock.advance(60 * minute);
  await follow();
  expect([...rows.values()].filter((seenMs) => seenMs !== undefined)).toEqual([]);
  expect(await clock.run(nodes[0].db.verify())).toMatchObject({ ok: true });
  for (const { db } of [...nodes, observer]) await clock.run(db.stop());
  return result;
}

describe('instances with wrong clocks', () => {
  it.each([
    [1, [0, 0]],
    [2, [4.9 * minute, -4.9 * minute, 0]],
    [3, [-4.9 * minute, 4.9 * minute]],
    // The clock of the store tells that this one is wrong.
    [4, [60 * minute, 0]],
    [5, [240 * minute]],
  ] as const)(
    'delete every row that has expired, and none early (seed %i, clocks off by %j ms)',
    async (seed, skews) => {
      const { deleted, earliestMs } = await history(seed, skews);
      expect(deleted).toBeGreaterThan(10);
      // By the right clock, rows stay for five minutes, give or take what the store's answers take.
      expect(earliestMs).toBeLessThan(-4 * minute);
    },
  );
});
