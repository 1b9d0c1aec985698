/** Mistakes in indexes on texts, and in searches. */
import type { Mutant } from './mutant.ts';

const stored = 'test/features/search/stored.test.ts';
const words = 'test/features/search/words.test.ts';
const pages = 'test/features/search/pages.test.ts';
const paged = 'src/query/search/ranked-pages.ts';
const changes = 'src/merge/index-changes.ts';
const finding = 'src/query/search/find-rows.ts';
const postings = 'src/query/search/postings.ts';
const run = 'src/query/search/posting-run.ts';
const fts5 = 'test/features/search/fts5.test.ts';
const ranked = 'src/query/search/ranked-rows.ts';
const dense = 'src/format/dense-leaf.ts';
const denseWriter = 'src/format/dense-writer.ts';
const denseTests = 'src/cache/dense-node.test.ts';
const ways = 'src/query/search/search-ways.ts';
const probing = 'src/query/search/posting-probe.ts';
const compiling = 'src/query/search/compiled-search.ts';
const carrying = 'src/query/search/search-rows.ts';
const waysTests = 'test/features/search/ways.test.ts';
const everyWay = 'test/features/search/ways.slow.test.ts';
const corpus = 'src/query/search/corpus.ts';

function mutant(name: string, file: string, find: string, replace: string, tests: readonly string[]): Mutant {
  return { name: `search: ${name}`, edits: [{ file, find, replace }], tests };
}

