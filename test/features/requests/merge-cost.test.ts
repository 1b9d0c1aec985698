/**
 * What it costs to merge k commits of others, on a table of many blocks with two indexes: a read for each commit, a read
 * and a write for each block that changes, and the write of Block 0.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { ObservedRequest } from '../../../src/storage/wrap/observed-driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const people = {
  name: 'people',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    city: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
  },
  primaryKey: 'id',
  indexes: ['city', 'age'],
} as const;
const rows = 20_000;

let environment: VirtualEnvironment;
let store: MemoryDriver;
let writer: Database;

function make(nodeId: number, onRequest?: (request: ObservedRequest) => void, driver: StorageDriver = store): Database {
  const options = { dbPrefix: 'db', nodeId, logLevel: 'silent', polling: 'onDemand' } as const;
  const given = {
    ...options,
    ...(onRequest && { onRequest }),
    mergePolicy: { minCommits: 2000, maxWaitMs: 86_400_000 },
  };
  const db = createDatabase({ ...given, driver: environment.connect(driver) }, environment);
  db.registerSchema(people);
  return db;
}

beforeAll(async () => {
  environment = new VirtualEnvironment();
  store = new MemoryDriver({ environment });
  writer = make(0);
  await environment.run(writer.start());
  const batch = writer.batch();
  for (let id = 0; id < rows; id++)
    void batch.insert(people, { id, name: `name ${id}`, city: `c${id % 997}`, age: id % 90 });
  await environment.run(batch.flush());
  await environment.run(writer.checkpoint());
});

let commits = 0;

/** Commits that each change one row: its name, and its city where `indexed`. No row gets longer, so that no leaf splits. */
async function commit(count: number, indexed: boolean): Promise<void> {
  for (let i = 0; i < count; i++) {
    const batch = writer.batch();
    const id = (commits++ * 7919) % rows;
    void batch.update(people, { id, name: `n${i}`, ...(indexed ? { city: 'd' } : {}) });
    await environment.run(batch.flush());
  }
}

interface MergeCost {
  readonly commitsRead: number;
  /** Reads of slots with nothing in them. */
  readonly missing: number;
  readonly blocksRead: number;
  readonly blocksWritten: number;
  readonly block0Read: number;
  readonly block0Written: number;
  readonly all: number;
}

async function costOf(merger: Database, seen: ObservedRequest[]): Promise<MergeCost> {
  seen.length = 0;
  await environment.run(merger.checkpoint());
  expect(merger.stats().merges).toMatchObject({ merges: 1, lostMerges: 0 });
  const count = (kind: string, key: RegExp, status?: string): number =>
    seen.filter(
      (request) => request.kind === kind && key.test(request.key) && (status ?? request.status) === request.status,
    ).length;
  const blocksWritten = count('put', /\/(data|indexes)\//, 'written');
  expect(blocksWritten).toBe(merger.stats().merges?.blocksWritten);
  return {
    commitsRead: count('get', /\/committed\//, 'found'),
    missing: count('get', /\/committed\//, 'missing'),
    blocksRead: count('get', /\/(data|indexes)\//),
    blocksWritten,
    block0Read: count('get', /\/block0$/),
    block0Written: count('put', /\/block0$/, 'written'),
    all: seen.length,
  };
}

describe('a merge', () => {
  it.each([
    [1, false],
    [2, false],
    [4, false],
    [7, false],
    [1, true],
    [3, true],
    [7, true],
  ])('of %i commits of others (indexed: %s)', async (k, indexed) => {
    const seen: ObservedRequest[] = [];
    const merger = make(1, (request) => seen.push(request));
    await environment.run(merger.start());
    await commit(k, indexed);
    const cost = await costOf(merger, seen);
    expect(cost.commitsRead).toBe(k);
    // What any refresh costs: the slot that is not there, and Block 0. From the fifth commit on slots are read ahead.
    expect(cost.missing).toBeLessThanOrEqual(k < 4 ? 1 : k / 2);
    expect(cost.block0Read).toBe(1);
    // One leaf for each row, since they are far apart; the leaf of the index that it leaves, and that it comes to.
    expect(cost.blocksRead).toBeLessThanOrEqual(cost.blocksWritten);
    expect(cost.blocksWritten).toBeGreaterThan(0);
    expect(cost.blocksWritten).toBeLessThanOrEqual(indexed ? 2 * k + 1 : k);
    expect(cost.block0Written).toBe(1);
    expect(cost.all).toBe(
      cost.commitsRead + cost.missing + cost.block0Read + cost.blocksRead + cost.blocksWritten + cost.block0Written,
    );
  });

  it('of many commits reads each of them once, and reads no more than half as many missing slots', async () => {
    const seen: ObservedRequest[] = [];
    const merger = make(1, (request) => seen.push(request));
    await environment.run(merger.start());
    await commit(100, false);
    const cost = await costOf(merger, seen);
    expect(cost.commitsRead).toBe(100);
    expect(cost.missing).toBeLessThanOrEqual(16);
    expect(cost.block0Read).toBeLessThanOrEqual(5);
    expect(cost.blocksRead).toBeLessThanOrEqual(cost.blocksWritten);
  });

  it('of its own flushes reads no commit, and nothing afterwards', async () => {
    await environment.run(writer.refresh());
    await commit(5, false);
    const [from, { blocksWritten = 0 } = {}] = [writer.stats().requests, writer.stats().merges];
    await environment.run(writer.checkpoint());
    const { get, getMissing, getUnchanged, put } = writer.stats().requests;
    // The refresh with which a checkpoint begins; the leaves are in its cache, since it has updated rows in them.
    expect(get - from.get).toBe(0);
    expect(getMissing - from.getMissing).toBe(1);
    expect(getUnchanged - from.getUnchanged).toBe(1);
    expect(put - from.put).toBe((writer.stats().merges?.blocksWritten ?? 0) - blocksWritten + 1);
    expect(put - from.put).toBeLessThanOrEqual(5 + 1);
  });

  it('that others finished first is not repeated from the slots: Block 0 shows it', async () => {
    const late = make(1);
    await environment.run(late.start());
    await commit(60, false);
    await environment.run(writer.checkpoint());
    const from = late.stats().requests;
    await environment.run(late.refresh());
    const { get, getMissing, getUnchanged } = late.stats().requests;
    // It reads some commits, looks at Block 0, and sees that all of them are applied.
    expect(get + getMissing + getUnchanged - from.get - from.getMissing - from.getUnchanged).toBeLessThanOrEqual(12);
    const { tail } = writer.stats().log as { tail: number };
    expect(late.stats().log).toMatchObject({ tail, appliedSeq: tail });
  });
});

describe('opening a database', () => {
  it('with commits that wait reads each of them once, in few round trips', async () => {
    await commit(60, false);
    const seen: ObservedRequest[] = [];
    const slow = new FaultyDriver(store, { environment, faults: { latencyMs: [10, 10] } });
    const db = make(2, (request) => seen.push(request), slow);
    const startedMs = environment.timeline.nowMs;
    await environment.run(db.start());
    expect(await environment.run(db.get(people, 0))).toMatchObject({ id: 0 });
    // Block 0, seven rounds of slots, Block 0 again: of 20 ms each.
    expect(environment.timeline.nowMs - startedMs).toBeLessThanOrEqual(9 * 20);
    expect(seen.filter(({ key, status }) => key.includes('/committed/') && status === 'found')).toHaveLength(60);
    expect(seen.filter(({ status }) => status === 'missing').length).toBeLessThanOrEqual(16);
    await environment.run(writer.checkpoint());
  });
});
