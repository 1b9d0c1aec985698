import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { encodeUtf8 } from '../../base/bytes.ts';
import { realEnvironment } from '../../base/env.ts';
import type { Environment } from '../../base/env.ts';
import { InvalidOptionError, StorageError } from '../../base/errors.ts';
import { VirtualEnvironment } from '../../testing/virtual-environment.ts';
import { FileDriver } from './file-driver.ts';
import { NodeFileSystem } from './node-file-system.ts';
import { WriteLanes } from './write-lanes.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'store-db-file-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const names = (under = ''): string[] => readdirSync(path.join(folder, under)).toSorted();
const temporaries = (): string[] => names().filter((name) => name.startsWith('#'));

async function text(driver: FileDriver, key: string): Promise<string> {
  const result = await driver.get(key);
  return result.status === 'found' ? Buffer.from(result.bytes).toString() : result.status;
}

async function replace(driver: FileDriver, key: string, body: string): Promise<void> {
  const current = await driver.get(key);
  const etag = current.status === 'found' ? current.etag : '';
  expect((await driver.put(key, encodeUtf8(body), { if: { etag } })).status).toBe('written');
}

type Call = 'create' | 'link' | 'syncFolder' | 'write' | 'syncFile' | 'createFolder' | 'remove';

/** Fails chosen calls with chosen codes, and counts all of them. */
class FaultyFileSystem extends NodeFileSystem {
  readonly faults = new Map<Call, string>();
  readonly counts = new Map<Call, number>();

  constructor() {
    super(realEnvironment);
  }

  #call(call: Call): void {
    this.counts.set(call, (this.counts.get(call) ?? 0) + 1);
    const code = this.faults.get(call);
    if (code !== undefined) throw Object.assign(new Error(`${code}: made up`), { code });
  }

  override async create(...args: Parameters<NodeFileSystem['create']>): ReturnType<NodeFileSystem['create']> {
    this.#call('create');
    const file = await super.create(...args);
    if (file === undefined) return undefined;
    return {
      write: async (bytes) => {
        this.#call('write');
        await file.write(bytes);
      },
      sync: async () => {
        this.#call('syncFile');
        await file.sync();
      },
      close: () => file.close(),
    };
  }

  override async link(...args: Parameters<NodeFileSystem['link']>): ReturnType<NodeFileSystem['link']> {
    this.#call('link');
    return await super.link(...args);
  }

  override async createFolder(
    ...args: Parameters<NodeFileSystem['createFolder']>
  ): ReturnType<NodeFileSystem['createFolder']> {
    this.#call('createFolder');
    return await super.createFolder(...args);
  }

  override async syncFolder(...args: Parameters<NodeFileSystem['syncFolder']>): Promise<void> {
    this.#call('syncFolder');
    await super.syncFolder(...args);
  }

  override async remove(...args: Parameters<NodeFileSystem['remove']>): Promise<boolean> {
    this.#call('remove');
    return await super.remove(...args);
  }
}

function faulty(): { system: FaultyFileSystem; driver: FileDriver } {
  const system = new FaultyFileSystem();
  return { system, driver: new FileDriver({ path: folder, fileSystem: system }) };
}

