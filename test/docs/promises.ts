/**
 * What README, SECURITY.md and docs/ promise, word for word, and the tests that hold it. A new promise belongs here, with its
 * test; `promises.test.ts` looks that the sentence and the tests are still there.
 */
export interface Promised {
  readonly page: string;
  /** As it stands on the page; line breaks do not count. */
  readonly sentence: string;
  /** File, and a part of the title of a test in it. */
  readonly tests: readonly (readonly [file: string, title: string])[];
}

const readme: readonly Promised[] = [
  {
    page: 'README.md',
    sentence: '**Atomic batches.** A batch is committed as a whole or not at all.',
    tests: [
      ['test/batches/flush.test.ts', 'rejects a duplicate and a missing row as a whole'],
      ['test/crash/database-kill.test.ts', 'holds what was acknowledged, and nothing torn, however often'],
    ],
  },
  {
    page: 'README.md',
    sentence: '**Durable when it says so.** When `flush()` resolves, the batch survives the end of the process,',
    tests: [
      ['test/crash/database-kill.test.ts', 'holds what was acknowledged, and nothing torn, however often'],
      ['test/crash/database-power-loss.test.ts', 'holds what was acknowledged, and nothing torn'],
      ['test/crash/power-loss-driver.test.ts', 'keeps what was acknowledged or seen, and nothing torn'],
    ],
  },
  {
    page: 'README.md',
    sentence:
      '**Serializable writes.** An insert of an existing key and an update of a missing row are always found out,',
    tests: [
      ['test/batches/flush.test.ts', 'rejects a duplicate and a missing row as a whole'],
      ['test/transactions/serializable.test.ts', 'loses no update'],
    ],
  },
  {
    page: 'README.md',
    sentence: '**One snapshot a query.** A query sees one state from start to end, without locks.',
    tests: [['test/snapshots/long-loops.test.ts', 'whose state was collected before it could hold on to it says so']],
  },
  {
    page: 'README.md',
    sentence: '**No trust in clocks.** A wrong clock or a paused process can cost time, and never a commit.',
    tests: [['test/protocol/rotation.test.ts', 'merge one after the other, and lose nothing to each other']],
  },
  {
    page: 'README.md',
    sentence: '**No wrong rows.** Everything that is stored has a checksum. Damage is an error that names the object.',
    tests: [
      ['test/golden/damage.test.ts', 'every flipped bit and every missing end is noticed'],
      ['test/fuzz/database.test.ts', 'answers right, or says that something is wrong'],
    ],
  },
];

const memory: readonly Promised[] = [
  {
    page: 'docs/guide.md',
    sentence: 'All that draw from a budget take together what one instance would with that `maxMemoryBytes`.',
    tests: [['test/memory/memory-budget.test.ts', 'is kept under a random load of many databases']],
  },
  {
    page: 'docs/guide.md',
    sentence: 'those that were not used for the longest time go first, whichever database they are of,',
    tests: [
      ['test/memory/memory-budget.test.ts', 'goes to the databases in use'],
      ['src/memory/shared-memory.test.ts', 'those of tenants that are idle go first'],
    ],
  },
  {
    page: 'docs/guide.md',
    sentence: 'A scan of one database drives the working sets of the others out no more than its own.',
    tests: [['src/memory/shared-memory.test.ts', 'a scan of one tenant takes nothing from the working sets']],
  },
  {
    page: 'docs/guide.md',
    sentence: 'the database with the most of them merges, out of turn and whatever its `mergePolicy`.',
    tests: [
      ['test/memory/memory-budget.test.ts', 'merges what waits in the databases together'],
      ['src/memory/shared-memory.test.ts', 'lets the tenant merge that has most commits waiting'],
    ],
  },
  {
    page: 'docs/guide.md',
    sentence: 'so that no tenant can take all of it for a large query',
    tests: [['test/memory/memory-budget.test.ts', 'leaves an instance with a bound of its own within that']],
  },
  {
    page: 'docs/guide.md',
    sentence: '`stop()` gives everything back at once.',
    tests: [['test/memory/memory-budget.test.ts', 'is given back by stop(), also where a start fails']],
  },
  {
    page: 'docs/guide.md',
    sentence: 'an instance that nobody uses then has no timer and makes no request at all',
    tests: [['test/requests/idle.test.ts', 'on demand ask for nothing and have no timer']],
  },
];