export const searchMutants: readonly Mutant[] = [
  mutant(
    'one without words goes through rows in order, and finds them',
    ways,
    'if (isAlone || search.opened.words.words.length === 0)',
    'if (isAlone)',
    [waysTests],
  ),
  mutant('any row has the words of one without words', compiling, 'if (asked.length === 0) return false;', '', [
    waysTests,
  ]),
  mutant(
    'a word counts twice that begins like a misspelled one',
    compiling,
    'word !== token.word && !(token.isPrefix && word.startsWith(token.typed))',
    'word !== token.word',
    [waysTests],
  ),
  mutant('each word counts as another one is rare', finding, 'counts: inOrder(counts)', 'counts', [stored]),
  mutant(
    'all rows with the words are read although an index has few',
    ways,
    'return eligible.reduce(',
    'return eligible.slice(0, 1).reduce(',
    [waysTests],
  ),
  mutant(
    'rows of a union are not looked among',
    ways,
    "=> access.kind === 'nothing' || covered.length > 0;",
    "=> access.kind === 'nothing' || (covered.length > 0 && access.kind !== 'union');",
    [waysTests],
  ),
  mutant('rows that others hide are found among some', probing, 'if (hidden) sums[at]', 'if (!hidden) sums[at]', [
    everyWay,
  ]),
  mutant(
    'rows with excluded words are found among some',
    probing,
    'if (score >= 0) sums[at] = notThere;',
    'if (score < -1) sums[at] = notThere;',
    [waysTests],
  ),
  mutant(
    'conditions are forgotten that the other rows do not fulfil',
    carrying,
    ': residualOf(query, others.plan.covered);',
    ': [];',
    [everyWay],
  ),
  mutant(
    'rows in order are read that nobody wants',
    'src/query/search/ordered-search.ts',
    'filter.empty ? Math.min(step, batch.wanted) : step',
    'step',
    [waysTests],
  ),
  mutant('a page goes on behind an old score', paged, 'let stays = await isThere(place.key);', 'let stays = false;', [
    pages,
  ]),
  mutant(
    'a page ends where its row is among the best no more',
    paged,
    'if (isBehind && (rows.left >= size || found.isWhole)) return',
    'if (isBehind || found.isWhole || !stays) return',
    [pages],
  ),
  mutant('a page loses its first row', paged, 'this.#held = key;', 'this.#held = undefined;', [pages]),
  mutant('words of a row that goes still count', changes, '* (isRemoval ? -1 : 1);', '* (isRemoval ? 0 : 1);', [
    stored,
  ]),
  mutant(
    'words of a row that changes count twice',
    changes,
    'wordsOf(this.#after, 0, this.index) - wordsOf(this.#before, 0, this.index)',
    'wordsOf(this.#after, 0, this.index)',
    [stored],
  ),
  mutant(
    'a row is also found as it was before an unmerged change',
    corpus,
    'const below: EntrySource = { tree, isHidden: (key) => state.isOverlaid(key) };',
    'const below: EntrySource = { tree, isHidden: undefined };',
    [stored],
  ),
  mutant(
    'a row of an earlier unmerged commit is found beside the later one',
    corpus,
    'newer.length === 0 ? undefined : (key) => isIn(newer, key)',
    'undefined',
    [stored],
  ),
  mutant('excluded words are found', finding, 'if (found && postings.isAt(', 'if (!found && postings.isAt(', [stored]),
  mutant(
    'a word that follows far behind is passed over',
    'src/query/search/word-postings.ts',
    'const at = run.bound(this.at + 1, other, j);',
    'const at = 1 + run.bound(this.at + 1, other, j);',
    [stored],
  ),
  mutant(
    'groups of entries are passed over that may have the wanted one',
    dense,
    'if (isBelow(low + step)) low += step;',
    'if (isBelow(low + step)) low += step + 1;',
    [denseTests],
  ),
  mutant(
    'a dense leaf whose entries do not ascend is read',
    dense,
    'if (!isStep && i > 0 && before.compareTo(entry) >= 0)',
    'if (i < 0)',
    [denseTests],
  ),
  mutant(
    'an entry is the difference from another than the one before',
    denseWriter,
    'if (this.#count > 0) this.#find(keys, this.#count - 1);',
    '',
    [denseTests],
  ),
  mutant(
    'the first key of a dense leaf is compared with one of the leaf before',
    denseWriter,
    'this.#start = this.#wordEnd;',
    '',
    ['test/features/search/dense-writer.test.ts'],
  ),
  mutant(
    'the words of sorted runs do not count',
    'src/merge/growing-index.ts',
    'if (this.changes.index.text !== undefined) {',
    'if (this.changes.index.text === null) {',
    ['test/features/search/rounds.slow.test.ts'],
  ),
  mutant(
    'the entries of texts are in plain leaves',
    'src/schema/text-postings.ts',
    'if (index?.text === undefined) return indexLeafShape;',
    'if (index?.text === undefined || index !== undefined) return indexLeafShape;',
    [stored],
  ),
  mutant(
    'the weights of fields do not count',
    postings,
    '(weights[count % weights.length] as number) * (',
    'Math.sign(weights[count % weights.length] as number) * (',
    [stored],
  ),
  mutant(
    'the worst of the best rows stays',
    ranked,
    'return this.#isTaking ? this.#isBetter(one, other) : this.#isBetter(other, one);',
    'return this.#isBetter(one, other);',
    [stored],
  ),
  mutant(
    'a later search changes the scores of one that is under way',
    run,
    'const scores = new Float64Array(this.#lengths.length);',
    'const scores = known?.scores ?? new Float64Array(this.#lengths.length);',
    ['test/features/search/posting-run.test.ts'],
  ),
  mutant(
    'rows are the same where the beginnings of their keys are',
    run,
    'if (difference !== 0 || (this.isShort && other.isShort)) return difference;',
    'if (difference !== 0 || other.count > 0) return difference;',
    ['test/features/search/posting-run.test.ts'],
  ),
  mutant(
    'rows of a leaf are passed over though one is as good as the worst',
    finding,
    'if (bestScore < least) ranked.pass(count - word.at);',
    'if (bestScore * 0.9 < least) ranked.pass(count - word.at);',
    [fts5],
  ),
  mutant(
    'a watched search overlooks changed scores',
    'src/live/live-query.ts',
    'if (search !== undefined && orders.length === 0) return undefined;',
    '',
    [stored],
  ),
  mutant(
    'the format does not keep older releases out',
    'src/format/stored-schema.ts',
    'if (indexes.some(({ text }) => text !== undefined)) return textIndexVersion;',
    '',
    ['test/features/golden/golden.test.ts'],
  ),
  mutant('accents count', 'src/search/analyzer.ts', 'code >= from && code <= to', 'code > from && code < from', [
    words,
  ]),
];