describe('FileDriver', () => {
  it('wants a path', () => {
    expect(() => new FileDriver('')).toThrow(InvalidOptionError);
    expect(() => new FileDriver({ path: 7 as unknown as string })).toThrow('path of a folder');
    expect(() => new FileDriver({ path: folder, durability: 'maybe' as 'none' })).toThrow("'fsync' or 'none'");
  });

  it('makes its folder with the first write, not before', async () => {
    const driver = new FileDriver(path.join(folder, 'a', 'b'));
    expect(await driver.get('k')).toEqual({ status: 'missing' });
    expect(await driver.list('')).toEqual({ entries: [], more: false });
    expect(await driver.delete(['k'])).toEqual({ failed: [] });
    expect(names()).toEqual([]);
    await driver.put('k', encodeUtf8('x'), { if: 'absent' });
    expect(names('a/b')).toEqual(['k']);
  });

  it('keeps an object that is only created in one file', async () => {
    const driver = new FileDriver(folder);
    await driver.put('committed/1', encodeUtf8('one'), { if: 'absent' });
    expect(names('committed@')).toEqual(['1']);
    expect(readFileSync(path.join(folder, 'committed@/1'), 'latin1')).toMatch(/^one\nsdb1 o [0-9a-f]{16}\n$/);
    await driver.delete(['committed/1']);
    expect(names('committed@')).toEqual([]);
  });

  it('keeps few versions of an object that is replaced, and frees the space of the others', async () => {
    const driver = new FileDriver(folder);
    await driver.put('block0', Buffer.alloc(100_000), { if: 'absent' });
    for (let i = 0; i < 40; i++) await replace(driver, 'block0', `version ${i}`);
    expect(names('block0+').length).toBeLessThanOrEqual(11);
    expect(readFileSync(path.join(folder, 'block0')).length).toBe(25);
    expect(await text(driver, 'block0')).toBe('version 39');
    const large = Buffer.alloc(2_000_000, 'large');
    await driver.put('large', large, { if: 'absent' });
    for (let i = 0; i < 3; i++) await driver.put('large', large, { if: 'any' });
    expect(names('large+')).toEqual(['4', 'cleaned']);
    expect(temporaries()).toEqual([]);
  });

  it('reads a folder that was copied, with the same ETags', async () => {
    const driver = new FileDriver(folder);
    await driver.put('k', encodeUtf8('x'), { if: 'absent' });
    const before = await driver.get('k');
    const copy = path.join(folder, 'copy');
    mkdirSync(copy);
    writeFileSync(path.join(copy, 'k'), readFileSync(path.join(folder, 'k')));
    const after = await new FileDriver(copy).get('k');
    expect(after.status === 'found' && after.etag).toBe(before.status === 'found' && before.etag);
  });

  it('goes on when its folder is removed under it', async () => {
    const driver = new FileDriver(folder);
    for (const round of ['one', 'two']) {
      await driver.put('a/k', encodeUtf8(round), { if: 'absent' });
      await replace(driver, 'a/k', `${round} again`);
      expect(await text(driver, 'a/k')).toBe(`${round} again`);
      rmSync(folder, { recursive: true });
      expect(await text(driver, 'a/k')).toBe('missing');
    }
  });

  it('leaves a folder whose objects are gone', async () => {
    const driver = new FileDriver(folder);
    await driver.put('a/b/object', encodeUtf8('text'), { if: 'absent' });
    await driver.delete(['a/b/object']);
    expect(await text(driver, 'a/b/object')).toBe('missing');
    expect(names()).toEqual(['a@']);
    expect(names('a@/b@')).toEqual([]);
  });

  it('leaves foreign files alone, and refuses damaged ones', async () => {
    const driver = new FileDriver(folder);
    await driver.put('good', encodeUtf8('good'), { if: 'absent' });
    for (const name of ['README', '.DS_Store', 'Thumbs.db', '%ZZ']) writeFileSync(path.join(folder, name), 'foreign');
    writeFileSync(path.join(folder, 'cut'), readFileSync(path.join(folder, 'good')).subarray(0, 20));
    writeFileSync(path.join(folder, 'empty'), '');
    for (const key of ['cut', 'empty']) {
      const error: unknown = await driver.get(key).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'STORAGE', key, outcome: 'none' });
      expect((error as Error).message).toContain('damaged');
    }
    rmSync(path.join(folder, 'cut'));
    rmSync(path.join(folder, 'empty'));
    expect((await driver.list('')).entries.map((entry) => entry.key)).toEqual(['good']);
  });

  it('shares the sync of a folder among writes at the same time', async () => {
    const { system, driver } = faulty();
    await driver.put('log/first', encodeUtf8('x'), { if: 'absent' });
    system.counts.clear();
    await Promise.all(Array.from({ length: 50 }, (_, i) => driver.put(`log/${i}`, encodeUtf8('x'), { if: 'absent' })));
    expect(system.counts.get('syncFile')).toBe(50);
    expect(system.counts.get('syncFolder')).toBeLessThan(30);
  });

  it('syncs nothing where durability is none', async () => {
    const system = new FaultyFileSystem();
    const driver = new FileDriver({ path: folder, fileSystem: system, durability: 'none' });
    await driver.put('k', encodeUtf8('x'), { if: 'absent' });
    await replace(driver, 'k', 'y');
    await driver.delete(['k']);
    expect([system.counts.get('syncFile'), system.counts.get('syncFolder')]).toEqual([undefined, undefined]);
  });

  it('lets timers and I/O have their turn in a long row of small requests', async () => {
    const driver = new FileDriver(folder);
    await driver.put('k', encodeUtf8('x'), { if: 'absent' });
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    for (let i = 0; i < 3000; i++) await driver.get('k');
    clearInterval(timer);
    expect(turns).toBeGreaterThan(3);
  });

  it('works as well when every operation goes to the thread pool', async () => {
    let nowMs = 0;
    // By this clock every operation takes long.
    const environment = Object.assign(Object.create(realEnvironment) as Environment, {
      monotonicMs: () => (nowMs += 50),
    });
    const slow = new NodeFileSystem(environment);
    const driver = new FileDriver({ path: folder, fileSystem: slow });
    await driver.put('a/k', encodeUtf8('x'), { if: 'absent' });
    for (let i = 0; i < 10; i++) await replace(driver, 'a/k', `version ${i}`);
    expect(await text(driver, 'a/k')).toBe('version 9');
    expect(await text(driver, 'a/none')).toBe('missing');
    expect((await driver.list('a')).entries.map((entry) => entry.key)).toEqual(['a/k']);
    expect(await driver.delete(['a/k', 'a/none'])).toEqual({ failed: [] });
    expect(await driver.list('')).toEqual({ entries: [], more: false });
  });

  it('lists a large quiet folder page by page, with objects put between the pages', async () => {
    const driver = new FileDriver({ path: folder, durability: 'none' });
    await driver.put('n/seed', encodeUtf8('x'), { if: 'absent' });
    const bytes = readFileSync(path.join(folder, 'n@/seed'));
    for (let i = 10_000; i < 12_500; i++) writeFileSync(path.join(folder, `n@/${i}`), bytes);
    const past = new Date(Date.now() - 60_000);
    utimesSync(path.join(folder, 'n@'), past, past);
    const first = await driver.list('n/');
    const second = await driver.list('n/', { after: 'n/10999' });
    expect(second.entries[0]?.key).toBe('n/11000');
    await driver.put('n/11999x', encodeUtf8('x'), { if: 'absent' });
    const third = await driver.list('n/', { after: 'n/11999' });
    expect([first.more, second.more, third.more]).toEqual([true, true, false]);
    expect(third.entries.slice(0, 2).map((entry) => entry.key)).toEqual(['n/11999x', 'n/12000']);
  });
});

