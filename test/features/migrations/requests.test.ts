/** The requests of a migration, and of reads and flushes during it. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { RequestCounts } from '../../../src/storage/wrap/observed-driver.ts';
import { Fleet, intervalMs } from './fleet.ts';
import type { Member } from './fleet.ts';
import { users1, users2 } from './versions.ts';

const kinds = ['get', 'getUnchanged', 'getMissing', 'put', 'putLost', 'delete', 'list', 'errors'] as const;
type Cost = Partial<Record<(typeof kinds)[number], number>>;

let fleet: Fleet;
let two: Member;

function costBetween(from: RequestCounts, to: RequestCounts): Cost {
  const counts = kinds.map((kind) => [kind, to[kind] - from[kind]] as const).filter(([, count]) => count !== 0);
  return Object.fromEntries(counts);
}

async function costOf(call: () => Promise<unknown>): Promise<Cost> {
  const from = two.db.stats().requests;
  await call();
  return costBetween(from, two.db.stats().requests);
}

function generation(): number {
  return two.db.stats().log?.generation ?? 0;
}

/** 2,000 rows of the old version, merged; blocks are as large as usual. */
beforeEach(async () => {
  fleet = new Fleet();
  const one = await fleet.open(1, [users1], { blockSizeBytes: 16_384 });
  const rows = Array.from({ length: 2000 }, (_, id) => ({ id, name: `name ${id}`, age: id % 200, old: `old ${id}` }));
  await fleet.write(one, 'insert', rows);
  await fleet.run(one.db.checkpoint());
  await fleet.run(one.db.stop());
  // It asks nothing by itself, so that whatever it asks is the migration's.
  two = await fleet.open(2, [users1, users2], { polling: 'onDemand', blockSizeBytes: 16_384 });
});

describe('a migration', () => {
  it('costs the blocks that it writes, one write of Block 0 for each chunk, and hardly a read', async () => {
    const target = { rowsPerSecond: 1_000_000, keepOld: false };
    const asking = await costOf(() => fleet.run(two.db.setTargetSchemaVersion('users', 2, target)));
    // A commit, its merge, and what is asked for.
    expect(asking).toEqual({ getUnchanged: 6, getMissing: 4, put: 3 });
    const before = generation();
    const whole = await costOf(() => fleet.advance(360_000));
    expect(await fleet.status(two)).toMatchObject({ state: 'none', from: 2, rowsDone: 2000 });
    // Two for 500 rows each, one for the rest, one that switches, and one that retires, which a word in Block 0 and a commit go before.
    expect(generation() - before).toBe(5);
    // 14 blocks of rows and of two indexes, some of them twice, and four blocks of the old version.
    expect(whole).toEqual({ get: 5, getUnchanged: 5, getMissing: 2, put: 20 });
    // Nothing is left to do, and nothing is asked.
    expect(await costOf(() => fleet.advance(60_000))).toEqual({});
  });

  it('that is held back costs a write of Block 0 and of the blocks that grow for each chunk', async () => {
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 100 }));
    await fleet.advance(6 * intervalMs);
    const done = async (): Promise<number> => (await fleet.status(two)).rowsDone;
    const [chunksBefore, rowsBefore] = [generation(), await done()];
    const cost = await costOf(() => fleet.advance(4 * intervalMs));
    const [chunks, rows] = [generation() - chunksBefore, (await done()) - rowsBefore];
    // A fourth of a slot's rows at a time, however fast it could be.
    expect(rows / chunks).toBe(25);
    expect(rows).toBeLessThanOrEqual(400);
    expect(rows).toBeGreaterThanOrEqual(300);
    // Now and then the next leaf of the old version.
    expect(cost).toEqual({ put: cost.put, get: expect.any(Number) as number });
    expect(cost.get).toBeLessThan(4);
    expect(cost.put).toBeGreaterThanOrEqual(2 * chunks);
    expect(cost.put).toBeLessThan(2.5 * chunks);
  });

  it('adds no request to reads and flushes', async () => {
    const read = async (): Promise<Cost> => {
      const { db } = two;
      return costOf(async () => {
        // What was made, and what was not.
        for (const id of [5, 1500]) expect((await fleet.run(db.get('users', id)))?.['id']).toBe(id);
        expect(await fleet.run(db.query('users').where('age', '=', 7).execute())).toHaveLength(10);
      });
    };
    const write = (id: number): Promise<Cost> => costOf(() => fleet.write(two, 'update', [{ id, email: 'mail' }]));
    await read();
    expect(await read()).toEqual({});
    await fleet.run(two.db.setTargetSchemaVersion('users', 2, { rowsPerSecond: 50 }));
    await fleet.advance(10 * intervalMs);
    const { state, rowsDone } = await fleet.status(two);
    expect(state).toBe('building');
    expect(rowsDone).toBeGreaterThan(100);
    expect(rowsDone).toBeLessThan(1500);
    // What a chunk has written is in memory; nothing else has changed.
    expect(await read()).toEqual({});
    expect(await write(3)).toEqual({ put: 1, getUnchanged: 1 });
    expect(await write(1900)).toEqual({ put: 1, getUnchanged: 1 });
  });
});
