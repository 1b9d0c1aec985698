import type { PagePromises } from './page-promises.ts';

export const format: PagePromises = {
  'An envelope with another codec, or a key, is refused.': [
    'test/features/golden/bundles.test.ts: are compressed where that makes them shorter, and in no other form',
  ],
  'A leaf ends after an entry once its keys, values and two bytes for each entry take 24 KiB, and the hash of the key is low, or once they take 96 KiB; an inner node from 8 KiB and four children on, at most at 32 KiB.':
    [
      'test/features/publish/bundles.slow.test.ts: are of 24 to 96 KiB before compression, and do not depend on where a table begins',
    ],
  'So an object that may be deleted is in no later bundle.': [
    'test/features/publish/bundles.slow.test.ts: never loses what another publisher needs, when its removal comes late',
    'test/features/golden/bundles.test.ts: isOfBundles()',
  ],
  '`test/features/golden` holds one sample of each object': [
    'test/features/golden/golden.test.ts: ${kind}: encoding gives the stored bytes, and the stored bytes are read',
  ],
  'So no name leaves its place, and two names differ even in a store that ignores case.': [
    'src/format/object-names.test.ts: keep every table in its place',
    'src/format/object-names.test.ts: are different for different tables, even on a store that ignores case',
  ],
  'compared as unsigned values where a prefix sorts first, are in the order of the values that they were made of.': [
    'src/format/ordered-key.test.ts: sort as values of type ${typeName(typeId)} do, and read back',
    'src/format/ordered-key.test.ts: sort by the value and then by the primary key, and come apart again',
  ],
  'a longer primary key is refused, and so is one whose texts and bytes are longer together.': [
    'src/format/ordered-key.test.ts: are held up to their first 1,024 bytes',
    'test/features/values/order.slow.test.ts: varchar of 1024 bytes is a key, 1025 an EncodeError: %s',
    'test/features/compound-keys/writes.test.ts: are refused at the call where the key is not one',
  ],
  'never NaN': ['test/features/values/refusals.slow.test.ts: is refused by %s'],
  'Bit 31 is set for text only where it is not all ASCII, and never for bytes.': [
    'test/features/golden/golden.test.ts: ${kind}: encoding gives the stored bytes, and the stored bytes are read',
  ],
  "Fields stand in the order of their names' code points, however the schema lists them.": [
    'src/format/row.slow.test.ts: puts fields in the order of their names, in any order of definition',
  ],
  'Since the name is part of the checksum, a block under another name is noticed.': [
    'test/features/golden/damage.slow.test.ts: a block under another name is noticed',
  ],
  'length of the content if there is a codec, at most 64 MiB': [
    'src/storage/wrap/envelopes.test.ts: says no more than it holds: lengths are bounded, and must be right',
  ],
  'So a chunk can be read and verified alone.': [
    'src/storage/wrap/envelopes.test.ts: verifies a range without the rest, and notices one that was cut off or replaced',
  ],
  'A frame that does not hold exactly its share of the length is damage, and nothing more of it is made than that share.':
    ['src/storage/wrap/envelopes.test.ts: says no more than it holds: lengths are bounded, and must be right'],
  'Keys ascend strictly.': ['src/format/node.test.ts: whose keys are unsorted or twice there are refused by searches'],
  'A node is at most as long as the block size that it was written with, unless it has one entry': [
    'src/format/node.test.ts: take from a list as many entries as fit, and at least one',
    'src/tree/write.slow.test.ts: survives rows and keys that are longer than blocks, between short ones',
  ],
  'A commit that names another one than is in that slot is not applied.': [
    'test/features/protocol/holes.test.ts: lets nobody apply the commits behind it: an acknowledged row that takes the slot stays',
  ],
  'A commit that names runs of an earlier slot is damaged.': [
    'src/format/commit.test.ts: are refused where the header lacks something',
  ],
  'integer, at most `appliedSeq`: slots up to here decide nothing any more': [
    'src/format/block0.test.ts: is refused where its values do not go together',
  ],
  'integer, at most `generation`: everything that this generation and later ones reach is there': [
    'src/format/block0.test.ts: is refused where its values do not go together',
  ],
  'migrations under way, at most one for each table': [
    'src/format/block0.test.ts: is refused where its values do not go together',
  ],
  'A commit is of the version of its newest schema.': [
    'test/features/golden/golden.test.ts: ${kind}: encoding gives the stored bytes, and the stored bytes are read',
  ],
  'Only the blocks themselves are always of version 1. A release that knows only version 1 reads a database until it has an index on a function, and from then on refuses it; when the last one is gone, it reads it again.':
    [
      'test/features/function-indexes/maintenance.test.ts: keeps the old version by its index, and brings the new one up with its own',
    ],
  '`renames`: it would take a renamed field for a new one, and leave it null.': [
    'test/features/migrations/renames.test.ts: keeps releases out that know of no other names',
  ],
  'Block 0 holds all tables while their JSON is at most 64 KiB.': [
    'test/features/maintenance/catalogue.slow.test.ts: is written once there are many tables, and again once many have changed',
  ],
  'Damage is a `CorruptionError`, and a block of a later version is an `UnknownFormatError`. The checksum detects any changed bit.':
    [
      'test/features/golden/damage.slow.test.ts: ${kind}: every flipped bit and every missing end is noticed',
      'test/features/golden/damage.slow.test.ts: versions, codecs, encryptions and kinds of the future are refused, and never guessed',
    ],
  'So the length of the block bounds the number of entries, and the memory that is allocated for them.': [
    'src/format/node.test.ts: that claim more than they hold are refused before anything is allocated',
    'src/format/node.test.ts: are measured without wrapping around',
  ],
  'Before the first search in a node, its keys are checked to ascend.': [
    'src/format/node.test.ts: whose keys are unsorted or twice there are refused by searches',
  ],
  "A view's place and length are checked against the heap when the value is read or copied.": [
    'src/format/row.slow.test.ts: are refused by readers where they point outside the heap',
  ],
  'So a descent ends at a leaf after as many steps as the root has levels, no matter what the references are.': [
    'src/tree/check.test.ts: end with an error, and never go round in circles',
  ],
  'A leaf must be of the kind, the row length and the schema version that its tree is for, or no row of it is read.': [
    'src/tree/block-source.test.ts: is taken where it is of its tree',
    'src/tree/block-source.test.ts: is refused: %s',
  ],
  'Every field that is read is checked first, for its type and against the fields that belong to it.': [
    'src/format/block0.test.ts: is refused where anything is missing, null or of another type',
    'src/format/commit.test.ts: are refused where the header lacks something or holds something else',
  ],
  'A block that fails is read a second time, past every cache, before the error is raised.': [
    'test/features/protocol/reading.test.ts: of a block is read again once, and then named',
  ],
  'Readers of version 1 refuse values other than 0.': [
    'test/features/golden/damage.slow.test.ts: versions, codecs, encryptions and kinds of the future are refused, and never guessed',
  ],
  'Unknown ones are refused, never guessed.': [
    'test/features/golden/damage.slow.test.ts: versions, codecs, encryptions and kinds of the future are refused, and never guessed',
  ],
  '**Type ids** never change meaning.': [
    'test/features/golden/golden.test.ts: ${kind}: encoding gives the stored bytes, and the stored bytes are read',
  ],
  'Ids that this page does not list are refused.': [
    'src/format/block0.test.ts: is refused where its values do not go together',
  ],
};
