/** The words of texts of ASCII, read from their bytes. They are those that `TextAnalyzer.eachWord` finds. */
import { readLatin1 } from '../base/bytes.ts';
import type { TextAnalyzer } from '../search/analyzer.ts';

/** Stands for no word: nothing is left once the ending is gone. */
export const noWord = 0xffff_ffff;

/** The most spellings that are remembered: about four megabytes for as long as rows are added. All are forgotten then. */
const maxKnown = 0x20000;
/** Longer spellings are not remembered. */
const maxBytes = 64;

/** Whether a byte is a letter or a digit. */
const isPart = Uint8Array.from({ length: 256 }, (_, byte) => Number(/[0-9A-Za-z]/.test(String.fromCharCode(byte))));
const apostrophe = 0x27;

export class AsciiWords {
  readonly #analyzer: TextAnalyzer;
  readonly #numberOf: (word: string) => number;
  /** The number of the word that {@link next} found; {@link noWord} if none is left of it. */
  word: number = noWord;
  /** A table of spellings by their hashes: the number of each plus one, or 0. */
  #places = new Uint32Array(256);
  #count = 0;
  /** The bytes of the spellings, where each ends, its hash, and the number of its word. */
  #bytes = new Uint8Array(1024);
  #ends = new Uint32Array(128);
  #hashes = new Uint32Array(128);
  #words = new Uint32Array(128);

  readonly #most: number;

  /** `numberOf`: gives each word its number. `most`: the spellings that are remembered. */
  constructor(analyzer: TextAnalyzer, numberOf: (word: string) => number, most: number = maxKnown) {
    this.#analyzer = analyzer;
    this.#numberOf = numberOf;
    this.#most = most;
  }

  /** Finds the next word in `bytes[from .. to)`, and returns where it ends; -1 if there is none. */
  next(bytes: Uint8Array, from: number, to: number): number {
    let start = from;
    while (start < to && isPart[bytes[start] as number] === 0) start++;
    if (start >= to) return -1;
    let end = start;
    let hash = 0x811c9dc5;
    for (; end < to; end++) {
      const byte = bytes[end] as number;
      if (isPart[byte] === 0 && !(byte === apostrophe && this.#joins(bytes, end, to))) break;
      hash = Math.imul(hash ^ byte, 0x01000193);
    }
    this.word = end - start > maxBytes ? this.#wordOf(bytes, start, end) : this.#known(bytes, start, end, hash >>> 0);
    return end;
  }

  /** Whether the apostrophe at a place is a part of the word before it. */
  #joins(bytes: Uint8Array, at: number, to: number): boolean {
    return this.#analyzer.joins && at + 1 < to && isPart[bytes[at + 1] as number] === 1;
  }

  #wordOf(bytes: Uint8Array, start: number, end: number): number {
    const word = this.#analyzer.wordOf(readLatin1(bytes, start, end));
    return word === '' ? noWord : this.#numberOf(word);
  }

  #known(bytes: Uint8Array, start: number, end: number, hash: number): number {
    const mask = this.#places.length - 1;
    let place = (hash ^ (hash >>> 15)) & mask;
    for (let found = this.#places[place] as number; found > 0; found = this.#places[place] as number) {
      if (this.#hashes[found - 1] === hash && this.#isSame(found - 1, bytes, start, end)) {
        return this.#words[found - 1] as number;
      }
      place = (place + 1) & mask;
    }
    const word = this.#wordOf(bytes, start, end);
    this.#remember(bytes, start, end, hash, word);
    return word;
  }

  #isSame(i: number, bytes: Uint8Array, start: number, end: number): boolean {
    const known = this.#bytes;
    let at = i === 0 ? 0 : (this.#ends[i - 1] as number);
    if ((this.#ends[i] as number) - at !== end - start) return false;
    for (let j = start; j < end; j++) if (known[at++] !== bytes[j]) return false;
    return true;
  }

  #remember(bytes: Uint8Array, start: number, end: number, hash: number, word: number): void {
    if (this.#count === this.#ends.length) this.#grow();
    const i = this.#count++;
    const at = i === 0 ? 0 : (this.#ends[i - 1] as number);
    if (at + maxBytes > this.#bytes.length) this.#bytes = grown(this.#bytes, new Uint8Array(this.#bytes.length * 2));
    for (let j = start; j < end; j++) this.#bytes[at + j - start] = bytes[j] as number;
    this.#ends[i] = at + end - start;
    this.#hashes[i] = hash;
    this.#words[i] = word;
    this.#place(i);
  }

  /** Makes room for twice as many spellings, or forgets all. */
  #grow(): void {
    if (this.#count >= this.#most) {
      this.#count = 0;
      this.#places.fill(0);
      return;
    }
    const length = this.#count * 2;
    this.#ends = grown(this.#ends, new Uint32Array(length));
    this.#hashes = grown(this.#hashes, new Uint32Array(length));
    this.#words = grown(this.#words, new Uint32Array(length));
    this.#places = new Uint32Array(length * 2);
    for (let i = 0; i < this.#count; i++) this.#place(i);
  }

  /** Puts a spelling into the table, which has room for it. */
  #place(i: number): void {
    const mask = this.#places.length - 1;
    const hash = this.#hashes[i] as number;
    let place = (hash ^ (hash >>> 15)) & mask;
    while ((this.#places[place] as number) > 0) place = (place + 1) & mask;
    this.#places[place] = i + 1;
  }
}

function grown<T extends Uint8Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
