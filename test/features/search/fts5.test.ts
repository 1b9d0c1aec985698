/** Compares words, matches and ranks with FTS5 of SQLite, on the same words. */
import sqlite from 'node-sqlite3-wasm';
import { afterAll, describe, expect, it } from 'vitest';
import { loadAnalyzer } from '../../../src/search/analyzer.ts';
import { clauseScore, idfOf } from '../../../src/search/bm25.ts';
import { SearchMatcher } from '../../../src/search/matcher.ts';
import { parseSearch } from '../../../src/search/search-text.ts';
import type { ParsedSearch, SearchClause, SearchTextOptions } from '../../../src/search/search-text.ts';
import { SeededRandom } from '../../../src/testing/seeded-random.ts';

const english = await loadAnalyzer('en');
const plain = await loadAnalyzer(undefined);
const weights = [3, 1];
const vocabulary = (
  'the of wine red white bottle glasses drinking vineyards cabernet running runner cork old age tasting barrels grapes ' +
  'harvest dry sweet sparkling connection nations generous yeast sugar acid tannin oak cellar label export'
).split(' ');
const random = new SeededRandom('texts');

/** Returns a text of words, of which the first of the vocabulary are the most frequent. */
function someText(most: number): string {
  const count = 1 + Math.floor(random.next() * most);
  return Array.from({ length: count }, () => vocabulary[Math.floor(random.next() ** 3 * vocabulary.length)]).join(' ');
}

const rows = Array.from({ length: 2000 }, () => [someText(5), someText(30)] as const);
const words = rows.map((texts) => texts.map((text) => english.words(text)));
const averageLength = words.flat(2).length / rows.length;

const db = new sqlite.Database();
db.exec("CREATE VIRTUAL TABLE docs USING fts5(title, body, tokenize = 'unicode61')");
db.exec('BEGIN');
for (const [index, [title, body]] of words.entries()) {
  db.run('INSERT INTO docs (rowid, title, body) VALUES (?, ?, ?)', [
    index,
    title?.join(' ') ?? '',
    body?.join(' ') ?? '',
  ]);
}
db.exec('COMMIT');
afterAll(() => db.close());

interface Ranked {
  readonly row: number;
  readonly score: number;
}

function fts5Clause({ words: own, prefix }: SearchClause): string {
  const exact = `"${own.join(' ')}"`;
  return prefix === undefined ? exact : `"${[...own.slice(0, -1), prefix].join(' ')}" *`;
}

function ranksOfFts5({ wanted, excluded, match }: ParsedSearch): Ranked[] {
  const join = (clauses: readonly SearchClause[], word: string): string =>
    `(${clauses.map((clause) => fts5Clause(clause)).join(` ${word} `)})`;
  const found = join(wanted, match === 'all' ? 'AND' : 'OR');
  const query = excluded.length === 0 ? found : `${found} NOT ${join(excluded, 'OR')}`;
  const answer = db.all(`SELECT rowid, -bm25(docs, ${weights.join(', ')}) AS score FROM docs WHERE docs MATCH ?`, [
    query,
  ]);
  return answer.map(({ rowid, score }) => ({ row: Number(rowid), score: Number(score) }));
}

function ranksOfOurs(search: ParsedSearch): Ranked[] {
  const matcher = new SearchMatcher(search, english);
  const matches = words.map((fields) => matcher.matchWords(fields));
  const idfs = search.wanted.map((_, clause) => {
    const hits = matches.filter(({ frequencies }) => frequencies[clause]?.some((count) => count > 0)).length;
    return idfOf(rows.length, hits);
  });
  return matches.flatMap(({ isMatch, frequencies, length }, row) => {
    if (!isMatch) return [];
    const scores = frequencies.map((counts, clause) => {
      const weighted = counts.reduce((sum, count, field) => sum + count * (weights[field] ?? 1), 0);
      return clauseScore(idfs[clause] ?? 0, weighted, length, averageLength);
    });
    return [{ row, score: scores.reduce((sum, score) => sum + score, 0) }];
  });
}

describe('FTS5 of SQLite', () => {
  it.each<[search: string, options: SearchTextOptions]>([
    ['export', {}],
    ['the', {}],
    ['red wine', {}],
    ['generous connections nation', {}],
    ['generous connections nation', { match: 'any' }],
    ['"red wine"', {}],
    ['"the wine" glass -white', {}],
    ['the -"of the" -red', { match: 'any' }],
    ['wine gla', { prefix: true }],
    ['"no such" wine', { match: 'any' }],
  ])('finds and ranks the same rows for %s %o', (text, options) => {
    const search = parseSearch(text, english, options);
    const theirs = ranksOfFts5(search);
    const ours = ranksOfOurs(search);
    expect(ours.length).toBeGreaterThan(0);
    expect(ours.map(({ row }) => row)).toEqual(theirs.map(({ row }) => row));
    const difference = ours.map(({ score }, at) => Math.abs(score / (theirs[at]?.score ?? 0) - 1));
    expect(Math.max(...difference)).toBeLessThan(1e-9);
  });

  it('makes the same words of Latin, Greek and Hebrew letters', () => {
    const text =
      'Élan, naïve Ångström; CAFÉ e-mail 3.14 C++ foo_bar a@b.org don’t tiếng Việt ΑΘΗΝΑ (שלום) x42 — Ünïcödé';
    db.exec('CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = "unicode61 remove_diacritics 2")');
    db.exec("CREATE VIRTUAL TABLE terms USING fts5vocab('texts', 'instance')");
    db.run('INSERT INTO texts VALUES (?)', [text]);
    const theirs = db.all('SELECT term FROM terms ORDER BY "offset"').map(({ term }) => term);
    expect(plain.words(text)).toEqual(theirs);
  });
});
