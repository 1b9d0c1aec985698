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

  it('hold no included fields that are not published, and are read by their indexes', async () => {
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
        { fields: ['tags'], each: true, include: ['secret', 'region'] },
        { fields: ['secret', 'tags'], each: true, name: 'secret tags' },
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
      expect(reader.tables()[0]?.indexes).toEqual(['region', { fields: ['tags'], each: true, include: ['region'] }]);
      expect(await reader.query('listed').where('region', '=', 'region 3').count()).toBe(200);
      const first = await reader.query('listed').where('region', '=', 'region 3').first();
      expect(first).toEqual({ id: 3, region: 'region 3', tags: ['open', 'tag 3'] });
      const tagged = reader.query('listed').where('tags', 'HAS', 'tag 17').select('id', 'region');
      expect(await tagged.execute()).toEqual([{ id: 17, region: 'region 7' }]);
      expect(await tagged.explain()).toMatchObject({ index: 'tags', indexOnly: true });
    }
    await db.stop();
  });

  it('hold no entries of paths into fields that are not published', async () => {
    const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
    const placed = defineSchema({
      name: 'placed',
      version: 1,
      fields: {
        id: { typeId: Types.uint32 },
        open: { typeId: Types.json },
        'open.shut': { typeId: Types.json },
        hidden: { typeId: Types.json },
      },
      primaryKey: 'id',
      indexes: [
        { fields: [{ path: 'open.city', typeId: Types.varchar }], include: ['hidden.zip', 'open.zip'] },
        { fields: [{ path: 'hidden.city', typeId: Types.varchar }], name: 'hidden city' },
        { fields: [{ path: 'open.shut.city', typeId: Types.varchar }], name: 'shut city' },
        { fields: ['id'], where: { 'hidden.isOpen': true }, name: 'ids' },
        { fields: ['id', { path: 'hidden.tags', typeId: Types.json }], each: true, name: 'hidden tags' },
      ],
    });
    db.registerSchema(placed);
    await db.start();
    await db.load(
      placed,
      Array.from({ length: 500 }, (_, id) => {
        const hidden = { city: `${secret} ${id}`, zip: `${secret} ${id}`, tags: [secret], isOpen: true };
        return { id, open: { city: `city ${id % 10}`, zip: id }, 'open.shut': hidden, hidden };
      }),
    );
    const server = new BundleServer();
    await db.publish(server.place, { tables: ['placed'], fields: { placed: ['open'] } });
    for (const [name, text] of await server.texts()) {
      expect(/SECRET|hidden|shut/.exec(text)?.[0], name).toBeUndefined();
    }
    const reader = await server.open();
    expect(reader.tables()[0]?.indexes).toEqual([
      { fields: [{ path: 'open.city', typeId: Types.varchar }], include: ['open.zip'] },
    ]);
    const query = reader.query('placed');
    expect(await query.where('open.city', '=', 'city 3').count()).toBe(50);
    expect(await query.orderBy('open.city', 'desc').limit(1).select('open.city').execute()).toEqual([
      { 'open.city': 'city 9' },
    ]);
    expect(() => query.where('hidden.city', '=', secret)).toThrow("no field 'hidden.city'");
    await db.stop();
  });

  it('hold no index whose condition names a value that no published row has', async () => {
    const db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
    const notes = defineSchema({
      name: 'notes',
      version: 1,
      fields: {
        id: { typeId: Types.uint32 },
        level: { typeId: Types.varchar },
        place: { typeId: Types.json },
        at: { typeId: Types.timestamp },
      },
      primaryKey: 'id',
      indexes: [
        { fields: ['at'], where: { level: ['open', secret] }, name: 'levels' },
        { fields: ['at'], where: { 'place.town': secret }, name: 'places' },
        { fields: ['at'], where: { level: secret, id: { not: null } }, name: 'secrets' },
        { fields: ['at'], where: { level: ['open', null] }, name: 'open' },
        { fields: ['at'], where: { 'place.town': ['Chur', 7], level: { not: null } }, name: 'towns' },
      ],
    });
    db.registerSchema(notes);
    await db.start();
    await db.load(
      notes,
      Array.from({ length: 60 }, (_, id) => {
        const level = id % 3 === 0 ? secret : 'open';
        return { id, level, place: { town: level === secret ? secret : id % 2 === 0 ? 'Chur' : 7 }, at: new Date(id) };
      }),
    );
    const server = new BundleServer();
    await db.publish(server.place, { where: { notes: ({ is }) => is('level', '=', 'open') } });
    for (const [name, text] of await server.texts()) expect(text.includes(secret), name).toBe(false);
    const reader = await server.open();
    expect(reader.tables()[0]?.indexes).toEqual([
      { fields: ['at'], where: { level: [null, 'open'] }, name: 'open' },
      { fields: ['at'], where: { level: { not: null }, 'place.town': [7, 'Chur'] }, name: 'towns' },
    ]);
    const inChur = reader
      .query(notes)
      .where('level', '=', 'open')
      .where('place.town', '=', 'Chur')
      .orderBy('at', 'desc');
    expect((await inChur.limit(2).execute()).map(({ id }) => id)).toEqual([58, 56]);
    reader.close();
    // All rows are published, but none has one of the values.
    await db.transaction(async (tx) => {
      for (const { id } of await db.query(notes).where('level', '=', secret).execute()) await tx.delete(notes, id);
    });
    await db.publish(server.place, { keep: { bundles: 1, ageMs: 0 } });
    for (const [name, text] of await server.texts()) expect(text.includes(secret), name).toBe(false);
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
