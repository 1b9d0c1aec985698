/** Backups while keys are replaced and encryption is turned on and off: the keys that each needs, and how that changes. */
import { describe, expect, it } from 'vitest';
import { inspectBackups, listBackups, pruneBackups, restoreBackup, rewriteBackups } from '../../../src/index.ts';
import type { BackupReport, Database, EncryptionOptions, StoreDbOptions } from '../../../src/index.ts';
import { decodeEnvelopeHeader, isEnvelope } from '../../../src/format/envelope.ts';
import { MemoryDriver, ObservedDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { bare, fill, holds, keyOf, keys, objectsOf, open, schema, secret } from './envelope-store.ts';

type Encryption = EncryptionOptions;

const only = (id: number): Encryption => ({ keys: { [`key-${id}`]: keyOf(id) }, current: `key-${id}` });

async function withDatabase<T>(
  driver: StorageDriver,
  options: Partial<StoreDbOptions>,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  await using db = await open(driver, options);
  return await work(db);
}

/** Ids of the keys of all objects at the place of the backups, and `none`; claims and times left out. */
async function keysInUse(driver: StorageDriver): Promise<Set<string>> {
  const used = new Set<string>();
  for (const [name, bytes] of await objectsOf(driver, 'b')) {
    if (!/^(data|indexes|blobs|backups)\//.test(name) || name.includes('.made-')) continue;
    used.add((isEnvelope(bytes) ? decodeEnvelopeHeader(name, bytes).seal?.keyId : undefined) ?? 'none');
  }
  return used;
}

async function expectRestorable(
  from: StorageDriver,
  encryption: Encryption | undefined,
  rows: number,
  backup?: string,
): Promise<void> {
  const driver = new MemoryDriver();
  const options = encryption === undefined ? {} : { encryption };
  const which = backup === undefined ? {} : { backup };
  await restoreBackup({ from: { driver: from, prefix: 'b' }, to: { driver, prefix: 'r' }, ...options, ...which });
  await withDatabase(driver, { dbPrefix: 'r', ...options }, async (db) => {
    expect(await db.query(schema).count()).toBe(rows);
    expect((await db.verify({ deep: true })).findings).toEqual([]);
    expect(await db.getBlob((await db.get(schema, 'note-0'))?.photo as string).getString()).toBe(secret);
  });
}

/** A store whose clock is ahead by as much as is said. */
function ahead(inner: MemoryDriver, clock: { aheadMs: number }): StorageDriver {
  const putAheadMs = new Map<string, number>();
  return {
    name: 'ahead',
    certified: true,
    get: inner.get.bind(inner),
    delete: inner.delete.bind(inner),
    put: async (key, body, options) => {
      const put = await inner.put(key, body, options);
      if (put.status === 'written') putAheadMs.set(key, clock.aheadMs);
      return put;
    },
    list: async (under, options) => {
      const page = await inner.list(under, options);
      const entries = page.entries.map((entry) => {
        return { ...entry, lastModifiedMs: entry.lastModifiedMs + (putAheadMs.get(entry.key) ?? 0) };
      });
      return { ...page, entries };
    },
  };
}

describe('backups after a key was replaced', () => {
  it('need only the new key if they were made with it, even if they share objects with older ones', async () => {
    const [source, safe] = [new MemoryDriver(), new MemoryDriver()];
    const to = { driver: safe, prefix: 'b' };
    await withDatabase(source, { encryption: keys(1) }, async (db) => {
      await fill(db, 300);
      await db.backup(to);
    });
    let made: BackupReport | undefined;
    await withDatabase(source, { encryption: keys(2) }, async (db) => {
      await db.rewrite();
      made = await db.backup(to);
      expect(made.rewrittenObjects).toBeGreaterThan(10);
      expect(made.copiedObjects + made.rewrittenObjects).toBe(made.objects);
      // The manifest of the first.
      expect(made.hasOutdated).toBe(true);
      expect(await db.backup(to)).toMatchObject({ rewrittenObjects: 0, copiedObjects: 0 });
    });
    await expectRestorable(safe, only(2), 300, made?.id);
  });

  it('name the keys that they need, and need only the current one once they are rewritten', async () => {
    const [source, safe] = [new MemoryDriver(), new MemoryDriver()];
    const to = { driver: safe, prefix: 'b' };
    const first = await withDatabase(source, { encryption: keys(1) }, async (db) => {
      await fill(db, 300);
      return db.backup(to);
    });
    await withDatabase(source, { encryption: keys(2) }, async (db) => {
      await db.rewrite();
      const batch = db.batch();
      for (let i = 100; i < 200; i++) void batch.delete(schema, `note-${i}`);
      await batch.flush();
      await db.backup(to);
    });
    const before = await listBackups(to);
    const mixed = await inspectBackups({ from: to, encryption: keys(2) });
    expect(mixed.backups.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
    expect(Object.keys(mixed.backups[0]?.keys ?? {}).toSorted()).toEqual(['key-1', 'key-2']);
    expect(Object.keys(mixed.backups[1]?.keys ?? {})).toEqual(['key-2']);
    expect(mixed.backups[0]).toMatchObject({ id: first.id, objects: first.objects + 1, unencrypted: 0 });
    const sum = Object.values(mixed.keys).reduce((a, b) => a + b, 0);
    expect(sum).toBe(mixed.objects);
    // Without a key that they need, that is told.
    const blind = await inspectBackups({ from: to, encryption: only(2) });
    expect(blind.backups[0]?.problem).toMatch(/key 'key-1'/);
    expect(blind.backups[1]).not.toHaveProperty('problem');
    expect((await inspectBackups({ from: to })).keys).toEqual(mixed.keys);

    const foreseen = await rewriteBackups({ from: to, encryption: keys(2), dryRun: true });
    expect(foreseen.keys).toEqual(mixed.keys);
    const report = await rewriteBackups({ from: to, encryption: keys(2) });
    expect(report).toMatchObject({ rewritten: foreseen.rewritten, failed: [], keys: { 'key-2': mixed.objects } });
    expect(await keysInUse(safe)).toEqual(new Set(['key-2']));
    // In the order in which they were made, and at that time.
    expect(await listBackups(to)).toEqual(before);
    await expectRestorable(safe, only(2), 300, first.id);
    await expectRestorable(safe, only(2), 200);
    expect(await rewriteBackups({ from: to, encryption: keys(2) })).toMatchObject({ rewritten: 0 });
    await withDatabase(source, { encryption: only(2) }, async (db) => {
      expect(await db.backup(to)).toMatchObject({ hasOutdated: false, rewrittenObjects: 0 });
    });
  });

  it('are pruned where the key of those that go is lost', async () => {
    const [source, safe] = [new MemoryDriver(), new MemoryDriver()];
    const to = { driver: safe, prefix: 'b' };
    await withDatabase(source, { encryption: keys(1) }, async (db) => {
      await fill(db, 300);
      await db.backup(to);
    });
    await withDatabase(source, { encryption: keys(2) }, async (db) => {
      await db.rewrite();
      const batch = db.batch();
      for (let i = 100; i < 300; i++) void batch.delete(schema, `note-${i}`);
      await batch.flush();
      await db.backup(to);
    });
    const report = await pruneBackups({ from: to, encryption: only(2), keepLast: 1, graceMs: 0 });
    expect(report).toMatchObject({ removed: [{}], kept: [{}] });
    expect(report.deletedObjects).toBeGreaterThan(0);
    await expectRestorable(safe, only(2), 100);
  });

  it('forget the time of a backup that was rewritten once it is pruned', async () => {
    const [source, safe] = [new MemoryDriver(), new MemoryDriver()];
    const to = { driver: safe, prefix: 'b' };
    await withDatabase(source, { encryption: keys(1) }, async (db) => {
      await fill(db, 50);
      await db.backup(to);
      await db.backup(to);
    });
    await rewriteBackups({ from: to, encryption: keys(2) });
    const times = async (): Promise<number> =>
      [...(await objectsOf(safe, 'b')).keys()].filter((name) => name.includes('.made-')).length;
    expect(await times()).toBe(2);
    await pruneBackups({ from: to, encryption: only(2), keepLast: 1 });
    expect(await times()).toBe(1);
  });
});

describe('backups after encryption was turned on', () => {
  it('leave no readable object of the new one, and none at all once rewritten', async () => {
    const [source, safe] = [new MemoryDriver(), new MemoryDriver()];
    const to = { driver: safe, prefix: 'b' };
    const moving = { ...keys(1), acceptUnencrypted: true };
    const first = await withDatabase(source, {}, async (db) => {
      await fill(db, 300);
      return db.backup(to);
    });
    expect(bare(await objectsOf(safe, 'b')).length).toBeGreaterThan(10);
    await withDatabase(source, { encryption: moving }, async (db) => {
      await db.rewrite();
    });
    await withDatabase(source, { encryption: keys(1) }, async (db) => {
      await expect(db.backup(to)).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        option: 'to',
        message: expect.stringContaining('rewriteBackups()') as unknown,
      });
    });
    await withDatabase(source, { encryption: moving }, async (db) => {
      const second = await db.backup(to);
      expect(second).toMatchObject({ hasOutdated: true });
      expect(second.rewrittenObjects).toBeGreaterThan(10);
    });
    const left = await inspectBackups({ from: to, encryption: keys(1) });
    expect(left.backups.map(({ unencrypted }) => unencrypted)).toEqual([left.unencrypted, 0]);
    await rewriteBackups({ from: to, encryption: moving });
    expect(await keysInUse(safe)).toEqual(new Set(['key-1']));
    for (const [name, bytes] of await objectsOf(safe, 'b')) expect(holds(bytes, secret), name).toBe(false);
    await withDatabase(source, { encryption: keys(1) }, async (db) => {
      expect(await db.backup(to)).toMatchObject({ hasOutdated: false, rewrittenObjects: 0 });
    });
    await expectRestorable(safe, keys(1), 300, first.id);
  });

  it('are readable without a key again once it is turned off, with the media types of their blobs', async () => {
    const [source, safe] = [new MemoryDriver(), new MemoryDriver()];
    const to = { driver: safe, prefix: 'b' };
    const first = await withDatabase(source, { encryption: keys(1) }, async (db) => {
      await fill(db, 300);
      return db.backup(to);
    });
    const types = new Set<string | undefined>();
    const put = safe.put.bind(safe);
    const noting = Object.assign(safe, {
      put: (...[key, body, options]: Parameters<typeof put>) => {
        if (key.startsWith('b/blobs/')) types.add(options.contentType);
        return put(key, body, options);
      },
    });
    await rewriteBackups({ from: { driver: noting, prefix: 'b' }, encryption: keys(1, null) });
    expect(types).toEqual(new Set(['text/plain']));
    expect(await keysInUse(safe)).toEqual(new Set(['none']));
    await expectRestorable(safe, undefined, 300, first.id);
  });

  it('are refused without options of their encoding, and in the place of a database', async () => {
    const driver = new MemoryDriver();
    await withDatabase(driver, {}, async () => undefined);
    const [from, empty] = [
      { driver, prefix: 'shop/notes' },
      { driver, prefix: 'empty' },
    ];
    await expect(rewriteBackups({ from: empty })).rejects.toMatchObject({ option: 'encryption' });
    await expect(rewriteBackups({ from, encryption: keys(1) })).rejects.toMatchObject({ option: 'from' });
    const wrong = { from: empty, encyption: keys(1) } as unknown as Parameters<typeof inspectBackups>[0];
    await expect(inspectBackups(wrong)).rejects.toMatchObject({ option: 'encyption' });
    await expect(rewriteBackups(wrong)).rejects.toMatchObject({ option: 'encyption' });
  });
});

describe('a further backup of an encrypted database', () => {
  it('reads the objects of the one before it once, and never again', async () => {
    const source = new MemoryDriver();
    const clock = { aheadMs: 0 };
    const inner = new MemoryDriver();
    const safe = ahead(inner, clock);
    const looks = async (current: number): Promise<number> => {
      clock.aheadMs += 3_600_000;
      const observed = new ObservedDriver(safe);
      await withDatabase(source, { encryption: keys(2, current) }, (db) =>
        db.backup({ driver: observed, prefix: 'b' }),
      );
      return observed.snapshot().get;
    };
    await withDatabase(source, { encryption: keys(1) }, (db) => fill(db, 300));
    await looks(1);
    expect(await looks(1)).toBeGreaterThan(10);
    expect(await looks(1)).toBeLessThan(6);
    // With another key nobody vouches for anything.
    await withDatabase(source, { encryption: keys(2) }, (db) => db.rewrite());
    expect(await looks(2)).toBeGreaterThan(10);
    expect(await keysInUse(inner)).toEqual(new Set(['key-1', 'key-2']));
  });
});
