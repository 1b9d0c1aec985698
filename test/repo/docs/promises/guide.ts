import type { PagePromises } from './page-promises.ts';

const tables: PagePromises = {
  'Two with the same id do no damage': [
    'test/features/protocol/block0.test.ts: happens at random between nodes, even of one nodeId, and loses nothing',
  ],
  '`start()` opens the database, or creates it if there is nothing under the prefix.': [
    'test/features/protocol/opening.test.ts: the database is created: Block 0, listing, Block 0 again',
    'test/features/protocol/opening.test.ts: opening is refused, and nothing is written',
  ],
  'Other calls reject with `NotStartedError` before that.': [
    'test/features/interface/lifecycle.slow.test.ts: %s rejects with NotStartedError before start() and after stop()',
  ],
  '`dbPrefix` is put before every name in the store.': [
    'test/features/security/places.slow.test.ts: is not left by collecting garbage, verifying or restoring',
    'test/features/protocol/opening.test.ts: those under other prefixes are none either',
  ],
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
    'test/features/values/defaults.test.ts: stands in for what is left out or undefined; null stays null',
  ],
  'for a new id that sorts by time: the ids that a process makes are in the order in which it makes them.': [
    'test/features/values/defaults.test.ts: gives a new id to every row, by the time of its insertion',
    'src/base/ids.test.ts: are in the order in which they were made, %s ms apart',
  ],
  'Only inserts and upserts use it, and only where the field is left out: null is stored as null.': [
    'test/features/values/defaults.test.ts: is not put in by an update',
    'test/features/values/defaults.test.ts: stands in for what is left out or undefined; null stays null',
  ],
  'A key is an array of the values, in the order of `primaryKey`': [
    'test/features/compound-keys/writes.test.ts: resolve to the key, which rows are looked up by',
    'test/features/compound-keys/writes.test.ts: are refused with the key in the error',
  ],
  'the rows of a tenant are read as one range, without an index.': [
    'test/features/compound-keys/queries.slow.test.ts: read its first fields as a range, and all of them as one row',
  ],
  'those that the key begins with are looked up.': [
    'test/features/compound-keys/queries.slow.test.ts: look up tuples, also written as clauses',
  ],
  'Their texts and bytes take up to 1,024 bytes together.': [
    'test/features/compound-keys/writes.test.ts: are refused at the call where the key is not one',
  ],
  'It limits nothing: longer values are stored in full.': [
    'test/features/values/refusals.slow.test.ts: is read back as it was: %s',
  ],
  'A definition whose index is another one in the table is refused with `InvalidSchemaError`.': [
    'test/features/added-indexes/adding.test.ts: refuses an index that is another one in the table',
  ],
  'Any node that writes makes the entries, in its turns and some rows at a time, also one that has not registered the index.':
    ['test/features/added-indexes/midway.test.ts: is kept by gc, and by a copy, which goes on with it'],
  '**A unique index holds once it is `ready`, and not before.**': [
    'test/features/added-indexes/unique.test.ts: is added in the background, and holds for all nodes then',
    'test/properties/random/added-unique-indexes.slow.test.ts: have no two rows agree where one holds (seed %i)',
  ],
  'Put the rows right, and call `db.dropIndex(table, index)`: then it is begun anew.': [
    'test/features/added-indexes/unique.test.ts: fails where rows agree, and says which; once they are put right, it is begun anew',
  ],
  'The definition that is registered must not have it any more': [
    'test/features/added-indexes/unique.test.ts: drops an index that the definition has no more, of every kind',
  ],
  'A process whose definition has the index adds it again.': [
    'test/features/added-indexes/unique.test.ts: is undone by a process whose definition has the index',
  ],
  'Queries do without the index until all rows have their entries.': [
    'test/features/added-indexes/midway.test.ts: is told of, and is not used',
    'test/properties/random/added-indexes.test.ts: give right rows, and no findings (seed %i)',
  ],
  'A definition that has fewer indexes than the table takes none away': [
    'test/features/added-indexes/adding.test.ts: does it at start() too, and nodes with the old definition use them as well',
  ],
  'While a migration of the table is under way, indexes wait for its end, and none can be dropped.': [
    'test/features/added-indexes/unique.test.ts: refuses what there is not, and a table that is migrated',
    'test/features/added-indexes/adding.test.ts: a migration of the table comes first',
    'test/features/added-indexes/adding.test.ts: a version that comes up beside the table keeps its definition',
  ],
  'Snapshots and earlier states are read without an index that came later.': [
    'test/features/added-indexes/adding.test.ts: snapshots and earlier states show what there was before',
  ],
  'The fields and the key of a version never change.': [
    'test/features/interface/schemas.test.ts: refuses the same version with another definition: %s',
    'test/features/values/names.slow.test.ts: can be registered again as it is, but not with another definition',
  ],
  'properties that are `undefined` are left out': [
    'test/features/values/queries.slow.test.ts: is left out, as JSON.stringify() does',
  ],
  "`'now'` is the time of the call by the clock of the process.": [
    'test/features/migrations/field-rules.test.ts: is given the time of its insert, by the clock of the process, and keeps it',
  ],
  'an insert or upsert that leaves the field null is refused with `EncodeError`, and so is an update that sets it to null.':
    ['test/features/migrations/field-rules.test.ts: %s is refused, and nothing of its batch is written'],
  'Its type is without `null`.': [
    'test/features/types/field-rules.test.ts: are refused at run time what the compiler refuses',
  ],
  'Any other is refused with `EncodeError`.': [
    'test/features/migrations/field-rules.test.ts: %s is refused, and nothing of its batch is written',
  ],
  'A row that has neither stops the migration, and so does one with a value that `oneOf` no longer lists': [
    'test/features/migrations/field-rules.test.ts: stops the migration with %s, and leaves the old version in force',
  ],
  'Otherwise the write is refused with `EncodeError`.': [
    'test/features/migrations/field-rules.test.ts: is refused to be null while the old version is in force',
    'test/features/migrations/field-rules.test.ts: has the default of the old version there',
  ],
  'A value that does not fit its type is refused with `EncodeError`, and never bent to fit. So is a field that the schema does not have.':
    [
      'test/features/values/refusals.slow.test.ts: is refused by %s',
      'test/features/values/refusals.slow.test.ts: also refused: %s',
    ],
  '`json` and `blob` fields can be neither primary key nor index.': [
    'test/features/interface/schemas.test.ts: refuses %s',
    'src/format/ordered-key.test.ts: cannot be made of json and blobs',
  ],
};

