/** How nodes come to share write authority, and lose it: in virtual time, on one store. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { decodeBlock0 } from '../../../src/format/block0.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { sleep } from '../../../src/base/env.ts';
import type { StorageDriver } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const notes = { name: 'notes', version: 1, fields: { id: { typeId: Types.int32 } }, primaryKey: 'id' } as const;
const intervalMs = 5000;

interface Node {
  readonly db: Database;
  readonly process: VirtualEnvironment;
  readonly network: FaultyDriver;
}

let environment: VirtualEnvironment;
let store: MemoryDriver;
let nextId = 1;

beforeEach(() => {
  environment = new VirtualEnvironment({ startMs: 1_700_000_000_000 });
  store = new MemoryDriver({ environment });
  nextId = 1;
});

function make(nodeId: number, options: Partial<StoreDbOptions> = {}, behind: StorageDriver = store): Node {
  const process = environment.fork();
  const network = new FaultyDriver(behind, { environment, faults: { latencyMs: [5, 40] }, seed: `node ${nodeId}` });
  const turns = { polling: 'interval', mergePolicy: { minCommits: 1 } } as const;
  const given = { dbPrefix: 'db', nodeId, logLevel: 'silent', ...turns, ...options } as const;
  const db = createDatabase({ ...given, driver: process.connect(network) }, process);
  db.registerSchema(notes);
  return { db, process, network };
}

async function start(...ids: readonly number[]): Promise<Node[]> {
  const nodes = ids.map((id) => make(id));
  // The first one creates the database.
  for (const { db } of nodes.slice(0, 1)) await environment.run(db.start());
  await environment.run(Promise.all(nodes.map(({ db }) => db.start())));
  return nodes;
}

async function insert({ db }: Node): Promise<void> {
  const batch = db.batch();
  void batch.insert(notes, { id: nextId++ });
  await environment.run(batch.flush());
}

async function block0(): Promise<Block0> {
  const stored = await store.get('db/block0');
  if (stored.status !== 'found') throw new Error('There is no Block 0');
  return decodeBlock0(stored.bytes);
}

async function registered(): Promise<readonly number[]> {
  return (await block0()).nodes;
}

/** Commits once a slot, for so many slots, and says who merged each, and after how many milliseconds. */
async function mergers(writer: Node, slots: number): Promise<{ id: number; lateMs: number }[]> {
  const seen: { id: number; lateMs: number }[] = [];
  for (let i = 0; i < slots; i++) {
    await insert(writer);
    const committedMs = environment.timeline.nowMs;
    const tail = nextId - 1;
    for (;;) {
      await environment.advance(250);
      const { appliedSeq, writer: by } = await block0();
      if (appliedSeq < tail) continue;
      seen.push({ id: by.nodeId, lateMs: environment.timeline.nowMs - committedMs });
      break;
    }
    await environment.advance(intervalMs - (environment.now() % intervalMs) - 100);
  }
  return seen;
}

function lostMerges(nodes: readonly Node[]): number {
  return nodes.reduce((lost, { db }) => lost + (db.stats().merges?.lostMerges ?? 0), 0);
}

describe('nodes that start', () => {
  it('are registered with their first turns', async () => {
    await start(4, 0, 9, 200);
    expect(await registered()).toEqual([4]);
    await environment.advance(4 * intervalMs);
    expect(await registered()).toEqual([0, 4, 9, 200]);
  });

  it('are registered soon also where a whole cluster starts in one moment, at a price', async () => {
    const ids = Array.from({ length: 64 }, (_, i) => i * 3);
    const nodes = await start(...ids);
    await environment.advance(10 * intervalMs);
    expect(await registered()).toEqual(ids);
    const puts = nodes.reduce((sum, { db }) => sum + db.stats().requests.put, 0);
    expect(puts).toBeLessThan(5 * ids.length);
  });

  it('merge one after the other, and lose nothing to each other', async () => {
    const nodes = await start(0, 1, 2, 3);
    await environment.advance(5 * intervalMs);
    const lost = lostMerges(nodes);
    const merged = await mergers(nodes[0] as Node, 24);
    expect(lostMerges(nodes)).toBe(lost);
    for (const id of [0, 1, 2, 3]) expect(merged.filter((by) => by.id === id).length).toBe(6);
    expect(Math.max(...merged.map(({ lateMs }) => lateMs))).toBeLessThan(1.5 * intervalMs);
  });
});

describe('a node that is stopped', () => {
  it('leaves the list, and its turns go round the others', async () => {
    const nodes = await start(0, 1, 2);
    await environment.advance(5 * intervalMs);
    await environment.run((nodes[1] as Node).db.stop());
    expect(await registered()).toEqual([0, 2]);
    const merged = await mergers(nodes[0] as Node, 10);
    expect(new Set(merged.map(({ id }) => id))).toEqual(new Set([0, 2]));
    expect(Math.max(...merged.map(({ lateMs }) => lateMs))).toBeLessThan(1.5 * intervalMs);
  });

  it('is registered again after a start', async () => {
    const [first, second] = (await start(0, 1)) as [Node, Node];
    await environment.advance(3 * intervalMs);
    await environment.run(second.db.stop());
    await environment.run(second.db.start());
    expect(await registered()).toEqual([0]);
    await environment.advance(2 * intervalMs);
    expect(await registered()).toEqual([0, 1]);
    await environment.run(first.db.stop());
    await environment.run(second.db.stop());
    expect(await registered()).toEqual([]);
  });

  it('stops also where the store will not have it said', async () => {
    const [node] = (await start(0)) as [Node];
    node.network.faults = { refused: 1 };
    await environment.run(node.db.stop());
    expect(node.process.timerCount).toBe(0);
    expect(await registered()).toEqual([0]);
  });

  it('is listed again if another process has its id', async () => {
    const [first, twin] = (await start(7, 7)) as [Node, Node];
    await environment.run(first.db.stop());
    expect(await registered()).toEqual([]);
    await environment.advance(2 * intervalMs);
    expect(await registered()).toEqual([7]);
    await insert(twin);
    await environment.advance(2 * intervalMs);
    expect((await block0()).appliedSeq).toBe(1);
  });
});

