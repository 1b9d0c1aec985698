import type { PagePromises } from '../page-promises.ts';

export const operations: PagePromises = {
  'After 60 s it gives up on calls that do not end, and logs this.': [
    'test/features/protocol/deadlines.test.ts: does not keep stop() from ending while a flush is under way',
    'test/features/protocol/deadlines.test.ts: does not keep stop() from ending while a merge is under way, nor leave a timer behind',
  ],
  'The option `onRequest` is called after every request': [
    'test/features/interface/metrics.test.ts: is called for every request',
  ],
  '`stop()` waits for the flushes, transactions and merges that were called before it, and refuses later calls. It leaves no timers and connections behind, so the process can exit.':
    [
      'test/features/interface/lifecycle.slow.test.ts: stop() waits for flushes of the same turn, sub-batches and slow triggers, and refuses',
      'test/features/interface/lifecycle.slow.test.ts: stop() waits for a transaction in its function',
      'test/features/interface/lifecycle.slow.test.ts: that calls stop() exits by itself (%s)',
    ],
  'If the store is unsafe or cannot be reached, or if Block 0 is damaged, the report says so, and the call does not reject.':
    [
      'test/features/interface/certification.test.ts: reports an unsafe store, the remedy, and why start() fails',
      'test/features/interface/certification.test.ts: reports a Block 0 that is damaged, of a newer format, or missing among other objects',
      'test/features/interface/certification.test.ts: reports a store that is out of reach, and ends in time',
    ],
  'and refuses an unsafe store with `UnsafeStoreError`': [
    'test/features/interface/certification.test.ts: is refused on an unsafe store, and nothing there is changed',
  ],
};
