import type { PagePromises } from '../page-promises.ts';

export const garbage: PagePromises = {
  '`gc()` deletes nothing because of its age (commits, uploads, snapshots, history), and logs this.': [
    'test/features/maintenance/clocks.test.ts: by %i days, on a folder, trims nothing, condemns nothing, and says why',
    'test/features/maintenance/clocks.test.ts: deletes no history, ends no snapshot, and says why',
  ],
  'With 0, a loop of another instance may end with `SnapshotExpiredError`; it never gives a wrong row.': [
    'test/features/snapshots/long-loops.slow.test.ts: whose state was collected before it could hold on to it says so, and gives no wrong row',
  ],
  'Runs by `gcInterval` always wait, even if no other instance takes turns.': [
    'test/features/snapshots/long-loops.slow.test.ts: that others merge past before it holds on outlives %s',
  ],
  'and something was merged since the last run': [
    'test/features/snapshots/long-loops.slow.test.ts: is waited for only where a merge has replaced something',
  ],
  'When neither the present state, nor a snapshot, nor the history refers to them: at once': [
    'test/features/gc/blocks.test.ts: are deleted at once, and exactly the reachable ones stay',
    'test/features/gc/run.slow.test.ts: keeps the same objects as a run',
  ],
  'By the first run after the deletion is merged, unless a snapshot or the history shows them': [
    'test/features/gc/blobs.test.ts: goes with the first gc after that is merged: %s',
    'test/features/snapshots/history.test.ts: keeps the blobs that its states show, and no longer',
  ],
  'They are listed in `_deleted_blobs` when they are `graceMs` old (a day), and deleted by a later run': [
    'test/features/gc/blobs.test.ts: is condemned after the grace, and deleted by the run after that is merged',
  ],
  'Parts of large uploads in a bucket': [
    'test/servers/s3/gc.slow.test.ts: removes parts of uploads that nobody completed, once the grace is over',
  ],
  'When they are merged, and `logRetentionMs` old (an hour)': [
    'test/features/gc/log.test.ts: is trimmed as far as it is merged, and no further',
    'test/features/gc/log.test.ts: keeps merged slots for an hour, by the clock of the store',
  ],
  '`gc()` is safe at any time, on any number of processes at once, while others write, merge and read.': [
    'test/features/gc/blocks.test.ts: stay, however often others collect, and Block 0 reaches them when it ends',
    'test/features/gc/blocks.test.ts: by several nodes deletes each object once, and nothing else',
  ],
  'It reads no rows: only the inner nodes of tables, which are few, and the list of blobs. It lists all objects once, and deletes a thousand at a time.':
    [
      'test/features/gc/run.slow.test.ts: does not grow with the rows: it reads inner nodes, and no leaves',
      'test/features/gc/run.slow.test.ts: is one deletion for every thousand objects, and one list for as many',
    ],
  'Objects that the store refuses to delete are in `failed`, and the next run tries again.': [
    'test/features/gc/run.slow.test.ts: are tried three times, and then reported and left to the next run',
  ],
  'An interrupted run leaves the database consistent; the next one continues.': [
    'test/features/gc/run.slow.test.ts: because its process dies at any request: the next one makes up for it',
  ],
  'If an object that must be kept cannot be read, `gc()` rejects with `CorruptionError` and deletes nothing.': [
    'test/features/gc/blocks.test.ts: if the root of a snapshot is missing',
    'test/features/gc/blocks.test.ts: if an inner node of %s is damaged or missing',
  ],
  '`dryRun` writes nothing, and also works on a replica. It uses the clock of this machine': [
    'test/features/gc/run.slow.test.ts: writes nothing, and reports the deletions of a run, and why',
    'test/features/snapshots/history.test.ts: is shown by replicas too, which write nothing for it',
  ],
  'Blobs of bytes and strings are then uploaded again.': [
    'test/features/gc/blobs.test.ts: uploads bytes again under a new reference: the blob %s',
    'test/features/gc/blobs.test.ts: fails and commits nothing where it was a stream: the blob %s',
  ],
};
