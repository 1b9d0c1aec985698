import type { PagePromises } from './page-promises.ts';

export const drivers: PagePromises = {
  '`put(key, body, { if })` writes a whole object, or nothing. The condition is part of the write': [
    'src/testing/conformance-reads.ts: a stream that fails writes nothing',
    'src/testing/conformance-writes.ts: increments by compare-and-swap lose no update',
  ],
  'A missing key is no failure.': [
    'src/testing/conformance-writes.ts: deleting is idempotent, for many keys and for none',
  ],
  'It includes every put that was answered before the call.': [
    'src/testing/conformance-writes.ts: what was written is read and listed at once, by others too',
  ],
  'are different keys. They are non-empty': [
    'src/testing/conformance-keys.ts: keys that differ only in case or form are different',
    'src/testing/conformance-keys.ts: what is no key is refused, without effect',
  ],
  'The caller may change its buffer after a put without changing the stored object. Nobody changes the bytes that `get` returns, so a driver may return a view of its own memory.':
    ['src/testing/conformance-reads.ts: changing a buffer after the put changes nothing'],
  'An aborted `signal` rejects the request: with outcome `none` if the request had not begun': [
    'src/testing/conformance-reads.ts: a request whose signal is aborted is rejected, and writes nothing',
  ],
  'of 16 puts at the same time, one gets the answer that it was made, and its bytes are stored': [
    'src/storage/certify/certify.slow.test.ts: is found out by races alone, every time, if it checks and then writes',
  ],
  'nothing depends on them: at worst a warning': [
    "src/storage/certify/certify.slow.test.ts: the clock's difference is reported, less the part that its whole seconds explain",
  ],
  'Failed requests prove nothing, since they happen on safe stores too: StoreDb tries them again.': [
    'src/storage/certify/certify.slow.test.ts: is never called unsafe for its failures, and mostly safe in spite of them',
  ],
  'its folder and that small file stay, so that no ETag of before can ever match again.': [
    'src/testing/conformance-writes.ts: the ETag of a deleted object does not match the next one of that key',
  ],
  "A flush that finds no room fails with a `StorageError` with the `reason` `'full'`, and has written nothing.": [
    'test/features/maintenance/full-disk.slow.test.ts: frees it',
  ],
  '`missing` only if the store itself says that there is no such object. If the driver cannot know, it must reject:': [
    'test/servers/s3/client-not-loaded.test.ts: rejects every call with a StorageError that says what to do',
  ],
  'It withstands `kill -9` at any moment and a loss of power. There are no locks:': [
    'test/simulation/crash/database-kill.slow.test.ts: keeps all acknowledged writes, and nothing torn, however often its writer is killed',
    'test/simulation/crash/power-loss-driver.slow.test.ts: keeps all acknowledged or seen writes, and nothing torn',
  ],
  "A pipe, a device or a socket under a file's name is an error at once, and nothing waits for it.": [
    'src/storage/file/file-obstacles.test.ts: says so and does not wait, with operations made',
  ],
  'A range is two offsets, the end exclusive, clipped to the object. All bytes of an answer are of one version of the object, never of two.':
    [
      'test/features/conformance/file.slow.test.ts: FileDriver, durability',
      'test/simulation/crash/file-driver-interleavings.slow.test.ts: is linearizable',
    ],
  'Once it has answered `written` the object is durable.': [
    'test/simulation/crash/power-loss-driver.slow.test.ts: keeps all acknowledged or seen writes, and nothing torn',
  ],
  'S3 copies in one request, and objects larger than 256 MiB part by part.': [
    'test/servers/s3/copies.slow.test.ts: is copied part by part, with its type',
  ],
  'Then wrong clocks of instances have no effect.': [
    'test/features/maintenance/clocks.test.ts: on a bucket begin at the times of the bucket',
  ],
  'The driver answers `copied`, or `refused` if it cannot copy. StoreDb copies only objects that never change, so it may repeat a copy, and the copy may replace an existing object.':
    ['test/servers/s3/copies.slow.test.ts: downloads neither leaves nor blobs'],
  'Folders are never removed.': ['src/storage/file/file-driver.test.ts: leaves a folder whose objects are gone'],
  'An object that is created and never replaced (nearly all are) is one file': [
    'src/storage/file/file-driver.test.ts: keeps an object that is only created in one file',
  ],
  'Once there are versions, there are versions for all time. So a reader opens the plain file first, and then looks for versions.':
    [
      'test/simulation/crash/file-driver-interleavings.slow.test.ts: is linearizable',
      'src/storage/file/file-unchanged.test.ts: is not misled where its version and the successor are removed between the two looks',
    ],
  '`lost` means that certainly nothing was written.': [
    'src/testing/driver-conformance.slow.test.ts: finds out that %o breaks it',
    'test/simulation/crash/file-driver-processes.slow.test.ts: 16 processes that count by compare-and-swap lose no update',
  ],
  'A driver rejects with `StorageError`; its `outcome` is `none` only if the request had no effect and never will have.':
    [
      'test/servers/s3/requests.slow.test.ts: are sent once, and %s leaves their outcome unknown',
      'test/servers/s3/requests.slow.test.ts: that are refused with %i %s certainly had no effect',
      'test/servers/s3/requests.slow.test.ts: that fail leave a doubt if they had been made: %s',
    ],
  'requests for up to ten seconds, if the store has answered before.': [
    'test/servers/s3/gateway-restart.slow.test.ts: reads, refreshes, merges and transactions wait for it',
    'test/servers/s3/gateway-restart.slow.test.ts: one that stays away is waited for once',
  ],
  'no two writes of one key ever have the same, not even with the same bytes, and not after a delete.': [
    'src/testing/driver-conformance.slow.test.ts: finds out that %o breaks it',
    'src/storage/memory-driver.test.ts: takes times from its environment, and ETags that no other instance has',
  ],
  'They are non-empty, at most 1,024 bytes of UTF-8, and well-formed; anything else is refused with outcome `none`.': [
    'test/features/conformance/memory.test.ts: MemoryDriver',
    'src/testing/driver-conformance.slow.test.ts: finds out that %o breaks it',
  ],
  'A read without a range gives up beyond 512 MiB, twice the largest row, and any other answer of a bucket beyond 32 MiB.':
    [
      'test/servers/s3/endless-answers.slow.test.ts: to a read of a whole object is given up at the largest size of one',
      'test/servers/s3/endless-answers.slow.test.ts: to a listing, or as an error with status %i, is given up',
      'src/storage/file/file-obstacles.test.ts: FileDriver does not read a file into memory that is larger than any object',
    ],
  'If the store breaks a rule, it is refused with `UnsafeStoreError`, which names the rule, and nothing is created.': [
    'test/features/interface/certification.test.ts: is refused on an unsafe store, and nothing there is changed',
    'test/servers/s3/certification.slow.test.ts: is refused, and nothing is created: %o',
  ],
  'Opening an existing database tests nothing.': [
    'test/features/interface/certification.test.ts: happens only at the creation: an existing database is opened without',
  ],
  'in the store for 30 days': [
    'test/servers/s3/certified-once.slow.test.ts: is not probed by other processes either: the bucket records it',
    'test/servers/s3/certified-once.slow.test.ts: is tried out again once that is old, of another store, or of other rules',
  ],
  'A driver that checks conditions itself may have `certified: true`; then nothing is tested.': [
    'test/features/interface/certification.test.ts: needs no trying out on a certified driver',
  ],
  '`absent` is refused if there is an object, and leaves it as it was': [
    'src/storage/certify/certify.slow.test.ts: is found out: $Broken breaks $names',
  ],
  '`{ etag }` is refused if the object has been replaced, and leaves it as it was': [
    'src/storage/certify/certify.slow.test.ts: is found out: $Broken breaks $names',
  ],
  '`{ etag }` is refused if there is no object, and creates none': [
    'src/storage/certify/certify.slow.test.ts: is found out: $Broken breaks $names',
  ],
  'If too many requests fail, the result is unknown: then no database is created either, `start()` fails with a `StorageError`':
    [
      'test/features/interface/certification.test.ts: on a store that fails too often says that it could not be tried out',
      'src/storage/certify/certify.slow.test.ts: is never called safe because requests fail: $Broken',
    ],
  'The checks take 93 requests, 98 together with the requests of opening. About twenty of them run one after the other:':
    [
      'src/storage/certify/certify.slow.test.ts: is found with so few requests that opening takes fewer than a hundred',
      'test/features/interface/certification.test.ts: takes fewer than a hundred requests in all',
    ],
  'It reports errors rather than throw them, where it can:': [
    'test/features/interface/certification.test.ts: reports an unsafe store, the remedy, and why start() fails',
    'test/features/interface/certification.test.ts: reports a store that is out of reach, and ends in time',
  ],
  'Any number of processes of one machine may use the folder at the same time.': [
    'test/simulation/crash/file-driver-processes.slow.test.ts: 16 processes that count by compare-and-swap lose no update',
  ],
  'So a file system that ignores case, changes the form of letters or reserves names cannot mix up two keys.': [
    'src/storage/file/file-names.test.ts: differ for different keys, on file systems that ignore case and form too',
  ],
  'Unlike inode numbers and times it is never used again, and it survives copies and backups.': [
    'src/storage/file/file-driver.test.ts: reads a folder that was copied, with the same ETags',
  ],
  'A file without a trailer is reported as damaged, never as an object.': [
    'src/storage/file/file-driver.test.ts: leaves foreign files alone, and refuses damaged ones',
  ],
  'A broken symbolic link in place of a folder is an error too.': [
    'src/storage/file/file-obstacles.test.ts: refuses writes at once where it is the folder, and writes nothing when the target appears',
  ],
  'So a process that finds a file with two names (step 5 is missing) syncs the folder itself before it shows the object. An object that any process has seen stays.':
    [
      'src/storage/file/file-driver.test.ts: a reader makes an object durable that a writer could not',
      'test/simulation/crash/power-loss-driver.slow.test.ts: keeps all acknowledged or seen writes, and nothing torn',
    ],
  'No lock is needed, since the name is the lock, and it is never given back': [
    'test/simulation/crash/file-driver-processes.slow.test.ts: a replacement that was stopped %s loses, however much happened meanwhile',
    'test/simulation/crash/file-driver-interleavings.slow.test.ts: is linearizable',
  ],
  'So a process that has read version N can check whether the object is unchanged (`ifNoneMatch`) with two looks, and opens no file:':
    ['src/storage/file/file-unchanged.test.ts: looks twice, and opens nothing'],
  'StoreDb replaces only Block 0, and never deletes it.': [
    'test/repo/docs/policies.slow.test.ts: let garbage collection delete everything but Block 0, and writers nothing but probes',
  ],
  'So Block 0 can be written when nothing else can. `db.gc()` first writes Block 0, so it can free the disk': [
    'test/features/maintenance/full-disk.slow.test.ts: frees it',
    'test/features/maintenance/full-disk.slow.test.ts: frees a real one',
  ],
  'A listing of a folder removes temporary files that are older than an hour.': [
    'src/storage/file/file-driver.test.ts: sweeps the remains of crashed writers once they are old',
    'src/storage/file/file-driver.test.ts: a writer whose file was swept writes it again',
  ],
  'Writes of merges (`background`) let other writes go first: only three of them run at the same time as other writes, otherwise sixteen. While sixteen blocks are being synced, a commit of one row would take 10 ms; with three it takes 3 ms.':
    [
      'src/storage/file/file-driver.test.ts: of the background are few while others run, and many again when those have ended',
    ],
  'Both are an error that names the file, and readers never pass over such bytes.': [
    'src/storage/file/folder-journal.slow.test.ts: are reported as damaged if %s changed later, and the record is %s',
    'src/storage/file/folder-journal.slow.test.ts: are reported as damaged if they look torn, and a later record says that they were synced',
    'src/storage/file/journal-records.test.ts: is damaged if one of its bytes changed: alone, before a cut one and behind one',
  ],
  'So a commit that it reports was there before the guard was, and is taken into the journal.': [
    'src/storage/file/folder-journal.slow.test.ts: shows a next version to a process of an older release, and a newest one that it must refuse',
    'src/storage/file/folder-journal.slow.test.ts: are taken into it with the first put, and their files go with them',
  ],
  'the record may be lost, and nobody was told that it is there, since a process syncs what it has read before it shows an object or reports a lost race.':
    [
      'test/simulation/crash/power-loss-driver.slow.test.ts: keeps all acknowledged or seen writes, and nothing torn',
      'src/storage/file/folder-journal.slow.test.ts: syncs a record of another process before it shows it',
    ],
  'The next write in either ends it, and both go on in journals of their own.': [
    'src/storage/file/folder-journal.slow.test.ts: can be copied by hard links: the copy stays as it was',
  ],
  'A folder that has a journal can be read elsewhere, and writes of commits are refused': [
    'src/storage/file/folder-journal.slow.test.ts: is read by a process that may not write, and refuses its writes, where processes cannot share a journal',
  ],
  '*Claim: a name of a journal is not used again.*': [
    'test/simulation/crash/file-driver-processes.slow.test.ts: a process that was stopped before it made a journal makes none again that was removed',
  ],
  '`forget(prefix)` makes the store keep no bytes of objects under the prefix that were deleted or replaced before the call.':
    [
      'src/storage/file/folder-journal.slow.test.ts: leaves no bytes of deleted or replaced objects, nor files to which nothing refers',
      'test/features/encryption/rewrite.slow.test.ts: leaves nothing in a folder that could be read before, nor objects under the earlier key',
    ],
};
