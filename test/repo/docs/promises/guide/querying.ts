import type { PagePromises } from '../page-promises.ts';

export const querying: PagePromises = {
  'While there are unmerged commits, a query in the order of an index reads the skipped rows too. So does a query in the order of the primary key, if it skips only a few rows for each unmerged one.':
    ['test/features/query/skip.slow.test.ts: skips rows of the table although some of them wait to be merged'],
  '`{ count: field }` counts rows in which the field is not null.': [
    'test/features/query/aggregates.slow.test.ts: skip null, and are null where nothing is left',
  ],
  'It resolves to `undefined` if there is none.': [
    'test/features/query/row-by-key.test.ts: gives the row if it is there, in the blocks or in a commit, and if no commit has deleted it',
  ],
  'It also does so for a value of the right kind that cannot be a key, such as 300 for a `uint8` or a text that is not a UUID for a `uuid`. So an application may pass on ids from user input. A value of another kind, such as a text for an integer, is an `InvalidQueryError`.':
    [
      'test/features/values/queries.slow.test.ts: is the key of no row, wherever one row is asked for',
      'src/query/conditions/comparison.test.ts: is named, with the field and the allowed operators',
    ],
  '`getCached` returns `null` if there is no such row, and `undefined` if memory does not tell. It makes no request and shows the state that `get` shows.':
    [
      'test/features/query/get-cached.test.ts: gives a new object for each call, null for no row, and undefined while the blocks are not in memory',
      'test/features/query/get-cached.test.ts: makes no request, also for a row that is not in memory, and reads nothing in the background',
      'test/features/query/get-cached.test.ts: shows flushed commits that are not merged, deletions too, and no batch that is not flushed',
    ],
  'If there are several conditions, a row must meet all of them.': [
    'test/features/values/queries.slow.test.ts: ANDs conditions, also two on one field',
  ],
  'Rows come in the order of the primary key, unless `orderBy` says otherwise. A second `orderBy` orders rows that are equal in the first, and the primary key orders rows that are still equal.':
    [
      'test/features/values/queries.slow.test.ts: of two fields sorts ties in the first by the second, and ties in both by primary key',
    ],
  'the thousandth page costs as much as the first.': [
    'test/features/query/skip.slow.test.ts: costs as much as the first page does',
  ],
  '`execute()` resolves to an array of plain objects. You may change them.': [
    'test/features/values/queries.slow.test.ts: are fresh plain objects, independent of each other',
  ],
  'A query object never changes.': [
    'test/features/query/builder.test.ts: a query never changes: every call returns another one',
  ],
  '`first()` gives the first row or `undefined`.': [
    'test/features/query/builder.test.ts: first gives a row or undefined',
  ],
  'only a few of them are in memory at a time.': [
    'test/features/memory/read-ahead.slow.test.ts: has a loop take rows in the order of an index where there is no room to sort them',
    'test/features/memory/read-ahead.slow.test.ts: holds no more than the budget has room for',
  ],
  '`for await` reads rows one by one, all from one state of the database.': [
    'test/features/query/builder.test.ts: sees one state from its first row to its last',
  ],
  'pins that state as a snapshot does. This takes two writes.': [
    'test/features/snapshots/long-loops.slow.test.ts: pins its state once it has taken ten seconds, and not before',
    'test/features/snapshots/long-loops.slow.test.ts: holds on to a state that a merge has replaced, without waiting for ten seconds',
  ],
  'has all loops pin their states before it deletes anything, and `gc()` of another instance [waits for loops](garbage.md).':
    [
      'test/features/snapshots/long-loops.slow.test.ts: outlives gc() of its own instance at once, where %s meanwhile',
      'test/features/snapshots/long-loops.slow.test.ts: of another instance outlives gc(), also while it works on one row',
    ],
  'As in every call, a `signal` of another type is refused with `InvalidOptionError` before anything happens.': [
    'test/features/values/signals.slow.test.ts: may not be %s',
  ],
  '`not(...)` matches exactly the rows that the clause inside does not match.': [
    'test/features/query/clauses.test.ts: are null-safe: not() matches exactly the rows that its clause does not',
  ],
  '`or()` without arguments matches no row, and `and()` without arguments matches every row.': [
    'test/features/query/clauses.test.ts: match every row, or none, where they are empty',
  ],
  '`BETWEEN`, `PREFIX` and an `or` on one field read ranges of its index.': [
    'test/features/query/clauses.test.ts: BETWEEN and PREFIX are ranges of an index or of the primary key',
    'test/features/query/clauses.test.ts: an OR on one field is several ranges, in order',
  ],
  'An `or` on several fields reads several indexes, if each of its branches has one, and returns no row twice.': [
    'test/features/query/clauses.test.ts: an OR on several fields is a union without duplicates, if each branch has a range',
  ],
  'So inserts and deletes between two pages do not make other rows appear twice or disappear.': [
    'test/features/query/pages.slow.test.ts: by %o %o repeat and skip no row that stays, while others come and go',
  ],
  '`page()` finds a page at once, however far down it is.': [
    'test/features/query/pages.slow.test.ts: begin at the right row, without reading the rows before it',
  ],
  'with other conditions, another order, another version of the table or another database, `page()` rejects with `BookmarkError`.':
    [
      'test/features/query/pages.slow.test.ts: refuse bookmarks of another query, another version, and damaged ones',
      'test/features/batches/foreign.test.ts: refuses a bookmark of another database, and takes one of another instance on the same',
    ],
  'If no value is left, the result is null, and a count is 0.': [
    'test/features/query/aggregates.slow.test.ts: skip null, and are null where nothing is left',
  ],
  'In `groupBy()`, null is a value like any other.': [
    'test/features/query/aggregates.slow.test.ts: come in the order of their fields, null first',
  ],
  'Sums of 64-bit integers are exact bigints. Other sums are rounded once, at the end, so the order in which rows are read makes no difference.':
    [
      'test/features/query/aggregates.slow.test.ts: are exact for bigints',
      'src/query/aggregate.test.ts: is the number next to the exact one, in any order',
    ],
  'Without conditions, `min()` and `max()` of an indexed field or of the primary key read only the end of the index.': [
    'test/features/query/aggregates.slow.test.ts: come from the ends of indexes and of the primary key, with a few requests',
    'test/features/query/aggregates.slow.test.ts: come from there together as well, of one state, unless one of them needs every row',
  ],
  'If the query has `limit()` or `offset()`, its aggregates cover only the rows that it would return.': [
    'test/features/query/aggregates.slow.test.ts: are of the rows that the query returns',
  ],
  'They must fit in `maxMemoryBytes`, or the query rejects with `MemoryBudgetError`.': [
    'test/features/query/aggregates.slow.test.ts: are bounded by memory',
  ],
  "A query that needs more rejects with `BudgetExceededError`. The error's `limit` names the limit that the query reached":
    [
      'test/features/query/budget.slow.test.ts: of requests ends a scan before the next one, and suggests a remedy',
      'test/features/query/budget.slow.test.ts: of bytes is held exactly',
    ],
  'Every block that is not in memory counts, even if another query is already reading it. With `overlay()`, so do the blocks of rows that the batch updates.':
    [
      'test/features/query/budget.slow.test.ts: is each query its own, also where several run at once',
      "test/features/memory/read-ahead.slow.test.ts: counts in a budget the reads for the overlay of a batch, like the query's own reads",
    ],
  '`ms` is the time since the call. It also passes while the store does not answer.': [
    'test/features/query/budget.slow.test.ts: of time ends a query that the store does not answer',
    'test/features/query/budget.slow.test.ts: of time ends work in memory as well',
  ],
  'Strings compare by code point, and bytes byte by byte.': [
    'test/features/values/order.slow.test.ts: of %s: plain, indexed and as primary key',
    'src/base/bytes.test.ts: orders by code point, not by UTF-16 code unit',
  ],
  'Null never matches `<`, `<=`, `>`, `>=`, `BETWEEN` or `PREFIX`.': [
    'src/query/conditions/comparison.test.ts: with null tests for null, or matches nothing',
    'test/features/values/queries.slow.test.ts: finds rows by the rules, in every stage, with an index and without',
  ],
  'A text that is not a UUID equals no `uuid`, and is neither smaller nor larger than one.': [
    'src/query/conditions/comparison.test.ts: a text that is no UUID equals no %s, and has no place among them',
  ],
  '`json` fields have no order: they can only be compared with null, and searched by `HAS` if they hold lists.': [
    'src/query/conditions/comparison.test.ts: takes only = and != against null',
    'test/features/values/queries.slow.test.ts: takes no order and no value of JSON but null',
  ],
  'Its result is compared with `===`, so only `=` is allowed, and `HAS` where the result is a list.': [
    'test/features/values/functions.test.ts: is compared by strict equality, together with other conditions, in every stage',
    'test/features/values/functions.test.ts: takes no operator but = and HAS',
    'test/features/query/lists.test.ts: can be the results of a function',
  ],
  'It hides a field of the same name.': [
    'test/features/values/functions.test.ts: wins over a field of its name, and registering the second of them logs a warning',
  ],
  'The overlay of a sub-batch includes the writes of its parent.': [
    'test/features/batches/sub-batches.test.ts: shows batch and sub-batch in every kind of query',
  ],
};
