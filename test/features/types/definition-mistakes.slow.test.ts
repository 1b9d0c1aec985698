/** Mistakes in definitions, and what the compiler says of each. */
import { describe } from 'vitest';
import { refusesEach } from './mistakes.ts';
import type { Mistake } from './mistakes.ts';

const program = `import { defineSchema, Types } from 'store-db';
import type { FieldDefinition, SchemaDefinition } from 'store-db';
const id = { typeId: Types.uint32 } as const;
const name = { typeId: Types.varchar } as const;
const notes = { typeId: Types.json } as const;
const file = { typeId: Types.blob } as const;
const made = { typeId: Types.timestamp } as const;
const fields = { id, name, notes, file, made } as const;
const loose: SchemaDefinition = { name: 'a', version: 1, fields, primaryKey: 'id' };
const table = { name: 'a', version: 1, fields, primaryKey: 'id' } as const;`;

/** A table with one more field than its id. */
function withField(field: string): string {
  return `defineSchema({ name: 'a', version: 1, fields: { id, more: ${field} }, primaryKey: 'id' })`;
}

/** A table with an index on some rows. */
function asking(where: string): string {
  const fields = `{ id, name, notes, file, made, state: { typeId: Types.varchar, oneOf: ['draft', 'live'] } }`;
  return `defineSchema({ name: 'a', version: 1, fields: ${fields}, primaryKey: 'id', indexes: [{ fields: ['name'], where: ${where} }] })`;
}

/** A table with one more property than it needs. */
function having(property: string): string {
  return `defineSchema({ name: 'a', version: 1, fields, primaryKey: 'id', ${property} })`;
}

function keyed(key: string): string {
  return `defineSchema({ name: 'a', version: 1, fields, primaryKey: ${key} })`;
}

const tables: readonly Mistake[] = [
  ['indexs', having("indexs: ['name']"), "A table has no property 'indexs': did you mean indexes?"],
  ['a property that is like none', having('engine: 5'), "A table has no property 'engine'"],
  [
    'a table without a primary key',
    "defineSchema({ name: 'a', version: 1, fields })",
    "Property 'primaryKey' is missing",
  ],
  [
    'a table without a version',
    "defineSchema({ name: 'a', fields, primaryKey: 'id' })",
    "Property 'version' is missing",
  ],
  [
    'a version that is text',
    "defineSchema({ name: 'a', version: '1', fields, primaryKey: 'id' })",
    "Type 'string' is not assignable to type 'number'",
  ],
  [
    'a primary key that is no field',
    keyed("'nmae'"),
    `Type '"nmae"' is not assignable to type '(string | readonly string[]) & ("file" | "id" | "made" | "name" | "notes")'`,
  ],
  ['a field of it that is none', keyed("['id', 'nmae']"), `Type '"nmae"' is not assignable to type '"file" | "id"`],
  ['a json field of it', keyed("['id', 'notes']"), "Field 'notes' is of type json, which cannot be the primary key"],
  ['a blob field of it', keyed("['file', 'id']"), "Field 'file' is of type blob, which cannot be the primary key"],
  ['a primary key of no field', keyed('[]'), 'The primary key names at least one field'],
  ['a json primary key', keyed("'notes'"), "Field 'notes' is of type json, which cannot be the primary key"],
  ['a blob primary key', keyed("'file'"), "Field 'file' is of type blob, which cannot be the primary key"],
  ['a rename of what is no field', having("renames: { nmae: 'title' }"), "There is no field 'nmae'"],
  [
    'a time that is none',
    having("expireAfter: { field: 'name', seconds: 5 }"),
    "Field 'name' holds no time: it must be of type timestamp, int64, uint64 or float64",
  ],
  ['a time in what is no field', having("expireAfter: { field: 'mdae', seconds: 5 }"), "There is no field 'mdae'"],
  ['an old name that is no text', having('renames: { name: 5 }'), "Type 'number' is not assignable to type"],
];

