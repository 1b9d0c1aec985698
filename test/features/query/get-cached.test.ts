/** `db.getCached()`: the row that `db.get()` shows, without a promise and without a request, if it is known from memory. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { defineSchema, StoreDb, Types } from '../../../src/index.ts';
import type { Database, StoreDbOptions } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';
import { createDatabase, VirtualEnvironment } from '../../../src/testing/index.ts';
import { keys, open as openNotes, schema as notes } from '../encryption/envelope-store.ts';
import { Nodes, people } from '../protocol/nodes.ts';
import { hangs } from '../protocol/scripted-driver.ts';

const rows = 20_000;
const items = defineSchema({
  name: 'items',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } },
  primaryKey: 'id',
});
const name = (id: number): string => `name ${id} ${'x'.repeat(40)}`;

async function open(driver: MemoryDriver, options: Partial<StoreDbOptions> = {}): Promise<Database> {
  const db = StoreDb({
    dbPrefix: 'p',
    nodeId: 0,
    driver,
    polling: 'onDemand',
    writeForwardInterval: 60_000,
    ...options,
  });
  db.registerSchema(items);
  await db.start();
  onTestFinished(() => db.stop());
  return db;
}

async function filled(driver = new MemoryDriver()): Promise<Database> {
  const db = await open(driver);
  const batch = db.batch();
  for (let id = 0; id < rows; id++) void batch.insert(items, { id, name: name(id) });
  await batch.flush();
  await db.checkpoint();
  return db;
}

describe('getCached', () => {
  it('gives a new object for each call, null for no row, and undefined while the blocks are not in memory', async () => {
    const driver = new MemoryDriver();
    await filled(driver);
    const db = await open(driver, { nodeId: 1 });
    await db.refresh();
    expect(db.getCached(items, 7)).toBeUndefined();
    expect(db.getCached(items, rows)).toBeUndefined();
    expect(await db.get(items, 7)).toEqual({ id: 7, name: name(7) });
    const row = db.getCached(items, 7);
    expect(row).toEqual({ id: 7, name: name(7) });
    expect(db.getCached(items, 7)).not.toBe(row);
    expect(db.getCached(items, rows >> 1)).toBeUndefined();
    expect(await db.get(items, rows)).toBeUndefined();
    expect(db.getCached(items, rows)).toBeNull();
  });

  it('makes no request, also for a row that is not in memory, and reads nothing in the background', async () => {
    const driver = new MemoryDriver();
    await filled(driver);
    const db = await open(driver, { nodeId: 1 });
    await db.refresh();
    await db.get(items, 7);
    const before = db.stats().requests;
    for (let id = 0; id < rows; id += 100) db.getCached(items, id);
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
    expect(db.stats().requests).toEqual(before);
    expect(db.getCached(items, rows >> 1)).toBeUndefined();
  });

  it('counts as a read, so that an instance that polls adaptively keeps its view fresh', async () => {
    const environment = new VirtualEnvironment();
    const driver = environment.connect(new MemoryDriver({ environment }));
    const db = createDatabase({ dbPrefix: 'p', nodeId: 0, driver, logLevel: 'silent' }, environment);
    db.registerSchema(items);
    await environment.run(db.start());
    const batch = db.batch();
    void batch.insert(items, { id: 1, name: 'one' });
    await environment.run(batch.flush());
    for (let second = 0; second < 600; second++) {
      await environment.advance(1000);
      expect(db.getCached(items, 1)).toEqual({ id: 1, name: 'one' });
    }
    await environment.run(db.stop());
  });

  it('shows flushed commits that are not merged, deletions too, and no batch that is not flushed', async () => {
    const db = await filled();
    const batch = db.batch();
    await batch.upsert(items, { id: 7, name: 'new' });
    await batch.upsert(items, { id: rows, name: 'added' });
    await batch.delete(items, 8);
    expect(db.getCached(items, 7)).toEqual(await db.get(items, 7));
    await batch.flush();
    expect(db.stats().log?.pendingCommits).toBe(1);
    await db.get(items, 9);
    expect(db.getCached(items, 7)).toEqual({ id: 7, name: 'new' });
    expect(db.getCached(items, rows)).toEqual({ id: rows, name: 'added' });
    expect(db.getCached(items, 8)).toBeNull();
    expect(db.getCached(items, 9)).toEqual({ id: 9, name: name(9) });
  });

  it('gives null for a table without rows, and undefined for a key that the table cannot have', async () => {
    const db = await open(new MemoryDriver());
    await db.refresh();
    expect(db.getCached(items, 1)).toBeNull();
    for (const key of [-1, 2 ** 32, 1.5, 'one', null, undefined]) {
      expect(db.getCached('items', key as never), String(key)).toBeUndefined();
    }
  });

  it('gives rows of compound keys, and of encrypted databases', async () => {
    const pages = defineSchema({
      name: 'pages',
      version: 1,
      fields: { tenant: { typeId: Types.uint32 }, slug: { typeId: Types.varchar } },
      primaryKey: ['tenant', 'slug'],
    });
    const db = await openNotes(new MemoryDriver(), { encryption: keys(1) });
    onTestFinished(() => db.stop());
    db.registerSchema(pages);
    const batch = db.batch();
    await batch.insert(pages, { tenant: 1, slug: 'intro' });
    await batch.flush();
    await db.checkpoint();
    expect(await db.get(pages, [1, 'intro'])).toEqual({ tenant: 1, slug: 'intro' });
    expect(db.getCached(pages, [1, 'intro'])).toEqual({ tenant: 1, slug: 'intro' });
    expect(db.getCached(pages, [1, 'outro'])).toBeNull();
    expect(db.getCached(pages, [1] as never)).toBeUndefined();
    expect(db.getCached(notes, 'note-0')).toBeNull();
  });

  it('is undefined while the view is older than two intervals', async () => {
    const nodes = new Nodes();
    const intervalMs = 5000;
    const node = await nodes.start(0, { writeForwardInterval: intervalMs, polling: 'onDemand' });
    await nodes.run(nodes.insert(node, 1));
    expect(node.db.getCached(people, 1)).toMatchObject({ name: 'row 1' });
    await nodes.environment.advance(3 * intervalMs);
    node.driver.takeLines();
    node.driver.onAll(hangs);
    expect(node.db.getCached(people, 1)).toBeUndefined();
    await nodes.environment.advance(1000);
    expect(node.driver.takeLines()).toEqual([]);
    node.driver.heal();
    expect(await nodes.run(node.db.get(people, 1))).toMatchObject({ name: 'row 1' });
    expect(node.db.getCached(people, 1)).toMatchObject({ name: 'row 1' });
  });

  it('is undefined after the machine was suspended, while its monotonic clock stood still', async () => {
    const nodes = new Nodes();
    const { environment } = nodes;
    const node = await nodes.start(0, { writeForwardInterval: 5000, polling: 'onDemand' });
    await nodes.run(nodes.insert(node, 1));
    expect(node.db.getCached(people, 1)).toMatchObject({ name: 'row 1' });
    environment.skewMs += 600_000;
    await environment.advance(1);
    expect(node.db.getCached(people, 1)).toBeUndefined();
    expect(await nodes.run(node.db.get(people, 1))).toMatchObject({ name: 'row 1' });
    expect(node.db.getCached(people, 1)).toMatchObject({ name: 'row 1' });
    // A clock that is set back makes nothing older.
    environment.skewMs -= 600_000;
    await environment.advance(1);
    expect(node.db.getCached(people, 1)).toMatchObject({ name: 'row 1' });
  });

  it('asks the wall clock once in a millisecond, and so do gets and queries, since clocks take long', async () => {
    const nodes = new Nodes();
    const { environment } = nodes;
    const node = await nodes.start(0, { polling: 'onDemand' });
    await nodes.run(nodes.insert(node, 1));
    await nodes.run(node.db.checkpoint());
    await nodes.run(node.db.query(people).where('id', '=', 1).execute());
    const asked = vi.spyOn(environment, 'now');
    await environment.advance(1);
    asked.mockClear();
    for (let i = 0; i < 100; i++) {
      node.db.getCached(people, 1);
      await node.db.get(people, 1);
      await node.db.query(people).where('id', '=', 1).execute();
    }
    expect(asked).toHaveBeenCalledTimes(1);
  });

  it('throws for a table that is not registered, and unless the database is running', async () => {
    const db = await open(new MemoryDriver());
    expect(() => db.getCached('nothing', 1)).toThrow(expect.objectContaining({ code: 'SCHEMA_NOT_FOUND' }));
    await db.stop();
    expect(() => db.getCached(items, 1)).toThrow(expect.objectContaining({ code: 'NOT_STARTED' }));
    expect(() => db.getCached(items, 1)).toThrow(/db\.getCached\(\)/);
  });
});
