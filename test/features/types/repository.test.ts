/** What applications write around any table, in one piece of code. The compiler tests the types; the rest runs. */
import { defineSchema, StoreDb, Types } from 'store-db';
import type { Database, InsertDocument, KeyFor, RowFor, SchemaDefinition, UpdateDocument } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';
import { expect, expectTypeOf, it } from 'vitest';

class Repository<S extends SchemaDefinition> {
  readonly #db: Database;
  readonly #table: S;

  constructor(db: Database, table: S) {
    this.#db = db;
    this.#table = table;
    db.registerSchema(table);
  }

  find(key: KeyFor<S>): Promise<RowFor<S> | undefined> {
    return this.#db.get(this.#table, key);
  }

  all(): Promise<RowFor<S>[]> {
    return this.#db.query(this.#table).execute();
  }

  async insert(document: InsertDocument<S>): Promise<void> {
    const batch = this.#db.batch();
    await batch.insert(this.#table, document);
    await batch.flush();
  }

  async change(document: UpdateDocument<S>): Promise<void> {
    await this.#db.transaction((tx) => tx.update(this.#table, document));
  }

  async remove(key: KeyFor<S>): Promise<void> {
    const batch = this.#db.batch();
    await batch.delete(this.#table, key);
    await batch.flush();
  }
}

const posts = defineSchema({
  name: 'posts',
  version: 1,
  fields: { slug: { typeId: Types.varchar }, stars: { typeId: Types.uint32, required: true, default: 0 } },
  primaryKey: 'slug',
});

it('works for any table, and knows the types of each', async () => {
  const db = StoreDb({ dbPrefix: 'types', nodeId: 0, driver: new MemoryDriver(), logLevel: 'silent' });
  const repository = new Repository(db, posts);
  await db.start();
  await repository.insert({ slug: 'a' });
  await repository.change({ slug: 'a', stars: 3 });
  const found = await repository.find('a');
  expectTypeOf(found).toEqualTypeOf<{ slug: string; stars: number } | undefined>();
  expect(found).toEqual({ slug: 'a', stars: 3 });
  expect(await repository.all()).toHaveLength(1);
  await repository.remove('a');
  expect(await repository.find('a')).toBeUndefined();
  await db.stop();
  // Never called: only their types matter.
  void [
    // @ts-expect-error -- a key is text
    () => repository.find(1),
    // @ts-expect-error -- the key is missing
    () => repository.insert({ stars: 1 }),
    // @ts-expect-error -- there is no such field
    () => repository.change({ slug: 'a', star: 1 }),
  ];
});
