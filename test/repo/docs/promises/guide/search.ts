import type { PagePromises } from '../page-promises.ts';

const stored = 'test/features/search/stored.test.ts';
const words = 'test/features/search/words.test.ts';
const pages = 'test/features/search/pages.test.ts';
const missing = 'test/features/search/missing-stems.slow.test.ts';
const any = `${stored}: finds the rows that the model finds, in the order of their scores, after any changes`;

export const searchingTexts: PagePromises = {
  "A row is found if it has all words. With `match: 'any'`, one of them suffices.": [any],
  'Words in double quotes are a phrase: they stand one after the other in one field.': [any],
  'The score is BM25, as SQLite': [any],
  'A search without words, or only with words after `-`, finds nothing. It takes up to 64 words.': [
    `${stored}: refuses what it cannot do, before it reads`,
    `${words}: has up to 64 words`,
  ],
  'a row that keeps its place before or behind that one is shown once, although all scores change.': [
    `${pages}: show every row once whose place among the others stays, although all scores change`,
  ],
  'If the search does not find that row any more, the page goes on behind the score that it had.': [
    `${pages}: leave out new rows before the bookmark, show those behind it, and go on where its row was deleted`,
  ],
  'Where the package is missing, `start()` and writes to such a table are refused with `NotSupportedError`, before anything is written.':
    [
      `${missing}: refuses to start before anything is written, with what to install; English needs no package`,
      `${missing}: refuses writes, loads and versions where the table is registered after the start, and other tables go on`,
    ],
  'Case, accents and forms of letters do not count': [`${words}: of %j are %j`],
};
