/** The types of fields with rules: the compiler is the one that tests them. */
import { defineSchema, StoreDb, Types } from 'store-db';
import type { NewDocumentOf, RowOf, SchemaDefinition } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
import { describe, expect, expectTypeOf, it } from 'vitest';

const posts = defineSchema({
  name: 'posts',
  version: 1,
  fields: {
    id: { typeId: Types.uint32 },
    title: { typeId: Types.varchar, required: true },
    status: { typeId: Types.varchar, oneOf: ['draft', 'live'], default: 'draft', required: true },
    stars: { typeId: Types.uint8, oneOf: [1, 2, 3] },
    shard: { typeId: Types.int64, oneOf: [1n, 2n] },
    plain: { typeId: Types.varchar, required: false },
    made: { typeId: Types.timestamp, default: 'now', required: true },
  },
  primaryKey: 'id',
});

const db = StoreDb({ dbPrefix: 'types', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
db.registerSchema(posts);

/** Never run: only its types matter. */
async function typed(): Promise<void> {
  expectTypeOf<RowOf<typeof posts>>().toEqualTypeOf<{
    id: number;
    title: string;
    status: 'draft' | 'live';
    stars: 1 | 2 | 3 | null;
    shard: 1n | 2n | null;
    plain: string | null;
    made: Date;
  }>();
  const row = await db.get(posts, 1);
  expectTypeOf(row?.status).toEqualTypeOf<'draft' | 'live' | undefined>();
  const document: NewDocumentOf<typeof posts> = { id: 1, title: 'a', status: 'live', stars: null, shard: 2n };
  const batch = db.batch();
  void batch.insert(posts, document);
  // @ts-expect-error -- it is required
  void batch.update(posts, { id: 1, title: null });
  // @ts-expect-error -- it is none of the values
  void batch.insert(posts, { id: 1, title: 'a', status: 'gone' });
  // @ts-expect-error -- the title is required, and has no default
  void batch.insert(posts, { id: 1 });
  // @ts-expect-error -- the primary key has no default
  void batch.upsert(posts, { title: 'a' });
  void batch.update(posts, { id: 1 });
  // @ts-expect-error -- an update says which row
  void batch.update(posts, { title: 'a' });
  // @ts-expect-error -- a key is of the type of the primary key
  void batch.delete(posts, '1');
  // @ts-expect-error -- here too
  void db.get(posts, '1');
  // @ts-expect-error -- and here
  void db.transaction((tx) => tx.get(posts, { id: 1 }));
  // A table that is known by its name alone takes everything.
  void [batch.insert('posts', {}), batch.delete('posts', 'x'), db.get('posts', 1n)];
  const loose: SchemaDefinition = posts;
  void [batch.insert(loose, { anything: 1 }), batch.delete(loose, 'x'), db.get(loose, 1n)];
  // @ts-expect-error -- nor is this
  void batch.insert(posts, { id: 1, title: 'a', stars: 4 });
}
void typed;

describe('fields with rules', () => {
  it('are refused at run time if the compiler refuses them', async () => {
    const batch = db.batch();
    const loose = { id: 1, title: 'a', status: 'gone' } as unknown as NewDocumentOf<typeof posts>;
    await db.start();
    await expect(batch.insert(posts, loose)).rejects.toMatchObject({ code: 'ENCODE', field: 'status' });
    batch.clear();
    await db.stop();
  });
});
