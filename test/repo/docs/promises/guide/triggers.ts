import type { PagePromises } from '../page-promises.ts';

export const triggers: PagePromises = {
  'Its own writes are committed together with that insert, update or delete. Use triggers for a journal, for derived rows, or to check rows before they are written.':
    ['test/features/triggers/triggers.test.ts: is committed with it: a flush that is rejected writes neither'],
  'The row as it will be stored. For an update, the whole updated row. For a delete, the row as it was, or only its primary key if no such row is known':
    [
      'test/features/triggers/triggers.test.ts: of an insert is the row as it will be stored',
      'test/features/triggers/triggers.test.ts: of an update is the whole row after it',
      'test/features/triggers/triggers.test.ts: of a delete is the row before it, or only the key where there is none',
    ],
  'The batch, for further writes. `flush()` on it rejects': [
    'test/features/triggers/triggers.test.ts: cannot be flushed',
  ],
  '`query(table)` and `get(table, key)`. They see the writes of the batch, including the current one': [
    'test/features/triggers/triggers.test.ts: let a trigger see the writes of the batch and of its parents',
  ],
  'An upsert is an insert or an update': [
    'test/features/triggers/triggers.test.ts: of an upsert comes as an insert or an update',
  ],
  'If a trigger throws, the write is refused. The batch then contains nothing of it, and the next `flush()` rejects as well.':
    ['test/features/triggers/failures.test.ts: fails the mutation and one flush, and leaves nothing of it'],
  'Triggers run in the order in which they were registered.': [
    'test/features/triggers/triggers.test.ts: fires for its operation, and * for all, in the order of registration',
  ],
  'The writes of a trigger fire triggers too, up to 32 levels deep. Beyond that, the write rejects with `TriggerDepthError`.':
    ['test/features/triggers/triggers.test.ts: may be 32 levels deep, not more (through sub-batches: %s)'],
  'rejects with `BatchStateError`, and so does the flush that the trigger is part of.': [
    'test/features/triggers/ended.test.ts: is refused, and fails the flush that the trigger is part of',
    'test/features/triggers/ended.test.ts: is refused aloud once that is committed or dropped',
  ],
  'A trigger runs once for each insert, update or delete. It does not run again when a sub-batch is moved into its parent, or when a flush is repeated.':
    [
      'test/features/triggers/triggers.test.ts: does not fire again when a sub-batch is flushed into its parent',
      'test/features/triggers/triggers.test.ts: fires when the mutation is added, not when it is flushed',
    ],
};