describe('FileDriver, when the file system fails', () => {
  it.each([
    ['create', 'ENOSPC', 'none', 'disk is full'],
    ['write', 'ENOSPC', 'none', 'disk is full'],
    ['syncFile', 'EIO', 'none', 'disk reported an error'],
    ['create', 'EACCES', 'none', 'Permission was denied'],
    ['create', 'EROFS', 'none', 'read-only'],
    ['create', 'EMFILE', 'none', 'ulimit -n'],
    ['link', 'EPERM', 'none', 'hard links'],
    ['link', 'EIO', 'unknown', 'disk reported an error'],
    ['syncFolder', 'EIO', 'unknown', 'disk reported an error'],
  ] as const)('%s with %s: the outcome is %s', async (call, code, outcome, advice) => {
    const { system, driver } = faulty();
    await driver.put('before', encodeUtf8('x'), { if: 'absent' });
    system.faults.set(call, code);
    const error: unknown = await driver.put('k', encodeUtf8('x'), { if: 'absent' }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StorageError);
    expect(error).toMatchObject({ key: 'k', outcome, cause: { code } });
    expect((error as Error).message).toContain(advice);
    system.faults.clear();
    const status = (await driver.get('k')).status;
    expect(status).toBe(call === 'syncFolder' ? 'found' : 'missing');
    // While the write may not be durable, its second name shows that to every reader.
    expect(temporaries().length).toBe(outcome === 'unknown' ? 1 : 0);
  });

  it('a reader makes an object durable that a writer could not', async () => {
    const { system, driver } = faulty();
    await driver.put('before', encodeUtf8('x'), { if: 'absent' });
    system.faults.set('syncFolder', 'EIO');
    await expect(driver.put('k', encodeUtf8('x'), { if: 'absent' })).rejects.toMatchObject({ outcome: 'unknown' });
    await expect(driver.get('k')).rejects.toMatchObject({ outcome: 'none' });
    await expect(driver.list('')).rejects.toMatchObject({ outcome: 'none' });
    system.faults.clear();
    system.counts.clear();
    expect(await text(driver, 'k')).toBe('x');
    expect(system.counts.get('syncFolder')).toBe(1);
    expect(await text(driver, 'k')).toBe('x');
    expect(system.counts.get('syncFolder')).toBe(1);
  });

  it('reads from a folder that cannot be written', async () => {
    const { system, driver } = faulty();
    await driver.put('plain', encodeUtf8('x'), { if: 'absent' });
    await driver.put('replaced', encodeUtf8('x'), { if: 'absent' });
    await replace(driver, 'replaced', 'y');
    for (const call of ['create', 'link', 'createFolder', 'remove'] as const) system.faults.set(call, 'EROFS');
    expect([await text(driver, 'plain'), await text(driver, 'replaced')]).toEqual(['x', 'y']);
    expect((await driver.list('')).entries.length).toBe(2);
    const { failed } = await driver.delete(['plain', 'replaced']);
    expect(failed.map(({ key }) => key)).toEqual(['plain', 'replaced']);
    expect(failed[0]?.message).toContain('read-only');
  });

  it('a failed create takes nothing with it', async () => {
    const { system, driver } = faulty();
    system.faults.set('createFolder', 'EACCES');
    await expect(driver.put('a/k', encodeUtf8('x'), { if: 'any' })).rejects.toMatchObject({ outcome: 'none' });
    system.faults.clear();
    expect((await driver.put('a/k', encodeUtf8('x'), { if: 'absent' })).status).toBe('written');
  });

  it('a file in the place of a folder is explained', async () => {
    writeFileSync(path.join(folder, 'file'), 'x');
    const driver = new FileDriver(path.join(folder, 'file', 'data'));
    await expect(driver.put('k', encodeUtf8('x'), { if: 'any' })).rejects.toThrow('a file where a folder is needed');
  });
});

