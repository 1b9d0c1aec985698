/** The contents of log lines, their destination, and their filter. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, LogLevel, StoreDbOptions } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import { ScriptedDriver } from '../protocol/scripted-driver.ts';

const levels = ['debug', 'info', 'warn', 'error'] as const;
const notes = { name: 'notes', version: 1, fields: { id: { typeId: Types.int32 } }, primaryKey: 'id' } as const;

/** Makes an instance log at every level: a merge, a lost race, a function that hides a field, a damaged commit. */
async function makeNoise(options: Partial<StoreDbOptions>): Promise<void> {
  const store = new MemoryDriver();
  const driver = new ScriptedDriver(store, 'app');
  const quiet = { dbPrefix: 'app', nodeId: 1, driver: store, logLevel: 'silent' } as const;
  const rival = StoreDb(quiet);
  const db = StoreDb({ ...quiet, nodeId: 0, driver, writeForwardInterval: 10, nodes: [9], ...options });
  db.registerSchema(notes);
  db.registerFunction('id', () => 1);
  await Promise.all([db.start(), rival.start()]);
  await insert(db, 1);
  driver.onPut(/^block0$/, async (pass) => {
    await rival.checkpoint();
    return pass();
  });
  await db.checkpoint();
  await insert(db, 2);
  await db.checkpoint();
  await store.put('app/committed/0000000000000003', new Uint8Array(100), { if: 'any' });
  const asked = db.stats().requests.get;
  await expect.poll(() => db.stats().requests.get, { timeout: 20_000 }).toBeGreaterThan(asked + 4);
  await db.stop();
  await rival.stop();
}

async function insert(db: Database, id: number): Promise<void> {
  const batch = db.batch();
  void batch.insert(notes, { id });
  await batch.flush();
}

describe('a custom logger', () => {
  it('is warned of a trigger on a table whose name is a misspelt one', async () => {
    const lines: string[] = [];
    const ignore = (): void => undefined;
    const logger = { debug: ignore, info: ignore, warn: (message: string) => lines.push(message), error: ignore };
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new MemoryDriver(), logger });
    db.registerSchema(notes);
    for (const table of ['notes', 'ntoes', 'unrelated']) db.registerTrigger(table, 'insert', ignore);
    await db.start();
    await db.stop();
    expect(lines).toEqual(["There is a trigger on table 'ntoes', which is not registered: did you mean notes?"]);
  });

  it.each([
    ['debug', ['debug', 'info', 'warn', 'error']],
    [undefined, ['info', 'warn', 'error']],
    ['info', ['info', 'warn', 'error']],
    ['warn', ['warn', 'error']],
    ['error', ['error']],
    ['silent', []],
  ])('at level %s is called for %s', async (logLevel, expected) => {
    const seen = new Set<string>();
    const logger = Object.fromEntries(levels.map((level) => [level, () => seen.add(level)]));
    const given = { logger: logger as unknown as NonNullable<StoreDbOptions['logger']> };
    // `undefined` is for the default.
    await makeNoise({ ...given, logLevel: logLevel as LogLevel });
    expect([...seen].toSorted()).toEqual(expected.toSorted());
  });

  it('that throws disturbs nothing', async () => {
    const fail = (): never => {
      throw new Error('the logger is broken');
    };
    await makeNoise({ logLevel: 'debug', logger: { debug: fail, info: fail, warn: fail, error: fail } });
  });

  it('gets a lost race for Block 0 as PreconditionFailed, with the key and both ETags', async () => {
    const lines: [string, object | undefined][] = [];
    const noop = (): void => undefined;
    const info = (message: string, details?: object): void => void lines.push([message, details]);
    await makeNoise({ logLevel: 'info', logger: { debug: noop, info, warn: noop, error: noop } });
    const lost = lines.filter(([message]) => message.includes('PreconditionFailed'));
    expect(lost).toHaveLength(1);
    expect(lost[0]?.[1]).toMatchObject({
      key: 'app/block0',
      expectedEtag: expect.any(String) as string,
      actualEtag: expect.any(String) as string,
    });
  });
});

describe('the console', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('is where lines go by default, from info on', async () => {
    const calls = Object.fromEntries(levels.map((level) => [level, vi.spyOn(console, level).mockReturnValue()]));
    await makeNoise({ logLevel: 'info' });
    expect(calls['debug']).not.toHaveBeenCalled();
    for (const level of ['info', 'warn', 'error']) {
      expect(calls[level]?.mock.calls.every(([line]) => String(line).startsWith('store-db: '))).toBe(true);
      expect(calls[level]).toHaveBeenCalled();
    }
  });

  it('stays quiet while nothing goes wrong', async () => {
    const calls = levels.map((level) => vi.spyOn(console, level).mockReturnValue());
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver: new MemoryDriver(), writeForwardInterval: 10 });
    db.registerSchema(notes);
    await db.start();
    await insert(db, 1);
    await db.checkpoint();
    await db.stop();
    for (const call of calls) expect(call).not.toHaveBeenCalled();
  });
});

describe('trouble with the store in the background', () => {
  it('is logged as a warning, and the process lives', async () => {
    const warnings: string[] = [];
    const noop = (): void => undefined;
    const driver = new ScriptedDriver(new MemoryDriver(), 'app');
    const warn = (message: string): void => void warnings.push(message);
    const logger = { debug: noop, info: noop, warn, error: noop };
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, writeForwardInterval: 10, polling: 'interval', logger });
    await db.start();
    driver.onGet(/^block0$/, () => Promise.reject(new Error('no network')), 3);
    await expect.poll(() => warnings.length, { timeout: 20_000 }).toBeGreaterThan(0);
    expect(warnings[0]).toContain('no network');
    await db.stop();
  });

  it('is not logged if stop() has ended the request', async () => {
    const lines: string[] = [];
    const noop = (): void => undefined;
    const note = (message: string): void => void lines.push(message);
    const store = new MemoryDriver();
    const creator = StoreDb({ dbPrefix: 'app', nodeId: 1, driver: store, logLevel: 'silent' });
    await creator.start();
    await creator.stop();
    const driver = new ScriptedDriver(store, 'app');
    const logger = { debug: noop, info: noop, warn: note, error: note };
    const db = StoreDb({ dbPrefix: 'app', nodeId: 0, driver, writeForwardInterval: 10, polling: 'interval', logger });
    await db.start();
    const joining = new Promise<void>((resolve) => {
      driver.onPut(/^block0$/, async (pass) => {
        resolve();
        await sleep(200);
        return pass();
      });
    });
    await joining;
    await db.stop();
    expect(lines).toEqual([]);
  });
});
