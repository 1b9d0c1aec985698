/** Mistakes in what is done with tables, and what the compiler says of each. */
import { describe } from 'vitest';
import { refusesEach } from './mistakes.ts';
import type { Mistake } from './mistakes.ts';

const program = `import { defineSchema, StoreDb, Types } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
const items = defineSchema({
  name: 'items',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    total: { typeId: Types.int64 },
    notes: { typeId: Types.json },
    slug: { typeId: Types.varchar, required: true },
    state: { typeId: Types.varchar, oneOf: ['draft', 'live'] },
    made: { typeId: Types.timestamp },
  },
  primaryKey: 'id',
});
const db = StoreDb({ dbPrefix: 'x', nodeId: 0, driver: new MemoryDriver() });
const query = db.query(items);
const loose = db.query('items');
const batch = db.batch();
const text: string = 'name';`;

const meantName = "There is no field 'nmae': did you mean name?";

const conditions: readonly Mistake[] = [
  ['a misspelled field with =', "query.where('nmae', '=', 'a')", meantName],
  ['a misspelled field with >', "query.where('nmae', '>', 'a')", meantName],
  ['a misspelled field with PREFIX', "query.where('naem', 'PREFIX', 'a')", "no field 'naem': did you mean name?"],
  ['a field that is like none', "query.where('age', '>', 5)", "There is no field 'age'"],
  ['a misspelled field in a clause', "query.where(({ is }) => is('nmae', '=', 'a'))", meantName],
  ['the same with <', "query.where(({ is, not }) => not(is('nmae', '<', 'a')))", meantName],
  [
    'a misspelled field after select',
    "query.select('id').where('totl', '>', 5)",
    "There is no field 'totl': did you mean total?",
  ],
  ['text for a number', "query.where('id', '=', '1')", `'"1"' is not assignable to parameter of type 'number`],
  ['a value that is none of the list', "query.where('state', '=', 'dead')", `'"dead"' is not assignable`],
  ['a misspelled field among several', "query.where(['id', 'nmae'], '=', [1, 'a'])", meantName],
  ['the same in a clause', "query.where(({ is }) => is(['nmae', 'id'], 'IN', [['a', 1]]))", meantName],
  ['an operator that several do not take', "query.where(['id', 'name'], '!=', [1, 'a'])", `'"!="' is not assignable`],
  ['text for a number among several', "query.where(['name', 'id'], '=', ['a', '1'])", "'string' is not assignable"],
  ['an operator that there is not', "query.where('id', 'LIKE', 1)", `'"LIKE"' is not assignable`],
  ['an operator that JSON does not take', "query.where('notes', '>', null)", `'">"' is not assignable`],
];

const reads: readonly Mistake[] = [
  ['a misspelled field in orderBy', "query.orderBy('nmae')", meantName],
  ['an order by JSON', "query.orderBy('notes')", "Field 'notes' is of type json, which has no order"],
  ['an empty name', "query.orderBy('')", `'""' is not assignable to parameter of type '"id"`],
  ['a misspelled field of several', "query.where(['id', 'nmae'], '=', [1, 'a'])", meantName],
  ['a direction that there is not', "query.orderBy('name', 'down')", `'"down"' is not assignable`],
  ['a misspelled field in select', "query.select('nmae')", `'"nmae"' is not assignable to parameter of type '"`],
  ['a misspelled field in groupBy', "query.groupBy('nmae')", meantName],
  ['the second of them', "query.groupBy('id', 'nmae')", meantName],
  ['JSON in groupBy', "query.groupBy('name', 'notes')", "Field 'notes' is of type json, which has no order"],
  ['a misspelled field in sum', "query.sum('totl')", "There is no field 'totl': did you mean total?"],
  ['a sum of text', "query.sum('name')", "Field 'name' does not hold numbers"],
  ['a mean of dates', "query.avg('made')", "Field 'made' does not hold numbers"],
  ['a misspelled field in min', "query.min('nmae')", meantName],
  ['the greatest JSON', "query.max('notes')", "Field 'notes' is of type json, which has no order"],
  ['a misspelled field in an aggregate', "query.aggregate({ all: { sum: 'totl' } })", 'did you mean total?'],
  ['a sum of text in an aggregate', "query.aggregate({ all: { sum: 'name' } })", "Field 'name' does not hold numbers"],
  ['the least JSON', "query.aggregate({ least: { min: 'notes' } })", "Field 'notes' is of type json"],
  ['a misspelled field in a count', "query.aggregate({ n: { count: 'nmae' } })", meantName],
  ['an aggregate that there is not', "query.aggregate({ n: { median: 'id' } })", "There is no aggregate 'median'"],
  ['a word that is no aggregate', "query.aggregate({ n: 'sum' })", `'"sum"' is not assignable to type '"count"'`],
  [
    'a misspelled field in an aggregate of groups',
    "query.groupBy('name').aggregate({ last: { max: 'mad' } })",
    "There is no field 'mad'",
  ],
  [
    'a field that groups do not have',
    "(await query.groupBy('name').aggregate({ n: 'count' }))[0]?.id",
    "'id' does not",
  ],
  ['a key of another type in get', "db.get(items, 'a')", "'string' is not assignable to parameter of type 'number'"],
  ['the same in a transaction', "db.transaction((tx) => tx.get(items, 'a'))", "'string' is not assignable"],
  ['a field that rows do not have', '(await db.get(items, 1))?.nmae', "Property 'nmae' does not exist"],
  ['a field that was not selected', "(await query.select('id').first())?.name", "Property 'name' does not exist"],
];

