/** When an instance takes its turns, and which commits it merges in them: polling and merge policy, in virtual time. */
import { beforeEach, describe, expect, it } from 'vitest';
import { sleep } from '../../../src/base/env.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { decodeBlock0, encodeBlock0 } from '../../../src/format/block0.ts';
import { commitName } from '../../../src/format/object-names.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { ObservedRequest } from '../../../src/storage/wrap/observed-driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;
const second = 1000;
const hour = 3600 * second;

interface Node {
  readonly db: Database;
  readonly process: VirtualEnvironment;
  /** What was asked of the store, and when, in seconds since the timeline began. */
  readonly requests: { readonly at: number; readonly kind: string; readonly status: string }[];
}

let environment: VirtualEnvironment;
let store: MemoryDriver;
let network: FaultyDriver;

beforeEach(() => {
  // A slot begins with the timeline.
  environment = new VirtualEnvironment({ startMs: 1_700_000_000_000 });
  store = new MemoryDriver({ environment });
  network = new FaultyDriver(store, { environment, faults: { latencyMs: [5, 20] } });
});

/** The calls of a driver as an object of their own, to be replaced one by one. */
function connected(driver: StorageDriver): StorageDriver {
  return {
    name: driver.name,
    get: (key, options) => driver.get(key, options),
    put: (key, body, options) => driver.put(key, body, options),
    delete: (keys, options) => driver.delete(keys, options),
    list: (prefix, options) => driver.list(prefix, options),
  };
}

function make(nodeId: number, options: Partial<StoreDbOptions> = {}, driver: StorageDriver = network): Node {
  const process = environment.fork();
  const requests: Node['requests'] = [];
  const onRequest = ({ kind, status }: ObservedRequest): void => {
    requests.push({ at: Math.round(environment.timeline.nowMs / 100) / 10, kind, status });
  };
  const turns = { polling: 'interval', mergePolicy: { minCommits: 1 } } as const;
  const given = { dbPrefix: 'db', nodeId, logLevel: 'silent', onRequest, ...turns, ...options } as const;
  const db = createDatabase({ ...given, driver: process.connect(driver) }, process);
  db.registerSchema(notes);
  return { db, process, requests };
}

async function start(nodeId: number, options?: Partial<StoreDbOptions>): Promise<Node> {
  const node = make(nodeId, options);
  await environment.run(node.db.start());
  node.requests.length = 0;
  return node;
}

async function insert({ db }: Node, id: number): Promise<void> {
  const batch = db.batch();
  void batch.insert(notes, { id, text: `note ${id}` });
  await environment.run(batch.flush());
}

/** Lets time pass until so many milliseconds since the timeline began. */
async function until(ms: number): Promise<void> {
  await environment.advance(ms - environment.timeline.nowMs);
}

/** Whole seconds in which it looked at the log. */
function looks({ requests }: Node): number[] {
  return [...new Set(requests.filter(({ kind }) => kind === 'get').map(({ at }) => Math.floor(at)))];
}

/** What collecting garbage does: raises the floor over all that is merged, and deletes those slots. */
async function trimLog(): Promise<void> {
  const stored = await store.get('db/block0');
  if (stored.status !== 'found') throw new Error('There is no Block 0');
  const block0 = decodeBlock0(stored.bytes);
  const next = { ...block0, logFloor: block0.appliedSeq, revision: block0.revision + 1, nonce: 'trim' };
  await store.put('db/block0', encodeBlock0(next), { if: 'any' });
  await store.delete((await store.list('db/committed/')).entries.map(({ key }) => key));
}

function appliedSeq({ db }: Node): number | undefined {
  return db.stats().log?.appliedSeq;
}

describe('polling at the interval', () => {
  it('looks at the store in every slot', async () => {
    const node = await start(0);
    await until(31 * second);
    expect(looks(node)).toEqual([5, 10, 15, 20, 25, 30]);
    expect(node.requests).toHaveLength(12);
  });

  it('does not look again a moment later', async () => {
    const node = await start(0, { nodes: [9] });
    await until(8 * second);
    node.requests.length = 0;
    await insert(node, 1);
    await until(12 * second);
    // The flush confirmed its slot at 8 s, so that the turn at 10 s has nothing to ask.
    expect(node.requests.map(({ status }) => status)).toEqual(['written', 'unchanged']);
    await until(16 * second);
    expect(looks(node)).toEqual([8, 15]);
  });
});

