/** Any name is safe: of fields, of tables and of indexes, on every local driver. */
import { readdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { InvalidSchemaError, Types } from '../../../src/index.ts';
import type { SchemaDefinition } from '../../../src/index.ts';
import { FileDriver } from '../../../src/storage/index.ts';
import { driversUnderTest, newFolder } from './driver-under-test.ts';
import { column, failure, openDatabase, thrown, throughStages } from './open-database.ts';
import type { Row } from './open-database.ts';

const trickyFields = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  'valueOf',
  'prototype',
  '__defineGetter__',
  'then',
  'toJSON',
  'length',
  '0',
  '1',
  ' ',
  '.',
  'a.b',
  'A',
  'a',
  'é',
  // The same letter, decomposed: another name.
  'e\u0301',
  '\u{1F600}',
  'n'.repeat(128),
];

/** An object with own fields of any name, `__proto__` too. */
function own(entries: readonly (readonly [string, unknown])[]): Row {
  return Object.fromEntries(entries);
}

const fields = own(trickyFields.map((name) => [name, { typeId: Types.varchar }])) as SchemaDefinition['fields'];

describe('fields with names that JavaScript uses itself', () => {
  it('are stored, read, compared, sorted and indexed as any other', async () => {
    for (const primaryKey of ['__proto__', 'constructor', 'toString', '0']) {
      const schema: SchemaDefinition = {
        name: 'tricky',
        version: 1,
        fields,
        primaryKey,
        indexes: trickyFields.slice(0, 6),
      };
      const rows = ['x', 'y'].map((key) =>
        own(trickyFields.map((name, i) => [name, name === primaryKey ? key : `${key}${i}`])),
      );
      await throughStages(
        [schema],
        (batch) => {
          for (const row of rows) void batch.insert(schema.name, row);
          void batch.insert(schema.name, own([[primaryKey, 'z']]));
        },
        async ({ query, get }) => {
          const found = await query('tricky').execute();
          expect(found).toHaveLength(3);
          for (const [at, row] of found.entries()) {
            expect(Object.getPrototypeOf(row)).toBe(Object.prototype);
            expect(Object.keys(row).toSorted()).toEqual(trickyFields.toSorted());
            for (const [i, name] of trickyFields.entries()) {
              const expected = name === primaryKey ? 'xyz'[at] : at === 2 ? null : `${'xy'[at]}${i}`;
              expect(Object.getOwnPropertyDescriptor(row, name)?.value, name).toBe(expected);
            }
          }
          for (const [i, name] of trickyFields.entries()) {
            if (name === primaryKey) continue;
            expect(column(await query('tricky').where(name, '=', `y${i}`).execute(), primaryKey), name).toEqual(['y']);
            expect(column(await query('tricky').where(name, '=', null).execute(), primaryKey), name).toEqual(['z']);
            expect(column(await query('tricky').orderBy(name, 'desc').execute(), primaryKey)).toEqual(['y', 'x', 'z']);
          }
          const selected = await query('tricky').select('__proto__', 'constructor').first();
          expect(Object.keys(selected as Row)).toEqual(['__proto__', 'constructor']);
          expect(Object.keys((await get('tricky', 'x')) as Row)).toContain('__proto__');
        },
      );
    }
  });

  it('are null where a document only inherits them', async () => {
    const schema: SchemaDefinition = {
      name: 'inherited',
      version: 1,
      fields: own([
        ['id', { typeId: Types.uint8 }],
        ['constructor', { typeId: Types.varchar }],
        ['__proto__', { typeId: Types.json }],
      ]) as SchemaDefinition['fields'],
      primaryKey: 'id',
    };
    const db = await openDatabase([schema]);
    const batch = db.batch();
    void batch.insert(schema, { id: 1 });
    void batch.insert(schema, { id: 2, constructor: 'own' });
    void batch.update(schema, { id: 2 });
    await batch.flush();
    const rows = await db.query(schema).execute();
    expect(
      rows.map((row): unknown[] => [
        row['id'],
        row['constructor'],
        Object.getOwnPropertyDescriptor(row, '__proto__')?.value,
      ]),
    ).toEqual([
      [1, null, null],
      [2, 'own', null],
    ]);
  });

  it('are refused where the schema does not have them', async () => {
    const schema: SchemaDefinition = {
      name: 'plain',
      version: 1,
      fields: { id: { typeId: Types.uint8 } },
      primaryKey: 'id',
    };
    const db = await openDatabase([schema]);
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const document = own([
        ['id', 1],
        [name, 'a'],
      ]);
      expect(await failure(db.batch().insert('plain', document))).toMatchObject({
        code: 'ENCODE',
        field: name,
        value: 'a',
      });
      expect(thrown(() => db.query('plain').where(name, '=', 'a'))).toMatchObject({ code: 'INVALID_QUERY' });
      expect(thrown(() => db.query('plain').orderBy(name))).toMatchObject({ code: 'INVALID_QUERY' });
    }
    expect(({} as Row)['a']).toBeUndefined();
  });

  it('are no registered functions unless they were registered', async () => {
    const schema: SchemaDefinition = { name: 'tricky', version: 1, fields, primaryKey: 'toString' };
    const db = await openDatabase([schema]);
    db.registerFunction('__proto__', (row) => row['toString']);
    const batch = db.batch();
    void batch.insert(
      schema.name,
      own([
        ['toString', 'a'],
        ['constructor', 'c'],
      ]),
    );
    await batch.flush();
    expect(await db.query('tricky').where('__proto__', '=', 'a').count()).toBe(1);
    expect(await db.query('tricky').where('constructor', '=', 'c').count()).toBe(1);
    expect(await db.query('tricky').where('valueOf', '=', null).count()).toBe(1);
  });
});

