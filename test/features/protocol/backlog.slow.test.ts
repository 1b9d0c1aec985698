/** More commits wait to be merged than a node should hold. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { Types } from '../../../src/format/types.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';
import { refused, ScriptedDriver } from './scripted-driver.ts';

const files = {
  name: 'files',
  version: 1,
  fields: { id: { typeId: Types.int32 }, content: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;

/** Of a small node: it merges from 128 KiB on, and takes no more beyond 256 KiB. */
const small = { maxMemoryBytes: 1024 * 1024, nodes: [9] };
const fullBytes = 256 * 1024;
const fileBytes = 20_000;

interface Node {
  readonly db: Database;
  readonly driver: ScriptedDriver;
  readonly process: VirtualEnvironment;
}

let environment: VirtualEnvironment;
let store: MemoryDriver;
let most: number;

beforeEach(() => {
  environment = new VirtualEnvironment({ startMs: 1_700_000_000_000 });
  store = new MemoryDriver({ environment });
  most = 0;
});

function make(nodeId: number, options: Partial<StoreDbOptions> = {}): Node {
  const process = environment.fork();
  const network = new FaultyDriver(store, { environment, faults: { latencyMs: [2, 8] }, seed: `node ${nodeId}` });
  const onRequest = (): void => {
    if (options.maxMemoryBytes === small.maxMemoryBytes) most = Math.max(most, db.stats().log?.pendingBytes ?? 0);
  };
  const given = { dbPrefix: 'db', nodeId, logLevel: 'silent', writeForwardInterval: 60_000, onRequest } as const;
  const driver = new ScriptedDriver(process.connect(network), 'db');
  const db = createDatabase({ ...given, ...options, driver }, process);
  db.registerSchema(files);
  return { db, driver, process };
}

/** From now on the store takes no new Block 0, as where a policy forgot it. */
function refuseBlock0({ driver }: Node): void {
  driver.onPut(/^block0$/, refused, Number.POSITIVE_INFINITY);
}

async function start(nodeId: number, options: Partial<StoreDbOptions> = {}): Promise<Node> {
  const node = make(nodeId, options);
  await environment.run(node.db.start());
  return node;
}

/** Commits as many files, each by a flush of its own. */
async function commit({ db }: Node, from: number, count: number, sizeBytes = fileBytes): Promise<void> {
  for (let id = from; id < from + count; id++) {
    const batch = db.batch();
    void batch.insert(files, { id, content: 'x'.repeat(sizeBytes) });
    await environment.run(batch.flush());
  }
}

function pendingBytes({ db }: Node): number {
  return db.stats().log?.pendingBytes ?? 0;
}

/** A node with room for everything, which never merges of its own accord. */
function hoarder(): Promise<Node> {
  return start(0, { nodes: [9] });
}

describe('a backlog that is slow to read from', () => {
  it('is merged, though there is room for it', async () => {
    const writer = await hoarder();
    await commit(writer, 0, 24, 300_000);
    await environment.advance(1000);
    expect(writer.db.stats().log?.pendingCommits).toBe(24);
    await commit(writer, 24, 1, 300_000);
    await environment.advance(1000);
    expect(writer.db.stats().log?.pendingCommits).toBe(0);
  });
});

