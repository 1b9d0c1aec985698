/** Registering tables: when, refusals, and calls without it. */
import { beforeEach, describe, expect, it } from 'vitest';
import { InvalidSchemaError, SchemaNotFoundError, StoreDb, Types } from '../../../src/index.ts';
import type { Database, SchemaDefinition } from '../../../src/index.ts';
import type { StorageDriver } from '../../../src/storage/index.ts';
import { newDriver } from '../values/driver-under-test.ts';

const users: SchemaDefinition = {
  name: 'users',
  version: 1,
  fields: {
    id: { typeId: Types.int32 },
    name: { typeId: Types.varchar, maxLength: 20 },
    extra: { typeId: Types.json },
  },
  primaryKey: 'id',
  indexes: ['name'],
};

let driver: StorageDriver;

function make(): Database {
  return StoreDb({ dbPrefix: 'app', nodeId: 0, driver, logLevel: 'silent' });
}

beforeEach(() => {
  driver = newDriver();
});

describe('registerSchema()', () => {
  it('works before and after start(), and returns nothing', async () => {
    const db = make();
    expect(db.registerSchema(users)).toBeUndefined();
    await db.start();
    db.registerSchema({ ...users, name: 'others' });
    const batch = db.batch();
    void batch.insert('users', { id: 1 });
    void batch.insert('others', { id: 2 });
    await batch.flush();
    expect(await db.query('users').count()).toBe(1);
    expect(await db.query('others').count()).toBe(1);
    await db.stop();
  });

  it('takes the same definition again, also with its fields in another order of properties', () => {
    const db = make();
    db.registerSchema(users);
    db.registerSchema({ ...users, indexes: [{ fields: ['name'], unique: false }] });
    db.registerSchema({ primaryKey: 'id', indexes: ['name'], fields: users.fields, version: 1, name: 'users' });
  });

  it.each([
    ['another type', { fields: { ...users.fields, name: { typeId: Types.bytes } } }, "'name' is of type varchar there"],
    ['one more field', { fields: { ...users.fields, more: { typeId: Types.int32 } } }, "'more' is not in that one"],
    [
      'a field less',
      { fields: { id: { typeId: Types.int32 }, name: { typeId: Types.varchar, maxLength: 20 } } },
      'That one has a field',
    ],
    [
      'a field that is required',
      { fields: { ...users.fields, name: { typeId: Types.varchar, required: true } } },
      "'name' has another `required`",
    ],
    [
      'another default',
      { fields: { ...users.fields, name: { typeId: Types.varchar, default: 'x' } } },
      "'name' has another `default`",
    ],
    ['another primary key', { primaryKey: 'name' }, 'primary key is id there'],
    ['an index that is unique', { indexes: [{ fields: ['name'], unique: true }] }, "Index 'name' is another one"],
    [
      'an index on one more field',
      { indexes: [{ fields: ['name', 'id'], name: 'name' }] },
      "Index 'name' is another one",
    ],
  ])('refuses the same version with another definition: %s', async (_, change, difference) => {
    const db = make();
    db.registerSchema(users);
    expect(() => db.registerSchema({ ...users, ...change })).toThrow(InvalidSchemaError);
    await db.start();
    const batch = db.batch();
    void batch.insert('users', { id: 1 });
    await batch.flush();
    await db.checkpoint();
    await db.stop();
    // What is stored counts as well, whether it is registered before or after start().
    const late = make();
    await late.start();
    expect(() => late.registerSchema({ ...users, ...change })).toThrow(/another definition/);
    await late.stop();
    const early = make();
    early.registerSchema({ ...users, ...change });
    const refused = { code: 'INVALID_SCHEMA', table: 'users', message: expect.stringMatching(difference) as string };
    await expect(early.start()).rejects.toMatchObject(refused);
    await expect(early.query('users').execute()).rejects.toMatchObject({ code: 'NOT_STARTED' });
  });

  it.each([
    ['no object', undefined, 'A schema is an object'],
    ['an empty name', { ...users, name: '' }, 'name of a table'],
    ['a name that is too long', { ...users, name: 'x'.repeat(129) }, '128'],
    ['a reserved name', { ...users, name: '_blobs' }, 'reserved'],
    ['a version that is no integer', { ...users, version: 1.5 }, 'version'],
    ['a negative version', { ...users, version: -1 }, 'version'],
    ['no fields', { ...users, fields: {}, indexes: [] }, '0 fields'],
    ['fields as an array', { ...users, fields: [] }, 'fields'],
    ['an unknown type', { ...users, fields: { id: { typeId: 99 } } }, 'typeId 99'],
    ['a field that is no object', { ...users, fields: { id: 1 } }, "Field 'id'"],
    ['a maxLength of 0', { ...users, fields: { id: { typeId: 10, maxLength: 0 } } }, 'maxLength'],
    ['no primary key', { ...users, primaryKey: undefined }, 'primary key'],
    ['a primary key that is no field', { ...users, primaryKey: 'nope' }, "'nope'"],
    ['a primary key of JSON', { ...users, primaryKey: 'extra' }, 'json'],
    ['an index on JSON', { ...users, indexes: ['extra'] }, 'json'],
    ['an index on no field', { ...users, indexes: ['nope'] }, "'nope'"],
    ['an index twice', { ...users, indexes: ['name', 'name'] }, 'twice'],
    ['two indexes of one name', { ...users, indexes: ['name', { fields: ['id'], name: 'name' }] }, 'twice'],
    ['an index without fields', { ...users, indexes: [{ fields: [] }] }, '1 to 16'],
    ['an index with a field twice', { ...users, indexes: [{ fields: ['id', 'name', 'id'] }] }, 'a field twice'],
    ['an index on a field that is none', { ...users, indexes: [{ fields: ['id', 'nope'] }] }, "'nope'"],
    ['a `unique` that is no boolean', { ...users, indexes: [{ fields: ['id'], unique: 1 }] }, 'true or false'],
    ['an index with an empty name', { ...users, indexes: [{ fields: ['id'], name: '' }] }, 'name of an index'],
    [
      'an index with a misspelt property',
      { ...users, indexes: [{ fields: ['id'], uniqe: true }] },
      "Property `uniqe` of an index of table 'users' is not known; did you mean `unique`?",
    ],
    [
      'a misspelt property',
      { ...users, indexs: ['name'] },
      "Property `indexs` of table 'users' is not known; did you mean `indexes`?",
    ],
    [
      'a misspelt property of a field',
      { ...users, fields: { id: { typeId: 1, maxlength: 3 } }, indexes: [] },
      "Property `maxlength` of field 'id' of table 'users' is not known; did you mean `maxLength`?",
    ],
    [
      'what is called otherwise elsewhere',
      { ...users, fields: { id: { typeId: 1, unique: true } }, indexes: [] },
      "Property `unique` of field 'id' of table 'users' is not known: indexes of the table say so: indexes: [{ fields: ['email'], unique: true }]",
    ],
    [
      'what is called otherwise here',
      { ...users, fields: { id: { typeId: 1, notNull: true } }, indexes: [] },
      "Property `notNull` of field 'id' of table 'users' is not known: a field that is never null has required: true",
    ],
    ['indexes that are no array', { ...users, indexes: 'name' }, 'array'],
    [
      'a default that does not fit',
      { ...users, fields: { id: { typeId: 1 }, a: { typeId: 1, default: 300 } }, indexes: [] },
      '300',
    ],
  ])('refuses %s', (_, definition, message) => {
    const register = (): void => make().registerSchema(definition as SchemaDefinition);
    expect(register).toThrow(InvalidSchemaError);
    expect(register).toThrow(message);
  });
});

