import type { PagePromises } from '../page-promises.ts';

export const consistency: PagePromises = {
  'A query sees one state of the database from start to end, even if others write at the same time.': [
    'test/features/query/builder.test.ts: sees one state from its first row to its last',
  ],
  'An instance sees its own flushes at once.': [
    'test/features/batches/flush.test.ts: writes all of several tables, once; the batch is empty then',
  ],
  'A query never shows a state that is older than two intervals': [
    'test/features/protocol/turns.slow.test.ts: a query shows commits from two intervals ago',
    'test/features/protocol/reading.test.ts: comes before a query of an instance whose view is older than two intervals',
  ],
  '`db.refresh()` catches up with everything that was committed anywhere before the call.': [
    'test/features/protocol/reading.test.ts: sees commits from before its call, although another is under way',
  ],
  'If it cannot reach the store, the query rejects, and does not show old rows. With the option `maxStaleWaitMs` the query waits for that time, and then shows old rows.':
    [
      'test/features/protocol/stale-reads.test.ts: with 0 does not wait at all, and without the option as long as it takes',
      'test/features/protocol/stale-reads.test.ts: shows the state in memory after the time of the option, and the next queries at once',
    ],
  'the pause doubles, up to five minutes, while nobody reads; a query, a transaction or `refresh()` brings it back to one interval':
    [
      'test/features/protocol/turns.slow.test.ts: looks less and less often while nobody asks',
      'test/features/protocol/turns.slow.test.ts: looks within an interval after a query or a refresh',
    ],
  'none, except to merge pending': [
    'test/features/protocol/turns.slow.test.ts: asks for nothing and has no timer while nothing is pending',
    'test/features/protocol/turns.slow.test.ts: has a timer until its flushes are merged, and none after that',
  ],
  'if the view is older than two intervals, the query refreshes first, which takes two small reads.': [
    'test/features/requests/requests.slow.test.ts: refreshing takes two small reads',
    'test/features/protocol/turns.slow.test.ts: a query shows commits from two intervals ago',
  ],
  "A query after `start()` shows everything that was committed before `start()`, if the log is kept for more than two seconds (`logRetentionMs` of `gc()`, an hour by default). With `'onDemand'`, not `start()` but the first call reads the log, so a process that opens a database to read one row is done a round trip earlier.":
    [
      'test/features/protocol/look-behind.slow.test.ts: shows what is in the log: %s',
      'test/features/protocol/look-behind.slow.test.ts: that fails is reported by the call that waits for it, and the next call looks again: %s',
    ],
  '`mergePolicy` lets commits wait in the log until there are `minCommits` of them, or the oldest has waited for `maxWaitMs`.':
    [
      'test/features/protocol/turns.slow.test.ts: waits for so many commits',
      'test/features/protocol/turns.slow.test.ts: merges when one has waited long enough (%s)',
    ],
  'Unmerged commits are just as durable, and queries show them.': [
    'test/features/query/pending-commits.test.ts: every plan gives the rows by %s',
    'test/features/requests/requests.slow.test.ts: reading rows that are flushed but not merged takes nothing',
  ],
  'or about 24 large commits to one table, the next instance to commit merges them at once.': [
    'test/features/protocol/backlog.slow.test.ts: merges out of turn as soon as there is much',
    'test/features/protocol/turns.slow.test.ts: does not hold up two dozen large commits of a table, which are slow to read from',
    'test/features/protocol/backlog.slow.test.ts: holds a bounded number of commits, however small they are',
  ],
  'An instance that merges alone rests after each merge, three times as long as the merge took, but not more than a minute.':
    [
      'src/merge/merge-policy.test.ts: rests after a merge that took long while it is alone, and not once there are others',
      'src/merge/merge-policy.test.ts: rests for a minute at most',
    ],
  "With `'onDemand'` there is no timer while nothing is pending, so a script that forgets to call `stop()` can end.": [
    'test/features/protocol/turns.slow.test.ts: asks for nothing and has no timer while nothing is pending',
  ],
};
