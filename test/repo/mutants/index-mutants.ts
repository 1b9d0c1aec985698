/** Mistakes in how indexes grow, and in those whose entries hold more than the values that they are on. */
import type { Mutant } from './mutant.ts';

const listSelectors = 'src/query/conditions/list-selectors.ts';
const growing = 'src/merge/growing-index.ts';
const rounds = 'src/merge/merge-runs.slow.test.ts';
const shapes = 'src/schema/table-shape.ts';

const queries = 'test/features/query/included-fields.test.ts';
const stored = 'test/features/query/included-fields-stored.test.ts';
const lists = 'test/features/query/lists.test.ts';
const listElements = 'test/features/query/list-elements.test.ts';
const paths = 'test/features/query/paths.slow.test.ts';
const pathParts = 'test/features/query/paths-in-indexes.test.ts';
const storedPaths = 'test/features/query/paths-stored.slow.test.ts';
const storedLists = 'test/features/query/lists-stored.test.ts';
const articles = 'test/simulation/sim/articles.slow.test.ts';
const functionLists = 'test/features/function-indexes/elements.slow.test.ts';

export const indexMutants: readonly Mutant[] = [
  {
    name: 'sorted runs: changes are applied although they come between the entries of the index',
    edits: [
      { file: growing, find: '(await tree.isBelow(first))', replace: '(first.at(0) === 256 || tree !== undefined)' },
    ],
    tests: [rounds],
  },
  {
    name: 'sorted runs: changes become a run although they come behind the entries of the index',
    edits: [{ file: growing, find: '(await tree.isBelow(first))', replace: 'first.length === 0' }],
    tests: [rounds],
  },
  {
    name: 'sorted runs: entries that go are added',
    edits: [{ file: growing, find: '!onlyAdd ||', replace: '(onlyAdd && first.length === 0) ||' }],
    tests: [rounds],
  },
  {
    name: 'sorted runs: one is lost when there are many',
    edits: [
      { file: growing, find: 'this.#runs.push(run);', replace: 'if (this.#runs.push(run) > 7) this.#runs.shift();' },
    ],
    tests: [rounds],
  },
  {
    name: 'included fields: the key of a row is taken to go to the end of its entry',
    edits: [
      {
        file: shapes,
        find: 'if (included === undefined) return length;',
        replace: 'if (included !== null) return length;',
      },
    ],
    tests: [queries, stored],
  },
  {
    name: 'included fields: -0 is kept as 0',
    edits: [
      { file: 'src/schema/index-entries.ts', find: 'else writeSignedComponent(', replace: 'else writeKeyComponent(' },
    ],
    tests: [queries, stored],
  },
  {
    name: 'included fields: an intersection looks for entries that end with the key',
    edits: [
      {
        file: 'src/query/operators/key-probe.ts',
        find: 'if (this.#index.included === undefined) return',
        replace: 'if (this.#index.included !== null) return',
      },
    ],
    tests: [queries],
  },
  {
    name: 'included fields: a migration uses the entries of another definition',
    edits: [
      {
        file: 'src/migration/bridge.ts',
        find: 'const read = [...(text?.fields ?? fields), ...held];',
        replace: 'const read = [...(text?.fields ?? fields)];',
      },
    ],
    tests: [stored],
  },
  {
    name: 'included fields: the format does not keep older releases out',
    edits: [
      {
        file: 'src/format/stored-schema.ts',
        find: 'if (indexes.some(({ include, each }) => include !== undefined || each !== undefined)) return entryFormsVersion;',
        replace: '',
      },
    ],
    tests: [stored],
  },
  {
    name: 'lists: an index is used without an element',
    edits: [
      {
        file: 'src/query/planner/access-paths.ts',
        find: 'if (index.each !== undefined && used <= index.fields.indexOf(index.each)) return;',
        replace: '',
      },
    ],
    tests: [lists],
  },
  {
    name: 'lists: two elements are looked for in one entry',
    edits: [
      {
        file: 'src/query/planner/access-paths.ts',
        find: 'condition === element || !isOnElements(condition)',
        replace: 'condition === element || isOnElements(condition) || true',
      },
    ],
    tests: [lists],
  },
  {
    name: 'lists: an element that is there twice has two entries',
    edits: [
      {
        file: 'src/schema/list-elements.ts',
        find: 'if (!texts.has(held)) texts.set(held, text);',
        replace: 'texts.set(`${held} ${texts.size}`, text);',
      },
    ],
    tests: [lists, storedLists],
  },
  {
    name: 'lists: long elements with the same beginning have an entry each',
    edits: [
      {
        file: 'src/schema/list-elements.ts',
        find: 'return bytes.length <= maxKeyBytes ? text :',
        replace: 'return bytes.length <= maxKeyBytes || text.length > 0 ? text :',
      },
    ],
    tests: [lists],
  },
  {
    name: 'lists: entries of elements that a row had before stay',
    edits: [
      {
        file: 'src/merge/index-changes.ts',
        find: 'if (!after.has(text)) this.#addKey(this.#before, at, true);',
        replace: 'if (!after.has(text) && at < 0) this.#addKey(this.#before, at, true);',
      },
    ],
    tests: [storedLists],
  },
  {
    name: 'lists: an element that a key holds in part is taken for found',
    edits: [
      {
        file: 'src/query/conditions/key-ranges.ts',
        find: 'exact: !isTruncated(component, typeId) };',
        replace: 'exact: component.length > 0 };',
      },
    ],
    tests: [lists],
  },
  {
    name: 'lists: a list is read for each of many elements',
    edits: [
      {
        file: listSelectors,
        find: 'if (selectors.length < 2) return selectors;',
        replace: 'if (selectors.length < 2 || isAny || !isAny) return selectors;',
      },
    ],
    tests: [listElements],
  },
  {
    name: 'lists: one of several elements is enough for all',
    edits: [
      {
        file: listSelectors,
        find: 'return this.#isAny ? list.some(isWanted)',
        replace: 'return this.#isAny || list.some(isWanted) ? list.some(isWanted)',
      },
    ],
    tests: [listElements],
  },
  {
    name: 'lists: the opposite of any element is the opposite of all',
    edits: [
      {
        file: listSelectors,
        find: 'joinElements(opposites, !isAny)',
        replace: 'joinElements(opposites, isAny)',
      },
    ],
    tests: [listElements],
  },
  {
    name: 'lists: a list without the text of the first element has no other',
    edits: [
      {
        file: listSelectors,
        find: 'isAny ? undefined : mayMatch',
        replace: 'mayMatch',
      },
    ],
    tests: [listElements],
  },
  {
    name: 'lists of functions: the whole result is looked for among the elements',
    edits: [
      {
        file: 'src/query/conditions/condition.ts',
        find: '|| this.#isElement !== each',
        replace: '|| (this.#isElement && !each)',
      },
    ],
    tests: [functionLists],
  },
  {
    name: 'lists of functions: two elements are looked for in one entry',
    edits: [
      {
        file: 'src/query/conditions/condition.ts',
        find: 'if (result?.each === true) return this.keysByResult(result) !== undefined;',
        replace: 'if (result?.each === true) return this.isEmpty;',
      },
      {
        file: 'src/query/planner/access-paths.ts',
        find: 'if (!isOfElements(index)) {',
        replace: 'if (!isOfElements(index) || index.result !== undefined) {',
      },
    ],
    tests: [functionLists],
  },
  {
    name: 'lists of functions: a row has one entry in the merge',
    edits: [
      {
        file: shapes,
        find: 'return each !== undefined || result?.each === true;',
        replace: 'return each !== undefined && result?.each !== true;',
      },
    ],
    tests: [functionLists],
  },
  {
    name: 'lists of functions: the format does not keep older releases out',
    edits: [
      {
        file: 'src/format/stored-schema.ts',
        find: 'if (functionIndexes?.some(({ each }) => each !== undefined) === true) return entryFormsVersion;',
        replace: '',
      },
    ],
    tests: [functionLists],
  },
  {
    name: 'lists of functions: verify() misses elements without entries',
    edits: [
      {
        file: 'src/maintenance/verify/table-check.ts',
        find: 'if (entries === undefined || !isSound) return undefined;',
        replace: 'if (entries === undefined || isSound) return undefined;',
      },
    ],
    tests: [functionLists],
  },
  {
    name: 'bundles: indexes hold the included fields that are not published',
    edits: [
      {
        file: 'src/maintenance/publish/bundle-tables.ts',
        find: ' && includedIn(own) === includedIn(index);',
        replace: ' && includedIn(own) >= 0;',
      },
    ],
    tests: ['test/features/publish/leaks.test.ts'],
  },
  {
    name: 'paths: an index finds rows without a value by what it holds alone',
    edits: [
      {
        file: 'src/query/conditions/condition.ts',
        find: 'components: [Uint8Array.of(0)], exact: false };',
        replace: 'components: [Uint8Array.of(0)], exact: true };',
      },
    ],
    tests: [paths],
  },
  {
    name: 'paths: the length of a list is one of its values',
    edits: [
      {
        file: 'src/format/json-path.ts',
        find: "if (Array.isArray(value) && key === 'length') return null;",
        replace: '',
      },
    ],
    tests: [paths],
  },
  {
    name: 'paths: properties of prototypes are values',
    edits: [
      {
        file: 'src/format/json-path.ts',
        find: '!Object.hasOwn(value, key)',
        replace: '!(key in value)',
      },
    ],
    tests: [paths],
  },
  {
    name: 'paths: any text of a time is that time',
    edits: [{ file: 'src/format/json-path.ts', find: ' && time.toISOString() === text', replace: '' }],
    tests: [paths],
  },
  {
    name: 'paths: null in an entry stands for null of any type',
    edits: [
      {
        file: 'src/query/planner/covering-index.ts',
        find: 'if (as.path !== undefined && as.typeId !== field.typeId) unsure.add(as);',
        replace: '',
      },
    ],
    tests: [pathParts],
  },
  {
    name: 'paths: an included path holds values of texts that only begin alike',
    edits: [
      {
        file: 'src/query/planner/covering-index.ts',
        find: 'field.name.startsWith(`${one.name}.`)',
        replace: 'field.name.startsWith(one.name.slice(0, -1))',
      },
    ],
    tests: [pathParts],
  },
  {
    name: 'paths: tuples of different paths are taken for alike',
    edits: [
      {
        file: 'src/query/conditions/clause.ts',
        find: '(path === undefined ? `${index}` : `${index} ${typeId} ${text}`)',
        replace: '`${text === undefined || typeId === path ? -1 : index}`',
      },
    ],
    tests: [pathParts],
  },
  {
    name: 'paths: an index on some rows tells no types of values apart',
    edits: [
      {
        file: 'src/schema/index-condition.ts',
        find: 'path === undefined ? textOfValue(value as OrderedValue) : JSON.stringify(value)',
        replace: 'path === undefined ? textOfValue(value as OrderedValue) : String(value)',
      },
    ],
    tests: [pathParts],
  },
  {
    name: 'paths: a list of values of several types is compared by the first',
    edits: [
      {
        file: 'src/query/conditions/clause.ts',
        find: "if (byType.size <= 1 && !byType.has('null')) return undefined;",
        replace: "if (byType.size <= 2 && !byType.has('null')) return undefined;",
      },
    ],
    tests: [paths],
  },
  {
    name: 'paths: rows are passed over whose JSON holds the value in another form',
    edits: [
      {
        file: 'src/query/conditions/path-selector.ts',
        find: "comparison.operator === '=' && !comparison.orNull",
        replace: '!comparison.orNull',
      },
    ],
    tests: [paths],
  },
  {
    name: 'paths: a migration uses the entries of another type',
    edits: [
      {
        file: 'src/migration/bridge.ts',
        find: 'return path === undefined || typeId === other.typeId;',
        replace: 'return path !== null && typeId > 0;',
      },
    ],
    tests: [storedPaths],
  },
  {
    name: 'lists: an earlier state with more entries than rows is taken for damaged',
    edits: [
      {
        file: 'src/view/view.ts',
        find: '(index.each ?? index.text) !== undefined',
        replace: 'index.fields.length === 0',
      },
    ],
    tests: [articles],
  },
  {
    name: 'paths: nothing at an included path counts as a value',
    edits: [
      {
        file: 'src/schema/index-entries.ts',
        find: 'value === null ? null : JSON.stringify(value)',
        replace: 'JSON.stringify(value ?? 0)',
      },
    ],
    tests: [articles],
  },
  {
    name: 'paths: the format does not keep older releases out',
    edits: [
      {
        file: 'src/format/stored-schema.ts',
        find: 'if (indexes.some(hasPath)) return pathIndexVersion;',
        replace: '',
      },
    ],
    tests: [storedPaths],
  },
];
