/** Replicas: instances that follow the log and read, with credentials that allow nothing else. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StorageError } from '../../../src/base/errors.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Cluster, items, range } from '../gc/cluster.ts';
import type { ClusterNode } from '../gc/cluster.ts';
import { caught } from '../protocol/nodes.ts';

const second = 1000;
const hour = 3600 * second;

let cluster: Cluster;
/** What replicas tried to write. */
let writes: string[];

beforeEach(() => {
  cluster = new Cluster();
  writes = [];
});

afterEach(() => {
  expect(writes).toEqual([]);
});

/** A replica that is not started, whose credentials only read. */
function make(nodeId: number, options: Partial<StoreDbOptions> = {}): ClusterNode {
  const node = cluster.make(nodeId, { role: 'replica', ...options });
  const refuse = (_: unknown, { key }: { key: string }): Promise<never> => {
    writes.push(key);
    return Promise.reject(new StorageError(key, 'none', 'Access was denied (403).', { reason: 'forbidden' }));
  };
  node.driver.onPut(/^/, refuse, Infinity);
  node.driver.onDelete(/^/, refuse, Infinity);
  return node;
}

async function follow(nodeId: number, options: Partial<StoreDbOptions> = {}): Promise<ClusterNode> {
  const node = make(nodeId, options);
  await cluster.run(node.db.start());
  node.driver.takeLines();
  return node;
}

function count({ db }: ClusterNode): Promise<number> {
  return cluster.run(db.query(items).count());
}

async function failure(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  return cluster.run(caught(promise));
}

