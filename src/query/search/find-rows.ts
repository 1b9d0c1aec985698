/** Finds the rows of a search in the entries of its index, and ranks them. */
import { isPromise } from '../../base/brands.ts';
import type { Pacer } from '../../base/pacer.ts';
import type { Scratch } from '../../cache/memory-budget.ts';
import { inverseFrequency } from '../../search/bm25.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';
import { openCursor } from '../../tree/cursor-sequence.ts';
import { countRange } from '../operators/range-count.ts';
import { HeldPostings } from './held-postings.ts';
import { SourceProbe } from './posting-probe.ts';
import type { ProbedWord } from './posting-probe.ts';
import { KeyBuffer } from './posting-run.ts';
import type { PostingRun } from './posting-run.ts';
import { PostingReader, rangeOf } from './postings.ts';
import type { PostingSource } from './postings.ts';
import { RankedRows } from './ranked-rows.ts';
import { WordPostings } from './word-postings.ts';

/** One word of a search: the words of rows that it stands for. */
export interface SearchedWord {
  /** The words, or the beginnings of words. */
  readonly alternatives: readonly { readonly word: string; readonly isPrefix: boolean }[];
}

/** The words of a search. */
export interface SearchedWords {
  readonly words: readonly SearchedWord[];
  /** Rows with any of these are not found. */
  readonly excluded: readonly SearchedWord[];
  /** Whether one of the words suffices. */
  readonly any: boolean;
}

/** Entries of some rows. */
export interface EntrySource {
  readonly tree: Tree;
  /** Whether the row with a primary key has other entries, in a newer source. Undefined: none has. */
  readonly isHidden: ((key: Uint8Array) => boolean | Promise<boolean>) | undefined;
}

/** All entries of an index, and what is known of all its rows. */
export interface Corpus {
  readonly index: TableIndex;
  readonly sources: readonly EntrySource[];
  readonly rows: number;
  readonly words: number;
}

export interface FindOptions {
  /** The weight of each field of the index; 0: the field is not searched. */
  readonly weights: readonly number[];
  /** How many of the best rows are wanted. */
  readonly most: number;
  readonly pacer: Pacer;
  readonly scratch: Scratch;
  /** How many rows are looked for at a time. */
  readonly together: number;
  /** Lets the event loop run if it is time to. Throws if the search was given up. */
  readonly breathe: () => void | Promise<void>;
}

/** A word in one source. */
export interface OpenWord extends ProbedWord {
  readonly postings: WordPostings;
}

/** The words of a search in each of the sources. A search moves over them once. */
export interface OpenedWords {
  readonly words: SearchedWords;
  readonly sources: readonly { readonly words: readonly OpenWord[]; readonly excluded: readonly OpenWord[] }[];
  /** How many rows have each word: the words of sources are in the same order, which need not be that of the search. */
  readonly counts: readonly number[];
}

/** Rows that are looked at between two pauses. */
const rowsAtOnce = 1024;
/** Where so many times more rows have the other word, they are searched for one by one. */
export const rareness = 16;

/** A search in the entries of an index. */
export class RowSearch {
  readonly #corpus: Corpus;
  readonly #options: FindOptions;
  #rows: RankedRows | undefined;
  /** The entries that were read. */
  entries = 0;
  /** How often a word was looked for in a row. */
  asked = 0;
  /** The memory of ranked rows that was taken. */
  #takenBytes = 0;

  constructor(corpus: Corpus, options: FindOptions) {
    this.#corpus = corpus;
    this.#options = options;
  }

