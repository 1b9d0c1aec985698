/** `db.health()`: each reason comes with its fault, with the number and the threshold, and goes with it. No probe asks the store. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, DatabaseHealth, HealthCode, HealthThresholds, StoreDbOptions } from '../../../src/index.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { createDatabase, FaultyDriver, VirtualEnvironment } from '../../../src/testing/index.ts';

const fields = { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } };
const notes = { name: 'notes', version: 1, fields, primaryKey: 'id' } as const;
const secondMs = 1000;
const minuteMs = 60_000;

/** An instance in virtual time, on a store that fails as a test says. */
class World {
  readonly environment = new VirtualEnvironment({ seed: 7 });
  readonly store: MemoryDriver;
  readonly faulty: FaultyDriver;
  readonly db: Database;

  constructor(options: Partial<StoreDbOptions> = {}, wrap: (driver: StorageDriver) => StorageDriver = (same) => same) {
    const { environment } = this;
    this.store = new MemoryDriver({ environment });
    this.faulty = new FaultyDriver(this.store, { environment });
    this.db = this.instance(0, wrap(this.faulty), options);
  }

  instance(nodeId: number, driver: StorageDriver, options: Partial<StoreDbOptions> = {}): Database {
    const given = { dbPrefix: 'app', nodeId, driver, logLevel: 'silent', polling: 'interval', ...options } as const;
    const db = createDatabase(given, this.environment);
    db.registerSchema(notes);
    return db;
  }

  run<T>(call: Promise<T>): Promise<T> {
    return this.environment.run(call);
  }

  async write(id: number, db: Database = this.db): Promise<void> {
    const batch = db.batch();
    void batch.upsert(notes, { id, text: 'a note' });
    await this.run(batch.flush());
  }
}

/** What a reason says, without its sentence. */
function told({ reasons }: DatabaseHealth): Record<string, unknown>[] {
  return reasons.map(({ code, status, value, threshold }) => ({ code, status, value, threshold }));
}

function codes({ reasons }: DatabaseHealth): readonly HealthCode[] {
  return reasons.map(({ code }) => code);
}

describe.each(['memory', 'folder'])('the health of an instance in %s', (kind) => {
  it('is ok while it runs and failing before and after, and asks nothing of the store', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'health-'));
    const driver = kind === 'memory' ? new MemoryDriver() : new FileDriver(folder);
    const quiet = { logLevel: 'silent', writeForwardInterval: 86_400_000 } as const;
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, ...quiet });
    db.registerSchema(notes);
    const stopped = { code: 'stopped', status: 'failing', value: 1, threshold: 1 };
    expect(told(db.health())).toEqual([stopped]);
    await db.start();
    const batch = db.batch();
    void batch.upsert(notes, { id: 1, text: 'a note' });
    await batch.flush();
    const { requests } = db.stats();
    for (let probe = 0; probe < 100; probe++) expect(db.health()).toMatchObject({ status: 'ok', reasons: [] });
    expect(db.stats().requests).toEqual(requests);
    expect(db.health().values).toMatchObject({ stopped: 0, backlog: 1 / 4000, 'store-errors': 0 });
    await db.stop();
    expect(db.health()).toMatchObject({ status: 'failing', reasons: [stopped] });
    expect(db.health().reasons[0]?.message).toContain('Call db.start()');
    await rm(folder, { recursive: true });
  });
});

