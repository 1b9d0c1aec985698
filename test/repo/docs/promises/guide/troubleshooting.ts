import type { PagePromises } from '../page-promises.ts';

export const troubleshooting: PagePromises = {
  'After each of these errors nothing is written, and the batch keeps its operations.': [
    'test/features/batches/flush.test.ts: rejects a duplicate and a missing row as a whole',
    'test/features/unique/flushes.test.ts: keeps its operations, and can be put right',
    'test/features/protocol/commit.test.ts: gives up with a definite ContentionError after many confirmed losses',
  ],
  'Flush the same batch again: it finds out first.': [
    'test/features/protocol/commit.test.ts: is resolved by the next flush: applied, and not twice',
  ],
  'Flush, however many rows | 1 | 1, and one for each block that it has to check': [
    'test/features/requests/requests.slow.test.ts: flushing a row takes one put and one conditional read',
    'test/features/requests/requests.slow.test.ts: flushing a thousand rows costs the same',
  ],
  '| Open a database | 0 | 2, and one for each commit that is not merged |': [
    'test/features/requests/requests.slow.test.ts: opening it takes two reads',
  ],
  '| Transaction that only reads | 0 | 2 |': [
    'test/features/transactions/attempts.test.ts: of one that only reads are two, or none',
  ],
  "| Idle, with polling `'onDemand'` | 0 | 0 |": [
    'test/features/requests/idle.slow.test.ts: on demand ask for nothing and have no timer',
  ],
  'Every batch whose `flush()` has resolved is there. A batch whose flush was under way is there as a whole or not at all.':
    [
      'test/simulation/crash/database-kill.slow.test.ts: keeps all acknowledged writes, and nothing torn, however often its writer is killed',
      'test/simulation/crash/database-power-loss.slow.test.ts: keeps all acknowledged writes, and nothing torn',
    ],
  'Two processes with the same id lose no data.': [
    'test/features/protocol/block0.test.ts: happens at random between nodes, even of one nodeId, and loses nothing',
  ],
};