describe('a table that is not registered', () => {
  const message = 'Schema not found for table nobody. Register it with db.registerSchema() before you use it.';

  it('is an error with exactly this message, wherever it is used', async () => {
    const db = make();
    await db.start();
    const calls = [
      () => db.batch().insert('nobody', { id: 1 }),
      () => db.batch().upsert('nobody', { id: 1 }),
      () => db.batch().update('nobody', { id: 1 }),
      () => db.batch().delete('nobody', 1),
      () => db.query('nobody').execute(),
      () => db.query('nobody').where('x', '=', 1).orderBy('y', 'asc').execute(),
      () => db.query('nobody').count(),
      () => db.query('nobody').first(),
      () => db.get('nobody', 1),
    ];
    for (const call of calls) {
      const error = await call().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(SchemaNotFoundError);
      expect(error).toMatchObject({ code: 'SCHEMA_NOT_FOUND', table: 'nobody', message });
    }
    await db.stop();
  });

  it('is told the name of a table that is nearly called so', async () => {
    const db = make();
    db.registerSchema(users);
    await db.start();
    const meant =
      'Schema not found for table usres: did you mean users? If not, register it with db.registerSchema() before you use it.';
    await expect(db.get('usres', 1)).rejects.toThrow(meant);
    await expect(db.batch().insert('usres', { id: 1 })).rejects.toThrow(meant);
    await expect(db.query('usres').execute()).rejects.toThrow(meant);
    await expect(db.cancelMigration('usres')).rejects.toThrow(meant);
    await expect(db.query('_blob').execute()).rejects.toThrow(': did you mean _blobs?');
    await db.stop();
  });

  it('is another error where a call names no table: one that says how a table is given', async () => {
    const db = make();
    db.registerSchema(users);
    await db.start();
    const query = db.query('users').where('id', '=', 1) as unknown as string;
    const calls: readonly (() => Promise<unknown>)[] = [
      () => db.batch().insert(query, { id: 1 }),
      () => db.batch().delete(query, 1),
      () => db.get(query, 1),
      async () => db.query(query),
      () => db.transaction((tx) => tx.get(query, 1)),
      () => db.transaction(async (tx) => tx.query(query)),
      () => db.migrationStatus(query),
    ];
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        option: 'tableName',
        message:
          "A table is given by its name or its schema definition, not by a query of table 'users'. " +
          'batch.updateWhere() and batch.deleteWhere() change the rows of a query, and its own methods read them.',
      });
    }
    const nothing = undefined as unknown as string;
    await expect(db.get(nothing, 1)).rejects.toThrow('not by undefined.');
    expect(() => db.query({ name: 1 } as unknown as string)).toThrow('not by an object.');
    await db.stop();
  });

  it('rejects one flush of the batch that named it, and not the next', async () => {
    const db = make();
    db.registerSchema(users);
    await db.start();
    const batch = db.batch();
    void batch.insert('nobody', { id: 1 });
    void batch.insert('users', { id: 1 });
    await expect(batch.flush()).rejects.toThrow(message);
    await batch.flush();
    expect(await db.query('users').count()).toBe(1);
    await db.stop();
  });

  it('is left alone by those who do not know it: merges and verify() go on', async () => {
    const writer = make();
    writer.registerSchema(users);
    await writer.start();
    const batch = writer.batch();
    for (let id = 0; id < 100; id++) void batch.insert('users', { id, name: `n${id}` });
    await batch.flush();
    const stranger = StoreDb({ dbPrefix: 'app', nodeId: 1, driver, logLevel: 'silent' });
    await stranger.start();
    await stranger.checkpoint();
    expect(await stranger.verify()).toMatchObject({ ok: true, tables: [{ name: 'users', rows: 100 }] });
    await stranger.stop();
    expect(await writer.query('users').where('name', '=', 'n7').count()).toBe(1);
    await writer.stop();
  });
});