  /** Made on first use: a search that only opens words ranks none. */
  get #ranked(): RankedRows {
    this.#rows ??= new RankedRows(this.#options.most);
    return this.#rows;
  }

  /** Finds out how many rows have each word, and reads the rows of words that are looked for together. */
  async open(words: SearchedWords): Promise<OpenedWords> {
    const opened = await Promise.all(
      this.#corpus.sources.map(async ({ tree }) => ({
        words: await Promise.all(words.words.map((word) => this.#open(tree, word))),
        excluded: await Promise.all(words.excluded.map((word) => this.#open(tree, word))),
      })),
    );
    const counts = words.words.map((_, i) => {
      return opened.reduce((sum, source) => sum + (source.words[i] as OpenWord).count, 0);
    });
    // The rarest word rules out most rows. Sums of fractions depend on their order, which is therefore that of all sources.
    const order = counts.map((_, i) => i);
    if (!words.any) order.sort((i, j) => (counts[i] as number) - (counts[j] as number));
    const inOrder = <T>(list: readonly T[]): T[] => order.map((i) => list[i] as T);
    const sources = opened.map((source) => ({ words: inOrder(source.words), excluded: source.excluded }));
    return { words, sources, counts: inOrder(counts) };
  }

  /** Returns the rows with the words of a search. `among`: only those of these, which come by ascending primary key. */
  async find(opened: OpenedWords, among?: PostingRun): Promise<RankedRows> {
    const { words, any } = opened.words;
    if (words.length === 0) return this.#ranked;
    if (among === undefined) await this.#findAll(opened, any);
    else for (const probe of this.probes(opened)) await this.#findAmong(among, probe);
    this.#ranked.close();
    return this.#ranked;
  }

  async #findAll(opened: OpenedWords, any: boolean): Promise<void> {
    const { factors, meanLength } = this.#ranking(opened);
    for (const [i, source] of this.#corpus.sources.entries()) {
      const { words: found, excluded: without } = opened.sources[i] as OpenedWords['sources'][number];
      for (const [word, { postings }] of found.entries()) postings.rankBy(factors[word] as number, meanLength);
      const merge = any ? new AnyWord(found) : new AllWords(found);
      const isAlone = found.length === 1 && without.length === 0 && source.isHidden === undefined;
      await (isAlone ? this.#rankOne(merge.row) : this.#rank(source, merge, without));
      for (const { postings } of found) this.entries += postings.read;
    }
  }

  /** Returns what the scores of rows depend on: the factor of each word, and the mean number of words of a row. */
  #ranking({ counts }: OpenedWords): { readonly factors: readonly number[]; readonly meanLength: number } {
    const { rows, words } = this.#corpus;
    return {
      factors: counts.map((count) => inverseFrequency(Math.max(rows, count), count)),
      meanLength: rows === 0 ? 0 : words / rows,
    };
  }

  /** Returns what looks for rows by their primary keys, for each source. */
  probes(opened: OpenedWords): SourceProbe[] {
    const ranking = this.#ranking(opened);
    const { any } = opened.words;
    return this.#corpus.sources.map(({ isHidden }, i) => {
      const { words, excluded } = opened.sources[i] as OpenedWords['sources'][number];
      return new SourceProbe({ ...ranking, words, excluded, any, isHidden });
    });
  }

  async #findAmong(among: PostingRun, probe: SourceProbe): Promise<void> {
    const key = new KeyBuffer();
    const { together } = this.#options;
    for (let from = 0; from < among.count; from += together) {
      const scores = await probe.scores(among, from, Math.min(among.count, from + together));
      for (let i = 0; i < scores.length; i++) {
        const score = scores[i] as number;
        if (score < 0) continue;
        among.readKey(from + i, key);
        this.#ranked.add(key.bytes, 0, key.length, score);
      }
      await this.#pause();
    }
    this.asked += probe.asked;
  }

  async #open(tree: Tree, { alternatives }: SearchedWord): Promise<OpenWord> {
    const { index } = this.#corpus;
    const { weights, pacer } = this.#options;
    const source: PostingSource = { tree, index, weights };
    const [first] = alternatives;
    const isOne = alternatives.length === 1 && first?.isPrefix === false && weights.every((weight) => weight > 0);
    if (isOne) {
      const range = rangeOf(first.word, false);
      const place = { source, range };
      return { postings: new WordPostings(place), place, count: await countRange(tree, range) };
    }
    const held = new HeldPostings();
    for (const { word, isPrefix } of alternatives) await this.#hold(held, source, rangeOf(word, isPrefix));
    const run = await held.sorted(pacer);
    return { postings: new WordPostings(run), place: run, count: run.count };
  }

  async #hold(held: HeldPostings, source: PostingSource, range: KeyRange): Promise<void> {
    const cursor = openCursor(source.tree, range);
    const reader = new PostingReader(source);
    cursor.expect?.(Number.POSITIVE_INFINITY);
    for (;;) {
      let more = cursor.next();
      if (isPromise(more)) more = await more;
      if (!more) break;
      const { node, from, to } = cursor;
      for (let i = from; i < to; i++) {
        reader.take(node, i);
        if (reader.frequency > 0) held.add(reader);
      }
      this.entries += to - from;
      await this.#options.breathe();
    }
    this.#options.scratch.add(held.sizeBytes);
  }

  async #rank(source: EntrySource, merge: Merge, excluded: readonly OpenWord[]): Promise<void> {
    const ranked = this.#ranked;
    const key = new KeyBuffer();
    for (let left = rowsAtOnce; ; left--) {
      let more = merge.next();
      if (isPromise(more)) more = await more;
      if (!more) break;
      const { run, at } = merge.row;
      let isOut = false;
      for (const { postings } of excluded) {
        let found = postings.seek(run, at);
        if (isPromise(found)) found = await found;
        if (found && postings.isAt(run, at)) isOut = true;
      }
      if (!isOut && source.isHidden !== undefined) {
        run.readKey(at, key);
        const hidden = source.isHidden(key.bytes.slice(0, key.length));
        isOut = isPromise(hidden) ? await hidden : hidden;
      }
      if (!isOut) {
        const score = merge.score();
        if (score < ranked.least) ranked.pass(1);
        else {
          run.readKey(at, key);
          ranked.add(key.bytes, 0, key.length, score);
        }
      }
      if (left === 0) {
        left = rowsAtOnce;
        await this.#pause();
      }
    }
  }

  /** Ranks the rows of one word. Those of a leaf whose best score is too low are not looked at. */
  async #rankOne(word: WordPostings): Promise<void> {
    const ranked = this.#ranked;
    const key = new KeyBuffer();
    for (let more = word.next(); ; more = word.nextRun()) {
      if (isPromise(more)) more = await more;
      if (!more) break;
      const { run, scores, bestScore } = word;
      const { kinds, count } = run;
      let { least } = ranked;
      if (bestScore < least) ranked.pass(count - word.at);
      else {
        for (let at = word.at; at < count; at++) {
          const score = scores[kinds[at] as number] as number;
          // Rows come by ascending key: a later one with the same score is worse.
          if (score < least) {
            ranked.pass(1);
            continue;
          }
          run.readKey(at, key);
          ranked.add(key.bytes, 0, key.length, score);
          ({ least } = ranked);
        }
      }
      word.read += count - word.at;
      await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    const { breathe, scratch } = this.#options;
    const { sizeBytes } = this.#ranked;
    scratch.add(sizeBytes - this.#takenBytes);
    this.#takenBytes = sizeBytes;
    await breathe();
  }
}

