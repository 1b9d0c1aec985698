import type { PagePromises } from './page-promises.ts';

export const backups: PagePromises = {
  'Every backup is a full one. But `backup()` copies only the blocks and blobs that are not there yet, since they never change.':
    [
      'test/features/maintenance/backup.slow.test.ts: becomes a separate database with exactly the same contents',
      'test/features/maintenance/backup.slow.test.ts: copies only missing objects, and does not change earlier backups',
    ],
  'Backups stay until you prune them, by rules. A backup stays if any rule keeps it, and the newest always stays.': [
    'test/features/maintenance/prune.slow.test.ts: the newest, under any rules',
    'test/features/maintenance/prune.slow.test.ts: those that any of several rules keeps',
  ],
  'Other processes may go on meanwhile; their later writes are not in the backup.': [
    'test/features/maintenance/backup.slow.test.ts: holds one state while others write, merge and collect garbage',
  ],
  'A restored backup becomes a new database, with a new id, under an empty prefix: it never replaces another database.':
    [
      'test/features/maintenance/backup.slow.test.ts: becomes a separate database with exactly the same contents',
      'test/features/encryption/backups.test.ts: are refused without options of their encoding, and in the place of a database',
      'test/features/maintenance/backup.slow.test.ts: is no database, and takes no place of one',
    ],
  'If you forget to stop an instance, it finds another database, or an older state of its database: every call on it rejects with `DatabaseReplacedError`, until the database is opened again.':
    ['test/features/interface/replaced.slow.test.ts: a %s (polling: %s) stops for it: %s'],
  'backups that are at most this much older than the newest': [
    'test/features/maintenance/prune.slow.test.ts: those within a time of the newest',
  ],
  'the last backup of each day, in UTC, for this number of days that have any': [
    'test/features/maintenance/prune.slow.test.ts: one for each day, week and month that has any',
  ],
  'Pruning takes a backup off the list before it deletes any of its objects. So every listed backup can be restored, even if pruning was interrupted, and the next run deletes the rest.':
    [
      'test/features/maintenance/prune.slow.test.ts: can fail at any request: every listed backup is whole, and the next run ends it',
    ],
  'A backup that begins during pruning waits for it, for at most ten minutes; a pruning that was killed holds up backups for an hour.':
    [
      'test/features/maintenance/prune.slow.test.ts: is waited for by backups',
      'test/features/maintenance/prune.slow.test.ts: is waited for for ten minutes, and holds up backups for an hour where it was killed',
    ],
  'pruning takes backups off the list, and leaves their objects for the next run (`isPostponed`).': [
    'test/features/maintenance/prune.slow.test.ts: leaves objects alone while a backup is under way that may count on them',
  ],
  'If a backup was interrupted, its copied objects stay for a day, and the next backup uses them.': [
    'test/features/maintenance/prune.slow.test.ts: leaves the copies of a broken backup for the next one',
    'test/features/maintenance/backup.slow.test.ts: is not there until all of it is, and is gone on with after a failure',
  ],
  'Then only inner nodes are downloaded, to find the objects.': [
    'test/servers/s3/copies.slow.test.ts: downloads neither leaves nor blobs',
  ],
  'so a backup does not spread damage: `backup()` rejects with `CorruptionError`, and adds no backup.': [
    'test/features/maintenance/backup.slow.test.ts: does not spread damage',
  ],
  'Backups of an encrypted database are encrypted.': [
    'test/features/encryption/database.test.ts: is backed up, restored and cloned as it is: encrypted',
  ],
};
