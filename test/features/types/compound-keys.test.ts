/** The types of tables whose primary key is made of several fields. The compiler is the one that tests it. */
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Batch, InsertDocument, KeyFor, PrimaryKeyOf, RowFor, SchemaDefinition } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
import { describe, expect, expectTypeOf, it } from 'vitest';

const pages = defineSchema({
  name: 'pages',
  version: 1,
  fields: {
    tenant: { typeId: Types.uint32 },
    slug: { typeId: Types.varchar, oneOf: ['a', 'b'] },
    at: { typeId: Types.int64 },
    id: { typeId: Types.uuid, default: 'uuidv7' },
    title: { typeId: Types.varchar },
    views: { typeId: Types.uint32 },
  },
  primaryKey: ['tenant', 'slug', 'at', 'id'],
});
const one = defineSchema({ name: 'one', version: 1, fields: pages.fields, primaryKey: ['tenant'] });
const noted = defineSchema({
  name: 'noted',
  version: 1,
  fields: { id: { typeId: Types.uint32 }, meta: { typeId: Types.json } },
  primaryKey: 'id',
});
const db = StoreDb({ dbPrefix: 'types', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
db.registerSchema(pages);
db.registerSchema(one);

const key = [1, 'a', 2n, ''] as const;

/** Never run: only its types matter. */
async function typed(batch: Batch): Promise<void> {
  expectTypeOf<RowFor<typeof pages>>().toEqualTypeOf<{
    tenant: number;
    slug: 'a' | 'b';
    at: bigint;
    id: string;
    title: string | null;
    views: number | null;
  }>();
  expectTypeOf<KeyFor<typeof pages>>().toEqualTypeOf<readonly [number, 'a' | 'b', number | bigint, string]>();
  expectTypeOf<PrimaryKeyOf<typeof pages>>().toEqualTypeOf<[number, 'a' | 'b', bigint, string]>();
  expectTypeOf<KeyFor<typeof one>>().toEqualTypeOf<number>();
  expectTypeOf<PrimaryKeyOf<typeof one>>().toEqualTypeOf<number>();
  expectTypeOf(await db.get(pages, key)).toEqualTypeOf<RowFor<typeof pages> | undefined>();
  const made = await batch.insert(pages, { tenant: 1, slug: 'a', at: 2 });
  expectTypeOf(made).toEqualTypeOf<[number, 'a' | 'b', bigint, string]>();
  await db.get(pages, made);
  await batch.delete(pages, [1, 'a', 2, made[3]], { if: { views: 1 } });
  await batch.increment(pages, made, { views: 1 });
  await batch.update(pages, { tenant: 1, slug: 'a', at: 2, id: '', title: null });
  await db.transaction((tx) => tx.get(pages, made));
  db.registerTrigger(pages, 'delete', async (row, _batch, api) => {
    expectTypeOf(row).toExtend<{ tenant: number }>();
    await api.get(pages, made);
  });
  await db.get(one, 5);
  // @ts-expect-error -- a key is an array
  await db.get(pages, 1);
  // @ts-expect-error -- of all fields
  await db.get(pages, [1, 'a', 2n]);
  // @ts-expect-error -- and no more
  await db.get(pages, [1, 'a', 2n, '', 5]);
  // @ts-expect-error -- in their order
  await db.get(pages, ['a', 1, 2n, '']);
  // @ts-expect-error -- of their types
  await batch.delete(pages, [1, 'c', 2n, '']);
  // @ts-expect-error -- an array of one is the field
  await db.get(one, [5]);
  // @ts-expect-error -- a field of the key is missing
  await batch.insert(pages, { tenant: 1, at: 2 });
  // @ts-expect-error -- a field of the key is not null
  await batch.insert(pages, { tenant: 1, slug: null, at: 2 });
  // @ts-expect-error -- all fields of the key say which row it is
  await batch.update(pages, { tenant: 1, slug: 'a', at: 2 });
  // @ts-expect-error -- rows keep the key that they have
  await batch.increment(pages, made, { at: 1 });

  const query = db.query(pages);
  query.where(['tenant', 'slug'], '=', [1, 'a']).where(['slug', 'title'], 'IN', [['a', null]]);
  query.where(({ is, not }) => not(is(['tenant', 'at'], 'IN', [[1, 2]])));
  query.where(['tenant', 'slug', 'at', 'id'], 'IN', [made, made]);
  expectTypeOf(query.where(['tenant'], '=', [1]).execute()).resolves.toEqualTypeOf<RowFor<typeof pages>[]>();
  db.query('pages').where(['tenant', 'slug'], 'IN', [[1, 'a']]);
  // @ts-expect-error -- there is no such field
  query.where(['tenant', 'slgu'], '=', [1, 'a']);
  // @ts-expect-error -- a value for each field
  query.where(['tenant', 'slug'], '=', [1]);
  // @ts-expect-error -- of their types
  query.where(['tenant', 'slug'], 'IN', [['a', 1]]);
  // @ts-expect-error -- IN takes arrays
  query.where(['tenant', 'slug'], 'IN', [1, 'a']);
  query.where(['tenant', 'slug'], '<', [1, 'a']).where(['tenant', 'at'], '>=', [1, null]);
  query.where(['slug', 'title'], 'BETWEEN', [
    ['a', null],
    ['b', 'x'],
  ]);
  query.where(({ is, not }) => not(is(['tenant', 'at'], '>', [1, 2])));
  query.where(['tenant', 'slug', 'at', 'id'], '>', made);
  db.query('pages').where(['tenant', 'slug'], '<', [1, 'a']);
  // @ts-expect-error -- they are compared by order, and not by what they are not
  query.where(['tenant', 'slug'], '!=', [1, 'a']);
  // @ts-expect-error -- nor by what they begin with
  query.where(['tenant', 'slug'], 'PREFIX', [1, 'a']);
  // @ts-expect-error -- there is no such field
  query.where(['tenant', 'slgu'], '<', [1, 'a']);
  // @ts-expect-error -- a value for each field
  query.where(['tenant', 'slug'], '>', [1]);
  // @ts-expect-error -- and no more
  query.where(['tenant', 'slug'], '>', [1, 'a', 2]);
  // @ts-expect-error -- of their types
  query.where(['tenant', 'slug'], '<=', ['a', 1]);
  // @ts-expect-error -- BETWEEN takes the lowest and the highest
  query.where(['tenant', 'slug'], 'BETWEEN', [1, 'a']);
  // @ts-expect-error -- each with a value for each field
  query.where(['tenant', 'slug'], 'BETWEEN', [[1, 'a'], [1]]);
  // @ts-expect-error -- JSON has no order
  db.query(noted).where(['id', 'meta'], '<', [1, null]);
}

/** Code for any table: keys, rows and documents go together. */
class Repository<T extends SchemaDefinition> {
  readonly table: T;
  constructor(table: T) {
    this.table = table;
  }
  find(id: KeyFor<T>): Promise<RowFor<T> | undefined> {
    return db.get(this.table, id);
  }
  add(batch: Batch, row: InsertDocument<T>): Promise<PrimaryKeyOf<T>> {
    return batch.insert(this.table, row);
  }
}

describe('keys of several fields', () => {
  it('are checked where this file is compiled', async () => {
    expect(typed).toBeTypeOf('function');
    await db.start();
    const repository = new Repository(pages);
    const batch = db.batch();
    const made = await repository.add(batch, { tenant: 1, slug: 'b', at: 3 });
    expectTypeOf(made).toEqualTypeOf<[number, 'a' | 'b', bigint, string]>();
    await batch.flush();
    expect((await repository.find(made))?.slug).toBe('b');
    await db.stop();
  });
});
