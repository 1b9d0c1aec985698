import type { PagePromises } from '../page-promises.ts';

export const snapshots: PagePromises = {
  'It shows everything that was committed before the call, by any process, and nothing after it.': [
    'test/features/snapshots/holding.test.ts: shows all earlier commits of any node, merged or not, and nothing after',
  ],
  'Rows and blobs that were deleted later are still there.': [
    'test/features/snapshots/holding.test.ts: reads blobs of rows that were deleted since, until it is released',
  ],
  'While you hold a snapshot, nothing that it shows is deleted from the store.': [
    'test/features/snapshots/holding.test.ts: keeps its blocks through merges, gc by others and their restarts',
  ],
  '`stop()` releases all snapshots of the instance.': [
    'test/features/snapshots/expiry.test.ts: releases the held snapshots, and leaves no timer',
  ],
  '`db.snapshots()` lists the snapshots of all processes. There can be 1,000.': [
    'test/features/snapshots/holding.test.ts: lists the snapshots of all nodes, on every node',
    'test/features/snapshots/holding.test.ts: is refused where there are a thousand, and possible again when one is released',
  ],
  'The process renews its snapshots while it runs. If it dies, the snapshot stays until `expiresAfterMs` (an hour) has passed, and five minutes more':
    [
      'test/features/snapshots/expiry.test.ts: is renewed, and outlives its time to live three times over',
      'test/features/snapshots/expiry.test.ts: stays until its time is over and clocks may differ, and is ended by the gc after that',
    ],
  'After a snapshot has ended, every call on it rejects with `SnapshotExpiredError`. A process that was paused for too long gets this error as well, and never wrong rows.':
    [
      'test/features/snapshots/expiry.test.ts: learns it, whether or not the blocks are in memory',
      'test/features/snapshots/expiry.test.ts: gets an error and never wrong rows before it has learnt it',
    ],
  'last instance that starts with the option decides. Keeping a state costs one write': [
    'test/features/snapshots/history.test.ts: is a setting of the database that every node follows, and that stays',
    'test/features/snapshots/history.test.ts: costs one put a merge, and none while it is off',
  ],
  'For a state that is not kept, `at()` rejects with `SnapshotExpiredError`.': [
    'test/features/snapshots/history.test.ts: ends with its window',
  ],
};
