import type { PagePromises } from '../page-promises.ts';

export const migrations: PagePromises = {
  'It may return fields that only the old version has; they are dropped.': [
    'src/migration/row-translation.test.ts: makes the row; missing fields are null or the default, and fields of the old version alone are left out',
  ],
  'for as long as you like: both read and write all rows, each in its own version.': [
    'test/features/migrations/side-by-side.test.ts: the new one sees the old rows as its own',
    'test/features/migrations/side-by-side.test.ts: both insert, delete and replace, and keys are unique',
    'test/features/migrations/retirement.slow.test.ts: stays: %s',
  ],
  'A value that the new type cannot hold cannot be migrated.': [
    'src/migration/row-translation.test.ts: refuses values that the new type cannot hold',
  ],
  'New fields get their constant `default`, or null. Fields that the new version lacks are left out.': [
    'src/migration/row-translation.test.ts: gives new fields their constant default, and leaves out those that are gone',
  ],
  'A call that reads a row that cannot be migrated rejects with `MigrationError`, which names the row.': [
    'test/features/migrations/bridge.slow.test.ts: is an error for the new one only, and only where it is read',
  ],
  'a scan reads every row, an index skips rows that do not match.': [
    'test/features/migrations/bridge.slow.test.ts: is no error if an index on another field excludes its row',
  ],
  'Values carry over in both directions. The type may change, as between fields of the same name.': [
    "test/features/migrations/renames.test.ts: see each other's writes",
    'src/migration/row-translation.test.ts: carry over, and are converted, in both directions',
  ],
  'A name that the stored version does not have is refused, and so are two names if the value of one would be lost.': [
    'test/features/migrations/renames.test.ts: are refused before anything is written: %s',
  ],
  'If there is also a `migrate` function, its argument has the field under both names': [
    'src/migration/row-translation.test.ts: are there before a migrate function is called, which wins, and carry over where it leaves them out',
  ],
  'Older releases of StoreDb refuse a database with `renames`.': [
    'test/features/migrations/renames.test.ts: keeps releases out that know of no other names',
  ],
  'It cannot change the primary key.': [
    'src/migration/row-translation.test.ts: that returns %s does not migrate the row',
  ],
  'or become null if the old type cannot hold the value or `oneOf` does not list it. Fields that only the old version has keep their values, also where one batch deletes a row and inserts it again.':
    [
      'src/migration/row-translation.test.ts: is null where the old type cannot hold the value',
      'src/migration/row-translation.test.ts: keeps the fields of the old version alone, and takes the common ones',
    ],
  'When one version writes a row, no field that only the other version has is lost.': [
    'test/features/migrations/side-by-side.test.ts: fields of one version survive writes of the other',
    'test/features/migrations/later-wins.slow.test.ts: in histories at random (seed %i)',
  ],
  'Some rows cannot be migrated. `blockers` names up to 20 of them, with the reasons. The old version stays in force': [
    'test/features/migrations/phases.test.ts: blocks the migration with a report, and leaves the old version in force until it is tried again',
  ],
  'The old version is maintained until `finishMigration()` is called': [
    'test/features/migrations/retirement.slow.test.ts: stays although nobody is known to use it, until somebody asks',
  ],
  'Before anything is written, StoreDb names each field that is dropped or changes its type. Instances that registered the version without a function write it to the log:':
    [
      'src/migration/field-changes.test.ts: names dropped fields, and says that one may have another name now',
      'src/migration/field-changes.test.ts: names fields of another type',
      'test/features/migrations/renames.test.ts: moves values to their new names without a migrate function, and says that they stay',
    ],
  'are refused with `InvalidSchemaError` until the old version is retired: they cannot read or write the table, do none of the work, and do not start.':
    [
      'test/features/migrations/migration-code.test.ts: nulls no row of 5,000, whenever it came',
      'test/features/migrations/migration-code.test.ts: is refused by the first commit of the others already',
    ],
  'So no row is left without the values that only the function fills.': [
    'test/features/migrations/migration-code.test.ts: nulls no row of 5,000, whenever it came',
  ],
  'If an older release began the migration, every instance can take part.': [
    'test/features/migrations/migration-code.test.ts: is not compared with migrations begun by older releases',
  ],
  'If one dies, the next one goes on.': ['test/features/migrations/crashes.slow.test.ts: %s any request that writes'],
  "With `polling: 'onDemand'` only the instance that called `setTargetSchemaVersion()` does the work.": [
    'test/features/migrations/targets.test.ts: comes to an end with polling %s',
  ],
  'The work rests three quarters of the time': [
    'src/base/pacer.test.ts: work in the background leaves three quarters of the time to others, other work none',
  ],
  'and a fifth of the time where it finds the event loop idle': [
    'src/base/pacer.test.ts: work in the background leaves little time where nobody else works',
  ],
  '`rowsPerSecond` limits the rows that are migrated.': ['test/features/migrations/targets.test.ts: keeps to its rate'],
  'Other chunks have up to 20,000 rows, which take up to a 32nd of `maxMemoryBytes`': [
    'test/features/migrations/load.test.ts: holds no more rows at a time than there is memory for',
  ],
  'Each chunk costs one write of Block 0, the writes of its blocks, and almost no reads.': [
    'test/features/migrations/requests.test.ts: costs the blocks that it writes, one write of Block 0 for each chunk, and hardly a read',
  ],
  'Reads and flushes take no more requests than otherwise.': [
    'test/features/migrations/requests.test.ts: adds no request to reads and flushes',
  ],
  'While instances are known to use the old version, the call rejects with `MigrationActiveError`, which names them': [
    'test/features/migrations/retirement.slow.test.ts: shows who may still use the old version, and does nothing before they are gone',
  ],
  '`finishMigration(table, { force: true })` ignores it.': [
    'test/features/migrations/retirement.slow.test.ts: by force refuses the remaining instances, before anything is written, and says what to deploy',
  ],
  '`finishMigration()` rejects, names them, and records nothing.': [
    'test/features/migrations/phases.test.ts: is named before the end of the old version is recorded, so that the %s one can correct it',
    'test/features/unique/migrations.test.ts: names such rows before the end of the old one is recorded',
  ],
  'A later call that leaves `keepOld` or `rowsPerSecond` out, such as that of `store-db tend`, keeps the recorded value.':
    [
      'test/features/migrations/targets.test.ts: keeps the recorded options that a later call leaves out, so that a tool can take part',
    ],
  'A call with a retired version is refused with `InvalidSchemaError`, before anything is written, and the message says which version to deploy.':
    [
      'test/features/migrations/retirement.slow.test.ts: by force refuses the remaining instances, before anything is written, and says what to deploy',
      'test/features/migrations/phases.test.ts: refuses those with the old version who come too late, before anything of theirs is lost',
    ],
  "with `retiredVersions: 'allow'` it opens the other tables.": [
    'test/features/migrations/retirement.slow.test.ts: rejects, and opens the other tables where it is allowed to',
  ],
  'retires the old version automatically, once the new version is complete and no instance is known to use the old one: an instance waits for some minutes first, in which others would say so.':
    [
      'test/features/migrations/retirement.slow.test.ts: is not retired by itself either, where that was allowed: %s',
      'test/features/migrations/phases.test.ts: keeps the old version unless asked otherwise, and then while somebody is known to use it',
    ],
  '`cancelMigration()` goes back to the old version, in any state until it is retired.': [
    'test/features/migrations/phases.test.ts: in phase %s drops the trees of the new version',
    'test/features/migrations/phases.test.ts: is too late once the old version is retired',
  ],
  'There is one migration of a table at a time.': [
    'test/features/migrations/targets.test.ts: on the way to another version is refused',
  ],
  'while rows are not unique, the migration is blocked, and `blockers` names them': [
    'test/features/unique/migrations.test.ts: is blocked by rows that are not, which it names, and goes on once they are',
  ],
  'if they write rows that are not unique meanwhile, once their commits are merged, `blockers` names these rows too, and the old version stays until they are corrected. All instances enforce unique indexes of the old version until then':
    [
      'test/features/unique/migrations.test.ts: does not retire the old one while nodes with that have left rows that are not unique',
      'test/features/unique/migrations.test.ts: lets nodes with the older one keep to the unique indexes of that, and its own to both',
    ],
  'the new version of the table cannot be used (`MigrationPendingError`), and the old one can': [
    'test/features/migrations/bridge.slow.test.ts: one with other keys, before all of its rows are made',
  ],
};
