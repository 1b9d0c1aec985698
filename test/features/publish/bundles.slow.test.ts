/** Bundles after each other: what they share, which of them stay, and what is left when publishers race or are killed. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types, defineSchema } from '../../../src/index.ts';
import type { Database } from '../../../src/api/database.ts';
import { realEnvironment, sleep } from '../../../src/base/env.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { BundleServer } from './published.ts';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, color: { typeId: Types.varchar }, size: { typeId: Types.uint16 } },
  primaryKey: 'id',
  indexes: ['color'],
});

let db: Database;
let server: BundleServer;

async function open(store: MemoryDriver, nodeId: number): Promise<Database> {
  const opened = StoreDb({ driver: store, dbPrefix: 'db', nodeId, logLevel: 'silent' });
  opened.registerSchema(items);
  await opened.start();
  return opened;
}

let store: MemoryDriver;

beforeEach(async () => {
  store = new MemoryDriver();
  db = await open(store, 1);
  server = new BundleServer();
});

afterEach(async () => {
  await db.stop();
});

async function upsert(from: number, to: number, color: (id: number) => string): Promise<void> {
  const batch = db.batch();
  for (let id = from; id < to; id++) void batch.upsert(items, { id, color: color(id), size: id % 1000 });
  await batch.flush();
}

function later(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

const plain = (id: number): string => `color ${id % 500}`;
const newest = { keep: { bundles: 1, ageMs: 0 } };

/** Reads everything that the newest bundle refers to, and checks that nothing else is there. */
async function expectWhole(rows: number): Promise<void> {
  const reader = await server.open();
  expect(await reader.query(items).execute()).toHaveLength(rows);
  expect(await reader.query(items).select('color').where('color', '>', '').count()).toBe(rows);
  let count = 0;
  for await (const _ of reader.query(items).orderBy('color')) count++;
  expect(count).toBe(rows);
  reader.close();
  expect((await server.names()).toSorted()).toEqual(await server.needed());
}

describe('bundles after each other', () => {
  it('share all blocks but those of changed rows', async () => {
    await upsert(0, 100_000, plain);
    const first = await db.publish(server.place);
    expect(first.writtenObjects).toBeGreaterThan(60);
    await upsert(50_000, 50_001, () => 'color 7 and more');
    server.driver.puts.length = 0;
    const second = await db.publish(server.place);
    // A leaf of rows, two of the index; contents, manifest, pointer. The nodes above are in the manifest.
    expect(server.driver.puts.map((name) => name.replace(/\/[0-9a-f-]+$/, ''))).toEqual([
      'data/items',
      'indexes/items/color',
      'indexes/items/color',
      'contents',
      'manifests',
      'bundle',
    ]);
    expect(second.writtenBytes).toBeLessThan(200_000);
    await expectWhole(100_000);
  });

  it('are made of the rows alone, and not of their history', async () => {
    await upsert(0, 5000, plain);
    await db.publish(server.place);
    const before = await server.names();
    await upsert(0, 5000, () => 'other');
    await db.checkpoint();
    await upsert(0, 5000, plain);
    expect(await db.publish(server.place)).toMatchObject({
      outcome: 'unchanged',
      writtenObjects: 1,
      position: db.position,
    });
    expect(await server.names()).toEqual(before);
    const reader = await server.open();
    expect(reader.position).toBe(db.position);
    expect(await db.publish(server.place)).toMatchObject({ outcome: 'unchanged', writtenObjects: 0 });
  });

  it('write nothing again where rows come back', async () => {
    await upsert(0, 3000, plain);
    await db.publish(server.place);
    await upsert(1000, 1001, () => 'other');
    await db.publish(server.place);
    await upsert(1000, 1001, plain);
    server.driver.puts.length = 0;
    await db.publish(server.place);
    expect(server.driver.puts.filter((name) => name.startsWith('data'))).toEqual([]);
    await expectWhole(3000);
  });

  it('stay by number or by age, and readers of removed ones are told to refresh', async () => {
    await upsert(0, 20_000, plain);
    await db.publish(server.place);
    const reader = await server.open();
    for (let i = 0; i < 3; i++) {
      await upsert(i * 7000, i * 7000 + 1, () => `new ${i}`);
      await db.publish(server.place, { keep: { bundles: 1 } });
    }
    // An hour has not passed: all four can be read.
    expect((await server.names()).filter((name) => name.startsWith('manifests'))).toHaveLength(4);
    expect(await reader.get(items, 1)).toMatchObject({ color: 'color 1' });
    await upsert(0, 20_000, () => 'all new');
    const last = await db.publish(server.place, newest);
    expect(last.removedObjects).toBeGreaterThan(10);
    expect((await server.names()).filter((name) => name.startsWith('manifests'))).toHaveLength(1);
    await expect(reader.get(items, 15_000)).rejects.toThrow('Call reader.refresh(), and read again.');
    await expect(reader.query(items).where('color', '=', 'color 3').execute()).rejects.toMatchObject({
      code: 'SNAPSHOT_EXPIRED',
    });
    expect(await reader.refresh()).toBe(true);
    expect(await reader.get(items, 15_000)).toMatchObject({ color: 'all new' });
    expect(await reader.query(items).where('color', '=', 'color 3').count()).toBe(0);
    await expectWhole(20_000);
  });

  it('keep the objects of a bundle whose contents are lost', async () => {
    await upsert(0, 3000, plain);
    await db.publish(server.place);
    const reader = await server.open();
    const contents = (await server.names()).find((name) => name.startsWith('contents'));
    await server.store.delete([`site/${contents as string}`]);
    await upsert(0, 3000, () => 'other');
    expect(await db.publish(server.place)).toMatchObject({ outcome: 'published', removedObjects: 0 });
    expect(await reader.query(items).execute()).toHaveLength(3000);
    // Once that bundle has left the pointer, everything that is not needed goes.
    await upsert(0, 1, () => 'another');
    await db.publish(server.place, newest);
    await expectWhole(3000);
  });

  it('are published by one of two processes first, and an older state does not replace a newer one', async () => {
    await upsert(0, 4000, plain);
    const other = await open(store, 2);
    let race: Promise<unknown> | undefined;
    server.driver.before = async (name) => {
      if (!name.startsWith('manifests') || race !== undefined) return;
      // The other process sees a newer state, and is done before the first one replaces the pointer.
      race = Promise.resolve();
      await upsert(0, 10, () => 'newer');
      await other.refresh();
      expect(await other.publish(server.place, newest)).toMatchObject({ outcome: 'published' });
    };
    expect(await db.publish(server.place, newest)).toMatchObject({ outcome: 'superseded', removedObjects: 0 });
    const reader = await server.open();
    expect(await reader.get(items, 3)).toMatchObject({ color: 'newer' });
    await upsert(0, 1, () => 'newest');
    await other.refresh();
    await other.publish(server.place, newest);
    await expectWhole(4000);
    await other.stop();
  });

  it('are published again by the process that lost a race with an equal state', async () => {
    await upsert(0, 4000, plain);
    let hasRaced = false;
    server.driver.before = async (name) => {
      if (name !== 'bundle' || hasRaced) return;
      hasRaced = true;
      await db.publish(server.place, { ...newest, fields: { items: ['size'] } });
    };
    expect(await db.publish(server.place, newest)).toMatchObject({ outcome: 'published' });
    await expectWhole(4000);
    server.driver.before = () => undefined;
    // What the lost attempt wrote is gone by now.
    expect(await db.publish(server.place, newest)).toMatchObject({ outcome: 'unchanged' });
    const numbers = (await server.names()).filter((name) => name.startsWith('manifests'));
    expect(numbers).toHaveLength(1);
  });
});