describe('adaptive polling', () => {
  it('looks less and less often while nobody asks', async () => {
    const node = await start(0, { polling: 'adaptive' });
    await until(1220 * second);
    expect(looks(node)).toEqual([5, 15, 35, 75, 155, 315, 615, 915, 1215]);
  });

  it('asks for the next slot only, and now and then for Block 0 as well', async () => {
    const node = await start(0, { polling: 'adaptive' });
    await until(hour);
    const statuses = node.requests.map(({ status }) => status);
    expect(statuses.filter((status) => status === 'missing')).toHaveLength(looks(node).length);
    expect(statuses.filter((status) => status === 'unchanged').length).toBeLessThanOrEqual(8);
    expect(statuses.filter((status) => status === 'unchanged').length).toBeGreaterThanOrEqual(5);
  });

  it('sees commits behind a slot that was trimmed', async () => {
    const [idle, other] = [await start(0, { polling: 'adaptive' }), await start(1, { polling: 'onDemand' })];
    await until(hour + 3 * second);
    await insert(other, 1);
    await environment.run(other.db.checkpoint());
    await trimLog();
    await insert(other, 2);
    other.process.freeze();
    expect(idle.db.stats().log?.tail).toBe(0);
    await environment.advance(12 * 60 * second);
    expect(idle.db.stats().log?.tail).toBe(2);
    expect(appliedSeq(idle)).toBe(2);
  });

  it('looks within an interval after a query or a refresh', async () => {
    const node = await start(0, { polling: 'adaptive', nodes: [9] });
    const uses: (() => Promise<unknown>)[] = [
      () => environment.run(node.db.get(notes, 1)),
      () => environment.run(node.db.query(notes).count()),
      () => environment.run(node.db.refresh()),
    ];
    for (const [i, use] of uses.entries()) {
      await until((i + 1) * hour + 1 * second);
      await use();
      node.requests.length = 0;
      await until((i + 1) * hour + 60 * second);
      expect(looks(node).map((at) => at % 3600)).toEqual([5, 15, 35]);
    }
  });

  it('looks no sooner for a flush, which reads nothing', async () => {
    const node = await start(0, { polling: 'adaptive', mergePolicy: { minCommits: 100 } });
    await until(hour);
    const next = looks(node).at(-1) as number;
    await insert(node, 1);
    node.requests.length = 0;
    await until(hour + 299 * second);
    expect(looks(node)).toEqual([next + 300]);
  });

  it('looks within an interval after a query that found its view new enough', async () => {
    const node = await start(0, { polling: 'adaptive' });
    await until(8 * second);
    node.requests.length = 0;
    await environment.run(node.db.get(notes, 1));
    expect(node.requests).toEqual([]);
    await until(33 * second);
    expect(looks(node)).toEqual([10, 20]);
  });

  it('does not hurry for commits of others while nobody here asks', async () => {
    const [idle, busy] = [await start(0, { polling: 'adaptive', nodes: [9] }), await start(1, { nodes: [9] })];
    await until(hour);
    idle.requests.length = 0;
    for (let id = 0; id < 10; id++) {
      await insert(busy, id);
      await environment.advance(60 * second);
    }
    await environment.advance(300 * second);
    expect(looks(idle)).toHaveLength(3);
    expect(idle.db.stats().log?.tail).toBe(10);
  });

  it('merges its own flushes in its next turn, however rarely it looks', async () => {
    const ids = [0, 1, 2, 3];
    const node = await start(2, { polling: 'adaptive', nodes: ids });
    // By now it has asked who shares authority.
    await insert(node, 0);
    await environment.advance(hour);
    for (let tail = 2; tail <= 5; tail++) {
      await environment.advance(hour + tail * second);
      await insert(node, tail);
      await environment.advance(ids.length * 5 * second);
      expect(appliedSeq(node)).toBe(tail);
    }
  });

  it('merges the commits of a node that died', async () => {
    const ids = [0, 1, 2];
    const [dying, ...others] = await Promise.all(
      ids.map((nodeId) => start(nodeId, { polling: 'adaptive', nodes: ids })),
    );
    await until(hour);
    await insert(dying as Node, 1);
    (dying as Node).process.freeze();
    await environment.advance((300 + 3 * 5) * second);
    expect(others.map(appliedSeq)).toContain(1);
  });

  it.each(['adaptive', 'onDemand'] as const)('merges without a look where it is alone (%s)', async (polling) => {
    const node = await start(0, { polling });
    for (let id = 0; id < 3; id++) {
      await environment.advance(hour);
      // A flush on a view that is so old looks before it.
      await environment.run(node.db.refresh());
      await insert(node, id);
      await environment.advance(6 * second);
      await insert(node, 10 + id);
      node.requests.length = 0;
      await environment.advance(9 * second);
      expect(node.requests.map(({ kind, status }) => `${kind} ${status}`)).toEqual(['put written']);
      expect(appliedSeq(node)).toBe(2 * id + 2);
    }
  });

  it('looks before it merges where others read with it, or have turns', async () => {
    const [alone, other] = [await start(0, { polling: 'adaptive' }), await start(1, { polling: 'adaptive' })];
    await until(hour);
    // The flush shows it that there is another node now.
    await insert(alone, 0);
    alone.requests.length = 0;
    await environment.advance(11 * second);
    expect(alone.requests[0]?.kind).toBe('get');
    await environment.run(other.db.stop());
    await environment.advance(hour);
    await environment.run(alone.db.refresh());
    await environment.advance(9 * second);
    await insert(alone, 1);
    await environment.run(alone.db.query(notes).count());
    alone.requests.length = 0;
    await environment.advance(9 * second);
    expect(alone.requests[0]?.kind).toBe('get');
  });

  it('merges its commits although it believed to be alone and another node came', async () => {
    const node = await start(0, { polling: 'onDemand' });
    await until(hour);
    await insert(node, 0);
    const other = await start(1, { polling: 'onDemand' });
    await environment.advance(30 * second);
    await environment.run(other.db.refresh());
    expect(appliedSeq(other)).toBe(1);
    expect(await environment.run(other.db.get(notes, 0))).toEqual({ id: 0, text: 'note 0' });
    const stored = await store.get('db/block0');
    expect(stored.status === 'found' && decodeBlock0(stored.bytes).nodes).toEqual([0, 1]);
  });

  it('gets its turn also where the store is slower than an interval', async () => {
    const ids = [0, 1, 2, 3];
    // A refresh takes 140 ms, so that it always ends in the slot of another node.
    network.faults = { latencyMs: [35, 35] };
    const options = { polling: 'adaptive', nodes: ids, writeForwardInterval: 10 } as const;
    const nodes = await Promise.all(ids.map((nodeId) => start(nodeId, options)));
    await environment.advance(200 * second);
    await insert(nodes[0] as Node, 1);
    for (const node of nodes.slice(1)) node.process.freeze();
    await environment.advance(2 * second);
    expect(appliedSeq(nodes[0] as Node)).toBe(1);
  });
});

