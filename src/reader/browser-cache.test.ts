import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { browserCache } from './browser-cache.ts';

/** Cache Storage as far as it is used. */
class Storage {
  readonly caches = new Map<string, Map<string, Response>>();

  async open(name: string): Promise<object> {
    const entries = this.caches.get(name) ?? new Map<string, Response>();
    this.caches.set(name, entries);
    return {
      match: async (url: string) => entries.get(url)?.clone(),
      put: async (url: string, response: Response) => void entries.set(url, response),
      delete: async (url: string) => entries.delete(url),
      keys: async () => [...entries.keys()].map((url) => ({ url })),
    };
  }
}

const globals = globalThis as { caches?: unknown };
let storage: Storage;

beforeEach(() => {
  storage = new Storage();
  globals.caches = storage;
});

afterEach(() => {
  delete globals.caches;
});

describe('browserCache()', () => {
  it('keeps bytes under names', async () => {
    const cache = browserCache();
    expect(await cache.get('a/b')).toBeUndefined();
    await cache.set('a/b c', Uint8Array.of(1, 2, 3));
    expect(await browserCache().get('a/b c')).toEqual(Uint8Array.of(1, 2, 3));
    expect(await browserCache({ name: 'other' }).get('a/b c')).toBeUndefined();
    await cache.delete('a/b c');
    expect(await cache.get('a/b c')).toBeUndefined();
    expect([...storage.caches.keys()]).toEqual(['store-db', 'other']);
  });

  it('keeps the newest blocks', async () => {
    const cache = browserCache({ maxBlocks: 10 });
    for (let i = 0; i < 129; i++) await cache.set(`block ${i}`, Uint8Array.of(i));
    expect(storage.caches.get('store-db')?.size).toBe(10);
    expect(await cache.get('block 128')).toEqual(Uint8Array.of(128));
    expect(await cache.get('block 118')).toBeUndefined();
  });

  it('is refused without Cache Storage, and with options that there are not', () => {
    expect(() => browserCache({ maxBlock: 3 } as never)).toThrow('did you mean `maxBlocks`');
    delete globals.caches;
    expect(() => browserCache()).toThrow('There is no Cache Storage here');
  });
});
