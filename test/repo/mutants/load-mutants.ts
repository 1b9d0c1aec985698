/** Mistakes in loads. */
import type { Mutant } from './mutant.ts';

const load = 'src/load/load.ts';
const check = 'src/load/load-check.ts';
const trees = 'src/load/staged-trees.ts';
const tests = ['test/features/load/load.slow.test.ts'];

export const loadMutants: readonly Mutant[] = [
  {
    name: 'load: rows that others have committed meanwhile are not looked at',
    edits: [
      {
        file: check,
        find: 'now.layers.filter((layer) => !known.has(layer))',
        replace: 'now.layers.filter((layer) => known.size < 0 && layer !== undefined)',
      },
    ],
    tests,
  },
  {
    name: 'load: rows that others have merged meanwhile are not looked at',
    edits: [
      {
        file: check,
        find: 'if (isSameTree(before.tree, now.tree)) return;',
        replace: 'if (isSameTree(before.tree, now.tree) || now.layers.length >= 0) return;',
      },
    ],
    tests,
  },
  {
    name: 'load: unique values that others have committed meanwhile are not looked at',
    edits: [
      {
        file: check,
        find: 'if (loaded === undefined || rows.count === 0) return;',
        replace: 'if (loaded === undefined || rows.count >= 0) return;',
      },
    ],
    tests,
  },
  {
    name: 'load: its rows are not compared with each other in unique indexes',
    edits: [
      {
        file: check,
        find: 'if (found === undefined) continue;',
        replace: 'if (found === undefined || index.unique) continue;',
      },
    ],
    tests,
  },
  {
    name: 'load: its rows are not compared with merged rows in unique indexes',
    edits: [
      {
        file: check,
        find: 'if (state.tree.ref !== null || state.layers.length > 0) await',
        replace: 'if (state.layers.length > 0) await',
      },
    ],
    tests,
  },
  {
    name: 'load: a key in two of its runs is not noticed',
    edits: [
      {
        file: trees,
        find: 'if (merged.tree.count < trees.reduce(',
        replace: 'if (merged.tree.count < 0 * trees.reduce(',
      },
    ],
    tests,
  },
  {
    name: 'load: its commit names staged rows that gc may delete',
    edits: [{ file: load, find: 'if (view.tail >= lastSlot) throw', replace: 'if (view.tail < 0 * lastSlot) throw' }],
    tests,
  },
  {
    name: 'load: the log is not kept while it works',
    edits: [
      {
        file: load,
        find: 'if (next !== undefined && !reader.isOver) await this.#hold();',
        replace: 'if (next !== undefined && reader.count < 0) await this.#hold();',
      },
    ],
    tests,
  },
  {
    name: 'load: staged rows are deleted although their commit may have been put',
    edits: [
      {
        file: load,
        find: 'if (!(error instanceof CommitOutcomeUnknownError)) await',
        replace: 'if (!(error instanceof CommitOutcomeUnknownError) || error.slot > 0) await',
      },
    ],
    tests,
  },
  {
    name: 'load: a commit may name staged rows of an earlier slot',
    edits: [{ file: 'src/format/commit.ts', find: 'runSlot >= slot;', replace: 'runSlot > 0 * slot;' }],
    tests: ['src/format/commit.test.ts'],
  },
];