describe('a replica', () => {
  it('shows merged and pending commits, and takes two reads to open', async () => {
    const writer = await cluster.withRows(100);
    const opened = make(7);
    await cluster.run(opened.db.start());
    expect(opened.driver.takeLines()).toEqual(['get block0 found', 'get committed/2 missing']);
    expect(await count(opened)).toBe(100);
    await cluster.run(cluster.put(writer, [200, 201], 'second'));
    await cluster.run(opened.db.refresh());
    expect(await count(opened)).toBe(102);
    expect(await cluster.run(opened.db.get(items, 200))).toMatchObject({ text: 'second 200' });
    expect(await cluster.run(opened.db.query(items).where('group', '=', 0).count())).toBe(11);
    await cluster.run(opened.db.stop());
  });

  it('creates no database, and says who does', async () => {
    const alone = make(1);
    const error = await failure(alone.db.start());
    expect(error).toMatchObject({ code: 'NOT_A_DATABASE' });
    expect(error.message).toContain("role 'writer'");
    expect(alone.driver.takeLines()).toEqual(['get block0 missing']);
    await cluster.withRows(3);
    await cluster.run(alone.db.start());
    expect(await count(alone)).toBe(3);
  });

  it('leaves no trace in Block 0, and two may share an id, also with a writer', async () => {
    const writer = await cluster.withRows(3);
    const before = await cluster.block0();
    const warnings: string[] = [];
    const silent = (): void => undefined;
    const warn = (message: string): unknown => warnings.push(message);
    const options = { logger: { debug: silent, info: silent, warn, error: warn }, logLevel: 'warn' } as const;
    const replicas = [await follow(0, options), await follow(0, options), await follow(9, options)];
    await cluster.advance(3 * hour);
    for (const replica of replicas) {
      await cluster.run(replica.db.refresh());
      await cluster.run(replica.db.stop());
    }
    expect(await cluster.block0()).toEqual(before);
    expect(warnings).toEqual([]);
    await cluster.run(cluster.put(writer, [5], 'later'));
    await cluster.run(writer.db.checkpoint());
    expect((await cluster.block0()).nodes).toEqual([0]);
  });

  it('refuses all that writes before anything is asked of the store, and keeps the batch', async () => {
    await cluster.withRows(3);
    const { db, driver } = await follow(1);
    const batch = db.batch();
    await batch.insert(items, { id: 50, text: 'local', file: db.Blob('some bytes') });
    await batch.delete(items, 0);
    const large = db.batch();
    for (const id of range(1000, 1100)) void large.insert(items, { id, text: `${id}`.repeat(25_000) });
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      'batch.flush()': () => batch.flush(),
      'batch.flush() ': () => large.flush(),
      'db.checkpoint()': () => db.checkpoint(),
      'db.gc()': () => db.gc(),
      'db.snapshot()': () => db.snapshot(),
      'db.releaseSnapshot()': () => db.releaseSnapshot('0-none'),
      'db.repair()': () => db.repair(),
      'db.rewrite()': () => db.rewrite({ dryRun: true }),
      'db.backup()': () => db.backup({ driver, prefix: 'backups' }),
      'db.clone()': () => db.clone({ driver, prefix: 'clone' }),
      'db.setTargetSchemaVersion()': () => db.setTargetSchemaVersion('items', 2),
      'db.cancelMigration()': () => db.cancelMigration('items'),
      'db.finishMigration()': () => db.finishMigration('items'),
    };
    for (const [name, call] of Object.entries(calls)) {
      const error = await failure(call());
      expect([name, error.code]).toEqual([name, 'READ_ONLY']);
      expect(error.message).toContain(`${name.trim()} has to write`);
      expect(error.message).toContain("role 'writer'");
    }
    expect(driver.takeLines()).toEqual([]);
    expect(batch.size).toBe(2);
    // What is collected here can be looked at here.
    const rows = await cluster.run(db.query(items).overlay(batch).select('id').execute());
    expect(rows).toEqual([{ id: 1 }, { id: 2 }, { id: 50 }]);
    expect(await cluster.run(db.query(items).count())).toBe(3);
    batch.clear();
    await cluster.run(batch.flush());
  });

  it('reads in transactions, and commits none', async () => {
    await cluster.withRows(3);
    const { db, driver } = await follow(1);
    expect(await cluster.run(db.transaction(async (tx) => (await tx.get(items, 1))?.id))).toBe(1);
    driver.takeLines();
    const writing = db.transaction(async (tx) => tx.update(items, { id: 1, text: 'changed' }));
    expect(await failure(writing)).toMatchObject({ code: 'READ_ONLY' });
    expect(driver.takeLines().filter((line) => !line.startsWith('get'))).toEqual([]);
  });

  it('lists snapshots, and reads blobs', async () => {
    const writer = await cluster.withRows(3);
    await cluster.run(
      cluster.flush(writer, (batch) => void batch.upsert(items, { id: 9, file: writer.db.Blob('some bytes') })),
    );
    const snapshot = await cluster.run(writer.db.snapshot());
    const { db } = await follow(1);
    expect((await cluster.run(db.snapshots())).map(({ id }) => id)).toEqual([snapshot.id]);
    const row = await cluster.run(db.get(items, 9));
    expect(await cluster.run(db.getBlob(row?.file ?? '').getString())).toBe('some bytes');
  });

  it('checks the database without a pin', async () => {
    const writer = await cluster.withRows(200);
    await cluster.run(cluster.put(writer, range(100, 300), 'second'));
    const { db } = await follow(1);
    expect(await cluster.run(db.verify())).toMatchObject({ ok: true, pendingCommits: 1 });
    expect(await cluster.run(db.verify({ deep: true }))).toMatchObject({ ok: true, unknownObjects: [] });
    await cluster.run(writer.db.checkpoint());
    const [leaf = ''] = (await cluster.namesIn('data')).slice(-1);
    await cluster.damage(leaf);
    const damaged = await cluster.run(db.verify());
    expect(damaged.findings.map(({ name }) => name)).toEqual([leaf]);
  });

  it('checks again if garbage was collected past the state that it checked', async () => {
    const writer = await cluster.withRows(200);
    const { db, driver } = await follow(1);
    let collected = 0;
    driver.onGet(
      /^data\//,
      async (pass) => {
        if (collected++ === 0) {
          await cluster.put(writer, range(0, 200), 'second');
          await writer.db.checkpoint();
          await writer.db.gc({ graceMs: 0, logRetentionMs: 0 });
        }
        return pass();
      },
      Infinity,
    );
    expect(await cluster.run(db.verify())).toMatchObject({ ok: true, findings: [] });
    expect(collected).toBeGreaterThan(1);
  });

  it('can be stopped and started again', async () => {
    const writer = await cluster.withRows(3);
    const { db } = await follow(1);
    await cluster.run(db.stop());
    await cluster.run(cluster.put(writer, [7], 'meanwhile'));
    await cluster.run(db.start());
    expect(await cluster.run(db.query(items).count())).toBe(4);
    await cluster.run(db.stop());
  });
});

