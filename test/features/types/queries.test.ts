/** The types of queries: what compiles here, and what must not. The compiler is the one that tests it. */
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Groups, JsonValue, Page, Query } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
import { describe, expect, expectTypeOf, it } from 'vitest';

const items = defineSchema({
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    total: { typeId: Types.int64 },
    price: { typeId: Types.float64 },
    at: { typeId: Types.timestamp },
    raw: { typeId: Types.bytes },
    open: { typeId: Types.boolean },
    notes: { typeId: Types.json },
  },
  primaryKey: 'id',
});

const db = StoreDb({ dbPrefix: 'types', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
db.registerSchema(items);

const { fields, primaryKey } = items;
defineSchema({ name: 'other', version: 2, fields, primaryKey, renames: { name: 'title', price: ['cost', 'amount'] } });
// @ts-expect-error -- only fields of the table have old names
const misspelt = () => defineSchema({ name: 'other', version: 2, fields, primaryKey, renames: { nmae: 'title' } });
// @ts-expect-error -- an old name is text
const numbered = () => defineSchema({ name: 'other', version: 2, fields, primaryKey, renames: { name: 5 } });
void [misspelt, numbered];

/** Never run: only its types matter. */
async function typed(): Promise<void> {
  const query = db.query(items);
  query.where('id', '=', 1).where('id', 'IN', [1, 2n, null]).where('total', '>', 5).where('price', 'BETWEEN', [1, 2]);
  query.where('name', 'PREFIX', 'a').where('raw', 'PREFIX', new Uint8Array(2)).where('raw', '=', Buffer.from('x'));
  query.where('at', '<', new Date()).where('open', '!=', null).where('notes', '=', null);
  // A registered function of any name.
  query.where('century', '=', 19).where('anything', '=', { of: 'any kind' });
  query.where(({ is, or, and, not }) =>
    or(is('id', '=', 1), and(not(is('name', 'PREFIX', 'a')), is('century', '=', 19))),
  );
  // @ts-expect-error -- a number is not compared with text
  query.where('id', '=', '1');
  // @ts-expect-error -- IN takes a list
  query.where('id', 'IN', 1);
  // @ts-expect-error -- BETWEEN takes two values
  query.where('id', 'BETWEEN', [1]);
  // @ts-expect-error -- numbers have no prefix
  query.where('price', 'PREFIX', '1');
  // @ts-expect-error -- JSON has no order
  query.where('notes', '>', null);
  // @ts-expect-error -- JSON is compared with null alone
  query.where('notes', '=', {});
  // @ts-expect-error -- functions take = alone
  query.where('century', '>', 19);
  // @ts-expect-error -- no such operator
  query.where('id', 'LIKE', 1);
  // @ts-expect-error -- nor in a clause
  query.where(({ is }) => is('id', '=', 'one'));
  // @ts-expect-error -- a condition is no clause: is() makes one
  query.where(({ or }) => or(['id', '=', 1]));
  // @ts-expect-error -- text has no sum
  void query.sum('name');
  // @ts-expect-error -- JSON has no least value
  void query.min('notes');
  // @ts-expect-error -- no such aggregate
  void query.aggregate({ a: { median: 'price' } });
  // @ts-expect-error -- groups have an order, and JSON has none
  query.groupBy('notes');
  // @ts-expect-error -- a page has a size
  void query.page({ after: undefined });
  // @ts-expect-error -- no such limit
  query.budget({ seconds: 1 });

  expectTypeOf(await query.min('name')).toEqualTypeOf<string | null>();
  expectTypeOf(await query.max('at')).toEqualTypeOf<Date | null>();
  expectTypeOf(await query.sum('total')).toEqualTypeOf<bigint | null>();
  expectTypeOf(await query.sum('price')).toEqualTypeOf<number | null>();
  expectTypeOf(await query.avg('total')).toEqualTypeOf<number | null>();
  const row = await query.aggregate({
    n: 'count',
    named: { count: 'name' },
    all: { sum: 'total' },
    last: { max: 'at' },
  });
  expectTypeOf(row).toEqualTypeOf<{ n: number; named: number; all: bigint | null; last: Date | null }>();
  const groups = query.groupBy('open', 'name');
  expectTypeOf(groups).toExtend<Groups<{ open: boolean | null; name: string | null }, 'open' | 'name'>>();
  const [group] = await groups.aggregate({ n: 'count', mean: { avg: 'price' } });
  expectTypeOf(group?.open).toEqualTypeOf<boolean | null | undefined>();
  expectTypeOf(group?.name).toEqualTypeOf<string | null | undefined>();
  expectTypeOf(group?.n).toEqualTypeOf<number | undefined>();
  expectTypeOf(group?.mean).toEqualTypeOf<number | null | undefined>();
  // @ts-expect-error -- it is not grouped by this
  void group?.id;
  expectTypeOf(await query.select('id', 'notes').page({ size: 3 })).toEqualTypeOf<
    Page<{ id: number; notes: JsonValue | null }>
  >();

  // Where the rows are not known, nothing is refused; and whatever takes any query takes those of known rows.
  const loose = db.query('items');
  const field: string = 'id';
  loose
    .where('id', '=', '1')
    .where('x', 'PREFIX', 5)
    .where(({ is }) => is(field, 'BETWEEN', [1, 'a']));
  query.where(field, '>', 'anything');
  expectTypeOf(await loose.sum('x')).toEqualTypeOf<number | bigint | null>();
  const any: Query = query;
  expectTypeOf(any).toEqualTypeOf<Query>();
}

describe('the types of queries', () => {
  it('are checked where this file is compiled', () => {
    expect(typed).toBeTypeOf('function');
  });
});
