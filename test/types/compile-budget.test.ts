/** What an application of a hundred tables costs the compiler: counted in instantiations of types, which no clock is in. */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const compiler = path.join(root, 'node_modules/typescript/bin/tsc');
const run = promisify(execFile);

/** About half as much again as it took when this was written. */
const maxInstantiationsPerTable = 2000;

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

async function instantiationsOf(folder: string, tables: number): Promise<number> {
  await writeFile(path.join(folder, 'program.ts'), programOf(tables));
  const { stdout } = await run(process.execPath, [compiler, '-p', folder, '--extendedDiagnostics', '--singleThreaded']);
  return Number(/Instantiations:\s+(\d+)/.exec(stdout)?.[1]);
}

it('stays within bounds, and grows with the tables and no faster', async () => {
  await mkdir(path.join(root, '.tmp'), { recursive: true });
  const folder = await mkdtemp(path.join(root, '.tmp', 'types-'));
  try {
    const config = { extends: '../../tsconfig.json', include: ['./program.ts'] };
    await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(config));
    const one = await instantiationsOf(folder, 1);
    const half = await instantiationsOf(folder, 51);
    const all = await instantiationsOf(folder, 101);
    expect((all - one) / 100).toBeLessThan(maxInstantiationsPerTable);
    expect(all - half).toBeLessThan((half - one) * 1.2);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}, 120_000);