describe('a publisher that is killed', () => {
  it('leaves the bundle before, and its leftovers are removed by the next one', async () => {
    await upsert(0, 8000, plain);
    await db.publish(server.place, newest);
    await upsert(0, 8000, (id) => `changed ${id % 300}`);
    const whole = new BundleServer();
    await db.publish(whole.place);
    const puts = whole.driver.puts.length;
    for (let at = 0; at < puts; at++) {
      for (const when of ['before', 'after'] as const) {
        const killed = new BundleServer();
        for (const name of await server.names()) {
          const found = await server.store.get(`site/${name}`);
          if (found.status === 'found') await killed.store.put(`site/${name}`, found.bytes, { if: 'absent' });
        }
        let seen = 0;
        killed.driver[when] = (name) => {
          if (name !== 'delete' && seen++ === at) killed.driver.before = () => Promise.reject(new Error('killed'));
          if (seen > at) throw new Error('killed');
        };
        const ended = await db.publish(killed.place, newest).then(
          () => 'published',
          (error: unknown) => (error as Error).message,
        );
        const reader = await killed.open();
        const { color } = (await reader.get(items, 0)) as { color: string };
        // The last put replaces the pointer.
        const isPublished = when === 'after' && at === puts - 1;
        expect([at, when, ended, color]).toEqual([at, when, 'killed', isPublished ? 'changed 0' : 'color 0']);
        reader.close();
        killed.driver.before = () => undefined;
        killed.driver.after = () => undefined;
        await db.publish(killed.place, newest);
        await upsert(1, 2, () => `again ${at} ${when}`);
        await db.publish(killed.place, newest);
        expect((await killed.names()).toSorted()).toEqual(await killed.needed());
      }
    }
  });

  it('never loses what another publisher needs, when its removal comes late', async () => {
    await upsert(0, 8000, plain);
    await db.publish(server.place, newest);
    // Rows that were published come back while their blocks are being removed.
    await upsert(0, 8000, () => 'gone');
    const { promise: held, resolve: hold } = later();
    server.driver.before = (name) => (name === 'delete' ? held : undefined);
    const late = db.publish(server.place, newest);
    while (!server.driver.puts.includes('bundle')) await sleep(realEnvironment, 1);
    await sleep(realEnvironment, 20);
    server.driver.before = () => undefined;
    await upsert(0, 8000, plain);
    await db.publish(server.place, newest);
    hold();
    await late;
    await expectWhole(8000);
  });
});

describe('the blocks of a bundle', () => {
  it('are of 24 to 96 KiB before compression, and do not depend on where a table begins', async () => {
    await upsert(1, 60_000, plain);
    await db.publish(server.place);
    const lengths = async (): Promise<Map<string, number>> => {
      const texts = [...(await server.texts())].filter(([name]) => name.startsWith('data/'));
      return new Map(texts.map(([name, text]) => [name, text.length]));
    };
    const first = await lengths();
    expect(first.size).toBeGreaterThan(20);
    expect(Math.max(...first.values())).toBeLessThan(97 * 1024);
    // Keys are stored without what they share, and the last block is shorter.
    const sorted = [...first.values()].toSorted((a, b) => a - b);
    expect(sorted[1]).toBeGreaterThan(16 * 1024);
    await upsert(0, 1, plain);
    await db.publish(server.place, newest);
    const second = await lengths();
    expect([...second.keys()].filter((name) => !first.has(name)).length).toBeLessThanOrEqual(2);
  });
});
