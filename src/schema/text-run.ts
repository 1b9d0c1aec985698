/**
 * The entries that new rows get in an index on texts, for many rows at once. A posting is four bytes, a word has its bytes once, and so
 * has the primary key of a row. Words of ASCII are read as bytes: no text is made of them. To sort postings, only different words are
 * compared: the rows come in the order of their keys.
 */
import { compareRanges, copyRange } from '../base/bytes.ts';
import type { ByteWriter } from '../base/bytes.ts';
import type { Pacer } from '../base/pacer.ts';
import { writeCount } from '../format/counts.ts';
import { KeyList } from '../format/key-list.ts';
import { writeKeyComponent } from '../format/ordered-key.ts';
import { heapPlace, isNull, readText } from '../format/row-decode.ts';
import { inlineBytes, nonAsciiFlag } from '../format/row-layout.ts';
import type { LayoutField, RowSource } from '../format/row-layout.ts';
import { Types } from '../format/types.ts';
import { loadedAnalyzer } from '../search/analyzer.ts';
import { AsciiWords, noWord } from './ascii-words.ts';
import type { EntrySink, TextFields } from './text-fields.ts';
import type { SortedPostings, TextRun } from './text-writer.ts';

/** A posting is the number of its word and eight bits: a count as an entry has it, if it is a single one below this. */
const inlineCounts = 0x80;
const countBits = 8;
/** A run takes no more words. */
const maxWords = 2 ** (32 - countBits - 1);
/** About what a word takes in memory, besides its bytes. */
const wordBytes = 80;
/** About what a posting takes: its own bytes, and those of its place among the sorted ones. */
const postingBytes = 10;
/** Rows, postings or words that are handled between two checks of the clock. */
const sliceLength = 0x2000;

/** Numbers that grow. */
class Numbers {
  values = new Uint32Array(64);
  length = 0;

  push(value: number): void {
    if (this.length === this.values.length) this.grow(this.length + 1);
    this.values[this.length++] = value;
  }

  /** Makes room for `length` numbers; new ones are 0. */
  grow(length: number): void {
    if (length <= this.values.length) return;
    const grown = new Uint32Array(Math.max(length, this.values.length * 2));
    grown.set(this.values);
    this.values = grown;
  }
}

/** The entries of rows, as postings. */
export class CollectedPostings implements TextRun {
  readonly #fields: readonly LayoutField[];
  readonly #analyzer;
  /** The words by their text, the bytes of each in an entry, the last row of each, and its place there. */
  readonly #numbers = new Map<string, number>();
  readonly #words = new KeyList();
  readonly #rowOfWord = new Numbers();
  readonly #placeOfWord = new Numbers();
  readonly #ascii: AsciiWords;
  /** The different words of the row that is added, and how often each is in each field. */
  readonly #rowWords = new Numbers();
  readonly #counts = new Numbers();
  #rowTotal = 0;
  #field = 0;
  readonly #count = (word: string): void => this.#countWord(this.#numberOf(word));
  /** The primary key of each row with the number of its words, where the key ends, and the number of postings up to it. */
  readonly #rows = new KeyList();
  readonly #keyEnds = new Numbers();
  readonly #postingEnds = new Numbers();
  readonly #postings = new Numbers();
  /** The counts of postings that do not fit into them. */
  readonly #others = new KeyList();
  totalWords = 0;

  constructor({ fields, language }: TextFields) {
    this.#fields = fields;
    this.#analyzer = loadedAnalyzer(language);
    this.#ascii = new AsciiWords(this.#analyzer, (word) => this.#numberOf(word));
  }

  get count(): number {
    return this.#postings.length;
  }

  get sizeBytes(): number {
    const words = this.#words.sizeBytes + this.#words.count * wordBytes;
    const rows = this.#rows.sizeBytes + this.#rows.count * 12;
    return words + rows + this.count * postingBytes + this.#others.sizeBytes + this.#others.count * 4;
  }

