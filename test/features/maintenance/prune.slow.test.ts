/** Pruning backups: kept ones can be restored whenever it ends, and the others are gone in the end. */
import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keptBackups } from '../../../src/maintenance/backup/prune.ts';
import { claimName } from '../../../src/format/object-names.ts';
import { listBackups, pruneBackups, restoreBackup, StoreDb, Types } from '../../../src/index.ts';
import type { Database, PruneReport } from '../../../src/index.ts';
import { MemoryDriver, StorageError } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { Nodes } from '../protocol/nodes.ts';

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, file: { typeId: Types.blob } },
  primaryKey: 'id',
} as const;

type Call = 'get' | 'put' | 'delete' | 'list';
type Request = () => Promise<unknown>;

/** Lets a test decide about every request. */
function guarded(inner: StorageDriver, guard: (call: Call, key: string, request: Request) => Promise<unknown>) {
  const driver: StorageDriver = {
    name: 'guarded',
    certified: true,
    get: (key, options) => guard('get', key, () => inner.get(key, options)) as ReturnType<StorageDriver['get']>,
    put: (key, body, options) =>
      guard('put', key, () => inner.put(key, body, options)) as ReturnType<StorageDriver['put']>,
    delete: (keys, options) =>
      guard('delete', keys[0] ?? '', () => inner.delete(keys, options)) as ReturnType<StorageDriver['delete']>,
    list: (prefix, options) =>
      guard('list', prefix, () => inner.list(prefix, options)) as ReturnType<StorageDriver['list']>,
  };
  return driver;
}

let safe: MemoryDriver;
let db: Database;

beforeEach(async () => {
  safe = new MemoryDriver();
  db = StoreDb({ dbPrefix: 'main', nodeId: 1, driver: new MemoryDriver(), logLevel: 'silent', blockSizeBytes: 1024 });
  db.registerSchema(notes);
  await db.start();
});
afterEach(() => db.stop());

const place = (driver: StorageDriver = safe): { driver: StorageDriver; prefix: string } => ({ driver, prefix: 'b' });

/** The state of the database after each of several backups, by their ids. */
async function makeBackups(count: number): Promise<Map<string, string>> {
  const states = new Map<string, string>();
  for (let round = 0; round < count; round++) {
    const batch = db.batch();
    for (let id = round * 40; id < round * 40 + 120; id++) {
      const file = id % 40 === 0 ? db.Blob(`file of ${id} in round ${round}`) : null;
      void batch.upsert(notes, { id, text: `text of ${id} in round ${round}`, file });
    }
    await batch.flush();
    const { id } = await db.backup(place());
    states.set(id, await contentsOf(db));
  }
  return states;
}

async function contentsOf(database: Database): Promise<string> {
  const rows = await database.query(notes).execute();
  const files = rows.flatMap(({ file }) => (file === null ? [] : [database.getBlob(file).getString()]));
  return JSON.stringify([rows, await Promise.all(files)]);
}

async function restored(id: string, from = safe): Promise<string> {
  const driver = new MemoryDriver();
  await restoreBackup({ from: place(from), to: { driver, prefix: 'r' }, backup: id });
  await using copy = StoreDb({ dbPrefix: 'r', nodeId: 2, driver, logLevel: 'silent' });
  copy.registerSchema(notes);
  await copy.start();
  expect(await copy.verify({ deep: true })).toMatchObject({ ok: true });
  return await contentsOf(copy);
}

async function names(driver: StorageDriver = safe): Promise<string[]> {
  return (await driver.list('b/')).entries.map(({ key }) => key.slice(2));
}

/** A copy of the place, so that one can be pruned in many ways. */
async function copyOf(driver: MemoryDriver): Promise<MemoryDriver> {
  const copy = new MemoryDriver();
  for (const { key } of (await driver.list('')).entries) {
    const found = await driver.get(key);
    if (found.status === 'found') await copy.put(key, found.bytes, { if: 'any' });
  }
  return copy;
}

/** What a place holds that was pruned without anything in between. */
async function prunedWell(keepLast: number): Promise<{ readonly report: PruneReport; readonly left: string[] }> {
  const driver = await copyOf(safe);
  const report = await pruneBackups({ from: place(driver), keepLast });
  return { report, left: await names(driver) };
}

