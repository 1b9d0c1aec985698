import { describe, expect, it, vi } from 'vitest';
import type { CacheDriver } from '../storage/contract/driver.ts';
import { VirtualEnvironment } from '../testing/virtual-environment.ts';
import { ExternalCache } from './external-cache.ts';

class MapCache implements CacheDriver {
  readonly held = new Map<string, Uint8Array>();
  calls = 0;
  broken: (() => void | Promise<void>) | undefined;

  async get(key: string): Promise<Uint8Array | undefined> {
    this.calls++;
    await this.broken?.();
    return this.held.get(key);
  }

  async set(key: string, bytes: Uint8Array): Promise<void> {
    this.calls++;
    await this.broken?.();
    this.held.set(key, bytes);
  }

  async delete(key: string): Promise<void> {
    this.held.delete(key);
  }
}

/** The promise of a call that hangs. */
const never = Promise.race<never>([]);
const block = new Uint8Array(1000).fill(7);

function make(driver: CacheDriver = new MapCache()) {
  const environment = new VirtualEnvironment();
  const none = (): void => undefined;
  const logger = { debug: none, info: vi.fn(), warn: vi.fn(), error: none };
  const cache = new ExternalCache({ driver, environment, logger });
  cache.useDatabase('db1');
  return {
    cache,
    environment,
    logger,
    get: (name: string) => environment.run(cache.get(name)),
    put: async (name: string, bytes: Uint8Array) => {
      cache.put(name, bytes);
      await environment.run(cache.idle());
    },
  };
}

describe('SecondCache', () => {
  it('returns the bytes put by the same database under the same name', async () => {
    const driver = new MapCache();
    const { cache, get, put } = make(driver);
    await put('a', block);
    expect(await get('a')).toEqual(block);
    expect(await get('b')).toBeUndefined();
    expect([...driver.held.keys()]).toEqual(['db1/a']);
    cache.useDatabase('db2');
    expect(await get('a')).toBeUndefined();
  });

  it('never returns other bytes, removes them, and logs it once', async () => {
    const driver = new MapCache();
    const { get, put, logger } = make(driver);
    const damages: readonly ((sealed: Uint8Array) => Uint8Array)[] = [
      (sealed) => sealed.slice(0, -1),
      (sealed) => sealed.slice(1),
      (sealed) => sealed.map((byte, i) => (i === 500 ? byte ^ 1 : byte)),
      (sealed) => sealed.map((byte, i) => (i === sealed.length - 1 ? byte ^ 1 : byte)),
      () => new Uint8Array(0),
      () => new Uint8Array(15),
      () => block,
    ];
    for (const damage of damages) {
      await put('a', block);
      driver.held.set('db1/a', damage(driver.held.get('db1/a') as Uint8Array));
      expect(await get('a')).toBeUndefined();
      expect(driver.held.size).toBe(0);
    }
    // The right bytes of another block.
    await put('b', block);
    driver.held.set('db1/a', driver.held.get('db1/b') as Uint8Array);
    expect(await get('a')).toBeUndefined();
    expect(await get('b')).toEqual(block);
    expect(logger.warn).toHaveBeenCalledTimes(1);
  });

  it('skips a cache that fails, for longer and longer, and logs it once until it works again', async () => {
    const driver = new MapCache();
    const { get, put, logger, environment } = make(driver);
    await put('a', block);
    driver.broken = () => {
      throw new Error('no connection');
    };
    expect(await get('a')).toBeUndefined();
    const { calls } = driver;
    expect(await get('a')).toBeUndefined();
    await put('c', block);
    expect(driver.calls).toBe(calls);
    await environment.advance(1100);
    expect(await get('a')).toBeUndefined();
    expect(driver.calls).toBe(calls + 1);
    await environment.advance(1100);
    expect(await get('a')).toBeUndefined();
    expect(driver.calls).toBe(calls + 1);
    expect(logger.warn).toHaveBeenCalledTimes(1);
    driver.broken = undefined;
    await environment.advance(1100);
    expect(await get('a')).toEqual(block);
    expect(logger.info).toHaveBeenCalledTimes(1);
    driver.broken = () => Promise.reject(new Error('again'));
    expect(await get('a')).toBeUndefined();
    expect(logger.warn).toHaveBeenCalledTimes(2);
  });

  it('does not wait long for one that hangs', async () => {
    const driver = new MapCache();
    const { get, put, logger, environment } = make(driver);
    driver.broken = () => never;
    const startedMs = environment.monotonicMs();
    expect(await get('a')).toBeUndefined();
    expect(environment.monotonicMs() - startedMs).toBe(1000);
    expect(await get('a')).toBeUndefined();
    expect(environment.monotonicMs() - startedMs).toBe(1000);
    expect(logger.warn).toHaveBeenCalledTimes(1);
    await environment.advance(1100);
    await put('a', block);
    expect(environment.monotonicMs() - startedMs).toBeLessThan(3200);
  });

  it('takes no answer that is not bytes, and copes with drivers that answer at once, or throw', async () => {
    const texts = make({ get: () => 'text' as never, set: () => undefined, delete: () => undefined });
    expect(await texts.get('a')).toBeUndefined();
    expect(texts.logger.warn).toHaveBeenCalledTimes(1);
    const held = new Map<string, Uint8Array>();
    const map = make({
      get: (key) => held.get(key) ?? null,
      set: (key, b) => void held.set(key, Buffer.from(b)),
      delete: () => undefined,
    });
    await map.put('a', block);
    const got = await map.get('a');
    expect(got).toEqual(block);
    expect(got?.constructor).toBe(Uint8Array);
    const throwing = make({
      get: () => {
        throw new Error('at once');
      },
      set: () => undefined,
      delete: () => undefined,
    });
    expect(await throwing.get('a')).toBeUndefined();
  });

  it('has few blocks on their way at once', async () => {
    const driver = new MapCache();
    const { cache, environment } = make(driver);
    for (let i = 0; i < 100; i++) cache.put(`n${i}`, block);
    await environment.run(cache.idle());
    expect(driver.held.size).toBe(32);
  });

  it('is left alone once it was closed, and what was on its way has arrived', async () => {
    const driver = new MapCache();
    const { cache, environment } = make(driver);
    cache.put('early', block);
    await environment.run(cache.close());
    // A read that was under way has ended.
    cache.put('late', block);
    await environment.run(cache.idle());
    expect([...driver.held.keys()].map((key) => key.split('/').at(-1))).toEqual(['early']);
  });
});
