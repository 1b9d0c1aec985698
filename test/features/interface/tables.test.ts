import { afterEach, describe, expect, it } from 'vitest';
import { StoreDb, Types } from '../../../src/index.ts';
import type { Database, SchemaDefinition } from '../../../src/index.ts';
import { MemoryDriver } from '../../../src/storage/index.ts';

const driver = new MemoryDriver();
const running: Database[] = [];

function open(dbPrefix: string): Database {
  const db = StoreDb({ dbPrefix, nodeId: running.length, driver, logLevel: 'silent' });
  running.push(db);
  return db;
}

afterEach(async () => {
  await Promise.all(running.splice(0).map((db) => db.stop()));
});

const people: SchemaDefinition = {
  name: 'people',
  version: 3,
  fields: {
    id: { typeId: Types.uuid, default: 'uuidv7' },
    name: { typeId: Types.varchar, maxLength: 40, default: 'nobody' },
    balance: { typeId: Types.int64, default: -5n },
    born: { typeId: Types.timestamp, default: new Date(86_400_000) },
    key: { typeId: Types.bytes, default: Buffer.from([1, 2, 255]) },
    more: { typeId: Types.json, default: { tags: [] } },
    photo: { typeId: Types.blob },
    height: { typeId: Types.float32 },
  },
  primaryKey: 'id',
  indexes: [
    'name',
    { fields: ['name', 'born'], name: 'by_age' },
    { fields: ['balance'], unique: true },
    { fields: ['born', 'balance'] },
    { function: 'initial', typeId: Types.varchar },
    { function: 'digits', typeId: Types.uint8, name: 'by_digits' },
  ],
};
const plain: SchemaDefinition = {
  name: 'alpha',
  version: 0,
  fields: { id: { typeId: Types.uint32 } },
  primaryKey: 'id',
};

describe('db.tables()', () => {
  it('gives definitions that are those that were registered', async () => {
    const first = open('tables');
    first.registerSchema(people);
    first.registerSchema(plain);
    await first.start();
    expect(await first.tables()).toEqual([]);
    const batch = first.batch();
    void batch.insert('people', { name: 'Ada' });
    void batch.insert('alpha', { id: 1 });
    await batch.flush();
    // Committed, and not merged yet.
    expect(await first.tables()).toEqual([plain, people]);
    await first.checkpoint();
    const second = open('tables');
    await second.start();
    const definitions = await second.tables();
    expect(definitions).toEqual([plain, people]);
    // A tool can read and write with nothing but these.
    for (const definition of definitions) second.registerSchema(definition);
    const more = second.batch();
    void more.insert('people', { name: 'Grace', balance: 7n });
    await more.flush();
    expect(await second.query('people').where('balance', '=', -5n).count()).toBe(1);
  });

  it('leaves out tables of the database itself', async () => {
    const db = open('own');
    db.registerSchema(people);
    await db.start();
    const batch = db.batch();
    void batch.insert('people', { name: 'Ada', photo: db.Blob('a photo') });
    await batch.flush();
    expect((await db.tables()).map(({ name }) => name)).toEqual(['people']);
  });
});

describe('db.registeredSchemas()', () => {
  it('gives the newest version of each table that is registered, without a request', async () => {
    const db = open('registered');
    expect(db.registeredSchemas()).toEqual([]);
    db.registerSchema(plain);
    db.registerSchema(people);
    const renamed = { ...people, version: 4, indexes: ['name'] };
    db.registerSchema({ ...renamed, migrate: (row) => row });
    expect(db.registeredSchemas()).toEqual([plain, renamed]);
    await db.start();
    const before = db.stats().requests;
    expect(db.registeredSchemas().map(({ name, version }) => [name, version])).toEqual([
      ['alpha', 0],
      ['people', 4],
    ]);
    expect(db.stats().requests).toEqual(before);
  });
});
