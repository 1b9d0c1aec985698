import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb } from '../../index.ts';
import { listAll } from '../contract/driver.ts';
import { WrappedDriver } from '../wrap/wrapped-driver.ts';
import { StaticFolderDriver } from './static-folder-driver.ts';

let folder: string;
let driver: StaticFolderDriver;
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'static-folder-'));
  driver = new StaticFolderDriver(folder);
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

async function put(key: string, text: string): Promise<string> {
  const result = await driver.put(key, bytes(text), { if: 'any' });
  return result.status === 'written' ? result.etag : 'lost';
}

describe('a folder of static files', () => {
  it('has each object as a file at the path of its key', async () => {
    await put('site/bundle', 'pointer');
    await put('site/data/t/x-1', 'block');
    expect(readFileSync(path.join(folder, 'site/data/t/x-1'), 'utf8')).toBe('block');
    expect(readdirSync(path.join(folder, 'site')).toSorted()).toEqual(['bundle', 'data']);
    const found = await driver.get('site/bundle', { range: { start: 3, end: 90 } });
    expect(found).toMatchObject({ status: 'found', bytes: bytes('nter'), sizeBytes: 7 });
    expect(await driver.get('site/data')).toEqual({ status: 'missing' });
    expect(await driver.get('site/bundle/more')).toEqual({ status: 'missing' });
  });

  it('writes on condition', async () => {
    expect(await driver.put('a/b', bytes('1'), { if: 'absent' })).toMatchObject({ status: 'written' });
    expect(await driver.put('a/b', bytes('2'), { if: 'absent' })).toEqual({ status: 'lost' });
    const first = await put('a/b', '3');
    const etag = await put('a/b', '4');
    expect(await driver.put('a/b', bytes('5'), { if: { etag: first } })).toEqual({ status: 'lost' });
    expect(await driver.get('a/b', { ifNoneMatch: etag })).toEqual({ status: 'unchanged' });
    const tries = Array.from({ length: 8 }, (_, i) => driver.put('a/b', bytes(`new ${i}`), { if: { etag } }));
    const won = (await Promise.all(tries)).filter(({ status }) => status === 'written');
    expect(won).toHaveLength(1);
    expect(readdirSync(path.join(folder, 'a'))).toEqual(['b']);
    expect(await driver.put('a/c', bytes('x'), { if: { etag } })).toEqual({ status: 'lost' });
  });

  it('takes the lock of a process that was killed, after a minute', async () => {
    const etag = await put('a/b', '1');
    const lock = path.join(folder, 'a/b.lock');
    writeFileSync(lock, '');
    expect(await driver.put('a/b', bytes('2'), { if: { etag } })).toEqual({ status: 'lost' });
    utimesSync(lock, 1, 1);
    expect(await driver.put('a/b', bytes('2'), { if: { etag } })).toMatchObject({ status: 'written' });
  });

  it('lists page by page, and removes folders with their last file', async () => {
    const keys = Array.from({ length: 25 }, (_, i) => `site/${i % 3}/${String(i).padStart(2, '0')}`);
    for (const key of keys) await put(key, key);
    await put('other/1', '');
    writeFileSync(path.join(folder, 'site/0/x.tmp-0123'), '');
    const { entries, more } = await driver.list('site/', { limit: 10 });
    expect([entries.map(({ key }) => key), more]).toEqual([keys.toSorted().slice(0, 10), true]);
    const all: string[] = [];
    for await (const { key } of listAll(driver, 'site/')) all.push(key);
    expect(all).toEqual(keys.toSorted());
    expect(await driver.list('none/')).toEqual({ entries: [], more: false });
    expect(await driver.delete([...keys.filter((key) => key.startsWith('site/1')), 'site/none'])).toEqual({
      failed: [],
    });
    expect(readdirSync(path.join(folder, 'site')).toSorted()).toEqual(['0', '2']);
  });

  it('refuses keys that are no paths, and databases', async () => {
    for (const key of ['../up', 'a/../b', 'a//b', 'a/b.', '.hidden', 'a/b.lock', 'a\\b', 'a/con:']) {
      await expect(put(key, '')).rejects.toThrow('cannot be the path of a file');
    }
    await expect(put('db/block0', '')).rejects.toThrow('use FileDriver');
    expect(await driver.get('db/block0')).toEqual({ status: 'missing' });
    expect(() => new StaticFolderDriver('')).toThrow('takes the path of a folder');
    const message =
      'is a driver for bundles of db.publish() only (static-folder): use another one for the database, such as FileDriver';
    expect(() => StoreDb({ driver, dbPrefix: 'db', nodeId: 0 })).toThrow(message);
    expect(() => StoreDb({ driver: new WrappedDriver(driver), dbPrefix: 'db', nodeId: 0 })).toThrow(message);
  });

  it('streams what is long', async () => {
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 5; i++) yield bytes(`${i}`.repeat(1000));
    }
    await driver.put('a/long', chunks(), { if: 'absent' });
    expect(readFileSync(path.join(folder, 'a/long'), 'utf8')).toHaveLength(5000);
  });
});