  add(source: RowSource, base: number, primaryKey: Uint8Array, length: number): boolean {
    if (this.#words.count >= maxWords || !this.#isNext(primaryKey, length)) return false;
    this.#rowWords.length = 0;
    this.#rowTotal = 0;
    for (let i = 0; i < this.#fields.length; i++) this.#addField(source, base, this.#fields[i] as LayoutField, i);
    if (this.#rowTotal === 0) return true;
    const { writer } = this.#rows;
    writer.appendRange(primaryKey, 0, length);
    this.#keyEnds.push(writer.length);
    writeCount(writer, this.#rowTotal);
    this.#rows.end();
    this.#addPostings();
    this.#postingEnds.push(this.#postings.length);
    this.totalWords += this.#rowTotal;
    return true;
  }

  /** Whether a primary key is above that of the last row. */
  #isNext(primaryKey: Uint8Array, length: number): boolean {
    const rows = this.#rows;
    const last = rows.count - 1;
    if (last < 0) return true;
    const end = this.#keyEnds.values[last] as number;
    return compareRanges(rows.bytes, rows.start(last), end, primaryKey, 0, length) < 0;
  }

  #addField(source: RowSource, base: number, field: LayoutField, number: number): void {
    this.#field = number;
    if (isNull(source, base, field)) return;
    const at = base + field.offset;
    const length = source.rowsView.getUint32(at, true);
    if (length < nonAsciiFlag) {
      const isInline = length <= inlineBytes;
      const start = isInline ? at + 4 : heapPlace(source, at, length, field);
      this.#addAscii(isInline ? source.rows : source.heap, start, start + length);
    } else this.#analyzer.eachWord(readText(source, at, field), this.#count);
  }

  #addAscii(bytes: Uint8Array, start: number, end: number): void {
    const ascii = this.#ascii;
    for (let at = ascii.next(bytes, start, end); at >= 0; at = ascii.next(bytes, at, end)) {
      if (ascii.word !== noWord) this.#countWord(ascii.word);
    }
  }

  #numberOf(word: string): number {
    const known = this.#numbers.get(word);
    if (known !== undefined) return known;
    writeKeyComponent(this.#words.writer, Types.varchar, word);
    const number = this.#words.end();
    this.#numbers.set(word, number);
    this.#rowOfWord.push(0);
    this.#placeOfWord.push(0);
    return number;
  }

  #countWord(word: number): void {
    const fields = this.#fields.length;
    const row = this.#rows.count + 1;
    const places = this.#placeOfWord.values;
    if (this.#rowOfWord.values[word] !== row) {
      this.#rowOfWord.values[word] = row;
      const place = this.#rowWords.length * fields;
      places[word] = place;
      this.#rowWords.push(word);
      this.#counts.grow(place + fields);
      // A call of fill() takes longer for so few.
      for (let i = 0; i < fields; i++) this.#counts.values[place + i] = 0;
    }
    const place = (places[word] as number) + this.#field;
    this.#counts.values[place] = (this.#counts.values[place] as number) + 1;
    this.#rowTotal++;
  }

  /** Adds the postings of the words of a row. */
  #addPostings(): void {
    const fields = this.#fields.length;
    const words = this.#rowWords.values;
    for (let i = 0; i < this.#rowWords.length; i++) {
      const word = words[i] as number;
      const only = this.#onlyCount(i * fields);
      if (only >= 0 && only < inlineCounts) {
        this.#postings.push(((word << countBits) | only) >>> 0);
        continue;
      }
      this.#postings.push(((word << countBits) | inlineCounts) >>> 0);
      for (let field = 0; field < fields; field++) {
        const count = this.#counts.values[i * fields + field] as number;
        if (count > 0) writeCount(this.#others.writer, field + fields * (count - 1));
      }
      this.#others.end();
    }
  }

