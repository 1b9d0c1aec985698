import type { PagePromises } from './page-promises.ts';

export const encryption: PagePromises = {
  'Encryption adds 128 bytes to every object, and 16 bytes for every 64 KiB after the first. The number of requests is the same, except that the first read of a blob takes one more if its range does not begin at the beginning.':
    [
      'test/features/encryption/database.test.ts: has objects that are larger by 128 bytes, and by 16 for each further 64 KiB',
    ],
  'The id is stored with every object, and the key never is.': [
    'test/features/encryption/database.test.ts: shows nothing of its contents, compression %s',
    'test/features/encryption/database.test.ts: are not shown by anything that is printed',
  ],
  'Without its keys, a database is not opened:': [
    'test/features/encryption/database.test.ts: is refused without its keys, with others, and with a wrong one of the same id',
  ],
  'An instance with `encryption` refuses objects that are not encrypted:': [
    'test/features/encryption/database.test.ts: believes no object that is not encrypted, nor one of another database',
  ],
  '**a new backup needs the current key and no other.**': [
    'test/features/encryption/backups.test.ts: need only the new key if they were made with it, even if they share objects with older ones',
  ],
  'Encrypted blobs cannot be downloaded by link: `getDownloadUrl()` rejects with `NotSupportedError`.': [
    'test/features/encryption/database.test.ts: gives no URLs to its blobs',
  ],
  'nobody without the key can change it unnoticed.': [
    'src/storage/wrap/envelopes.test.ts: is refused with any byte changed, and with any part of it missing or added',
    'test/features/encryption/database.test.ts: believes no object that is not encrypted, nor one of another database',
  ],
  'Keys are in no log line, no error and no report.': [
    'test/features/encryption/database.test.ts: are not shown by anything that is printed',
  ],
  'An `EncryptionKeyError` names the object and the key that it needs, and says whether the key is missing or another key has its id.':
    [
      'test/features/encryption/database.test.ts: is refused without its keys, with others, and with a wrong one of the same id',
    ],
  'which read and verify only the range that you ask for, in chunks of 64 KiB.': [
    'src/storage/wrap/envelopes.test.ts: verifies a range without the rest, and notices one that was cut off or replaced',
  ],
  'Blocks in a `cacheDriver` are encrypted too.': [
    'test/features/encryption/database.test.ts: keeps no block in the clear in a cache of the user',
  ],
  'It rewrites all objects that are not encrypted with the current key, while the others go on reading and writing.': [
    'test/features/encryption/rewrite.slow.test.ts: turns encryption on, replaces keys, compresses, and turns all of it off again',
    'test/features/encryption/rewrite.slow.test.ts: loses nothing while others write, merge, read and collect garbage',
  ],
  'If it is aborted, or its process dies, call it again: rewritten objects stay rewritten.': [
    'test/features/encryption/rewrite.slow.test.ts: goes on where it was given up',
  ],
  'It replaces objects one at a time, each on condition that the object has not changed since it was read': [
    'test/features/encryption/rewrite.slow.test.ts: brings nothing back that is deleted meanwhile, and overwrites nothing that is newer',
  ],
  'A folder keeps no unencrypted bytes once `rewrite()` is done, but its disk may keep them.': [
    'test/features/encryption/rewrite.slow.test.ts: leaves nothing in a folder that could be read before, nor objects under the earlier key',
  ],
  'A backup from before a change of keys may then need both keys.': [
    'test/features/encryption/backups.test.ts: name the keys that they need, and need only the current one once they are rewritten',
  ],
  'Backups can be restored at every moment while they are rewritten, and stay in their order': [
    'test/features/encryption/backups.test.ts: name the keys that they need, and need only the current one once they are rewritten',
    'test/features/encryption/backups.test.ts: forget the time of a backup that was rewritten once it is pruned',
  ],
  'If a place has unencrypted backups, backups of an encrypted database are refused there, until you rewrite the old ones with `acceptUnencrypted`.':
    [
      'test/features/encryption/backups.test.ts: are refused without options of their encoding, and in the place of a database',
      'test/features/encryption/backups.test.ts: leave no readable object of the new one, and none at all once rewritten',
    ],
  'It says that everything that was put before is encrypted with this key, so the next backup need not look at all objects. It looks once at each object that was put since, with a request of 112 bytes.':
    ['test/features/encryption/backups.test.ts: reads the objects of the one before it once, and never again'],
  'Both may also have the JSON itself as their value. On the command line, other processes of the machine can read it, and the command warns about this.':
    ['test/features/cli/outputs.slow.test.ts: are taken, with word of who can read them'],
  '**Noticed** is every change to an object, every part that is missing or added, an object under another name, an object of another database, and an object that was put there without the key.':
    [
      'src/storage/wrap/envelopes.test.ts: is refused with any byte changed, and with any part of it missing or added',
      'src/storage/wrap/envelopes.test.ts: is refused under another name, with another key, and with a header that was made up',
      'test/features/encryption/database.test.ts: believes no object that is not encrypted, nor one of another database',
    ],
  'An application that opens the database can demand a state that is not older than one it has seen': [
    'test/features/protocol/opening.test.ts: refuses a database that was set back, which nothing else shows at the opening',
  ],
  'Writing it needs Node.js 22.15 or newer, while every version reads it.': [
    'src/storage/wrap/envelopes.test.ts: compressed with zstd is read by every runtime',
    'test/features/encryption/database.test.ts: of a compression that is none, or that this runtime cannot write, are refused',
  ],
  'All instances of a compressed database need the option `compression`': [
    'test/features/encryption/database.test.ts: is read by holders of the key, and by nobody else',
  ],
};
