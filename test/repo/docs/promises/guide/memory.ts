import type { PagePromises } from '../page-promises.ts';

export const memory: PagePromises = {
  'in 6 bytes for each entry, which count like the leaf itself': [
    'test/features/query/row-places.slow.test.ts: count as part of the leaf that remembers them',
  ],
  'The cache gives way to them at once and takes the room back afterwards.': [
    'src/cache/instance-memory.test.ts: gives the cache the rest that pending commits and queries leave, and takes it back',
  ],
  'The cache evicts leaves before inner nodes, and leaves that were used once before leaves that were used again. A scan never evicts leaves that are in use.':
    [
      'src/cache/block-cache.test.ts: holds on to inner nodes while there are leaves to evict',
      'src/cache/block-cache.test.ts: spares blocks used since the hand passed',
      'src/cache/block-cache.test.ts: is not washed out by a scan, whether or not it shares blocks with repeated reads',
    ],
  'A query that would collect more rows than there is room for, such as `execute()` on a large table or a sort without a limit, rejects with `MemoryBudgetError`.':
    [
      'test/features/query/alike-rows.slow.test.ts: are held only as far as they are wanted, and not beyond the budget',
      'test/features/memory/read-ahead.slow.test.ts: has a loop take rows in the order of an index where there is no room to sort them',
    ],
  'so with budgets below 256 MiB StoreDb triggers collection earlier.': [
    'test/features/memory/collection.slow.test.ts: the runtime looks for unused blocks at each hint',
  ],
  'resident memory grew by at most 1.5 times the budget while a table of 20 times the budget was read': [
    'test/features/memory/budget.slow.test.ts: resident memory grows by no more than 1.5 times the budget',
  ],
  'So a scan over a slow store waits once for 32 leaves. Read-ahead stops where a `limit()` ends, and single rows are read without it.':
    [
      'test/features/memory/read-ahead.slow.test.ts: hides the time that requests take: a scan of N leaves takes about N / 32 of them',
      'test/features/memory/read-ahead.slow.test.ts: reads as many leaves as a limit takes, and not one more',
      'test/features/memory/read-ahead.slow.test.ts: reads nothing that is not needed for a single row, or where the first leaf has all rows',
    ],
  'Its blocks outlive the process. Any number of processes and databases may share the folder. It stays within `maxSizeBytes`':
    [
      'test/features/memory/cache-driver.slow.test.ts: on disk saves all requests for blocks, across restarts and between instances, but not between databases',
      'src/storage/disk-cache.slow.test.ts: stays within its limit, and evicts the least recently used blocks',
      'src/storage/disk-cache.slow.test.ts: is shared by processes that are killed at any moment, and never gives wrong bytes',
    ],
  'a block that does not match its hash is not used, and is removed.': [
    'src/cache/external-cache.test.ts: never returns other bytes, removes them, and logs it once',
    'test/features/memory/cache-driver.slow.test.ts: that gives the bytes of other blocks, of other times or none at all',
  ],
  'If the cache fails, or does not answer within a second, the read goes on without it. The failure is logged once, and the cache is skipped for a while':
    [
      'src/cache/external-cache.test.ts: skips a cache that fails, for longer and longer, and logs it once until it works again',
      'src/cache/external-cache.test.ts: does not wait long for one that hangs',
    ],
};
