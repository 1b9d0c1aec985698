/** A database whose tables stand in a catalogue: it is moved there, found again, kept as long as it is needed, and missed. */
import { beforeEach, describe, expect, it } from 'vitest';
import { realEnvironment } from '../../../src/base/env.ts';
import { createDatabase } from '../../../src/api/database.ts';
import type { Database } from '../../../src/api/database.ts';
import { encodeBlock0 } from '../../../src/format/block0.ts';
import type { Block0 } from '../../../src/format/block0.ts';
import { catalogueName, isCatalogueName } from '../../../src/format/catalogue.ts';
import { Types } from '../../../src/format/types.ts';
import { listBackups, pruneBackups, restoreBackup } from '../../../src/index.ts';
import type { StoreDbOptions } from '../../../src/instance/options.ts';
import { Block0Reader } from '../../../src/block0/block0-reader.ts';
import type { GetOptions, GetResult } from '../../../src/storage/contract/driver.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { SchemaDefinition } from '../../../src/schema/schema.ts';
import { VirtualEnvironment } from '../../../src/testing/virtual-environment.ts';

const tables = 30;
const schemas = Array.from({ length: tables }, (_, i): SchemaDefinition => {
  return {
    name: `t${i}`,
    version: 1,
    fields: { id: { typeId: Types.uint32 }, name: { typeId: Types.varchar } },
    primaryKey: 'id',
    indexes: ['name'],
  };
});

/** Something may happen before an object is read. */
class Store extends MemoryDriver {
  beforeGet: (key: string) => Promise<void> = () => Promise.resolve();

  override async get(key: string, options?: GetOptions): Promise<GetResult> {
    await this.beforeGet(key);
    return super.get(key, options);
  }
}

let environment: VirtualEnvironment;
let store: Store;

/** Blocks are small, so that few tables are many. */
async function open(options: Partial<StoreDbOptions> = {}, prefix = 'db'): Promise<Database> {
  const driver = options.driver ?? environment.connect(store);
  const db = createDatabase(
    { dbPrefix: prefix, nodeId: 0, logLevel: 'silent', polling: 'onDemand', blockSizeBytes: 512, ...options, driver },
    environment,
  );
  for (const schema of schemas) db.registerSchema(schema);
  await environment.run(db.start());
  return db;
}

async function write(db: Database, table: number, id: number): Promise<void> {
  const batch = db.batch();
  await environment.run(batch.upsert(`t${table}`, { id, name: `row ${id} of ${table}` }));
  await environment.run(batch.flush());
  await environment.run(db.checkpoint());
}

async function fill(db: Database): Promise<void> {
  const batch = db.batch();
  for (let i = 0; i < tables; i++) void batch.upsert(`t${i}`, { id: 0, name: `row 0 of ${i}` });
  await environment.run(batch.flush());
  await environment.run(db.checkpoint());
}

async function block0(prefix = 'db'): Promise<Block0> {
  const read = await new Block0Reader(store, prefix).read({});
  if (typeof read === 'string') throw new Error('There is no Block 0');
  return read.block0;
}

async function catalogues(prefix = 'db'): Promise<string[]> {
  const { entries } = await store.list(`${prefix}/data/`);
  return entries.map(({ key }) => key.slice(prefix.length + 1)).filter(isCatalogueName);
}

async function present(prefix = 'db'): Promise<string> {
  const { catalogue } = await block0(prefix);
  if (catalogue === undefined) throw new Error('Block 0 has no catalogue');
  return catalogueName(catalogue.ref);
}

async function expectRows(db: Database, id = 0): Promise<void> {
  for (let i = 0; i < tables; i++) {
    expect(await environment.run(db.get(`t${i}`, id))).toEqual({ id, name: `row ${id} of ${i}` });
  }
}

beforeEach(() => {
  environment = new VirtualEnvironment();
  store = new Store({ environment });
});