describe('merging that takes long', () => {
  /** A second commit, flushed while the merge of the first is just over: seconds until it is merged as well. */
  async function untilSecondMerge(nodes: readonly number[]): Promise<number> {
    const node = await start(0, { nodes });
    // Each request that a merge waits for: so that a rest takes 21 seconds at least.
    network.faults = { latencyMs: [7 * second, 7 * second] };
    await insert(node, 1);
    while (appliedSeq(node) === 0) await environment.advance(100);
    network.faults = { latencyMs: [5, 20] };
    await insert(node, 2);
    const from = environment.timeline.nowMs;
    while (appliedSeq(node) === 1) await environment.advance(100);
    return (environment.timeline.nowMs - from) / second;
  }

  it('is followed by a rest of an instance that is alone', async () => {
    const seconds = await untilSecondMerge([0]);
    expect(seconds).toBeGreaterThan(20);
    expect(seconds).toBeLessThan(66);
  });

  it('is followed by none where another waits for this one', async () => {
    expect(await untilSecondMerge([0, 1])).toBeLessThan(15);
  });

  it('does not keep a checkpoint waiting', async () => {
    const node = await start(0, { nodes: [0] });
    network.faults = { latencyMs: [3 * second, 3 * second] };
    await insert(node, 1);
    while (appliedSeq(node) === 0) await environment.advance(100);
    network.faults = { latencyMs: [5, 20] };
    await insert(node, 2);
    await environment.run(node.db.checkpoint());
    expect(appliedSeq(node)).toBe(2);
  });
});

