/** Finds the rows of a search in the entries of its index, and ranks them. */
import { isPromise } from '../../base/brands.ts';
import { compareRanges } from '../../base/bytes.ts';
import type { Pacer } from '../../base/pacer.ts';
import type { Scratch } from '../../cache/memory-budget.ts';
import { inverseFrequency, wordScore } from '../../search/bm25.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';
import { countRange } from '../operators/range-count.ts';
import { HeldPostings } from './held-postings.ts';
import { PostingCursor, rangeOf } from './postings.ts';
import type { PostingSource } from './postings.ts';
import { RankedRows } from './ranked-rows.ts';

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
  /** Lets the event loop run if it is time to. Throws if the search was given up. */
  readonly breathe: () => void | Promise<void>;
}

type Postings = PostingCursor | HeldPostings;

/** A word in one source. */
interface OpenWord {
  readonly postings: Postings;
  /** About how many rows have it there. */
  readonly count: number;
}

/** Rows that are looked at between two pauses. */
const rowsAtOnce = 1024;
/** Where so many times more rows have the other word, they are searched for one by one. */
const rareness = 16;

/** A search in the entries of an index. */
export class RowSearch {
  readonly #corpus: Corpus;
  readonly #options: FindOptions;
  readonly #ranked: RankedRows;
  /** The entries that were read. */
  entries = 0;
  /** The memory of ranked rows that was taken. */
  #takenBytes = 0;

  constructor(corpus: Corpus, options: FindOptions) {
    this.#corpus = corpus;
    this.#options = options;
    this.#ranked = new RankedRows(options.most);
  }

