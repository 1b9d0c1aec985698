import type { PagePromises } from '../page-promises.ts';

const publish = 'test/features/publish/publish.test.ts';
const bundles = 'test/features/publish/bundles.slow.test.ts';
const damage = 'test/features/publish/damage.slow.test.ts';
const leaks = 'test/features/publish/leaks.test.ts';

export const reader: PagePromises = {
  'plain files that never change, and one small file that names the newest.': [
    `${bundles}: share all blocks but those of changed rows`,
    `${bundles}: write nothing again where rows come back`,
  ],
  'the primary key is always published.': [`${publish}: has the rows and fields that were chosen`],
  'The drivers for buckets set these headers.': [
    'test/servers/s3/configuration.test.ts: let all caches keep the objects of bundles, and have them ask about the pointer',
  ],
  '**A bundle contains nothing of what is not published**': [
    `${leaks}: hold nothing of rows, fields, indexes and tables that are not published`,
  ],
  'An index [on some rows](indexes.md#indexes-on-some-rows) is left out if a field of its `where` is not published, or if its `where` names a value that no published row has.':
    [
      `${leaks}: hold no entries of paths into fields that are not published`,
      `${leaks}: hold no index whose condition names a value that no published row has`,
    ],
  'The same goes for `HAS`, for paths and for indexes on some rows.': [
    'test/features/publish/entries.slow.test.ts: are one for each block of entries, and one for each block of rows',
  ],
  'Pages that do not search load none of it.': [
    'test/features/publish/cities.slow.test.ts: has at most 92 kB, minified and compressed',
    'test/servers/browser/search.test.ts: is loaded by the first search, and the stems of a language by the first search in it',
  ],
  'Blobs of published rows and fields are copied, with their content types. Other blobs are not.': [
    `${publish}: are copied once, and read by URL and in parts`,
    `${publish}: are left out with their rows or fields`,
  ],
  'It is refused where there is a database, or bundles of another database.': [
    `${publish}: is refused where a database is, or bundles of another one`,
  ],
  'It does not change while the blob is published.': [`${publish}: are copied once, and read by URL and in parts`],
  'Opening takes two requests, and the first row one more. `count()` of a table takes none.': [
    `${publish}: takes three requests for the first row, and one for a row in another block`,
    'test/features/publish/cities.slow.test.ts: takes three requests and less than 150 kB for the first row',
    'test/features/publish/cities.slow.test.ts: counts without reading rows',
  ],
  'At most eight requests run at the same time.': [`${damage}: sends at most eight requests at the same time`],
  '`reader.close()` ends all requests and frees the memory.': [`${damage}: is given up by its signal`],
  'The script has less than 92 kB, minified and compressed.': [
    'test/features/publish/cities.slow.test.ts: has at most 92 kB, minified and compressed',
  ],
  'A changed row in a table of 100,000 rows writes its block, the blocks of its index entries, and three small objects.':
    [`${bundles}: share all blocks but those of changed rows`],
  'If nothing has changed, it writes nothing, or only the position.': [
    `${bundles}: are made of the rows alone, and not of their history`,
  ],
  'A reader of a deleted bundle gets `SnapshotExpiredError`: call `refresh()`, and read again.': [
    `${bundles}: stay by number or by age, and readers of removed ones are told to refresh`,
  ],
  'An older state never replaces a newer one: then the outcome is `superseded`.': [
    `${bundles}: are published by one of two processes first, and an older state does not replace a newer one`,
  ],
  'If the process dies while it publishes, readers see the bundle before. The next `publish()` that writes removes what is left, and never removes objects of a publish that is under way.':
    [
      `${bundles}: leaves the bundle before, and its leftovers are removed by the next one`,
      `${bundles}: never loses what another publisher needs, when its removal comes late`,
    ],
  'So the files other than the pointer may come from anywhere: a changed byte is a `CorruptionError`, and never another row.':
    [
      `${damage}: gives an error or the right answer for any damaged object`,
      `${damage}: refuses one object in the place of another`,
      `${damage}: refuses a block that was forged under its name`,
      'test/properties/fuzz/decoders.slow.test.ts: decoders, given damaged bytes',
    ],
  'It can do no more: what it sends is never run as code, and is bounded in length before it is read.': [
    `${damage}: does not expand or read more than an object may have`,
    'test/properties/fuzz/decoders.slow.test.ts: decoders, given damaged bytes',
  ],
};