const security: readonly Promised[] = [
  {
    page: 'SECURITY.md',
    sentence:
      '**Secrets are not logged.** Credentials, session tokens, signatures and authorization headers are in no message,',
    tests: [
      ['test/security/secrets.test.ts', 'does not get secrets into errors'],
      ['test/security/secrets.test.ts', 'does not get them into what doctor() tells'],
      ['test/security/secrets.test.ts', 'does not get them into log lines or what shows a database'],
    ],
  },
  {
    page: 'SECURITY.md',
    sentence: '**Messages are for logs.** They are on one line, without control characters, and bounded in length.',
    tests: [['test/security/limits.test.ts', 'are on one line, and do nothing to terminals']],
  },
  {
    page: 'SECURITY.md',
    sentence: 'What is printed in a terminal cannot control it.',
    tests: [['test/cli/control-characters.test.ts', 'as text, in a pipe and in a terminal']],
  },
  {
    page: 'SECURITY.md',
    sentence: 'a bad line is refused with its number',
    tests: [['test/security/imports.test.ts', 'may have lines and quotes that do not end']],
  },
  {
    page: 'SECURITY.md',
    sentence: 'A browser saves blobs of types that it would run, such as HTML and SVG,',
    tests: [['test/s3/blobs.test.ts', 'are downloaded as %s, %s']],
  },
  {
    page: 'SECURITY.md',
    sentence: '**Names stay in their place.** No name of a table, index or key leads out of the prefix',
    tests: [
      ['test/security/places.test.ts', 'keeps every key inside, apart from every other'],
      ['test/values/names.test.ts', 'do not meet each other, nor leave their place'],
    ],
  },
  {
    page: 'SECURITY.md',
    sentence: '**Hostile bytes are refused.** Every decoder,',
    tests: [
      ['test/fuzz/decoders.test.ts', 'decoders, given damaged bytes'],
      ['test/fuzz/outer.test.ts', 'what comes from outside'],
      ['test/security/hostile-commits.test.ts', 'a hostile commit'],
    ],
  },
  {
    page: 'SECURITY.md',
    sentence: '**No regular expression takes longer than its text is long**, more or less.',
    tests: [['test/security/patterns.test.ts', 'take no longer than their text is long']],
  },
  {
    page: 'SECURITY.md',
    sentence: "**Little is loaded.** Importing the library loads nothing but Node.js's own modules.",
    tests: [
      ['test/security/loading.test.ts', 'loads nothing but Node itself'],
      ['test/security/loading.test.ts', 'never leads to the command line'],
    ],
  },
];

const copies: readonly Promised[] = [
  {
    page: 'docs/backups.md',
    sentence: 'Every backup is a full one, and yet only what is not there yet is copied',
    tests: [
      ['test/care/backup.test.ts', 'becomes a database of its own that holds just what was there'],
      ['test/care/backup.test.ts', 'copies only what is not there yet, and earlier ones stay as they were'],
    ],
  },
  {
    page: 'docs/backups.md',
    sentence: 'a backup that any of them keeps is kept, and always the newest.',
    tests: [
      ['test/care/prune.test.ts', 'the newest, whatever the rules'],
      ['test/care/prune.test.ts', 'what any of several rules keeps'],
    ],
  },
  {
    page: 'docs/encryption.md',
    sentence: 'The id is stored with every object, and the key never is.',
    tests: [
      ['test/encryption/database.test.ts', 'shows nothing of its contents, compression %s'],
      ['test/encryption/database.test.ts', 'are not shown by anything that is printed'],
    ],
  },
  {
    page: 'docs/encryption.md',
    sentence: 'Without its keys, a database is not opened:',
    tests: [
      [
        'test/encryption/database.test.ts',
        'is refused without its keys, with others, and with a wrong one of the same id',
      ],
    ],
  },
  {
    page: 'docs/encryption.md',
    sentence: 'An instance with `encryption` refuses what is not encrypted:',
    tests: [
      ['test/encryption/database.test.ts', 'believes no object that is not encrypted, nor one of another database'],
    ],
  },
  {
    page: 'docs/encryption.md',
    sentence: '**a new backup needs the current key and no other.**',
    tests: [
      [
        'test/encryption/backups.test.ts',
        'need only the new key if they were made with it, whatever older ones they share objects with',
      ],
    ],
  },
  {
    page: 'docs/encryption.md',
    sentence: 'Encrypted blobs cannot be downloaded by link: `getDownloadUrl()` rejects with `NotSupportedError`.',
    tests: [['test/encryption/database.test.ts', 'gives no URLs to its blobs']],
  },
];

