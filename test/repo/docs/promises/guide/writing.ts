import type { PagePromises } from '../page-promises.ts';

export const writing: PagePromises = {
  'The next call with the name goes on behind the stored rows, on any instance': [
    'test/features/load/resume.slow.test.ts: goes on behind the rows that are stored, which come %s',
    'test/features/load/resume.slow.test.ts: that is given up by its signal, or by a stop, goes on later',
    'test/features/load/resume-faults.slow.test.ts: is killed at any request, %s, and another instance goes on',
  ],
  'StoreDb passes over the stored rows. If their keys are others, the call rejects with `LoadResumeError`.': [
    'test/features/load/resume.slow.test.ts: passes over the stored rows of an iterable that is made again',
    'test/features/load/resume-ends.slow.test.ts: from an iterable with other rows before the position: %s',
  ],
  'A load that fits into one buffer is not recorded, and a load without a name costs no request more.': [
    'test/features/load/resume.slow.test.ts: are the same with a name if its rows are sorted at once',
    'test/features/load/resume.slow.test.ts: without a name are no more than they were',
  ],
  'A record costs one small commit of two requests, and the first one two requests more.': [
    'test/features/load/resume.slow.test.ts: with a name are two more for each record, and those of merging the runs',
  ],
  'A call that takes a load over ends the call before it, which rejects with `LoadResumeError`.': [
    'test/features/load/resume-ends.slow.test.ts: end the one that began first %s, and nothing of the other is lost',
  ],
  'gc deletes its rows then, and the next call with its name begins with the first row again': [
    'test/features/load/resume-ends.slow.test.ts: is forgotten a week after somebody has worked on it: its rows go, and it begins again',
  ],
  'If the name belongs to a load into another table, or if the table has other fields now, the call rejects with `LoadResumeError`.':
    [
      'test/features/load/resume-ends.slow.test.ts: into another table, nor with other fields, nor under a name that is too long',
    ],
  'A load stays when its stored rows are refused': [
    'test/features/load/resume-ends.slow.test.ts: are refused where two of them, or one and a row of the table, agree in a unique index',
  ],
  'it rejects with `DuplicateKeyError`.': [
    'test/features/load/resume.slow.test.ts: has a name of its own again once it is finished',
  ],
  'A backup that is made while a load is unfinished holds none of its rows.': [
    'test/features/load/resume-ends.slow.test.ts: is in no snapshot, feed or backup, and begins again where a backup is restored',
  ],
  '`flush()` commits them together: all of them, or none.': [
    'test/features/batches/flush.test.ts: writes all of several tables, once; the batch is empty then',
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
  ],
  'If its key exists, the flush is rejected with `DuplicateKeyError`': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
  ],
  'If there is none, the flush is rejected with `RowNotFoundError`': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
  ],
  'Adds the row, or replaces it as a whole': [
    'test/features/batches/flush.test.ts: upsert replaces the whole row, and reads as much as an insert',
  ],
  'Removes the row. If there is none, nothing happens': [
    'test/properties/model/database.slow.test.ts: acts as the model',
  ],
  'Removes every row that the query finds now, in the database and in the batch. Resolves to their number': [
    "test/features/batches/sub-batches.test.ts: deletes the rows that the query finds, the batch's own writes included",
  ],
  'Each call takes the document as it is at that moment, so you may change the object afterwards.': [
    'test/features/batches/flush.test.ts: takes the values at the time of the call of insert, update and upsert',
  ],
  'It returns a promise, which rejects if the document is refused. The refused document is not in the batch, and its error also rejects the next `flush()`, so that no refusal is overlooked; the flush after that writes the rest.':
    [
      'test/features/batches/flush.test.ts: rejects its own promise and exactly one flush, which keeps the rest',
      'test/features/batches/flush.test.ts: is never an unhandled rejection, whether or not the caller awaits it',
    ],
  "When `flush()` resolves, the batch is durable and visible to this instance's queries. The batch is empty then, and can be used again.":
    [
      'test/features/batches/flush.test.ts: writes all of several tables, once; the batch is empty then',
      'test/simulation/crash/database-kill.slow.test.ts: keeps all acknowledged writes, and nothing torn, however often its writer is killed',
    ],
  'If `flush()` rejects, the batch keeps its operations, and nothing was written.': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
    'test/features/protocol/commit.test.ts: of the first put is plain: nothing was applied and the batch keeps its operations',
  ],
  'Its `flush()` moves them into the parent batch, which commits them together with its other operations. A sub-batch that is not flushed has no effect':
    [
      'test/features/batches/sub-batches.test.ts: moves its operations into its parent when it is flushed, to any depth',
      'test/features/batches/sub-batches.test.ts: that was not flushed takes no part, and can be flushed after its parent was',
    ],
  'The query must be of the same instance: a query of another database, a snapshot or a transaction is refused.': [
    'test/features/batches/foreign.test.ts: refuses a query of another database, though a table of that name is here',
    'test/features/batches/foreign.test.ts: refuses a query of a snapshot: its rows may have changed since',
    'test/features/batches/foreign.test.ts: refuses a query of a transaction, under way or over',
  ],
  'A row that another process commits later is neither deleted nor updated, even if it matches.': [
    'test/features/batches/sub-batches.test.ts: deletes no row that others have committed since',
  ],
  'If two processes update different fields of one row, both changes are kept. If they change the same field, the later commit wins.':
    [
      "test/features/protocol/commit.test.ts: applies an update again on top of the winner's change: both changes stay",
      'test/features/protocol/commit.test.ts: lets the later of two updates of the same field win',
    ],
  'A flush costs two requests, however many rows it has, and the reads of blocks that it has to check.': [
    'test/features/requests/requests.slow.test.ts: flushing a row takes one put and one conditional read',
    'test/features/requests/requests.slow.test.ts: flushing an update of a row whose leaf is not cached also reads that leaf',
    'test/features/batches/large-batch.slow.test.ts: is one commit: in the overlay, after the flush, merged, reopened and verified',
  ],
  'A batch may have a million rows.': [
    'test/features/batches/large-batch.slow.test.ts: is one commit: in the overlay, after the flush, merged, reopened and verified',
    'test/features/requests/cold-open.slow.test.ts: is opened and counted with two',
  ],
  'the flush rejects with `EncodeError`, and nothing is written.': [
    'test/features/batches/increments.test.ts: is refused by the flush where the sum of %o and %o does not fit',
  ],
  'All rows are one commit: every instance sees all of them or none, and a key or a unique value that exists already fails the load as it fails a batch.':
    [
      'test/features/load/load.slow.test.ts: loads rows that come %s',
      'test/features/load/load.slow.test.ts: refuses a key that is there %s',
      'test/features/load/load.slow.test.ts: refuses values of a unique index that two rows have',
      'test/features/load/load.slow.test.ts: refuses a unique value that another instance has committed meanwhile, %s',
    ],
  'Its memory does not grow with the number of rows.': [
    'test/features/load/memory.slow.test.ts: takes no more memory for more rows',
  ],
  'A load that fails has written nothing, except that after `CommitOutcomeUnknownError` the outcome is unknown': [
    'test/features/load/load.slow.test.ts: rejects with the error of its source, and when the database is stopped',
    'test/features/load/load.slow.test.ts: by its signal after its commit was put has an unknown outcome, and keeps its rows',
  ],
  'Before the commit, the load is checked against their changes.': [
    'test/features/load/load.slow.test.ts: refuses a key that another instance has committed meanwhile, %s',
    'test/features/load/load.slow.test.ts: loses its slot, and commits behind the others without staging its rows again',
  ],
  '`signal` gives the load up. Its stored rows are deleted then. If the process is killed, gc deletes them later': [
    'test/features/load/load.slow.test.ts: is given up by its signal, and leaves nothing',
    'test/features/load/load.slow.test.ts: by a kill leaves rows that nobody sees, and that gc deletes once the log has gone on',
  ],
  'A load refuses rows with blobs, tables with triggers for inserts, and tables that are being migrated': [
    'test/features/load/load.slow.test.ts: for blobs, triggers, replicas, tables that are not registered, and tables that are migrated',
  ],
  'The thread starts when the rows have filled one buffer, a twenty-fourth of `maxMemoryBytes`, at most 16 MiB, and ends with the load.':
    [
      'test/features/load/thread.slow.test.ts: starts none for the rows of one buffer, for none, and without the option',
      'test/features/load/thread.slow.test.ts: stores the same blocks by the same requests as one without: rows %s',
    ],
  'Answers, errors and requests are those of a load without the option.': [
    'test/features/load/thread.slow.test.ts: stores the same blocks by the same requests as one without: rows %s',
    'test/features/load/thread.slow.test.ts: where %s',
    'test/features/load/thread.slow.test.ts: where the store refuses a request',
  ],
  'Two loads of an instance have a thread at the same time. Further ones do without': [
    'test/features/load/thread.slow.test.ts: stores the same blocks by the same requests as one without: rows %s',
    'test/features/load/thread.slow.test.ts: works where they %s',
  ],
};
