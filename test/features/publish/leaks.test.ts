/** What is not published is in no object of a bundle: neither in rows nor in keys, statistics, definitions and names. */
import { describe, expect, it } from 'vitest';
import { StoreDb, Types, defineSchema } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import type { Clauses } from '../../../src/query/conditions/clause.ts';
import { BundleServer } from './published.ts';

/** Every value that must not be published begins so, as text, and as the bytes of a number. */
const secret = 'SECRET';
const secretNumber = 0x53_45_43_52;

const accounts = defineSchema({
  name: 'accounts',
  version: 7,
  fields: {
    key: { typeId: Types.varchar },
    region: { typeId: Types.varchar, default: `${secret} default`, required: true },
    level: { typeId: Types.varchar, oneOf: ['low', 'high', `${secret} level`] },
    salary: { typeId: Types.uint32, default: secretNumber },
    [`${secret}_field`]: { typeId: Types.varchar },
    notes: { typeId: Types.json },
    scan: { typeId: Types.blob },
  },
  renames: { notes: `${secret}_notes` },
  primaryKey: 'key',
  indexes: [
    'region',
    { fields: ['salary'], name: `${secret}_index` },
    { fields: ['region', 'salary'], name: `${secret}_both` },
    { fields: ['level'], name: `${secret}_partial`, where: { level: [`${secret} level`] } },
  ],
});
const others = defineSchema({
  name: `${secret}s`,
  version: 1,
  fields: { id: { typeId: Types.uint32 }, text: { typeId: Types.varchar } },
  primaryKey: 'id',
});