const stores: readonly Promised[] = [
  {
    page: 'docs/drivers.md',
    sentence: "`missing` is for the store's own word that there is no such object and for nothing else:",
    tests: [['test/s3/client-not-loaded.test.ts', 'rejects every call with a StorageError that says what to do']],
  },
  {
    page: 'docs/drivers.md',
    sentence: 'It holds up to `kill -9` at any moment and to a loss of power, and there are no locks:',
    tests: [
      ['test/crash/database-kill.test.ts', 'holds what was acknowledged, and nothing torn, however often'],
      ['test/crash/power-loss-driver.test.ts', 'keeps what was acknowledged or seen, and nothing torn'],
    ],
  },
  {
    page: 'docs/drivers.md',
    sentence: "A pipe, a device or a socket under a file's name is an error at once, and nothing waits for it.",
    tests: [['src/storage/file-obstacles.test.ts', 'says so and does not wait, with operations made']],
  },
  {
    page: 'docs/costs.md',
    sentence: 'Such a database is opened, and a first row read, with four requests.',
    tests: [
      ['test/requests/many-tables.test.ts', 'is opened, and a first row read, with four requests'],
      ['test/requests/many-tables.test.ts', 'writes what a commit and its merge change, and not what there is'],
    ],
  },
  {
    page: 'docs/costs.md',
    sentence: 'There is no listing in any of them:',
    tests: [['test/requests/requests.test.ts', 'creating it takes the only listing ever']],
  },
];

const pages: readonly Promised[] = [
  {
    page: 'docs/object-stores.md',
    sentence: 'StoreDb writes on a condition whatever a state of the database rests on.',
    tests: [['test/docs/policies.test.ts', 'allow it under the guard as well']],
  },
  {
    page: 'docs/object-stores.md',
    sentence: 'Reads, flushes and merges never list',
    tests: [['test/docs/policies.test.ts', 'allow writers all that they do']],
  },
  {
    page: 'docs/object-stores.md',
    sentence: 'What the store does not let `gc()` delete is in `failed` of its report, and in a warning.',
    tests: [['test/docs/policies.test.ts', 'have gc() tell what a writer may not delete']],
  },
  {
    page: 'docs/object-stores.md',
    sentence: '`s3:if-match` is for `rewrite()`, which replaces objects by the same in another key or compression.',
    tests: [['test/docs/policies.test.ts', 'let rewrite() replace what is there, under the guard']],
  },
  {
    page: 'docs/object-stores.md',
    sentence:
      'A store that ignores a condition, or loses a race, is refused with `UnsafeStoreError`, and nothing is created.',
    tests: [['test/interface/certification.test.ts', 'is refused on an unsafe store, of which nothing is changed']],
  },
  {
    page: 'docs/costs.md',
    sentence: "| `'interval'` (every 5 seconds) | 34,560 | 0.42 |",
    tests: [
      ['test/requests/idle.test.ts', 'at the default interval costs less than 0.50 dollars a month'],
      ['test/cli/commands.test.ts', 'snapshots, migration status, cost'],
    ],
  },
  {
    page: 'docs/cli.md',
    sentence: 'Names and values do nothing to a terminal.',
    tests: [
      ['test/cli/control-characters.test.ts', 'as text, in a pipe and in a terminal'],
      ['test/cli/control-characters.test.ts', 'as JSON'],
      ['test/cli/control-characters.test.ts', 'has heads without controls'],
    ],
  },
  {
    page: 'docs/cli.md',
    sentence: 'An output that takes no more, as on a full disk, is one: status 3.',
    tests: [['test/cli/outputs.test.ts', 'is told in a line where it is full']],
  },
  {
    page: 'docs/cli.md',
    sentence: 'behind a symbolic link, which stays. Named pipes and devices are written to as they are.',
    tests: [
      ['test/cli/outputs.test.ts', 'goes through a link to where it leads'],
      ['test/cli/outputs.test.ts', 'goes into a named pipe once somebody reads it'],
      ['test/cli/outputs.test.ts', 'goes to a device, and tells one that is full'],
    ],
  },
  {
    page: 'docs/guide.md',
    sentence: 'A browser saves what it would run otherwise, such as HTML and SVG;',
    tests: [['test/s3/blobs.test.ts', 'are downloaded as %s, %s']],
  },
  {
    page: 'docs/guide.md',
    sentence: 'Values carry over in both directions, also into another type, as those of equal names do;',
    tests: [
      ['test/migrations/renames.test.ts', 'see what either writes'],
      ['src/migration/row-translation.test.ts', 'carry over, and are converted, in both directions'],
    ],
  },
  {
    page: 'docs/guide.md',
    sentence: 'So no row is left without what only the function fills.',
    tests: [['test/migrations/migration-code.test.ts', 'nulls no row of 5,000, whenever it came']],
  },
];

export const promises: readonly Promised[] = [...readme, ...memory, ...security, ...copies, ...stores, ...pages];

/** Sentences that were true once. */
export const stale: readonly string[] = [
  'StoreDb itself encrypts nothing',
  'Blocks that merges replace stay in this release',
  'Only the primary key is sure to be unique',
  'StoreDb never writes without a condition',
  'An open database never lists',
];