const ofFields: readonly Mistake[] = [
  ['maxlength', withField('{ typeId: Types.varchar, maxlength: 9 }'), "'maxlength': did you mean maxLength?"],
  [
    'a unique field',
    withField('{ typeId: Types.varchar, unique: true }'),
    "A field has no property 'unique': indexes of the table say so",
  ],
  [
    'a field that is notNull',
    withField('{ typeId: Types.varchar, notNull: true }'),
    "A field has no property 'notNull': a field that is never null has required: true",
  ],
  ['a letter too few', withField('{ typeId: Types.varchar, requird: true }'), "'requird': did you mean required?"],
  [
    'letters that are swapped',
    withField("{ typeId: Types.varchar, defualt: 'a' }"),
    "'defualt': did you mean default?",
  ],
  ['a letter too many', withField("{ typeId: Types.varchar, oneOff: ['a'] }"), "'oneOff': did you mean oneOf?"],
  ['a type that there is not', withField('{ typeId: 99 }'), "Type '99' is not assignable to type 'TypeId'"],
  ['a type by its name', withField("{ typeId: 'varchar' }"), "Type 'string' is not assignable to type 'TypeId'"],
  ['a field that has no type', withField('{ maxLength: 5 }'), "Property 'typeId' is missing"],
  ['required that is no boolean', withField("{ typeId: Types.uint8, required: 'yes' }"), "to type 'boolean'"],
];

const values: readonly Mistake[] = [
  ['a number as the default of a text', withField('{ typeId: Types.varchar, default: 5 }'), "'number' is not"],
  ['a text as the default of a number', withField("{ typeId: Types.uint8, default: '5' }"), "to type 'number'"],
  [
    'a number for a time',
    withField('{ typeId: Types.timestamp, default: 0 }'),
    `'number' is not assignable to type '"now" | Date'`,
  ],
  [
    'a misspelled now',
    withField("{ typeId: Types.timestamp, default: 'nov' }"),
    `'"nov"' is not assignable to type '"now" | Date'`,
  ],
  ['now as a number', withField("{ typeId: Types.uint32, default: 'now' }"), "to type 'number'"],
  ['a default of null', withField('{ typeId: Types.varchar, default: null }'), "Type 'null' is not assignable"],
  ['a default of a blob', withField("{ typeId: Types.blob, default: 'x' }"), 'A blob field takes no default'],
  ['a function as JSON', withField('{ typeId: Types.json, default: () => 5 }'), "not assignable to type 'ConstantJson"],
  [
    'a default that is none of the values',
    withField("{ typeId: Types.varchar, oneOf: ['a', 'b'], default: 'c' }"),
    `'"c"' is not assignable to type '"a" | "b"`,
  ],
  [
    'values of another type',
    withField("{ typeId: Types.uint8, oneOf: ['a'] }"),
    "'string' is not assignable to type 'number'",
  ],
  [
    'values of a type that lists none',
    withField('{ typeId: Types.boolean, oneOf: [1] }'),
    '`oneOf` is for fields of integers, varchar and uuid',
  ],
];

const indexes: readonly Mistake[] = [
  ['an index on what is no field', having("indexes: ['nmae']"), `'"nmae"' is not assignable to type '"`],
  ['an index on JSON', having("indexes: ['id', 'notes']"), "Field 'notes' is of type json, which cannot be indexed"],
  ['an index on a blob', having("indexes: [{ fields: ['name', 'file'] }]"), "Field 'file' is of type blob"],
  [
    'uniqe',
    having("indexes: [{ fields: ['name'], uniqe: true }]"),
    "An index has no property 'uniqe': did you mean unique?",
  ],
  ['a second field that is none', having("indexes: ['id', { fields: ['name', 'mad'] }]"), `'"mad"' is not assignable`],
  [
    'a unique index on elements',
    having("indexes: [{ fields: ['notes'], each: true, unique: true }]"),
    'An index with several entries for a row cannot be unique',
  ],
  [
    'a unique index on texts',
    having("indexes: [{ fields: ['name'], text: {}, unique: true }]"),
    'An index with several entries for a row cannot be unique',
  ],
  [
    'an index on the words of a number',
    having("indexes: [{ fields: ['name', 'id'], text: {} }]"),
    "Field 'id' is not of type varchar, which an index on texts is on",
  ],
  [
    'a weight of another field',
    having("indexes: [{ fields: ['name'], text: { weights: { nmae: 3 } } }]"),
    "The index is not on a field 'nmae': did you mean name?",
  ],
  [
    'a language that is none',
    having("indexes: [{ fields: ['name'], text: { language: 'english' } }]"),
    `Type '"english"' is not assignable to type`,
  ],
  ['unique that is no boolean', having("indexes: [{ fields: ['name'], unique: 1 }]"), 'is not assignable to type'],
  [
    'an index on a function that has more',
    having("indexes: [{ function: 'f', typeId: Types.uint8, unique: true }]"),
    "An index on a function has no property 'unique'",
  ],
];

