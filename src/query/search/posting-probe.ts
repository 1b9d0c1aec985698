/** Looks for rows, by their primary keys, among those that have words: for few rows, this reads a small part of the entries of the words. */
import { andThen, isPromise } from '../../base/brands.ts';
import { concatBytes, prefixEnd } from '../../base/bytes.ts';
import { wordScore } from '../../search/bm25.ts';
import { openCursor } from '../../tree/cursor-sequence.ts';
import type { RunCursor } from '../../tree/cursor.ts';
import { KeyBuffer, PostingRun } from './posting-run.ts';
import { PostingReader } from './postings.ts';
import type { WordPlace } from './word-postings.ts';

/** The rows that have a word. */
export interface ProbedWord {
  /** Where they are: in a tree, or in memory. */
  readonly place: WordPlace | PostingRun;
  /** About how many they are. */
  readonly count: number;
}

/** The score of a row that is not there. */
const notThere = -1;

class PostingProbe {
  readonly #place: WordPlace | PostingRun;
  readonly #reader: PostingReader | undefined;
  readonly #factor: number;
  readonly #meanLength: number;

  constructor(place: WordPlace | PostingRun, factor: number, meanLength: number) {
    this.#place = place;
    this.#reader = place instanceof PostingRun ? undefined : new PostingReader(place.source);
    this.#factor = factor;
    this.#meanLength = meanLength;
  }

  /** Returns what the word adds to the score of a row; a negative number if the row does not have it. */
  scoreOf(keys: PostingRun, j: number): number | Promise<number> {
    const place = this.#place;
    if (place instanceof PostingRun) {
      const at = place.bound(0, keys, j);
      if (at === place.count || place.compare(at, keys, j) !== 0) return notThere;
      const { scores } = place.rankingFor(this.#factor, this.#meanLength);
      return scores[place.kinds[at] as number] as number;
    }
    keys.readKey(j, target);
    const from = concatBytes(place.range.from as Uint8Array, target.bytes.subarray(0, target.length));
    const cursor = openCursor(place.source.tree, { from, to: prefixEnd(from) });
    return andThen(cursor.next(), (isThere) => (isThere ? this.#scoreAt(cursor) : notThere));
  }

  #scoreAt({ node, from }: RunCursor): number {
    const reader = this.#reader as PostingReader;
    reader.take(node, from);
    return wordScore(this.#factor, reader.frequency, reader.length, this.#meanLength);
  }
}

const target = new KeyBuffer();

export interface SourceProbeOptions {
  readonly words: readonly ProbedWord[];
  readonly excluded: readonly ProbedWord[];
  /** Whether one of the words suffices. */
  readonly any: boolean;
  /** The arguments of `wordScore`. */
  readonly factors: readonly number[];
  readonly meanLength: number;
  /** Whether the row with a primary key has other entries, in a newer source. Undefined: none has. */
  readonly isHidden: ((key: Uint8Array) => boolean | Promise<boolean>) | undefined;
}

/** Looks for rows in one source of entries. */
export class SourceProbe {
  readonly #words: readonly PostingProbe[];
  readonly #excluded: readonly PostingProbe[];
  readonly #any: boolean;
  readonly #isHidden: SourceProbeOptions['isHidden'];
  /** How often a word was looked for in a row. */
  asked = 0;

  constructor({ words, excluded, any, factors, meanLength, isHidden }: SourceProbeOptions) {
    this.#words = words.map(({ place }, i) => new PostingProbe(place, factors[i] as number, meanLength));
    this.#excluded = excluded.map(({ place }) => new PostingProbe(place, 0, meanLength));
    this.#any = any;
    this.#isHidden = isHidden;
  }

  /** Returns the scores of the rows from one position to another; negative numbers for those that are not found. */
  async scores(keys: PostingRun, from: number, to: number): Promise<Float64Array> {
    const sums = new Float64Array(to - from).fill(this.#any ? notThere : 0);
    const isFound = (at: number): boolean => (sums[at] as number) >= 0;
    for (const probe of this.#words) {
      await this.#ask(
        (j) => probe.scoreOf(keys, j),
        from,
        sums,
        (at) => this.#any || isFound(at),
        (at, score) => {
          if (score >= 0) sums[at] = Math.max(0, sums[at] as number) + score;
          else if (!this.#any) sums[at] = notThere;
        },
      );
    }
    for (const probe of this.#excluded) {
      await this.#ask(
        (j) => probe.scoreOf(keys, j),
        from,
        sums,
        isFound,
        (at, score) => {
          if (score >= 0) sums[at] = notThere;
        },
      );
    }
    if (this.#isHidden !== undefined) await this.#hide(this.#isHidden, keys, from, sums);
    return sums;
  }

  /** Takes out rows that have other entries, in a newer source. */
  #hide(
    isHidden: NonNullable<SourceProbeOptions['isHidden']>,
    keys: PostingRun,
    from: number,
    sums: Float64Array,
  ): Promise<void> {
    return this.#ask<boolean>(
      (j) => {
        keys.readKey(j, target);
        return isHidden(target.bytes.slice(0, target.length));
      },
      from,
      sums,
      (at) => (sums[at] as number) >= 0,
      (at, hidden) => {
        if (hidden) sums[at] = notThere;
      },
    );
  }

  /** Asks for each of the rows that are of interest, for all of them together where blocks must be read. */
  async #ask<T>(
    ask: (j: number) => T | Promise<T>,
    from: number,
    sums: Float64Array,
    isOfInterest: (at: number) => boolean,
    use: (at: number, answer: T) => void,
  ): Promise<void> {
    const late: Promise<void>[] = [];
    for (let at = 0; at < sums.length; at++) {
      if (!isOfInterest(at)) continue;
      this.asked++;
      const answer = ask(from + at);
      if (!isPromise(answer)) use(at, answer);
      else {
        const used = answer.then((known) => use(at, known));
        // If one fails, the others are still under way, and their errors must not go unhandled.
        used.catch(() => undefined);
        late.push(used);
      }
    }
    await Promise.all(late);
  }
}
