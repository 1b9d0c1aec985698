import type { PagePromises } from '../page-promises.ts';

export const tables: PagePromises = {
  'Register a table before you use it, before or after `start()`.': [
    'test/features/interface/schemas.test.ts: works before and after start(), and returns nothing',
    'test/features/interface/schemas.test.ts: is an error with exactly this message, wherever it is used',
  ],
  "wherever you pass `books` instead of `'books'`, rows are typed.": [
    'test/features/types/queries.test.ts: are checked where this file is compiled',
  ],
  'Every field may be null, except the primary key.': [
    'test/features/values/refusals.slow.test.ts: also refused: %s',
    'src/format/row.slow.test.ts: hold nulls as such, and leave their bytes zero',
  ],
  'A field that is left out is stored as null, or as its `default`.': [
    'test/features/values/defaults.test.ts: replaces missing and undefined values; null stays null',
  ],
  'These ids sort by time: the ids of one process are in the order in which the process made them.': [
    'test/features/values/defaults.test.ts: gives a new id to every row, by the time of its insertion',
    'src/base/ids.test.ts: are in the order in which they were made, %s ms apart',
  ],
  'Only inserts and upserts use the default, and only for a field that is left out: null is stored as null.': [
    'test/features/values/defaults.test.ts: is not put in by an update',
    'test/features/values/defaults.test.ts: replaces missing and undefined values; null stays null',
  ],
  'A key is an array of the values, in the order of `primaryKey`': [
    'test/features/compound-keys/writes.test.ts: resolve to the key, which rows are looked up by',
    'test/features/compound-keys/writes.test.ts: are refused with the key in the error',
  ],
  'a query for the rows of a tenant reads one range, without an index.': [
    'test/features/compound-keys/queries.slow.test.ts: read its first fields as a range, and all of them as one row',
  ],
  'fields at the beginning of the key are looked up, and the others are tested.': [
    'test/features/compound-keys/queries.slow.test.ts: look up tuples, also written as clauses',
  ],
  'finds all rows after this key, in any tenant.': [
    'test/features/compound-keys/ranges.slow.test.ts: of the first fields of the key reads one range of it',
  ],
  'If that field is null, in the row or in the array, the row does not match.': [
    'test/features/compound-keys/ranges.slow.test.ts: takes values that a field cannot hold, and null, as comparing the field alone does',
    'test/features/compound-keys/ranges.slow.test.ts: of the fields of an index reads ranges of it, without those that are null',
  ],
  'reads one range if its fields are the first fields of the key, in the order of the key.': [
    'test/features/compound-keys/ranges.slow.test.ts: reads the blocks of its range, and no others',
    'test/features/compound-keys/ranges.slow.test.ts: of fields behind those that are fixed is a range behind their values',
  ],
  'The texts and bytes of a key may take up to 1,024 bytes together.': [
    'test/features/compound-keys/writes.test.ts: are refused at the call where the key is not one',
  ],
  'It is not a limit: longer values are stored in full.': [
    'test/features/values/refusals.slow.test.ts: is read back as it was: %s',
  ],
  'The fields and the key of a version never change.': [
    'test/features/interface/schemas.test.ts: refuses the same version with another definition: %s',
    'test/features/values/names.slow.test.ts: can be registered again as it is, but not with another definition',
  ],
  'properties that are `undefined` are left out': [
    'test/features/values/queries.slow.test.ts: is left out, as JSON.stringify() does',
  ],
  "On a `timestamp` field it may be `'now'`, the time of the call by the clock of the process.": [
    'test/features/migrations/field-rules.test.ts: is given the time of its insert, by the clock of the process, and keeps it',
  ],
  'an insert or upsert that leaves the field null is refused with `EncodeError`, and so is an update that sets it to null.':
    ['test/features/migrations/field-rules.test.ts: %s is refused, and nothing of its batch is written'],
  "The field's type in TypeScript does not include `null`.": [
    'test/features/types/field-rules.test.ts: are refused at run time if the compiler refuses them',
  ],
  'Any other value is refused with `EncodeError`.': [
    'test/features/migrations/field-rules.test.ts: %s is refused, and nothing of its batch is written',
  ],
  'A row that gets no value stops the migration, and so does a row with a value that `oneOf` no longer lists.': [
    'test/features/migrations/field-rules.test.ts: stops the migration with %s, and leaves the old version in force',
  ],
  'Otherwise the write is refused with `EncodeError`.': [
    'test/features/migrations/field-rules.test.ts: is refused to be null while the old version is in force',
    'test/features/migrations/field-rules.test.ts: has the default of the old version there',
  ],
  'A value that does not fit its type is refused with `EncodeError`. It is never converted to fit. A field that the schema does not have is refused too.':
    [
      'test/features/values/refusals.slow.test.ts: is refused by %s',
      'test/features/values/refusals.slow.test.ts: also refused: %s',
    ],
  '`json` and `blob` fields can be neither primary key nor index.': [
    'test/features/interface/schemas.test.ts: refuses %s',
    'src/format/ordered-key.test.ts: cannot be made of json and blobs',
  ],
  'Registrations from before the drop no longer count, on any instance: reads show no rows, and writes are refused with `TableDroppedError`':
    [
      'test/features/drop-table/dropping.test.ts: takes no write of a registration from before: %s',
      'test/features/drop-table/dropping.test.ts: has no rows, indexes or schema on any instance: %s',
      'test/features/drop-table/races.test.ts: refuses the write if the drop comes first',
    ],
  'The new table may have any definition.': [
    'test/features/drop-table/dropping.test.ts: may be created again with another definition of the same version',
  ],
  '`dropTable()` rejects with `TableNotFoundError` if there is no such table, unless `{ ifExists: true }` is given.': [
    'test/features/drop-table/dropping.test.ts: rejects for a table that is not there, unless that is allowed',
  ],
};