describe('a replica whose writers are gone', () => {
  it('never merges, however much is pending, and shows it all', async () => {
    const writer = await cluster.start(0, { mergePolicy: { minCommits: 2000, maxWaitMs: 86_400_000 } });
    for (const id of range(0, 30)) await cluster.run(cluster.put(writer, [id], 'pending'));
    writer.environment.freeze();
    for (const polling of ['interval', 'adaptive', 'onDemand'] as const) {
      const replica = await follow(1, { polling, writeForwardInterval: 5 * second });
      await cluster.advance(2 * hour);
      expect(await count(replica)).toBe(30);
      expect(replica.db.stats().log).toMatchObject({ tail: 30, appliedSeq: 0 });
      await cluster.run(replica.db.stop());
    }
  });

  it('reads staged rows of a commit that nobody merges', async () => {
    const writer = await cluster.start(0);
    writer.driver.onPut(/^block0$/, () => new Promise(() => {}), Infinity);
    const ids = range(1000, 1100);
    await cluster.run(
      cluster.flush(writer, (batch) => {
        for (const id of ids) void batch.insert(items, { id, text: `${id}`.repeat(25_000) });
      }),
    );
    writer.environment.freeze();
    const replica = await follow(1, { writeForwardInterval: 5 * second });
    await cluster.advance(60 * second);
    expect(await count(replica)).toBe(100);
    expect((await cluster.run(replica.db.get(items, 1050)))?.text).toBe('1050'.repeat(25_000));
  });
});

describe('a replica with less memory than the pending commits take', () => {
  it('says so, merges nothing, and goes on once somebody else has merged', async () => {
    const writer = await cluster.start(0, { mergePolicy: { minCommits: 2000, maxWaitMs: 86_400_000 } });
    const options = { maxMemoryBytes: 1024 * 1024, writeForwardInterval: 5 * second };
    const early = await follow(1, options);
    for (const id of range(0, 40)) await cluster.run(cluster.put(writer, [id], 'pending '.repeat(1500)));
    await cluster.advance(60 * second);
    const late = make(2, options);
    for (const call of [() => late.db.start(), () => early.db.refresh(), () => early.db.query(items).count()]) {
      expect(await failure(call())).toMatchObject({ code: 'BACKPRESSURE' });
    }
    await cluster.run(writer.db.checkpoint());
    await cluster.run(late.db.start());
    for (const node of [early, late]) expect(await count(node)).toBe(40);
  });
});

describe('a loop of a replica that takes long', () => {
  it('pins nothing, and ends if the blocks that it reads are collected', async () => {
    const writer = await cluster.withRows(500);
    const replica = await follow(1);
    const loop = replica.db.query(items)[Symbol.asyncIterator]();
    await cluster.run(loop.next());
    await cluster.advance(60 * second);
    await cluster.run(cluster.put(writer, range(0, 500), 'second'));
    await cluster.run(writer.db.checkpoint());
    await cluster.run(writer.db.gc({ graceMs: 0, logRetentionMs: 0 }));
    const rest = async (): Promise<void> => {
      for (;;) if ((await loop.next()).done === true) return;
    };
    expect(await failure(rest())).toMatchObject({ code: 'SNAPSHOT_EXPIRED' });
    // A new query sees the new state.
    expect(await cluster.run(replica.db.get(items, 1))).toMatchObject({ text: 'second 1' });
  });
});

describe('positions', () => {
  it("bring a replica up to a writer's commits", async () => {
    const writer = await cluster.withRows(1);
    const replica = await follow(1);
    expect([writer.db.position, replica.db.position]).toEqual([1, 1]);
    await cluster.run(cluster.put(writer, [1], 'second'));
    const { position } = writer.db;
    expect([position, replica.db.position]).toEqual([2, 1]);
    await cluster.run(replica.db.refresh({ atLeast: position }));
    expect(replica.db.position).toBe(2);
    expect(await count(replica)).toBe(2);
    replica.driver.takeLines();
    // It is there already.
    for (const atLeast of [position, position - 1, 0]) await cluster.run(replica.db.refresh({ atLeast }));
    expect(replica.driver.takeLines()).toEqual([]);
  });

  it('that are not there yet are waited for', async () => {
    const writer = await cluster.withRows(1);
    const replica = await follow(1, { writeForwardInterval: 5 * second, polling: 'onDemand' });
    const reached = replica.db.refresh({ atLeast: 2 });
    let settled = false;
    void reached.then(() => (settled = true));
    await cluster.advance(12 * second);
    expect(settled).toBe(false);
    await cluster.run(cluster.put(writer, [1], 'second'));
    await cluster.advance(6 * second);
    expect(settled).toBe(true);
    expect(await failure(replica.db.refresh({ atLeast: 99 }))).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    const given = replica.db.refresh({ atLeast: 99, signal: AbortSignal.abort() });
    expect(await failure(given)).toMatchObject({ code: 'ABORTED' });
  });

  it('are whole numbers, of a started database', async () => {
    const { db } = await cluster.withRows(1);
    for (const atLeast of [-1, 1.5, Number.NaN, '1', null]) {
      const error = await failure(db.refresh({ atLeast: atLeast as number }));
      expect(error).toMatchObject({ code: 'INVALID_OPTION', option: 'atLeast' });
    }
    await cluster.run(db.stop());
    expect(() => db.position).toThrow(expect.objectContaining({ code: 'NOT_STARTED' }));
  });
});

