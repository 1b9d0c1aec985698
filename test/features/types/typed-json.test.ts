/** Json fields that are typed. The compiler tests the types; the rest runs. */
import { defineSchema, json, StoreDb, Types } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
import { expect, expectTypeOf, it } from 'vitest';

interface Meta {
  tags: string[];
  source?: string;
}

const fields = {
  id: { typeId: Types.uint32 },
  meta: json<Meta>(),
  list: { ...json<Meta[]>(), required: true, default: [{ tags: [] }] },
} as const;
const badFields = { ...fields, more: { ...json<Meta>(), default: 5 } } as const;
const pictures = defineSchema({ name: 'pictures', version: 1, fields, primaryKey: 'id' });

it('has the definition of any json field', () => {
  expect(json<Meta>()).toEqual({ typeId: Types.json });
  expect(Reflect.ownKeys(json<Meta>())).toEqual(['typeId']);
});

it('is written and read by its type', async () => {
  const db = StoreDb({ dbPrefix: 'types', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
  db.registerSchema(pictures);
  await db.start();
  const batch = db.batch();
  await batch.insert(pictures, { id: 1, meta: { tags: ['sea'] } });
  await batch.insert(pictures, { id: 2, meta: null, list: [] });
  await batch.flush();
  const row = await db.get(pictures, 1);
  expectTypeOf(row).toEqualTypeOf<{ id: number; meta: Meta | null; list: Meta[] } | undefined>();
  expect(row).toEqual({ id: 1, meta: { tags: ['sea'] }, list: [{ tags: [] }] });
  expect(await db.query(pictures).where('meta', '=', null).count()).toBe(1);
  await db.stop();
  const query = db.query(pictures);
  // Never called: only their types matter.
  void [
    // @ts-expect-error -- tags are missing
    () => batch.insert(pictures, { id: 1, meta: {} }),
    // @ts-expect-error -- the source is text
    () => batch.update(pictures, { id: 1, meta: { tags: [], source: 5 } }),
    // @ts-expect-error -- the list is required
    () => batch.update(pictures, { id: 1, list: null }),
    // @ts-expect-error -- JSON is compared with null alone
    () => query.where('meta', '=', { tags: [] }),
    // @ts-expect-error -- JSON has no order
    () => query.where('meta', '>', null),
    // @ts-expect-error -- nor has typed JSON
    () => query.orderBy('meta'),
    // @ts-expect-error -- nor groups
    () => query.groupBy('meta'),
    // @ts-expect-error -- a json field is no key
    () => defineSchema({ name: 'other', version: 1, fields, primaryKey: 'meta' }),
    // @ts-expect-error -- the default is of another type
    () => defineSchema({ name: 'other', version: 1, fields: badFields, primaryKey: 'id' }),
  ];
});

it('has lists that are searched by their elements, and indexes on them', () => {
  const tagged = { ...fields, tags: json<('red' | 'blue' | 3)[]>(), any: { typeId: Types.json } } as const;
  const base = { name: 'posts', version: 1, fields: tagged, primaryKey: 'id' } as const;
  const posts = defineSchema({ ...base, indexes: [{ fields: ['tags'], each: true }] });
  const db = StoreDb({ dbPrefix: 'types', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
  db.registerSchema(posts);
  const query = db.query(posts);
  query.where('tags', 'HAS', 'red').where('tags', 'HAS ANY', ['red', 3]).where('any', 'HAS', true);
  // Never called: only their types matter.
  void [
    // @ts-expect-error -- no list has such an element
    () => query.where('tags', 'HAS', 'green'),
    // @ts-expect-error -- several elements are an array
    () => query.where('tags', 'HAS ALL', 'red'),
    // @ts-expect-error -- a number is no list
    () => query.where('id', 'HAS', 5),
    // @ts-expect-error -- a json field is indexed by its elements alone
    () => defineSchema({ ...base, indexes: [{ fields: ['tags'] }] }),
    // @ts-expect-error -- and not included
    () => defineSchema({ ...base, indexes: [{ fields: ['id'], include: ['tags'] }] }),
    // @ts-expect-error -- there is no such field
    () => defineSchema({ ...base, indexes: [{ fields: ['tag'], each: true }] }),
  ];
  expect(posts.indexes).toHaveLength(1);
});
