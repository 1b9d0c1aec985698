/** Mistakes in indexes on functions: the rows of an index version, and when it may be believed. */
import type { Mutant } from './mutant.ts';

const indexVersion = 'src/view/index-version.ts';
const selector = 'src/query/conditions/condition.ts';
const merge = 'src/merge/merge-table.ts';
const chunk = 'src/migration/function-index-daemon.ts';
const view = 'src/view/view.ts';
const commit = 'src/format/commit.ts';
const rebuild = 'src/maintenance/verify/index-rebuild.ts';

const queries = 'test/features/function-indexes/queries.test.ts';
const indexVersions = 'test/features/function-indexes/index-versions.test.ts';
const care = 'test/features/function-indexes/maintenance.test.ts';
const random = 'test/properties/random/function-indexes.slow.test.ts';
const golden = 'test/features/golden/golden.test.ts';

export const functionMutants: readonly Mutant[] = [
  {
    name: 'functions: an index version counts although the table has newer rows',
    edits: [
      {
        file: indexVersion,
        find: 'return isCurrent && built === null;',
        replace: 'return isCurrent || built === null;',
      },
    ],
    tests: [indexVersions, random],
  },
  {
    name: 'functions: an index version counts before it has all of its entries',
    edits: [
      { file: indexVersion, find: 'return isCurrent && built === null;', replace: 'return isCurrent && built !== "";' },
    ],
    tests: [care, random],
  },
  {
    name: 'functions: an index version is used although the function fails on a row',
    edits: [
      {
        file: indexVersion,
        find: 'return isWhole(indexVersion) && indexVersion.failed === 0;',
        replace: 'return isWhole(indexVersion);',
      },
    ],
    tests: [queries],
  },
  {
    name: 'functions: index versions of different function versions are not distinguished',
    edits: [
      {
        file: indexVersion,
        find: 'return a.name === b.name && a.result?.version === b.result?.version;',
        replace: 'return a.name === b.name;',
      },
    ],
    tests: [indexVersions, random],
  },
  {
    name: 'functions: a query uses an index version of another function version',
    edits: [
      {
        file: selector,
        find: 'called !== name || calledVersion !== version || Number.isNaN(value)',
        replace: 'called !== name || (void [version, calledVersion], Number.isNaN(value))',
      },
    ],
    tests: [indexVersions, random],
  },
  {
    name: 'functions: results that are stored in part count as complete',
    edits: [
      {
        file: 'src/query/conditions/key-ranges.ts',
        find: 'exact: !isTruncated(component, typeId) };',
        replace: 'exact: component.length > 0 };',
      },
    ],
    tests: [queries],
  },
  {
    name: 'functions: results of different types count as equal',
    edits: [
      {
        file: selector,
        find: 'components: [Uint8Array.of(tagOther)], exact: false };',
        replace: 'components: [Uint8Array.of(tagOther)], exact: true };',
      },
    ],
    tests: [queries],
  },
  {
    name: 'functions: a function without a version has a part in the index',
    edits: [
      {
        file: indexVersion,
        find: 'if (found?.version === undefined || !Number.isFinite(found.version)) return [];',
        replace: 'if (found === undefined) return [];',
      },
      {
        file: indexVersion,
        find: 'functionIndex(index, found.version)',
        replace: 'functionIndex(index, found.version ?? 0)',
      },
    ],
    tests: [indexVersions],
  },
  {
    name: 'functions: an index version that is left behind claims to cover the new rows',
    edits: [
      {
        file: merge,
        find: 'return [{ ...keptIndexVersion(table, indexVersion, context), behindFrom }];',
        replace: 'return [{ ...keptIndexVersion(table, indexVersion, context), behindFrom, base: rows }];',
      },
    ],
    tests: [indexVersions, random],
  },
  {
    name: 'functions: a merge begins an index version with some of the rows only',
    edits: [
      {
        file: merge,
        find: 'stored === undefined ? table.tree.ref === null : isWhole(stored);',
        replace: 'stored === undefined || isWhole(stored);',
      },
    ],
    tests: [indexVersions],
  },
  {
    name: 'functions: an index version that nobody maintains is never given up',
    edits: [
      {
        file: merge,
        find: 'context.birth - behindFrom >= maxGenerationsBehind',
        replace: 'context.birth < maxGenerationsBehind - maxGenerationsBehind',
      },
    ],
    tests: [indexVersions],
  },
  {
    name: 'functions: catching up makes entries beyond the last built row',
    edits: [
      {
        file: chunk,
        find: 'if (built !== null && compareBytes(key, built) > 0) break;',
        replace: 'if (built !== null && compareBytes(key, built) > 0) void 0;',
      },
    ],
    tests: [care, random],
  },
  {
    name: 'functions: a full chunk claims to have caught up',
    edits: [
      {
        file: chunk,
        find: 'if (this.#isFull) return;\n        this.#growing.changes.add(before, after, key);',
        replace: 'if (this.#isFull) break;\n        this.#growing.changes.add(before, after, key);',
      },
    ],
    tests: [random],
  },
  {
    name: 'functions: rows that a chunk has processed are not put into the base',
    edits: [{ file: chunk, find: 'this.#toBase.put(key, after);', replace: 'void this.#toBase;' }],
    tests: [random],
  },
  {
    name: 'functions: a chunk claims entries that it has not made',
    edits: [{ file: chunk, find: 'this.#built = key;', replace: 'this.#built = node.key(cursor.to - 1);' }],
    tests: [random],
  },
  {
    name: 'functions: gc deletes blocks that bases reach',
    edits: [
      {
        file: view,
        find: '{ place, leaf: leafShape, tree: this.#tree(place, base, leafShape, inlined) },',
        replace:
          '{ place, leaf: leafShape, tree: this.#tree(place, base === null ? base : null, leafShape, inlined) },',
      },
    ],
    tests: [indexVersions, random],
  },
  {
    name: 'functions: releases without function indexes can read commits that name one',
    edits: [
      {
        file: commit,
        find: 'Math.max(version, schemaFormat(schema))',
        replace: 'Math.max(version, schemaFormat(schema) < 0 ? version : version)',
      },
    ],
    tests: [golden],
  },
  {
    name: 'functions: repair() keeps wrong entries',
    edits: [{ file: rebuild, find: '!gone.has(index.name)', replace: 'gone.has(index.name) || true' }],
    tests: [care],
  },
];
