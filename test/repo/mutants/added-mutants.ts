/** Mistakes in indexes that are added to a table: which rows they have entries of, and when they may be believed. */
import type { Mutant } from './mutant.ts';

const changes = 'src/merge/index-changes.ts';
const merge = 'src/merge/merge-table.ts';
const chunk = 'src/migration/added-chunk.ts';
const daemon = 'src/migration/index-daemon.ts';
const view = 'src/view/view.ts';
const block0 = 'src/format/block0.ts';
const rebuild = 'src/maintenance/verify/index-rebuild.ts';
const steps = 'src/migration/index-daemon.ts';
const checked = 'src/catalog/checked-indexes.ts';
const uniqueCheck = 'src/batch/unique-check.ts';
const drop = 'src/migration/index-status.ts';

const adding = 'test/features/added-indexes/adding.test.ts';
const midway = 'test/features/added-indexes/midway.test.ts';
const random = 'test/properties/random/added-indexes.slow.test.ts';
const unique = 'test/features/added-indexes/unique.test.ts';
const uniqueRandom = 'test/properties/random/added-unique-indexes.slow.test.ts';

export const addedMutants: readonly Mutant[] = [
  {
    name: 'added indexes: a merge makes entries of rows that no chunk has reached yet',
    edits: [{ file: changes, find: 'if (isBehind(primaryKey, this.#built)) return;', replace: '' }],
    tests: [midway, random],
  },
  {
    name: 'added indexes: a merge does not change the entries that exist',
    edits: [
      {
        file: merge,
        find: '...indexVersions, ...added.map((index) => index.growing)];',
        replace: '...indexVersions];',
      },
    ],
    tests: [midway, random],
  },
  {
    name: 'added indexes: a merge of new rows in a run makes entries of all of them',
    edits: [
      {
        file: changes,
        find: 'if (this.#built !== null && isBehind(this.#scratch.subarray(0, length), this.#built)) continue;',
        replace: '',
      },
    ],
    tests: [midway],
  },
  {
    name: 'added indexes: an index is in the schema before it has all of its entries',
    edits: [
      {
        file: chunk,
        find: 'const ready = all.filter((index) => isComplete(index) && index.stored.unique === undefined);',
        replace:
          'const ready = all.filter((index) => index.problem === undefined && index.stored.unique === undefined);',
      },
    ],
    tests: [midway, random],
  },
  {
    name: 'added indexes: indexes that have reached different rows go on from the same row',
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
    name: 'added indexes: an index is begun while a migration is under way',
    edits: [{ file: daemon, find: 'if (view.nextVersion(table) !== undefined || ', replace: 'if (' }],
    tests: [adding],
  },
  {
    name: 'added indexes: garbage collection deletes their blocks',
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
    name: 'added indexes: Block 0 says that older releases can read it',
    edits: [
      {
        file: block0,
        find: 'return Math.max(addedIndexVersion, schemaFormat({ ...schema, indexes }));',
        replace: 'return indexes.length < 0 ? addedIndexVersion : schemaFormat(schema);',
      },
    ],
    tests: [midway, 'test/features/golden/golden.test.ts'],
  },
  {
    name: 'added indexes: repair() keeps a damaged index',
    edits: [{ file: rebuild, find: 'given.has(stored.name);', replace: '!given.has(stored.name);' }],
    tests: [midway],
  },
  {
    name: 'added indexes: a unique index is ready before flushes are checked for it',
    edits: [{ file: steps, find: 'if (isMerged) return', replace: 'if (!isMerged) return' }],
    tests: [unique, uniqueRandom],
  },
  {
    name: 'added indexes: a unique index is ready before the commit from which flushes are checked is merged',
    edits: [
      {
        file: steps,
        find: 'await isChecked(View.ofBlock0(engine.context, view.block0), name, added);',
        replace: 'await isChecked(view, name, added);',
      },
    ],
    tests: [unique],
  },
  {
    name: 'added indexes: rows are not scanned once flushes are checked',
    edits: [
      {
        file: steps,
        find: 'if (found !== undefined) {',
        replace: 'if (found !== undefined && !(await isChecked(view, name, added))) {',
      },
    ],
    tests: [unique, uniqueRandom],
  },
  {
    name: 'added indexes: flushes are not checked for a unique index before it is ready',
    edits: [
      {
        file: checked,
        find: 'return unique.length === 0 ? none : checkedOf(view, table, unique);',
        replace: 'return none;',
      },
    ],
    tests: [unique],
  },
  {
    name: 'added indexes: flushes are checked for a unique index before the commit that says so',
    edits: [
      {
        file: checked,
        find: 'if (await isChecked(view, table.shape.name, added)) checked.push(added);',
        replace: 'checked.push(added);',
      },
    ],
    tests: [unique],
  },
  {
    name: 'added indexes: the commit for an earlier index of the same name counts for the new one',
    edits: [
      {
        file: checked,
        find: " && readField(rowRef.source, rowRef.base, fieldOf('birth')) === added.birth",
        replace: '',
      },
    ],
    tests: [unique],
  },
  {
    name: 'added indexes: a flush is not compared with the entries of an index that is not ready',
    edits: [
      {
        file: uniqueCheck,
        find: 'const tree = this.#trees.get(values.index.name);',
        replace: 'const tree = this.#state.indexes.get(values.index.name);',
      },
    ],
    tests: [unique],
  },
  {
    name: 'added indexes: a unique index fails because of rows that the log has corrected',
    edits: [{ file: steps, find: 'if (!(await isOverlaid(table, found)))', replace: 'if (found.index.unique)' }],
    tests: [unique],
  },
  {
    name: 'added indexes: an index that failed has entries',
    edits: [
      {
        file: chunk,
        find: '{ stored, built: undefined, rows: 0, birth, problem, tree: empty },',
        replace: '{ stored, built: null, rows: 0, birth, problem, tree: empty },',
      },
    ],
    tests: [unique],
  },
  {
    name: 'added indexes: an index is dropped although the definition has it',
    edits: [{ file: drop, find: 'if (!isDefined || hasFailed) return;', replace: 'if (index !== "") return;' }],
    tests: [unique],
  },
  {
    name: 'added indexes: an index is dropped while a migration is under way',
    edits: [{ file: drop, find: 'if (nextVersion !== undefined) {', replace: 'if (nextVersion?.version === -1) {' }],
    tests: [unique],
  },
];