describe('polling on demand', () => {
  it('asks again who shares authority when it is used', async () => {
    const sharing = [9];
    const node = await start(0, { polling: 'onDemand', nodes: () => sharing });
    await insert(node, 1);
    await environment.advance(hour);
    expect(appliedSeq(node)).toBe(0);
    expect(node.process.timerCount).toBe(0);
    sharing[0] = 0;
    await insert(node, 2);
    await environment.advance(2 * 5 * second);
    expect(appliedSeq(node)).toBe(2);
  });

  it('asks for nothing and has no timer while nothing is pending', async () => {
    const node = await start(0, { polling: 'onDemand' });
    await environment.advance(24 * hour);
    // The look at the log that the start did not wait for.
    expect(node.requests.map(({ kind, status }) => `${kind} ${status}`)).toEqual(['get missing']);
    expect(node.process.timerCount).toBe(0);
  });

  it('has a timer until its flushes are merged, and none after that', async () => {
    const ids = [0, 1];
    const node = await start(1, { polling: 'onDemand', nodes: ids });
    await environment.advance(hour);
    await insert(node, 1);
    expect(node.process.timerCount).toBe(1);
    await environment.advance(2 * 5 * second);
    expect(appliedSeq(node)).toBe(1);
    expect(node.process.timerCount).toBe(0);
    node.requests.length = 0;
    await environment.advance(hour);
    expect(node.requests).toEqual([]);
  });

  it('has none either once others have merged it', async () => {
    const policy = { minCommits: 10, maxWaitMs: hour };
    const node = await start(0, { polling: 'onDemand', mergePolicy: policy });
    const other = await start(1, { polling: 'onDemand' });
    await insert(node, 1);
    await environment.run(other.db.checkpoint());
    node.requests.length = 0;
    expect(node.process.timerCount).toBe(1);
    await environment.run(node.db.refresh());
    expect(node.process.timerCount).toBe(0);
    await environment.advance(2 * hour);
    expect(node.requests).toHaveLength(2);
  });

  it('has none left after stop()', async () => {
    const node = await start(0, { polling: 'onDemand' });
    await insert(node, 1);
    await environment.run(node.db.stop());
    expect(node.process.timerCount).toBe(0);
  });

  it('merges a commit whose outcome was asked for later', async () => {
    const node = await start(0, { polling: 'onDemand' });
    const batch = node.db.batch();
    void batch.insert(notes, { id: 1 });
    network.faults = { lateEffect: 1, lateMs: [34_000, 34_000] };
    await expect(environment.run(batch.flush())).rejects.toMatchObject({ code: 'COMMIT_OUTCOME_UNKNOWN' });
    network.faults = {};
    await environment.advance(40 * second);
    expect(node.process.timerCount).toBe(0);
    await environment.run(batch.flush());
    expect(node.process.timerCount).toBe(1);
    await environment.advance(10 * second);
    expect(appliedSeq(node)).toBe(1);
  });

  it('merges again where the first attempt failed', async () => {
    const node = await start(0, { polling: 'onDemand' });
    await insert(node, 1);
    network.faults = { lostRequest: 1 };
    await environment.advance(5 * 60 * second);
    expect(appliedSeq(node)).toBe(0);
    network.faults = {};
    await environment.advance(2 * 60 * second);
    expect(appliedSeq(node)).toBe(1);
    expect(node.process.timerCount).toBe(0);
  });
});