const writing: PagePromises = {
  'committed together by `flush()`: all of them, or none.': [
    'test/features/batches/flush.test.ts: writes all of several tables, once; the batch is empty then',
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
  ],
  'If its key exists, the flush is rejected with `DuplicateKeyError`': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
  ],
  'If there is none, `RowNotFoundError`': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
  ],
  'Adds the row, or replaces it as a whole': [
    'test/features/batches/flush.test.ts: upsert replaces the whole row, and reads what an insert does',
  ],
  'Removes the row. If there is none, nothing happens': [
    'test/properties/model/database.slow.test.ts: does what the model does',
  ],
  'Removes every row that the query finds now, in the database and in the batch. Resolves to how many': [
    "test/features/batches/sub-batches.test.ts: deletes what the query finds, the batch's own writes included",
  ],
  'Each call takes the document as it is at that moment, so you may change the object afterwards.': [
    'test/features/batches/flush.test.ts: takes what was there at the call of insert, update and upsert',
  ],
  'The promise that it returns rejects if the document is refused. If you do not await it, the error rejects the next `flush()`.':
    [
      'test/features/batches/flush.test.ts: rejects its own promise and exactly one flush, which keeps the rest',
      'test/features/batches/flush.test.ts: is never an unhandled rejection, whatever the caller awaits',
    ],
  "When `flush()` resolves, the batch is durable and visible to this instance's queries. The batch is empty then, and can be used again.":
    [
      'test/features/batches/flush.test.ts: writes all of several tables, once; the batch is empty then',
      'test/simulation/crash/database-kill.slow.test.ts: holds what was acknowledged, and nothing torn, however often',
    ],
  'If `flush()` rejects, the batch keeps its operations, and nothing was written.': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
    'test/features/protocol/commit.test.ts: of the first put is plain: nothing was applied and the batch keeps its operations',
  ],
  'Its `flush()` moves them into its parent, which commits them with its own. A sub-batch that is not flushed takes no part.':
    [
      'test/features/batches/sub-batches.test.ts: moves its operations into its parent when it is flushed, to any depth',
      'test/features/batches/sub-batches.test.ts: that was not flushed takes no part, and can be flushed after its parent was',
    ],
  '`deleteWhere()` takes a query of the same instance, and refuses one of another database, a snapshot or a transaction.':
    [
      'test/features/batches/foreign.test.ts: refuses a query of another database, though a table of that name is here',
      'test/features/batches/foreign.test.ts: refuses a query of a snapshot: its rows may have changed since',
      'test/features/batches/foreign.test.ts: refuses a query of a transaction, under way or over',
    ],
  'A row that another process commits later is neither deleted nor updated, even if it matches.': [
    'test/features/batches/sub-batches.test.ts: deletes no row that others have committed since',
  ],
  'Two processes that update different fields of one row both keep their change. If they change the same field, the later commit wins.':
    [
      'test/features/protocol/commit.test.ts: resolves an update again on what the winner changed: both keep their change',
      'test/features/protocol/commit.test.ts: lets the later of two updates of the same field win',
    ],
  'a flush costs two requests, however many rows it has, beside the reads of blocks that it has to look into': [
    'test/features/requests/requests.slow.test.ts: flushing a row takes one put and one conditional read',
    'test/features/requests/requests.slow.test.ts: flushing an update of a row whose leaf is not cached reads that leaf besides',
    'test/features/batches/large-batch.slow.test.ts: is one commit: in the overlay, after the flush, merged, reopened and verified',
  ],
  'A batch may have a million rows.': [
    'test/features/batches/large-batch.slow.test.ts: is one commit: in the overlay, after the flush, merged, reopened and verified',
    'test/features/requests/cold-open.slow.test.ts: is opened and counted with two',
  ],
};

