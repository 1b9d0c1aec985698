/** The rows that have a word of a search, by ascending primary key, and their scores. */
import { andThen } from '../../base/brands.ts';
import { concatBytes } from '../../base/bytes.ts';
import type { Node } from '../../format/node.ts';
import { openCursor } from '../../tree/cursor-sequence.ts';
import type { KeyRange, RunCursor } from '../../tree/cursor.ts';
import { KeyBuffer, PostingRun, RunBuilder } from './posting-run.ts';
import { PostingReader } from './postings.ts';
import type { PostingSource } from './postings.ts';

/** A run, and the weights of fields that its frequencies are of. */
interface KeptRun {
  readonly run: PostingRun;
  readonly weights: readonly number[];
}

/** The runs of leaves, by the place of their first entry. */
const runsOfLeaves = new WeakMap<Node, Map<number, KeptRun>>();

/** Returns the entries of a word in a leaf, from one position to another. */
function runOf(node: Node, from: number, to: number, source: PostingSource): PostingRun {
  const { weights } = source;
  let runs = runsOfLeaves.get(node);
  if (runs === undefined) {
    runs = new Map();
    runsOfLeaves.set(node, runs);
  }
  const known = runs.get(from);
  if (known?.weights.every((weight, i) => weight === weights[i]) === true) return known.run;
  const builder = new RunBuilder();
  const reader = new PostingReader(source);
  for (let i = from; i < to; i++) {
    reader.take(node, i);
    builder.add(reader.bytes, reader.keyStart, reader.keyEnd, reader.frequency, reader.length);
  }
  const run = new PostingRun(builder);
  runs.set(from, { run, weights });
  node.grow(run.sizeBytes - (known?.run.sizeBytes ?? 0));
  return run;
}

/** Where the entries of a word are. */
export interface WordPlace {
  readonly source: PostingSource;
  readonly range: KeyRange;
}

const noScores = new Float64Array(0);
const noRows = new PostingRun(new RunBuilder());

/** Moves over the rows of a word: over its runs in a tree, or over one run that is held in memory. */
export class WordPostings {
  readonly #place: WordPlace | undefined;
  #cursor: RunCursor | undefined;
  #isOver = false;
  #factor = 0;
  #meanLength = 1;
  #scores: Float64Array = noScores;
  /** The best score in the present run. */
  bestScore = 0;
  run: PostingRun = noRows;
  /** The position of the present row in its run. */
  at = -1;
  /** The rows that were looked at. */
  read = 0;

  constructor(place: WordPlace | PostingRun) {
    if (place instanceof PostingRun) {
      this.run = place;
      return;
    }
    this.#place = place;
    this.#cursor = openCursor(place.source.tree, place.range);
  }

  /** Tells how many rows will probably be read. */
  expect(rows: number): void {
    this.#cursor?.expect?.(rows);
  }

  /** Sets what scores depend on, besides the row. It comes before the first move. */
  rankBy(factor: number, meanLength: number): void {
    this.#factor = factor;
    this.#meanLength = meanLength;
    this.#rankRun();
  }

  /** The score of the present row. */
  get score(): number {
    return this.#scores[this.run.kinds[this.at] as number] as number;
  }

  /** The score of each kind of rows in the present run. */
  get scores(): Float64Array {
    return this.#scores;
  }

  /** Moves to the next row. Returns false at the end. */
  next(): boolean | Promise<boolean> {
    this.read++;
    return ++this.at < this.run.count || this.nextRun();
  }

  /** Moves to the first row of the next run. Returns false at the end. */
  nextRun(): boolean | Promise<boolean> {
    const cursor = this.#cursor;
    if (cursor === undefined || this.#isOver) return this.#end();
    return andThen(cursor.next(), (more) => (more ? this.#enter(cursor) : this.#end()));
  }

  /** Moves to the first row at or after the present one whose key is not below that of a row of another word. Returns false if there is none. */
  seek(other: PostingRun, j: number): boolean | Promise<boolean> {
    this.read++;
    if (this.#isOver) return false;
    const { run } = this;
    if (this.at >= 0 && this.at < run.count && run.compare(this.at, other, j) >= 0) return true;
    const at = run.bound(this.at + 1, other, j);
    if (at < run.count) {
      this.at = at;
      return true;
    }
    if (this.#place === undefined) return this.#end();
    const { source, range } = this.#place;
    other.readKey(j, target);
    const from = concatBytes(range.from as Uint8Array, target.bytes.subarray(0, target.length));
    const cursor = openCursor(source.tree, { from, to: range.to });
    this.#cursor = cursor;
    return andThen(cursor.next(), (more) => (more ? this.#enter(cursor) : this.#end()));
  }

  /** Whether the present row is that of another word. */
  isAt(other: PostingRun, j: number): boolean {
    return !this.#isOver && this.run.compare(this.at, other, j) === 0;
  }

  #enter({ node, from, to }: RunCursor): true {
    const { source, range } = this.#place as WordPlace;
    const start = from === 0 ? 0 : node.lowerBound(range.from as Uint8Array);
    this.run = runOf(node, start, to, source);
    this.at = from - start;
    this.#rankRun();
    return true;
  }

  #rankRun(): void {
    const { scores, best } = this.run.rankingFor(this.#factor, this.#meanLength);
    this.#scores = scores;
    this.bestScore = best;
  }

  #end(): false {
    this.#isOver = true;
    return false;
  }
}

const target = new KeyBuffer();
