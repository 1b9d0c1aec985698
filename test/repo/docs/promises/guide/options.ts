import type { PagePromises } from '../page-promises.ts';

export const options: PagePromises = {
  'An unknown or wrong option throws `InvalidOptionError` at once.': [
    'test/features/interface/options.test.ts: an option that does not exist, with those that do',
  ],
};
