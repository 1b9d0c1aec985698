import type { PagePromises } from '../page-promises.ts';

const watch = 'test/features/live/watch.test.ts';
const histories = 'test/features/live/histories.test.ts';
const expiry = 'test/features/live/expiry.test.ts';

export const liveQueries: PagePromises = {
  'A row that did not change is the same object as in the result before, so that a page can compare by `===`.': [
    `${watch}: come at once, and again with each change, with the differences`,
    `${histories}: gives what a fresh run gives, on an instance that writes (seed %i)`,
  ],
  'Each result is of a later state than the one before, except where nothing but time has passed and rows have [expired](expiry.md), or where a migration has ended, which is no commit.':
    [
      `${histories}: gives what a fresh run gives, on an instance that writes (seed %i)`,
      `${histories}: gives what a fresh run gives, on a replica (seed %i)`,
      `${expiry}: drops rows at their times, without a commit and without requests`,
    ],
  'That takes no requests while the index of the field is in memory.': [
    `${expiry}: drops rows at their times, without a commit and without requests`,
  ],
  'If your loop takes long, you get the newest result next, with the differences from the one that you had before.': [
    `${watch}: are those of the newest state for a loop that takes long`,
  ],
  'Those of others show within `writeForwardInterval`, with any `polling`: while a query is watched, the instance looks at the store once an interval.':
    [
      `${watch}: show the commits of others within the interval, with polling %s`,
      `${watch}: leaves nothing behind: the instance looks at the store as seldom as before`,
    ],
  'A commit that cannot change the result costs no read: its rows are tested for the conditions, the order and the limit of the query.':
    [
      `${watch}: do not come for commits that leave them as they are, which cost no read`,
      `${watch}: are not looked for after a commit of a row beyond the limit`,
    ],
  'A loop ends with `break`, and with `{ signal }` (`AbortedError`).': [
    `${watch}: ends with an error that says what was aborted`,
    `${watch}: are those of the newest state for a loop that takes long`,
  ],
  'It also waits while the database is stopped, and goes on after the next `start()`.': [
    `${watch}: go on after a stop and a start, with what changed meanwhile`,
  ],
  'Queries of snapshots and transactions, and queries with `overlay()`, cannot be watched (`NotSupportedError`): their state does not change, or is yours alone.':
    [`${watch}: is refused where the database is not started, and for queries that are not of the database itself`],
};
