import type { PagePromises } from './page-promises.ts';

export const errors: PagePromises = {
  "`reason` is `'forbidden'`, `'throttled'`, `'unavailable'`, `'full'` (no room on the disk) or undefined": [
    'test/repo/docs/errors.test.ts: gives every reason for which a request to a store may fail',
  ],
  'Every error that StoreDb raises is a `StoreDbError`. It has a `code`, which is part of the API and never changes, a message with a remedy, and often a `cause`.':
    [
      'test/repo/docs/errors.test.ts: lists every exported error class with its code, once, and no other',
      'test/repo/docs/errors.test.ts: has no two classes with one code',
      'test/properties/fuzz/database.slow.test.ts: answers right, or says that something is wrong',
    ],
  'Of all errors of a flush, only `CommitOutcomeUnknownError` leaves open whether the batch was written. After every other error, nothing of the batch was written, and nothing will be.':
    [
      'test/features/protocol/commit.test.ts: of the first put is plain: nothing was applied and the batch keeps its operations',
      'test/features/protocol/commit.test.ts: after an ambiguous attempt is not: that one may still land',
      'test/features/protocol/commit.test.ts: stays unknown, not a definite error, while the store cannot answer',
    ],
  '`option` names it': ['test/features/interface/options.test.ts: %s: %s'],
  'was made on a replica. Nothing was written, and the batch keeps its operations': [
    'test/features/replicas/replica.test.ts: refuses all that writes before anything is asked of the store, and keeps the batch',
  ],
  '`overlay()` of a batch of another instance': [
    'test/features/batches/foreign.test.ts: refuses a batch of another database or instance, wherever the query is from',
  ],
  'of another query, of another version of the table, or of another database': [
    'test/features/query/pages.slow.test.ts: refuse bookmarks of another query, another version, and damaged ones',
    'test/features/batches/foreign.test.ts: refuses a bookmark of another database, and takes one of another instance on the same',
  ],
  'Correct the document. It is not in the batch': ['test/features/values/refusals.slow.test.ts: is refused by %s'],
  'The write is not in the batch': [
    'test/features/triggers/triggers.test.ts: may be 32 levels deep, not more (through sub-batches: %s)',
  ],
  'After each of the first five, nothing of the flush was written. The batch keeps its operations': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
    'test/features/unique/flushes.test.ts: keeps its operations, and can be put right',
    'test/features/protocol/commit.test.ts: gives up with a definite ContentionError after many confirmed losses',
  ],
  'and merging them failed. Nothing was written': [
    'test/features/protocol/backlog.slow.test.ts: refuses flushes once there is no room, loses nothing, and takes them again when there is',
  ],
  '`cause` the conflict of the last one. Nothing was written': [
    'test/features/transactions/attempts.test.ts: end with TransactionConflictError',
  ],
  'It resolves the old commit first, and never applies it twice.': [
    'test/features/protocol/commit.test.ts: is resolved by the next flush: applied, and not twice',
  ],
  '`problems` lists the rules that it broke. Nothing was created': [
    'test/features/interface/certification.test.ts: is refused on an unsafe store, and nothing there is changed',
  ],
  "If the store had answered before (`'unavailable'`, for instance because a gateway restarts), StoreDb has waited for it for ten seconds":
    ['test/servers/s3/gateway-restart.slow.test.ts: one that stays away is waited for once: later calls fail at once'],
  '`key` names the object. Its contents were not used': [
    'test/features/encryption/database.test.ts: believes no object that is not encrypted, nor one of another database',
  ],
  'No row was made from them': [
    'test/features/golden/damage.slow.test.ts: ${kind}: every flipped bit and every missing end is noticed',
    'test/properties/fuzz/database.slow.test.ts: answers right, or says that something is wrong',
  ],
  'The data was written by a newer version.': [
    'test/features/golden/damage.slow.test.ts: versions, codecs, encryptions and kinds of the future are refused, and never guessed',
  ],
  'The database was deleted, replaced or set back while it was open': [
    'test/features/protocol/block0.test.ts: is noticed by another database id',
    'test/features/protocol/block0.test.ts: is noticed by a lower revision',
    'test/features/protocol/block0.test.ts: is noticed where Block 0 is gone',
  ],
};
