/** `db.publish()` and `openReader()`: a reader shows what the database showed. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreDb, Types, defineSchema } from '../../../src/index.ts';
import type { Database } from '../../../src/api/database.ts';
import { MemoryDriver } from '../../../src/storage/memory-driver.ts';
import { BundleServer } from './published.ts';

const people = defineSchema({
  name: 'people',
  version: 3,
  fields: {
    id: { typeId: Types.uint32 },
    name: { typeId: Types.varchar },
    age: { typeId: Types.uint8 },
    note: { typeId: Types.varchar },
    photo: { typeId: Types.blob },
  },
  primaryKey: 'id',
  indexes: ['age', 'name'],
});

let db: Database;
let server: BundleServer;

beforeEach(async () => {
  db = StoreDb({ driver: new MemoryDriver(), dbPrefix: 'db', nodeId: 1 });
  db.registerSchema(people);
  await db.start();
  server = new BundleServer();
});

afterEach(async () => {
  await db.stop();
});

async function insert(count: number, from = 0): Promise<void> {
  const batch = db.batch();
  for (let i = from; i < from + count; i++) {
    void batch.insert(people, { id: i, name: `name ${i % 97} ${i}`, age: i % 100, note: i % 3 === 0 ? null : 'x'.repeat(i % 50) });
  }
  await batch.flush();
}

describe('a published bundle', () => {
  it('shows the rows of the database', async () => {
    await insert(3000);
    const report = await db.publish(server.place);
    expect(report).toMatchObject({ outcome: 'published', rows: 3000, position: db.position });
    const reader = await server.open();
    expect(await reader.get(people, 1234)).toEqual(await db.get(people, 1234));
    expect(await reader.get(people, 3000)).toBeUndefined();
    const asked = (source: Pick<Database, 'query'>) =>
      source.query(people).where('age', '>', 90).orderBy('age', 'desc').limit(30).execute();
    expect(await asked(reader as unknown as Database)).toEqual(await asked(db));
    expect(await reader.query(people).where('age', '=', 7).count()).toBe(30);
    expect(await reader.query(people).max('age')).toBe(99);
    expect(await reader.query(people).execute()).toEqual(await db.query(people).execute());
    const page = await reader.query(people).orderBy('name').page({ size: 10 });
    const next = await reader.query(people).orderBy('name').page({ size: 10, after: page.next as string });
    expect([...page.rows, ...next.rows]).toEqual(await db.query(people).orderBy('name').limit(20).execute());
    expect((await reader.query(people).where('age', '=', 7).explain()).access).toBeDefined();
    expect(reader.tables()).toEqual([people]);
    reader.close();
  });
});
