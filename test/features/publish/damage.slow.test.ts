/** Damaged and hostile answers: an error or the right answer, never a wrong one; and servers that are slow, busy or away. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types, defineSchema } from '../../../src/index.ts';
import { realEnvironment, sleep } from '../../../src/base/env.ts';
import { StoreDbError } from '../../../src/base/errors.ts';
import { BlockKind, sealBlock } from '../../../src/format/block.ts';
import { packBundleObject, unpackBundleObject } from '../../../src/format/bundle.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { CacheDriver } from '../../../src/storage/contract/driver.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';
import type { Reader, ReaderOptions } from '../../../src/reader.ts';
import { BundleServer } from './published.ts';

const things = defineSchema({
  name: 'things',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, kind: { typeId: Types.varchar }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
  indexes: ['kind'],
});

const server = new BundleServer();
const quiet: ReaderOptions = { logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} } };
const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
let expected: object;

async function answers(reader: Reader): Promise<object> {
  return {
    // First: with rows in memory, the query would not read the index.
    kinds: await reader.query(things).where('kind', '>=', '').orderBy('kind').select('kind').execute(),
    rows: await reader.query(things).execute(),
    some: await reader.query(things).where('kind', '=', 'kind 7').execute(),
    one: await reader.get(things, 4321),
    count: await reader.query(things).where('id', '<', 1000).count(),
    position: reader.position,
    definition: reader.tables(),
  };
}

beforeAll(async () => {
  db.registerSchema(things);
  await db.start();
  const batch = db.batch();
  for (let id = 0; id < 6000; id++) {
    void batch.insert(things, { id, kind: `kind ${id % 20}`, text: `${(id * 2654435761) % 4294967296}`.repeat(3) });
  }
  await batch.flush();
  await db.publish(server.place);
  expected = await answers(await server.open());
  server.take();
});

afterAll(async () => {
  await db.stop();
});

beforeEach(() => {
  server.alter = undefined;
});

describe('a reader of damaged answers', () => {
  it('gives an error or the right answer for any damaged object', async () => {
    const random = new SeededRandom(5);
    const names = await server.names();
    const codes = new Set(['CORRUPTION', 'UNKNOWN_FORMAT', 'STORAGE']);
    let errors = 0;
    for (let i = 0; i < 150; i++) {
      const damaged = random.pick(names.filter((name) => !name.startsWith('contents')));
      server.alter = (name, bytes) => (name === damaged ? altered(random, bytes) : undefined);
      let reader: Reader | undefined;
      try {
        reader = await server.open(quiet);
        expect(await answers(reader)).toEqual(expected);
      } catch (error) {
        const isExpected = error instanceof StoreDbError && codes.has(error.code);
        if (!isExpected) throw error;
        errors++;
      } finally {
        reader?.close();
      }
    }
    expect(errors).toBeGreaterThan(100);
  });

  it('refuses one object in the place of another', async () => {
    const blocks = (await server.names()).filter((name) => name.startsWith('data') || name.startsWith('indexes'));
    expect(blocks.length).toBeGreaterThan(4);
    for (const name of blocks) {
      const other = blocks.find((each) => each !== name);
      const found = await server.store.get(`site/${other as string}`);
      server.alter = (each) => (each === name && found.status === 'found' ? found.bytes : undefined);
      const reader = await server.open();
      await expect(answers(reader)).rejects.toMatchObject({ code: 'CORRUPTION' });
    }
  });

  it('refuses a block that was forged under its name', async () => {
    server.alter = (name, bytes) => {
      if (!name.startsWith('data')) return undefined;
      const block = unpackBundleObject(name, bytes, 1e9).slice();
      // The last byte of the last text, with a checksum that fits.
      block[block.length - 1] = (block[block.length - 1] as number) ^ 1;
      sealBlock(name, BlockKind.table, block);
      return packBundleObject(name, block);
    };
    const reader = await server.open();
    await expect(reader.get(things, 4321)).rejects.toThrow('does not have the bytes that its name tells');
  });

  it('does not expand or read more than an object may have', async () => {
    const names = await server.names();
    server.alter = (name) => (names.includes(name) && name.startsWith('data') ? new Uint8Array(50_000_000) : undefined);
    const reader = await server.open();
    server.sentBytes = 0;
    await expect(reader.get(things, 1)).rejects.toThrow('is longer than');
    expect(reader.stats().receivedBytes).toBeLessThan(2_000_000);
    server.alter = (name) => (name === 'bundle' ? new Uint8Array(2_000_000) : undefined);
    await expect(server.open()).rejects.toThrow('is longer than');
  });

  it('does not take a pointer of another database', async () => {
    const reader = await server.open();
    const other = new BundleServer();
    const second = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
    await second.start();
    await second.publish(other.place);
    await second.stop();
    const found = await other.store.get('site/bundle');
    server.alter = (name) => (name === 'bundle' && found.status === 'found' ? found.bytes : undefined);
    await expect(reader.refresh()).rejects.toMatchObject({ code: 'DATABASE_REPLACED' });
  });

  function altered(random: SeededRandom, bytes: Uint8Array): Uint8Array {
    const copy = bytes.slice();
    const at = random.integer(0, copy.length - 1);
    const how = random.integer(0, 3);
    if (how === 0) return copy.subarray(0, at);
    if (how === 1) return Buffer.concat([copy, Buffer.alloc(random.integer(1, 40))]);
    copy[at] = (copy[at] as number) ^ (1 << random.integer(0, 7));
    return copy;
  }
});

describe('a reader of a bad server', () => {
  it('asks again where the server is busy, and says which answer it got otherwise', async () => {
    let busy = 3;
    server.alter = () => (busy-- > 0 ? 503 : undefined);
    const reader = await server.open();
    expect(await reader.get(things, 3)).toMatchObject({ id: 3 });
    server.alter = () => 403;
    await expect(reader.get(things, 5000)).rejects.toThrow('was answered with status 403');
    server.alter = () => 404;
    await expect(server.open()).rejects.toThrow('There is no bundle at https://example.test/site');
    server.alter = (name) => (name.startsWith('manifests') ? 404 : undefined);
    await expect(server.open()).rejects.toThrow('a cache on the way');
  });

  it('sends at most eight requests at the same time', async () => {
    let running = 0;
    let most = 0;
    const reader = await server.open({
      fetch: async (url, init) => {
        most = Math.max(most, ++running);
        await sleep(realEnvironment, 2);
        running--;
        return server.fetch(url, init);
      },
    });
    await Promise.all(Array.from({ length: 60 }, (_, i) => reader.get(things, i * 100)));
    expect(most).toBeGreaterThan(3);
    expect(most).toBeLessThanOrEqual(8);
  });

  it('is given up by its signal', async () => {
    const never = new BundleServer();
    never.fetch = (_, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    const controller = new AbortController();
    const opening = never.open({ signal: controller.signal });
    controller.abort();
    await expect(opening).rejects.toMatchObject({ code: 'ABORTED' });
    server.take();
    const reader = await server.open({
      fetch: (url, init) => (server.requests.length < 2 ? server.fetch(url, init) : never.fetch(url, init)),
    });
    const reading = reader.get(things, 1);
    reader.close();
    await expect(reading).rejects.toThrow('was given up because its signal was aborted');
  });
});

describe('a cache of a reader', () => {
  class MapCache implements CacheDriver {
    readonly map = new Map<string, Uint8Array>();
    get(key: string): Uint8Array | undefined {
      return this.map.get(key);
    }
    set(key: string, bytes: Uint8Array): void {
      this.map.set(key, bytes);
    }
    delete(key: string): void {
      this.map.delete(key);
    }
  }

  it('saves requests, and its bytes are checked', async () => {
    const cache = new MapCache();
    const first = await server.open({ cache });
    expect(await answers(first)).toEqual(expected);
    await sleep(realEnvironment, 20);
    server.take();
    const second = await server.open({ cache });
    expect(await answers(second)).toEqual(expected);
    expect(server.take()).toHaveLength(2);
    for (const [key, bytes] of cache.map)
      cache.map.set(
        key,
        bytes.map((byte) => byte ^ 1),
      );
    const third = await server.open({ cache, ...quiet });
    expect(await answers(third)).toEqual(expected);
    expect(server.take().length).toBeGreaterThan(2);
  });
});
