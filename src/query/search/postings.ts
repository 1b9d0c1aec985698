/** Reads the entries of a word in an index on texts: the rows that have the word, by ascending primary key. */
import { ByteWriter, prefixEnd } from '../../base/bytes.ts';
import { CorruptionError } from '../../base/errors.ts';
import { DenseNode } from '../../cache/dense-node.ts';
import { CountReader } from '../../format/counts.ts';
import { RestForm } from '../../format/dense-leaf.ts';
import type { DenseEntry } from '../../format/dense-leaf.ts';
import type { Node } from '../../format/node.ts';
import { MalformedKey, skipKeyComponent, writeKeyComponent } from '../../format/ordered-key.ts';
import { Types } from '../../format/types.ts';
import { endOfPrimaryKey } from '../../schema/table-shape.ts';
import type { TableIndex } from '../../schema/table-shape.ts';
import type { KeyRange } from '../../tree/cursor.ts';
import type { Tree } from '../../tree/tree.ts';

/** Returns the bytes with which all entries of a word begin. */
export function wordBytes(word: string): Uint8Array {
  const writer = new ByteWriter(64);
  writeKeyComponent(writer, Types.varchar, word);
  return writer.finish();
}

/** Returns the range of the entries of a word, or of all words that begin with it. */
export function rangeOf(word: string, isPrefix: boolean): KeyRange {
  const bytes = wordBytes(word);
  // A component ends with two bytes of its own.
  const from = isPrefix ? bytes.subarray(0, bytes.length - 2) : bytes;
  return { from, to: prefixEnd(from) };
}

/** A row of an index on texts: its primary key, and how often a word is in its fields. */
export interface Posting {
  /** Holds the primary key from {@link keyStart} to {@link keyEnd}, until the next one is read. */
  readonly bytes: Uint8Array;
  readonly keyStart: number;
  readonly keyEnd: number;
  /** The sum of the counts of the word in the fields, times their weights. 0: it is in none of the fields that are searched. */
  readonly frequency: number;
  /** The words of the row. */
  readonly length: number;
}

/** The place and the meaning of the entries of an index on texts. */
export interface PostingSource {
  readonly tree: Tree;
  readonly index: TableIndex;
  /** The weight of each field of the index; 0: the field is not searched. */
  readonly weights: readonly number[];
}

/** Reads entries one by one. */
export class PostingReader implements Posting {
  readonly #source: PostingSource;
  readonly #counts = new CountReader();
  /** The frequencies of the two usual counts. */
  readonly #ofZero: number;
  readonly #ofUnit: number;
  #node: Node | undefined;
  /** The place in the leaf, if that is dense. */
  #entry: DenseEntry | undefined;
  bytes: Uint8Array = new Uint8Array(256);
  keyStart = 0;
  keyEnd = 0;
  frequency = 0;
  length = 0;

  constructor(source: PostingSource) {
    this.#source = source;
    this.#ofZero = this.#frequencyOf(0);
    this.#ofUnit = this.#frequencyOf(1);
  }

  /** Reads the entry at a position of a leaf. Throws `CorruptionError`. */
  take(node: Node, i: number): void {
    if (this.#node !== node) {
      this.#node = node;
      this.#entry = node instanceof DenseNode ? node.entries() : undefined;
      if (this.#entry === undefined) this.bytes = new Uint8Array(256);
    }
    try {
      if (this.#entry === undefined) this.#read(node, i);
      else this.#readDense(this.#entry, i, node);
    } catch (error) {
      if (!(error instanceof MalformedKey)) throw error;
      throw new CorruptionError(node.name, 'An entry of an index on texts cannot be read', { cause: error });
    }
  }

  #read(node: Node, i: number): void {
    const length = node.keyLength(i);
    if (length > this.bytes.length) this.bytes = new Uint8Array(length * 2);
    const { bytes } = this;
    node.copyKey(i, bytes, 0);
    this.keyStart = skipKeyComponent(bytes, 0, Types.varchar);
    this.keyEnd = endOfPrimaryKey(bytes, this.keyStart, length, this.#source.index);
    this.#readCounts(bytes, this.keyEnd, length, node);
  }

  #readDense(entry: DenseEntry, i: number, node: Node): void {
    entry.moveTo(i);
    this.bytes = entry.key;
    this.keyStart = 0;
    this.keyEnd = entry.keyLength;
    const { restForm, restNumber, restStart } = entry;
    if (restForm === RestForm.bytes) {
      this.#readCounts(node.rows, restStart, restStart + restNumber, node);
      return;
    }
    this.length = restNumber;
    if (restForm === RestForm.one) this.frequency = this.#frequencyOf(node.rows[restStart] as number);
    else this.frequency = restForm === RestForm.zero ? this.#ofZero : this.#ofUnit;
  }

  #frequencyOf(count: number): number {
    const { weights } = this.#source;
    return (weights[count % weights.length] as number) * (Math.floor(count / weights.length) + 1);
  }

  #readCounts(bytes: Uint8Array, at: number, end: number, node: Node): void {
    const counts = this.#counts;
    counts.bytes = bytes;
    counts.at = at;
    this.length = counts.next();
    let frequency = 0;
    while (counts.at < end) frequency += this.#frequencyOf(counts.next());
    if (counts.at !== end)
      throw new CorruptionError(node.name, 'An entry of an index on texts does not end where its counts do');
    this.frequency = frequency;
  }
}