describe('a catalogue', () => {
  it('goes into backups, encrypted like all else, and comes back from them', async () => {
    const safe = new MemoryDriver();
    const encryption = { keys: { k1: Uint8Array.from({ length: 32 }, (_, i) => i) }, current: 'k1' };
    const options = { nodeId: 0, logLevel: 'silent', blockSizeBytes: 512, encryption } as const;
    const make = (driver: MemoryDriver, dbPrefix: string): Database => {
      const db = createDatabase({ ...options, driver, dbPrefix }, realEnvironment);
      for (const schema of schemas) db.registerSchema(schema);
      return db;
    };
    const source = make(new MemoryDriver(), 'db');
    await source.start();
    const to = { driver: safe, prefix: 'backups' };
    for (const round of [0, 1]) {
      for (let i = 0; i < tables; i++) {
        const batch = source.batch();
        await batch.upsert(`t${i}`, { id: round, name: `row ${round} of ${i}` });
        await batch.flush();
        await source.checkpoint();
      }
      await source.backup(to);
    }
    await source.stop();
    const [older, newer] = await listBackups(to);
    for (const { rows, backup } of [
      { rows: 1, backup: older?.id },
      { rows: 2, backup: newer?.id },
    ]) {
      const driver = new MemoryDriver();
      await restoreBackup({
        from: to,
        to: { driver, prefix: 'r' },
        encryption,
        ...(backup !== undefined && { backup }),
      });
      const restored = make(driver, 'r');
      await restored.start();
      expect(await restored.query('t7').count()).toBe(rows);
      expect((await restored.verify({ deep: true })).findings).toEqual([]);
      await restored.stop();
    }
    const stored = (await safe.list('backups/data/')).entries.map(({ key: name }) => name.slice('backups/'.length));
    expect(stored.filter(isCatalogueName).length).toBeGreaterThan(1);
    await pruneBackups({ from: to, encryption, keepLast: 1, graceMs: 0 });
    const left = (await safe.list('backups/data/')).entries.map(({ key: name }) => name.slice('backups/'.length));
    expect(left.filter(isCatalogueName)).toHaveLength(1);
  });

  it('is written once there are many tables, and again once many have changed', async () => {
    const db = await open();
    await write(db, 0, 0);
    expect(await catalogues()).toEqual([]);
    await fill(db);
    const first = await present();
    expect((await block0()).format).toBe(3);
    for (let i = 0; i < tables; i++) await write(db, i, 1);
    expect(await present()).not.toBe(first);
    await expectRows(await open(), 1);
  });

  it('takes over the tables of a database that was written without one', async () => {
    const first = await open();
    await fill(first);
    await environment.run(first.stop());
    const { catalogue: _, ...rest } = await block0();
    const bytes = encodeBlock0({ ...rest, format: 1 });
    await store.put('db/block0', bytes, { if: 'any' });
    await store.delete((await catalogues()).map((name) => `db/${name}`));
    const db = await open();
    await expectRows(db);
    expect(await catalogues()).toEqual([]);
    // A commit that changes no row.
    const batch = db.batch();
    await environment.run(batch.delete('t3', 99));
    await environment.run(batch.flush());
    await environment.run(db.checkpoint());
    expect((await catalogues()).length).toBe(1);
    const after = await store.get('db/block0');
    expect(after.status === 'found' && after.bytes.length).toBeLessThan(bytes.length / 3);
    await expectRows(await open());
    expect((await environment.run(db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('is collected once no state needs it, and not before', async () => {
    const db = await open();
    await fill(db);
    const old = await present();
    const snapshot = await environment.run(db.snapshot());
    for (let i = 0; i < tables; i++) await write(db, i, 1);
    expect(await present()).not.toBe(old);
    await environment.run(db.gc({ loopGraceMs: 0 }));
    expect(await catalogues()).toEqual([old, await present()]);
    expect(await environment.run(snapshot.get('t7', 1))).toBeUndefined();
    expect((await environment.run(db.verify({ deep: true }))).garbage).toMatchObject({ objects: 0 });
    await environment.run(snapshot.release());
    await environment.run(db.gc({ loopGraceMs: 0 }));
    expect(await catalogues()).toEqual([await present()]);
    expect((await environment.run(db.verify({ deep: true }))).findings).toEqual([]);
  });

  it('of an earlier state stays as long as the history', async () => {
    const db = await open({ history: '1h' });
    await fill(db);
    const { generation } = await block0();
    for (let i = 0; i < tables; i++) await write(db, i, 1);
    await environment.run(db.gc({ loopGraceMs: 0 }));
    const then = await environment.run(db.at(generation));
    expect(await environment.run(then.get('t7', 1))).toBeUndefined();
    expect(await environment.run(then.get('t7', 0))).toEqual({ id: 0, name: 'row 0 of 7' });
  });

  it('that is missing is an error that names it, and verify() of who has it in memory says so', async () => {
    const db = await open();
    await fill(db);
    const name = await present();
    await store.delete([`db/${name}`]);
    await expect(open()).rejects.toMatchObject({ code: 'CORRUPTION', key: name });
    const report = await environment.run(db.verify());
    expect(report.ok).toBe(false);
    expect(report.findings).toMatchObject([{ name }]);
    expect(await environment.run(db.repair({ dryRun: true }))).toMatchObject({ ok: false, catalogue: name });
    await expect(open()).rejects.toMatchObject({ code: 'CORRUPTION', key: name });
    expect(await environment.run(db.repair())).toEqual({ ok: true, repaired: [], unrepairable: [], catalogue: name });
    await expectRows(await open());
    await write(db, 3, 1);
    expect(await present()).not.toBe(name);
    expect((await environment.run(db.verify({ deep: true }))).findings).toEqual([]);
    await expectRows(await open());
  });

  it('that was collected while Block 0 was on its way is no damage: the next Block 0 is read', async () => {
    const db = await open();
    await fill(db);
    const old = await present();
    let isLate = true;
    store.beforeGet = async (key) => {
      if (key !== `db/${old}` || !isLate) return;
      isLate = false;
      for (let i = 0; i < tables; i++) await write(db, i, 1);
      await environment.run(db.gc({ loopGraceMs: 0 }));
    };
    const read = await new Block0Reader(store, 'db').read({});
    expect(isLate).toBe(false);
    expect(await catalogues()).not.toContain(old);
    expect(typeof read === 'object' && read.block0.catalogue?.ref).toEqual((await block0()).catalogue?.ref);
  });
});