describe('the reason', () => {
  it('backlog comes with the commits that wait, gets worse, and goes with a merge', async () => {
    const health: HealthThresholds = { backlogShare: { degraded: 3 / 4000, failing: 5 / 4000 } };
    const world = new World({ health, nodes: [9], mergePolicy: { minCommits: 2000, maxWaitMs: 86_400_000 } });
    const { db } = world;
    await world.run(db.start());
    for (let id = 0; id < 2; id++) await world.write(id);
    expect(db.health().status).toBe('ok');
    await world.write(2);
    expect(told(db.health())).toEqual([{ code: 'backlog', status: 'degraded', value: 3 / 4000, threshold: 3 / 4000 }]);
    expect(db.health().reasons[0]?.message).toContain('3 commits (0.0 MiB) wait to be merged');
    for (let id = 3; id < 5; id++) await world.write(id);
    expect(told(db.health())).toEqual([{ code: 'backlog', status: 'failing', value: 5 / 4000, threshold: 5 / 4000 }]);
    await world.run(db.checkpoint());
    expect(db.health()).toMatchObject({ status: 'ok', reasons: [] });
    await world.run(db.stop());
  });

  it('backlog counts bytes as well, and waits for as many commits as a merge does', async () => {
    const world = new World({ maxMemoryBytes: 1024 ** 2, nodes: [9], mergePolicy: { minCommits: 1600 } });
    const { db } = world;
    await world.run(db.start());
    const batch = db.batch();
    void batch.upsert(notes, { id: 1, text: 'x'.repeat(100_000) });
    await world.run(batch.flush());
    // A quarter of the memory is for commits that wait.
    expect(db.health().values.backlog).toBeCloseTo(100_000 / (1024 ** 2 / 4), 1);
    expect(db.health().status).toBe('ok');
    await world.run(db.stop());
  });

  it('staleness and store-errors come while the store does not answer, and go when it does', async () => {
    const world = new World();
    const { db, faulty, environment } = world;
    await world.run(db.start());
    await environment.advance(minuteMs);
    expect(db.health().status).toBe('ok');
    faulty.faults = { refused: 1 };
    await environment.advance(2 * minuteMs);
    const degraded = db.health();
    expect(degraded.status).toBe('failing');
    const [errors, stale] = ['store-errors', 'staleness'].map((code) =>
      degraded.reasons.find((reason) => reason.code === code),
    );
    expect(errors).toMatchObject({ status: 'failing', value: 1, threshold: 0.5 });
    expect(errors?.message).toMatch(/^\d+ of the \d+ requests of the last minute failed \(100 %\)/);
    expect(stale).toMatchObject({ status: 'degraded', threshold: 60_000 });
    expect(stale?.value).toBeGreaterThan(100 * secondMs);
    expect(stale?.message).toMatch(/could not look at the store for 1\d\d s/);
    await environment.advance(10 * minuteMs);
    expect(db.health().reasons.find(({ code }) => code === 'staleness')).toMatchObject({ status: 'failing' });
    faulty.faults = {};
    await environment.advance(2 * minuteMs);
    expect(db.health()).toMatchObject({ status: 'ok', reasons: [] });
    await world.run(db.stop());
  });

  it('staleness comes while requests hang, and not while an instance that nobody uses rests', async () => {
    const world = new World({ polling: 'adaptive' });
    const { db, faulty, environment } = world;
    await world.run(db.start());
    // It looks every five minutes in the end.
    for (let minute = 0; minute < 30; minute++) {
      await environment.advance(minuteMs);
      expect(db.health().status).toBe('ok');
    }
    expect(db.stats().log?.ageMs).toBeGreaterThan(minuteMs);
    faulty.faults = { noAnswer: 1 };
    await environment.advance(7 * minuteMs);
    expect(codes(db.health())).toContain('staleness');
    faulty.faults = {};
    await environment.advance(12 * minuteMs);
    expect(db.health().status).toBe('ok');
    await world.run(db.stop());
  });

  it('staleness is no matter of an instance that looks on demand', async () => {
    const world = new World({ polling: 'onDemand' });
    await world.run(world.db.start());
    await world.environment.advance(60 * minuteMs);
    expect(world.db.health()).toMatchObject({ status: 'ok', values: { staleness: 0 } });
    await world.run(world.db.stop());
  });

  it('store-errors counts attempts, not less than five, and forgets them after a minute', async () => {
    const world = new World({ polling: 'onDemand' });
    const { db, faulty, environment } = world;
    await world.run(db.start());
    faulty.faults = { throttled: 0.3 };
    let most = 0;
    const shares: [errors: number, share: number][] = [];
    for (let call = 0; call < 40; call++) {
      await world.run(db.refresh());
      const { values } = db.health();
      shares.push([db.stats().requests.errors, values['store-errors']]);
      most = Math.max(most, values['store-errors']);
    }
    expect(shares.filter(([errors]) => errors < 5).every(([, share]) => share === 0)).toBe(true);
    expect(shares.some(([errors]) => errors > 0 && errors < 5)).toBe(true);
    expect(most).toBeGreaterThan(0.1);
    expect(told(db.health())).toMatchObject([{ code: 'store-errors', status: 'degraded', threshold: 0.05 }]);
    faulty.faults = {};
    await environment.advance(65 * secondMs);
    expect(db.health()).toMatchObject({ status: 'ok', values: { 'store-errors': 0 } });
    await world.run(db.stop());
  });

  it('store-errors does not count calls that their callers gave up', async () => {
    const world = new World({ polling: 'onDemand' });
    const { db, faulty } = world;
    await world.run(db.start());
    faulty.faults = { noAnswer: 1 };
    for (let call = 0; call < 10; call++) {
      const leaving = new AbortController();
      const asked = db.refresh({ signal: leaving.signal }).catch(() => undefined);
      await world.environment.advance(10);
      leaving.abort();
      await world.run(asked);
    }
    expect(db.stats().requests.errors).toBeGreaterThan(5);
    expect(db.health().values['store-errors']).toBe(0);
    faulty.faults = {};
    await world.run(db.stop());
  });

  it('merges-failing comes with merges that fail, and goes with one by this or by another node', async () => {
    let isBroken = false;
    const world = new World({ mergePolicy: { minCommits: 1 } }, (driver) => {
      return new Proxy(driver, {
        get: (target, name) => {
          const value = (target as unknown as Record<string | symbol, unknown>)[name];
          if (typeof value !== 'function') return value;
          if (name !== 'put') return value.bind(target) as unknown;
          return (key: string, ...rest: unknown[]) =>
            isBroken && key === 'app/block0'
              ? Promise.reject(new Error('the disk is full'))
              : (value.call(target, key, ...rest) as unknown);
        },
      });
    });
    const { db, environment } = world;
    await world.run(db.start());
    for (const healed of ['by this node', 'by another']) {
      isBroken = true;
      await world.write(healed.length);
      await environment.advance(90 * secondMs);
      const reason = db.health().reasons.find(({ code }) => code === 'merges-failing');
      expect(reason).toMatchObject({ status: 'degraded', threshold: minuteMs });
      expect(reason?.value).toBeGreaterThan(minuteMs);
      expect(reason?.message).toMatch(
        /Merging has failed for \d+ s \(\d+ times in a row\)\. .* The last error: the disk is full$/,
      );
      if (healed === 'by this node') isBroken = false;
      else {
        const other = world.instance(1, world.store);
        await world.run(other.start());
        await world.run(other.checkpoint());
        await world.run(other.stop());
      }
      await environment.advance(70 * secondMs);
      expect(codes(db.health())).not.toContain('merges-failing');
    }
    isBroken = false;
    await environment.advance(70 * secondMs);
    expect(db.health()).toMatchObject({ status: 'ok' });
    await world.run(db.stop());
  });

  it('migration-blocked comes with rows that cannot be migrated, and goes when they can', async () => {
    const world = new World({ mergePolicy: { minCommits: 1 } });
    const { db, environment } = world;
    let isBad = true;
    const migrate = (row: object): object => {
      if (isBad) throw new Error('a bad row');
      return row;
    };
    db.registerSchema({ ...notes, version: 2, migrate: migrate as never });
    await world.run(db.start());
    const old = world.instance(1, world.store);
    await world.run(old.start());
    const batch = old.batch();
    void batch.upsert(notes, { id: 1, text: 'a note' });
    await world.run(batch.flush());
    await world.run(old.checkpoint());
    await world.run(db.setTargetSchemaVersion('notes', 2));
    await environment.advance(2 * minuteMs);
    expect(told(db.health())).toEqual([{ code: 'migration-blocked', status: 'degraded', value: 1, threshold: 1 }]);
    expect(db.health().reasons[0]?.message).toContain('notes. db.migrationStatus() names the rows');
    isBad = false;
    await world.run(db.setTargetSchemaVersion('notes', 2));
    await environment.advance(2 * minuteMs);
    expect(db.health()).toMatchObject({ status: 'ok', reasons: [] });
    await world.run(old.stop());
    await world.run(db.stop());
  });

  it('clock comes with a clock that is far off, and goes when it is right', async () => {
    const machine = new VirtualEnvironment({ seed: 1 });
    const store = new MemoryDriver({ environment: machine.fork() });
    const given = { dbPrefix: 'app', nodeId: 0, driver: store, logLevel: 'silent' } as const;
    const db = createDatabase({ ...given, health: { clockMs: { failing: 600_000 } } }, machine);
    await machine.run(db.start());
    expect(db.health().status).toBe('ok');
    machine.skewMs = -2 * minuteMs;
    expect(told(db.health())).toEqual([{ code: 'clock', status: 'degraded', value: 120_000, threshold: 60_000 }]);
    expect(db.health().reasons[0]?.message).toContain("The clock of this machine is 2 minutes behind the store's");
    machine.skewMs = 20 * minuteMs;
    expect(told(db.health())).toEqual([{ code: 'clock', status: 'failing', value: 1_200_000, threshold: 600_000 }]);
    machine.skewMs = 0;
    expect(db.health().status).toBe('ok');
    await machine.run(db.stop());
  });

  it('replaced comes with a database that was deleted, and goes when it is opened again', async () => {
    const world = new World();
    const { db, store } = world;
    await world.run(db.start());
    await world.write(1);
    await store.delete(['app/block0']);
    await world.run(db.checkpoint().catch(() => undefined));
    expect(codes(db.health())[0]).toBe('replaced');
    expect(db.health().status).toBe('failing');
    await world.run(db.stop().catch(() => undefined));
    for await (const key of keysOf(store)) await store.delete([key]);
    await world.run(db.start());
    expect(db.health().status).toBe('ok');
    await world.run(db.stop());
  });
});

async function* keysOf(store: MemoryDriver): AsyncGenerator<string> {
  for (const { key } of (await store.list('app/')).entries) yield key;
}

it('refuses a threshold of failing that is below that of degraded', () => {
  const options = { dbPrefix: 'health', nodeId: 0, driver: new MemoryDriver() };
  expect(() => StoreDb({ ...options, health: { stalenessMs: { degraded: 10, failing: 5 } } })).toThrow(
    'Option `health.stalenessMs.failing` of StoreDb() is 5, below `degraded`, which is 10',
  );
  expect(() => StoreDb({ ...options, health: { stalenessMs: { degraded: 5, failing: 5 } } })).not.toThrow();
});

it('shows the worst reason first', async () => {
  const world = new World({ health: { backlogShare: { degraded: 0 }, clockMs: { failing: 0 } } });
  await world.run(world.db.start());
  expect(world.db.health().reasons.map(({ code, status }) => [code, status])).toEqual([
    ['clock', 'failing'],
    ['backlog', 'degraded'],
  ]);
  expect(world.db.health().status).toBe('failing');
  await world.run(world.db.stop());
});
