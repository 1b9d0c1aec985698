import type { PagePromises } from './page-promises.ts';

export const costs: PagePromises = {
  'A blob takes one more write, or one for each part of an upload in parts, and each of its reads has up to 4 MiB.': [
    'test/servers/s3/blobs.slow.test.ts: of up to 8 MiB are put at once, and larger ones in parts',
    'test/features/blobs/blobs.slow.test.ts: of a large blob is streamed in pieces of some megabytes, as far as somebody reads',
  ],
  'A flush of a thousand rows costs as much as a flush of one row.': [
    'test/features/requests/requests.slow.test.ts: flushing a thousand rows costs the same',
  ],
  "While a loop over `changes()` waits, every kind of `polling` costs as much as `'interval'`.": [
    'test/features/changes/following.slow.test.ts: shows others’ commits within an interval, polling %s',
  ],
  'Opening such a database and reading a first row takes four requests.': [
    'test/features/requests/many-tables.slow.test.ts: is opened, and a first row read, with four requests',
    'test/features/requests/many-tables.slow.test.ts: writes only the blocks that a commit and its merge change',
  ],
  'None of these operations lists objects.': [
    'test/features/requests/requests.slow.test.ts: creating it takes the only listing ever',
  ],
  "| `'interval'` (every 5 seconds) | 34,560 | 0.42 |": [
    'test/features/requests/idle.slow.test.ts: at the default interval costs less than 0.50 dollars a month',
    'test/features/cli/commands.slow.test.ts: snapshots, migration status, cost',
  ],
  '| Open a database | – | 2, and one for every commit that is not merged |': [
    'test/features/requests/requests.slow.test.ts: opening it takes two reads',
    'test/features/requests/merge-cost.test.ts: with commits that wait reads each of them once, in few round trips',
  ],
  '| Open it and read one of a million rows | – | 3 |': [
    'test/features/requests/cold-open.slow.test.ts: is opened, and row %i read, with three reads',
  ],
  'Flush, however many rows | 1 | 1, and one for each leaf that has a row to insert or update and is not in memory': [
    'test/features/requests/requests.slow.test.ts: flushing a row takes one put and one conditional read',
    'test/features/requests/requests.slow.test.ts: flushing an update of a row whose leaf is not cached also reads that leaf',
  ],
  'Transaction that writes | 1 | as a flush, and 2 more to see everything that is committed': [
    'test/features/transactions/attempts.test.ts: of an undisturbed transaction are two reads, and the requests of a flush',
  ],
  '| Transaction that only reads or throws | – | 2 |': [
    'test/features/transactions/attempts.test.ts: of one that only reads are two, or none',
  ],
  '| The same two with `fresh: false` | 1 or – | 1 or 0 |': [
    'test/features/transactions/attempts.test.ts: of one that only reads are two, or none',
  ],
  '| Flush that is rejected, or whose operations cancel out | – | 2 |': [
    'test/features/requests/requests.slow.test.ts: a rejected flush takes one refresh and no put',
    'test/features/protocol/commit.test.ts: are committed without a put, once it is known that they still do',
  ],
  '| `refresh()` | – | 2, and one for every commit of others since |': [
    'test/features/requests/requests.slow.test.ts: refreshing takes two small reads',
  ],
  'Following changes | – | none for commits of the instance itself, and for commits that it catches up with; one for each older commit, and one for up to 16 of them':
    [
      'test/features/changes/following.slow.test.ts: is nothing for commits of the instance itself',
      'test/features/changes/following.slow.test.ts: is one read a commit of the past, and one of Block 0 for up to sixteen',
    ],
  '| `resolveCommit()` | – | 2 |': [
    'test/features/protocol/resolve.test.ts: takes two reads, and two more if it is not shown yet',
  ],
  '| Merge of k commits | 1, and one for each block that changes | one for each commit of others, and one for each block that changes and is not in memory |':
    [
      'test/features/requests/requests.slow.test.ts: a merge puts the blocks that it changed and Block 0, and nothing else',
      'test/features/requests/merge-cost.test.ts: of %i commits of others (indexed: %s)',
    ],
  'a query that finds all its blocks in memory | – | – |': [
    'test/features/requests/requests.slow.test.ts: reading a cached row takes nothing',
  ],
  'A flush of more than 8 MiB writes its rows first, in objects of about 8 MiB.': [
    'test/features/protocol/large-batches.slow.test.ts: is uploaded as staged runs first, and seen before and after it is merged',
  ],
  'The cost of an idle instance:': ['test/features/requests/idle.slow.test.ts: on demand costs nothing'],
  "| `'adaptive'` (the default) | about 400 | 0.005 |": [
    'test/features/requests/idle.slow.test.ts: at the defaults costs less than 0.01 dollars a month',
  ],
  'Replicas cost the same, and never write.': [
    'test/features/replicas/replica.test.ts: is two reads an interval where that is its polling',
  ],
  'four nodes at the defaults cost 5.21 dollars.': [
    'test/features/requests/bill.slow.test.ts: a year of 500 commits a day on four nodes',
  ],
  'take 206 requests at the defaults': [
    'test/features/requests/bill.slow.test.ts: take at most 2.3 requests each, with their merges and with looks at the store',
  ],
  'above an eighth of `maxMemoryBytes` they are merged in any case.': [
    'test/features/protocol/backlog.slow.test.ts: merges out of turn as soon as there is much',
  ],
  'Prices are `s3StandardPrices`, or the ones that you pass:': [
    'test/features/interface/metrics.test.ts: follows the price table of the options',
  ],
};
