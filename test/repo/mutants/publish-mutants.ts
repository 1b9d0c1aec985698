/** Mistakes in bundles: what is in them, which names come back, and what their readers believe. */
import type { Mutant } from './mutant.ts';

const format = 'src/format/bundle.ts';
const place = 'src/maintenance/publish/bundle-place.ts';
const table = 'src/maintenance/publish/published-table.ts';
const projection = 'src/maintenance/publish/row-projection.ts';
const publishing = 'src/maintenance/publish/publish.ts';
const tree = 'src/maintenance/publish/content-tree.ts';
const tables = 'src/maintenance/publish/bundle-tables.ts';
const blocks = 'src/reader/bundle-blocks.ts';
const reader = 'src/reader/reader.ts';
const fetching = 'src/storage/fetch-driver.ts';

const publish = 'test/features/publish/publish.test.ts';
const bundles = 'test/features/publish/bundles.slow.test.ts';
const searches = 'test/features/publish/search.test.ts';
const leaks = 'test/features/publish/leaks.test.ts';
const damage = 'test/features/publish/damage.slow.test.ts';
const golden = 'test/features/golden/bundles.test.ts';

export const publishMutants: readonly Mutant[] = [
  {
    name: 'bundles: a default value is published with its field',
    edits: [
      {
        file: table,
        find: '{ name: field, typeId, ...defined({ maxLength }) }',
        replace: '{ ...more, name: field, typeId, ...defined({ maxLength }) }',
      },
      {
        file: table,
        find: 'fields: fields.flatMap(({ name: field, typeId, maxLength }) =>',
        replace: 'fields: fields.flatMap(({ name: field, typeId, maxLength, ...more }) =>',
      },
    ],
    tests: [leaks],
  },
  {
    name: 'bundles: an index on fields that are not published is published',
    edits: [
      {
        file: table,
        find: 'if (![...indexed, ...(where ?? []).map(({ field }) => field)].every(isPublished)) return [];',
        replace: 'if (![...indexed, ...(where ?? []).map(({ field }) => field)].some(isPublished)) return [];',
      },
    ],
    tests: [leaks],
  },
  {
    name: 'bundles: the condition of an index may be on fields that are not published',
    edits: [{ file: table, find: '[...indexed, ...(where ?? []).map(({ field }) => field)]', replace: 'indexed' }],
    tests: [leaks],
  },
  {
    name: 'bundles: the condition of an index may name values that no published row has',
    edits: [
      {
        file: tables,
        find: 'indexes.filter(({ index }) => named.hasAllOf(index));',
        replace: 'indexes.filter(() => named !== undefined);',
      },
    ],
    tests: [leaks],
  },
  {
    name: 'bundles: words of rows that are not published count',
    edits: [
      {
        file: tables,
        find: 'words: copied?.ref?.words ?? words',
        replace: 'words: copied?.ref?.words ?? words * 2',
      },
    ],
    tests: [searches],
  },
  {
    name: 'bundles: older releases read a manifest with an index on texts',
    edits: [
      {
        file: format,
        find: 'text === undefined ? bundleFormatVersion : textFormatVersion;',
        replace: 'text === undefined ? bundleFormatVersion : bundleFormatVersion;',
      },
    ],
    tests: [searches],
  },
  {
    name: 'bundles: older releases read a manifest with indexes of other forms',
    edits: [
      {
        file: format,
        find: 'some((part) => part !== undefined)) return entryFormatVersion;',
        replace: 'some((part) => part !== undefined)) return textFormatVersion;',
      },
    ],
    tests: ['test/features/publish/entries.slow.test.ts'],
  },
  {
    name: 'bundles: an index has the entries of rows that are not published',
    edits: [
      {
        file: tables,
        find: 'const isSame = !isFiltered && own',
        replace: 'const isSame = own',
      },
    ],
    tests: [publish, leaks],
  },
  {
    name: 'bundles: all rows are published where there is a condition',
    edits: [
      {
        file: tables,
        find: 'if (filter === undefined || filter.matches(node, node.rowBase(i))) picked.push(i);',
        replace: 'picked.push(i);',
      },
    ],
    tests: [publish, leaks],
  },
  {
    name: 'bundles: the place of a long value is taken for its bytes',
    edits: [
      {
        file: projection,
        find: 'if (length <= inlineBytes) bytes = 4 + length;',
        replace: 'if (length < inlineBytes) bytes = 4 + length;',
      },
    ],
    tests: [publish, 'test/features/publish/differential.slow.test.ts'],
  },
  {
    name: 'bundles: blobs of rows that are not published are copied',
    edits: [
      {
        file: tables,
        find: 'if (!this.#references.delete(reference)) continue;',
        replace: 'this.#references.delete(reference);',
      },
    ],
    tests: [publish, leaks],
  },
  {
    name: 'bundles: objects of a bundle that is being published are removed',
    edits: [
      {
        file: format,
        find: 'return Number.parseInt((whole[1] ?? whole[2]) as string, 16) <= upTo;',
        replace: 'return Number.parseInt((whole[1] ?? whole[2]) as string, 16) <= upTo + 1;',
      },
    ],
    tests: [golden],
  },
  {
    name: 'bundles: blocks of a bundle that is being published are removed',
    edits: [{ file: format, find: '% birthNumbers < birthNumbers / 2;', replace: '% birthNumbers <= birthNumbers;' }],
    tests: [golden],
  },
  {
    name: 'bundles: a name comes back after it was removed',
    edits: [
      {
        file: format,
        find: 'birth: head * birthNumbers + (number % birthNumbers)',
        replace: 'birth: head * birthNumbers + (number % 1)',
      },
    ],
    tests: [bundles, golden],
  },
  {
    name: 'bundles: an older state takes the place of a newer one',
    edits: [
      { file: publishing, find: 'if (isOlder) return', replace: 'if (isOlder && attempts.length > 99) return' },
      {
        file: publishing,
        find: 'const maxInlinedBytes',
        replace: 'const attempts: readonly number[] = [];\nconst maxInlinedBytes',
      },
    ],
    tests: [bundles],
  },
  {
    name: 'bundles: the pointer is replaced without a condition',
    edits: [
      {
        file: place,
        find: "const condition = before === undefined ? 'absent' : { etag: before.etag };",
        replace: "const condition = before === undefined ? 'any' : 'any';",
      },
    ],
    tests: [bundles],
  },
  {
    name: 'bundles: objects are removed while those of a kept bundle are not known',
    edits: [{ file: place, find: 'if (!kept.isWhole) return 0;', replace: '' }],
    tests: [bundles],
  },
  {
    name: 'bundles: blocks that are part of manifests lose their names',
    edits: [
      { file: place, find: 'for (const list of [blocks, inlined]) {', replace: 'for (const list of [blocks]) {' },
    ],
    tests: [bundles],
  },
  {
    name: 'bundles: a node ends where its length says alone',
    edits: [
      {
        file: tree,
        find: 'return bytes >= most || hashOf(key, 0, key.length) < (entryBytes / more) * 0x1_0000_0000;',
        replace: 'return bytes >= (least + most) / 2 || entryBytes + more + key.length < 0;',
      },
    ],
    tests: [bundles],
  },
  {
    name: 'readers: blocks are not compared with their names',
    edits: [{ file: blocks, find: 'checkBundleBlock(name, bytes);', replace: '' }],
    tests: [damage],
  },
  {
    name: 'readers: an object is expanded to any length',
    edits: [
      {
        file: format,
        find: 'if (contentBytes > maxBytes || contentBytes > bytes.length * maxExpansion) {',
        replace: 'if (contentBytes > bytes.length * maxExpansion) {',
      },
    ],
    tests: [golden],
  },
  {
    name: 'readers: an answer of any length is read',
    edits: [{ file: fetching, find: 'if (length > maxBytes) {', replace: 'if (length > maxBytes * 1e6) {' }],
    tests: [damage],
  },
  {
    name: 'readers: a missing block is not told from a damaged one',
    edits: [
      {
        file: reader,
        find: 'if (this.bundle.tables.get(state.shape.name) !== state) return Promise.resolve(true);',
        replace: 'if (this.bundle.tables.get(state.shape.name) === state) return Promise.resolve(false);',
      },
    ],
    tests: [bundles],
  },
];