describe('a backlog that is too large to hold', () => {
  it('is worked off step by step when the database is opened', async () => {
    const writer = await hoarder();
    await commit(writer, 0, 200);
    expect(pendingBytes(writer)).toBeGreaterThan(10 * fullBytes);
    const node = await start(1, small);
    expect(node.db.stats().merges?.merges).toBeGreaterThan(10);
    expect(node.db.stats().log?.tail).toBe(200);
    expect(await environment.run(node.db.query(files).count())).toBe(200);
    expect(most).toBeLessThan(fullBytes + 2 * fileBytes);
  });

  it('is worked off by a query that has to catch up with it', async () => {
    const [writer, node] = [await hoarder(), await start(1, { ...small, polling: 'onDemand' })];
    await commit(writer, 0, 100);
    await environment.advance(600_000);
    expect(await environment.run(node.db.query(files).count())).toBe(100);
    expect(node.db.stats().merges?.merges).toBeGreaterThan(5);
    expect(most).toBeLessThan(fullBytes + 2 * fileBytes);
  });

  it('is worked off together, by nodes that find it at the same time', async () => {
    const writer = await hoarder();
    await commit(writer, 0, 100);
    const nodes = [make(1, small), make(2, small), make(3, small)];
    await environment.run(Promise.all(nodes.map(({ db }) => db.start())));
    for (const { db } of nodes) expect(await environment.run(db.query(files).count())).toBe(100);
    const steps = nodes.map(({ db }) => db.stats().merges?.merges ?? 0);
    const lost = nodes.map(({ db }) => db.stats().merges?.lostMerges ?? 0);
    expect(steps.reduce((a, b) => a + b)).toBeGreaterThan(5);
    // They leave it to each other rather than doing everything three times.
    expect(lost.reduce((a, b) => a + b)).toBeLessThan(steps.reduce((a, b) => a + b));
  });

  it('cannot be shown where it cannot be merged, and is once it can', async () => {
    const writer = await hoarder();
    await commit(writer, 0, 40);
    const node = make(1, small);
    refuseBlock0(node);
    const failed = environment.run(node.db.start());
    await expect(failed).rejects.toMatchObject({ code: 'BACKPRESSURE', cause: { code: 'STORAGE' } });
    await expect(failed).rejects.toThrow(/^\d+ commits \(0\.3 MiB\) after slot 0 wait to be merged/);
    node.driver.heal();
    await environment.run(node.db.start());
    expect(await environment.run(node.db.query(files).count())).toBe(40);
  });

  it('may consist of one commit', async () => {
    const writer = await hoarder();
    await commit(writer, 0, 3, 2 * fullBytes);
    const node = await start(1, small);
    expect(await environment.run(node.db.query(files).count())).toBe(3);
  });
});

describe('a node whose commits cannot be merged', () => {
  it('refuses flushes once there is no room, loses nothing, and takes them again when there is', async () => {
    const node = await start(1, small);
    refuseBlock0(node);
    let failure: Error | undefined;
    let id = 0;
    for (; failure === undefined && id < 100; id++) {
      failure = await commit(node, id, 1).then(
        () => undefined,
        (error: unknown) => error as Error,
      );
    }
    expect(failure).toMatchObject({ code: 'BACKPRESSURE' });
    expect(failure?.message).toContain('Nothing was written: flush the batch again later.');
    expect(pendingBytes(node)).toBeGreaterThan(fullBytes);
    expect(pendingBytes(node)).toBeLessThan(fullBytes + 2 * fileBytes);
    const committed = id - 1;
    expect(await environment.run(node.db.query(files).count())).toBe(committed);
    expect(node.db.stats().log?.tail).toBe(committed);
    node.driver.heal();
    await commit(node, committed, 20);
    expect(await environment.run(node.db.query(files).count())).toBe(committed + 20);
    expect(most).toBeLessThan(fullBytes + 2 * fileBytes);
  });

  it('merges out of turn as soon as there is much', async () => {
    const node = await start(1, small);
    await commit(node, 0, 30);
    await environment.advance(1000);
    expect(pendingBytes(node)).toBeLessThan(fullBytes / 2 + 2 * fileBytes);
    expect(node.db.stats().merges?.merges).toBeGreaterThan(2);
  });

  it('holds a bounded number of commits, however small they are', async () => {
    const node = await start(1, { nodes: [9] });
    refuseBlock0(node);
    await commit(node, 0, 4000, 1);
    await expect(commit(node, 4000, 1, 1)).rejects.toMatchObject({ code: 'BACKPRESSURE' });
    node.driver.heal();
    await commit(node, 4000, 1, 1);
    expect(node.db.stats().log?.appliedSeq).toBeGreaterThanOrEqual(4000);
  }, 60_000);
});
