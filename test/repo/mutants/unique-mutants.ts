/** Mistakes in the checks of unique indexes. */
import type { Mutant } from './mutant.ts';

const check = 'src/batch/unique-check.ts';
const prepare = 'src/batch/make-member.ts';
const chunk = 'src/migration/chunk.ts';
const daemon = 'src/migration/migration-daemon.ts';

const flushes = 'test/features/unique/flushes.test.ts';
const histories = 'test/properties/histories/unique-indexes.slow.test.ts';
const migrations = 'test/features/unique/migrations.test.ts';
const partial = 'test/features/partial-indexes/queries.test.ts';

export const uniqueMutants: readonly Mutant[] = [
  {
    name: 'unique: unmerged commits are ignored',
    edits: [
      {
        file: check,
        find: 'const layers = await this.#layerValues(values.index, pacer);',
        replace: 'const layers: LayerValues[] = (void this.#layerValues, []);',
      },
    ],
  },
  {
    name: 'unique: merged rows are ignored',
    edits: [
      {
        file: check,
        find: 'const tree = this.#trees.get(values.index.name);',
        replace: 'const tree = (void values.index, undefined) as TableState["tree"] | undefined;',
      },
    ],
  },
  {
    name: 'unique: rows of one batch are not compared with each other',
    edits: [
      {
        file: check,
        find: 'await this.#checkEachOther(values, order, pacer);',
        replace: 'void this.#checkEachOther;',
      },
    ],
  },
  {
    name: 'unique: checked only against the first view, not after a lost slot',
    edits: [
      {
        file: prepare,
        find: 'isWhole ? UniqueCheck.on(state, indexes) : undefined',
        replace:
          'isWhole ? UniqueCheck.on(firstStates.get(list) ?? (firstStates.set(list, state), state), indexes) : undefined',
      },
      {
        file: prepare,
        find: 'export async function encodeChanges(',
        replace: `const firstStates = new WeakMap<TableOperations, TableState>();

export async function encodeChanges(`,
      },
    ],
  },
  {
    name: 'unique: an entry counts although a commit that is not merged has changed its row',
    edits: [
      {
        file: check,
        find: 'if (this.#isChanged(key) || (await this.#state.isOverlaid(key))) continue;',
        replace: 'if (this.#isChanged(key)) continue;',
      },
    ],
  },
  {
    name: 'unique: a row of a commit counts although a newer one has changed it',
    edits: [
      {
        file: check,
        find: 'for (const newer of layers.slice(0, depth)) if ((await newer.lookup(key)) !== undefined) return undefined;',
        replace: 'void layers;',
      },
    ],
    tests: [flushes],
  },
  {
    name: 'unique: the value of a row before the batch counts',
    edits: [{ file: check, find: 'at < changed.count &&', replace: 'at < 0 &&' }],
  },
  {
    name: 'unique: long values are compared only as far as keys store them',
    edits: [{ file: check, find: 'if (!isCut) return key;', replace: 'if (!isCut || key.length > 0) return key;' }],
    tests: [flushes, histories],
  },
  {
    name: 'unique: a row that keeps its value is not compared with others of its batch',
    edits: [
      {
        file: check,
        find: 'this.kept[count] = this.isEqual(count, stored.source, stored.base);',
        replace: `if (!this.isEqual(count, stored.source, stored.base)) return;
    this.rows.length = count;
    this.keys.rewind(count);`,
      },
    ],
    tests: [flushes],
  },
  {
    name: 'unique: staged rows are not checked',
    edits: [{ file: prepare, find: 'await unique?.checkStream(await again(), pacer);', replace: 'void again;' }],
    tests: [flushes, histories],
  },
  {
    name: 'unique: a migration switches although rows of the next version are not unique',
    edits: [
      {
        file: chunk,
        find: 'await builder.checkUnique(retirement);',
        replace: 'if (retirement !== "no") await builder.checkUnique(retirement);',
      },
    ],
    tests: [migrations],
  },
  {
    name: 'unique: the older version is given up although rows are not unique',
    edits: [
      {
        file: daemon,
        find: '(await isRetiring(engine.view, migration)) && (await this.#isUnique(table))',
        replace: '(await isRetiring(engine.view, migration)) && ((await this.#isUnique(table)) || true)',
      },
    ],
    tests: [migrations],
  },
  {
    name: 'unique: instances with the newer version do not keep the unique indexes of the active older one',
    edits: [
      {
        file: prepare,
        find: 'UniqueCheck.on(activeState, checked),',
        replace: 'undefined,',
      },
    ],
    tests: [migrations],
  },
  {
    name: 'partial index: has entries of all rows',
    edits: [
      {
        file: 'src/schema/index-entries.ts',
        find: 'const { fields, where } = index;\n  if (where !== undefined && !isInside(where, source, base)) return false;',
        replace: 'const { fields } = index;',
      },
    ],
    tests: [partial],
  },
  {
    name: 'partial index: rows outside of it count in a flush',
    edits: [
      {
        file: 'src/schema/index-entries.ts',
        find: '): boolean {\n  if (where !== undefined && !isInside(where, source, base)) return false;',
        replace: '): boolean {\n  void where;',
      },
    ],
    tests: [partial],
  },
  {
    name: 'partial index: a query uses it although rows that match may be outside',
    edits: [
      {
        file: 'src/query/conditions/index-ranges.ts',
        find: 'if (!tests.every((test) => conditions.some((condition) => implies(condition, test)))) return undefined;',
        replace: 'void implies;',
      },
    ],
    tests: [partial],
  },
  {
    name: 'partial index: one branch of a condition is enough to use it',
    edits: [
      {
        file: 'src/query/conditions/index-ranges.ts',
        find: 'return condition.branches.every((branch) =>',
        replace: 'return condition.branches.some((branch) =>',
      },
    ],
    tests: [partial],
  },
];
