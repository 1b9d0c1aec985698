import type { PagePromises } from '../page-promises.ts';

export const handlingErrors: PagePromises = {
  'It works in any process and also on a replica.': [
    'test/features/protocol/resolve.test.ts: is known to another process, to a replica, and to its writer; and is shown then',
  ],
  'Every error is a `StoreDbError` with a stable `code`.': [
    'test/repo/docs/errors.test.ts: lists every exported error class with its code, once, and no other',
  ],
  'it finds out first, and never applies the commit twice.': [
    'test/features/protocol/commit.test.ts: is resolved by the next flush: applied, and not twice',
    'test/features/protocol/commit.test.ts: is resolved by the next flush: lost to another node, and so flushed',
  ],
  'With the `databaseId`, another database refuses to answer': [
    'test/features/protocol/resolve.test.ts: to another database is refused: "it was not applied" would have it written twice',
  ],
  '`false`: it was not applied, and never will be.': [
    'test/features/protocol/resolve.test.ts: is known to another process, to a replica, and to its writer; and is shown then',
    'test/features/protocol/resolve.test.ts: is "no" once another has the slot: before and after that is merged and trimmed',
  ],
  'While neither is certain, it rejects with `CommitOutcomeUnknownError`': [
    'test/features/protocol/resolve.test.ts: is not "no" while its slot is free: it may still land',
    'test/features/protocol/resolve.test.ts: is no answer where the store gives none',
  ],
  'only the last 128 merged commits can still be resolved. The outcome of older commits is lost.': [
    'test/features/protocol/resolve.test.ts: is known after it was merged and trimmed, as long as Block 0 lists it',
    'test/features/gc/log.test.ts: stays unknown where the list does not reach back: applied %s',
  ],
  'take `{ signal }`, and stop when it is aborted. If the store cannot be reached, they end with an error; they do not hang.':
    [
      'test/features/values/signals.slow.test.ts: %s says that it was given up',
      'test/features/protocol/deadlines.test.ts: fails flush() within its deadline, as unknown, since its put may have landed',
      'test/features/protocol/deadlines.test.ts: fails a read of a row that is not in memory, and verify()',
    ],
};
