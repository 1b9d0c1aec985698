import type { PagePromises } from '../page-promises.ts';

export const changes: PagePromises = {
  '`after: 0` begins with the first commit of the database; without `after` the feed begins at `db.position`.': [
    'test/features/changes/changes.test.ts: by default are those that the instance does not show yet',
    'test/features/changes/changes.test.ts: are where it is taken up again, wherever that is',
  ],
  'You get each commit once, in order.': [
    'test/features/changes/changes.test.ts: are where it is taken up again, wherever that is: no commit twice, and none left out',
    'test/features/changes/following.slow.test.ts: delivers every commit once and in order: seed %i',
  ],
  'The changes of a commit are ordered by flush, then by table, then by key.': [
    'test/features/changes/changes.test.ts: gives change, place, time and author, row by row in the order of keys',
    'test/features/changes/changes.test.ts: is one for several flushes that share it, one after the other',
  ],
  'You get each change once: in the version that you have registered if the commit holds it, otherwise in the older one.':
    [
      'test/features/migrations/onlookers.test.ts: reports each change once, in the version of the reader if the commit holds it',
    ],
  'A table that is neither registered nor stored is an `InvalidOptionError`.': [
    'test/features/changes/rows-before.test.ts: must be known, by registration or as they are stored',
  ],
  'It is read from the state right before the commit, or right before the flush, if several share it.': [
    'test/features/changes/rows-before.test.ts: shows each row as it was before each commit',
    'test/features/changes/rows-before.test.ts: is that of the flush before, where several flushes share a commit',
  ],
  'A loop that keeps up has this state in memory, so that a row costs a request only if its block is not in memory.': [
    'test/features/changes/rows-before.test.ts: costs no request where the rows are in memory, and one for each block that is not',
  ],
  'Otherwise it rejects with `ChangesExpiredError`.': [
    'test/features/changes/rows-before.test.ts: begins at an earlier state of the history',
    'test/features/changes/rows-before.test.ts: is refused where no earlier state is kept',
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
  'A slow reader holds nothing in memory: commits that are merged meanwhile are read from the log again, with one read per commit.':
    [
      'test/features/changes/following.slow.test.ts: is nothing while its reader is busy: it holds nothing back, and rereads commits merged meanwhile',
      'test/features/changes/following.slow.test.ts: is not held in memory: its rows are read as they are asked for',
    ],
  'Commits of the instance itself, and commits that it has just caught up with, cost nothing more. A loop that waits looks at the store once an interval, with any `polling`.':
    [
      'test/features/changes/following.slow.test.ts: is nothing for commits of the instance itself',
      'test/features/changes/following.slow.test.ts: shows others’ commits within an interval, polling %s',
    ],
  'With an older position, the feed rejects with `ChangesExpiredError`.': [
    'test/features/changes/changes.test.ts: before the beginning of the log are gone, and the error says what to do',
    'test/features/changes/changes.test.ts: follow the retention given to gc',
  ],
  'A position beyond the end of the log is an `InvalidOptionError`.': [
    'test/features/changes/changes.test.ts: ahead of the instance are looked for, and refused where nobody has them',
  ],
};