/** The rows that some words have together. */
interface Merge {
  /** The present row, by one of its words. */
  readonly row: WordPostings;
  next(): boolean | Promise<boolean>;
  /** Returns the score of the present row. */
  score(): number;
}

/** The rows with all of some words. */
class AllWords implements Merge {
  /** The word that is rarest in all sources first. */
  readonly #all: readonly WordPostings[];
  readonly row: WordPostings;

  constructor(words: readonly OpenWord[]) {
    this.#all = words.map(({ postings }) => postings);
    this.row = this.#all[0] as WordPostings;
    const fewest = Math.min(...words.map(({ count }) => count));
    for (const { postings, count } of words) {
      // Of a word that many more rows have, few entries are read.
      if (count < fewest * rareness) postings.expect(count);
    }
  }

  next(): boolean | Promise<boolean> {
    const moved = this.row.next();
    return isPromise(moved) ? moved.then((more) => more && this.#findRest(1)) : moved && this.#findRest(1);
  }

  /** Looks for the present row in the words from the `from`th on; goes on to the next row where one lacks it. */
  #findRest(from: number): boolean | Promise<boolean> {
    const { row } = this;
    let i = from;
    while (i < this.#all.length) {
      const other = this.#all[i] as WordPostings;
      const at = other.seek(row.run, row.at);
      if (isPromise(at)) {
        const place = i;
        // By then it is at its place, and stays there.
        return at.then((more) => more && this.#findRest(place));
      }
      if (!at) return false;
      if (other.isAt(row.run, row.at)) {
        i++;
        continue;
      }
      const moved = row.seek(other.run, other.at);
      if (isPromise(moved)) return moved.then((more) => more && this.#findRest(1));
      if (!moved) return false;
      i = 1;
    }
    return true;
  }

  score(): number {
    let sum = 0;
    for (let i = 0; i < this.#all.length; i++) sum += (this.#all[i] as WordPostings).score;
    return sum;
  }
}

/** The rows with at least one of some words. */
class AnyWord implements Merge {
  readonly #all: readonly WordPostings[];
  /** Whether each word has a row that was not returned yet, at its present place. */
  readonly #isLeft: boolean[];
  /** Whether each word has the present row. */
  readonly #isPresent: boolean[];
  row: WordPostings;

  constructor(words: readonly OpenWord[]) {
    this.#all = words.map(({ postings }) => postings);
    this.#isLeft = words.map(() => true);
    this.#isPresent = words.map(() => true);
    this.row = this.#all[0] as WordPostings;
    for (const { postings, count } of words) postings.expect(count);
  }

  next(): boolean | Promise<boolean> {
    let waiting: Promise<void>[] | undefined;
    for (let i = 0; i < this.#all.length; i++) {
      if (!this.#isPresent[i]) continue;
      const moved = (this.#all[i] as WordPostings).next();
      if (isPromise(moved)) (waiting ??= []).push(this.#note(i, moved));
      else this.#isLeft[i] = moved;
    }
    return waiting === undefined ? this.#least() : Promise.all(waiting).then(() => this.#least());
  }

  async #note(i: number, moved: Promise<boolean>): Promise<void> {
    this.#isLeft[i] = await moved;
  }

  /** Takes the least row of all words. */
  #least(): boolean {
    let least: WordPostings | undefined;
    for (let i = 0; i < this.#all.length; i++) {
      this.#isPresent[i] = false;
      if (!this.#isLeft[i]) continue;
      const one = this.#all[i] as WordPostings;
      const order = least === undefined ? -1 : one.run.compare(one.at, least.run, least.at);
      if (order > 0) continue;
      if (order < 0) {
        least = one;
        this.#isPresent.fill(false, 0, i);
      }
      this.#isPresent[i] = true;
    }
    if (least === undefined) return false;
    this.row = least;
    return true;
  }

  score(): number {
    let sum = 0;
    for (let i = 0; i < this.#all.length; i++) if (this.#isPresent[i]) sum += (this.#all[i] as WordPostings).score;
    return sum;
  }
}