const changes: readonly Mistake[] = [
  ['an insert without the key', "batch.insert(items, { slug: 'x' })", "Property 'id' is missing"],
  ['an insert without a required field', 'batch.insert(items, { id: 1 })', "Property 'slug' is missing"],
  ['an insert of a misspelled field', "batch.insert(items, { id: 1, slug: 'x', nmae: 'a' })", "'nmae' does not exist"],
  ['an insert of another type', "batch.insert(items, { id: 1, slug: 'x', made: 0 })", "'number' is not assignable"],
  ['an upsert without the key', "db.transaction((tx) => tx.upsert(items, { slug: 'x' }))", "'id' is missing"],
  ['an update without the key', "batch.update(items, { name: 'a' })", "Property 'id' is missing"],
  ['an update of a misspelled field', "batch.update(items, { id: 1, nmae: 'a' })", "'nmae' does not exist"],
  ['an update that makes a required field null', 'batch.update(items, { id: 1, slug: null })', "'null' is not"],
  ['a misspelled field in if', "batch.update(items, { id: 1 }, { if: { nmae: 'b' } })", "'nmae' does not exist"],
  ['another type in if', 'batch.update(items, { id: 1 }, { if: { name: 5 } })', "'number' is not assignable"],
  ['JSON in if', 'batch.delete(items, 1, { if: { notes: 5 } })', "'notes' does not exist"],
  ['a misspelled option of a change', "batch.delete(items, 1, { fi: { name: 'b' } })", "'fi' does not exist"],
  ['an increment of a misspelled field', 'batch.increment(items, 1, { totl: 1 })', "'totl' does not exist"],
  ['an increment of text', 'batch.increment(items, 1, { name: 1 })', "'name' does not exist"],
  ['an increment of the key', 'batch.increment(items, 1, { id: 1 })', "'id' does not exist"],
  ['an increment by text', "batch.increment(items, 1, { total: '1' })", "'string' is not assignable"],
  ['an increment of a key of another type', "batch.increment(items, 'a', { total: 1 })", "'string' is not assignable"],
  ['a misspelled field in updateWhere', "batch.updateWhere(query, { nmae: 'a' })", "'nmae' does not exist"],
  ['another type in updateWhere', 'batch.updateWhere(query, { name: 5 })', "'number' is not assignable"],
  ['a key of another type in delete', "batch.delete(items, 'a')", "'string' is not assignable"],
  ['the same in a transaction', "db.transaction((tx) => tx.delete(items, 'a'))", "'string' is not assignable"],
];

const names: readonly Mistake[] = [
  ['a trigger of what there is not', "db.registerTrigger(items, 'insrt', () => {})", `'"insrt"' is not assignable`],
  [
    'a misspelled field in a trigger',
    "db.registerTrigger(items, 'insert', (row) => void row.nmae)",
    "Property 'nmae' does not exist",
  ],
  ['a trigger on a misspelled table', "db.registerTrigger(item, 'insert', () => {})", "Did you mean 'items'?"],
  ['a migration of a misspelled table', 'db.setTargetSchemaVersion(item, 2)', "Did you mean 'items'?"],
  ['a migration to text', "db.setTargetSchemaVersion(items, '2')", "'string' is not assignable"],
  ['a migration of what is no definition', "db.migrationStatus({ nam: 'items' })", "'nam' does not exist"],
  ['the end of a migration by number', 'db.cancelMigration(5)', "'number' is not assignable"],
];

const right: readonly string[] = [
  "query.where('name', '=', 'a').where('total', 'IN', [1, 2n]).where('state', '!=', 'draft').orderBy('name', 'desc')",
  // Registered functions, of whose names the compiler knows nothing.
  "query.where('century', '=', 19).where('anything', '=', { of: 'any kind' }).where('f', '=', 1).where('ix', '=', 1)",
  "query.where(({ is, or }) => or(is('century', '=', 19), is('id', '>', 5)))",
  "query.where('nmae' as string, '=', 19)",
  // Text of which nothing is known is checked at run time.
  "query.where(text, '>', 5).orderBy(text).where(({ is }) => is(text, '=', 5))",
  "loose.where('nmae', '>', 5).orderBy('nmae').select('nmae').groupBy('nmae')",
  "loose.where(({ is }) => is('nmae', 'PREFIX', 'a')).sum('nmae')",
  "query.where(['id', 'name'], '=', [1, 'a']).groupBy('name', 'state').aggregate({ n: 'count', last: { max: 'made' } })",
  "query.aggregate({ all: { sum: 'total' }, mean: { avg: 'id' }, named: { count: 'name' }, first: { min: 'slug' } })",
  '[query.sum(text), query.min(text), query.groupBy(text)]',
  // What was not selected is there for conditions and orders.
  "query.select('id').where('name', '>', 'a').where(({ is }) => is('total', '=', 1)).orderBy('made').limit(1)",
  'db.setTargetSchemaVersion(items, 2)',
  "db.setTargetSchemaVersion('items', 2, { rowsPerSecond: 5 })",
  '[db.migrationStatus(items), db.cancelMigration(items), db.finishMigration(items, { force: true })]',
  "batch.increment(items, 1, { total: 1n }, { if: { name: null, state: 'live' } })",
  "batch.updateWhere(query.where('id', '>', 5), { name: null })",
];

describe('the compiler', () => {
  refusesEach(program, [...conditions, ...reads, ...changes, ...names], right);
});
