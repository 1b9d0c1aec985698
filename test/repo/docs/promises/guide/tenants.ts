import type { PagePromises } from '../page-promises.ts';

export const tenants: PagePromises = {
  'If one database fails, its prefix and its error are in `failed`, and the others go on.': [
    'test/features/interface/for-each-database.test.ts: goes on where one fails, and says which',
  ],
  'A wrong option is refused with `InvalidOptionError` before any database is opened.': [
    'test/features/interface/for-each-database.test.ts: refuses a wrong %s before it opens any',
  ],
  'All instances on a budget together take as much memory as one instance with that `maxMemoryBytes`.': [
    'test/features/memory/memory-budget.slow.test.ts: is kept under a random load of many databases',
  ],
  'Blocks that were not used for the longest time are evicted first, whichever database they belong to': [
    'test/features/memory/memory-budget.slow.test.ts: goes to the databases in use',
    'src/cache/memory-budget.test.ts: bounds the blocks of all, and evicts those of idle tenants first',
  ],
  'A scan of one database does not evict the working sets of the others.': [
    'src/cache/memory-budget.test.ts: a scan of one tenant takes nothing from the working sets',
  ],
  'the database with the most unmerged commits merges at once, with any `mergePolicy`.': [
    'test/features/memory/memory-budget.slow.test.ts: merges the pending commits of all databases if they are too much, idle ones first',
    'src/cache/memory-budget.test.ts: lets the tenant merge that has most commits waiting',
  ],
  'Beyond that they reject with `MemoryBudgetError`.': [
    'src/cache/memory-budget.test.ts: bounds the memory of all queries, but leaves room for small ones, and names the budget',
  ],
  'If you give an instance `maxMemoryBytes` as well as `memory`, it takes at most that much of the budget, so no tenant can take all of it with one large query.':
    [
      'test/features/memory/memory-budget.slow.test.ts: leaves an instance with a limit of its own within it, and others the rest',
    ],
  '`stop()` gives everything back at once.': [
    'test/features/memory/memory-budget.slow.test.ts: is given back by stop(), also where a start fails',
  ],
  'an instance that nobody uses then has no timer and makes no request at all': [
    'test/features/requests/idle.slow.test.ts: on demand ask for nothing and have no timer',
  ],
  'opening it again takes two reads.': ['test/features/requests/requests.slow.test.ts: opening it takes two reads'],
};
