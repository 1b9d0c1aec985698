/** `batch.increment()`: the differences in batches are added to the row as it is when they are committed. */
import { describe, expect, it } from 'vitest';
import { defineSchema, EncodeError, RowNotFoundError, Types } from '../../../src/index.ts';
import type { Database, Transaction } from '../../../src/index.ts';
import { newDriver } from '../values/driver-under-test.ts';
import { failure, flushed, openDatabase, throughStages } from '../values/open-database.ts';

const pages = defineSchema({
  name: 'pages',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar },
    views: { typeId: Types.uint32, default: 0 },
    small: { typeId: Types.uint8 },
    signed: { typeId: Types.int16 },
    score: { typeId: Types.float64 },
    narrow: { typeId: Types.float32 },
    large: { typeId: Types.int64 },
    unsigned: { typeId: Types.uint64 },
    level: { typeId: Types.uint8, oneOf: [1, 2, 3], required: true, default: 1 },
    live: { typeId: Types.boolean },
    at: { typeId: Types.timestamp },
    meta: { typeId: Types.json },
    file: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['views', { fields: ['small'], unique: true }, { fields: ['title'], where: { signed: 2 } }],
});

const long = 'a title that is longer than a row holds beside its fields: '.repeat(4);

async function open(rows: readonly object[] = [{ id: 1, title: long }]): Promise<Database> {
  const db = await openDatabase([pages]);
  await flushed(db, (batch) => rows.forEach((row) => void batch.insert('pages', row)));
  return db;
}

/** What increments of one row come to. */
async function incremented(row: object, ...all: readonly object[]): Promise<Record<string, unknown> | undefined> {
  const db = await open([{ id: 1, ...row }]);
  await flushed(db, (batch) => all.forEach((fields) => void batch.increment('pages', 1, fields)));
  return db.get('pages', 1);
}

