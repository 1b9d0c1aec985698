/** A new database is created only on a store that was certified as safe; and `db.doctor()` reports about stores. */
import {
  AbortedError,
  formatStoreReport,
  NotADatabaseError,
  StorageError,
  StoreDb,
  UnsafeStoreError,
  type Database,
  type Logger,
} from 'store-db';
import { FileDriver, MemoryDriver, ObservedDriver } from 'store-db/lib/storage';
import type {
  GetOptions,
  GetResult,
  ListOptions,
  ListPage,
  ObservedRequest,
  PutBody,
  PutOptions,
  PutResult,
  StorageDriver,
} from 'store-db/lib/storage';
import { FaultyDriver, VirtualEnvironment, createDatabase } from 'store-db/testing';
import { describe, expect, it } from 'vitest';
import { newFolder } from '../values/driver-under-test.ts';

/** A store as others than the driver in memory are: nobody vouches for it. */
class Uncertified implements StorageDriver {
  readonly name = 'strange';
  readonly inner = new MemoryDriver();
  closed = 0;
  get(key: string, options?: GetOptions): Promise<GetResult> {
    return this.inner.get(key, options);
  }
  put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.inner.put(key, body, options);
  }
  delete(keys: readonly string[]): ReturnType<StorageDriver['delete']> {
    return this.inner.delete(keys);
  }
  list(prefix: string, options?: ListOptions): Promise<ListPage> {
    return this.inner.list(prefix, options);
  }
  describe(): Record<string, string> {
    return { flavour: 'vanilla' };
  }
  close(): Promise<void> {
    this.closed++;
    return Promise.resolve();
  }
  async keys(): Promise<string[]> {
    return (await this.inner.list('')).entries.map(({ key }) => key);
  }
}

class Unsafe extends Uncertified {
  override put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    return this.inner.put(key, body, { ...options, if: 'any' });
  }
}

class Forbids extends Uncertified {
  readonly #kinds: readonly string[];
  constructor(...kinds: string[]) {
    super();
    this.#kinds = kinds;
  }
  async #check(kind: string): Promise<void> {
    if (!this.#kinds.includes(kind)) return;
    throw new StorageError('x', 'none', `Grant strange:${kind}.`, { reason: 'forbidden' });
  }
  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    await this.#check('read');
    return super.get(key, options);
  }
  override async put(key: string, body: PutBody, options: PutOptions): Promise<PutResult> {
    await this.#check('write');
    return super.put(key, body, options);
  }
  override async list(prefix: string, options?: ListOptions): Promise<ListPage> {
    await this.#check('list');
    return super.list(prefix, options);
  }
  override async delete(keys: readonly string[]): ReturnType<StorageDriver['delete']> {
    await this.#check('delete');
    return super.delete(keys);
  }
}

function collectingLogger(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const at = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  return { lines, logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } };
}

function open(driver: StorageDriver, logger?: Logger): Database {
  return StoreDb({
    dbPrefix: 'shop',
    nodeId: 0,
    driver,
    ...(logger === undefined ? { logLevel: 'silent' } : { logger }),
  });
}