describe('FileDriver, temporary files', () => {
  const age = (name: string): void => {
    const past = new Date(Date.now() - 2 * 60 * 60 * 1000);
    utimesSync(path.join(folder, name), past, past);
  };

  it('sweeps the remains of crashed writers once they are old', async () => {
    const driver = new FileDriver(folder);
    await driver.put('k', encodeUtf8('x'), { if: 'absent' });
    for (const name of ['#young', '#old', '#swept-before']) writeFileSync(path.join(folder, name), 'left');
    age('#old');
    age('#swept-before');
    expect((await driver.list('')).entries.map((entry) => entry.key)).toEqual(['k']);
    expect(temporaries()).toEqual(['#young']);
  });

  it('a writer whose file was swept writes it again', async () => {
    class SweepingFileSystem extends NodeFileSystem {
      sweeps = 2;
      override async link(from: string, to: string): Promise<'linked' | 'exists' | 'missing'> {
        if (this.sweeps-- > 0) rmSync(from);
        return await super.link(from, to);
      }
    }
    const system = new SweepingFileSystem(realEnvironment);
    const driver = new FileDriver({ path: folder, fileSystem: system });
    expect((await driver.put('k', encodeUtf8('x'), { if: 'absent' })).status).toBe('written');
    system.sweeps = 1;
    await expect(driver.put('s', one('x'), { if: 'absent' })).rejects.toMatchObject({ outcome: 'none' });
    system.sweeps = 100;
    await expect(driver.put('t', encodeUtf8('x'), { if: 'absent' })).rejects.toMatchObject({ outcome: 'none' });
    expect(names()).toEqual(['k']);
  });

  it('a stream that is given up leaves nothing behind', async () => {
    const driver = new FileDriver(folder);
    const controller = new AbortController();
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (let i = 0; ; i++) {
        if (i === 5) controller.abort();
        yield await Promise.resolve(new Uint8Array(300_000));
      }
    }
    const put = driver.put('k', endless(), { if: 'absent', signal: controller.signal });
    await expect(put).rejects.toMatchObject({ outcome: 'none' });
    expect(existsSync(folder) && names()).toEqual([]);
  });
});

async function* one(body: string): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(encodeUtf8(body));
}

