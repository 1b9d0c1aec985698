import type { PagePromises } from '../page-promises.ts';

const stored = 'test/features/search/stored.test.ts';
const words = 'test/features/search/words.test.ts';
const any = `${stored}: finds the rows that the model finds, in the order of their scores, after any changes`;

export const searchingTexts: PagePromises = {
  "A row is found if it has all words. With `match: 'any'`, one of them suffices.": [any],
  'Words in double quotes are a phrase: they stand one after the other in one field.': [any],
  'The score is BM25, as SQLite': [any],
  'A search without words, or only with words after `-`, finds nothing. It takes up to 64 words.': [
    `${stored}: refuses what it cannot do, before it reads`,
    `${words}: has up to 64 words`,
  ],
  'Case, accents and forms of letters do not count': [`${words}: of %j are %j`],
};