const reading: PagePromises = {
  'those in the order of an index are, and those in the order of the primary key where there are few rows to skip for each that waits.':
    ['test/features/query/skip.slow.test.ts: skips rows of the table although some of them wait to be merged'],
  '`{ count: field }` those where a field is not null.': [
    'test/features/query/aggregates.slow.test.ts: skip null, and are null where nothing is left',
  ],
  'It resolves to `undefined` if there is none.': [
    'test/features/query/row-by-key.test.ts: gives the row if it is there, in the blocks or in a commit, and if no commit has deleted it',
  ],
  'is the key of no row, so that an application may pass on what it was given; a value of another kind is an `InvalidQueryError`.':
    [
      'test/features/values/queries.slow.test.ts: is the key of no row, wherever one row is asked for',
      'src/query/conditions/comparison.test.ts: is named, with the field and what is taken',
    ],
  'Several conditions must all hold.': [
    'test/features/values/queries.slow.test.ts: ANDs conditions, also two on one field',
  ],
  'Rows come in the order of the primary key, unless `orderBy` says otherwise. A second `orderBy` decides among equals, and the primary key among what is still equal.':
    [
      'test/features/values/queries.slow.test.ts: of two fields sorts by the second what ties in the first, and ties by primary key',
    ],
  'the thousandth page costs as much as the first.': [
    'test/features/query/skip.slow.test.ts: costs as much as the first page does',
  ],
  '`execute()` resolves to an array of plain objects, which are yours to change.': [
    'test/features/values/queries.slow.test.ts: are fresh plain objects, whatever is done to them',
  ],
  'A query never changes.': [
    'test/features/query/builder.test.ts: a query never changes: what is made of it is another one, whatever call made it',
  ],
  '`first()` gives the first row or `undefined`.': [
    'test/features/query/builder.test.ts: first gives a row or undefined',
  ],
  'only a few of them are in memory at a time.': [
    'test/features/memory/read-ahead.slow.test.ts: has a loop take rows in the order of an index where there is no room to sort them',
    'test/features/memory/read-ahead.slow.test.ts: holds no more than the budget has room for',
  ],
  'All of them are of one state of the database.': [
    'test/features/query/builder.test.ts: sees one state from its first row to its last',
  ],
  'holds on to that state as a snapshot does, which takes two writes.': [
    'test/features/snapshots/long-loops.slow.test.ts: pins what it reads once it has taken ten seconds, and not before',
    'test/features/snapshots/long-loops.slow.test.ts: holds on to a state that a merge has replaced, without waiting for ten seconds',
  ],
  'has all loops hold on before it deletes anything, and one of another node waits for loops': [
    'test/features/snapshots/long-loops.slow.test.ts: outlives gc() of its own instance at once, where %s meanwhile',
    'test/features/snapshots/long-loops.slow.test.ts: of another instance outlives gc(), also while it works on one row',
  ],
  'nothing goes for its age, neither commits and uploads nor snapshots and history, and the log says so': [
    'test/features/maintenance/clocks.test.ts: by %i days, on a folder, trims nothing, condemns nothing, and says why',
    'test/features/maintenance/clocks.test.ts: deletes no history, ends no snapshot, and says why',
  ],
  'such a loop ends with `SnapshotExpiredError`, and never gives a wrong row.': [
    'test/features/snapshots/long-loops.slow.test.ts: whose state was collected before it could hold on to it says so, and gives no wrong row',
  ],
  'Runs by `gcInterval` wait likewise, also where no other node takes turns.': [
    'test/features/snapshots/long-loops.slow.test.ts: that others merge past before it holds on outlives %s',
  ],
  'a `signal` that is no `AbortSignal` is an `InvalidOptionError` before anything happens.': [
    'test/features/values/signals.slow.test.ts: may not be %s',
  ],
  '`not(...)` matches just the rows that do not match what is in it.': [
    'test/features/query/clauses.test.ts: are null-safe: not() matches just what its clause does not',
  ],
  '`or()` of nothing matches no row, and `and()` of nothing every row.': [
    'test/features/query/clauses.test.ts: match every row, or none, where they are empty',
  ],
  '`BETWEEN`, `PREFIX` and an `or` on one field read ranges of its index.': [
    'test/features/query/clauses.test.ts: BETWEEN and PREFIX are ranges of an index or of the primary key',
    'test/features/query/clauses.test.ts: an OR on one field is several ranges, in order',
  ],
  'An `or` on several fields reads several indexes, if each of its branches has one, and no row twice.': [
    'test/features/query/clauses.test.ts: an OR on several fields is a union without duplicates, if each branch has a range',
  ],
  'Whatever is inserted and deleted between two pages, no row that stays is shown twice or left out.': [
    'test/features/query/pages.slow.test.ts: by %o %o repeat and skip no row that stays, whatever comes and goes',
  ],
  'a page is found at once, however far behind it is.': [
    'test/features/query/pages.slow.test.ts: begin where they should, without reading what lies before',
  ],
  'with other conditions, another order, another version of the table or another database, `page()` rejects with `BookmarkError`.':
    [
      'test/features/query/pages.slow.test.ts: refuse bookmarks of another query, another version, and damaged ones',
      'test/features/batches/foreign.test.ts: refuses a bookmark of another database, and takes one of another instance on the same',
    ],
  'Where none is left, the result is null, and a count 0.': [
    'test/features/query/aggregates.slow.test.ts: skip null, and are null where nothing is left',
  ],
  'In `groupBy()`, null is a value like any other.': [
    'test/features/query/aggregates.slow.test.ts: come in the order of their fields, null first',
  ],
  'Sums of 64-bit integers are bigints and exact. Other sums are rounded once, at the end, so that the order in which rows are read makes no difference.':
    [
      'test/features/query/aggregates.slow.test.ts: are exact for bigints',
      'src/query/exact-sum.test.ts: is the number next to the exact one, in whatever order',
    ],
  'Without conditions, `min()` and `max()` of an indexed field or of the primary key read its end, and no more.': [
    'test/features/query/aggregates.slow.test.ts: come from the ends of indexes and of the primary key, with a few requests',
    'test/features/query/aggregates.slow.test.ts: come from there together as well, of one state, unless one of them needs every row',
  ],
  'Where the query has `limit()` or `offset()`, its aggregates are of the rows that it would return.': [
    'test/features/query/aggregates.slow.test.ts: are of the rows that the query returns',
  ],
  'must fit in `maxMemoryBytes`, or the query rejects with `MemoryBudgetError`.': [
    'test/features/query/aggregates.slow.test.ts: are bounded by memory',
  ],
  'A query that needs more rejects with `BudgetExceededError`: `limit` names what there is not enough of': [
    'test/features/query/budget.slow.test.ts: of requests ends a scan before the next one, and says what would help',
    'test/features/query/budget.slow.test.ts: of bytes is held exactly',
  ],
  'Blocks count that the query needs and that are not in memory, also if another query is reading them anyway; with `overlay()`, those of rows that updates are laid over as well.':
    [
      'test/features/query/budget.slow.test.ts: is each query its own, also where several run at once',
      'test/features/memory/read-ahead.slow.test.ts: counts in a budget what it takes to overlay a batch, as what the query reads itself',
    ],
  '`ms` is the time from the call on, also where the store does not answer.': [
    'test/features/query/budget.slow.test.ts: of time ends a query that the store does not answer',
    'test/features/query/budget.slow.test.ts: of time ends work in memory as well',
  ],
};

