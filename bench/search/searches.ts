/** The searches of the benchmark. */

export interface BenchSearch {
  readonly title: string;
  readonly text: string;
  readonly match: 'all' | 'any';
  readonly prefix: boolean;
}

function search(title: string, text: string, options: Partial<BenchSearch> = {}): BenchSearch {
  return { title, text, match: 'all', prefix: false, ...options };
}

export const searches: readonly BenchSearch[] = [
  search('one rare word', 'heterotroph'),
  search('one medium word', 'wine'),
  search('one common word', 'person'),
  search('two words', 'red wine'),
  search('three words, one rare', 'cabernet red wine'),
  search('three medium words', 'white wine grape'),
  search('three common words', 'part person body'),
  search('any of three common words', 'part person body', { match: 'any' }),
  search('a word and the beginning of one', 'red win', { prefix: true }),
];

/** The best rows that each search asks for. */
export const wantedRows = 10;