  /** Returns the count of a word that is in one field only, as an entry has it; -1 if it is in several. */
  #onlyCount(place: number): number {
    const fields = this.#fields.length;
    const counts = this.#counts.values;
    let only = -1;
    for (let field = 0; field < fields; field++) {
      const count = counts[place + field] as number;
      if (count === 0) continue;
      if (only >= 0) return -1;
      only = field + fields * (count - 1);
    }
    return only;
  }

  async sorted(pacer: Pacer): Promise<SortedPostings> {
    const order = await this.#words.sorted(pacer);
    const words = await this.#words.inOrder(order, pacer);
    const rankOf = new Uint32Array(order.length);
    for (let rank = 0; rank < order.length; rank++) rankOf[order[rank] as number] = rank;
    const postings = this.#postings.values;
    const ends = new Uint32Array(order.length + 1);
    const otherEnds = new Uint32Array(order.length + 1);
    for (let i = 0; i < this.count; i++) {
      const posting = postings[i] as number;
      const at = (rankOf[posting >>> countBits] as number) + 1;
      ends[at] = (ends[at] as number) + 1;
      if ((posting & inlineCounts) !== 0) otherEnds[at] = (otherEnds[at] as number) + 1;
      if (i % sliceLength === 0 && pacer.due()) await pacer.pause();
    }
    // Where the postings of a word begin; each that is put there moves it, so that it is their end at last.
    for (let rank = 1; rank <= order.length; rank++) {
      ends[rank] = (ends[rank] as number) + (ends[rank - 1] as number);
      otherEnds[rank] = (otherEnds[rank] as number) + (otherEnds[rank - 1] as number);
    }
    const rowOf = new Uint32Array(this.count);
    const countOf = new Uint8Array(this.count);
    const otherOf = new Uint32Array(this.#others.count);
    let other = 0;
    let at = 0;
    for (let row = 0; row < this.#rows.count; row++) {
      for (const end = this.#postingEnds.values[row] as number; at < end; at++) {
        const posting = postings[at] as number;
        const rank = rankOf[posting >>> countBits] as number;
        const place = ends[rank] as number;
        ends[rank] = place + 1;
        rowOf[place] = row;
        countOf[place] = posting;
        if ((posting & inlineCounts) === 0) continue;
        const otherPlace = otherEnds[rank] as number;
        otherEnds[rank] = otherPlace + 1;
        otherOf[otherPlace] = other++;
      }
      if (row % 0x400 === 0 && pacer.due()) await pacer.pause();
    }
    return new Sorted({ words, ends, rowOf, countOf, otherOf, rows: this.#rows, others: this.#others });
  }
}

interface SortedLists {
  readonly words: KeyList;
  /** Where the postings of each word end. */
  readonly ends: Uint32Array;
  /** The row of each posting, and its count: itself, or {@link inlineCounts}. */
  readonly rowOf: Uint32Array;
  readonly countOf: Uint8Array;
  /** The places of the counts that are not there, among the longer ones. */
  readonly otherOf: Uint32Array;
  readonly rows: KeyList;
  readonly others: KeyList;
}

class Sorted implements SortedPostings {
  readonly #lists: SortedLists;
  /** The next posting, the word that it may be of, and how many before it had longer counts. */
  #at = 0;
  #word = 0;
  #other = 0;

  constructor(lists: SortedLists) {
    this.#lists = lists;
  }

  append(to: EntrySink, most: number): void {
    const { words, ends, rowOf, countOf, rows } = this.#lists;
    const { writer } = to;
    const last = Math.min(rowOf.length, this.#at + most);
    while (this.#at < last) {
      if (this.#at >= (ends[this.#word] as number)) this.#word++;
      const wordStart = words.start(this.#word);
      const wordEnd = words.endOf(this.#word);
      const end = Math.min(last, ends[this.#word] as number);
      for (; this.#at < end; this.#at++) {
        const row = rowOf[this.#at] as number;
        const start = rows.start(row);
        const rowEnd = rows.endOf(row);
        writer.ensure(wordEnd - wordStart + rowEnd - start);
        copyRange(words.bytes, wordStart, wordEnd, writer.bytes, writer.length);
        copyRange(rows.bytes, start, rowEnd, writer.bytes, writer.length + wordEnd - wordStart);
        writer.length += wordEnd - wordStart + rowEnd - start;
        this.#appendCount(writer, countOf[this.#at] as number);
        to.end();
      }
    }
    while (this.#word < words.count && this.#at >= (ends[this.#word] as number)) this.#word++;
  }

  #appendCount(writer: ByteWriter, count: number): void {
    if (count < inlineCounts) {
      writer.u8(count);
      return;
    }
    const { others, otherOf } = this.#lists;
    const at = otherOf[this.#other++] as number;
    writer.appendRange(others.bytes, others.start(at), others.endOf(at));
  }

  mayHave(from: Uint8Array, to: Uint8Array): boolean {
    const { words } = this.#lists;
    const at = words.lowerBound(from, this.#word);
    if (at < words.count && compareRanges(words.bytes, words.start(at), words.endOf(at), to, 0, to.length) <= 0) {
      return true;
    }
    // The entries of the word before it begin below, and may go on.
    if (at <= this.#word) return false;
    const [start, end] = [words.start(at - 1), words.endOf(at - 1)];
    return end - start <= from.length && compareRanges(words.bytes, start, end, from, 0, end - start) === 0;
  }
}