const planning: PagePromises = {
  'the entries of several indexes are compared, and only rows that all of them name are looked up.': [
    'test/features/query/intersections.slow.test.ts: of two values reads the leaves that can have what the smaller index has, and no others',
  ],
  'the same query may use an index for a rare value, and read the table for a frequent one.': [
    'test/features/query/plans.slow.test.ts: flips from the index to the table as the value becomes frequent',
  ],
  'What costs least is run': [
    'test/features/query/plans.slow.test.ts: is within two times that of the best one, with everything in memory',
  ],
  'It reads nothing, unless a block or two of an index': [
    'test/features/query/plans.slow.test.ts: is within two times that of the best one with nothing in memory but the roots, and planning reads little',
  ],
  'Where conditions, order, and what is taken of the rows need no more than that, no row is looked up': [
    'test/features/query/index-only.test.ts: read no row, and say so',
    'test/features/query/index-only.test.ts: are counts, extremes, sums and groups too',
  ],
  'Other rows are looked up only if what their entries hold matches.': [
    'test/features/query/index-only.test.ts: test entries before rows are looked up',
  ],
  'since indexes do not tell -0 from 0.': [
    'test/features/query/index-only.test.ts: would not tell -0 from 0, and so are only folded',
  ],
  'should they be more than expected, one index is used and rows are tested for the rest.': [
    'test/features/query/intersections.slow.test.ts: gives up holding keys where they are too many, and tests rows instead',
  ],
  '`explain()` tells what it would do, without reading anything:': [
    'test/features/query/explain.test.ts: tells the steps, what each is likely to take, and what it took',
  ],
  'It serves conditions on its first fields': [
    'test/features/query/compound-indexes.test.ts: gives rows by values of its first fields and a range of the next',
  ],
  'Several `IN` lists make a range for each combination, up to 1,024.': [
    'test/features/query/compound-indexes.test.ts: takes lists of values as several ranges',
  ],
  "`orderBy('country')` alone is none: members of one country then come by primary key.": [
    'test/features/query/compound-indexes.test.ts: does not serve %s',
  ],
  'Of each value longer than 1,024 bytes it holds the beginning; the rest is compared on rows.': [
    'test/features/query/compound-indexes.test.ts: tests values on the rows of which it holds only the beginning',
  ],
  'A flush after which two would is rejected with `UniqueIndexError`, and nothing of it is written.': [
    'test/features/unique/flushes.test.ts: is refused, whatever writes it, and nothing is written',
  ],
  'of several that write the same value at the same time, one succeeds.': [
    'test/properties/histories/unique-indexes.slow.test.ts: leave a value to exactly one of those who ask for it at once',
  ],
  'What counts is what comes of the whole batch': [
    'test/features/unique/flushes.test.ts: may be swapped, handed on and taken over in one batch',
  ],
  'Null agrees with nothing, not even with null': [
    'test/features/unique/flushes.test.ts: may be null as often as one likes',
  ],
  'Values are compared whole, however long they are.': [
    'test/features/unique/flushes.test.ts: is compared whole, however little of it the index holds',
  ],
  'Values that an `update()` leaves as they are cost nothing.': [
    'test/features/unique/flushes.test.ts: that leaves its values as they are looks for none of them',
  ],
  'null comes first, then values by size. Strings compare by code point': [
    'test/features/values/order.slow.test.ts: of %s: plain, indexed and as primary key',
    'src/base/order.test.ts: orders by code point, not by UTF-16 code unit',
  ],
  'Null never matches `<`, `<=`, `>`, `>=`, `BETWEEN` or `PREFIX`.': [
    'src/query/conditions/comparison.test.ts: with null tests for null, or matches nothing',
    'test/features/values/queries.slow.test.ts: finds what the rules say, in every stage, with an index and without',
  ],
  'A text that is no UUID equals no `uuid`, and has no place in their order.': [
    'src/query/conditions/comparison.test.ts: a text that is no UUID equals no %s, and has no place among them',
  ],
  '`json` fields have no order: they can only be compared with null.': [
    'src/query/conditions/comparison.test.ts: takes only = and != against null',
    'test/features/values/queries.slow.test.ts: takes no order and no value of JSON but null',
  ],
  'Its result is compared with `===`, so only `=` is allowed.': [
    'test/features/values/functions.test.ts: is compared by strict equality, together with other conditions, in every stage',
    'test/features/values/functions.test.ts: takes no operator but =',
  ],
  'It hides a field of the same name.': [
    'test/features/values/functions.test.ts: wins over a field of its name, and whoever registers the second of them is warned',
  ],
  'Queries give the same rows with the index and without it.': [
    'test/properties/random/function-indexes.test.ts: give right rows, and no findings (seed %i)',
  ],
  '`verify()` finds such entries, and `repair()` makes the index anew.': [
    'test/features/function-indexes/care.test.ts: find entries that the function does not make, and make the index anew',
  ],
  'A function that is registered without a version has no part in the index.': [
    'test/features/function-indexes/editions.test.ts: has no part in the index, which is said once',
  ],
  'Up to four versions are kept; what no node has kept up for 256 merges is given up.': [
    'test/features/function-indexes/editions.test.ts: waits where as many versions are in use',
    'test/features/function-indexes/editions.test.ts: has the old edition go once nobody has kept it up for 256 merges',
  ],
  'A node without the function, or with another version, can write, read and merge everything. It leaves the index as it is.':
    [
      'test/features/function-indexes/editions.test.ts: merges, and leaves the index as it is, which is out of date then, and not used',
    ],
  'A replica uses the index, and makes nothing.': [
    'test/features/function-indexes/queries.test.ts: reads what a snapshot shows, and a replica too',
  ],
  'Results of other types, or out of its range, are found all the same, by calling the function for those rows.': [
    'test/features/function-indexes/queries.test.ts: of type %i is found as === has it, or found by looking',
  ],
  'If the function throws for any row, or returns a promise, the index is not used, and queries reject with `FunctionError` when they come to that row.':
    ['test/features/function-indexes/queries.test.ts: is an error for as long as it fails on any row'],
  'It cannot be unique, and rows do not come in its order.': [
    'test/features/function-indexes/care.test.ts: refuses %j',
  ],
  "those of a sub-batch together with its parent's.": [
    'test/features/batches/sub-batches.test.ts: shows batch and sub-batch in every kind of query',
  ],
};