describe.each(['interval', 'adaptive', 'onDemand'] as const)('with polling: %s', (polling) => {
  it('a query shows commits from two intervals ago', async () => {
    const [reader, writer] = [await start(0, { polling, nodes: [9] }), await start(1, { nodes: [9] })];
    for (const idleMs of [0, 7 * second, 61 * second, 5 * hour]) {
      await environment.advance(idleMs);
      for (let id = 1; id <= 5; id++) {
        await insert(writer, (writer.db.stats().log?.tail ?? 0) + 1);
        await environment.advance(10 * second + 1);
        const { tail } = writer.db.stats().log as { tail: number };
        expect(await environment.run(reader.db.get(notes, tail))).toBeDefined();
        expect(await environment.run(reader.db.query(notes).count())).toBe(tail);
      }
    }
  });

  it('a flush on an old view loses no slot, and none that was trimmed', async () => {
    const [node, other] = [await start(0, { polling, nodes: [9] }), await start(1, { nodes: [9] })];
    await insert(node, 0);
    await environment.advance(hour);
    network.faults = {};
    // No time passes until its flush, so that nothing but the flush itself can bring its view up to date.
    node.process.pause(hour);
    await environment.advance(hour - 1);
    for (let id = 1; id <= 200; id++) await insert(other, id);
    await environment.run(other.db.checkpoint());
    await trimLog();
    await insert(node, 1000);
    expect(node.db.stats().requests.putLost).toBe(0);
    expect(await environment.run(other.db.refresh().then(() => other.db.query(notes).count()))).toBe(202);
  });
});

describe('flushes on an old view', () => {
  it('keep their order, whenever they come while it is brought up to date', async () => {
    const node = await start(0, { polling: 'onDemand', nodes: [9] });
    await environment.advance(hour);
    network.faults = { latencyMs: [10, 10] };
    const upsert = async (text: string, delayMs: number): Promise<void> => {
      await sleep(environment, delayMs);
      const batch = node.db.batch();
      void batch.upsert(notes, { id: 1, text });
      await batch.flush();
    };
    // A refresh takes 40 ms.
    const delays = [0, 10, 39, 41, 45, 60, 79, 81, 100];
    await environment.run(Promise.all(delays.map((delayMs) => upsert(`after ${delayMs}`, delayMs))));
    expect(await environment.run(node.db.get(notes, 1))).toMatchObject({ text: 'after 100' });
    const slots = (await store.list('db/committed/')).entries.length;
    const texts: (string | undefined)[] = [];
    for (let slot = 1; slot <= slots; slot++) {
      const stored = await store.get(`db/${commitName(slot)}`);
      if (stored.status === 'found')
        texts.push(
          ...(Buffer.from(stored.bytes)
            .toString('latin1')
            .match(/after \d+/g) ?? []),
        );
    }
    expect(texts).toEqual(delays.map((delayMs) => `after ${delayMs}`));
  });
});