describe('the objects of a bundle', () => {
  it('hold nothing of rows, fields, indexes and tables that are not published', async () => {
    const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: secret.toLowerCase(), nodeId: 1 });
    db.registerSchema(accounts);
    db.registerSchema(others);
    await db.start();
    const rows = Array.from({ length: 6000 }, (_, i) => {
      const isOpen = i % 3 === 0;
      return {
        key: `${isOpen ? 'open' : secret}${String(i).padStart(6, '0')}`,
        // Text that is in the heap, and text that is not.
        region: isOpen ? `region ${i % 10}${i % 2 === 0 ? ' of a long name' : ''}` : `${secret} ${i}`,
        level: isOpen ? 'low' : `${secret} level`,
        salary: secretNumber,
        [`${secret}_field`]: `${secret} and a text of some length ${i}`,
        notes: { told: secret },
        scan: i < 9 ? db.Blob(`${secret} blob ${i}`, { contentType: `text/${secret}` }) : null,
      };
    });
    for (const someRows of [rows.slice(0, 3000), rows.slice(3000)]) {
      const batch = db.batch();
      for (const row of someRows) void batch.insert(accounts, row as never);
      void batch.upsert(others, { id: 1, text: secret });
      await batch.flush();
    }
    // Rows that are gone, and values that were replaced by shorter ones.
    const batch = db.batch();
    void batch.insert(accounts, { ...rows[0], key: 'open deleted', region: secret, scan: null } as never);
    await batch.flush();
    void batch.delete(accounts, 'open deleted');
    void batch.update(accounts, { key: 'open000003', region: `${secret} once` });
    await batch.flush();
    void batch.update(accounts, { key: 'open000003', region: 'region 3' });
    await batch.flush();

    const server = new BundleServer();
    const report = await db.publish(server.place, {
      tables: ['accounts'],
      where: { accounts: ({ is }) => is('region', 'PREFIX', 'region ') },
      fields: { accounts: ['region', 'level'] },
    });
    expect(report.rows).toBe(2000);
    const texts = await server.texts();
    expect(texts.size).toBeGreaterThan(4);
    const words = new RegExp(`${secret}|${secret.toLowerCase()}|RCES|salary|notes|scan`);
    for (const [name, text] of texts) {
      // Blocks in the manifest are in base64.
      const inlined = [...text.matchAll(/"block":"([^"]+)"/g)].map(([, block]) =>
        Buffer.from(block as string, 'base64').toString('latin1'),
      );
      for (const part of [name, text, ...inlined]) expect(words.exec(part)?.[0], name).toBeUndefined();
    }
    const { databaseId } = JSON.parse(Buffer.from(await wholeBlock0(db)).toString()) as { databaseId: string };
    for (const text of texts.values()) expect(text).not.toContain(databaseId);
    const reader = await server.open();
    expect(reader.tables()[0]?.indexes).toEqual(['region']);
    expect(await reader.get('accounts', 'open000003')).toEqual({ key: 'open000003', region: 'region 3', level: 'low' });
    expect(await reader.query('accounts').where('region', '=', 'region 3').count()).toBe(200);
    await db.stop();
  });

  it('hold no included fields and no elements of lists, and are read by their indexes', async () => {
    const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
    const listed = defineSchema({
      name: 'listed',
      version: 1,
      fields: {
        id: { typeId: Types.uint32 },
        region: { typeId: Types.varchar },
        secret: { typeId: Types.varchar },
        tags: { typeId: Types.json },
      },
      primaryKey: 'id',
      indexes: [
        { fields: ['region'], include: ['secret'] },
        { fields: ['tags'], each: true },
      ],
    });
    db.registerSchema(listed);
    await db.start();
    await db.load(
      listed,
      Array.from({ length: 2000 }, (_, id) => {
        return { id, region: `region ${id % 10}`, secret: `${secret} ${id}`, tags: ['open', `tag ${id}`] };
      }),
    );
    const all = { listed: ({ is }: Clauses<Record<string, unknown>>) => is('id', '<', 2000) };
    for (const where of [undefined, all]) {
      const server = new BundleServer();
      const fields = { listed: ['region', 'tags'] };
      await db.publish(server.place, {
        tables: ['listed'],
        fields,
        ...(where !== undefined && { where }),
      });
      for (const [name, text] of await server.texts()) expect(text.includes(secret), name).toBe(false);
      const reader = await server.open();
      expect(reader.tables()[0]?.indexes).toEqual(['region']);
      expect(await reader.query('listed').where('region', '=', 'region 3').count()).toBe(200);
      const first = await reader.query('listed').where('region', '=', 'region 3').first();
      expect(first).toEqual({ id: 3, region: 'region 3', tags: ['open', 'tag 3'] });
      expect(await reader.query('listed').where('tags', 'HAS', 'tag 17').count()).toBe(1);
    }
    await db.stop();
  });

  it('hold no entries of paths, which readers test rows for if the field is published', async () => {
    const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
    const placed = defineSchema({
      name: 'placed',
      version: 1,
      fields: { id: { typeId: Types.uint32 }, open: { typeId: Types.json }, hidden: { typeId: Types.json } },
      primaryKey: 'id',
      indexes: [
        { fields: [{ path: 'open.city', typeId: Types.varchar }] },
        { fields: [{ path: 'hidden.city', typeId: Types.varchar }], name: 'hidden city' },
      ],
    });
    db.registerSchema(placed);
    await db.start();
    await db.load(
      placed,
      Array.from({ length: 500 }, (_, id) => {
        return { id, open: { city: `city ${id % 10}` }, hidden: { city: `${secret} ${id}` } };
      }),
    );
    const server = new BundleServer();
    await db.publish(server.place, { tables: ['placed'], fields: { placed: ['open'] } });
    for (const [name, text] of await server.texts()) expect(text.includes(secret), name).toBe(false);
    const reader = await server.open();
    expect(reader.tables()[0]?.indexes).toBeUndefined();
    const query = reader.query('placed');
    expect(await query.where('open.city', '=', 'city 3').count()).toBe(50);
    expect(await query.orderBy('open.city', 'desc').limit(1).select('open.city').execute()).toEqual([
      { 'open.city': 'city 9' },
    ]);
    expect(() => query.where('hidden.city', '=', secret)).toThrow("no field 'hidden.city'");
    await db.stop();
  });
});

/** The bytes of Block 0, for the id of the database. */
async function wholeBlock0(db: ReturnType<typeof StoreDb>): Promise<Uint8Array> {
  const place = { driver: new MemoryDriver(), prefix: 'backup' };
  await db.backup(place);
  const { entries } = await place.driver.list('backup/backups/');
  const found = await place.driver.get(entries[0]?.key ?? '');
  if (found.status !== 'found') throw new Error('There is no manifest');
  return found.bytes;
}
