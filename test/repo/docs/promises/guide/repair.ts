import type { PagePromises } from '../page-promises.ts';

export const repair: PagePromises = {
  '`findings` names each damaged object and the damage, with the `table` and the `index` if there is one.': [
    'test/features/maintenance/verify-deep.slow.test.ts: of a leaf that does not match its checksum',
    'test/features/maintenance/verify-deep.slow.test.ts: of a block that is missing',
  ],
  'If only an earlier state refers to the object, the finding has its `generation`, and the id of the `snapshot` that shows it.':
    [
      'test/features/maintenance/verify-deep.slow.test.ts: are named by objects that only they show',
      'test/features/maintenance/verify-deep.slow.test.ts: are distinguished: history has a generation',
    ],
  'Indexes of the table stay as they are: rebuilt indexes would hide that rows are lost': [
    'test/features/maintenance/repair.slow.test.ts: are rows: an index is not rebuilt from the rest, and the losses are reported',
  ],
  'The process that repairs merges nothing until it is done.': [
    'test/features/maintenance/repair.slow.test.ts: is not outdated by its own node',
  ],
  '`dryRun` writes nothing and reports the same.': [
    'test/features/maintenance/repair.slow.test.ts: is reported, and left alone, by a dry run',
  ],
  'commits that are not merged, and that none is missing between them': [
    'test/features/protocol/holes.test.ts: is found by verify(), which lists the log',
    'test/features/maintenance/verify-deep.slow.test.ts: of a leaf that does not match its checksum',
  ],
  'Also every blob against its size and checksums, and its row against the list of blobs; all states that snapshots and history keep':
    [
      'test/features/maintenance/verify-deep.slow.test.ts: that are missing, cut off, grown, changed or swapped are named, and whose they are',
      'test/features/maintenance/verify-deep.slow.test.ts: are read, each block once',
    ],
  'It bypasses the cache, and reads each block once': [
    'test/features/requests/small-budgets.slow.test.ts: reads each block once, however many indexes are compared with their rows',
  ],
  '`unknownObjects` are objects under the prefix that do not belong to the database. Nothing ever deletes them.': [
    'test/features/maintenance/verify-deep.slow.test.ts: that nothing refers to are counted as garbage, and foreign ones are named; neither is a finding',
    'test/features/gc/run.slow.test.ts: leaves unknown objects alone',
  ],
  '`verify()` writes nothing, unless `gc()` deletes blocks that it still has to read.': [
    'test/features/maintenance/verify-deep.slow.test.ts: holds on to the state when it checks again',
  ],
  'It is rebuilt from the rows of its table': ['test/features/maintenance/repair.slow.test.ts: is rebuilt if %s'],
  '`unrepairable` lists the rows that are lost, and whether a snapshot or an earlier state still shows them.': [
    'test/features/maintenance/repair.slow.test.ts: are rows: an index is not rebuilt from the rest, and the losses are reported',
    'test/features/maintenance/repair.slow.test.ts: are rows that an earlier state still has: it is named',
  ],
  "`repair({ log: 'stop' })` gives up the commits after the hole. `repair({ log: 'skip' })` keeps them, and goes on without the lost commit. Without `log`, the commits stay as they are":
    [
      'test/features/protocol/holes.test.ts: names the lost commit and the commits behind it, and does nothing by itself',
      'test/features/protocol/holes.test.ts: goes on with log: %s, for all instances',
    ],
  'No row, blob or snapshot is ever changed, except that `log` decides about commits.': [
    'test/features/maintenance/repair.slow.test.ts: are rows: an index is not rebuilt from the rest, and the losses are reported',
    'test/features/maintenance/repair.slow.test.ts: stays as it was in states that are kept',
  ],
  'If another process merges first, the repair begins again. After twenty times it rejects with `ContentionError`, and no row has changed.':
    [
      'test/features/maintenance/repair.slow.test.ts: gives up where others merge before every attempt, and has changed nothing',
    ],
  '`start()` rejects with `CorruptionError` if it finds a hole, and so does every call that needs a later commit.': [
    'test/features/protocol/holes.test.ts: finds a hole if it reads more than one slot at a time, names it, and says what to do',
    'test/features/protocol/holes.test.ts: and every call after it, on demand, where start() does not wait for the look',
  ],
  'If a damaged index keeps pending commits from being merged, they are merged after the repair.': [
    'test/features/maintenance/repair.slow.test.ts: that keeps merges from going on is rebuilt without them, and they go on',
  ],
};