const transactions: PagePromises = {
  'A transaction begins with everything that was committed before the call, on any node, for two reads more than a flush takes.':
    [
      'test/features/transactions/attempts.test.ts: shows everything that was committed before the call, also to one that only reads or throws',
      'test/features/transactions/attempts.test.ts: of a transaction that nobody disturbs are two reads, and those of a flush',
    ],
  "All reads are of one state of the database, with the transaction's own writes on top.": [
    'test/features/transactions/attempts.test.ts: is one state from beginning to end',
    'test/features/transactions/attempts.test.ts: is its own writes, and nobody else does',
  ],
  'Triggers fire, and what they read and write belongs to the transaction too.': [
    'test/features/transactions/triggers-and-blobs.test.ts: fire, and what they add is committed as well',
    'test/features/transactions/triggers-and-blobs.test.ts: make what they read part of what the transaction has read',
  ],
  'its writes are committed at once, if nothing that it read has changed. Whatever a query could have found counts as read':
    [
      'test/features/transactions/serializable.test.ts: loses no update',
      'test/features/transactions/serializable.test.ts: lets no two write after reading what the other one writes',
      'test/features/transactions/serializable.test.ts: lets no row appear in what was counted by %s',
    ],
  'Rows that its conditions exclude do not count.': [
    'test/features/transactions/predicates.test.ts: a change makes no other attempt',
  ],
  'two transactions that update different fields of it, unread, both keep their change.': [
    'test/features/transactions/serializable.test.ts: of a row that is only updated leaves both changes',
  ],
  'After 16 attempts (`maxAttempts`) the transaction rejects with `TransactionConflictError`.': [
    'test/features/transactions/attempts.test.ts: end with TransactionConflictError',
    'test/features/transactions/attempts.test.ts: are 16 unless it is said otherwise, with pauses between that grow',
  ],
  'If the function throws, nothing is written, and the transaction rejects with its error.': [
    'test/features/transactions/attempts.test.ts: of the function are passed on, and nothing is written',
  ],
  'Await whatever reads or writes through `tx`: after the function has returned, it rejects with `BatchStateError`.': [
    'test/features/transactions/attempts.test.ts: takes no more writes and reads',
  ],
  'A transaction costs the requests of a flush and two reads; one that only reads costs the two reads and cannot conflict.':
    [
      'test/features/transactions/attempts.test.ts: of a transaction that nobody disturbs are two reads, and those of a flush',
      'test/features/transactions/attempts.test.ts: of one that only reads are two, or none',
    ],
  'With `{ fresh: false }` it begins with what the instance knows, as a query does': [
    'test/features/transactions/attempts.test.ts: is only as fresh as what a query sees, if that is asked for',
  ],
};

const triggers: PagePromises = {
  'What it adds is committed together with the mutation.': [
    'test/features/triggers/triggers.test.ts: is committed with it: a flush that is rejected writes neither',
  ],
  'The row: as it will be stored; for an update, the whole row after it; for a delete, the row as it was, or only its primary key where no such row is known':
    [
      'test/features/triggers/triggers.test.ts: of an insert is the row as it will be stored',
      'test/features/triggers/triggers.test.ts: of an update is the whole row after it',
      'test/features/triggers/triggers.test.ts: of a delete is the row before it, or only the key where there is none',
    ],
  'Adds to the batch that is being changed. `flush()` on it rejects': [
    'test/features/triggers/triggers.test.ts: cannot be flushed',
  ],
  'which see the writes of the batch, this mutation among them': [
    "test/features/triggers/triggers.test.ts: let a trigger see the batch's own writes, and those of the batch's parents",
  ],
  'An upsert is one of the first two': [
    'test/features/triggers/triggers.test.ts: of an upsert comes as that of an insert or of an update, whichever it is',
  ],
  'A trigger that throws refuses the mutation. Nothing of it is in the batch then, and the next `flush()` rejects as well.':
    ['test/features/triggers/failures.test.ts: fails the mutation and one flush, and leaves nothing of it'],
  'Triggers run in the order in which they were registered.': [
    'test/features/triggers/triggers.test.ts: fires for its operation, and * for all, in the order of registration',
  ],
  'What a trigger adds fires triggers too, up to 32 deep. Deeper is a `TriggerDepthError`.': [
    'test/features/triggers/triggers.test.ts: may be 32 levels deep, not more (through sub-batches: %s)',
  ],
  'rejects with `BatchStateError`, and so does the flush that the trigger is part of.': [
    'test/features/triggers/ended.test.ts: is refused, and fails the flush that the trigger is part of',
    'test/features/triggers/ended.test.ts: is refused aloud once that is committed or dropped',
  ],
  'A trigger runs once for a mutation: not again when a sub-batch is moved into its parent, or when a flush is repeated.':
    [
      'test/features/triggers/triggers.test.ts: does not fire again when a sub-batch is flushed into its parent',
      'test/features/triggers/triggers.test.ts: fires when the mutation is added, not when it is flushed',
    ],
};