  /** Returns the rows with the words of a search. */
  async find({ words, excluded, any }: SearchedWords): Promise<RankedRows> {
    const { sources, rows } = this.#corpus;
    if (words.length === 0) return this.#ranked;
    const opened = await Promise.all(
      sources.map(async ({ tree }) => ({
        words: await Promise.all(words.map((word) => this.#open(tree, word))),
        excluded: await Promise.all(excluded.map((word) => this.#open(tree, word))),
      })),
    );
    const factors = words.map((_, i) => {
      const count = opened.reduce((sum, source) => sum + (source.words[i] as OpenWord).count, 0);
      return inverseFrequency(Math.max(rows, count), count);
    });
    for (const [i, source] of sources.entries()) {
      const { words: found, excluded: without } = opened[i] as (typeof opened)[number];
      const merge = any ? new AnyWord(found, factors) : new AllWords(found, factors);
      await this.#rank(source, merge, without);
    }
    this.#ranked.close();
    return this.#ranked;
  }

  async #open(tree: Tree, { alternatives }: SearchedWord): Promise<OpenWord> {
    const { index } = this.#corpus;
    const { weights, pacer } = this.#options;
    const source: PostingSource = { tree, index, weights };
    const [first] = alternatives;
    const isOne = alternatives.length === 1 && first?.isPrefix === false && weights.every((weight) => weight > 0);
    if (isOne) {
      const range = rangeOf(first.word, false);
      return { postings: new PostingCursor(source, range), count: await countRange(tree, range) };
    }
    const held = new HeldPostings();
    for (const { word, isPrefix } of alternatives) await this.#hold(held, source, rangeOf(word, isPrefix));
    await held.close(pacer);
    return { postings: held, count: held.count };
  }

  async #hold(held: HeldPostings, source: PostingSource, range: KeyRange): Promise<void> {
    const cursor = new PostingCursor(source, range);
    cursor.expect(Number.POSITIVE_INFINITY);
    for (let left = rowsAtOnce; ; left--) {
      let more = cursor.next();
      if (isPromise(more)) more = await more;
      if (!more) break;
      if (cursor.frequency > 0) held.add(cursor);
      if (left === 0) {
        left = rowsAtOnce;
        await this.#options.breathe();
      }
    }
    this.entries += cursor.read;
    this.#options.scratch.add(held.sizeBytes);
  }

  async #rank(source: EntrySource, merge: Merge, excluded: readonly OpenWord[]): Promise<void> {
    const { breathe, scratch } = this.#options;
    const ranked = this.#ranked;
    const { rows, words } = this.#corpus;
    const meanLength = rows === 0 ? 0 : words / rows;
    for (let left = rowsAtOnce; ; left--) {
      let more = merge.next();
      if (isPromise(more)) more = await more;
      if (!more) break;
      const { bytes, keyStart, keyEnd } = merge.row;
      let isOut = false;
      for (const { postings } of excluded) {
        let at = postings.seek(bytes, keyStart, keyEnd);
        if (isPromise(at)) at = await at;
        if (at && postings.isAt(bytes, keyStart, keyEnd)) isOut = true;
      }
      if (!isOut && source.isHidden !== undefined) {
        const hidden = source.isHidden(bytes.slice(keyStart, keyEnd));
        isOut = isPromise(hidden) ? await hidden : hidden;
      }
      if (!isOut) ranked.add(bytes, keyStart, keyEnd, merge.score(meanLength));
      if (left === 0) {
        left = rowsAtOnce;
        scratch.add(ranked.sizeBytes - this.#takenBytes);
        this.#takenBytes = ranked.sizeBytes;
        await breathe();
      }
    }
    for (const postings of merge.all) if (postings instanceof PostingCursor) this.entries += postings.read;
  }
}

/** The rows that some words have together. */
interface Merge {
  readonly all: readonly Postings[];
  /** The present row, by one of its words. */
  readonly row: Postings;
  next(): boolean | Promise<boolean>;
  /** Returns the score of the present row. */
  score(meanLength: number): number;
}

/** The rows with all of some words. */
class AllWords implements Merge {
  readonly all: readonly Postings[];
  /** In the order of {@link all}. */
  readonly #factors: readonly number[];
  readonly row: Postings;

  constructor(words: readonly OpenWord[], factors: readonly number[]) {
    const order = words
      .map((_, i) => i)
      .toSorted((a, b) => (words[a] as OpenWord).count - (words[b] as OpenWord).count);
    const sorted = order.map((i) => words[i] as OpenWord);
    this.all = sorted.map(({ postings }) => postings);
    this.#factors = order.map((i) => factors[i] as number);
    this.row = this.all[0] as Postings;
    const [fewest] = sorted;
    for (const [i, { postings, count }] of sorted.entries()) {
      // Of a word that many more rows have, few entries are read.
      const isRead = i === 0 || count < (fewest as OpenWord).count * rareness;
      if (isRead && postings instanceof PostingCursor) postings.expect(count);
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
    while (i < this.all.length) {
      const other = this.all[i] as Postings;
      const at = other.seek(row.bytes, row.keyStart, row.keyEnd);
      if (isPromise(at)) {
        const place = i;
        // By then it is at its place, and stays there.
        return at.then((more) => more && this.#findRest(place));
      }
      if (!at) return false;
      if (other.isAt(row.bytes, row.keyStart, row.keyEnd)) {
        i++;
        continue;
      }
      const moved = row.seek(other.bytes, other.keyStart, other.keyEnd);
      if (isPromise(moved)) return moved.then((more) => more && this.#findRest(1));
      if (!moved) return false;
      i = 1;
    }
    return true;
  }

  score(meanLength: number): number {
    let sum = 0;
    for (let i = 0; i < this.all.length; i++) {
      const { frequency, length } = this.all[i] as Postings;
      sum += wordScore(this.#factors[i] as number, frequency, length, meanLength);
    }
    return sum;
  }
}

/** The rows with at least one of some words. */
class AnyWord implements Merge {
  readonly all: readonly Postings[];
  readonly #factors: readonly number[];
  /** Whether each word has a row that was not returned yet, at its present place. */
  readonly #isLeft: boolean[];
  #hasBegun = false;
  row: Postings;

  constructor(words: readonly OpenWord[], factors: readonly number[]) {
    this.all = words.map(({ postings }) => postings);
    this.#factors = factors;
    this.#isLeft = words.map(() => true);
    this.row = this.all[0] as Postings;
    for (const { postings, count } of words) if (postings instanceof PostingCursor) postings.expect(count);
  }

  next(): boolean | Promise<boolean> {
    let waiting: Promise<void>[] | undefined;
    for (let i = 0; i < this.all.length; i++) {
      if (!this.#isLeft[i] || (this.#hasBegun && !this.#isPresent(i))) continue;
      // The place of the present row is known by its word: it moves last.
      if (this.all[i] === this.row && this.#hasBegun) continue;
      waiting = this.#move(i, waiting);
    }
    if (this.#hasBegun) waiting = this.#move(this.all.indexOf(this.row), waiting);
    this.#hasBegun = true;
    return waiting === undefined ? this.#least() : Promise.all(waiting).then(() => this.#least());
  }

  #isPresent(i: number): boolean {
    const { bytes, keyStart, keyEnd } = this.row;
    return (this.all[i] as Postings).isAt(bytes, keyStart, keyEnd);
  }

  #move(i: number, waiting: Promise<void>[] | undefined): Promise<void>[] | undefined {
    const moved = (this.all[i] as Postings).next();
    if (!isPromise(moved)) {
      this.#isLeft[i] = moved;
      return waiting;
    }
    return [...(waiting ?? []), this.#note(i, moved)];
  }

  async #note(i: number, moved: Promise<boolean>): Promise<void> {
    this.#isLeft[i] = await moved;
  }

  /** Takes the least row of all words. */
  #least(): boolean {
    let least: Postings | undefined;
    for (let i = 0; i < this.all.length; i++) {
      const one = this.all[i] as Postings;
      if (!this.#isLeft[i]) continue;
      if (
        least === undefined ||
        compareRanges(one.bytes, one.keyStart, one.keyEnd, least.bytes, least.keyStart, least.keyEnd) < 0
      )
        least = one;
    }
    if (least === undefined) return false;
    this.row = least;
    return true;
  }

  score(meanLength: number): number {
    let sum = 0;
    for (let i = 0; i < this.all.length; i++) {
      if (!this.#isLeft[i] || !this.#isPresent(i)) continue;
      const { frequency, length } = this.all[i] as Postings;
      sum += wordScore(this.#factors[i] as number, frequency, length, meanLength);
    }
    return sum;
  }
}
