import type { PagePromises } from './page-promises.ts';

const care: PagePromises = {
  'and something was merged since the last run': [
    'test/features/snapshots/long-loops.slow.test.ts: is waited for only where a merge has replaced something',
  ],
  '`findings` names each damaged object and what is wrong with it': [
    'test/features/maintenance/verify-deep.slow.test.ts: of a leaf that does not match its checksum',
    'test/features/maintenance/verify-deep.slow.test.ts: of a block that is missing',
  ],
  "What only earlier states show has a `generation`, and the id of the `snapshot` if it is one's.": [
    'test/features/maintenance/verify-deep.slow.test.ts: are named by what only they show',
    'test/features/maintenance/verify-deep.slow.test.ts: are told apart: history has a generation',
  ],
  'Indexes of the table stay as they are: new ones would hide that rows are lost': [
    'test/features/maintenance/repair.slow.test.ts: are rows: an index is not made anew from the rest, and what is lost is told',
  ],
  'The process that repairs merges nothing until it is done.': [
    'test/features/maintenance/repair.slow.test.ts: is not overtaken by its own node',
  ],
  '`dryRun` writes nothing and reports the same.': [
    'test/features/maintenance/repair.slow.test.ts: is reported, and left alone, by a dry run',
  ],
  'When neither the present state, nor a snapshot, nor the history refers to them: at once': [
    'test/features/gc/blocks.test.ts: go at once, and exactly what is reachable stays',
    'test/features/gc/run.slow.test.ts: keeps what a run would keep',
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
    'test/features/gc/log.test.ts: keeps for an hour what was merged, by the clock of the store',
  ],
  'It is safe at any moment, on any number of processes at once, while others write, merge and read.': [
    'test/features/gc/blocks.test.ts: stay, however often others collect, and are what Block 0 reaches when it ends',
    'test/features/gc/blocks.test.ts: by several nodes deletes each object once, and nothing else',
  ],
  'It reads no rows: of the tables only inner nodes, which are few, and the list of blobs. It lists all objects once, and deletes a thousand at a time.':
    [
      'test/features/gc/run.slow.test.ts: does not grow with the rows: it reads inner nodes, and no leaves',
      'test/features/gc/run.slow.test.ts: is one deletion for every thousand objects, and one list for as many',
    ],
  'Objects that the store refuses to delete are in `failed`, and the next run tries again.': [
    'test/features/gc/run.slow.test.ts: are tried three times, and then reported and left to the next run',
  ],
  'A run that is interrupted leaves nothing half done; the next one goes on.': [
    'test/features/gc/run.slow.test.ts: because its process dies at any request: the next one makes up for it',
  ],
  'If anything that must be kept cannot be read, `gc()` rejects with `CorruptionError` and deletes nothing.': [
    'test/features/gc/blocks.test.ts: if the root of a snapshot is missing',
    'test/features/gc/blocks.test.ts: if an inner node of %s is damaged or missing',
  ],
  '`dryRun` writes nothing. It goes by the clock of this machine': [
    'test/features/gc/run.slow.test.ts: writes nothing, and says what a run would delete, and why',
  ],
  'Bytes are uploaded again by themselves.': [
    'test/features/gc/blobs.test.ts: uploads bytes again under a new reference: the blob %s',
    'test/features/gc/blobs.test.ts: fails and commits nothing where it was a stream: the blob %s',
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
  'It reads past the cache, and each block once': [
    'test/features/requests/small-budgets.slow.test.ts: reads each block once, however many indexes are compared with their rows',
  ],
  "Nor are `unknownObjects`: objects under the prefix that are none of the database's. Nothing ever deletes them.": [
    'test/features/maintenance/verify-deep.slow.test.ts: that nothing refers to are counted as garbage, and those of nobody are named; neither is a finding',
    'test/features/gc/run.slow.test.ts: leaves alone what it does not know',
  ],
  '`verify()` writes nothing, unless garbage is collected past what it reads.': [
    'test/features/maintenance/verify-deep.slow.test.ts: holds on to the state when it checks again',
  ],
  'It is made anew from the rows of its table': [
    'test/features/maintenance/repair.slow.test.ts: is made anew where %s',
  ],
  '`unrepairable` tells which rows are lost, and whether a snapshot or an earlier state still shows them.': [
    'test/features/maintenance/repair.slow.test.ts: are rows: an index is not made anew from the rest, and what is lost is told',
    'test/features/maintenance/repair.slow.test.ts: are rows that an earlier state still has: it is named',
  ],
  "`repair({ log: 'stop' })` gives up what is behind the hole, `repair({ log: 'skip' })` keeps it and goes on without what is lost; neither is done unasked":
    [
      'test/features/protocol/holes.test.ts: says what is lost and what lies behind it, and does nothing by itself',
      'test/features/protocol/holes.test.ts: goes on with log: %s, for all instances',
    ],
  'No row, blob or snapshot is ever changed, except that `log` decides about commits.': [
    'test/features/maintenance/repair.slow.test.ts: are rows: an index is not made anew from the rest, and what is lost is told',
    'test/features/maintenance/repair.slow.test.ts: stays as it was in states that are kept',
  ],
  'after twenty of them it rejects with `ContentionError`, and nothing has changed.': [
    'test/features/maintenance/repair.slow.test.ts: gives up where others merge before every attempt, and has changed nothing',
  ],
  '`start()` rejects with `CorruptionError` where it meets one, and so does every call that needs what is behind it.': [
    'test/features/protocol/holes.test.ts: finds a hole where it reads more than one slot at a time, names it, and says what to do',
    'test/features/protocol/holes.test.ts: and every call after it, on demand, where start() does not wait for the look',
  ],
  'If a damaged index keeps pending commits from being merged, they are merged after the repair.': [
    'test/features/maintenance/repair.slow.test.ts: that keeps merges from going on is made anew without them, and they go on',
  ],
};

const migrations: PagePromises = {
  'fields that only the old version has may be in what it returns, and are dropped.': [
    'src/migration/row-translation.test.ts: makes the row; what it leaves out is null or the default, what only the old version has is left out',
  ],
  'for as long as you like: both read and write all rows, each in its own version.': [
    'test/features/migrations/side-by-side.test.ts: the new one sees the old rows as its own',
    'test/features/migrations/side-by-side.test.ts: both insert, delete and replace, and keys are unique',
    'test/features/migrations/retirement.test.ts: stays: %s',
  ],
  'A value that the new type cannot hold cannot be migrated.': [
    'src/migration/row-translation.test.ts: refuses what the new type cannot hold',
  ],
  'New fields get their constant `default`, or null. Fields that are gone are left out.': [
    'src/migration/row-translation.test.ts: gives new fields their constant default, and leaves out those that are gone',
  ],
  'A call that comes across a row that cannot be migrated rejects with `MigrationError`, which names it.': [
    'test/features/migrations/bridge.test.ts: is an error for the new one only, and only where it is read',
  ],
  'a scan does, an index on another field leads past it.': [
    'test/features/migrations/bridge.test.ts: is no error where an index on another field tells that its row is not asked for',
  ],
  'Values carry over in both directions, also into another type, as those of equal names do;': [
    'test/features/migrations/renames.test.ts: see what either writes',
    'src/migration/row-translation.test.ts: carry over, and are converted, in both directions',
  ],
  'a name that this has not is refused, and so are two of which one would be lost.': [
    'test/features/migrations/renames.test.ts: are refused before anything is written: %s',
  ],
  'With a `migrate` function as well, the row that it is given has such a field by both names': [
    'src/migration/row-translation.test.ts: are there before a migrate function is called, which wins, and carry over where it leaves them out',
  ],
  'Releases of StoreDb that know of no `renames` refuse a database with them.': [
    'test/features/migrations/renames.test.ts: keeps releases out that know of no other names',
  ],
  'It cannot change the primary key.': [
    'src/migration/row-translation.test.ts: that returns %s does not migrate the row',
  ],
  'or become null where the old type cannot hold the value or `oneOf` does not list it. Fields that only the old version has keep what they held.':
    [
      'src/migration/row-translation.test.ts: is null where the old type cannot hold the value',
      'src/migration/row-translation.test.ts: keeps what only the old version has, and takes what both have',
    ],
  'Nothing that only one of the two knows is lost when the other one writes.': [
    'test/features/migrations/side-by-side.test.ts: what only one knows survives what the other writes',
    'test/features/migrations/later-wins.test.ts: in histories at random (seed %i)',
  ],
  'Some rows cannot be migrated. `blockers` names up to 20, and why. The old version stays in force': [
    'test/features/migrations/phases.test.ts: blocks the migration with a report, and leaves the old version in force until it is tried again',
  ],
  'The old version is kept up until `finishMigration()` is called': [
    'test/features/migrations/retirement.test.ts: stays although nobody is known to use it, until somebody asks',
  ],
  'Each field that is dropped or of another type is named before anything is made of it': [
    'src/migration/field-changes.test.ts: names what is dropped, and that it may be a field with another name',
    'src/migration/field-changes.test.ts: names what is of another type',
    'test/features/migrations/renames.test.ts: moves values to their new names without a migrate function, and says that they stay',
  ],
  'they read and write none of the table, do none of the work, and do not start.': [
    'test/features/migrations/migration-code.test.ts: nulls no row of 5,000, whenever it came',
    'test/features/migrations/migration-code.test.ts: is refused by the first commit of the others already',
  ],
  'So no row is left without what only the function fills.': [
    'test/features/migrations/migration-code.test.ts: nulls no row of 5,000, whenever it came',
  ],
  'A migration that an older release began is open to all.': [
    'test/features/migrations/migration-code.test.ts: is not compared with what older releases have begun',
  ],
  'Whoever dies is followed by the next one.': [
    'test/features/migrations/crashes.slow.test.ts: %s any request that writes',
  ],
  "With `polling: 'onDemand'` only the instance that called `setTargetSchemaVersion()` does it.": [
    'test/features/migrations/targets.test.ts: comes to an end with polling %s',
  ],
  'A chunk rests three times as long as it works': [
    'src/base/pacer.test.ts: work in the background leaves three quarters of the time to others, other work none',
  ],
  '`rowsPerSecond` limits the rows that are made.': ['test/features/migrations/targets.test.ts: keeps to its rate'],
  'A chunk holds rows of a 32nd of `maxMemoryBytes`, and 20,000 at most.': [
    'test/features/migrations/load.test.ts: holds no more rows at a time than there is memory for',
  ],
  'Each chunk costs a write of Block 0, the blocks that it writes, and hardly a read.': [
    'test/features/migrations/requests.test.ts: costs the blocks that it writes, one write of Block 0 for each chunk, and hardly a read',
  ],
  'Reads and flushes take no more requests than otherwise.': [
    'test/features/migrations/requests.test.ts: adds no request to reads and flushes',
  ],
  'It rejects with `MigrationActiveError` while instances are known to use the old version, and names them': [
    'test/features/migrations/retirement.test.ts: shows who may still use the old version, and does nothing before they are gone',
  ],
  '`finishMigration(table, { force: true })` passes over it.': [
    'test/features/migrations/retirement.test.ts: by force refuses whoever is left, before anything is written, and says what to deploy',
  ],
  'What uses a retired version is refused with `InvalidSchemaError`, before anything is written, and the message says which version to deploy.':
    [
      'test/features/migrations/retirement.test.ts: by force refuses whoever is left, before anything is written, and says what to deploy',
      'test/features/migrations/phases.test.ts: refuses those with the old version who come too late, before anything of theirs is lost',
    ],
  "with `retiredVersions: 'allow'` it opens the other tables.": [
    'test/features/migrations/retirement.test.ts: rejects, and opens the other tables where it is allowed to',
  ],
  'lets the old version go by itself, once the new one is complete and no instance is known to use the old one.': [
    'test/features/migrations/retirement.test.ts: is not retired by itself either, where that was allowed: %s',
    'test/features/migrations/phases.test.ts: keeps the old version unless it is told otherwise, and then while somebody is known to use it',
  ],
  '`cancelMigration()` goes back to the old version, in any state until it is retired.': [
    'test/features/migrations/phases.test.ts: in phase %s drops what was made for the new version',
    'test/features/migrations/phases.test.ts: is too late once the old version is retired',
  ],
  'One migration of a table at a time': [
    'test/features/migrations/targets.test.ts: on the way to another version is refused',
  ],
  'while rows are not unique, the migration is blocked, and `blockers` names them': [
    'test/features/unique/migrations.test.ts: is blocked by rows that are not, which it names, and goes on once they are',
  ],
  'those too, and the old version stays until they are put right. Unique indexes of the old version are kept by all until then':
    [
      'test/features/unique/migrations.test.ts: does not retire the old one while nodes with that have left rows that are not unique',
      'test/features/unique/migrations.test.ts: lets nodes with the older one keep to the unique indexes of that, and its own to both',
    ],
  'the new version of the table cannot be used (`MigrationPendingError`), and the old one can': [
    'test/features/migrations/bridge.test.ts: one with other keys, before all of its rows are made',
  ],
};

const memory: PagePromises = {
  'in 6 bytes for each entry, which count like the leaf itself': [
    'test/features/query/row-places.test.ts: count as part of the leaf that remembers them',
  ],
  'the cache gives way to them at once and takes the room back afterwards.': [
    'src/cache/memory-pool.test.ts: gives the cache what the committed cache and queries leave, and takes it back',
  ],
  'inner nodes stay while there are leaves to evict, leaves that were used again stay longer than those that were not, and what a scan comes by never drives them out.':
    [
      'src/cache/block-cache.test.ts: holds on to inner nodes while there are leaves to evict',
      'src/cache/block-cache.test.ts: spares what was used since the hand passed',
      'src/cache/block-cache.test.ts: is not washed out by a scan, whether or not that has blocks in common',
    ],
  'A query that would collect more than there is room for, `execute()` of a whole large table or a sort without a limit, rejects with `MemoryBudgetError`.':
    [
      'test/features/query/alike-rows.test.ts: are held only as far as they are wanted, and not beyond the budget',
      'test/features/memory/read-ahead.slow.test.ts: has a loop take rows in the order of an index where there is no room to sort them',
    ],
  'so with budgets below 256 MiB StoreDb makes it look sooner.': [
    'test/features/memory/collection.slow.test.ts: the runtime looks for unused blocks more often than by itself',
  ],
  'resident memory grew by at most 1.5 times the budget where a table of 20 times that was read': [
    'test/features/memory/budget.slow.test.ts: what is held grows by no more than 1.5 times the budget',
  ],
  'so that a scan over a slow store waits once for 32 leaves. No more is read than a `limit()` takes, and nothing is read ahead for single rows.':
    [
      'test/features/memory/read-ahead.slow.test.ts: hides the time that requests take: a scan of N leaves takes about N / 32 of them',
      'test/features/memory/read-ahead.slow.test.ts: reads as many leaves as a limit takes, and not one more',
      'test/features/memory/read-ahead.slow.test.ts: reads nothing that is not needed for a single row, or where the first leaf has all rows',
    ],
  'All that draw from a budget take together what one instance would with that `maxMemoryBytes`.': [
    'test/features/memory/memory-budget.test.ts: is kept under a random load of many databases',
  ],
  'those that were not used for the longest time go first, whichever database they are of,': [
    'test/features/memory/memory-budget.test.ts: goes to the databases in use',
    'src/cache/shared-memory.test.ts: those of tenants that are idle go first',
  ],
  'A scan of one database drives the working sets of the others out no more than its own.': [
    'src/cache/shared-memory.test.ts: a scan of one tenant takes nothing from the working sets',
  ],
  'the database with the most of them merges, out of turn and whatever its `mergePolicy`.': [
    'test/features/memory/memory-budget.test.ts: merges what waits in the databases together',
    'src/cache/shared-memory.test.ts: lets the tenant merge that has most commits waiting',
  ],
  'Beyond that they reject with `MemoryBudgetError`.': [
    'src/cache/shared-memory.test.ts: bounds what the queries of all collect, but leaves room for small ones, and names the budget',
  ],
  'With `maxMemoryBytes` beside `memory`, an instance takes at most that much of the budget, so that no tenant can take all of it for a large query':
    ['test/features/memory/memory-budget.test.ts: leaves an instance with a bound of its own within that'],
  '`stop()` gives everything back at once.': [
    'test/features/memory/memory-budget.test.ts: is given back by stop(), also where a start fails',
  ],
  'an instance that nobody uses then has no timer and makes no request at all': [
    'test/features/requests/idle.slow.test.ts: on demand ask for nothing and have no timer',
  ],
  'opening it again takes two reads.': ['test/features/requests/requests.slow.test.ts: opening it takes two reads'],
  'It outlives the process, may be shared by any number of processes and databases, and stays within `maxSizeBytes`': [
    'test/features/memory/cache-driver.slow.test.ts: on disk spares all requests for blocks, across restarts and between instances',
    'src/storage/disk-cache.slow.test.ts: stays within its bound, and lets go of what was not used for longest',
    'src/storage/disk-cache.slow.test.ts: is shared by processes that are killed at any moment, and never gives wrong bytes',
  ],
  'what is not exactly what was put there is not used, and is removed.': [
    'src/cache/external-cache.test.ts: never gives other bytes, has them removed, and tells of it once',
    'test/features/memory/cache-driver.slow.test.ts: that gives the bytes of other blocks, of other times or none at all',
  ],
  'A cache that fails, or has not answered within a second, is no error of a read: it is logged once and passed over for a while':
    [
      'src/cache/external-cache.test.ts: passes over a cache that fails, for longer and longer, and tells of it once until it works again',
      'src/cache/external-cache.test.ts: does not wait long for one that hangs',
    ],
};

const trouble: PagePromises = {
  'After 60 s it gives up on those that do not end, and says so.': [
    'test/features/protocol/deadlines.test.ts: does not keep stop() from ending while a flush is under way',
    'test/features/protocol/deadlines.test.ts: does not keep stop() from ending while a merge is under way, nor leave a timer behind',
  ],
  'in any process and also on a replica.': [
    'test/features/protocol/resolve.test.ts: is told by another process, by a replica, and by the one that wrote it; and is shown then',
  ],
  'Every error is a `StoreDbError` with a stable `code`.': [
    'test/repo/docs/errors.test.ts: lists every exported error class with its code, once, and no other',
  ],
  'it finds out first, and never applies the commit twice.': [
    'test/features/protocol/commit.test.ts: is settled by the next flush: applied, and not twice',
    'test/features/protocol/commit.test.ts: is settled by the next flush: lost to another node, and so flushed',
  ],
  'With the `databaseId`, another database refuses to answer': [
    'test/features/protocol/resolve.test.ts: to another database is refused: "it was not applied" would have it written twice',
  ],
  '`true`: it was applied, and this instance shows it. `false`: it was not, and never will be.': [
    'test/features/protocol/resolve.test.ts: is told by another process, by a replica, and by the one that wrote it; and is shown then',
    'test/features/protocol/resolve.test.ts: is "no" once another has the slot: before and after that is merged and trimmed',
  ],
  'While neither is certain it rejects with `CommitOutcomeUnknownError`': [
    'test/features/protocol/resolve.test.ts: is not "no" while its slot is free: it may still land',
    'test/features/protocol/resolve.test.ts: is no answer where the store gives none',
  ],
  'only the last 128 commits that were merged can still be told': [
    'test/features/protocol/resolve.test.ts: is told after it was merged and trimmed, as long as Block 0 lists it',
    'test/features/gc/log.test.ts: stays unknown where the list does not reach back: applied %s',
  ],
  'take `{ signal }`, and give up when it is aborted. With the store out of reach they end with an error; they do not hang.':
    [
      'test/features/values/signals.slow.test.ts: %s says that it was given up',
      'test/features/protocol/deadlines.test.ts: fails flush() within its deadline, as unknown, since its put may have landed',
      'test/features/protocol/deadlines.test.ts: fails a read of a row that is not in memory, and verify()',
    ],
  '`onRequest` is called after every request': ['test/features/interface/metrics.test.ts: is told of every request'],
  '`stop()` waits for the flushes, transactions and merges that were called before it, refuses what is called after it, and leaves nothing behind, so that the process can exit.':
    [
      'test/features/interface/lifecycle.slow.test.ts: stop() waits for flushes of the same turn, sub-batches and slow triggers, and refuses',
      'test/features/interface/lifecycle.slow.test.ts: stop() waits for a transaction in its function',
      'test/features/interface/lifecycle.slow.test.ts: that calls stop() exits by itself (%s)',
    ],
  'An unsafe store, a damaged Block 0 or a store that cannot be reached is in the report, and no error.': [
    'test/features/interface/certification.test.ts: reports an unsafe store, what to do, and why start() fails',
    'test/features/interface/certification.test.ts: reports a Block 0 that is damaged, of a newer format, or missing among other objects',
    'test/features/interface/certification.test.ts: reports a store that is out of reach, and does not take for ever',
  ],
  'and refuses an unsafe store with `UnsafeStoreError`': [
    'test/features/interface/certification.test.ts: is refused on an unsafe store, of which nothing is changed',
  ],
  'An unknown or wrong option throws `InvalidOptionError` at once.': [
    'test/features/interface/options.test.ts: an option that does not exist, with those that do',
  ],
};

export const guideCare: PagePromises = { ...care, ...migrations, ...memory, ...trouble };
