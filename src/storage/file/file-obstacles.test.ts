/** Pipes, links and other obstacles in the place of a folder or an object must never block a process. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../../base/bytes.ts';
import { defined } from '../../base/options.ts';
import { realEnvironment, sleep } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { DiskCacheDriver } from '../disk-cache.ts';
import { placeOf } from './file-names.ts';
import { FileDriver } from './file-driver.ts';
import { NodeFileSystem } from './node-file-system.ts';
import { MAX_WHOLE_BYTES } from '../contract/requests.ts';

const pipeMaker = 'mkfifo';
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-obstacle-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Every operation seems slow, so that the next ones go to the thread pool. */
const slow: Environment = Object.assign(Object.create(realEnvironment) as Environment, {
  monotonicMs: (() => {
    let at = 0;
    return () => (at += 10);
  })(),
});

describe.skipIf(process.platform === 'win32')('FileDriver, a symbolic link that leads nowhere', () => {
  it('refuses writes at once where it is the folder, and writes nothing when the target appears', async () => {
    const target = path.join(folder, 'target');
    const link = path.join(folder, 'link');
    symlinkSync(target, link);
    const driver = new FileDriver(link);
    const put = driver.put('db/committed/1', encodeUtf8('x'), { if: 'absent' });
    await expect(put).rejects.toMatchObject({ code: 'STORAGE', outcome: 'none' });
    await expect(put).rejects.toThrow('a symbolic link whose target is missing');
    mkdirSync(target);
    await sleep(realEnvironment, 20);
    expect(readdirSync(target)).toEqual([]);
    expect((await driver.put('db/committed/1', encodeUtf8('x'), { if: 'absent' })).status).toBe('written');
  });

  it('is no empty folder for those who read', async () => {
    const [target, link] = [path.join(folder, 'target'), path.join(folder, 'link')];
    symlinkSync(target, link);
    const driver = new FileDriver(link);
    const failed = { code: 'STORAGE', message: expect.stringContaining('whose target is missing') as unknown };
    await expect(driver.get('db/block0')).rejects.toMatchObject(failed);
    await expect(driver.list('db/')).rejects.toMatchObject(failed);
    mkdirSync(target);
    expect(await driver.get('db/block0')).toEqual({ status: 'missing' });
    expect((await driver.list('db/')).entries).toEqual([]);
    // A missing path counts as a folder that has not been created yet.
    expect(await new FileDriver(path.join(folder, 'new')).get('db/block0')).toEqual({ status: 'missing' });
  });

  it('refuses them where it is a folder within', async () => {
    const committed = path.join(folder, placeOf('db/committed/1').folder);
    mkdirSync(path.dirname(committed), { recursive: true });
    symlinkSync(path.join(folder, 'nowhere'), committed.slice(0, -1));
    const driver = new FileDriver(folder);
    for (const key of ['db/committed/1', 'db/committed/deep/er/1']) {
      const put = driver.put(key, encodeUtf8('x'), { if: 'absent' });
      await expect(put).rejects.toMatchObject({ code: 'STORAGE', outcome: 'none' });
    }
    expect(await driver.get('db/committed/1')).toEqual({ status: 'missing' });
    expect(existsSync(path.join(folder, 'nowhere'))).toBe(false);
  });

  it('a write that was given up while it waited is not made afterwards', async () => {
    const giveUp = new AbortController();
    class LateFileSystem extends NodeFileSystem {
      override async link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'> {
        return await super.link(from, to);
      }
      override async createFolder(at: string): Promise<'created' | 'exists' | 'missing'> {
        const made = await super.createFolder(at);
        giveUp.abort(new Error('given up'));
        return made;
      }
    }
    const driver = new FileDriver({ path: folder, fileSystem: new LateFileSystem(realEnvironment) });
    const put = driver.put('db/1', encodeUtf8('x'), { if: 'absent', signal: giveUp.signal });
    await expect(put).rejects.toMatchObject({ code: 'STORAGE', outcome: 'none' });
    expect(readdirSync(path.join(folder, placeOf('db/1').folder))).toEqual([]);
  });
});

describe.skipIf(process.platform === 'win32')('FileDriver, a pipe, a device or a socket in place of an object', () => {
  async function withObstacles(check: (key: string) => Promise<void>): Promise<void> {
    execFileSync(pipeMaker, [path.join(folder, 'pipe')]);
    symlinkSync('/dev/zero', path.join(folder, 'device'));
    const server = createServer();
    server.listen(path.join(folder, 'socket'));
    await once(server, 'listening');
    try {
      for (const key of ['pipe', 'device', 'socket']) await check(key);
    } finally {
      server.close();
    }
  }

  for (const [how, environment] of [
    ['at once', realEnvironment],
    ['in the pool', slow],
  ] as const) {
    it(`says so and does not wait, with operations made ${how}`, async () => {
      const driver = new FileDriver({ path: folder, environment });
      if (environment === slow) await driver.get('nothing');
      await withObstacles(async (key) => {
        for (const range of [undefined, { start: 0, end: 10 }]) {
          const get = driver.get(key, defined({ range }));
          await expect(get).rejects.toMatchObject({ code: 'STORAGE', key, outcome: 'none' });
          await expect(get).rejects.toThrow('a pipe, a device or a socket where a file is needed');
        }
        const put = driver.put(key, encodeUtf8('x'), { if: 'absent' });
        await expect(put).rejects.toThrow('a pipe, a device or a socket where a file is needed');
        await expect(driver.copy(key, 'copy')).rejects.toMatchObject({ code: 'STORAGE' });
      });
      await expect(driver.list('')).rejects.toThrow('a pipe, a device or a socket');
    });
  }

  it('a disk cache passes over a pipe', async () => {
    const cache = new DiskCacheDriver(folder);
    await cache.set('key', encodeUtf8('block'));
    await cache.idle();
    const [sub] = readdirSync(folder) as [string];
    const [file] = readdirSync(path.join(folder, sub)) as [string];
    rmSync(path.join(folder, sub, file));
    execFileSync(pipeMaker, [path.join(folder, sub, file)]);
    expect(await cache.get('key')).toBeUndefined();
    writeFileSync(path.join(folder, 'still-here'), '');
  });
});

it('FileDriver does not read a file into memory that is larger than any object', async () => {
  const driver = new FileDriver(folder);
  await driver.put('k', encodeUtf8('x'), { if: 'absent' });
  const trailer = readFileSync(path.join(folder, 'k')).subarray(1);
  truncateSync(path.join(folder, 'k'), MAX_WHOLE_BYTES + 1);
  appendFileSync(path.join(folder, 'k'), trailer);
  await expect(driver.get('k')).rejects.toMatchObject({ code: 'STORAGE', key: 'k', outcome: 'none' });
  await expect(driver.get('k', { ifNoneMatch: 'another' })).rejects.toThrow('StoreDb does not write such');
  expect(await driver.get('k', { range: { start: 0, end: 1 } })).toMatchObject({ status: 'found' });
});
