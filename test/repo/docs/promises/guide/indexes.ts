import type { PagePromises } from '../page-promises.ts';

export const indexes: PagePromises = {
  'A definition with an index that has the name of another index of the table is refused with `InvalidSchemaError`.': [
    'test/features/added-indexes/adding.test.ts: refuses an index that is another one in the table',
  ],
  'Any instance that writes builds the index in its turns, even if it has not registered the index': [
    'test/features/added-indexes/midway.test.ts: is kept by gc, and by a copy, which goes on with it',
  ],
  '**A unique index holds once it is `ready`, and not before.**': [
    'test/features/added-indexes/unique.test.ts: is added in the background, and holds for all nodes then',
    'test/properties/random/added-unique-indexes.slow.test.ts: have no two rows agree where one holds (seed %i)',
  ],
  'Correct the rows, and call `db.dropIndex(table, index)`: then the index is built again.': [
    'test/features/added-indexes/unique.test.ts: fails if rows have equal values, and names them; once they are corrected, it is begun again',
  ],
  'First deploy a definition without the index everywhere': [
    'test/features/added-indexes/unique.test.ts: drops an index that the definition has no more, of every kind',
  ],
  'A process whose definition still has the index adds it again.': [
    'test/features/added-indexes/unique.test.ts: is undone by a process whose definition has the index',
  ],
  'Queries do not use the index until all rows have their entries.': [
    'test/features/added-indexes/midway.test.ts: is reported, and is not used',
    'test/properties/random/added-indexes.slow.test.ts: give right rows, and no findings (seed %i)',
  ],
  'A definition with fewer indexes than the table does not drop any': [
    'test/features/added-indexes/adding.test.ts: does it at start() too, and nodes with the old definition use them as well',
  ],
  'While the table is being migrated, new indexes wait for the end of the migration, and no index can be dropped.': [
    'test/features/added-indexes/unique.test.ts: refuses an unknown index, and a table that is migrated',
    'test/features/added-indexes/adding.test.ts: a migration of the table comes first',
    'test/features/added-indexes/adding.test.ts: a next version of the table keeps its definition',
  ],
  'Queries on snapshots and earlier states cannot use an index that was added later.': [
    'test/features/added-indexes/adding.test.ts: snapshots and earlier states show the earlier schema',
  ],
  'A query that takes only fields of the index, of the primary key and of `include` then reads no rows.': [
    'test/features/query/included-fields.test.ts: reads no row, except of a text that it holds in part',
    'test/features/query/included-fields-stored.test.ts: answers a page from a cold store in two requests, where rows would take one each',
  ],
  'An index takes up to 16 fields in all.': [
    'test/features/query/included-fields-stored.test.ts: takes 16 fields in all',
  ],
  '`HAS ANY` of no elements matches no row, and `HAS ALL` of none matches every row.': [
    'test/features/query/lists.test.ts: are searched right by each plan, each row once, also with unmerged commits',
  ],
  'An index on a list cannot be `unique`.': ['test/features/query/lists.test.ts: in the index %j is refused'],
  'It serves conditions on its first fields': [
    'test/features/query/compound-indexes.test.ts: gives rows by values of its first fields and a range of the next',
  ],
  'Several `IN` lists make a range for each combination, up to 1,024.': [
    'test/features/query/compound-indexes.test.ts: takes lists of values as several ranges',
  ],
  "It does not serve `orderBy('country')` alone, since members of one country then come by primary key.": [
    'test/features/query/compound-indexes.test.ts: does not serve %s',
  ],
  'If a value is longer than 1,024 bytes, the index holds its beginning, and the rest is compared on rows.': [
    'test/features/query/compound-indexes.test.ts: tests values on the rows if it stores only their beginnings',
  ],
  'A flush that would break this is rejected with `UniqueIndexError`, and nothing of it is written.': [
    'test/features/unique/flushes.test.ts: is refused, by any operation, and nothing is written',
  ],
  'if several write the same value at the same time, one succeeds.': [
    'test/properties/histories/unique-indexes.slow.test.ts: leave a value to exactly one of those who ask for it at once',
  ],
  'Only the result of the whole batch counts': [
    'test/features/unique/flushes.test.ts: may be swapped, handed on and taken over in one batch',
  ],
  'Rows with null in any of the fields are exempt: there can be any number of them.': [
    'test/features/unique/flushes.test.ts: may be null as often as one likes',
  ],
  'Values are compared whole, however long they are.': [
    'test/features/unique/flushes.test.ts: is compared whole, however little of it the index holds',
  ],
  'Values that an `update()` does not change cost nothing.': [
    'test/features/unique/flushes.test.ts: that leaves its values as they are looks for none of them',
  ],
  'Queries return the same rows with and without the index.': [
    'test/properties/random/function-indexes.slow.test.ts: give right rows, and no findings (seed %i)',
  ],
  '`verify()` finds such entries, and `repair()` rebuilds the index.': [
    'test/features/function-indexes/maintenance.test.ts: find entries that the function does not make, and rebuild the index',
  ],
  'A function that is registered without a version does not use the index.': [
    'test/features/function-indexes/index-versions.test.ts: has no part in the index, which is said once',
  ],
  'Up to four versions are kept. Entries of a version that no instance has maintained for 256 merges are dropped.': [
    'test/features/function-indexes/index-versions.test.ts: waits where as many versions are in use',
    'test/features/function-indexes/index-versions.test.ts: has the old index version go once nobody has kept it up for 256 merges',
  ],
  'An instance without the function, or with another version, can write, read and merge everything. It does not maintain the index, so queries scan until an instance with the function has caught the index up.':
    [
      'test/features/function-indexes/index-versions.test.ts: merges, and leaves the index as it is, which is out of date then, and not used',
    ],
  'A replica uses the index, and does not build it.': [
    'test/features/function-indexes/queries.test.ts: reads the state of a snapshot, and a replica too',
  ],
  'Results of other types, or out of range, are still found, by calling the function for those rows.': [
    'test/features/function-indexes/queries.test.ts: of type %i is found as === has it, or found by looking',
  ],
  'If the function throws for any row, or returns a promise, queries do not use the index, and reject with `FunctionError` when they come to that row.':
    ['test/features/function-indexes/queries.test.ts: is an error for as long as it fails on any row'],
  'An index on a function cannot be unique, and does not give rows in its order.': [
    'test/features/function-indexes/maintenance.test.ts: refuses %j',
  ],
};
