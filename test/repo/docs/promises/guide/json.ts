import type { PagePromises } from '../page-promises.ts';

const paths = 'test/features/query/paths.slow.test.ts';
const stored = 'test/features/query/paths-stored.slow.test.ts';

export const insideJson: PagePromises = {
  'Where the JSON of a field [is typed](tables.md#typed-json), the compiler knows the paths and their values, and refuses others.':
    ['test/features/types/typed-json.test.ts: has paths whose values are typed, and indexes on them'],
  'Queries give the same rows with and without an index.': [
    `${paths}: find the same rows by each plan, with and without indexes, also with unmerged commits`,
  ],
  'Such rows are exempt from a `unique` index.': [`${stored}: is unique where it says so, for values of its type`],
  'All indexes of a table give a path the same type.': [
    `${paths}: say what is wrong with a name, a value, a type or an index`,
  ],
};
