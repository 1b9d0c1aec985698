/** Flushes that are called at about the same time share commits: how long they wait, and the cost. */
import { beforeEach, describe, expect, it } from 'vitest';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { sleep } from '../../../src/base/env.ts';
import { Types } from '../../../src/format/types.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { FaultyDriver } from '../../../src/testing/faulty-driver.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.int32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
} as const;

/** What a request takes to the store, and back, in milliseconds. A commit is a put and a read of Block 0. */
const latencyMs = 10;
const commitMs = 4 * latencyMs;

let environment: VirtualEnvironment;
let driver: FaultyDriver;
let db: Database;
let nextId: number;

beforeEach(async () => {
  environment = new VirtualEnvironment({ startMs: 1_700_000_000_000 });
  const store = new MemoryDriver({ environment });
  const faults = { latencyMs: [latencyMs, latencyMs] } as const;
  driver = new FaultyDriver(store, { environment, faults, seed: 'group commit' });
  // It never merges: only commits are looked at here.
  const options = { dbPrefix: 'db', nodeId: 0, nodes: [9], polling: 'onDemand', logLevel: 'silent' } as const;
  db = createDatabase({ ...options, driver }, environment);
  db.registerSchema(notes);
  await environment.run(db.start());
  nextId = 0;
});

async function write(): Promise<void> {
  const batch = db.batch();
  void batch.insert(notes, { id: nextId++, text: 'something' });
  await batch.flush();
}

/** So many clients, each of which writes so often, and before each write thinks for a while, and reads more or less. */
function clients(count: number, times: number, thinkMs: (client: number) => number): Promise<unknown> {
  const work = async (client: number): Promise<void> => {
    for (let i = 0; i < times; i++) {
      const pause = thinkMs(client);
      if (pause > 0) await sleep(environment, pause);
      for (let reads = 0; reads < client; reads++) await db.get('notes', reads);
      await write();
    }
  };
  return Promise.all(Array.from({ length: count }, (_, client) => work(client)));
}

/** How many milliseconds something takes, and how many commits it makes. */
async function costOf(work: () => Promise<unknown>): Promise<{ readonly ms: number; readonly commits: number }> {
  const before = db.stats().log?.tail ?? 0;
  const startedMs = environment.monotonicMs();
  await environment.run(work());
  return { ms: environment.monotonicMs() - startedMs, commits: (db.stats().log?.tail ?? 0) - before };
}

describe('clients that write again and again', () => {
  it('share one commit where they come back at once', async () => {
    const { ms, commits } = await costOf(() => clients(64, 20, () => 0));
    // The first client's first write is alone; with it the others wait for two commits, but only once.
    expect(commits).toBeLessThanOrEqual(22);
    expect(ms).toBeLessThan(22.5 * commitMs);
  });

  it('share one commit where they come back a little later, at different times', async () => {
    const { ms, commits } = await costOf(() => clients(30, 20, (client) => client / 10));
    expect(commits).toBeLessThanOrEqual(23);
    expect(ms).toBeLessThan(24 * commitMs * 1.1);
  });

  it('wait a tenth of a commit at most for one that does not come back', async () => {
    await environment.run(clients(8, 3, () => 0));
    const { ms } = await costOf(write);
    expect(ms).toBeGreaterThan(commitMs);
    expect(ms).toBeLessThanOrEqual(1.11 * commitMs);
  });

  it('wait 25 ms at most, however long a commit takes', async () => {
    driver.faults = { latencyMs: [1000, 1000] };
    await environment.run(clients(8, 3, () => 0));
    const { ms } = await costOf(write);
    expect(ms).toBeGreaterThan(4000);
    expect(ms).toBeLessThanOrEqual(4026);
  });

  it('are not delayed where each is alone', async () => {
    await costOf(() => clients(1, 2, () => 0));
    const { ms, commits } = await costOf(() => clients(1, 10, () => 0));
    expect(commits).toBe(10);
    expect(ms).toBeLessThan(10.1 * commitMs);
  });
});

describe('a flush that is given up while its commit waits for others', () => {
  it('is not written, and those that wait with it are', async () => {
    await environment.run(clients(4, 2, () => 0));
    const tail = db.stats().log?.tail ?? 0;
    const batch = db.batch();
    void batch.insert(notes, { id: 1000, text: 'given up' });
    const patience = new AbortController();
    const given = batch.flush({ signal: patience.signal }).catch((error: unknown) => error);
    const other = write();
    await environment.advance(1);
    patience.abort('given up');
    expect(await environment.run(given)).toMatchObject({ code: 'ABORTED' });
    await environment.run(other);
    expect(db.stats().log?.tail).toBe(tail + 1);
    expect(await environment.run(db.get('notes', 1000))).toBeUndefined();
  });
});