describe('creating a database', () => {
  it('tries the store out first, says so, and leaves nothing but Block 0', async () => {
    const { lines, logger } = collectingLogger();
    const driver = new Uncertified();
    const db = open(driver, logger);
    await db.start();
    await db.stop();
    expect(lines).toEqual([expect.stringMatching(/^info Certified the store \(driver strange\) .* in \d+ ms$/)]);
    expect(await driver.keys()).toEqual(['shop/block0']);
  });

  it('takes fewer than a hundred requests in all', async () => {
    const requests: ObservedRequest[] = [];
    const db = open(new ObservedDriver(new Uncertified(), { onRequest: (request) => requests.push(request) }));
    await db.start();
    await db.stop();
    expect(requests).toHaveLength(99);
    const own = requests.map(({ kind, key }) => `${kind} ${key}`).filter((line) => !line.includes('/probe/'));
    // The probes come after the second look, and before anything is created.
    expect(own).toEqual([
      'get shop/block0',
      'list shop/',
      'get shop/block0',
      'put shop/block0',
      'get shop/committed/0000000000000001',
      // It leaves the list of nodes.
      'put shop/block0',
    ]);
    const firstProbe = requests.findIndex(({ key }) => key.includes('/probe/'));
    expect(requests[firstProbe - 1]).toMatchObject({ kind: 'get', key: 'shop/block0' });
  });

  it('is refused on an unsafe store, and nothing there is changed', async () => {
    const driver = new Unsafe();
    const error: unknown = await open(driver)
      .start()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(UnsafeStoreError);
    const { message, problems } = error as UnsafeStoreError;
    expect(problems).toContain('A create-only put (If-None-Match: *) replaced an object that was there.');
    expect(problems.every((finding) => message.includes(finding))).toBe(true);
    expect(message).toContain('none was created under shop/');
    expect(await driver.keys()).toEqual([]);
  });

  it('happens only at the creation: an existing database is opened without', async () => {
    const driver = new Uncertified();
    const first = open(driver);
    await first.start();
    await first.stop();
    const { lines, logger } = collectingLogger();
    const second = open(driver, logger);
    await second.start();
    expect(second.stats().requests).toMatchObject({ get: 1, getMissing: 1, put: 0, list: 0 });
    expect(lines).toEqual([]);
    await second.stop();
  });

  it('needs no trying out on a certified driver', async () => {
    const db = open(new MemoryDriver());
    await db.start();
    expect(db.stats().requests).toMatchObject({ put: 1, list: 1 });
    await db.stop();
  });

  it('by two at once gives one database', async () => {
    const driver = new Uncertified();
    const nodes = [0, 1].map((nodeId) => StoreDb({ dbPrefix: 'shop', nodeId, driver, logLevel: 'silent' }));
    await Promise.all(nodes.map((db) => db.start()));
    await Promise.all(nodes.map((db) => db.stop()));
    expect(await driver.keys()).toEqual(['shop/block0']);
  });

  it('works in a folder', async () => {
    const driver = new FileDriver({ path: newFolder(), durability: 'none' });
    const db = open(driver);
    await db.start();
    await db.stop();
    expect((await driver.list('')).entries.map(({ key }) => key)).toEqual(['shop/block0']);
  });

  it.each(['read', 'write', 'list'])('without permission to %s names the permission to grant', async (kind) => {
    const driver = new Forbids(kind);
    const starting = open(driver).start();
    await expect(starting).rejects.toMatchObject({ code: 'STORAGE', reason: 'forbidden' });
    await expect(starting).rejects.toThrow(`Grant strange:${kind}.`);
    expect(await driver.keys()).toEqual([]);
  });

  it('without permission to delete goes well, with a warning', async () => {
    const { lines, logger } = collectingLogger();
    const driver = new Forbids('delete');
    const db = open(driver, logger);
    await db.start();
    await db.stop();
    expect(lines[0]).toMatch(/^warn .*deletions.* stay: Grant strange:delete\.$/);
    expect((await driver.keys()).filter((key) => !key.startsWith('shop/probe/'))).toEqual(['shop/block0']);
    // And what stays hinders nobody.
    await driver.inner.delete(['shop/block0']);
    const again = open(driver);
    await again.start();
    await again.stop();
  });

  it('on a store that fails too often says that it could not be tried out', async () => {
    const environment = new VirtualEnvironment();
    const faulty = new FaultyDriver(new Uncertified(), { environment });
    const put = faulty.put.bind(faulty);
    faulty.put = (key, body, options) => {
      if (options.if !== 'absent' || !key.includes('race')) return put(key, body, options);
      return Promise.reject(new StorageError(key, 'unknown', 'Busy.'));
    };
    const options = { dbPrefix: 'shop', nodeId: 0, driver: faulty, logLevel: 'silent' } as const;
    const starting = environment.run(createDatabase(options, environment).start());
    await expect(starting).rejects.toMatchObject({ code: 'STORAGE', outcome: 'none', reason: undefined });
    await expect(starting).rejects.toThrow(/could not be tried out, and no database was created .* Busy\./);
  });
});