const blobs: PagePromises = {
  'It can be read only once: if it fails, `clear()` the batch': [
    'test/features/blobs/uploads.test.ts: is never taken for a shorter one: the batch is refused until the row has another value',
  ],
  'A stream is read by the flush, and never held in memory as a whole.': [
    'test/features/blobs/uploads.test.ts: is not read before the flush, and not at all if the batch is cleared',
    'test/features/blobs/gibibyte.slow.test.ts: 1 GiB is streamed into a folder and back in less than 100 MB',
    'test/servers/s3/requests.slow.test.ts: hold a few parts in memory, not all',
  ],
  '`start` and `end` are offsets in bytes. `end` is not included. Negative offsets count from the end': [
    'test/features/blobs/blobs.slow.test.ts: is what Buffer.subarray gives, as a buffer and as a stream',
  ],
  'Only the part that you ask for is fetched, in chunks of 64 KiB, and every chunk is checked against its checksum.': [
    'test/features/blobs/blobs.slow.test.ts: fetches the chunks that it touches, and nothing else',
    'test/features/blobs/blobs.slow.test.ts: in one chunk hurts that chunk only: %s',
  ],
  'A browser saves what it would run otherwise, such as HTML and SVG;': [
    'test/servers/s3/blobs.slow.test.ts: are downloaded as %s, %s',
  ],
  'On a folder or in memory there is no such thing, and it rejects with `NotSupportedError`.': [
    'test/features/blobs/blobs.slow.test.ts: is not supported by %s',
  ],
  'The reference of another row or field is refused with `BlobReferenceError`': [
    'test/features/blobs/blobs.slow.test.ts: of its own may be written back by the row; any other is refused',
  ],
  'When the row is deleted, or the field gets another value, `getBlob()` no longer finds the blob.': [
    'test/features/blobs/blobs.slow.test.ts: list what was replaced, set to null, or went with its row, in every way in which that happens',
    'test/features/blobs/blobs.slow.test.ts: that is unknown is BlobNotFoundError, for every method',
  ],
  'Two system tables say which blobs there are. You can query them, and not write to them.': [
    'test/features/blobs/blobs.slow.test.ts: name the owner, the size and the content type, and can be read like any other',
    'test/features/batches/flush.test.ts: may not write to system tables',
  ],
};