describe('an increment', () => {
  it('adds to fields of a row, and leaves the others', async () => {
    await throughStages(
      [pages],
      async (batch) => {
        await batch.insert(pages, { id: 1, title: long, views: 5, large: 2n ** 60n });
        await batch.increment(pages, 1, { views: 2, score: 0.5, large: -1n });
        await batch.increment(pages, 1, { views: 3 });
      },
      async ({ get, query }) => {
        expect(await get('pages', 1)).toMatchObject({ title: long, views: 10, score: 0.5, large: 2n ** 60n - 1n });
        expect(await query('pages').where('views', '=', 10).count()).toBe(1);
        expect(await query('pages').where('views', '=', 5).count()).toBe(0);
      },
    );
  });

  it('of a field that is null begins at 0', async () => {
    const row = await incremented({}, { small: 7, signed: -7, score: 1.5, narrow: 0.1, large: -3, unsigned: 4n });
    expect(row).toMatchObject({ small: 7, signed: -7, score: 1.5, narrow: Math.fround(0.1), large: -3n, unsigned: 4n });
  });

  it.each<[string, object, object[], object]>([
    ['takes away', { views: 5 }, [{ views: -5 }], { views: 0 }],
    [
      'reaches both ends of a type',
      { small: 0, signed: -32_768 },
      [{ small: 255, signed: 65_535 }],
      { small: 255, signed: 32_767 },
    ],
    ['reaches both ends of 64 bits', { unsigned: 0n }, [{ unsigned: 2n ** 64n - 1n }], { unsigned: 2n ** 64n - 1n }],
    ['is exact beyond 2^53', { large: 2n ** 53n }, [{ large: 1 }], { large: 2n ** 53n + 1n }],
    ['rounds to float32 each time', { narrow: 16_777_216 }, [{ narrow: 1 }], { narrow: 16_777_216 }],
    ['keeps infinity', { score: Infinity }, [{ score: -1e300 }], { score: Infinity }],
    ['of nothing is one', { views: 3 }, [{ views: 0 }], { views: 3 }],
    ['keeps to a list of values', { level: 1 }, [{ level: 2 }], { level: 3 }],
  ])('%s', async (_what, row, all, expected) => {
    expect(await incremented(row, ...all)).toMatchObject(expected);
  });

  it.each<[object, object, string, string]>([
    [
      { small: 250 },
      { small: 6 },
      'small',
      "Cannot add 6 to field 'small' of the row with primary key 1 in table 'pages', which is 250: 256 does not fit type uint8, which takes integers from 0 to 255. Nothing was written.",
    ],
    [{ views: 0 }, { views: -1 }, 'views', 'which is 0: -1 does not fit type uint32'],
    [{}, { small: -1 }, 'small', 'which is null: -1 does not fit type uint8'],
    [{ large: 2n ** 63n - 1n }, { large: 1 }, 'large', 'does not fit type int64'],
    [{ unsigned: 0n }, { unsigned: -1n }, 'unsigned', 'does not fit type uint64'],
    [{ score: 1.7e308 }, { score: 1.7e308 }, 'score', 'the sum is larger than numbers of type float64 are'],
    [{ narrow: 3e38 }, { narrow: 3e38 }, 'narrow', 'float32'],
    [{ level: 3 }, { level: 1 }, 'level', '4 is none of its values: 1, 2, 3'],
  ])('is refused by the flush where the sum of %o and %o does not fit', async (row, fields, field, message) => {
    const db = await open([{ id: 1, ...row }]);
    const before = await db.get(pages, 1);
    const batch = db.batch();
    await batch.insert(pages, { id: 2 });
    await batch.increment('pages', 1, fields);
    // What is laid over a state shows what it can.
    expect(await db.query(pages).overlay(batch).where('id', '=', 1).first()).toEqual(before);
    const error = await failure(batch.flush());
    expect(error).toBeInstanceOf(EncodeError);
    expect(error).toMatchObject({ table: 'pages', field });
    expect((error as Error).message).toContain(message);
    expect(await db.query(pages).count()).toBe(1);
    expect(await db.get(pages, 1)).toEqual(before);
  });

  it.each<[unknown, string]>([
    [{ veiws: 1 }, "the schema has no field 'veiws': did you mean views."],
    [{ id: 1 }, "'id' is the primary key, and rows keep the key that they have."],
    [{ title: 1 }, "field 'title' is of type varchar, and only numbers are added to."],
    [{ live: 1 }, "field 'live' is of type boolean"],
    [{ at: 1 }, "field 'at' is of type timestamp"],
    [{ meta: 1 }, "field 'meta' is of type json"],
    [{ views: '1' }, "field 'views' of type uint32 takes safe integers, not '1'."],
    [{ views: 1.5 }, 'takes safe integers, not 1.5.'],
    [{ views: 1n }, 'takes safe integers, not 1n.'],
    [{ views: null }, 'takes safe integers, not null.'],
    [{ views: undefined }, 'takes safe integers, not undefined.'],
    [{ large: 1.5 }, 'takes bigints and safe integers, not 1.5.'],
    [{ large: 2 ** 60 }, 'takes bigints and safe integers, not 1152921504606847000.'],
    [{ score: Number.NaN }, 'takes finite numbers, not NaN.'],
    [{ score: Infinity }, 'takes finite numbers, not Infinity.'],
    [{}, 'the increments name no field.'],
    [null, 'the increments are an object of fields and numbers, not null.'],
    [[1], 'the increments are an object of fields and numbers, not an array.'],
    [1, 'the increments are an object of fields and numbers, not 1.'],
  ])('is refused at the call: %o', async (fields, message) => {
    const db = await open();
    const batch = db.batch();
    const error = await failure(batch.increment('pages', 1, fields as object));
    expect(error).toMatchObject({ code: 'ENCODE' });
    expect((error as Error).message).toContain(`Cannot increment table 'pages': `);
    expect((error as Error).message).toContain(message);
    expect(batch.size).toBe(0);
    batch.clear();
    await batch.increment(pages, 1, { views: 1 });
    await batch.flush();
    expect((await db.get(pages, 1))?.views).toBe(1);
  });

  it.each([undefined, null, 'one', -1])('is refused for a primary key of %o', async (key) => {
    const db = await open();
    const batch = db.batch();
    expect(await failure(batch.increment('pages', key, { views: 1 }))).toMatchObject({ code: 'ENCODE', field: 'id' });
    expect(batch.size).toBe(0);
  });

  it('of a missing row is refused, with any other operations in the batch', async () => {
    const db = await open();
    const batch = db.batch();
    for (let id = 10; id < 20; id++) await batch.insert(pages, { id });
    await batch.delete(pages, 1);
    await batch.increment(pages, 1, { views: 1 });
    expect(await failure(batch.flush())).toBeInstanceOf(RowNotFoundError);
    batch.clear();
    for (let id = 30; id < 40; id++) await batch.increment(pages, id, { views: 1 });
    expect(await failure(batch.flush())).toMatchObject({ code: 'ROW_NOT_FOUND', primaryKey: 30 });
    expect(await db.query(pages).count()).toBe(1);
  });

  it('is checked by the compiler', async () => {
    const db = await open();
    const batch = db.batch();
    // @ts-expect-error a text is not added to
    await failure(batch.increment(pages, 1, { title: 1 }));
    // @ts-expect-error there is no such field
    await failure(batch.increment(pages, 1, { veiws: 1 }));
    // @ts-expect-error the primary key stays
    await failure(batch.increment(pages, 1, { id: 1 }));
    // @ts-expect-error bigints are for 64 bits
    await failure(batch.increment(pages, 1, { views: 1n }));
    // @ts-expect-error keys are numbers
    await failure(batch.increment(pages, 'one', { views: 1 }));
    expect(batch.size).toBe(0);
  });

  it('takes a condition', async () => {
    const db = await open([{ id: 1, views: 3, live: true }]);
    await flushed(db, (batch) => void batch.increment(pages, 1, { views: -3 }, { if: { live: true } }));
    const batch = db.batch();
    await batch.increment(pages, 1, { views: 1 }, { if: { views: 3 } });
    expect(await failure(batch.flush())).toMatchObject({ code: 'CONDITION_FAILED', expected: 3, actual: 0 });
    expect(await failure(db.batch().increment(pages, 1, { views: 1 }, { fi: {} } as object))).toMatchObject({
      code: 'INVALID_OPTION',
    });
  });

  it('holds unique indexes, and those on some rows', async () => {
    const db = await open([
      { id: 1, small: 1, title: 'x', signed: 1 },
      { id: 2, small: 2, title: 'y', signed: 1 },
    ]);
    const batch = db.batch();
    await batch.increment(pages, 1, { small: 1, signed: 1 });
    expect(await failure(batch.flush())).toMatchObject({ code: 'UNIQUE_INDEX' });
    await batch.increment(pages, 2, { small: 1 });
    await batch.flush();
    const titled = db.query(pages).where('title', '=', 'x').where('signed', '=', 2);
    expect(await titled.first()).toMatchObject({ id: 1, small: 2 });
    expect(await titled.count()).toBe(1);
    expect(await db.verify()).toMatchObject({ ok: true });
  });

  it('goes through batches of batches, and large ones', async () => {
    const db = await open(Array.from({ length: 300 }, (_, id) => ({ id, title: long, views: id })));
    const batch = db.batch();
    for (let turn = 0; turn < 2; turn++) {
      const sub = batch.subBatch();
      for (let id = 0; id < 300; id++) await sub.increment(pages, id, { views: 1000 });
      await sub.flush();
    }
    expect(await db.query(pages).overlay(batch).sum('views')).toBe(300 * 2000 + (299 * 300) / 2);
    await batch.flush();
    await db.checkpoint();
    expect(await db.query(pages).sum('views')).toBe(300 * 2000 + (299 * 300) / 2);
    expect(await db.query(pages).where('views', '>=', 2000).count()).toBe(300);
  });

  it('keeps the blobs of its row', async () => {
    const db = await openDatabase([pages]);
    await flushed(db, (batch) => void batch.insert(pages, { id: 1, file: db.Blob('content') }));
    await flushed(db, (batch) => void batch.increment(pages, 1, { views: 1 }));
    await db.checkpoint();
    await db.gc();
    const row = await db.get(pages, 1);
    expect(row?.views).toBe(1);
    expect((await db.getBlob(row?.file as string).getBuffer()).toString()).toBe('content');
    await flushed(db, (batch) => void batch.delete(pages, 1));
    await db.checkpoint();
    expect(await db.verify({ deep: true })).toMatchObject({ ok: true });
  });

  it('fires the triggers of updates', async () => {
    const db = await openDatabase([pages]);
    const seen: unknown[] = [];
    db.registerTrigger(pages, '*', (row, _batch, _api, operation, before) => {
      seen.push([operation, row.views, before?.views]);
    });
    await flushed(db, (batch) => void batch.insert(pages, { id: 1, views: 1 }));
    await flushed(db, (batch) => {
      void batch.increment(pages, 1, { views: 2 });
      void batch.increment(pages, 1, { views: 3 });
    });
    expect(seen).toEqual([
      ['insert', 1, undefined],
      ['update', 3, 1],
      ['update', 6, 3],
    ]);
    expect((await db.get(pages, 1))?.views).toBe(6);
  });
});

