/** Nothing that a database is told gets it out of its place: out of the folder of a driver, or out of its prefix. */
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readBackup } from '../../../src/maintenance/backup/backup.ts';
import { parseBlobName, parseBlockName, parseCommitName, unescapeSegment } from '../../../src/format/object-names.ts';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database } from '../../../src/index.ts';
import { FileDriver, MemoryDriver } from '../../../src/storage/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';

let outside: string;
let root: string;
beforeEach(async () => {
  outside = await mkdtemp(path.join(tmpdir(), 'store-db-places-'));
  root = path.join(outside, 'a', 'root');
});
afterEach(() => rm(outside, { recursive: true }));

const body = Buffer.from('x');

const keys = [
  '..',
  '../escape',
  '../../escape',
  'a/../../../escape',
  '/etc/escape',
  '//server/share',
  'C:/escape',
  'C:\\escape',
  '..\\escape',
  '%2e%2e/escape',
  '%2E%2E%2Fescape',
  'nul\0byte',
  'CON',
  'con.txt',
  'LPT1',
  'Name',
  'name',
  'name ',
  'name.',
  'a:stream',
  '#temporary',
  'folder@',
  'versions+',
  '\u202egnp.exe',
  'é',
  'e\u0301',
  `${'../'.repeat(300)}etc`,
  'x'.repeat(1024),
];

describe('a folder', () => {
  it('keeps every key inside, apart from every other, under names that are safe anywhere', async () => {
    const driver = new FileDriver({ path: root, durability: 'none' });
    for (const key of keys) await driver.put(key, Buffer.from(key), { if: 'absent' });
    for (const key of keys) {
      const found = await driver.get(key);
      expect(found.status === 'found' && Buffer.from(found.bytes).toString(), key).toBe(key);
    }
    expect((await driver.list('')).entries).toHaveLength(keys.length);
    expect(await readdir(outside)).toEqual(['a']);
    expect(await readdir(path.join(outside, 'a'))).toEqual(['root']);
    for (const name of await readdir(root, { recursive: true })) {
      for (const part of name.split(path.sep)) {
        expect(part).toMatch(/^[a-z0-9_.%@+=-]+$/);
        expect(part).not.toMatch(/^\.|\.$|^(?:con|nul|lpt1)(?:\.|$)/);
        expect(part.length).toBeLessThan(256);
      }
    }
  });

  it('gives nothing out of files that are not its own, wherever a link leads', async () => {
    const driver = new FileDriver({ path: root, durability: 'none' });
    await driver.put('object', body, { if: 'absent' });
    const secret = path.join(outside, 'secret');
    await writeFile(secret, 'nobody may read this, long as it is, through a driver');
    await symlink(secret, path.join(root, 'link'));
    await symlink('/dev/zero', path.join(root, 'endless'));
    await mkdir(path.join(outside, 'others'));
    await writeFile(path.join(outside, 'others', 'file'), 'nor this, through a folder that is a link to another');
    await symlink(path.join(outside, 'others'), path.join(root, 'folder@'));
    for (const key of ['link', 'folder/file', 'endless']) {
      await expect(driver.get(key), key).rejects.toMatchObject({ code: 'STORAGE', outcome: 'none' });
    }
  });
});

const notes = {
  name: 'notes',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar }, blob: { typeId: Types.blob } },
  primaryKey: 'id',
  indexes: ['text'],
} as const;

async function open(driver: StorageDriver, dbPrefix: string): Promise<Database> {
  const db = StoreDb({ dbPrefix, nodeId: 0, driver, logLevel: 'silent', polling: 'onDemand' });
  db.registerSchema(notes);
  await db.start();
  return db;
}

async function write(db: Database, text: string): Promise<void> {
  const batch = db.batch();
  for (let id = 0; id < 50; id++) {
    const blob = db.Blob(Buffer.from(`${text} ${id}`));
    void batch.upsert('notes', { id, text: `${text} ${id}`.padEnd(1500), blob });
  }
  await batch.flush();
  await db.checkpoint();
}

describe('a prefix', () => {
  it.each(['.', '..', 'a/../b', '../a', 'a/..', '/a', 'a/', '', '\ud800', 'x'.repeat(513)])(
    '%j is refused',
    (prefix) => {
      const make = (): Database => StoreDb({ dbPrefix: prefix, nodeId: 0, driver: new MemoryDriver() });
      expect(make).toThrow(expect.objectContaining({ code: 'INVALID_OPTION', option: 'dbPrefix' }) as Error);
    },
  );

  it('is not left by collecting garbage, verifying or restoring: neighbours keep every object', async () => {
    const driver = new MemoryDriver();
    const prefixes = ['app2', 'app-2', 'App', 'ap', 'app/inner', 'app.data', 'app%2f', 'app/data-2'];
    const db = await open(driver, 'app');
    for (const prefix of prefixes) {
      const neighbour = await open(driver, prefix);
      await write(neighbour, 'one');
      await write(neighbour, 'two');
      await neighbour.stop();
    }
    const neighbours = async (): Promise<unknown[]> => {
      const { entries } = await driver.list('');
      return entries.filter(({ key }) => prefixes.some((prefix) => key.startsWith(`${prefix}/`)));
    };
    const before = await neighbours();
    expect(before.length).toBeGreaterThan(prefixes.length * 50);
    for (const text of ['one', 'two', 'three']) await write(db, text);
    await db.query('notes').where('id', '>', 10).execute();
    const { deletedCount } = await db.gc({ loopGraceMs: 0, graceMs: 0, logRetentionMs: 0 });
    expect(deletedCount).toBeGreaterThan(50);
    expect(await db.verify()).toMatchObject({ ok: true });
    await db.stop();
    expect(await neighbours()).toEqual(before);
  });
});

describe('names of objects', () => {
  it('that somebody made up are none of a database', () => {
    for (const name of ['data/../x/000000000000-0000000000000000', 'data//000000000000-0000000000000000', 'data/t/x']) {
      expect(parseBlockName(name)).toBeUndefined();
    }
    for (const name of ['committed/../0000000000000001', 'committed/9999999999999999', 'committed/00000000000000001']) {
      expect(parseCommitName(name)).toBeUndefined();
    }
    for (const name of ['blobs/../../etc', 'blobs/01234567-89AB-4def-8123-456789abcdef', 'blobs/x']) {
      expect(parseBlobName(name)).toBeUndefined();
    }
  });

  it('may hold bytes that are no text', () => {
    expect(unescapeSegment('_ff')).toBe('_ff');
    expect(unescapeSegment('_c3_a9')).toBe('é');
  });

  it('are not built from ids of backups that are none', async () => {
    const driver = new MemoryDriver();
    await driver.put('place/block0', body, { if: 'any' });
    for (const id of ['../block0', '', 'x'.repeat(5000)]) {
      await expect(readBackup({ driver, prefix: 'place' }, id)).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    }
  });
});