/** All of them at once in one database: no two may share a place in the store. */
const tableNames = [
  '../x',
  '../../x',
  '..',
  '.',
  '/',
  'a/b',
  'a',
  'A',
  'b',
  'a_2fb',
  '-_',
  'a%2Fb',
  'block0',
  'committed',
  'data',
  '__proto__'.slice(2),
  'constructor',
  'toString',
  'CON',
  'nul',
  'x\\y',
  'x:y*?"<>|',
  'new\nline',
  'zero\0',
  ' ',
  'trailing.',
  'trailing ',
  'ß',
  'SS',
  'é',
  'e\u0301',
  'Ⅷ',
  '表',
  '\uFFFF',
  '\u{10000}',
  '\u{1F600}'.repeat(32),
  'n'.repeat(128),
];

describe.each(driversUnderTest)('tables of any name on %s', (_, makeDriver) => {
  it('do not meet each other, nor leave their place', async () => {
    const schemas = tableNames.map(
      (name): SchemaDefinition => ({
        name,
        version: 1,
        fields: { id: { typeId: Types.uint8 }, [name]: { typeId: Types.varchar }, other: { typeId: Types.varchar } },
        primaryKey: 'id',
        indexes: name === 'other' ? [] : [name, 'other'],
      }),
    );
    const long = 'value '.repeat(200);
    await throughStages(
      schemas,
      (batch) => {
        for (const name of tableNames) {
          for (let id = 0; id < 20; id++)
            void batch.insert(name, { id, [name]: `${name} ${id % 4}`, other: `${long}${id}` });
        }
      },
      async ({ query }) => {
        for (const name of tableNames) {
          const rows = await query(name).where(name, '=', `${name} 3`).execute();
          expect(column(rows, 'id'), name).toEqual([3, 7, 11, 15, 19]);
          expect(column(rows, name)[0]).toBe(`${name} 3`);
          expect(await query(name).count()).toBe(20);
          expect(await query(name).where('other', '=', `${long}7`).first()).toMatchObject({ id: 7 });
        }
      },
      // Small blocks, so that every table has objects of its own.
      { driver: makeDriver(), database: { blockSizeBytes: 4096 } },
    );
  });
});

