/** Backups hold the committed state, share objects, and become separate databases; clones too. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { listBackups, restoreBackup, StoreDb, Types } from '../../../src/index.ts';
import type { Database, SchemaDefinition } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';

const notes: SchemaDefinition = {
  name: 'notes',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    text: { typeId: Types.varchar },
    tag: { typeId: Types.varchar },
    file: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['tag'],
};

let store: MemoryDriver;
let safe: MemoryDriver;
const opened: Database[] = [];

beforeEach(() => {
  store = new MemoryDriver();
  safe = new MemoryDriver();
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((db) => db.stop()));
});

async function open(driver: StorageDriver, dbPrefix: string, nodeId = 1): Promise<Database> {
  const db = StoreDb({ dbPrefix, nodeId, driver, logLevel: 'silent', blockSizeBytes: 1024 });
  db.registerSchema(notes);
  opened.push(db);
  await db.start();
  return db;
}

const row = (id: number): Record<string, unknown> => ({ id, text: `text of note ${id}`, tag: `tag ${id % 5}` });

async function write(db: Database, from: number, to: number, blobs = 0): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < to; id++) {
    const file = id - from < blobs ? db.Blob(Buffer.alloc(id - from === 0 ? 0 : 70_000 * (id - from), `${id}`)) : null;
    void batch.upsert('notes', { ...row(id), file });
  }
  await batch.flush();
}

/** All rows, with what their blobs hold. */
async function contents(db: Database): Promise<Record<string, unknown>[]> {
  const rows = await db.query('notes').execute();
  for (const found of rows) {
    if (typeof found['file'] === 'string') found['file'] = await db.getBlob(found['file']).getString();
  }
  return rows;
}

async function names(driver: StorageDriver, prefix: string): Promise<string[]> {
  const { entries } = await driver.list(`${prefix}/`);
  return entries.map(({ key }) => key.slice(prefix.length + 1));
}

const place = (prefix: string, driver: StorageDriver = safe): { driver: StorageDriver; prefix: string } => ({
  driver,
  prefix,
});

