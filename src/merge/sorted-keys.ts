/** Changes to an index in the order of their keys. */
import { compareRanges } from '../base/bytes.ts';
import { CorruptionError } from '../base/errors.ts';
import { KeyList } from '../format/key-list.ts';
import type { KeyChanges, NodeEntries } from '../format/node-entries.ts';
import type { SortedPostings } from '../schema/text-writer.ts';
import type { ChangeStream } from '../tree/write.ts';

/** Keys in order, and whether each is removed. */
interface KeysInOrder {
  readonly keys: KeyList;
  readonly removals: Uint8Array;
}

/** Entries of new rows that become keys at once. */
const partKeys = 4096;

/** Changes in the order of their keys. The entries of new rows in an index on texts become keys as they are applied, part by part. */
export class SortedKeys implements ChangeStream, KeyChanges {
  /** The keys of this part; the list stays, and its keys are replaced by those of the next part. */
  readonly keys: KeyList;
  #removals: Uint8Array;
  readonly #others: KeysInOrder;
  /** The first of the others that is in no part yet. */
  #nextOther = 0;
  readonly #postings: SortedPostings | undefined;
  /** The entry of a new row that waits for others before it. */
  readonly #waiting = new KeyList();
  readonly #index: string;
  #at = 0;
  readonly source = undefined;
  readonly base = 0;

  readonly words?: number;

  /** `postings`: the entries of new rows, which come beside the others. */
  constructor(others: KeysInOrder, postings: SortedPostings | undefined, index: string, words: number | undefined) {
    if (words !== undefined) this.words = words;
    this.#others = others;
    this.#postings = postings;
    this.#index = index;
    this.#removals = others.removals;
    this.keys = postings === undefined ? others.keys : new KeyList();
    if (postings !== undefined) this.#fill(postings);
    else this.#nextOther = others.keys.count;
  }

  /** Makes the next part. */
  #fill(postings: SortedPostings): void {
    const { keys } = this;
    keys.rewind(0);
    this.#at = 0;
    if (this.#hasOther || this.#waiting.count > 0) this.#mix(postings);
    else if (this.#removals.length > 0) this.#removals = new Uint8Array(0);
    postings.append(keys, partKeys - keys.count);
  }

  get #hasOther(): boolean {
    return this.#nextOther < this.#others.keys.count;
  }

  /** Adds keys to the part for as long as there are others. */
  #mix(postings: SortedPostings): void {
    const { keys } = this;
    const waiting = this.#waiting;
    const { keys: others, removals } = this.#others;
    this.#removals = new Uint8Array(partKeys);
    while (keys.count < partKeys && (this.#hasOther || waiting.count > 0)) {
      if (waiting.count === 0) postings.append(waiting, 1);
      const other = this.#nextOther;
      const start = this.#hasOther ? others.start(other) : 0;
      const end = this.#hasOther ? others.endOf(other) : 0;
      const isOther =
        this.#hasOther &&
        (waiting.count === 0 || compareRanges(others.bytes, start, end, waiting.bytes, 0, waiting.sizeBytes) <= 0);
      if (isOther) {
        this.#removals[keys.count] = removals[other] as number;
        keys.writer.appendRange(others.bytes, start, end);
        this.#nextOther++;
      } else {
        keys.writer.appendRange(waiting.bytes, 0, waiting.sizeBytes);
        waiting.rewind(0);
      }
      keys.end();
    }
  }

  get keyed(): KeyChanges {
    return this;
  }

  get position(): number {
    return this.#at;
  }

  get done(): boolean {
    return this.#at >= this.keys.count;
  }

  get key(): Uint8Array {
    return this.keys.bytes;
  }

  get keyStart(): number {
    return this.keys.start(this.#at);
  }

  get keyEnd(): number {
    return this.keys.endOf(this.#at);
  }

  get remove(): boolean {
    return this.#removals[this.#at] === 1;
  }

  mayChange(from: Uint8Array, to: Uint8Array): boolean {
    const { keys } = this;
    const at = keys.lowerBound(from, this.#at);
    if (at < keys.count) return isUpTo(keys, at, to);
    const { keys: others } = this.#others;
    const other = others.lowerBound(from, this.#nextOther);
    if (other < others.count && isUpTo(others, other, to)) return true;
    const isWaiting = this.#waiting.lowerBound(from) < this.#waiting.count;
    return (isWaiting && isUpTo(this.#waiting, 0, to)) || this.#postings?.mayHave(from, to) === true;
  }

  /**
   * Every entry names its row's primary key, and a row changes once in a merge: equal keys follow each other only where
   * a tree or a commit holds a row twice.
   */
  advance(): void {
    const at = ++this.#at;
    const { keys } = this;
    if (at < keys.count) {
      if (keys.isSame(at - 1, at)) this.#failTwice();
      return;
    }
    if (this.#postings === undefined) return;
    const last = keys.key(at - 1);
    this.#fill(this.#postings);
    if (keys.count > 0 && compareRanges(last, 0, last.length, keys.bytes, 0, keys.endOf(0)) === 0) this.#failTwice();
  }

  /** Entries of new rows need not become keys first. None of them comes twice: their rows are in order. */
  addTo(entries: NodeEntries, most: number): boolean {
    const { keys } = this;
    const postings = this.#postings;
    // A part with other changes has a place for removals.
    if (postings === undefined || this.#removals.length > 0) return false;
    let left = most;
    for (; left > 0 && !this.done; left--) entries.addKey(keys.bytes, this.keyStart, keys.endOf(this.#at++));
    if (!this.done) return true;
    postings.append(entries, left);
    keys.rewind(0);
    this.#at = 0;
    // The next one is known again.
    postings.append(keys, 1);
    return true;
  }

  #failTwice(): never {
    throw changedTwice(this.#index);
  }
}

/** Returns the error for an entry that changes twice. `index`: the folder of the index. */
export function changedTwice(index: string): CorruptionError {
  return new CorruptionError(index, 'An index entry changes twice in one merge: a row is there twice');
}

/** Whether a key is not above another. */
function isUpTo(keys: KeyList, at: number, to: Uint8Array): boolean {
  return compareRanges(keys.bytes, keys.start(at), keys.endOf(at), to, 0, to.length) <= 0;
}
