import type { PagePromises } from '../page-promises.ts';

export const consistency: PagePromises = {
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
};