const conditions: readonly Mistake[] = [
  ['a condition on what is no field', asking('{ nmae: null }'), "There is no field 'nmae': did you mean name?"],
  ['a second one on what is none', asking('{ id: 5, maed: null }'), "There is no field 'maed': did you mean made?"],
  ['a condition on JSON', asking('{ notes: null }'), "Field 'notes' is of type json, which no index asks for"],
  ['a condition on a blob', asking('{ file: { not: null } }'), "Field 'file' is of type blob, which no index asks for"],
  ['a condition that is a number for text', asking('{ name: 5 }'), "'number' is not assignable to type 'string"],
  ['one of its values that is text', asking("{ id: [1, '2'] }"), "'string' is not assignable to type 'number"],
  ['a number for a timestamp', asking('{ made: 0 }'), "'number' is not assignable to type 'Date"],
  ['a value that is none of the list', asking("{ state: 'dead' }"), `'"dead"' is not assignable to type '"draft"`],
  ['not with a value', asking("{ name: { not: 'a' } }"), "Type '{ not: string; }' is not assignable to type"],
  ['a misspelled not', asking('{ name: { nto: null } }'), "'nto' does not exist"],
  ['a function', asking("{ name: () => 'a' }"), "Type '() => string' is not assignable to type"],
];

const migrations: readonly Mistake[] = [
  ['a row that does not fit', having('migrate: (row, from) => ({ ...row, name: from })'), "gives field 'name' a value"],
  ['a key that is null', having('migrate: () => ({ id: null })'), "gives field 'id' a value that it does not take"],
  [
    'a field that there is not',
    having("migrate: () => ({ nam: 'a' })"),
    "gives 'nam', which is no field of this version: did you mean name?",
  ],
  ['a promise of a row', having('migrate: async (row) => row'), "Type 'Promise<Record<string, unknown>>' is not"],
  ['no function', having("migrate: 'a'"), "is not assignable to type 'MigrateFunction'"],
];

const right: readonly string[] = [
  having(
    "indexes: [{ fields: ['name'], text: { language: 'de', weights: { name: 3 } } }, { fields: ['notes', 'id'], each: true }]",
  ),
  'defineSchema(loose)',
  'defineSchema({ ...loose, version: 2 })',
  "defineSchema({ ...loose, migrate: () => ({ anything: 5 }), indexes: ['anything'] })",
  "defineSchema({ name: 'a', version: 1, fields: { a: loose.fields['a'] as FieldDefinition }, primaryKey: 'a' })",
  "defineSchema({ name: 'a', version: 1, fields: { ...loose.fields, id }, primaryKey: 'id' })",
  'defineSchema(table)',
  "defineSchema({ ...table, version: 2, indexes: ['name', { fields: ['made', 'name'], unique: true, name: 'x' }] })",
  asking("{ name: ['a', null], made: new Date(0), id: { not: null }, state: 'live' }"),
  having("indexes: [{ function: 'f', typeId: Types.uint8 }, 'name'], renames: { name: ['title', 'label'] }"),
  having("indexes: ['made'], expireAfter: { field: 'made', seconds: 3600 }"),
  having('migrate: (row) => row, migrateVersion: 2'),
  having("migrate: ({ id, name }) => ({ id, name: String(name), made: name === 'a' ? new Date() : undefined })"),
  having('migrate: (row, from) => ({ ...row, name: String(from), made: null, notes: [1] })'),
  having("migrate: (row) => { if (row['id'] === 1) return row; return { ...row, name: 'a' }; }"),
  having("migrate: () => { throw new Error('no') }"),
  withField("{ typeId: Types.uuid, default: 'uuidv7' }"),
  withField("{ typeId: Types.varchar, default: 'uuidv7', maxLength: 36 }"),
  withField("{ typeId: Types.timestamp, default: 'now', required: true }"),
  withField('{ typeId: Types.timestamp, default: new Date() }'),
  withField('{ typeId: Types.int64, default: 5 }'),
  withField('{ typeId: Types.int64, oneOf: [1n, 2], default: 2 }'),
  withField('{ typeId: Types.bytes, default: new Uint8Array(2) }'),
  withField('{ typeId: Types.json, default: { a: [1, { b: null }], c: true } }'),
  withField('{ typeId: Types.boolean, default: false, required: false }'),
  withField('{ typeId: Types.float32, default: 0.5 }'),
];

describe('the compiler', () => {
  refusesEach(program, [...tables, ...ofFields, ...values, ...indexes, ...conditions, ...migrations], right);
});
