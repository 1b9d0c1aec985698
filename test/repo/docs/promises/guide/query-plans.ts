import type { PagePromises } from '../page-promises.ts';

export const queryPlans: PagePromises = {
  'the entries of several indexes are compared, and only rows that all of them name are looked up.': [
    'test/features/query/intersections.slow.test.ts: of two values reads the leaves that can have what the smaller index has, and no others',
  ],
  'the same query may use an index for a rare value, and read the table for a frequent one.': [
    'test/features/query/plans.slow.test.ts: flips from the index to the table as the value becomes frequent',
  ],
  'What costs least is run': [
    'test/features/query/plans.slow.test.ts: is within two times that of the best one, with everything in memory',
  ],
  'It reads nothing, unless a block or two of an index': [
    'test/features/query/plans.slow.test.ts: is within two times that of the best one with nothing in memory but the roots, and planning reads little',
  ],
  'Where conditions, order, and what is taken of the rows need no more than that, no row is looked up': [
    'test/features/query/index-only.test.ts: read no row, and say so',
    'test/features/query/index-only.test.ts: are counts, extremes, sums and groups too',
  ],
  'Other rows are looked up only if what their entries hold matches.': [
    'test/features/query/index-only.test.ts: test entries before rows are looked up',
  ],
  'since indexes do not tell -0 from 0.': [
    'test/features/query/index-only.test.ts: would not tell -0 from 0, and so are only folded',
  ],
  'should they be more than expected, one index is used and rows are tested for the rest.': [
    'test/features/query/intersections.slow.test.ts: gives up holding keys where they are too many, and tests rows instead',
  ],
  '`explain()` tells what it would do, without reading anything:': [
    'test/features/query/explain.test.ts: tells the steps, what each is likely to take, and what it took',
  ],
};