describe('a node that dies', () => {
  it('keeps commits waiting for one slot, once; after that the next node takes its turns', async () => {
    const nodes = await start(0, 1, 2, 3);
    await environment.advance(5 * intervalMs);
    (nodes[2] as Node).process.freeze();
    const merged = await mergers(nodes[0] as Node, 24);
    const late = merged.filter(({ lateMs }) => lateMs > 1.5 * intervalMs);
    expect(late.length).toBeLessThanOrEqual(1);
    expect(Math.max(...merged.map(({ lateMs }) => lateMs))).toBeLessThan(2.5 * intervalMs);
    expect(merged.map(({ id }) => id)).not.toContain(2);
  });

  it('is struck off the list in the end, and enters it again when it comes back', async () => {
    const nodes = await start(0, 1, 2, 3);
    await environment.advance(5 * intervalMs);
    (nodes[2] as Node).process.freeze();
    await mergers(nodes[0] as Node, 24);
    expect(await registered()).toEqual([0, 1, 3]);
    const again = make(2);
    await environment.run(again.db.start());
    await environment.advance(3 * intervalMs);
    expect(await registered()).toEqual([0, 1, 2, 3]);
    expect((await mergers(nodes[0] as Node, 12)).map(({ id }) => id)).toContain(2);
  });

  it('takes all others with it, and the last one does everything', async () => {
    const nodes = await start(0, 1, 2, 3, 4, 5, 6, 7);
    await environment.advance(6 * intervalMs);
    for (const { process } of nodes.slice(1)) process.freeze();
    const merged = await mergers(nodes[0] as Node, 16);
    // Until each of the others has let a turn pass.
    expect(merged.slice(8).every(({ id, lateMs }) => id === 0 && lateMs < 1.5 * intervalMs)).toBe(true);
    expect(merged.every(({ lateMs }) => lateMs < 9 * intervalMs)).toBe(true);
  });

  it('dies with its neighbours, half of all nodes: commits never wait for more than a few slots', async () => {
    const nodes = await start(...Array.from({ length: 32 }, (_, i) => i));
    await environment.advance(8 * intervalMs);
    for (const { process } of nodes.slice(8, 24)) process.freeze();
    const lost = lostMerges(nodes);
    const merged = await mergers(nodes[0] as Node, 40);
    expect(Math.max(...merged.map(({ lateMs }) => lateMs))).toBeLessThan(4.5 * intervalMs);
    expect(lostMerges(nodes) - lost).toBeLessThan(40);
  });

  it('was only paused: it takes its turns again, though others have taken them', async () => {
    const nodes = await start(0, 1, 2);
    await environment.advance(5 * intervalMs);
    const paused = nodes[1] as Node;
    paused.process.pause(12 * intervalMs);
    await mergers(nodes[0] as Node, 12);
    const merged = await mergers(nodes[0] as Node, 18);
    expect(merged.filter(({ id }) => id === 1).length).toBeGreaterThan(2);
    expect(await registered()).toEqual([0, 1, 2]);
  });
});

describe('clocks that are wrong', () => {
  it('cost lost merges, and no commit', async () => {
    const nodes = await start(0, 1, 2);
    (nodes[1] as Node).process.skewMs = 2 * intervalMs + 1700;
    (nodes[2] as Node).process.skewMs = -86_400_000 - 3300;
    await environment.advance(5 * intervalMs);
    await mergers(nodes[0] as Node, 12);
    await environment.run((nodes[2] as Node).db.refresh());
    expect(await environment.run((nodes[2] as Node).db.query(notes).count())).toBe(12);
  });
});

describe('the option nodes', () => {
  it('names the nodes that share authority, even others than the registered ones', async () => {
    const only = [1];
    const nodes = [0, 1, 2].map((id) => make(id, { nodes: async () => only }));
    for (const { db } of nodes) await environment.run(db.start());
    await environment.advance(4 * intervalMs);
    expect(new Set((await mergers(nodes[0] as Node, 6)).map(({ id }) => id))).toEqual(new Set([1]));
    only.splice(0, 1, 0, 2);
    expect(new Set((await mergers(nodes[0] as Node, 8)).map(({ id }) => id))).toEqual(new Set([0, 2]));
  });
});

describe('a node that is stopped while it enters the list', () => {
  it('is not entered by a request that was under way', async () => {
    await start(0);
    const seen = { puts: 0 };
    const slow: StorageDriver = {
      name: 'slow',
      certified: true,
      get: (key, options) => store.get(key, options),
      put: async (key, body, options) => {
        // Whoever has put it may give it up; it lands all the same.
        if (key.endsWith('block0') && seen.puts++ === 0) await sleep(environment, 3000);
        return store.put(key, body, options);
      },
      delete: (keys, options) => store.delete(keys, options),
      list: (prefix, options) => store.list(prefix, options),
    };
    const { db } = make(1, {}, slow);
    await environment.run(db.start());
    while (seen.puts === 0) await environment.advance(10);
    await environment.run(db.stop());
    expect(await registered()).toEqual([0]);
    await environment.advance(20_000);
    expect(await registered()).toEqual([0]);
  });
});
