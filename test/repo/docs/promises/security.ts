import type { PagePromises } from './page-promises.ts';

export const security: PagePromises = {
  'It contains nothing of what was not published: no other rows, fields, names or defaults': [
    'test/features/publish/leaks.test.ts: hold nothing of rows, fields, indexes and tables that are not published',
  ],
  'with a pointer that is not forged, a changed byte is an error and never another row: names tell the hash of what they name.':
    [
      'test/features/publish/damage.slow.test.ts: gives an error or the right answer for any damaged object',
      'test/features/publish/damage.slow.test.ts: refuses one object in the place of another',
    ],
  'then names, sizes and times are all that shows': [
    'test/features/encryption/database.test.ts: shows nothing of its contents, compression %s',
  ],
  'nothing is believed that was made or changed without the key.': [
    'test/features/encryption/database.test.ts: believes no object that is not encrypted, nor one of another database',
    'src/storage/wrap/envelopes.test.ts: is refused with any byte changed, and with any part of it missing or added',
  ],
  'what a request held in secret is taken out of all that comes back.': [
    'test/features/security/secrets.test.ts: does not get secrets into errors',
  ],
  '**Secrets are not logged.** Credentials, session tokens, signatures and authorization headers are in no message,': [
    'test/features/security/secrets.test.ts: does not get secrets into errors',
    'test/features/security/secrets.test.ts: in %s does not get them into the report of doctor()',
    'test/features/security/secrets.test.ts: does not get them into log lines or the inspected form of a database',
  ],
  '**Messages are for logs.** They are on one line, without control characters, and bounded in length.': [
    'test/features/security/limits.test.ts: are on one line, and do nothing to terminals',
  ],
  'What is printed in a terminal cannot control it.': [
    'test/features/cli/control-characters.slow.test.ts: as text, in a pipe and in a terminal',
  ],
  'a bad line is refused with its number': [
    'test/features/security/imports.test.ts: may have lines and quotes that do not end',
  ],
  'A browser saves blobs of types that it would run, such as HTML and SVG,': [
    'test/servers/s3/blobs.slow.test.ts: are downloaded as %s, %s',
  ],
  '**Names stay in their place.** No name of a table, index or key leads out of the prefix': [
    'test/features/security/places.slow.test.ts: keeps every key inside, apart from every other',
    'test/features/values/names.slow.test.ts: do not meet each other, nor leave their place',
  ],
  '**Hostile bytes are refused.** Every decoder,': [
    'test/properties/fuzz/decoders.slow.test.ts: decoders, given damaged bytes',
    'test/properties/fuzz/outer.slow.test.ts: input from outside',
    'test/features/security/hostile-commits.slow.test.ts: a hostile commit',
  ],
  '**No regular expression takes longer than its text is long**, more or less.': [
    'test/features/security/patterns.slow.test.ts: take no longer than their text is long',
  ],
  "**Little is loaded.** Importing the library loads nothing but Node.js's own modules.": [
    'test/features/security/loading.test.ts: loads nothing but Node itself',
    'test/features/security/loading.test.ts: never leads to the command line',
  ],
  'never code that runs, a crash or memory without bound beyond a small multiple of what is stored.': [
    'test/properties/fuzz/database.slow.test.ts: answers right, or says that something is wrong',
    'test/properties/fuzz/decoders.slow.test.ts: decoders, given damaged bytes',
    'test/servers/s3/endless-answers.slow.test.ts: to a read of a whole object is given up at the largest size of one',
  ],
  'a value never becomes a condition, a name of an object or code.': [
    'test/features/security/limits.test.ts: never becomes a prototype',
    'test/features/security/places.slow.test.ts: may hold bytes that are no text',
    'test/features/query/builder.test.ts: refuses values at once that a field is not compared with',
  ],
  'Documents take the fields of the schema and no others; keys such as `__proto__` are fields like any other, or refused.':
    [
      'test/features/values/refusals.slow.test.ts: also refused: %s',
      'test/features/values/names.slow.test.ts: are refused where the schema does not have them',
      'test/features/values/names.slow.test.ts: are stored, read, compared, sorted and indexed as any other',
    ],
  'Clauses may be in each other up to 100 deep.': [
    'test/features/security/limits.test.ts: work as deep as anybody writes them',
    'test/features/security/limits.test.ts: work up to 100 in each other, and no deeper',
    'test/features/security/limits.test.ts: are refused where they are deeper, before they can take up the stack',
  ],
  'a bookmark only moves within the query that your code writes.': [
    'test/features/query/pages.slow.test.ts: refuse bookmarks of another query, another version, and damaged ones',
  ],
  'the URL is a secret as long as it is valid; it is never logged.': [
    'test/features/security/secrets.test.ts: does not get them into log lines or the inspected form of a database',
  ],
  'credentials are refused in URLs': ['test/features/security/secrets.test.ts: are refused without being shown: %s'],
  'They do quote: names, primary keys, and up to 60 characters of a value that was refused.': [
    'test/features/security/limits.test.ts: are short, whatever was given: %s',
  ],
  'The value itself is in `error.value`, which is not enumerable.': [
    'test/features/security/secrets.test.ts: is there for who asks, and not for who logs',
  ],
  'Commits that claim more work than they are long (blocks or values that lie on top of each other, keys or schemas beyond every limit) are refused.':
    ['test/features/security/hostile-commits.slow.test.ts: with %s is refused, in no time'],
  'The AWS SDK is loaded with the first request to a bucket, the packages of the command line only by the command.': [
    'test/features/security/loading.test.ts: loads the S3 client with the first request to a bucket',
    'test/features/security/loading.test.ts: never leads to the command line',
  ],
  'without any token, and with provenance that says from which commit.': [
    'test/repo/release/release.test.ts: may do no more than it must, and has no secrets',
    'test/repo/release/release.test.ts: runs only for tags, checks first, and publishes the checked package with provenance',
  ],
  'Nothing runs when the package is installed.': [
    'test/features/security/loading.test.ts: run nothing when they are installed, and are known by their contents',
  ],
};