describe('pruneBackups()', () => {
  it('removes objects that only old backups use, and lists them before', async () => {
    const states = await makeBackups(4);
    const ids = [...states.keys()];
    const before = await names();
    const planned = await pruneBackups({ from: place(), keepLast: 2, dryRun: true });
    expect(await names()).toEqual(before);
    const report = await pruneBackups({ from: place(), keepLast: 2 });
    expect(report).toEqual(planned);
    expect(report.kept.map(({ id }) => id)).toEqual(ids.slice(2));
    expect(report.removed.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(report.deletedObjects).toBeGreaterThan(5);
    expect((await names()).length).toBe(before.length - report.deletedObjects - 2);
    for (const id of ids.slice(2)) expect(await restored(id)).toBe(states.get(id));
    await expect(restored(ids[0] as string)).rejects.toThrow(/There is no backup/);
    expect(await pruneBackups({ from: place(), keepLast: 2 })).toMatchObject({ removed: [], deletedObjects: 0 });
    // And backups go on from there.
    const more = await makeBackups(1);
    for (const [id, state] of more) expect(await restored(id)).toBe(state);
  });

  it('can fail at any request: every listed backup is whole, and the next run ends it', async () => {
    const states = await makeBackups(4);
    const { left } = await prunedWell(1);
    for (const effect of [false, true]) {
      for (let failing = 0, isDone = false; !isDone; failing++) {
        const store = await copyOf(safe);
        let at = 0;
        const broken = guarded(store, async (call, key, request) => {
          // From then on nothing works: retries neither.
          if (at++ < failing) return request();
          if (effect && at === failing + 1) await request();
          const error = new StorageError(key, effect ? 'unknown' : 'none', `No ${call} any more.`, {
            reason: 'forbidden',
          });
          throw error;
        });
        isDone = await pruneBackups({ from: place(broken), keepLast: 1 }).then(
          () => true,
          () => false,
        );
        const listed = await listBackups(place(store));
        expect(listed.length).toBeGreaterThan(0);
        for (const { id } of failing % 5 === 0 ? listed : listed.slice(-1)) {
          expect(await restored(id, store)).toBe(states.get(id));
        }
        if (isDone) continue;
        await pruneBackups({ from: place(store), keepLast: 1, graceMs: 0 });
        const rest = (await names(store)).filter((name) => !name.startsWith('active/'));
        expect(rest).toEqual(left);
      }
    }
  });

  it('leaves objects alone while a backup is under way that may count on them', async () => {
    await makeBackups(2);
    let report: PruneReport | undefined;
    const slow = guarded(safe, async (call, key, request) => {
      const result = await request();
      // What is there has just been listed.
      if (call === 'list' && key === 'b/blobs/') {
        report ??= await pruneBackups({ from: place(), keepLast: 1, graceMs: 0 });
      }
      return result;
    });
    const { id } = await db.backup(place(slow));
    expect(report).toMatchObject({ isPostponed: true, deletedObjects: 0 });
    expect(report?.removed).toHaveLength(1);
    expect(await restored(id)).toBe(await contentsOf(db));
    const later = await pruneBackups({ from: place(), keepLast: 1, graceMs: 0 });
    expect(later).toMatchObject({ isPostponed: false });
    expect(later.deletedObjects).toBeGreaterThan(0);
    expect(await restored(id)).toBe(await contentsOf(db));
  });

  it('is waited for by backups', async () => {
    const [first] = [...(await makeBackups(2)).keys()];
    let backup: Promise<{ readonly id: string }> | undefined;
    let listedBefore = 0;
    let isPruned = false;
    const watched = guarded(safe, (call, key, request) => {
      if (call === 'list' && key === 'b/data/' && !isPruned) listedBefore++;
      return request();
    });
    const slow = guarded(safe, async (call, key, request) => {
      if (call === 'delete' && key === `b/backups/${first}`) {
        backup = db.backup(place(watched));
        await wait(100);
      }
      return request();
    });
    await pruneBackups({ from: place(slow), keepLast: 1 });
    isPruned = true;
    const { id } = (await backup) as { readonly id: string };
    expect(listedBefore).toBe(0);
    expect(await restored(id)).toBe(await contentsOf(db));
  });

  it('is waited for for ten minutes, and holds up backups for an hour where it was killed', async () => {
    const nodes = new Nodes();
    const { environment } = nodes;
    const node = await nodes.start(1);
    await nodes.run(nodes.insert(node, 1));
    const driver = new MemoryDriver({ environment });
    const killed = await driver.put(`b/${claimName('prune', '0123456789abcdef')}`, new Uint8Array(), { if: 'absent' });
    expect(killed.status).toBe('written');
    const startedMs = environment.monotonicMs();
    for (const minutes of [10, 20, 30]) {
      expect(await nodes.failure(node.db.backup(place(driver)))).toMatchObject({ code: 'CONTENTION' });
      const passedMs = environment.monotonicMs() - startedMs;
      expect(passedMs).toBeGreaterThanOrEqual(minutes * 60_000);
      expect(passedMs).toBeLessThan(minutes * 60_000 + 45_000);
    }
    await environment.advance(startedMs + 3_600_000 - environment.monotonicMs());
    expect(await nodes.run(node.db.backup(place(driver)))).toMatchObject({ generation: 1 });
    expect(environment.monotonicMs() - startedMs).toBeLessThan(3_601_000);
  });

  it('leaves the copies of a broken backup for the next one', async () => {
    await makeBackups(1);
    const batch = db.batch();
    for (let id = 1000; id < 1400; id++) void batch.upsert(notes, { id, text: `text of ${id}` });
    await batch.flush();
    const failing = guarded(safe, (call, key, request) =>
      call === 'put' && key.startsWith('b/backups/')
        ? Promise.reject(new StorageError(key, 'none', 'The store is full.'))
        : request(),
    );
    await expect(db.backup(place(failing))).rejects.toThrow('The store is full');
    // Its manifest may come yet, as far as anybody knows: the claim stays.
    expect((await names()).filter((name) => name.startsWith('active/backup-'))).toHaveLength(1);
    expect(await pruneBackups({ from: place(), keepLast: 1, graceMs: 0 })).toMatchObject({ isPostponed: true });
    for (const name of await names()) if (name.startsWith('active/')) await safe.delete([`b/${name}`]);
    expect(await pruneBackups({ from: place(), keepLast: 1 })).toMatchObject({ deletedObjects: 0 });
    expect(await db.backup(place())).toMatchObject({ copiedObjects: 0 });
  });

  it('deletes nothing if a backup that is kept cannot be read', async () => {
    const ids = [...(await makeBackups(3)).keys()];
    await safe.put(`b/backups/${ids[2]}`, Buffer.from('{'), { if: 'any' });
    const before = await names();
    await expect(pruneBackups({ from: place(), keepLast: 1 })).rejects.toMatchObject({ code: 'CORRUPTION' });
    expect(await names()).toEqual(before);
    // One that is not kept need not be readable. It is the newest now, since it was written last.
    await safe.delete([`b/backups/${ids[2]}`]);
    await safe.put(`b/backups/${ids[0]}`, Buffer.from('{'), { if: 'any' });
    await safe.put(`b/backups/${ids[1]}`, await bytesOf(`b/backups/${ids[1]}`), { if: 'any' });
    expect(await pruneBackups({ from: place(), keepLast: 1 })).toMatchObject({ kept: [{ id: ids[1] }] });
  });

  it('refuses a database, and to go without a rule', async () => {
    const driver = new MemoryDriver();
    await db.clone({ driver, prefix: 'b' });
    await expect(pruneBackups({ from: place(driver), keepLast: 1 })).rejects.toThrow(/There is a database under b/);
    await expect(pruneBackups({ from: place() })).rejects.toThrow(/Say which backups are to be kept/);
    await expect(pruneBackups({ from: place(), keepLast: -1 })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await expect(pruneBackups({ from: place(), keepLast: 1, graceMs: 0.5 })).rejects.toThrow(/graceMs/);
  });
});

async function bytesOf(key: string): Promise<Uint8Array> {
  const found = await safe.get(key);
  if (found.status !== 'found') throw new Error(`There is no ${key}`);
  return found.bytes;
}

describe('kept backups', () => {
  const at = (...times: string[]) =>
    times.map((time) => ({ id: time, generation: 1, createdAt: new Date(`${time}Z`) }));
  const backups = at(
    '2025-12-31T23:00',
    '2026-01-01T01:00',
    '2026-01-04T12:00',
    '2026-01-05T12:00',
    '2026-02-01T00:00',
    '2026-02-01T23:59',
    '2026-02-02T00:00',
  );
  const kept = (rules: Parameters<typeof keptBackups>[1]): string[] => [...keptBackups(backups, rules)].toSorted();
  it('the newest, under any rules', () => {
    expect(kept({ keepLast: 0 })).toEqual(['2026-02-02T00:00']);
    expect(keptBackups([], { keepLast: 3 }).size).toBe(0);
  });
  it('the last ones', () => expect(kept({ keepLast: 2 })).toEqual(['2026-02-01T23:59', '2026-02-02T00:00']));
  it('those within a time of the newest', () => {
    expect(kept({ keepWithinMs: 86_400_000 })).toEqual(['2026-02-01T00:00', '2026-02-01T23:59', '2026-02-02T00:00']);
  });
  it('one for each day, week and month that has any', () => {
    expect(kept({ keepDaily: 3 })).toEqual(['2026-01-05T12:00', '2026-02-01T23:59', '2026-02-02T00:00']);
    // The fourth of January was a Sunday, the first of February as well.
    const weekly = ['2026-01-04T12:00', '2026-01-05T12:00', '2026-02-01T23:59', '2026-02-02T00:00'];
    expect(kept({ keepWeekly: 4 })).toEqual(weekly);
    expect(kept({ keepMonthly: 9 })).toEqual(['2025-12-31T23:00', '2026-01-05T12:00', '2026-02-02T00:00']);
  });
  it('those that any of several rules keeps', () => {
    expect(kept({ keepLast: 2, keepMonthly: 2 })).toEqual(['2026-01-05T12:00', '2026-02-01T23:59', '2026-02-02T00:00']);
  });
});