describe('tables of any name in a folder', () => {
  it('leave nothing else in its folder', async () => {
    const folder = newFolder();
    const inner = `${folder}/inner`;
    const names = ['../x', '../../x', '..', '/'];
    const schemas = names.map(
      (name): SchemaDefinition => ({
        name,
        version: 1,
        fields: { id: { typeId: Types.uint8 }, '../y': { typeId: Types.varchar } },
        primaryKey: 'id',
        indexes: ['../y'],
      }),
    );
    const db = await openDatabase(schemas, new FileDriver(inner), { dbPrefix: 'deep/prefix', blockSizeBytes: 512 });
    const above = readdirSync(dirname(folder)).filter((name) => name === 'x' || name === 'y');
    const batch = db.batch();
    for (const name of names)
      for (let id = 0; id < 99; id++) void batch.insert(name, { id, '../y': `some text ${id}` });
    await batch.flush();
    await db.checkpoint();
    expect(await db.verify()).toMatchObject({ ok: true });
    expect(readdirSync(folder)).toEqual(['inner']);
    expect(readdirSync(inner)).toEqual(['deep@']);
    expect(readdirSync(dirname(folder)).filter((name) => name === 'x' || name === 'y')).toEqual(above);
  });
});

describe('a schema', () => {
  const id = { typeId: Types.uint8 };
  const good: SchemaDefinition = { name: 't', version: 1, fields: { id }, primaryKey: 'id' };
  it.each([
    ['a name that begins with _', { ...good, name: '_blobs' }],
    ['no name', { ...good, name: '' }],
    ['a name with half a surrogate pair', { ...good, name: '\uD800' }],
    ['a name of 129 bytes', { ...good, name: 'n'.repeat(129) }],
    ['a field without a name', { ...good, fields: { id, '': id } }],
    ['a type that does not exist', { ...good, fields: { id, a: { typeId: 18 } } }],
    ['no type', { ...good, fields: { id, a: {} } }],
    ['no fields', { ...good, fields: {} }],
    ['a primary key that is no field', { ...good, primaryKey: 'ID' }],
    ['an inherited name as primary key', { ...good, primaryKey: 'toString' }],
    ['a JSON primary key', { ...good, fields: { id: { typeId: Types.json } } }],
    ['a blob primary key', { ...good, fields: { id: { typeId: Types.blob } } }],
    ['an index on JSON', { ...good, fields: { id, a: { typeId: Types.json } }, indexes: ['a'] }],
    ['an index on a blob', { ...good, fields: { id, a: { typeId: Types.blob } }, indexes: ['a'] }],
    ['an index that is no field', { ...good, indexes: ['a'] }],
    ['an index twice', { ...good, indexes: ['id', 'id'] }],
    ['a version that is no integer', { ...good, version: 1.5 }],
    ['a version below 0', { ...good, version: -1 }],
    ['a maxLength of 0', { ...good, fields: { id, a: { typeId: Types.varchar, maxLength: 0 } } }],
    ['a default that does not fit', { ...good, fields: { id, a: { typeId: Types.uint8, default: 256 } } }],
    ['an infinite default', { ...good, fields: { id, a: { typeId: Types.float64, default: Infinity } } }],
    ['a default for a blob', { ...good, fields: { id, a: { typeId: Types.blob, default: 'x' } } }],
    ['null', null],
  ])('is refused with %s', async (_, schema) => {
    const db = await openDatabase([]);
    const error = thrown(() => db.registerSchema(schema as SchemaDefinition));
    expect(error).toBeInstanceOf(InvalidSchemaError);
    expect(error).toMatchObject({ code: 'INVALID_SCHEMA' });
  });

  it('can be registered again as it is, but not with another definition', async () => {
    const db = await openDatabase([good]);
    db.registerSchema({ ...good, fields: { id: { typeId: Types.uint8 } } });
    const other = { ...good, fields: { id: { typeId: Types.uint16 } } };
    expect(thrown(() => db.registerSchema(other))).toMatchObject({ code: 'INVALID_SCHEMA' });
  });
});