describe('a backup', () => {
  it('becomes a separate database with exactly the same contents', async () => {
    const db = await open(store, 'main');
    await write(db, 0, 400, 3);
    await db.checkpoint();
    // Not merged yet when the backup begins.
    await write(db, 400, 500);
    const expected = await contents(db);
    const backup = await db.backup(place('backups/main'));
    await write(db, 0, 50);
    const restored = await restoreBackup({ from: place('backups/main'), to: place('again') });
    expect(restored).toMatchObject({ generation: backup.generation, objects: backup.objects });
    const again = await open(safe, 'again');
    expect(await contents(again)).toEqual(expected);
    expect(await again.query('notes').where('tag', '=', 'tag 3').count()).toBe(100);
    expect(await again.verify({ deep: true })).toMatchObject({
      ok: true,
      findings: [],
      garbage: { objects: 0 },
      unknownObjects: [],
    });
    // It lives on by itself, and goes on where it was.
    await write(again, 1000, 1010, 2);
    await again.checkpoint();
    expect(await again.query('notes').count()).toBe(510);
    await again.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
    expect(await again.verify({ deep: true })).toMatchObject({ ok: true });
    expect(await db.query('notes').count()).toBe(500);
    expect(restored.databaseId).toMatch(/^[0-9a-f-]{36}$/);
    expect((await db.doctor()).database.databaseId).not.toBe(restored.databaseId);
    expect((await again.doctor()).database.databaseId).toBe(restored.databaseId);
  });

  it('copies only missing objects, and does not change earlier backups', async () => {
    const db = await open(store, 'main');
    await write(db, 0, 2000, 4);
    const first = await db.backup(place('b'));
    expect(first.copiedObjects).toBe(first.objects);
    const before = await contents(db);
    await write(db, 1990, 2010, 2);
    const progress: number[] = [];
    const second = await db.backup(place('b'), { onProgress: ({ done }) => progress.push(done) });
    expect(second.objects).toBeGreaterThan(20);
    expect(second.copiedObjects).toBeLessThan(second.objects / 2);
    expect(progress).toEqual(Array.from({ length: second.objects }, (_, i) => i + 1));
    // Nothing new: the manifest is all that is written.
    expect(await db.backup(place('b'))).toMatchObject({
      copiedObjects: 0,
      copiedBytes: 0,
      generation: second.generation,
    });
    const listed = await listBackups(place('b'));
    expect(listed.map(({ generation }) => generation)).toEqual([
      first.generation,
      second.generation,
      second.generation,
    ]);
    // The source may lose all of it.
    for (let id = 0; id < 2010; id += 500) await db.batch().deleteWhere(db.query('notes'));
    await restoreBackup({ from: place('b'), to: place('old'), backup: first.id });
    expect(await contents(await open(safe, 'old'))).toEqual(before);
    await restoreBackup({ from: place('b'), to: place('new') });
    expect(await (await open(safe, 'new')).query('notes').count()).toBe(2010);
  });

  it('is no database, and takes no place of one', async () => {
    const db = await open(store, 'main');
    await write(db, 0, 10);
    await db.backup(place('b'));
    await expect(open(safe, 'b')).rejects.toMatchObject({ code: 'NOT_A_DATABASE' });
    await expect(db.backup(place('main', store))).rejects.toMatchObject({ code: 'INVALID_OPTION', option: 'to' });
    const other = await open(store, 'other');
    await write(other, 0, 1);
    await expect(other.backup(place('b'))).rejects.toThrow(/backups of another database/);
    await expect(restoreBackup({ from: place('b'), to: place('main', store) })).rejects.toThrow(
      /There is a database under main/,
    );
    await safe.put('taken/readme', new Uint8Array(1), { if: 'any' });
    await expect(restoreBackup({ from: place('b'), to: place('taken') })).rejects.toThrow(/taken\/readme/);
    await expect(restoreBackup({ from: place('nothing'), to: place('new') })).rejects.toThrow(/There are no backups/);
    await expect(restoreBackup({ from: place('b'), to: place('new'), backup: 'x' })).rejects.toThrow(/no backup x/);
    for (const to of [
      undefined,
      { driver: safe },
      { driver: safe, prefix: '/x' },
      { driver: {}, prefix: 'x' },
      { driver: safe, prefix: 'a/../b' },
    ]) {
      await expect(db.backup(to as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    }
    expect(await names(safe, 'new')).toEqual([]);
  });

  it('is not there until all of it is, and is gone on with after a failure', async () => {
    const db = await open(store, 'main');
    await write(db, 0, 1500, 2);
    const expected = await contents(db);
    let puts = 0;
    const failing = new Proxy(safe, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        if (name !== 'put') return value.bind(target) as unknown;
        return async (...words: Parameters<MemoryDriver['put']>) => {
          if (++puts > 20) throw new Error('The disk is full');
          return target.put(...words);
        };
      },
    });
    await expect(db.backup(place('b', failing))).rejects.toThrow('The disk is full');
    expect(await listBackups(place('b'))).toEqual([]);
    // No snapshot is left behind.
    expect(await db.snapshots()).toEqual([]);
    const { objects, copiedObjects } = await db.backup(place('b'));
    expect(copiedObjects).toBeLessThanOrEqual(objects - 19);
    puts = 0;
    await expect(restoreBackup({ from: place('b'), to: place('r', failing) })).rejects.toThrow('The disk is full');
    await expect(open(safe, 'r')).rejects.toMatchObject({ code: 'NOT_A_DATABASE' });
    expect(await restoreBackup({ from: place('b'), to: place('r') })).toMatchObject({ objects });
    expect(await contents(await open(safe, 'r'))).toEqual(expected);
  });

  it('does not spread damage', async () => {
    const db = await open(store, 'main');
    await write(db, 0, 500, 2);
    await db.checkpoint();
    const all = await names(store, 'main');
    for (const folder of ['data/notes/', 'blobs/']) {
      const name = `main/${all.find((each) => each.startsWith(folder)) as string}`;
      const found = await store.get(name);
      if (found.status !== 'found') throw new Error('nothing there');
      const bytes = found.bytes.length > 0 ? Uint8Array.from(found.bytes) : new Uint8Array(1);
      bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 1;
      await store.put(name, bytes, { if: 'any' });
      const fresh = await open(store, 'main', 2);
      await expect(fresh.backup(place(`b-${folder}x`))).rejects.toMatchObject({ code: 'CORRUPTION' });
      expect(await listBackups(place(`b-${folder}x`))).toEqual([]);
      await store.put(name, found.bytes, { if: 'any' });
    }
  });

  it('holds one state while others write, merge and collect garbage', async () => {
    const db = await open(store, 'main');
    await write(db, 0, 300);
    const ended = new AbortController();
    const writer = await open(store, 'main', 2);
    const writing = (async () => {
      for (let round = 0; !ended.signal.aborted; round++) {
        // Two rows that always change together.
        const batch = writer.batch();
        void batch.upsert('notes', { ...row(1), text: `round ${round}` });
        void batch.upsert('notes', { ...row(299), text: `round ${round}` });
        await batch.flush();
        await writer.checkpoint();
        await writer.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
      }
    })();
    await db.refresh();
    while ((await db.get('notes', 299))?.['text'] === 'text of note 299') await db.refresh();
    for (let i = 0; i < 5; i++) {
      await db.backup(place('b'));
      await restoreBackup({ from: place('b'), to: place(`r${i}`) });
      const restored = await open(safe, `r${i}`);
      const [first, last] = [await restored.get('notes', 1), await restored.get('notes', 299)];
      expect(first?.['text']).toMatch(/^round \d+$/);
      expect(first?.['text']).toBe(last?.['text']);
      expect(await restored.verify({ deep: true })).toMatchObject({ ok: true });
    }
    ended.abort();
    await writing;
  });
});

describe('a clone', () => {
  it('is a database of its own in the same store', async () => {
    const db = await open(store, 'main');
    await write(db, 0, 700, 3);
    const expected = await contents(db);
    const { databaseId } = await db.clone(place('copy', store));
    const copy = await open(store, 'copy');
    expect(await contents(copy)).toEqual(expected);
    expect((await copy.doctor()).database.databaseId).toBe(databaseId);
    await write(copy, 0, 100, 1);
    expect(await contents(db)).toEqual(expected);
    expect(await copy.verify({ deep: true })).toMatchObject({ ok: true });
    await expect(db.clone(place('copy', store))).rejects.toThrow(/There is a database under copy/);
  });
});
