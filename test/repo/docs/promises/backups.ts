import type { PagePromises } from './page-promises.ts';

export const backups: PagePromises = {
  'Every backup is a full one, and yet only what is not there yet is copied': [
    'test/features/maintenance/backup.slow.test.ts: becomes a database of its own that holds just what was there',
    'test/features/maintenance/backup.slow.test.ts: copies only what is not there yet, and earlier ones stay as they were',
  ],
  'a backup that any of them keeps is kept, and always the newest.': [
    'test/features/maintenance/prune.slow.test.ts: the newest, whatever the rules',
    'test/features/maintenance/prune.slow.test.ts: what any of several rules keeps',
  ],
  'Taking one disturbs nobody, and what is written meanwhile is not in it.': [
    'test/features/maintenance/backup.slow.test.ts: holds one state while others write, merge and collect garbage',
  ],
  'A backup becomes a database of its own, with a new id, at a place where nothing is: never in place of another one.':
    [
      'test/features/maintenance/backup.slow.test.ts: becomes a database of its own that holds just what was there',
      'test/features/encryption/backups.test.ts: are refused where nothing says how they are to be stored, and where a database is',
      'test/features/maintenance/backup.slow.test.ts: is no database, and takes no place of one',
    ],
  'everything that it is asked to do is rejected with `DatabaseReplacedError`, until it is opened again.': [
    'test/features/interface/replaced.slow.test.ts: a %s (polling: %s) stops for it: %s',
  ],
  'those that are at most so much older than the newest': [
    'test/features/maintenance/prune.slow.test.ts: those within a time of the newest',
  ],
  'the last one of each day, in UTC, for so many days that have any': [
    'test/features/maintenance/prune.slow.test.ts: one for each day, week and month that has any',
  ],
  'so all that is listed can be restored, whenever pruning ends; what it leaves behind, the next run finds.': [
    'test/features/maintenance/prune.slow.test.ts: can fail at any request: what is listed is whole, and the next run ends it',
  ],
  'A backup that begins meanwhile waits for it, for ten minutes at most; a pruning that was killed holds up backups for an hour.':
    [
      'test/features/maintenance/prune.slow.test.ts: is waited for by backups',
      'test/features/maintenance/prune.slow.test.ts: is waited for for ten minutes, and holds up backups for an hour where it was killed',
    ],
  'backups are taken off the list and objects stay for the next run (`isPostponed`).': [
    'test/features/maintenance/prune.slow.test.ts: leaves objects alone while a backup is under way that may count on them',
  ],
  'What a backup has copied that was broken off stays for a day, for the next one to go on with.': [
    'test/features/maintenance/prune.slow.test.ts: leaves what a broken backup has copied for the next one',
    'test/features/maintenance/backup.slow.test.ts: is not there until all of it is, and is gone on with after a failure',
  ],
  'nothing is downloaded but the inner nodes that tell what there is.': [
    'test/servers/s3/copies.slow.test.ts: downloads neither leaves nor blobs',
  ],
  'so damage is not spread: `backup()` rejects with `CorruptionError`, and no backup is added.': [
    'test/features/maintenance/backup.slow.test.ts: does not spread damage',
  ],
  'Backups of an encrypted database are encrypted.': [
    'test/features/encryption/database.test.ts: is backed up, restored and cloned as it is: encrypted',
  ],
};