const cluster: PagePromises = {
  'What one of them fails with is in `failed`, with its prefix, and the others go on.': [
    'test/features/interface/for-each-database.test.ts: goes on where one fails, and says which',
  ],
  'An option that is wrong is refused with `InvalidOptionError` before any database is opened.': [
    'test/features/interface/for-each-database.test.ts: refuses a wrong %s before it opens any',
  ],
  'up to 256, each with a `nodeId` of its own.': ['test/features/interface/options.test.ts: %s: %s'],
  'That costs no request that an instance with a number would not make. Two instances never get the same id that way.':
    [
      'test/features/protocol/auto-nodes.test.ts: takes no request more than a configured id',
      'test/features/protocol/auto-nodes.test.ts: gives each of many that start at once an id of its own',
    ],
  'It keeps the id while it runs, and `stop()` gives it back.': [
    'test/features/protocol/auto-nodes.test.ts: keeps its id while it runs, whether or not anything happens',
    'test/features/protocol/auto-nodes.test.ts: gives the id back when it is stopped, and the next one takes it',
  ],
  'The id of an instance that died is free again half an hour after its last sign of life. An instance that polls at the interval gives one every ten minutes, which is a write; one on demand gives one with each merge.':
    [
      'test/features/protocol/auto-nodes.test.ts: takes the id of one that died, once that has given no sign for half an hour',
      'test/features/protocol/auto-nodes.test.ts: writes Block 0 six times an hour at most while nothing happens',
    ],
  'A number that the options give is not taken by others, and an instance that had taken it gives way.': [
    'test/features/protocol/auto-nodes.test.ts: gives way to an instance whose options name the id',
  ],
  "Where all 256 are taken, `start()` rejects with `NoFreeNodeIdError`. The option `nodes` needs numbers, and is refused beside `'auto'`.":
    [
      'test/features/protocol/auto-nodes.test.ts: does not start where all ids are taken, and says so',
      "test/features/interface/options.test.ts: refuses a list of nodes beside nodeId 'auto'",
    ],
  'It shows what was committed up to an interval ago': [
    'test/features/replicas/staleness.test.ts: is at most an interval where it is looked at in each',
  ],
  '`db.position` only goes up.': [
    'test/features/replicas/replica.test.ts: shows states in their order, each of them whole',
  ],
  'by mistake or while one replaces the other, are safe.': [
    'test/features/protocol/block0.test.ts: happens at random between nodes, even of one nodeId, and loses nothing',
  ],
  'A query sees one state of the database from start to end, whatever is written meanwhile.': [
    'test/features/query/builder.test.ts: sees one state from its first row to its last',
  ],
  'An instance sees its own flushes at once.': [
    'test/features/batches/flush.test.ts: writes all of several tables, once; the batch is empty then',
  ],
  'A query never shows a state that is older than two intervals': [
    'test/features/protocol/turns.slow.test.ts: a query shows what was committed two intervals ago',
    'test/features/protocol/reading.test.ts: comes before a query of an instance whose view is older than two intervals',
  ],
  '`db.refresh()` catches up with everything that was committed anywhere before the call.': [
    'test/features/protocol/reading.test.ts: sees what was committed before it was called, although one is under way',
  ],
  'If the store cannot be reached then, the query rejects rather than show old rows, unless option `maxStaleWaitMs` says how long it waits at most before it shows them.':
    [
      'test/features/protocol/stale-reads.test.ts: with 0 does not wait at all, and without the option as long as it takes',
      'test/features/protocol/stale-reads.test.ts: shows what there is after the time of the option, and the next ones at once',
    ],
  'the pause doubles, up to a minute, while nobody uses the instance; a query, a flush or `refresh()` brings it back to one interval':
    [
      'test/features/protocol/turns.slow.test.ts: looks less and less often while nobody asks',
      'test/features/protocol/turns.slow.test.ts: looks within an interval after a query, a flush or a refresh',
    ],
  'none, but to merge what is pending': [
    'test/features/protocol/turns.slow.test.ts: asks for nothing and has no timer while nothing is pending',
    'test/features/protocol/turns.slow.test.ts: has a timer until what it flushed is merged, and none after that',
  ],
  'where the view is older than two intervals, the query refreshes first, for two small reads': [
    'test/features/requests/requests.slow.test.ts: refreshing takes two small reads',
    'test/features/protocol/turns.slow.test.ts: a query shows what was committed two intervals ago',
  ],
  "And whatever was committed before `start()` is shown in any case: with `'onDemand'` only the first call waits until the log has been looked at":
    [
      'test/features/protocol/look-behind.slow.test.ts: shows what is in the log: %s',
      'test/features/protocol/look-behind.slow.test.ts: that fails is told by the call that waits for it, and the next call looks again: %s',
    ],
  '`mergePolicy` lets commits wait in the log until there are `minCommits` of them, or the oldest has waited for `maxWaitMs`.':
    [
      'test/features/protocol/turns.slow.test.ts: waits for so many commits',
      'test/features/protocol/turns.slow.test.ts: merges when one has waited long enough (%s)',
    ],
  'Queries show commits that wait like any others, and they are just as durable.': [
    'test/features/query/pending-commits.test.ts: every plan gives the rows by %s',
    'test/features/requests/requests.slow.test.ts: reading what is flushed but not merged takes nothing',
  ],
  'or two dozen large ones of a table, they are merged at once, by whoever commits.': [
    'test/features/protocol/backlog.slow.test.ts: merges out of turn as soon as there is much',
    'test/features/protocol/turns.slow.test.ts: does not hold up two dozen large commits of a table, which are slow to read from',
    'test/features/protocol/backlog.slow.test.ts: holds a bounded number of commits, however small they are',
  ],
  'it also rests after each merge, three times as long as that took and a minute at most': [
    'src/merge/merge-policy.test.ts: rests after a merge that took long while it is alone, and not once there are others',
    'src/merge/merge-policy.test.ts: rests for a minute at most',
  ],
  'An instance on demand has no timer while nothing is pending, so that a script which forgets to stop it may end.': [
    'test/features/protocol/turns.slow.test.ts: asks for nothing and has no timer while nothing is pending',
  ],
  'A node that starts is registered in the database with its first turn, and shares write authority from then on.': [
    'test/features/protocol/rotation.slow.test.ts: are registered with their first turns',
  ],
  'One that is stopped leaves the list. One that dies leaves it after some turns; until then the node after it takes its turns, so that at most one of them keeps commits waiting.':
    [
      'test/features/protocol/rotation.slow.test.ts: leaves the list, and its turns go round the others',
      'test/features/protocol/rotation.slow.test.ts: keeps commits waiting for one slot, once; after that the next node takes its turns',
      'test/features/protocol/rotation.slow.test.ts: is struck off the list in the end, and enters it again when it comes back',
    ],
  'if they are wrong, some merges are made in vain.': [
    'test/features/protocol/rotation.slow.test.ts: cost lost merges, and no commit',
  ],
  'A node that is not in it reads and writes as always, and leaves merging to the others.': [
    'test/features/protocol/rotation.slow.test.ts: says who shares authority, whoever is registered',
    'test/features/interface/lifecycle.slow.test.ts: a node whose turn it never is merges nothing',
  ],
  'flushes fail with `BackpressureError` once an eighth of `maxMemoryBytes` has been passed twice over, and nothing that was flushed before is lost.':
    [
      'test/features/protocol/backlog.slow.test.ts: refuses flushes once there is no room, loses nothing, and takes them again when there is',
    ],
  'works off what has piled up in steps, within its memory': [
    'test/features/protocol/backlog.slow.test.ts: is worked off step by step when the database is opened',
  ],
  "An instance with `role: 'replica'` follows the database and never writes to the store.": [
    'test/features/replicas/replica.test.ts: refuses all that writes before anything is asked of the store, and keeps the batch',
    'test/features/replicas/replica.test.ts: never merges, however much is pending, and shows it all',
    'test/repo/docs/policies.slow.test.ts: allow replicas all that they do, which is to read',
  ],
  'a replica takes no turns at merging and is on no list.': [
    'test/features/replicas/replica.test.ts: leaves no trace in Block 0, and two may share an id, also with a writer',
  ],
  'reject with `ReadOnlyError` before anything is sent.': [
    'test/features/replicas/replica.test.ts: refuses all that writes before anything is asked of the store, and keeps the batch',
  ],
  '`refresh({ atLeast })` with a position only where it must: so a client that wrote elsewhere reads its own writes.': [
    'test/features/replicas/replica.test.ts: bring a replica up to what a writer wrote',
  ],
  "With `polling: 'onDemand'` it asks the store for nothing until somebody asks it.": [
    'test/features/replicas/replica.test.ts: is nothing on demand, until a query finds the view too old',
  ],
  'It creates no database: without one `start()` rejects with `NotADatabaseError`.': [
    'test/features/replicas/replica.test.ts: creates no database, and says who does',
  ],
  'a loop that takes longer than the blocks that it reads are kept ends with `SnapshotExpiredError`.': [
    'test/features/replicas/replica.test.ts: holds on to nothing, and ends if what it reads is collected',
  ],
  'calls that catch up reject with `BackpressureError` until then.': [
    'test/features/replicas/replica.test.ts: says so, merges nothing, and goes on once somebody else has merged',
  ],
  '`history` and `gcInterval` are refused.': ['test/features/replicas/replica.test.ts: are checked'],
};

