import type { PagePromises } from '../page-promises.ts';

export const queryPlans: PagePromises = {
  'the query compares the entries of several indexes, and looks up only rows that are in all of them.': [
    'test/features/query/intersections.slow.test.ts: of two values reads the leaves that can have the keys of the smaller index, and no others',
  ],
  'the same query may use an index for a rare value, and read the table for a frequent one.': [
    'test/features/query/plans.slow.test.ts: flips from the index to the table as the value becomes frequent',
  ],
  'StoreDb chooses the cheapest plan, so the same query may use an index for a rare value, and read the table for a frequent one.':
    ['test/features/query/plans.slow.test.ts: is within two times the cost of the best one, with everything in memory'],
  'It reads nothing from the store, except one or two blocks of an index': [
    'test/features/query/plans.slow.test.ts: is within two times the cost of the best one with only the roots in memory, and planning reads little',
  ],
  'If the conditions, the order and the selected fields need nothing else, the query looks up no rows.': [
    'test/features/query/index-only.test.ts: read no row, and say so',
    'test/features/query/index-only.test.ts: are counts, extremes, sums and groups too',
  ],
  'Other queries look up a row only if its entry matches.': [
    'test/features/query/index-only.test.ts: test entries before rows are looked up',
  ],
  'since an index cannot tell -0 from 0.': [
    'test/features/query/index-only.test.ts: do not distinguish -0 from 0, and so are only aggregated',
  ],
  'If there are more keys than expected, the query uses one index and tests the rows.': [
    'test/features/query/intersections.slow.test.ts: gives up holding keys where they are too many, and tests rows instead',
  ],
  '`explain()` describes the plan, without reading anything:': [
    'test/features/query/explain.test.ts: lists the steps, with expected and actual reads',
  ],
};
