/**
 * What the examples of the guide start from: a database `db` with a table `books` and four books in it. It is in memory, so every
 * run begins with the same rows, and nothing is left behind.
 */
import { defineSchema, StoreDb, Types } from 'store-db';
import { MemoryDriver } from 'store-db/lib/storage';

export const books = defineSchema({
  name: 'books',
  version: 1,
  fields: {
    id: { typeId: Types.uuid, default: 'uuidv7' },
    title: { typeId: Types.varchar, maxLength: 100 },
    author: { typeId: Types.varchar, maxLength: 60 },
    year: { typeId: Types.int16 },
    price: { typeId: Types.float64 },
    inStock: { typeId: Types.boolean, default: true },
    tags: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: ['author', 'year'],
});

/** The store. Whoever opens a second instance on it sees the same database, as another process does on a bucket. */
export const driver = new MemoryDriver();

export const db = StoreDb({ dbPrefix: 'library', nodeId: 0, driver });
db.registerSchema(books);
await db.start();

/** The primary key of one book, for examples that look it up. The others get a new key. */
export const emmaId = '018f3c5e-0000-7000-8000-000000000001';

const batch = db.batch();
await batch.insert(books, { id: emmaId, title: 'Emma', author: 'Austen', year: 1815, price: 7.25 });
await batch.insert(books, { title: 'Persuasion', author: 'Austen', year: 1817, price: 8 });
await batch.insert(books, { title: 'Middlemarch', author: 'Eliot', year: 1871, price: 12, tags: ['long'] });
await batch.insert(books, { title: 'Silas Marner', author: 'Eliot', year: 1861, price: 6 });
await batch.flush();
