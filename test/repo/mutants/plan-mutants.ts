/** Mistakes in queries that read entries of indexes. */
import type { Mutant } from './mutant.ts';

const use = 'src/query/planner/covering-index.ts';
const reader = 'src/query/operators/entry-reader.ts';
const stream = 'src/query/operators/index-only-scan.ts';
const probe = 'src/query/operators/key-probe.ts';
const open = 'src/query/operators/open-operator.ts';

const indexOnly = 'test/features/query/index-only.test.ts';
const intersections = 'test/features/query/intersections.slow.test.ts';
const pending = 'test/features/query/pending-commits.test.ts';
const filter = 'src/view/table-state.ts';
const skip = 'src/query/operators/executor.ts';
const skipTests = 'test/features/query/skip.slow.test.ts';
const readAhead = 'test/features/memory/read-ahead.slow.test.ts';
const filterTests = 'src/view/table-state.slow.test.ts';

export const planMutants: readonly Mutant[] = [
  {
    name: 'plans: a value that an index stores in part counts as the whole value',
    edits: [
      {
        file: reader,
        find: 'else if (isTruncatedComponent(key, end, typeId)) return false;',
        replace: 'else if (isTruncatedComponent(key, -1, typeId)) return false;',
      },
    ],
    tests: [indexOnly],
  },
  {
    name: 'plans: an index that is not in memory is never read if the rows are',
    edits: [
      {
        file: 'src/query/planner/planner.ts',
        find: 'const sum = (this.#account.get(this.#name) ?? 0) + this.#each;',
        replace: 'const sum = this.#each;',
      },
    ],
    tests: ['test/features/query/deferred-reads.test.ts'],
  },
  {
    name: 'plans: -0 is returned as the 0 of its entry',
    edits: [
      {
        file: use,
        find: 'return !signs || !mergesZeros(typeId);',
        replace: 'return !signs || mergesZeros(typeId) || true;',
      },
    ],
    tests: [indexOnly],
  },
  {
    name: 'plans: entries are shown in place of rows that cannot be made',
    edits: [
      {
        file: use,
        find: 'if (tree.mayBreak || index.result !== undefined) return undefined;',
        replace: 'if (index.result !== undefined) return undefined;',
      },
    ],
    tests: [indexOnly],
  },
  {
    name: 'plans: conditions on fields that entries do not have are tested on entries',
    edits: [
      {
        file: use,
        find: 'reads?.every(isHeld) === true',
        replace: 'reads?.some(isHeld) !== false',
      },
    ],
    tests: [indexOnly],
  },
  {
    name: 'plans: entries are sorted by fields that they do not have',
    edits: [{ file: use, find: 'order.every(({ field }) => isHeld(field)) &&', replace: '' }],
    tests: [indexOnly],
  },
  {
    name: 'plans: entries hide changes of unmerged commits',
    edits: [
      {
        file: stream,
        find: 'this.#overlaid = state.layers.length > 0;',
        replace: 'this.#overlaid = state.layers.length > 1e9;',
      },
    ],
    tests: [indexOnly, intersections],
  },
  {
    name: 'plans: if there are too many keys to hold, the condition is not tested at all',
    edits: [
      {
        file: open,
        find: 'filterOf(residualOf(query, firstCovers))',
        replace: 'filterOf(residualOf(query, [...firstCovers, ...plan.covered]))',
      },
    ],
    tests: [intersections],
  },
  {
    name: 'plans: an intersection skips the key that it looks for',
    edits: [
      { file: probe, find: '{ ...this.#range, from: entry }', replace: '{ ...this.#range, from: prefixEnd(entry) }' },
    ],
    tests: [intersections],
  },
  {
    name: 'plans: a descending intersection skips the key that it looks for',
    edits: [
      { file: probe, find: '{ ...this.#range, to: prefixEnd(entry) }', replace: '{ ...this.#range, to: entry }' },
    ],
    tests: [intersections],
  },
  {
    name: 'plans: the rows that an intersection could show do not count as read by a transaction',
    edits: [
      {
        file: 'src/query/execute.ts',
        find: `must be tested for the conditions that the index covers.
      return { keys: undefined, range: undefined, matches: matching(query.conditions) };`,
        replace: `must be tested for the conditions that the index covers.
      return { keys: [], range: undefined, matches: matching(residual) };`,
      },
    ],
    tests: [intersections],
  },
  {
    name: 'plans: a row of an unmerged commit is shown although a later commit has changed it',
    edits: [
      {
        file: 'src/query/operators/table-scan.ts',
        find: 'if (this.#newer.length === 0) return false;',
        replace: 'if (this.#newer.length < 1e9) return false;',
      },
    ],
    tests: [pending],
  },
  {
    name: 'plans: rows of unmerged commits end once one of them is after a merged row',
    edits: [
      {
        file: 'src/query/operators/merge-sorted.ts',
        find: 'mayInterrupt = this.#first !== undefined;',
        replace: 'mayInterrupt = false;',
      },
    ],
    tests: [pending],
  },
  {
    name: 'plans: the first row of an index reads all rows of unmerged commits',
    edits: [
      {
        file: 'src/query/operators/merge-sorted.ts',
        find: 'const bufferedRows = 8;',
        replace: 'const bufferedRows = 8000;',
      },
    ],
    tests: [pending],
  },
  {
    name: 'reads: a full filter forgets its contents',
    edits: [
      {
        file: filter,
        find: 'for (const layer of layers) filter.#learn(',
        replace: 'for (const layer of added) filter.#learn(',
      },
    ],
    tests: [filterTests],
  },
  {
    name: 'reads: a filter that begins late counts as complete for earlier layers',
    edits: [
      {
        file: 'src/view/table-state.ts',
        find: 'const filter = isFiltered ? KeyFilter.with(this.#filter, added, layers) : undefined;',
        replace: 'const filter = KeyFilter.with(this.#filter ?? KeyFilter.with(undefined, [], []), added, layers);',
      },
      {
        file: 'src/view/table-state.ts',
        find: '    const isFiltered = this.layers.length === 0 || this.#filter !== undefined;\n',
        replace: '',
      },
    ],
    tests: [filterTests],
  },
  {
    name: 'plans: rows are skipped past a value that an index stores in part',
    edits: [
      {
        file: skip,
        find: 'if (isTruncatedComponent(key, end, typeId)) return true;',
        replace: 'if (isTruncatedComponent(key, end, typeId)) return false;',
      },
    ],
    tests: [skipTests],
  },
  {
    name: 'plans: rows are skipped by counts without unmerged commits',
    edits: [
      {
        file: skip,
        find: "return access.kind === 'table' && state.layers.length > 0",
        replace: "return access.kind === 'table' && state.layers.length > 1000",
      },
    ],
    tests: [skipTests],
  },
  {
    name: 'plans: rows of one value that must be skipped are shown in descending order',
    edits: [{ file: skip, find: 'offset: offset - skipped };', replace: 'offset: 0 };' }],
    tests: [skipTests],
  },
  {
    name: 'plans: a row that each run of an index has is read alone',
    edits: [
      {
        file: 'src/query/operators/index-lookup.ts',
        find: 'left -= this.#lookUp(lookups, left);',
        replace: 'this.#lookUp(lookups, left);\n      left = 0;',
      },
    ],
    tests: [readAhead],
  },
  {
    name: 'plans: separate ranges are read one after the other',
    edits: [
      {
        file: 'src/tree/cursor-sequence.ts',
        find: 'if (this.#memory === undefined || this.#at === 0) return;',
        replace: 'if (this.#memory === undefined || this.#at >= 0) return;',
      },
    ],
    tests: [readAhead],
  },
  {
    name: "plans: the reads of an intersection's other indexes are priced by the limit",
    edits: [
      {
        file: 'src/query/planner/plan-cost.ts',
        find: 'const indexReads = goneReads + others.missing;',
        replace: 'const indexReads = goneReads + others.missing * part;',
      },
      {
        file: 'src/query/planner/plan-cost.ts',
        find: 'time += others.entries * cost.key +',
        replace: 'time += others.entries * part * cost.key +',
      },
    ],
    tests: ['test/features/query/intersections.slow.test.ts'],
  },
  {
    name: 'plans: comparisons and elements of one condition are priced as a function',
    edits: [
      {
        file: 'src/query/planner/plan-cost.ts',
        find: 'if (selector.timeBy !== undefined) return',
        replace: 'if (selector.timeBy !== undefined && own < elementCost) return',
      },
    ],
    tests: ['test/features/query/lists.test.ts'],
  },
  {
    name: 'plans: a plan is chosen that looks cheap only because it was not refined',
    edits: [{ file: 'src/query/planner/planner.ts', find: 'looks < maxLooks &&', replace: 'looks < 1 &&' }],
    tests: ['test/features/query/explain.test.ts'],
  },
  {
    name: 'plans: a scan that is expected to stop early is not checked against an index that tells where',
    edits: [
      {
        file: 'src/query/planner/planner.ts',
        find: 'unlocated !== undefined && isStoppingScan',
        replace: 'unlocated === null && isStoppingScan',
      },
    ],
    tests: ['test/features/publish/cities.slow.test.ts'],
  },
  {
    name: 'queries: the reads for the overlay of a batch are not in the budget',
    edits: [
      {
        file: 'src/query/query-run.ts',
        find: 'this.through = (state) => meter.metered(state);',
        replace: 'this.through = undefined;',
      },
    ],
    tests: [readAhead],
  },
  {
    name: 'queries: all rows with the same prefix are held, however few are wanted',
    edits: [
      {
        file: 'src/query/operators/long-value-sort.ts',
        find: 'if (this.#rows.length >= this.#wanted * 2 + minSurplus) this.#cut();',
        replace: '',
      },
    ],
    tests: ['test/features/query/alike-rows.slow.test.ts'],
  },
  {
    name: 'queries: rows with the same prefix are not counted',
    edits: [
      {
        file: 'src/query/operators/long-value-sort.ts',
        find: 'this.#scratch.add(this.#bytes - this.#counted);',
        replace: '',
      },
    ],
    tests: ['test/features/query/alike-rows.slow.test.ts'],
  },
  {
    name: 'queries: rows with the same prefix are read on after the query was given up',
    edits: [
      {
        file: 'src/query/operators/long-value-sort.ts',
        find: '        await breathe();\n        // How long',
        replace: '        // How long',
      },
    ],
    tests: ['test/features/query/alike-rows.slow.test.ts'],
  },
];
