import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { newFolder } from '../../test/features/values/driver-under-test.ts';
import { InvalidOptionError } from '../base/errors.ts';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';
import { DiskCacheDriver } from './disk-cache.ts';

const run = promisify(execFile);
const mebibyte = 1024 * 1024;

function block(seed: number, sizeBytes = 1000): Uint8Array {
  return new Uint8Array(sizeBytes).map((_, i) => (i * 31 + seed) & 0xff);
}

/** Comparing them element by element would take long. */
function isBlock(bytes: Uint8Array | undefined, seed: number): boolean {
  return bytes !== undefined && Buffer.compare(bytes, block(seed, 16_000)) === 0;
}

/** All files below a folder. */
function filesIn(folder: string): string[] {
  return (fs.readdirSync(folder, { recursive: true }) as string[])
    .map((name) => path.join(folder, name))
    .filter((file) => fs.statSync(file).isFile());
}

function sizeOf(folder: string): number {
  return filesIn(folder).reduce((sum, file) => sum + fs.statSync(file).size, 0);
}

describe('DiskCacheDriver', () => {
  it('refuses options that make no sense', () => {
    expect(() => new DiskCacheDriver('')).toThrow(InvalidOptionError);
    expect(() => new DiskCacheDriver({} as never)).toThrow(InvalidOptionError);
    expect(() => new DiskCacheDriver({ path: 'x', maxSizeBytes: 1000 })).toThrow(/maxSizeBytes/);
    expect(() => new DiskCacheDriver({ path: 'x', maxSizeBytes: 2.5 * mebibyte + 0.5 })).toThrow(/maxSizeBytes/);
  });

  it('returns its blocks, also to later instances, until they are deleted', async () => {
    const folder = path.join(newFolder(), 'made', 'for it');
    const cache = new DiskCacheDriver(folder);
    expect(await cache.get('db/a')).toBeUndefined();
    await cache.delete('db/a');
    await cache.set('db/a', block(1));
    await cache.set('db/b', block(2));
    await cache.set('db/b', block(2));
    await cache.set('db/empty', new Uint8Array(0));
    await cache.idle();
    const later = new DiskCacheDriver(folder);
    expect(await later.get('db/a')).toEqual(block(1));
    expect(await later.get('db/b')).toEqual(block(2));
    expect(await later.get('db/empty')).toEqual(new Uint8Array(0));
    await later.delete('db/a');
    expect(await cache.get('db/a')).toBeUndefined();
    expect(filesIn(folder)).toHaveLength(2);
  });

  it('takes a file that is torn, damaged or of another key for none, and removes it', async () => {
    const folder = newFolder();
    const cache = new DiskCacheDriver(folder);
    const damages: readonly ((bytes: Buffer) => Uint8Array)[] = [
      (bytes) => bytes.subarray(0, -1),
      (bytes) => bytes.subarray(0, 10),
      () => new Uint8Array(0),
      (bytes) => Buffer.concat([bytes, Buffer.of(0)]),
      ...Array.from({ length: 40 }, (_, i) => (bytes: Buffer) => {
        const changed = Buffer.from(bytes);
        const at = Math.floor((i * bytes.length) / 40);
        changed[at] = (changed[at] as number) ^ (1 << (i & 7));
        return changed;
      }),
    ];
    for (const damage of damages) {
      await cache.set('db/a', block(1));
      const [file] = filesIn(folder) as [string];
      fs.writeFileSync(file, damage(fs.readFileSync(file)));
      expect(await cache.get('db/a')).toBeUndefined();
      expect(filesIn(folder)).toHaveLength(0);
    }
    await cache.set('db/a', block(1));
    const [a] = filesIn(folder) as [string];
    await cache.set('db/b', block(2));
    const b = filesIn(folder).find((file) => file !== a) as string;
    fs.copyFileSync(a, b);
    expect(await cache.get('db/b')).toBeUndefined();
    expect(await cache.get('db/a')).toEqual(block(1));
    expect(filesIn(folder)).toEqual([a]);
  });

  it('stays within its limit, and evicts the least recently used blocks', async () => {
    const folder = newFolder();
    const environment = new VirtualEnvironment({ startMs: Date.now() - 100_000_000 });
    const cache = new DiskCacheDriver({ path: folder, maxSizeBytes: mebibyte, environment });
    for (let i = 0; i < 150; i++) {
      await cache.set(`db/${i}`, block(i, 16_000));
      const usedMs = environment.now();
      const fresh = filesIn(folder).find((name) => fs.statSync(name).mtimeMs > usedMs + 50_000_000);
      if (fresh !== undefined) fs.utimesSync(fresh, usedMs / 1000, usedMs / 1000);
      environment.skewMs += 100_000;
      // Used all the time.
      expect(isBlock(await cache.get('db/0'), 0)).toBe(true);
      await cache.idle();
      expect(sizeOf(folder)).toBeLessThanOrEqual(mebibyte * 1.13);
    }
    expect(isBlock(await cache.get('db/149'), 149)).toBe(true);
    expect(await cache.get('db/1')).toBeUndefined();
    expect(filesIn(folder).length).toBeGreaterThan(40);
    await cache.set('db/large', new Uint8Array(mebibyte / 4));
    expect(await cache.get('db/large')).toBeUndefined();
  });

  it('writes no more while old blocks are being removed and there is no room', async () => {
    const folder = newFolder();
    const cache = new DiskCacheDriver({ path: folder, maxSizeBytes: mebibyte });
    await Promise.all(Array.from({ length: 400 }, (_, i) => cache.set(`db/${i}`, block(i, 16_000))));
    await cache.idle();
    for (let i = 0; i < 100; i++) await cache.set(`db/more${i}`, block(i, 16_000));
    await cache.idle();
    expect(sizeOf(folder)).toBeLessThan(mebibyte * 1.2);
  });

  it('removes old half-written files of others, and touches no foreign files', async () => {
    const folder = newFolder();
    const first = new DiskCacheDriver(folder);
    await first.set('db/a', block(1));
    await first.idle();
    const [held] = filesIn(folder) as [string];
    const old = path.join(path.dirname(held), '#old');
    const young = path.join(path.dirname(held), '#young');
    const foreign = path.join(folder, 'notes.txt');
    for (const file of [old, young, foreign]) fs.writeFileSync(file, 'x');
    for (const file of [old, foreign]) fs.utimesSync(file, 1000, 1000);
    const second = new DiskCacheDriver({ path: folder, maxSizeBytes: mebibyte });
    await second.set('db/b', block(2));
    await second.idle();
    expect([old, young, foreign].map((file) => fs.existsSync(file))).toEqual([false, true, true]);
  });

  it('survives that its folder is removed', async () => {
    const folder = path.join(newFolder(), 'cache');
    const cache = new DiskCacheDriver(folder);
    await cache.set('db/a', block(1));
    await cache.idle();
    fs.rmSync(folder, { recursive: true });
    expect(await cache.get('db/a')).toBeUndefined();
    await cache.set('db/a', block(1));
    await cache.set('db/a', block(1));
    expect(await cache.get('db/a')).toEqual(block(1));
    await cache.idle();
  });

  it('is shared by processes that are killed at any moment, and never gives wrong bytes', {
    timeout: 60_000,
  }, async () => {
    const folder = newFolder();
    const child = fileURLToPath(new URL('../../test/features/memory/disk-cache-child.ts', import.meta.url));
    const flags = ['--import', 'tsx', child, folder, String(mebibyte)];
    const children = [1, 2, 3].map((seed) =>
      run(process.execPath, [...flags, String(seed)], seed === 3 ? { timeout: 2500, killSignal: 'SIGKILL' } : {}),
    );
    const results = await Promise.allSettled(children);
    for (const result of results.slice(0, 2)) {
      if (result.status === 'rejected') throw result.reason;
      const { hits, wrong } = JSON.parse(result.value.stdout) as { hits: number; wrong: number };
      expect(wrong).toBe(0);
      expect(hits).toBeGreaterThan(50);
    }
    // Each of them may exceed the limit by an eighth.
    expect(sizeOf(folder)).toBeLessThan(mebibyte * 1.5);
  });
});