const states: PagePromises = {
  '`after: 0` begins at the beginning; without `after` it begins at `db.position`.': [
    'test/features/changes/changes.test.ts: by default are those that the instance does not show yet',
    'test/features/changes/changes.test.ts: are where it is taken up again, wherever that is',
  ],
  'Each commit is given once, in order.': [
    'test/features/changes/changes.test.ts: are where it is taken up again, wherever that is: no commit twice, and none left out',
    'test/features/changes/following.slow.test.ts: tells every commit once and in order: seed %i',
  ],
  'Changes of a commit come flush by flush, table by table and in the order of keys.': [
    'test/features/changes/changes.test.ts: says what, where, when and by whom, row by row in the order of keys',
    'test/features/changes/changes.test.ts: is one for several flushes that share it, one after the other',
  ],
  'Each is told once: in the version that you have registered if the commit holds that, else in the older one.': [
    'test/features/migrations/onlookers.test.ts: tells each change once, in the version of the reader where the commit holds that',
  ],
  'The loop ends with `break`, with `{ signal }` (`AbortedError`) and when the instance is stopped (`NotStartedError`).':
    [
      'test/features/changes/changes.test.ts: by break, or return(), leaves nothing behind, also while a commit is waited for',
      'test/features/changes/changes.test.ts: comes with the signal',
      'test/features/changes/changes.test.ts: comes when the instance is stopped, which leaves no timer',
    ],
  'While the store cannot be reached it waits.': [
    'test/features/changes/changes.test.ts: comes where the credentials do not allow to read, and not where the store fails for a while',
  ],
  'Slow readers hold nothing in memory: what is merged meanwhile is read from the log again, a read a commit.': [
    'test/features/changes/following.slow.test.ts: is nothing while its reader is busy: it holds nothing back, and reads again',
    'test/features/changes/following.slow.test.ts: is not held in memory: its rows are read as they are asked for',
  ],
  'What the instance itself commits, and what it has just caught up with, costs nothing more. A loop that waits looks at the store once an interval, whatever `polling` says.':
    [
      'test/features/changes/following.slow.test.ts: is nothing for what the instance itself commits',
      'test/features/changes/following.slow.test.ts: shows others’ commits within an interval, polling %s',
    ],
  'A position before that is a `ChangesExpiredError`.': [
    'test/features/changes/changes.test.ts: that the log begins after are gone, and the error says what to do',
    'test/features/changes/changes.test.ts: are those of a retention that gc is given',
  ],
  'One that nobody can have been given yet is an `InvalidOptionError`': [
    'test/features/changes/changes.test.ts: ahead of the instance are looked for, and refused where nobody has them',
  ],
  'It shows everything that was committed before the call, by any process, and nothing after it.': [
    'test/features/snapshots/holding.test.ts: shows what was committed before, by whomever, merged or not, and nothing after',
  ],
  'Rows and blobs that were deleted since are still there.': [
    'test/features/snapshots/holding.test.ts: reads blobs of rows that were deleted since, until it is released',
  ],
  'While a snapshot is held, nothing that it shows is deleted.': [
    'test/features/snapshots/holding.test.ts: keeps its blocks through merges, gc by others and their restarts',
  ],
  '`stop()` releases all that the instance holds.': [
    'test/features/snapshots/expiry.test.ts: releases what is held, and leaves no timer',
  ],
  '`db.snapshots()` lists the snapshots of all processes. There can be 1,000.': [
    'test/features/snapshots/holding.test.ts: lists what is held, by whichever node, for every node',
    'test/features/snapshots/holding.test.ts: is refused where there are a thousand, and possible again when one is released',
  ],
  'A snapshot is renewed by itself as long as its process runs. If the process dies, the snapshot stays until `expiresAfterMs` (an hour) has passed, and five minutes more':
    [
      'test/features/snapshots/expiry.test.ts: is renewed, and outlives its time to live three times over',
      'test/features/snapshots/expiry.test.ts: stays until its time is over and clocks may differ, and is ended by the gc after that',
    ],
  'After its end every call rejects with `SnapshotExpiredError`. A process that was asleep for too long gets that error as well, and never wrong rows.':
    [
      'test/features/snapshots/expiry.test.ts: learns it, whether or not it has what it asks for in memory',
      'test/features/snapshots/expiry.test.ts: gets an error and never wrong rows before it has learnt it',
    ],
  'last instance that is started with it decides. Keeping a state costs one write': [
    'test/features/snapshots/history.test.ts: is a setting of the database that every node follows, and that stays',
    'test/features/snapshots/history.test.ts: costs one put a merge, and none while it is off',
  ],
  'A state that is not kept is a `SnapshotExpiredError`.': [
    'test/features/snapshots/history.test.ts: ends with its window',
  ],
};

export const guide: PagePromises = {
  ...tables,
  ...writing,
  ...reading,
  ...planning,
  ...transactions,
  ...triggers,
  ...blobs,
  ...cluster,
  ...states,
};