describe('increments of several nodes', () => {
  it('all count, and none of them fails', async () => {
    const driver = newDriver();
    const nodes = await Promise.all([0, 1, 2].map((nodeId) => openDatabase([pages], driver, { nodeId })));
    await flushed(nodes[0] as Database, (batch) => void batch.insert(pages, { id: 1 }));
    await Promise.all(
      nodes.map(async (db, n) => {
        await db.refresh();
        for (let i = 0; i < 20; i++)
          await flushed(db, (batch) => void batch.increment(pages, 1, { views: 1, signed: n }));
      }),
    );
    for (const db of nodes) {
      await db.refresh();
      expect(await db.get(pages, 1)).toMatchObject({ views: 60, signed: 60 });
    }
  });

  it('are added to unseen writes of others', async () => {
    const driver = newDriver();
    const [a, b] = await Promise.all([0, 1].map((nodeId) => openDatabase([pages], driver, { nodeId })));
    await flushed(a as Database, (batch) => void batch.insert(pages, { id: 1, views: 5, small: 250 }));
    await b?.refresh();
    const late = (b as Database).batch();
    await late.increment(pages, 1, { views: 1 });
    const tooMuch = (b as Database).batch();
    await tooMuch.increment(pages, 1, { small: 5 });
    await flushed(a as Database, (batch) => void batch.update(pages, { id: 1, views: 100, small: 251, title: 'new' }));
    await late.flush();
    expect(await b?.get(pages, 1)).toMatchObject({ views: 101, title: 'new' });
    expect(await failure(tooMuch.flush())).toMatchObject({ code: 'ENCODE', field: 'small' });
  });

  it('are no conflict of transactions, unless the row is read', async () => {
    const driver = newDriver();
    const [a, b] = (await Promise.all([0, 1].map((nodeId) => openDatabase([pages], driver, { nodeId })))) as [
      Database,
      Database,
    ];
    await flushed(a, (batch) => void batch.insert(pages, { id: 1 }));
    await b.refresh();
    const attempts = async (read?: (tx: Transaction) => Promise<unknown>): Promise<number> => {
      let count = 0;
      await b.transaction(async (tx) => {
        count++;
        await tx.increment(pages, 1, { views: 10 });
        await read?.(tx);
        if (count === 1) await flushed(a, (batch) => void batch.increment(pages, 1, { views: 1 }));
      });
      return count;
    };
    expect(await attempts()).toBe(1);
    expect(await attempts((tx) => tx.get(pages, 1))).toBe(2);
    expect((await b.get(pages, 1))?.views).toBe(22);
    // Found only with what is added to it, which neither the row before nor the row after the other's increment is.
    expect(await attempts((tx) => tx.query(pages).where('views', '>', 30).count())).toBe(2);
    expect((await b.get(pages, 1))?.views).toBe(33);
  });

  it('count in two versions of a table, each with the numbers of its own', async () => {
    const old = defineSchema({
      name: 'counters',
      version: 1,
      fields: { id: { typeId: Types.uint32 }, n: { typeId: Types.uint8 } },
      primaryKey: 'id',
    });
    const wide = defineSchema({
      ...old,
      version: 2,
      fields: { ...old.fields, n: { typeId: Types.uint32 }, more: { typeId: Types.float64, default: 0 } },
    });
    const driver = newDriver();
    const a = await openDatabase([old], driver);
    await flushed(a, (batch) => void batch.insert(old, { id: 1, n: 250 }));
    const b = await openDatabase([wide], driver, { nodeId: 1 });
    await flushed(b, (batch) => void batch.increment(wide, 1, { n: 2, more: 0.5 }));
    await a.refresh();
    await flushed(a, (batch) => void batch.increment(old, 1, { n: 2 }));
    const tooMuch = a.batch();
    await tooMuch.increment(old, 1, { n: 2 });
    expect(await failure(tooMuch.flush())).toMatchObject({ code: 'ENCODE' });
    await b.refresh();
    expect(await b.get(wide, 1)).toEqual({ id: 1, n: 254, more: 0.5 });
    await b.setTargetSchemaVersion('counters', 2);
    for (let turn = 0; turn < 10; turn++) await b.checkpoint();
    await flushed(b, (batch) => void batch.increment(wide, 1, { n: 1000 }));
    expect(await b.get(wide, 1)).toEqual({ id: 1, n: 1254, more: 0.5 });
    expect(await b.verify()).toMatchObject({ ok: true });
  });
});
