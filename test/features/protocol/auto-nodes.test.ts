/** Instances that take their node ids themselves: in virtual time, on one store. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { NoFreeNodeIdError } from '../../../src/base/errors.ts';
import { staleAfterMs } from '../../../src/block0/node-identity.ts';
import { decodeBlock0, encodeBlock0 } from '../../../src/format/block0.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const notes = { name: 'notes', version: 1, fields: { id: { typeId: Types.int32 } }, primaryKey: 'id' } as const;
const intervalMs = 5000;

interface Process {
  readonly db: Database;
  readonly environment: VirtualEnvironment;
  readonly requests: string[];
}

let environment: VirtualEnvironment;
let store: MemoryDriver;
let nextRow = 1;

beforeEach(() => {
  environment = new VirtualEnvironment({ startMs: 1_700_000_000_000 });
  store = new MemoryDriver({ environment });
  nextRow = 1;
});

function make(nodeId: number | 'auto' = 'auto', options: Partial<StoreDbOptions> = {}): Process {
  const process = environment.fork();
  const requests: string[] = [];
  const db = createDatabase(
    {
      dbPrefix: 'db',
      nodeId,
      driver: process.connect(store),
      logLevel: 'silent',
      polling: 'interval',
      onRequest: ({ kind, key, status }) => requests.push(`${kind} ${key.slice(3).replace(/\/.*/, '')} ${status}`),
      ...options,
    },
    process,
  );
  db.registerSchema(notes);
  return { db, environment: process, requests };
}

async function start(nodeId: number | 'auto' = 'auto', options: Partial<StoreDbOptions> = {}): Promise<Process> {
  const process = make(nodeId, options);
  await environment.run(process.db.start());
  return process;
}

function idOf({ db }: Process): number | undefined {
  return db.stats().log?.nodeId;
}

async function insert({ db }: Process): Promise<number> {
  const id = nextRow++;
  const batch = db.batch();
  void batch.insert(notes, { id });
  await environment.run(batch.flush());
  return id;
}

async function block0(): Promise<Block0> {
  const stored = await store.get('db/block0');
  if (stored.status !== 'found') throw new Error('There is no Block 0');
  return decodeBlock0(stored.bytes);
}

async function change(changed: (present: Block0) => Partial<Block0>): Promise<void> {
  const present = await block0();
  await store.put('db/block0', encodeBlock0({ ...present, ...changed(present), revision: present.revision + 1 }), {
    if: 'any',
  });
}

async function rows({ db }: Process): Promise<number[]> {
  await environment.run(db.refresh());
  const found = await environment.run(db.query(notes).execute());
  return found.map(({ id }) => id);
}

/** Every row that was ever inserted. */
function allRows(): number[] {
  return Array.from({ length: nextRow - 1 }, (_, i) => i + 1);
}

describe("nodeId: 'auto'", () => {
  it('takes id 0 with the write that creates the database', async () => {
    const process = await start();
    expect(idOf(process)).toBe(0);
    const { nodes, autoNodes } = await block0();
    expect(nodes).toEqual([0]);
    expect(autoNodes?.map(({ nodeId }) => nodeId)).toEqual([0]);
  });

  it.each(['interval', 'adaptive', 'onDemand'] as const)(
    'takes no request more than a configured id, with polling %s',
    async (polling) => {
      const counts: string[][] = [];
      for (const nodeId of [1, 'auto'] as const) {
        store = new MemoryDriver({ environment });
        const first = await start(0);
        await insert(first);
        await environment.run(first.db.checkpoint());
        await environment.run(first.db.stop());
        const process = await start(nodeId, { polling });
        await environment.advance(60_000);
        await insert(process);
        await environment.advance(60_000);
        await environment.run(process.db.stop());
        counts.push(process.requests.toSorted());
      }
      expect(counts[1]).toEqual(counts[0]);
    },
  );

  it('opens with two reads, and writes nothing before its first turn', async () => {
    await start(0);
    await environment.advance(60_000);
    const process = await start();
    expect(process.requests).toEqual(['get block0 found', 'get committed missing']);
    expect(idOf(process)).toBe(1);
    await environment.advance(2 * intervalMs);
    expect((await block0()).nodes).toEqual([0, 1]);
  });

  it('gives each of many that start at once an id of its own', async () => {
    await start(7);
    const processes = Array.from({ length: 16 }, () => make());
    await environment.run(Promise.all(processes.map(({ db }) => db.start())));
    await environment.advance(20 * intervalMs);
    const ids = processes.map(idOf);
    expect(ids.toSorted((a = 0, b = 0) => a - b)).toEqual([
      0,
      1,
      2,
      3,
      4,
      5,
      6,
      ...Array.from({ length: 9 }, (_, i) => i + 8),
    ]);
    const { nodes, autoNodes = [] } = await block0();
    expect(nodes).toHaveLength(17);
    expect(new Set(autoNodes.map(({ instance }) => instance)).size).toBe(16);
  });

  it('gives two that merge for the first time at once two ids', async () => {
    const processes = [await start('auto', { polling: 'onDemand' }), await start('auto', { polling: 'onDemand' })];
    for (const process of processes) await insert(process);
    await environment.run(Promise.all(processes.map(({ db }) => db.checkpoint())));
    for (const process of processes) {
      await insert(process);
      await environment.run(process.db.checkpoint());
    }
    expect((await block0()).nodes).toEqual([0, 1]);
    expect(new Set(processes.map(idOf))).toEqual(new Set([0, 1]));
  });

  it('gives the id back when it is stopped, and the next one takes it', async () => {
    await start();
    const second = await start();
    await environment.advance(4 * intervalMs);
    expect(idOf(second)).toBe(1);
    await environment.run(second.db.stop());
    expect((await block0()).nodes).toEqual([0]);
    expect((await block0()).autoNodes).toHaveLength(1);
    const third = await start();
    await environment.advance(4 * intervalMs);
    expect(idOf(third)).toBe(1);
  });

  it('keeps its id while it runs, whether or not anything happens', async () => {
    const idle = await start();
    await environment.advance(3 * staleAfterMs);
    const other = await start();
    await environment.advance(4 * intervalMs);
    expect([idOf(idle), idOf(other)]).toEqual([0, 1]);
    expect((await block0()).nodes).toEqual([0, 1]);
  });

  it('gives no sign while it is idle at the default polling, and takes another id when it is used again', async () => {
    const idle = await start('auto', { polling: 'adaptive' });
    await environment.advance(2 * staleAfterMs);
    const other = await start();
    await environment.advance(4 * intervalMs);
    expect(idOf(other)).toBe(0);
    for (let i = 0; i < 10; i++) {
      await environment.run(idle.db.query(notes).count());
      await environment.advance(intervalMs);
    }
    expect([idOf(idle), idOf(other)]).toEqual([1, 0]);
    await insert(idle);
    await environment.run(idle.db.checkpoint());
    expect(await rows(other)).toEqual(allRows());
  });

  it('writes Block 0 six times an hour at most while nothing happens', async () => {
    const idle = await start();
    await environment.advance(10 * intervalMs);
    idle.requests.length = 0;
    await environment.advance(3_600_000);
    expect(idle.requests.filter((request) => request.startsWith('put')).length).toBeLessThanOrEqual(6);
  });

  it('takes the id of one that died, once that has given no sign for half an hour', async () => {
    const survivor = await start(9);
    const dead = await start();
    await environment.advance(4 * intervalMs);
    expect(idOf(dead)).toBe(0);
    dead.environment.freeze();
    const next = await start();
    await environment.advance(4 * intervalMs);
    expect(idOf(next)).toBe(1);
    await environment.advance(staleAfterMs);
    const later = await start();
    await environment.advance(4 * intervalMs);
    expect(idOf(later)).toBe(0);
    expect((await block0()).nodes).toEqual([0, 1, 9]);
    expect(idOf(survivor)).toBe(9);
  });

  it('is safe where one was paused while another took its id, and takes another id then', async () => {
    const paused = await start();
    await environment.advance(4 * intervalMs);
    const before = await insert(paused);
    paused.environment.pause(2 * staleAfterMs);
    await environment.advance(staleAfterMs + 60_000);
    const taker = await start();
    await insert(taker);
    await environment.advance(4 * intervalMs);
    expect([idOf(paused), idOf(taker)]).toEqual([0, 0]);
    // Both go by it while the one that was paused has not looked: its next commit is one of two with this id.
    await environment.advance(staleAfterMs - 60_000);
    await Promise.all([insert(paused), insert(taker)]);
    await environment.run(Promise.all([paused.db.checkpoint(), taker.db.checkpoint()]));
    await environment.advance(6 * intervalMs);
    expect([idOf(paused), idOf(taker)]).toEqual([1, 0]);
    expect((await block0()).nodes).toEqual([0, 1]);
    expect(before).toBe(1);
    for (const process of [paused, taker]) expect(await rows(process)).toEqual(allRows());
    // The one that leaves takes only itself out of the list.
    await environment.run(paused.db.stop());
    expect((await block0()).nodes).toEqual([0]);
  });

  it('gives way to an instance whose options name the id', async () => {
    const auto = await start();
    await environment.advance(4 * intervalMs);
    const configured = await start(0);
    await environment.advance(8 * intervalMs);
    expect([idOf(auto), idOf(configured)]).toEqual([1, 0]);
    const { nodes, autoNodes } = await block0();
    expect([nodes, autoNodes?.map(({ nodeId }) => nodeId)]).toEqual([[0, 1], [1]]);
  });

  it('does not start where all ids are taken, and says so', async () => {
    const only = await start();
    await environment.run(only.db.stop());
    await change(() => ({ nodes: Array.from({ length: 256 }, (_, i) => i) }));
    const refused = make();
    const error: unknown = await environment.run(refused.db.start()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NoFreeNodeIdError);
    expect((error as Error).message).toContain('All 256 node ids of the database are taken');
    // Who is told its id, and who only reads, needs none that is free.
    await start(3);
    await start('auto', { role: 'replica' });
  });

  it('merges, and stays out of the list, where all ids were taken after it had started', async () => {
    const process = await start('auto', { polling: 'onDemand' });
    await insert(process);
    const all = Array.from({ length: 256 }, (_, i) => i);
    await change(() => ({ nodes: all, autoNodes: [] }));
    await environment.run(process.db.checkpoint());
    const { nodes, appliedSeq } = await block0();
    expect([nodes.length, appliedSeq]).toEqual([256, 1]);
    await environment.run(process.db.stop());
    expect((await block0()).nodes).toHaveLength(256);
  });

  it('takes a time far ahead of its own for no sign at all', async () => {
    const dead = await start();
    dead.environment.freeze();
    await change(({ autoNodes = [] }) => ({
      autoNodes: autoNodes.map((node) => ({ ...node, seenMs: node.seenMs + 10 * staleAfterMs })),
    }));
    const next = await start();
    expect(idOf(next)).toBe(0);
  });
});