describe('a merge policy', () => {
  it('waits for so many commits', async () => {
    const node = await start(0, { mergePolicy: { minCommits: 3, maxWaitMs: hour } });
    for (const [id, expected] of [0, 0, 3, 3, 3, 6].entries()) {
      await insert(node, id);
      await environment.advance(20 * second);
      expect(appliedSeq(node)).toBe(expected);
      // They are seen all the same.
      expect(await environment.run(node.db.query(notes).count())).toBe(id + 1);
    }
  });

  it.each(['interval', 'adaptive', 'onDemand'] as const)(
    'merges when one has waited long enough (%s)',
    async (polling) => {
      const node = await start(0, { polling, mergePolicy: { minCommits: 100, maxWaitMs: hour } });
      await insert(node, 1);
      await environment.advance(hour / 2);
      await insert(node, 2);
      await environment.advance(hour / 2 - 10 * second);
      expect(appliedSeq(node)).toBe(0);
      await environment.advance(20 * second);
      expect(appliedSeq(node)).toBe(2);
    },
  );

  it('lets an instance on demand sleep until then', async () => {
    const node = await start(0, { polling: 'onDemand', mergePolicy: { minCommits: 100, maxWaitMs: hour } });
    await insert(node, 1);
    node.requests.length = 0;
    await environment.advance(hour - 10 * second);
    expect(node.requests).toEqual([]);
    await environment.advance(20 * second);
    expect(appliedSeq(node)).toBe(1);
  });

  it('does not hold up a commit with staged rows, which are slow to read from', async () => {
    const node = await start(0, { mergePolicy: { minCommits: 100, maxWaitMs: hour }, nodes: [0] });
    const dying = await start(1, { nodes: [0] });
    const batch = dying.db.batch();
    for (let id = 0; id < 9000; id++) void batch.insert(notes, { id, text: 'x'.repeat(1000) });
    await environment.run(batch.flush());
    // Before it can merge what it has flushed.
    dying.process.freeze();
    await environment.advance(60 * second);
    expect(appliedSeq(node)).toBe(1);
  });

  it('does not hold up two dozen large commits of a table, which are slow to read from', async () => {
    const node = await start(0, { mergePolicy: { minCommits: 2000, maxWaitMs: hour }, maxMemoryBytes: 2 ** 30 });
    let commits = 0;
    const commit = async (): Promise<void> => {
      commits++;
      const batch = node.db.batch();
      for (let id = 0; id < 600; id++) void batch.upsert(notes, { id, text: `${commits}${'x'.repeat(1000)}` });
      await environment.run(batch.flush());
      await environment.advance(second);
    };
    for (let turn = 0; turn < 24; turn++) await commit();
    await environment.advance(60 * second);
    expect(appliedSeq(node)).toBe(0);
    await commit();
    expect(appliedSeq(node)).toBe(25);
  });

  it('with nothing but a time waits for that, however many there are', async () => {
    const node = await start(0, { mergePolicy: { maxWaitMs: 60 * second } });
    for (let id = 0; id < 20; id++) await insert(node, id);
    await environment.advance(50 * second);
    expect(appliedSeq(node)).toBe(0);
    await environment.advance(20 * second);
    expect(appliedSeq(node)).toBe(20);
  });

  it('of another node counts from when that node saw the commit', async () => {
    const mergePolicy = { minCommits: 100, maxWaitMs: 60 * second };
    const [late, flushing] = [await start(0, { mergePolicy, nodes: [0] }), await start(1, { nodes: [0] })];
    await insert(flushing, 1);
    late.process.pause(hour);
    await environment.advance(hour + 40 * second);
    expect(appliedSeq(late)).toBe(0);
    await environment.advance(40 * second);
    expect(appliedSeq(late)).toBe(1);
  });

  it('does not hold checkpoint() up', async () => {
    const node = await start(0, { mergePolicy: { minCommits: 100 } });
    await insert(node, 1);
    await environment.run(node.db.checkpoint());
    expect(appliedSeq(node)).toBe(1);
  });

  it('lets flushes wait where merging does not keep up', async () => {
    const slowMerges: StorageDriver = {
      ...connected(network),
      put: async (key, body, options) => {
        if (key.endsWith('block0')) await sleep(environment, 10 * second);
        return network.put(key, body, options);
      },
    };
    const node = make(0, { maxMemoryBytes: 1024 * 1024 }, slowMerges);
    await environment.run(node.db.start());
    let most = 0;
    for (let id = 0; id < 40; id++) {
      const batch = node.db.batch();
      void batch.insert(notes, { id, text: 'x'.repeat(32_768) });
      await environment.run(batch.flush());
      most = Math.max(most, node.db.stats().log?.pendingBytes ?? 0);
    }
    // A quarter of the memory, and the flush that comes on top of it.
    expect(most).toBeLessThan((1024 * 1024) / 4 + 2 * 32_768);
  });

  it('lets no more pile up than there is memory for', async () => {
    const mergePolicy = { minCommits: 2000, maxWaitMs: 24 * hour };
    const node = await start(0, { mergePolicy, maxMemoryBytes: 1024 * 1024 });
    for (let id = 0; id < 20; id++) {
      const batch = node.db.batch();
      void batch.insert(notes, { id, text: 'x'.repeat(16_384) });
      await environment.run(batch.flush());
    }
    await environment.advance(second);
    expect(appliedSeq(node)).toBeGreaterThan(0);
    expect(node.db.stats().log?.pendingBytes).toBeLessThan((1024 * 1024) / 4);
  });
});