/** Writes that end on request, through lanes on a virtual clock. */
class Desk {
  readonly environment = new VirtualEnvironment();
  readonly #lanes = new WriteLanes(this.environment);
  readonly #running: (() => void)[] = [];
  began = 0;
  failed = 0;

  get running(): number {
    return this.#running.length;
  }

  async write(isBackground: boolean, fails = false, signal?: AbortSignal): Promise<void> {
    const write = async (): Promise<void> => {
      signal?.throwIfAborted();
      this.began++;
      await new Promise<void>((resolve) => {
        this.#running.push(resolve);
      });
      if (fails) throw new Error('no room');
    };
    await this.#lanes.write(isBackground, write, signal);
  }

  start(count: number, isBackground: boolean, fails = false): Promise<unknown> {
    return Promise.all(
      Array.from({ length: count }, () =>
        this.write(isBackground, fails).catch(() => {
          this.failed++;
        }),
      ),
    );
  }

  /** Ends the writes that began first. */
  async end(count: number): Promise<void> {
    for (const done of this.#running.splice(0, count)) done();
    await this.environment.advance(0);
  }
}

describe('Writes of a folder', () => {
  it('of the background look at no object before they create one', async () => {
    class Looking extends NodeFileSystem {
      looks = 0;
      override open(name: string): ReturnType<NodeFileSystem['open']> {
        this.looks++;
        return super.open(name);
      }
    }
    const fileSystem = new Looking(realEnvironment);
    const driver = new FileDriver({ path: folder, fileSystem });
    const options = { if: 'absent', background: true } as const;
    expect(await driver.put('data/x', encodeUtf8('block'), options)).toMatchObject({ status: 'written' });
    expect(fileSystem.looks).toBe(0);
    expect(await text(driver, 'data/x')).toBe('block');
  });

  it('of the background lose to an object that is there, also to one that was replaced or made again', async () => {
    const driver = new FileDriver(folder);
    const options = { if: 'absent', background: true } as const;
    const put = async (): Promise<string> => (await driver.put('k', encodeUtf8('block'), options)).status;
    expect([await put(), await put()]).toEqual(['written', 'lost']);
    await driver.delete(['k']);
    expect([await put(), await put()]).toEqual(['written', 'lost']);
    await replace(driver, 'k', 'another');
    expect(await put()).toBe('lost');
    expect(await text(driver, 'k')).toBe('another');
    await driver.delete(['k']);
    expect([await put(), await put()]).toEqual(['written', 'lost']);
    expect(await text(driver, 'k')).toBe('block');
    expect(temporaries()).toEqual([]);
  });

  it('are made at once, however many of the background there are', async () => {
    const desk = new Desk();
    void desk.start(40, true);
    await desk.environment.advance(0);
    expect(desk.running).toBe(16);
    void desk.start(5, false);
    await desk.environment.advance(0);
    expect(desk.running).toBe(21);
  });

  it('of the background are few while others run, and many again when those have ended', async () => {
    const desk = new Desk();
    void desk.start(1, false);
    const all = desk.start(30, true);
    await desk.environment.advance(0);
    expect(desk.running).toBe(4);
    // The other one ends; for a moment another is expected.
    await desk.end(1);
    await desk.end(1);
    expect(desk.running).toBe(3);
    await desk.environment.advance(60);
    await desk.end(1);
    expect(desk.running).toBe(16);
    while (desk.running > 0) await desk.end(desk.running);
    await all;
    expect(desk.began).toBe(31);
  });

  it('of the background wait no longer than their signals say', async () => {
    const desk = new Desk();
    const all = desk.start(16, true);
    const controller = new AbortController();
    const given = desk.write(true, false, controller.signal);
    const other = desk.start(1, true);
    await desk.environment.advance(0);
    controller.abort(new Error('given up'));
    await expect(given).rejects.toThrow('given up');
    expect(desk.began).toBe(16);
    await desk.end(16);
    await all;
    expect(desk.running).toBe(1);
    await desk.end(1);
    await other;
  });

  it('leave their places when they fail', async () => {
    const desk = new Desk();
    const all = desk.start(20, true, true);
    await desk.environment.advance(0);
    while (desk.running > 0) await desk.end(desk.running);
    await all;
    expect(desk.failed).toBe(20);
    void desk.start(20, true);
    await desk.environment.advance(0);
    expect(desk.running).toBe(16);
  });
});
