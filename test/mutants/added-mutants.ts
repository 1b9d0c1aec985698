/** Mistakes in indexes that are added to a table: which rows they have entries of, and when they may be believed. */
import type { Mutant } from './mutant.ts';

const changes = 'src/cluster/index-changes.ts';
const merge = 'src/cluster/merge-table.ts';
const chunk = 'src/migration/added-chunk.ts';
const daemon = 'src/migration/index-daemon.ts';
const view = 'src/table/view.ts';
const block0 = 'src/format/block0.ts';
const rebuild = 'src/care/index-rebuild.ts';

const adding = 'test/added-indexes/adding.test.ts';
const midway = 'test/added-indexes/midway.test.ts';
const random = 'test/added-indexes/random.test.ts';

export const addedMutants: readonly Mutant[] = [
  {
    name: 'added indexes: a merge makes entries of rows whose turn has not come',
    edits: [{ file: changes, find: 'if (this.#built !== null && this.#isBehind(primaryKey)) return;', replace: '' }],
    tests: [midway, random],
  },
  {
    name: 'added indexes: a merge leaves the entries that are made as they are',
    edits: [
      {
        file: merge,
        find: 'const growing = [...indexes, ...editions, ...added];',
        replace: 'const growing = [...indexes, ...editions];',
      },
    ],
    tests: [midway, random],
  },
  {
    name: 'added indexes: a merge of new rows in a run makes entries of all of them',
    edits: [
      {
        file: changes,
        find: 'if (this.#built !== null && this.#isBehind(this.#scratch.subarray(0, length))) continue;',
        replace: '',
      },
    ],
    tests: [midway],
  },
  {
    name: "added indexes: one is the schema's before all of its entries are made",
    edits: [
      {
        file: chunk,
        find: 'const ready = all.filter(({ built, problem }) => built === null && problem === undefined);',
        replace: 'const ready = all.filter(({ problem }) => problem === undefined);',
      },
    ],
    tests: [midway, random],
  },
  {
    name: 'added indexes: those that are at different rows go on as if they were at one',
    edits: [
      {
        file: chunk,
        find: 'this.#behind = underWay.filter(({ added }) => compareBounds(added.built, this.#built) === 0);',
        replace: 'this.#behind = underWay;',
      },
    ],
    tests: [random],
  },
  {
    name: 'added indexes: the row after the last one is left out',
    edits: [
      {
        file: chunk,
        find: 'if (this.#isFull) return;\n        const key = node.key(i);',
        replace:
          'const key = node.key(i);\n        if (this.#isFull) {\n          this.#built = key;\n          return;\n        }',
      },
    ],
    tests: [midway, random],
  },
  {
    name: 'added indexes: they are begun while a migration is under way',
    edits: [{ file: daemon, find: '&& view.beside(name) === undefined', replace: '' }],
    tests: [adding],
  },
  {
    name: 'added indexes: garbage collection takes their blocks',
    edits: [
      {
        file: view,
        find: '...added.map(({ index, root: entries }): PlacedTree => {',
        replace: '...[].map(({ index, root: entries }: NonNullable<typeof added>[number]): PlacedTree => {',
      },
    ],
    tests: [midway, random],
  },
  {
    name: 'added indexes: Block 0 is told to be what older releases know',
    edits: [{ file: block0, find: 'if (added.length > 0) return addedIndexVersion;', replace: '' }],
    tests: [midway, 'test/golden/golden.test.ts'],
  },
  {
    name: 'added indexes: a damaged one is kept by repair()',
    edits: [{ file: rebuild, find: 'given.has(stored.name);', replace: '!given.has(stored.name);' }],
    tests: [midway],
  },
];
