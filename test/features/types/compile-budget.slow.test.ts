/** What an application of a hundred tables costs the compiler: counted in instantiations of types, which no clock is in. */
import { expect, it } from 'vitest';
import { inFolder, instantiationsOf } from './compiler.ts';

/** A little more than it takes, 3,151. What worked through all fields of a table for a call that names one would take 4,000. */
const maxInstantiationsPerTable = 3300;

/** Fields of each table beside those that are asked for: 20 in all. */
const others = [
  'varchar',
  'uint32',
  'int64',
  'float64',
  'timestamp',
  'boolean',
  'json',
  'bytes',
  'uuid',
  'int32',
  'varchar',
  'uint8',
];

function programOf(tables: number): string {
  const parts = Array.from({ length: tables }, (_, i) => {
    return `
export const table${i} = defineSchema({
  name: 'table${i}',
  version: 1,
  fields: {
    id${i}: { typeId: Types.uuid, default: 'uuidv7' },
    name: { typeId: Types.varchar, maxLength: ${i + 10} },
    count${i}: { typeId: Types.uint32 },
    total: { typeId: Types.int64 },
    price${i}: { typeId: Types.float64 },
    at: { typeId: Types.timestamp },
    open: { typeId: Types.boolean },
    notes: { typeId: Types.json },
${others.map((type, field) => `    other${field}${field % 3 === 0 ? i : ''}: { typeId: Types.${type} },`).join('\n')}
  },
  primaryKey: 'id${i}',
  indexes: ['name'],
});
db.registerSchema(table${i});
export async function use${i}() {
  await db.batch().insert(table${i}, { name: 'a', count${i}: 1, total: 2 });
  const rows = await db.query(table${i}).where('count${i}', '>', ${i}).orderBy('name').limit(3).execute();
  const names = rows.map((row) => row.name?.length ?? row.count${i});
  const page = await db
    .query(table${i})
    .where(({ is, or, not }) => or(is('name', 'PREFIX', 'a'), not(is('total', 'BETWEEN', [1, 2n]))))
    .select('id${i}', 'price${i}')
    .page({ size: 10 });
  const groups = await db.query(table${i}).groupBy('open').aggregate({ n: 'count', sum: { sum: 'price${i}' } });
  return { names, next: page.next, price: page.rows[0]?.price${i}, sum: groups[0]?.sum, n: groups[0]?.n };
}`;
  });
  return `import { defineSchema, StoreDb, Types } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
const db = StoreDb({ dbPrefix: 'x', nodeId: 0, driver: new MemoryDriver() });
${parts.join('')}
`;
}

it('stays within bounds, and grows with the tables and no faster', async () => {
  await inFolder(async (folder) => {
    const one = await instantiationsOf(folder, programOf(1));
    const half = await instantiationsOf(folder, programOf(51));
    const all = await instantiationsOf(folder, programOf(101));
    expect((all - one) / 100).toBeLessThan(maxInstantiationsPerTable);
    expect(all - half).toBeLessThan((half - one) * 1.2);
  });
}, 300_000);