describe('the requests of an idle replica', () => {
  it('is two reads an interval where that is its polling', async () => {
    await cluster.withRows(1);
    const { driver, db } = await follow(1, { polling: 'interval', writeForwardInterval: 5 * second });
    await cluster.advance(hour);
    const lines = driver.takeLines();
    expect(lines).toHaveLength(1440);
    expect(new Set(lines)).toEqual(new Set(['get committed/2 missing', 'get block0 unchanged']));
    await cluster.run(db.stop());
  });

  it('is nothing on demand, until a query finds the view too old', async () => {
    const writer = await cluster.withRows(1);
    const replica = await follow(1, { polling: 'onDemand', writeForwardInterval: 5 * second });
    await cluster.run(cluster.put(writer, [1], 'pending'));
    await cluster.advance(9 * second);
    expect(await count(replica)).toBe(1);
    expect(replica.driver.takeLines()).toEqual([]);
    await cluster.advance(2 * second);
    expect(await count(replica)).toBe(2);
    expect(replica.driver.takeLines()).toEqual([
      'get committed/2 found',
      'get committed/3 missing',
      'get block0 unchanged',
    ]);
    await cluster.advance(hour);
    expect(replica.driver.takeLines()).toEqual([]);
    expect(replica.environment.timerCount).toBe(0);
  });

  it('becomes rare where polling is adaptive', async () => {
    const writer = await cluster.withRows(1);
    const replica = await follow(1, { polling: 'adaptive', writeForwardInterval: 5 * second });
    await cluster.run(cluster.put(writer, [1], 'pending'));
    await cluster.advance(hour);
    expect(replica.driver.takeLines().length).toBeLessThan(90);
    expect(await count(replica)).toBe(2);
  });
});

describe('a replica that the store fails now and then', () => {
  it('shows states in their order, each of them whole', async () => {
    const writer = await cluster.start(0, { writeForwardInterval: 5 * second });
    const replica = make(1, { writeForwardInterval: 5 * second });
    await cluster.run(replica.db.start());
    let seen = 0;
    for (const round of range(1, 40)) {
      const fails = round % 3 === 0;
      if (fails) {
        replica.driver.onGet(/^/, (_, { key }) => Promise.reject(new StorageError(key, 'none', 'Not now.')), 5);
      }
      await cluster.run(cluster.put(writer, [1, 2, 3], `${round}`));
      await cluster.advance(round % 5 === 0 ? 17 * second : 3 * second);
      if (round % 7 === 0) await cluster.run(writer.db.gc({ graceMs: 0, logRetentionMs: 0 }));
      const rows = await cluster.run(
        replica.db
          .query(items)
          .execute()
          .catch(() => []),
      );
      const versions = new Set(rows.map(({ text }) => Number.parseInt(text ?? '', 10)));
      expect(versions.size).toBeLessThanOrEqual(1);
      for (const version of versions) {
        expect(version).toBeGreaterThanOrEqual(seen);
        seen = version;
      }
    }
    expect(seen).toBeGreaterThan(30);
  });
});

describe('the options of a replica', () => {
  it('are checked', () => {
    for (const [option, value] of [
      ['history', '7d'],
      ['history', 'off'],
      ['gcInterval', 60_000],
    ] as const) {
      const making = (): unknown => cluster.make(1, { role: 'replica', [option]: value });
      expect(making).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option }));
    }
    const unknown = (): unknown => cluster.make(1, { role: 'reader' as 'replica' });
    expect(unknown).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option: 'role' }));
    cluster.make(1, { role: 'replica', nodes: [1, 2], mergePolicy: { minCommits: 5 }, polling: 'adaptive' });
  });
});

describe('doctor() on a replica', () => {
  it('says that writing is forbidden, and asks nobody to allow it', async () => {
    await cluster.withRows(1);
    const replica = make(1);
    const report = await cluster.run(replica.db.doctor());
    // Trying the store out is what it was asked for.
    expect(writes.length).toBeGreaterThan(0);
    expect(writes.every((key) => key.includes('/probe/'))).toBe(true);
    writes = [];
    expect(report.permissions).toMatchObject({ write: 'forbidden' });
    expect(report).toMatchObject({ problems: [], database: { status: 'found' } });
    expect(report.recommendations.join(' ')).not.toMatch(/PutObject|DeleteObject/);
    expect(report.recommendations.join(' ')).toContain('Nothing is to be done for a replica');
  });

  it('says who creates a database where there is none', async () => {
    const report = await cluster.run(make(1).db.doctor());
    writes = [];
    expect(report.recommendations.join(' ')).toContain('a replica creates no database');
  });
});
