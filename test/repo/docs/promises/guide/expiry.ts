import type { PagePromises } from '../page-promises.ts';

const expiry = 'test/features/expiry/expiry.test.ts';
const deletion = 'test/features/expiry/deletion.test.ts';
const paths = 'test/features/expiry/paths.test.ts';

export const expiringRows: PagePromises = {
  'To a write, an expired row is not there: `insert` puts a new row in its place, `upsert` takes no fields from it, and `update` and `increment` reject with `RowNotFoundError`.':
    [
      `${expiry}: insert a row in the place of an expired one, whose blob goes`,
      `${expiry}: take an upsert for that of a new row`,
      `${expiry}: refuse to update an expired row, or to add to it`,
    ],
  'A row may take the values that an expired one has in a unique index: the flush deletes the expired one.': [
    `${paths}: lets a row take the values of one that has expired, which goes at once, from the %s`,
  ],
  'While a table has two versions, each hides rows by its own rule, and no row is deleted until the old version is retired.':
    [`${paths}: change the table %s one with expiry, and lose no row`],
  'Instances delete expired rows in their turns, at most 1,000 in a commit.': [
    `${expiry}: says so in the changes, fires no triggers, and takes commits of at most 1,000 rows`,
  ],
  'So a clock that is less than five minutes ahead deletes nothing early.': [
    `${expiry}: deletes nothing early by a clock that is less than five minutes ahead`,
    `${deletion}: delete every row that has expired, and none early (seed %i, clocks off by %j ms)`,
  ],
  'An idle instance with such a table makes no more requests than one without.': [
    `${deletion}: makes no more requests than one without, with polling %s`,
  ],
  'A row that gets a later time meanwhile stays.': [
    `${expiry}: leaves a row that another instance gives a later time meanwhile`,
  ],
  'While nothing has expired, this costs no commit.': [`${expiry}: makes no commit where nothing has expired`],
};