describe('db.doctor()', () => {
  it('reports the store and the database before, while and after it is open', async () => {
    const driver = new Uncertified();
    const db = open(driver);
    const before = await db.doctor();
    expect(before).toMatchObject({
      safe: true,
      driver: 'strange',
      dialect: { flavour: 'vanilla' },
      recommendations: [],
    });
    expect(before.database).toMatchObject({ status: 'none', revision: undefined });
    expect(driver.closed).toBe(1);
    await db.start();
    const during = await db.doctor();
    expect(during.database).toMatchObject({ status: 'found', formatVersion: 1, revision: 1, generation: 0 });
    // The running database needs its driver.
    expect(driver.closed).toBe(1);
    await db.stop();
    expect((await db.doctor()).database).toMatchObject({
      status: 'found',
      formatVersion: 1,
      revision: 2,
      generation: 0,
    });
    expect(driver.closed).toBe(3);
    expect(await driver.keys()).toEqual(['shop/block0']);
  });

  it('reports an unsafe store, the remedy, and why start() fails', async () => {
    const db = open(new Unsafe());
    await expect(db.start()).rejects.toThrow(UnsafeStoreError);
    const report = await db.doctor();
    expect(report.safe).toBe(false);
    expect(report.problems.length).toBeGreaterThan(2);
    expect(report.recommendations).toEqual([expect.stringContaining('Do not keep a database in this store')]);
  });

  it.each(['read', 'write', 'list', 'delete'])('reports that it may not %s', async (kind) => {
    const report = await open(new Forbids(kind)).doctor();
    expect(report.permissions).toMatchObject({ [kind]: 'forbidden' });
    expect(report.problems).toEqual([]);
    expect(report.safe).toBe(kind === 'delete');
    expect(report.recommendations.join(' ')).toMatch(new RegExp(`^Allow the credentials to ${kind} objects`));
  });

  it('reports a Block 0 that is damaged, of a newer format, or missing among other objects', async () => {
    const driver = new Uncertified();
    const db = open(driver);
    await driver.inner.put('shop/other', new Uint8Array(1), { if: 'any' });
    await expect(db.start()).rejects.toThrow(NotADatabaseError);
    expect((await db.doctor()).database).toMatchObject({
      status: 'other objects',
      detail: expect.stringContaining('shop/other') as string,
    });
    await driver.inner.put('shop/block0', new Uint8Array(100), { if: 'any' });
    const damaged = await db.doctor();
    expect(damaged.database.status).toBe('damaged');
    expect(damaged.safe).toBe(true);
    expect(damaged.recommendations).toEqual([expect.stringContaining('Restore the object block0')]);
  });

  it('reports whether links for downloads can be made', async () => {
    const presigning = async (driver: StorageDriver): Promise<unknown> => {
      return (await open(driver).doctor()).checks.find(({ name }) => name === 'presigning');
    };
    class Presigns extends Uncertified {
      presign(key: string): Promise<string> {
        return Promise.resolve(`https://store.example/${key}`);
      }
    }
    class CannotSign extends Uncertified {
      presign(key: string): Promise<string> {
        return Promise.reject(new StorageError(key, 'none', 'No credentials.'));
      }
    }
    expect(await presigning(new Uncertified())).toMatchObject({ status: 'skipped' });
    expect(await presigning(new Presigns())).toMatchObject({ status: 'ok' });
    expect(await presigning(new CannotSign())).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining('No credentials.') as string,
    });
  });

  it('reports a store that is out of reach, and ends in time', async () => {
    const environment = new VirtualEnvironment();
    for (const fault of ['noAnswer', 'lostRequest'] as const) {
      const driver = new FaultyDriver(new MemoryDriver({ environment }), { environment, faults: { [fault]: 1 } });
      const options = { dbPrefix: 'shop', nodeId: 0, driver, logLevel: 'silent' } as const;
      const startedMs = environment.monotonicMs();
      const report = await environment.run(createDatabase(options, environment).doctor());
      expect(report).toMatchObject({ safe: false, problems: [], database: { status: 'unreadable' } });
      expect(report.recommendations).toEqual([expect.stringContaining('Try again')]);
      expect(environment.monotonicMs() - startedMs).toBeLessThan(60_000);
    }
  });

  it('is given up with its signal', async () => {
    const controller = new AbortController();
    const driver = new Uncertified();
    const examining = open(driver).doctor({ signal: controller.signal });
    controller.abort();
    await expect(examining).rejects.toThrow(AbortedError);
    expect(await driver.keys()).toEqual([]);
  });
});

describe('formatStoreReport()', () => {
  it('is text in aligned columns', async () => {
    const report = await open(new Forbids('delete')).doctor();
    const lines = formatStoreReport(report).split('\n');
    expect(lines.slice(0, 5)).toEqual([
      'driver    strange',
      'flavour   vanilla',
      'database  There is nothing under shop/: start() creates a database.',
      'safe      yes',
      'allowed   read: ok, write: ok, list: ok, delete: forbidden',
    ]);
    expect(lines).toContain(
      'ok       race of creates       In 2 races of 16 puts each, one won, and what it wrote was stored.',
    );
    expect(lines).toContain(
      'warning  deletions             Probes could not be deleted, and stay: Grant strange:delete.',
    );
    expect(lines.at(-2)).toMatch(/^- Allow the credentials to delete objects/);
  });

  it('distinguishes an unsafe store from an unknown one', async () => {
    expect(formatStoreReport(await open(new Unsafe()).doctor())).toMatch(/^safe +NO$/m);
    expect(formatStoreReport(await open(new Forbids('read')).doctor())).toMatch(/^safe +could not be told$/m);
  });
});
