import type { PagePromises } from './page-promises.ts';

export const encryption: PagePromises = {
  'Every object grows by 128 bytes when it is encrypted, and by 16 more for every 64 KiB after the first; requests are as many as without, save that the first range of a blob that does not begin at its beginning takes one more.':
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
  'An instance with `encryption` refuses what is not encrypted:': [
    'test/features/encryption/database.test.ts: believes no object that is not encrypted, nor one of another database',
  ],
  '**a new backup needs the current key and no other.**': [
    'test/features/encryption/backups.test.ts: need only the new key if they were made with it, whatever older ones they share objects with',
  ],
  'Encrypted blobs cannot be downloaded by link: `getDownloadUrl()` rejects with `NotSupportedError`.': [
    'test/features/encryption/database.test.ts: gives no URLs to its blobs',
  ],
  'nobody who lacks the key can change it without that being noticed.': [
    'src/storage/wrap/envelopes.test.ts: is refused with any byte changed, and with any part of it missing or added',
    'test/features/encryption/database.test.ts: believes no object that is not encrypted, nor one of another database',
  ],
  'Keys are in no log line, no error and no report.': [
    'test/features/encryption/database.test.ts: are not shown by anything that is printed',
  ],
  'An `EncryptionKeyError` says which object needs which key, and whether that is missing or another one was given under its id.':
    [
      'test/features/encryption/database.test.ts: is refused without its keys, with others, and with a wrong one of the same id',
    ],
  'which read and verify only the range that is asked for, in chunks of 64 KiB.': [
    'src/storage/wrap/envelopes.test.ts: verifies a range without the rest, and notices one that was cut off or replaced',
  ],
  'What a `cacheDriver` holds is encrypted too.': [
    'test/features/encryption/database.test.ts: keeps no block in the clear in a cache of the user',
  ],
  'It stores anew what is not encrypted with the current key, while the others go on reading and writing.': [
    'test/features/encryption/rewrite.slow.test.ts: turns encryption on, replaces keys, compresses, and turns all of it off again',
    'test/features/encryption/rewrite.slow.test.ts: loses nothing while others write, merge, read and collect garbage',
  ],
  'If it is given up, or its process dies, call it again: what was rewritten stays so.': [
    'test/features/encryption/rewrite.slow.test.ts: goes on where it was given up',
  ],
  'Objects are replaced one at a time, each on condition that it is still what was read': [
    'test/features/encryption/rewrite.slow.test.ts: brings nothing back that is deleted meanwhile, and overwrites nothing that is newer',
  ],
  'A folder keeps none of what is encrypted anew': [
    'test/features/encryption/rewrite.slow.test.ts: leaves nothing in a folder that could be read before, nor what the key before is for',
  ],
  'A backup that was made before a key was replaced may then need both.': [
    'test/features/encryption/backups.test.ts: tell which keys they need, and need only the current one once they are rewritten',
  ],
  'Backups can be restored at every moment while they are rewritten, and stay in their order': [
    'test/features/encryption/backups.test.ts: tell which keys they need, and need only the current one once they are rewritten',
    'test/features/encryption/backups.test.ts: forget the time of a backup that was rewritten once it is pruned',
  ],
  'Backups that are not encrypted are refused as a place for those of a database that is, until they have been rewritten with `acceptUnencrypted`.':
    [
      'test/features/encryption/backups.test.ts: are refused where nothing says how they are to be stored, and where a database is',
      'test/features/encryption/backups.test.ts: leave nothing readable of what the new one consists of, and nothing at all once rewritten',
    ],
  'The next one looks at what was put since, with a request of 112 bytes for each object, once.': [
    'test/features/encryption/backups.test.ts: looks once at what the one before it has put, and never again',
  ],
  'on the command line, other processes of the machine can read it, and the command says so.': [
    'test/features/cli/outputs.slow.test.ts: are taken, with word of who can read them',
  ],
  'Noticed is every change to an object, every part that is missing or added, an object under another name, one of another database, and one that was put there without the key.':
    [
      'src/storage/wrap/envelopes.test.ts: is refused with any byte changed, and with any part of it missing or added',
      'src/storage/wrap/envelopes.test.ts: is refused under another name, with another key, and with a header that was made up',
      'test/features/encryption/database.test.ts: believes no object that is not encrypted, nor one of another database',
    ],
  'An application that opens the database can ask for a state that is not older than one that was seen before': [
    'test/features/protocol/opening.test.ts: refuses a database that was set back, which nothing else shows to whoever opens it',
  ],
  'needs Node.js 22.15 or newer to write, while every version reads it.': [
    'src/storage/wrap/envelopes.test.ts: compressed with zstd is read by every runtime',
    'test/features/encryption/database.test.ts: of a compression that is none, or that this runtime cannot write, are refused',
  ],
  'All instances of a database that is compressed need the option': [
    'test/features/encryption/database.test.ts: is read by whoever was told, and by nobody else',
  ],
};
