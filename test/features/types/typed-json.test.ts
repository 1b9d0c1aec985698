/** Json fields that are typed. The compiler tests the types; the rest runs. */
import { defineSchema, json, StoreDb, Types } from 'store-db';
import type { JsonValue } from 'store-db';
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

interface Address {
  city: string;
  zip?: number;
  kind: 'home' | 'work';
  active: boolean;
  at: { lat: number; tags: string[] } | null;
  lines: { sku: string; price: number }[];
  more: unknown;
  floors: { 1?: string };
}

it('has paths whose values are typed, and indexes on them', () => {
  const placed = { ...fields, address: json<Address>(), any: { typeId: Types.json } } as const;
  const base = { name: 'people', version: 1, fields: placed, primaryKey: 'id' } as const;
  const city = { path: 'address.city', typeId: Types.varchar } as const;
  const people = defineSchema({ ...base, indexes: [{ fields: ['id', city] }, { fields: ['list', city], each: true }] });
  const db = StoreDb({ dbPrefix: 'types', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
  db.registerSchema(people);
  const query = db.query(people);
  query.where('address.city', 'PREFIX', 'Par').where('address.zip', 'BETWEEN', [1, 5n]).where('address.at', '!=', null);
  query
    .where('address.kind', 'IN', ['home', null])
    .where('address.active', '=', true)
    .where('any.x.y', '<', new Date());
  query.where('address.at.lat', '<=', 5).where('address.at.tags', 'HAS', 'x').where('address.lines.0.price', '>', 5);
  query.where(['address.city', 'id'], '=', ['Paris', 5]).where('address.city', '>', new Date());
  query.where(({ is, or }) => or(is('address.city', '=', 'Paris'), is('any.x', '=', 5)));
  query.orderBy('address.city').orderBy('any.x', 'desc');
  // What JSON of any type holds is of any type, and keys may be numbers.
  query.where('address.more.x.0', '=', 5).where('address.floors.1', 'PREFIX', 'a').select('address.more.x');
  const selected = query.select('id', 'address.city', 'address.at.lat', 'any.x');
  expectTypeOf<Awaited<ReturnType<typeof selected.first>>>().toEqualTypeOf<
    { id: number; 'address.city': string | null; 'address.at.lat': number | null; 'any.x': JsonValue } | undefined
  >();
  // Never called: only their types matter.
  const called = () =>
    [
      query.groupBy('address.kind').aggregate({ n: 'count', zip: { max: 'address.zip' } }),
      query.sum('address.zip'),
      query.max('address.city'),
    ] as const;
  expectTypeOf(called).returns.toEqualTypeOf<
    readonly [
      Promise<{ 'address.kind': 'home' | 'work' | null; n: number; zip: number | null }[]>,
      Promise<number | null>,
      Promise<string | null>,
    ]
  >();
  void [
    // @ts-expect-error -- there is no such value
    () => query.where('address.town', '=', 'Paris'),
    // @ts-expect-error -- nor deeper
    () => query.where('address.at.lng', '=', 5),
    // @ts-expect-error -- a city is text
    () => query.where('address.city', '=', 5),
    // @ts-expect-error -- there is no other kind
    () => query.where('address.kind', '=', 'office'),
    // @ts-expect-error -- only text has a beginning
    () => query.where('address.zip', 'PREFIX', '7'),
    // @ts-expect-error -- an object is compared with null alone
    () => query.where('address.at', '<', null),
    // @ts-expect-error -- a field of text has no paths
    () => query.where('id.x', '>', 5),
    // @ts-expect-error -- there is nothing to order by
    () => query.orderBy('address.town'),
    // @ts-expect-error -- nor to select
    () => query.select('id', 'address.town'),
    // @ts-expect-error -- a floor has no such number
    () => query.where('address.floors.2', '=', 'a'),
    // @ts-expect-error -- a city is no number
    () => query.sum('address.city'),
    // @ts-expect-error -- nor can a sum be of one
    () => query.aggregate({ x: { sum: 'address.city' } }),
    // @ts-expect-error -- an index needs a type
    () => defineSchema({ ...base, indexes: [{ fields: [{ path: 'address.city' }] }] }),
    // @ts-expect-error -- that JSON has
    () => defineSchema({ ...base, indexes: [{ fields: [{ path: 'address.zip', typeId: Types.uint32 }] }] }),
    // @ts-expect-error -- and a json field
    () => defineSchema({ ...base, indexes: [{ fields: [{ path: 'id.zip', typeId: Types.float64 }] }] }),
    // @ts-expect-error -- a path is named with its type
    () => defineSchema({ ...base, indexes: [{ fields: ['address.city'] }] }),
    // @ts-expect-error -- and where there is a value
    () => defineSchema({ ...base, indexes: [{ fields: [{ path: 'address.town', typeId: Types.varchar }] }] }),
    // @ts-expect-error -- also one that it holds besides
    () => defineSchema({ ...base, indexes: [{ fields: ['id'], include: ['address.town'] }] }),
    // @ts-expect-error -- and one by which it takes rows
    () => defineSchema({ ...base, indexes: [{ fields: ['id'], where: { 'address.town': 'Paris' } }] }),
  ];
  const right = { fields: [city], include: ['address.at.lat', 'any.x', 'id'], where: { 'address.more.x': 5 } } as const;
  expect(defineSchema({ ...base, indexes: [right] }).indexes).toEqual([right]);
});
